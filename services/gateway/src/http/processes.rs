//! `GET /v1/processes`: the processes of agents, the newest first. `GET /v1/processes/{id}`: one.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::{GetProcessResponse, ListProcessesResponse};
use kairo_read_model::{OwnedKind, ProcessesQuery};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, bounded_text, parse_name, parse_text, query_value},
    ownership,
    problem::Problem,
};

/// Longest word for how a process ended, in bytes.
const MAX_OUTCOME_BYTES: usize = 64;

pub async fn list_processes(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListProcessesResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut processes = query::await_answer(&gateway, snapshot.recent_processes(&wanted)).await?;
    let next_before =
        query::sort_newest_first(&mut processes, wanted.limit, |row| row.sequence, |row| row.process_id.clone());
    // Of the page, so that going on by its end misses nothing.
    let processes = ownership::filter_owned(&gateway, &snapshot, caller.user(), OwnedKind::Process, processes, |row| {
        &row.process_id
    })
    .await?;
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListProcessesResponse { processes, next_before, ..Default::default() }),
    ))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<ProcessesQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let running = fields.optional("running", "true or false", query_value(parse_text));
    let expected = format!("1 to {MAX_OUTCOME_BYTES} bytes, such as exited or signaled");
    let outcome = fields.optional("outcome", expected, query_value(bounded_text(MAX_OUTCOME_BYTES)));
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(ProcessesQuery { agent, running, outcome, before, limit }))
}

pub async fn get_process(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetProcessResponse>>, Problem> {
    let id = query::path_id("process_id", path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let process = query::await_answer(&gateway, snapshot.find_process(id)).await?;
    let process = process.filter(|process| caller.require_agent(Some(&process.agent)).is_ok());
    let process = ownership::keep_if_owned(&gateway, &snapshot, caller.user(), OwnedKind::Process, process, id).await?;
    let unknown = || {
        let detail = format!("no process {id} is known; GET /v1/processes lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetProcessResponse { process: Some(process.ok_or_else(unknown)?), ..Default::default() }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_named() {
        let read = |query| parse_query(Some(query), &GatewayConfig::default());
        let wanted = read("running=false&outcome=exited&before=9").unwrap();
        assert_eq!((wanted.running, wanted.outcome.as_deref(), wanted.before), (Some(false), Some("exited"), Some(9)));
        let long = format!("agent=A&running=maybe&outcome={}&before=x&limit=0&colour=red", "x".repeat(65));
        let fields: Vec<_> = read(&long).unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["agent", "running", "outcome", "before", "limit", "colour"]);
    }
}
