//! `GET /v1/processes`: the processes of agents, the newest first.

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
    let running = fields.optional("running", "true or false", value(parsed));
    fields.complete(|| Some(()))?;
    let agent = agent.as_ref().map(Name::as_str);
    let processes = query::answered(&gateway, gateway.read_model.processes(agent, running)).await?;
    Ok(Json(json!({ "processes": processes })))
}
