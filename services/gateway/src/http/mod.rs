//! The HTTP interface: one file an endpoint, and what they share.

pub mod access;
mod actions;
mod agents;
mod approvals;
mod asyncapi;
mod body;
mod chains;
mod choices;
mod commands;
mod conversations;
mod cors;
mod dead_letters;
mod entering;
mod events;
mod fresh;
mod guard;
mod home;
mod inbox;
mod keys;
mod memories;
mod messages;
mod openai;
mod openapi;
mod processes;
mod projections;
mod query;
mod request_id;
mod span;
mod status;
mod stream;
mod tasks;
mod threads;
mod ws;

use axum::{
    Router, middleware,
    routing::{delete, get, post},
};

use crate::problem::Problem;
pub use crate::state::Gateway;
pub use fresh::POSITION;
pub use openai::Tokens;

/// Every endpoint, and what every request goes through, known path or not.
pub fn routes(gateway: Gateway, health: Router<Gateway>) -> Router {
    let router = Router::new()
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
        .route("/openapi.json", openapi::json(&gateway.config))
        .route("/openapi.yaml", openapi::yaml(&gateway.config))
        .route("/v1/conversations/{agent}", get(conversations::get))
        .route("/v1/threads", get(threads::get))
        .route("/v1/threads/{thread}", get(threads::one))
        .route("/v1/chains/{chain}", get(chains::one))
        .route("/v1/tasks", get(tasks::get))
        .route("/v1/tasks/{task}", get(tasks::one))
        .route("/v1/inbox", get(inbox::get))
        .route("/v1/memories", get(memories::get))
        .route("/v1/actions", get(actions::get))
        .route("/v1/processes", get(processes::get))
        .route("/v1/status", get(status::get))
        .route("/v1/dead-letters", get(dead_letters::get))
        .route("/v1/projections/rebuild", post(projections::post))
        .route("/v1/keys", get(keys::get).post(keys::post))
        .route("/v1/keys/{key}", delete(keys::delete))
        .merge(openai::routes())
        .merge(health)
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .fallback(|| async { Problem::unknown_path() })
        .layer(middleware::from_fn_with_state(gateway.clone(), access::check));
    // A browser asks whether a page may send a key before it sends it.
    let router = match gateway.config.cors_origins.as_slice() {
        [] => router,
        origins => router.layer(cors::layer(origins)),
    };
    router
        .layer(middleware::from_fn_with_state(gateway.clone(), guard::check))
        .layer(middleware::from_fn(span::trace))
        .layer(middleware::from_fn(request_id::name))
        .layer(middleware::from_fn(openai::translate))
        .with_state(gateway)
}
