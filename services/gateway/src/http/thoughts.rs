//! `GET /v1/agents/{agent}/thoughts`: who within an agent thought what, who was asked, and who was late.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::ListThoughtsResponse;
use kairo_read_model::{ThoughtsQuery, thoughts};

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, at_most, value},
    ownership,
    problem::Problem,
};

/// Longest name of a submodule that is asked for, in bytes.
const MAX_MODULE: usize = 32;

pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<ListThoughtsResponse>>, Problem> {
    let agent = query::agent(path)?;
    let wanted = asked.read(|query| read(agent.as_str(), query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut found = query::answered(&gateway, snapshot.thinking(&wanted)).await?;
    let next_before = found.next_before;
    found.events = ownership::events(&gateway, &snapshot, caller.user(), found.events).await?;
    let thoughts = thoughts(&found, wanted.module.as_deref());
    Ok(Answer::of(&snapshot, Told(ListThoughtsResponse { thoughts, next_before, ..Default::default() })))
}

fn read(agent: &str, url_query: Option<&str>, config: &GatewayConfig) -> Result<ThoughtsQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let expected = format!("1 to {MAX_MODULE} bytes");
    let module = fields.optional("module", expected, value(at_most(MAX_MODULE)));
    let before = query::before(&mut fields);
    let limit = query::limit(&mut fields, config);
    fields.complete(|| Some(ThoughtsQuery { agent: agent.to_owned(), module, before, limit }))
}
