//! Web pages of other sites, where the operator named them: what browsers must be told so that they let them.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::CorsLayer;

/// The time for which a browser may cache the answer to a preflight request.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Keys are sent by the page itself, so nothing that the browser adds on its own, such as cookies, is let in.
pub fn layer(origins: &[String]) -> CorsLayer {
    let name = HeaderName::from_static;
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_NONE_MATCH,
            name("idempotency-key"),
            name("kairo-answer"),
            name("kairo-at-least"),
            name("kairo-thread"),
            name("kairo-user"),
            name("last-event-id"),
            name("traceparent"),
            name("x-request-id"),
        ])
        .expose_headers([
            header::ALLOW,
            header::ETAG,
            header::LINK,
            header::RETRY_AFTER,
            name("kairo-position"),
            name("kairo-thread"),
            name("x-request-id"),
        ])
        .max_age(REMEMBERED)
}
