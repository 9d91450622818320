//! The MCP server over streamable HTTP, without sessions.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{MethodRouter, post},
};
use serde_json::Value;

use super::{
    CALLER, Peer, Ways,
    behavior::Behavior,
    mcp::{self, Request},
};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const HTML: &str = "text/html";
/// Lists of tools so far, by all clients.
static LISTED: AtomicUsize = AtomicUsize::new(0);

pub fn routes() -> MethodRouter<Ways> {
    let refused = || async { StatusCode::METHOD_NOT_ALLOWED };
    post(hear).get(refused).delete(refused)
}

async fn hear(State(ways): State<Ways>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let caller = caller(&headers);
    let listed = LISTED.fetch_add(1, Ordering::Relaxed);
    match mcp::read(&message, &caller, listed / 3) {
        Request::Notification => acknowledge(&ways, listed),
        Request::Answered(answer) => whole(StatusCode::OK, JSON, answer.to_string()),
        Request::Call { id, errand } => {
            // It goes on when whoever called is gone.
            let calling = tokio::spawn(async move {
                let behavior = ways.behavior(Peer::Shop, &errand);
                ways.carry_out(&errand, behavior).await;
                (ways, errand, behavior)
            });
            let Ok((ways, errand, behavior)) = calling.await else { return broken_off() };
            ways.answer(&errand, behavior);
            let answer = mcp::answer(&id, &errand, behavior);
            match behavior {
                Behavior::Silence => std::future::pending().await,
                Behavior::Loss | Behavior::LossBefore => broken_off(),
                Behavior::BadGateway => whole(StatusCode::BAD_GATEWAY, HTML, "<html>bad gateway</html>"),
                Behavior::GatewayTimeout => whole(StatusCode::GATEWAY_TIMEOUT, HTML, "<html>gateway time-out</html>"),
                Behavior::Text => whole(StatusCode::OK, "text/plain", "OK"),
                Behavior::StreamEnd => whole(StatusCode::OK, EVENTS, ": ping\n\n"),
                Behavior::Noise => {
                    let event = [b": ping\n\nevent: message\ndata: ", answer.as_slice(), b"\n\n"].concat();
                    whole(StatusCode::OK, EVENTS, event)
                }
                _ => whole(StatusCode::OK, JSON, answer),
            }
        }
    }
}

/// Returns the caller that the headers name; empty if they name none.
pub fn caller(headers: &HeaderMap) -> String {
    headers.get(CALLER).and_then(|caller| caller.to_str().ok()).unwrap_or_default().to_owned()
}

/// Answers a notification in one of the ways that real servers were seen to.
fn acknowledge(ways: &Ways, number: usize) -> Response {
    match Behavior::draw(ways.seed, ways.share, Peer::Shop, &format!("notification {number}")) {
        Behavior::Well => StatusCode::ACCEPTED.into_response(),
        Behavior::BadGateway | Behavior::Text => whole(StatusCode::OK, "text/plain", "OK"),
        Behavior::Loss | Behavior::LateAnswer => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::NO_CONTENT.into_response(),
    }
}

pub fn whole(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    (status, [(CONTENT_TYPE, kind)], body.into()).into_response()
}

/// An answer whose connection is gone before it is whole.
pub fn broken_off() -> Response {
    let parts = [Ok(Bytes::from_static(b"{\"jsonrpc\"")), Err(std::io::Error::other("broken off"))];
    whole(StatusCode::OK, JSON, Body::from_stream(futures::stream::iter(parts)))
}
