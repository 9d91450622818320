//! `GET /v1/agents/{agent}/state`: what an agent knew at a place of the log, folded again from its part of it.

use axum::{
    Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use kairo_replay::timeline::{BrokenLog, Timeline};
use serde_json::Value;

use super::{
    Gateway,
    blocking_computation::{WaitingClient, compute_on_agent_log},
    query,
};
use crate::{
    fields::{RequestFields, parse_text, query_value},
    problem::Problem,
};

/// Asked of the log itself, which has it as it was at any place.
pub async fn get_agent_state(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Problem> {
    let agent = query::path_agent(path)?;
    let mut fields = RequestFields::from_query(query.as_deref());
    let at: Option<u64> = fields.optional("at", "a sequence", query_value(parse_text));
    let at = fields.complete(|| Some(at.unwrap_or(u64::MAX)))?;
    let whose = agent.clone();
    let state =
        compute_on_agent_log(&gateway, &agent, at, move |messages, wanted| replay_state(whose, messages, wanted))
            .await?;
    let state = state.map_err(|broken| Problem::unreplayable(&broken))?;
    let state = state.ok_or_else(|| Problem::not_found("the log has nothing of this agent up to there"))?;
    Ok(Json(state))
}

/// The state behind the last of the messages; none where none of them is the agent's.
fn replay_state(agent: Name, messages: &[LogMessage], wanted: &WaitingClient) -> Result<Option<Value>, BrokenLog> {
    let mut timeline = Timeline::new(agent, 0, None);
    for message in wanted.while_waiting(messages) {
        timeline.apply(message)?;
    }
    Ok((timeline.last_own() > 0).then(|| timeline.state()))
}
