//! The web API.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use serde_json::{Value, json};

use super::{
    Errand, Peer, Ways,
    behavior::Behavior,
    mcp_http::{broken_off, caller, whole},
};

const JSON: &str = "application/json";

pub async fn pay(State(ways): State<Ways>, headers: HeaderMap, body: Json<Value>) -> Response {
    answer(ways, &headers, &body, false).await
}

pub async fn book(State(ways): State<Ways>, headers: HeaderMap, body: Json<Value>) -> Response {
    answer(ways, &headers, &body, true).await
}

async fn answer(ways: Ways, headers: &HeaderMap, body: &Value, is_keyed: bool) -> Response {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    let effect = body.get("effect").and_then(Value::as_str).unwrap_or_default().to_owned();
    let errand = Errand { effect, key, caller: caller(headers), is_keyed };
    // It goes on when whoever called is gone.
    let calling = tokio::spawn(async move {
        let behavior = ways.behavior(Peer::Bank, &errand);
        ways.carry_out(&errand, behavior).await;
        (ways, errand, behavior)
    });
    let Ok((ways, errand, behavior)) = calling.await else { return broken_off() };
    ways.answer(&errand, behavior);
    match behavior {
        Behavior::Silence => std::future::pending().await,
        Behavior::Loss | Behavior::LossBefore => broken_off(),
        Behavior::BadGateway => whole(StatusCode::BAD_GATEWAY, "text/html", "<html>bad gateway</html>"),
        Behavior::GatewayTimeout => whole(StatusCode::GATEWAY_TIMEOUT, "text/html", "<html>time-out</html>"),
        Behavior::Refusal => whole(StatusCode::CONFLICT, JSON, json!({ "error": "no funds" }).to_string()),
        _ => whole(StatusCode::OK, JSON, json!({ "did": errand.effect }).to_string()),
    }
}
