//! `GET /v1/threads`: the threads of an agent.

use axum::{
    Json,
    extract::{RawQuery, State},
};
use serde_json::{Value, json};

use super::{Gateway, query};
use crate::{
    fields::{Fields, NAME, name, value},
    problem::Problem,
};

pub async fn get(State(gateway): State<Gateway>, RawQuery(query): RawQuery) -> Result<Json<Value>, Problem> {
    let mut fields = Fields::from_query(query.as_deref());
    let agent = fields.required("agent", NAME, value(name));
    let agent = fields.complete(|| agent)?;
    let threads = query::answered(&gateway, gateway.read_model.threads(agent.as_str())).await?;
    Ok(Json(json!({ "threads": threads })))
}
