//! `GET /v1/conversations`: who speaks with whom, the one in which something was said last first.
//! `GET /v1/conversations/{agent}`: what an agent and its users said to each other.

pub mod document;
mod importing;

use axum::extract::{Path, State, rejection::PathRejection};
use kairo_proto::v1::{ConversationRow, GetConversationResponse, ListConversationsResponse, MessageRow};
use kairo_read_model::{ConversationQuery, ConversationsQuery};

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    config::GatewayConfig,
    fields::{Fields, NAME, name, value},
    place::Place,
    problem::Problem,
};
pub use importing::post as import;

pub async fn list(
    State(gateway): State<Gateway>,
    asked: Asked,
) -> Result<Answer<Told<ListConversationsResponse>>, Problem> {
    let wanted = asked.read(|query| read_list(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut conversations = query::answered(&gateway, snapshot.conversations(&wanted)).await?;
    let id = |row: &ConversationRow| (row.agent.clone(), row.user.clone());
    let next_before = query::newest_first(&mut conversations, wanted.limit, |row| row.last_sequence, id);
    Ok(Answer::of(&snapshot, Told(ListConversationsResponse { conversations, next_before, ..Default::default() })))
}

fn read_list(url_query: Option<&str>, config: &GatewayConfig) -> Result<ConversationsQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, value(name)).map(|user| user.to_string());
    let before = query::before(&mut fields);
    let limit = query::limit(&mut fields, config);
    fields.complete(|| Some(ConversationsQuery { agent, user, before, limit }))
}

pub async fn get(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetConversationResponse>>, Problem> {
    let wanted = asked.read(|query| read(path, query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let ask = |wanted: ConversationQuery| {
        let (gateway, snapshot) = (&gateway, &snapshot);
        async move { query::answered(gateway, snapshot.conversation(&wanted)).await }
    };
    let behind = |after: Place, limit| ask(ConversationQuery { after: Some(after.into()), limit, ..wanted.clone() });
    let place = |said: &MessageRow| Place { sequence: said.sequence, position: said.position };
    let mut messages = ask(wanted.clone()).await?;
    let mut next_after = None;
    if query::is_full(&messages, wanted.limit) && wanted.latest.is_none() {
        next_after = query::complete(&mut messages, place, behind).await?;
    }
    let next_after = next_after.map(|sequence| Place::whole(sequence).into());
    Ok(Answer::of(&snapshot, Told(GetConversationResponse { messages, next_after, ..Default::default() })))
}

fn read(
    path: Result<Path<String>, PathRejection>,
    url_query: Option<&str>,
    config: &GatewayConfig,
) -> Result<ConversationQuery, Problem> {
    let agent = query::agent(path)?.to_string();
    let mut fields = Fields::from_query(url_query);
    let user = fields.optional("user", NAME, value(name)).map(|user| user.to_string());
    let after = query::after(&mut fields).map(Into::into);
    let (latest, limit) = query::latest_and_limit(&mut fields, config);
    fields.complete(|| Some(ConversationQuery { agent, user, after, latest, limit }))
}
