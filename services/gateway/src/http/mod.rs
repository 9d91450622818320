//! The HTTP interface: one file an endpoint, and what they share.

pub mod access;
mod actions;
mod agent_replay;
mod agent_requests;
mod agent_state;
mod agent_whatif;
mod agents;
mod answer;
mod approvals;
mod asyncapi;
mod body;
pub mod body_timeout;
mod briefings;
mod chains;
mod choices;
mod commands;
mod computing;
mod consents;
mod conversations;
mod cors;
mod dead_letters;
mod declared_commands;
pub mod endpoints;
pub mod etag;
mod events;
mod exporting;
mod fleet;
mod forgetting;
mod forks;
mod guard;
mod home;
mod inbox;
mod incidents;
mod ingest;
mod inner_state;
mod interactions;
mod keys;
mod log;
pub mod mcp_login;
mod memories;
mod messages;
mod objects;
mod openai;
pub mod openapi;
mod outline;
mod processes;
mod projections;
pub mod query;
mod questions;
mod read_consistency;
mod request_id;
mod rewrapping;
mod search;
mod span;
pub mod status;
pub mod stream;
mod tasks;
mod teams;
mod thoughts;
mod thread_messages;
mod threads;
mod tickets;
mod tools;
mod unread;
mod usage;
mod whoami;
mod ws;

use axum::{
    Router, middleware,
    routing::{delete, get, post},
};

use kairo_core::service::Readiness;

pub use crate::state::Gateway;
use crate::{console, grpc, problem::Problem};
use endpoints::Handlers;
pub use openai::{Conversations, Tokens};
pub use read_consistency::{POSITION, at_least};

/// Every endpoint, and what every request goes through, known path or not.
pub fn routes(gateway: Gateway, readiness: &Readiness) -> Router {
    let router = routed(&gateway, readiness.routes());
    // Answered by the endpoints, behind the same doors.
    let bound = middleware::from_fn_with_state(gateway.clone(), body_timeout::bound);
    let open = middleware::from_fn_with_state(gateway.clone(), access::check_open);
    let grpc = grpc::routes(&gateway, router.clone(), readiness);
    let router = router.layer(bound).merge(grpc).merge(console::routes(&gateway.config.oidc).layer(open));
    // A browser asks whether a page may send a key before it sends it.
    let router = match gateway.config.cors_origins.as_slice() {
        [] => router,
        origins => router.layer(cors::layer(origins)),
    };
    let metrics = gateway.bus.metrics.clone();
    // Whoever answers, and however early.
    let unread = middleware::from_fn_with_state(gateway.clone(), unread::throw_away);
    router
        .layer(middleware::from_fn_with_state(gateway, guard::check))
        .layer(middleware::from_fn_with_state(metrics, span::trace))
        .layer(middleware::from_fn(request_id::name))
        .layer(middleware::from_fn(openai::translate))
        .layer(middleware::from_fn(tickets::hide))
        .layer(unread)
}

/// The endpoints, and who may use them.
fn routed(gateway: &Gateway, health: Router<Gateway>) -> Router {
    rpcs()
        .merge(others(gateway))
        .merge(openai::routes())
        .merge(health)
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .fallback(|| async { Problem::unknown_path() })
        .layer(middleware::from_fn(etag::check))
        .layer(middleware::from_fn_with_state(gateway.clone(), access::check))
        .with_state(gateway.clone())
}

