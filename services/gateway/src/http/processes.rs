//! `GET /v1/processes`: the processes of agents, the newest first. `GET /v1/processes/{id}`: one.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::{GetProcessResponse, ListProcessesResponse};
use kairo_read_model::{Kind, ProcessesQuery};

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, at_most, name, parsed, value},
    ownership,
    problem::Problem,
};

/// Longest word for how a process ended, in bytes.
const MAX_OUTCOME_BYTES: usize = 64;

pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Answer<Told<ListProcessesResponse>>, Problem> {
    let wanted = asked.read(|query| read(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut processes = query::answered(&gateway, snapshot.recent_processes(&wanted)).await?;
    let next_before =
        query::newest_first(&mut processes, wanted.limit, |row| row.sequence, |row| row.process_id.clone());
    // Of the page, so that going on by its end misses nothing.
    let processes =
        ownership::things(&gateway, &snapshot, caller.user(), Kind::Process, processes, |row| &row.process_id).await?;
    Ok(Answer::of(&snapshot, Told(ListProcessesResponse { processes, next_before, ..Default::default() })))
}

fn read(url_query: Option<&str>, config: &GatewayConfig) -> Result<ProcessesQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let running = fields.optional("running", "true or false", value(parsed));
    let expected = format!("1 to {MAX_OUTCOME_BYTES} bytes, such as exited or signaled");
    let outcome = fields.optional("outcome", expected, value(at_most(MAX_OUTCOME_BYTES)));
    let before = query::before(&mut fields);
    let limit = query::limit(&mut fields, config);
    fields.complete(|| Some(ProcessesQuery { agent, running, outcome, before, limit }))
}

pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetProcessResponse>>, Problem> {
    let id = query::id("process_id", path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let process = query::answered(&gateway, snapshot.process(id)).await?;
    let process = process.filter(|process| caller.act_on_agent(Some(&process.agent)).is_ok());
    let process = ownership::thing(&gateway, &snapshot, caller.user(), Kind::Process, process, id).await?;
    let unknown = || {
        let detail = format!("no process {id} is known; GET /v1/processes lists those there are");
        Problem::not_found(detail).at(snapshot.position())
    };
    Ok(Answer::of(
        &snapshot,
        Told(GetProcessResponse { process: Some(process.ok_or_else(unknown)?), ..Default::default() }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_named() {
        let read = |query| read(Some(query), &GatewayConfig::default());
        let wanted = read("running=false&outcome=exited&before=9").unwrap();
        assert_eq!((wanted.running, wanted.outcome.as_deref(), wanted.before), (Some(false), Some("exited"), Some(9)));
        let long = format!("agent=A&running=maybe&outcome={}&before=x&limit=0&colour=red", "x".repeat(65));
        let fields: Vec<_> = read(&long).unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["agent", "running", "outcome", "before", "limit", "colour"]);
    }
}
