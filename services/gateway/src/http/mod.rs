//! The HTTP interface: one file an endpoint, and what they share.

mod actions;
mod agents;
mod approvals;
mod asyncapi;
mod body;
mod choices;
mod commands;
mod conversations;
mod dead_letters;
mod entering;
mod events;
mod guard;
mod home;
mod messages;
mod processes;
mod projections;
mod query;
mod span;
mod status;
mod stream;
mod threads;
mod ws;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};

use crate::problem::Problem;
pub use crate::state::Gateway;

/// Every endpoint, and what every request goes through, known path or not.
pub fn routes(gateway: Gateway, health: Router<Gateway>) -> Router {
    Router::new()
        .route("/", get(home::get))
        .route("/v1/messages", post(entering::post::<messages::Message>))
        .route("/v1/choices", post(entering::post::<choices::Choice>))
        .route("/v1/approvals", post(entering::post::<approvals::Approval>))
        .route("/v1/commands", post(entering::post::<commands::Command>))
        .route("/v1/agents", get(agents::get).post(agents::post))
        .route("/v1/events", get(events::get))
        .route("/v1/events/stream", get(stream::get))
        .route("/v1/ws", get(ws::get))
        .route("/asyncapi.yaml", get(asyncapi::get))
        .route("/v1/conversations/{agent}", get(conversations::get))
        .route("/v1/threads", get(threads::get))
        .route("/v1/actions", get(actions::get))
        .route("/v1/processes", get(processes::get))
        .route("/v1/status", get(status::get))
        .route("/v1/dead-letters", get(dead_letters::get))
        .route("/v1/projections/rebuild", post(projections::post))
        .merge(health)
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .fallback(|| async { Problem::unknown_path() })
        .layer(DefaultBodyLimit::max(gateway.config.max_body_bytes))
        .layer(middleware::from_fn_with_state(gateway.clone(), guard::check))
        .layer(middleware::from_fn(span::trace))
        .with_state(gateway)
}