/// Routes each rpc to its handler, at the path that the rpc declares.
fn rpcs() -> Router<Gateway> {
    let handlers = Handlers {
        send_message: post(ingest::post::<messages::Message>),
        choose: post(ingest::post::<choices::Choice>),
        approve: post(ingest::post::<approvals::Approval>),
        order: post(ingest::post::<commands::Command>),
        define_agent: post(agents::post),
        create_team: post(teams::post),
        import_conversation: post(conversations::import),
        stream: get(stream::get),
        list_agents: get(agents::get),
        list_commands: get(declared_commands::get),
        get_agent: get(agents::one),
        list_teams: get(teams::get),
        get_team: get(teams::one),
        list_threads: get(threads::get),
        get_thread: get(threads::one),
        get_interaction: get(interactions::one),
        list_thread_messages: get(thread_messages::get),
        list_tasks: get(tasks::get),
        get_task: get(tasks::one),
        get_chain: get(chains::one),
        list_conversations: get(conversations::list),
        get_conversation: get(conversations::get),
        list_memories: get(memories::get),
        get_memory: get(memories::one),
        get_memory_history: get(memories::history),
        list_inner_state: get(inner_state::list),
        get_inner_state_history: get(inner_state::history),
        search: get(search::get),
        get_inbox: get(inbox::get),
        list_thoughts: get(thoughts::get),
        list_submodules: get(agents::list_submodules),
        list_briefings: get(briefings::get),
        list_approvals: get(consents::get),
        get_approval: get(consents::one),
        list_actions: get(actions::get),
        get_action: get(actions::one),
        list_processes: get(processes::get),
        get_process: get(processes::one),
        list_events: get(events::get),
        get_events_outline: get(outline::get),
        get_usage: get(usage::get),
        get_status: get(status::get),
        list_tools: get(tools::get),
        get_tool: get(tools::one),
        make_ticket: post(tickets::post),
        list_keys: get(keys::get),
        make_key: post(keys::post),
        revoke_key: delete(keys::delete),
        list_projections: get(projections::get),
        rebuild_projection: post(projections::rebuild),
        swap_projection: post(projections::swap),
        digest_projection: get(projections::digests),
        drop_generation: delete(projections::drop),
        get_fleet: get(fleet::get),
        promote_fleet: post(fleet::promote),
        hold_fleet: post(fleet::hold),
        release_fleet: post(fleet::release),
        forget_user: post(forgetting::post),
        get_forgetting: get(forgetting::get),
        export_user: get(exporting::get),
        rewrap_data_keys: post(rewrapping::post),
        answer_question: post(questions::answer),
        begin_mcp_login: post(mcp_login::begin),
        finish_mcp_login: post(mcp_login::finish),
        mcp_logout: delete(mcp_login::end),
        list_mcp_sign_ins: get(mcp_login::list),
        list_dead_letters: get(dead_letters::get),
        retry_dead_letter: post(dead_letters::retry),
        get_agent_log: get(log::get),
        get_log: get(log::whole),
    };
    handlers.router()
}

/// The endpoints that are no rpc.
fn others(gateway: &Gateway) -> Router<Gateway> {
    Router::new()
        .route("/", get(home::get))
        .route("/asyncapi.yaml", asyncapi::yaml(&gateway.config))
        .route("/openapi.json", openapi::json(&gateway.config))
        .route("/openapi.yaml", openapi::yaml(&gateway.config))
        .route("/v1/agents/{agent}/replay", post(agent_replay::post))
        .route("/v1/agents/{agent}/requests", get(agent_requests::get))
        .route("/v1/agents/{agent}/state", get(agent_state::get))
        .route("/v1/agents/{agent}/whatif", post(agent_whatif::post))
        .route("/v1/agents/{agent}/forks", post(forks::begin))
        .route("/v1/forks", get(forks::list))
        .route("/v1/forks/{fork}", get(forks::get).delete(forks::end))
        .route("/v1/forks/{fork}/answers", post(forks::answer))
        .route("/v1/forks/{fork}/approvals", post(forks::approve))
        .route("/v1/forks/{fork}/events", get(forks::events))
        .route("/v1/forks/{fork}/messages", post(forks::say))
        .route("/v1/forks/{fork}/wait", post(forks::wait))
        .route("/v1/incidents/{agent}", get(incidents::get))
        .route("/v1/objects", post(objects::post))
        .route("/v1/objects/{digest}", get(objects::get))
        .route("/v1/whoami", get(whoami::get))
        .route("/v1/ws", get(ws::get))
}
