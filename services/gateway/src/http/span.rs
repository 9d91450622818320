//! A span for each request, so that what a client began is one trace with all that follows.

use axum::{
    extract::{MatchedPath, Request},
    http::HeaderMap,
    middleware::Next,
    response::Response,
};
use kairo_core::telemetry;
use tracing::{Instrument, Span, field::Empty};

use super::request_id::RequestId;

/// Runs the request within its span, a child of the client's if it sent a `traceparent`.
pub async fn trace(request: Request, next: Next) -> Response {
    // The route, not the path: names of spans are few.
    let route = request.extensions().get::<MatchedPath>().map_or("(unknown)", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let span = tracing::info_span!(
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = Empty,
        request.id = id,
    );
    if let Some(traceparent) = traceparent(request.headers()) {
        telemetry::set_parent(&span, &traceparent);
    }
    let response = next.run(request).instrument(span.clone()).await;
    note_status(&span, &response);
    response
}

fn note_status(span: &Span, response: &Response) {
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        tracing::debug!(parent: span, status = status.as_u16(), "answered with an error");
    }
}

/// The client's place in its trace, for the envelope of what it causes.
pub fn traceparent(headers: &HeaderMap) -> Option<String> {
    headers.get("traceparent")?.to_str().ok().map(str::to_owned)
}
