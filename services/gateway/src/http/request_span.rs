//! A span for each request, so that what a client began is one trace with all that follows.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, Method},
    middleware::Next,
    response::Response,
};
use kairo_core::{
    metrics::{Metrics, table::REQUESTS},
    telemetry,
};
use tokio::time::Instant;
use tracing::{Instrument, Span, field::Empty};

use super::request_id::RequestId;

/// Methods that metrics tell apart; of others there is no end.
const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];
/// As the conventions have it of all others.
const OTHER: &str = "_OTHER";

/// Runs the request within its span, a child of the client's if it sent a `traceparent`, and measures it.
pub async fn trace_request(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    // The route, not the path: names of spans are few.
    let route = request.extensions().get::<MatchedPath>().map_or("(unknown)", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let span = tracing::info_span!(
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = %route,
        http.response.status_code = Empty,
        request.id = id,
    );
    if let Some(traceparent) = traceparent(request.headers()) {
        telemetry::set_parent(&span, &traceparent);
    }
    let response = next.run(request).instrument(span.clone()).await;
    record_status(&span, &response);
    let known = if METHODS.contains(&method) { method.as_str() } else { OTHER };
    metrics.record_duration(&REQUESTS, began.elapsed(), &[known, &route, response.status().as_str(), "http"]);
    response
}

fn record_status(span: &Span, response: &Response) {
    let status = response.status();
    // Signed: unsigned numbers reach OpenTelemetry as texts.
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        tracing::debug!(parent: span, status = status.as_u16(), "answered with an error");
    }
}

/// The client's place in its trace, for the envelope of what it causes.
pub fn traceparent(headers: &HeaderMap) -> Option<String> {
    headers.get("traceparent")?.to_str().ok().map(str::to_owned)
}
