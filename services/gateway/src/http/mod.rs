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
mod consents;
mod conversations;
mod cors;
mod dead_letters;
mod etag;
mod events;
mod fleet;
mod guard;
mod home;
mod inbox;
mod ingest;
mod keys;
mod log;
mod memories;
mod messages;
mod objects;
mod openai;
pub mod openapi;
mod processes;
mod projections;
pub mod query;
mod read_consistency;
mod request_id;
mod search;
mod span;
mod status;
pub mod stream;
mod tasks;
mod threads;
mod tickets;
mod usage;
mod ws;

use axum::{
    Router, middleware,
    routing::{delete, get, post},
};

use kairo_core::service::Readiness;

pub use crate::state::Gateway;
use crate::{grpc, problem::Problem};
pub use openai::Tokens;
pub use read_consistency::{POSITION, at_least};

/// Every endpoint, and what every request goes through, known path or not.
pub fn routes(gateway: Gateway, readiness: &Readiness) -> Router {
    let router = endpoints(&gateway, readiness.routes());
    // Answered by the endpoints, behind the same doors.
    let router = router.clone().merge(grpc::routes(&gateway, router, readiness));
    // A browser asks whether a page may send a key before it sends it.
    let router = match gateway.config.cors_origins.as_slice() {
        [] => router,
        origins => router.layer(cors::layer(origins)),
    };
    router
        .layer(middleware::from_fn_with_state(gateway, guard::check))
        .layer(middleware::from_fn(span::trace))
        .layer(middleware::from_fn(request_id::name))
        .layer(middleware::from_fn(openai::translate))
        .layer(middleware::from_fn(tickets::hide))
}

/// The endpoints, and who may use them.
fn endpoints(gateway: &Gateway, health: Router<Gateway>) -> Router {
    Router::new()
        .route("/", get(home::get))
        .route("/v1/messages", post(ingest::post::<messages::Message>))
        .route("/v1/choices", post(ingest::post::<choices::Choice>))
        .route("/v1/approvals", get(consents::get).post(ingest::post::<approvals::Approval>))
        .route("/v1/approvals/{approval}", get(consents::one))
        .route("/v1/commands", post(ingest::post::<commands::Command>))
        .route("/v1/objects", post(objects::post))
        .route("/v1/objects/{digest}", get(objects::get))
        .route("/v1/agents", get(agents::get).post(agents::post))
        .route("/v1/agents/{agent}", get(agents::one))
        .route("/v1/agents/{agent}/log", get(log::get))
        .route("/v1/events", get(events::get))
        .route("/v1/events/stream", get(stream::get))
        .route("/v1/ws", get(ws::get))
        .route("/asyncapi.yaml", get(asyncapi::get))
        .route("/openapi.json", openapi::json(&gateway.config))
        .route("/openapi.yaml", openapi::yaml(&gateway.config))
        .route("/v1/conversations", get(conversations::list))
        .route("/v1/conversations/{agent}", get(conversations::get))
        .route("/v1/threads", get(threads::get))
        .route("/v1/threads/{thread}", get(threads::one))
        .route("/v1/chains/{chain}", get(chains::one))
        .route("/v1/tasks", get(tasks::get))
        .route("/v1/tasks/{task}", get(tasks::one))
        .route("/v1/inbox", get(inbox::get))
        .route("/v1/memories", get(memories::get))
        .route("/v1/search", get(search::get))
        .route("/v1/memories/{agent}/{memory}", get(memories::one))
        .route("/v1/actions", get(actions::get))
        .route("/v1/actions/{action}", get(actions::one))
        .route("/v1/processes", get(processes::get))
        .route("/v1/processes/{process}", get(processes::one))
        .route("/v1/usage", get(usage::get))
        .route("/v1/status", get(status::get))
        .route("/v1/dead-letters", get(dead_letters::get))
        .route("/v1/fleet/promote", post(fleet::promote))
        .route("/v1/projections", get(projections::get))
        .route("/v1/projections/{projection}/rebuild", post(projections::rebuild))
        .route("/v1/projections/{projection}/swap", post(projections::swap))
        .route("/v1/projections/{projection}/digests", get(projections::digests))
        .route("/v1/projections/{projection}/generations/{generation}", delete(projections::drop))
        .route("/v1/tickets", post(tickets::post))
        .route("/v1/keys", get(keys::get).post(keys::post))
        .route("/v1/keys/{key}", delete(keys::delete))
        .merge(openai::routes())
        .merge(health)
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .fallback(|| async { Problem::unknown_path() })
        .layer(middleware::from_fn(etag::check))
        .layer(middleware::from_fn_with_state(gateway.clone(), access::check))
        .with_state(gateway.clone())
}
