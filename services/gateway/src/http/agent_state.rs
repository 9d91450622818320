//! `GET /v1/agents/{agent}/state`: what an agent knew at a place of the log, folded again from its part of it.

use axum::{
    Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use kairo_replay::timeline::{Broken, Timeline};
use serde_json::Value;

use super::{
    Gateway,
    computing::{Wanted, of_part},
    query,
};
use crate::{
    fields::{Fields, parsed, value},
    problem::Problem,
};

/// Asked of the log itself, which has it as it was at any place.
pub async fn get(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Problem> {
    let agent = query::agent(path)?;
    let mut fields = Fields::from_query(query.as_deref());
    let at: Option<u64> = fields.optional("at", "a sequence", value(parsed));
    let at = fields.complete(|| Some(at.unwrap_or(u64::MAX)))?;
    let whose = agent.clone();
    let state = of_part(&gateway, &agent, at, move |messages, wanted| folded(whose, messages, wanted)).await?;
    let state = state.map_err(|broken| Problem::unreplayable(&broken))?;
    let state = state.ok_or_else(|| Problem::not_found("the log has nothing of this agent up to there"))?;
    Ok(Json(state))
}

/// The state behind the last of the messages; none where none of them is the agent's.
fn folded(agent: Name, messages: &[LogMessage], wanted: &Wanted) -> Result<Option<Value>, Broken> {
    let mut timeline = Timeline::new(agent, 0, None);
    for message in wanted.each(messages) {
        timeline.take(message)?;
    }
    Ok((timeline.own() > 0).then(|| timeline.state()))
}
