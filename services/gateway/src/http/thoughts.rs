//! `GET /v1/agents/{agent}/thoughts`: who within an agent thought what, who was asked, and who was late.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::ListThoughtsResponse;
use kairo_read_model::{ThoughtsQuery, thought_rows};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{RequestFields, bounded_text, query_value},
    ownership,
    problem::Problem,
};

/// Longest name of a submodule that is asked for, in bytes.
const MAX_MODULE: usize = 32;

pub async fn list_thoughts(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListThoughtsResponse>>, Problem> {
    let agent = query::path_agent(path)?;
    let wanted = asked.parse_with(|query| parse_query(agent.as_str(), query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut found = query::await_answer(&gateway, snapshot.thinking_events(&wanted)).await?;
    let next_before = found.next_before;
    found.events = ownership::filter_events(&gateway, &snapshot, caller.user(), found.events).await?;
    let thoughts = thought_rows(&found, wanted.module.as_deref());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListThoughtsResponse { thoughts, next_before, ..Default::default() }),
    ))
}

fn parse_query(agent: &str, url_query: Option<&str>, config: &GatewayConfig) -> Result<ThoughtsQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let expected = format!("1 to {MAX_MODULE} bytes");
    let module = fields.optional("module", expected, query_value(bounded_text(MAX_MODULE)));
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(ThoughtsQuery { agent: agent.to_owned(), module, before, limit }))
}
