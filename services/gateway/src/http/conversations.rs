//! `GET /v1/conversations/{agent}`: what an agent and its users said to each other.

use axum::{
    Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use kairo_read_model::{ConversationMessage, ConversationQuery};
use serde_json::{Value, json};

use super::{Gateway, query};
use crate::{
    config::GatewayConfig,
    fields::{Fields, NAME, name, value},
    place::Place,
    problem::Problem,
};

pub async fn get(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Problem> {
    let wanted = read(path, query.as_deref(), &gateway.config)?;
    let ask = |wanted: ConversationQuery| {
        let gateway = &gateway;
        async move { query::answered(gateway, gateway.read_model.conversation(&wanted)).await }
    };
    let behind = |after: Place, limit| ask(ConversationQuery { after: Some(after.into()), limit, ..wanted.clone() });
    let place = |said: &ConversationMessage| Place { sequence: said.sequence, position: said.position };
    let mut messages = ask(wanted.clone()).await?;
    let mut next_after = None;
    if query::is_full(&messages, wanted.limit) && wanted.latest.is_none() {
        next_after = query::complete(&mut messages, place, behind).await?;
    }
    Ok(Json(json!({ "messages": messages, "next_after": next_after })))
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
