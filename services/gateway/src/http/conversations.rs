//! `GET /v1/conversations`: who speaks with whom, the one in which something was said last first.
//! `GET /v1/conversations/{agent}`: what an agent and its users said to each other.

pub mod import_document;
mod import_writer;

use axum::extract::{Path, State, rejection::PathRejection};
use kairo_proto::v1::{ConversationRow, GetConversationResponse, ListConversationsResponse, MessageRow};
use kairo_read_model::{ConversationQuery, ConversationsQuery};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, query_value},
    log_position::LogPosition,
    problem::Problem,
};
pub use import_writer::import_conversation as import;

pub async fn list_conversations(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListConversationsResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_list_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut conversations = query::await_answer(&gateway, snapshot.list_conversations(&wanted)).await?;
    let id = |row: &ConversationRow| (row.agent.clone(), row.user.clone());
    let next_before = query::sort_newest_first(&mut conversations, wanted.limit, |row| row.last_sequence, id);
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListConversationsResponse { conversations, next_before, ..Default::default() }),
    ))
}

fn parse_list_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<ConversationsQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(ConversationsQuery { agent, user, before, limit }))
}

pub async fn get_conversation(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetConversationResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(path, query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let ask = |wanted: ConversationQuery| {
        let gateway = &gateway;
        let snapshot = &snapshot;
        async move { query::await_answer(gateway, snapshot.conversation_messages(&wanted)).await }
    };
    let behind =
        |after: LogPosition, limit| ask(ConversationQuery { after: Some(after.into()), limit, ..wanted.clone() });
    let place = |said: &MessageRow| LogPosition { sequence: said.sequence, position: said.position };
    let mut messages = ask(wanted.clone()).await?;
    let mut next_after = None;
    if query::is_full_page(&messages, wanted.limit) && wanted.latest.is_none() {
        next_after = query::complete_last_message(&mut messages, place, behind).await?;
    }
    let next_after = next_after.map(|sequence| LogPosition::whole_message(sequence).into());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetConversationResponse { messages, next_after, ..Default::default() }),
    ))
}

fn parse_query(
    path: Result<Path<String>, PathRejection>,
    url_query: Option<&str>,
    config: &GatewayConfig,
) -> Result<ConversationQuery, Problem> {
    let agent = query::path_agent(path)?.to_string();
    let mut fields = RequestFields::from_query(url_query);
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let after = query::parse_after(&mut fields).map(Into::into);
    let (latest, limit) = query::parse_latest_and_limit(&mut fields, config);
    fields.complete(|| Some(ConversationQuery { agent, user, after, latest, limit }))
}
