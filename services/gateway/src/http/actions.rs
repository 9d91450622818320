//! `GET /v1/actions`: what agents have asked the world for and not yet been told.

use axum::{
    Json,
    extract::{RawQuery, State},
};
use kairo_core::ids::Name;
use serde_json::{Value, json};

use super::{Gateway, query};
use crate::{
    fields::{Fields, NAME, name, parsed, value},
    problem::Problem,
};

pub async fn get(State(gateway): State<Gateway>, RawQuery(query): RawQuery) -> Result<Json<Value>, Problem> {
    let mut fields = Fields::from_query(query.as_deref());
    let agent = fields.optional("agent", NAME, value(name));
    // Nothing else can be asked yet. A client may say it, and must not be misunderstood when it says the opposite.
    let in_flight = |text: &str| parsed(text).filter(|in_flight: &bool| *in_flight);
    fields.optional("in_flight", "true; finished actions are in /v1/events", value(in_flight));
    fields.complete(|| Some(()))?;
    let agent = agent.as_ref().map(Name::as_str);
    let actions = query::answered(&gateway, gateway.read_model.actions_in_flight(agent)).await?;
    Ok(Json(json!({ "actions": actions })))
}
