//! `POST /v1/projections/rebuild`: has the read model built anew from the log.

use std::net::SocketAddr;

use axum::{
    Json,
    extract::{ConnectInfo, State},
    http::StatusCode,
};
use serde_json::{Value, json};

use super::{Gateway, query};
use crate::problem::Problem;

/// An operator's order, so until it is known who asks only this machine may give it.
pub async fn post(
    State(gateway): State<Gateway>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    if !client.ip().to_canonical().is_loopback() {
        return Err(Problem::forbidden("only clients on the gateway's own machine may ask for a rebuild"));
    }
    query::answered(&gateway, gateway.read_model.rebuild()).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "rebuilding": true }))))
}
