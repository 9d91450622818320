//! `POST /v1/projections/rebuild`: has the read model built anew from the log.

use axum::{Json, extract::State, http::StatusCode};
use serde_json::{Value, json};

use super::{Gateway, query};
use crate::problem::Problem;

/// An operator's order.
pub async fn post(State(gateway): State<Gateway>) -> Result<(StatusCode, Json<Value>), Problem> {
    query::answered(&gateway, gateway.read_model.rebuild()).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "rebuilding": true }))))
}
