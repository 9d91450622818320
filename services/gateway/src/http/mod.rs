//! The HTTP interface: one file an endpoint, and what they share.

pub mod access;
mod actions;
mod agent_replay;
mod agent_requests;
mod agent_state;
mod agent_whatif;
mod agents;
mod approval_queries;
mod approval_verdicts;
mod asyncapi;
mod blocking_computation;
mod body;
mod body_drain;
pub mod body_timeout;
mod briefings;
mod chains;
mod choices;
mod commands;
mod conversations;
mod cors;
mod data_key_rewrap;
mod dead_letters;
mod declared_commands;
pub mod endpoints;
pub mod etag;
mod events;
mod fleet;
mod forgetting;
mod forks;
mod home;
mod inbox;
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
mod origin_guard;
mod outline;
mod processes;
mod projections;
pub mod query;
mod questions;
mod read_consistency;
mod request_id;
mod request_span;
mod search;
mod sorted_json;
pub mod status;
pub mod stream;
mod task_queueing;
mod task_result;
mod tasks;
mod teams;
mod thoughts;
mod thread_messages;
mod threads;
mod tickets;
mod tools;
mod usage;
mod user_export;
mod whoami;
mod write_incident;
mod ws;

use axum::{
    Router, middleware,
    routing::{delete, get, patch, post},
};

use kairo_core::service::Readiness;

pub use crate::state::Gateway;
use crate::{console, grpc, problem::Problem};
use endpoints::Handlers;
pub use openai::{ConversationIndex, TokenUsage};
pub use read_consistency::{POSITION, snapshot_at_least};

/// Every endpoint, and what every request goes through, known path or not.
pub fn routes(gateway: Gateway, readiness: &Readiness) -> Router {
    let router = endpoint_routes(&gateway, readiness.routes());
    // Answered by the endpoints, behind the same doors.
    let bound = middleware::from_fn_with_state(gateway.clone(), body_timeout::limit_body_time);
    let open = middleware::from_fn_with_state(gateway.clone(), access::admit_open_request);
    let grpc = grpc::routes(&gateway, router.clone(), readiness);
    let router = router.layer(bound).merge(grpc).merge(console::routes(&gateway.config.oidc).layer(open));
    // A browser asks whether a page may send a key before it sends it.
    let router = match gateway.config.cors_origins.as_slice() {
        [] => router,
        origins => router.layer(cors::layer(origins)),
    };
    let metrics = gateway.bus.metrics.clone();
    // Whoever answers, and however early.
    let unread = middleware::from_fn_with_state(gateway.clone(), body_drain::drain_unread_body);
    router
        .layer(middleware::from_fn_with_state(gateway, origin_guard::reject_foreign_pages))
        .layer(middleware::from_fn_with_state(metrics, request_span::trace_request))
        .layer(middleware::from_fn(request_id::assign_request_id))
        .layer(middleware::from_fn(openai::translate_problems))
        .layer(middleware::from_fn(tickets::strip_ticket))
        .layer(unread)
}

/// The endpoints, and who may use them.
fn endpoint_routes(gateway: &Gateway, health: Router<Gateway>) -> Router {
    rpc_routes()
        .merge(other_routes(gateway))
        .merge(openai::routes())
        .merge(health)
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .fallback(|| async { Problem::unknown_path() })
        .layer(middleware::from_fn(etag::answer_not_modified))
        .layer(middleware::from_fn_with_state(gateway.clone(), access::authorize_request))
        .with_state(gateway.clone())
}

