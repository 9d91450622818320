//! `GET /v1/agents/{agent}/inner-state`: what an agent keeps in its inner state, what was written last first.
//! `GET /v1/agents/{agent}/inner-state/history`: all that was written under a key. Secrets come sealed.

use std::cmp::Reverse;

use axum::extract::{Path, State, rejection::PathRejection};
use kairo_proto::v1::{GetInnerStateHistoryResponse, InnerStateRow, ListInnerStateResponse};
use kairo_read_model::InnerStateQuery;

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    config::GatewayConfig,
    fields::{NAME, RequestFields, bounded_text, parse_name, query_value},
    problem::Problem,
};

/// Longest key, in bytes.
const MAX_KEY: usize = 128;

pub async fn list_inner_state(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListInnerStateResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(path, query, &gateway.config, false))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut entries = query::await_answer(&gateway, snapshot.inner_state(&wanted)).await?;
    let next_before = next_before(&mut entries, &wanted);
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListInnerStateResponse { entries, next_before, ..Default::default() }),
    ))
}

pub async fn get_inner_state_history(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetInnerStateHistoryResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(path, query, &gateway.config, true))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut changes = query::await_answer(&gateway, snapshot.inner_state_history(&wanted)).await?;
    if changes.is_empty() && wanted.before.is_none() {
        let InnerStateQuery { agent, key, .. } = &wanted;
        let key = key.as_deref().unwrap_or_default();
        let detail = format!(
            "nothing was ever written under {key:?} of {agent}; GET /v1/agents/{agent}/inner-state lists what there is"
        );
        return Err(Problem::not_found(detail).with_position(snapshot.position()));
    }
    let next_before = next_before(&mut changes, &wanted);
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetInnerStateHistoryResponse { changes, next_before, ..Default::default() }),
    ))
}

fn next_before(rows: &mut [InnerStateRow], wanted: &InnerStateQuery) -> Option<u64> {
    let last_first = |row: &InnerStateRow| Reverse(row.position);
    query::sort_newest_first(rows, wanted.limit, |row| row.sequence, last_first)
}

fn parse_query(
    path: Result<Path<String>, PathRejection>,
    url_query: Option<&str>,
    config: &GatewayConfig,
    of_key: bool,
) -> Result<InnerStateQuery, Problem> {
    let agent = query::path_agent(path)?.to_string();
    let mut fields = RequestFields::from_query(url_query);
    let key = format!("1 to {MAX_KEY} bytes");
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let (key, prefix) = match of_key {
        true => (fields.required("key", key, query_value(bounded_text(MAX_KEY))), None),
        false => {
            let only = fields.optional("key", key.clone(), query_value(bounded_text(MAX_KEY)));
            (only, fields.optional("prefix", key, query_value(bounded_text(MAX_KEY))))
        }
    };
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(InnerStateQuery { agent, user, key, prefix, before, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(query: &str, of_key: bool) -> Result<InnerStateQuery, Problem> {
        parse_query(Ok(Path("bob".to_owned())), Some(query), &GatewayConfig::default(), of_key)
    }

    #[test]
    fn a_question_is_read_field_by_field() {
        let wanted = ask("user=ann&prefix=launch%2F&before=7&limit=5", false).unwrap();
        assert_eq!((wanted.agent.as_str(), wanted.user.as_deref()), ("bob", Some("ann")));
        assert_eq!((wanted.prefix.as_deref(), wanted.before, wanted.limit), (Some("launch/"), Some(7), 5));
        assert_eq!(ask("key=%E4%BC%9A%E8%AE%AE", true).unwrap().key.as_deref(), Some("会议"));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let fields = |problem: Problem| problem.errors.into_iter().map(|error| error.field).collect::<Vec<_>>();
        let long = "x".repeat(MAX_KEY + 1);
        let wrong = ask(&format!("user=*&key={long}&prefix={long}&before=x&limit=0&at=3"), false).unwrap_err();
        assert_eq!(fields(wrong), ["user", "key", "prefix", "before", "limit", "at"]);
        assert_eq!(fields(ask("prefix=a", true).unwrap_err()), ["key", "prefix"]);
    }
}
