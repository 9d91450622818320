//! Web pages of other sites, where the operator named them: what browsers must be told so that they let them.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::CorsLayer;

/// How long a browser may remember what it was told.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Keys are sent by the page itself, so nothing that the browser adds on its own, such as cookies, is let in.
pub fn layer(origins: &[String]) -> CorsLayer {
    let name = HeaderName::from_static;
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            name("last-event-id"),
            name("traceparent"),
            name("x-request-id"),
        ])
        .expose_headers([header::RETRY_AFTER, name("x-request-id")])
        .max_age(REMEMBERED)
}