/// Routes each rpc to its handler, at the path that the rpc declares.
fn rpc_routes() -> Router<Gateway> {
    let handlers = Handlers {
        send_message: post(ingest::accept_input::<messages::MessageInput>),
        choose: post(ingest::accept_input::<choices::ChoiceInput>),
        approve: post(ingest::accept_input::<approval_verdicts::ApprovalInput>),
        order: post(ingest::accept_input::<commands::CommandInput>),
        queue_task: post(task_queueing::queue_task),
        define_agent: post(agents::define_agent),
        change_agent: patch(agents::change_agent),
        roll_back_agent: post(agents::roll_back_agent),
        create_team: post(teams::create_team),
        import_conversation: post(conversations::import),
        stream: get(stream::stream_events),
        list_agents: get(agents::list_agents),
        list_commands: get(declared_commands::list_commands),
        get_agent: get(agents::get_agent),
        list_agent_versions: get(agents::list_versions),
        list_teams: get(teams::list_teams),
        get_team: get(teams::get_team),
        list_threads: get(threads::list_threads),
        get_thread: get(threads::get_thread),
        get_interaction: get(interactions::get_interaction),
        list_thread_messages: get(thread_messages::list_thread_messages),
        list_tasks: get(tasks::list_tasks),
        get_task: get(tasks::get_task),
        await_task: get(task_result::await_task),
        get_chain: get(chains::get_chain),
        list_conversations: get(conversations::list_conversations),
        get_conversation: get(conversations::get_conversation),
        list_memories: get(memories::list_memories),
        get_memory: get(memories::get_memory),
        get_memory_history: get(memories::get_memory_history),
        list_inner_state: get(inner_state::list_inner_state),
        get_inner_state_history: get(inner_state::get_inner_state_history),
        search: get(search::run_search),
        get_inbox: get(inbox::get_inbox),
        list_thoughts: get(thoughts::list_thoughts),
        list_submodules: get(agents::list_submodules),
        list_briefings: get(briefings::list_briefings),
        list_approvals: get(approval_queries::list_approvals),
        get_approval: get(approval_queries::get_approval),
        list_actions: get(actions::list_actions),
        get_action: get(actions::get_action),
        list_processes: get(processes::list_processes),
        get_process: get(processes::get_process),
        list_events: get(events::list_events),
        get_events_outline: get(outline::get_events_outline),
        get_usage: get(usage::get_usage),
        get_status: get(status::get_status),
        list_tools: get(tools::list_tools),
        get_tool: get(tools::get_tool),
        make_ticket: post(tickets::make_ticket),
        list_keys: get(keys::list_keys),
        make_key: post(keys::make_key),
        revoke_key: delete(keys::revoke_key),
        list_projections: get(projections::list_projections),
        rebuild_projection: post(projections::rebuild_projection),
        swap_projection: post(projections::swap_projection),
        digest_projection: get(projections::digest_projection),
        drop_generation: delete(projections::drop_generation),
        get_fleet: get(fleet::get_fleet),
        promote_fleet: post(fleet::promote_fleet),
        hold_fleet: post(fleet::hold_fleet),
        release_fleet: post(fleet::release_fleet),
        forget_user: post(forgetting::forget_user),
        get_forgetting: get(forgetting::get_forgetting),
        export_user: get(user_export::export_user),
        rewrap_data_keys: post(data_key_rewrap::rewrap_data_keys),
        answer_question: post(questions::answer_question),
        begin_mcp_login: post(mcp_login::begin_mcp_login),
        finish_mcp_login: post(mcp_login::finish_mcp_login),
        mcp_logout: delete(mcp_login::end_mcp_login),
        list_mcp_sign_ins: get(mcp_login::list_mcp_sign_ins),
        list_dead_letters: get(dead_letters::list_dead_letters),
        retry_dead_letter: post(dead_letters::retry_dead_letter),
        get_agent_log: get(log::get_agent_log),
        get_log: get(log::get_log),
    };
    handlers.router()
}

/// The endpoints that are no rpc.
fn other_routes(gateway: &Gateway) -> Router<Gateway> {
    Router::new()
        .route("/", get(home::get_home))
        .route("/asyncapi.yaml", asyncapi::yaml_route(&gateway.config))
        .route("/openapi.json", openapi::json_route(&gateway.config))
        .route("/openapi.yaml", openapi::yaml_route(&gateway.config))
        .route("/v1/agents/{agent}/replay", post(agent_replay::replay_agent))
        .route("/v1/agents/{agent}/requests", get(agent_requests::get_model_requests))
        .route("/v1/agents/{agent}/state", get(agent_state::get_agent_state))
        .route("/v1/agents/{agent}/whatif", post(agent_whatif::compute_whatif))
        .route("/v1/agents/{agent}/forks", post(forks::begin_fork))
        .route("/v1/forks", get(forks::list_forks))
        .route("/v1/forks/{fork}", get(forks::get_fork).delete(forks::end_fork))
        .route("/v1/forks/{fork}/answers", post(forks::answer_fork_question))
        .route("/v1/forks/{fork}/approvals", post(forks::approve_fork_action))
        .route("/v1/forks/{fork}/events", get(forks::stream_fork_events))
        .route("/v1/forks/{fork}/messages", post(forks::say_to_fork))
        .route("/v1/forks/{fork}/wait", post(forks::pass_fork_time))
        .route("/v1/incidents/{agent}", get(write_incident::export_incident))
        .route("/v1/objects", post(objects::upload_object))
        .route("/v1/objects/{digest}", get(objects::download_object))
        .route("/v1/whoami", get(whoami::get_whoami))
        .route("/v1/ws", get(ws::open_websocket))
}
