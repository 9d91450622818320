//! gateway: the boundary between the world and the log.
//!
//! The number of [`connections`], and the work done over them, is bounded. An API key or a token identifies the caller
//! ([`auth`]), and the table of endpoints defines what it may do ([`http::access`]). Requests over HTTP are checked
//! ([`fields`]) and become an event or a query, one file an endpoint ([`http`]); the same endpoints serve gRPC
//! ([`grpc`]). Errors are answered as a [`problem`].
//!
//! A [`watch`], as server-sent events or over a WebSocket, streams the log directly ([`tail`], [`log_follower`]): it is read
//! once and handed to the subscribers ([`dispatch`]). Pieces of answers come from their writers ([`live_pieces`],
//! [`tokens`]), preceded for late listeners by what was written before ([`tail_merge`]); changes of turn status are
//! sent on request ([`turn_status`]). Agents ([`directory`]) and messages ([`recent_messages`]) seen in the log are cached.
//!
//! People use the [`console`]. Unreferenced images and audio are removed ([`objects`]), and users forgotten
//! ([`forgetting`]). Other systems publish on NATS through the [`entrance`]. Caps on model spending are checked where
//! messages enter ([`caps`]). [`forks`] of agents run apart from the log, in the gateway's memory.

mod auth;
mod caps;
mod config;
mod connections;
mod console;
mod directory;
mod dispatch;
mod early_pieces;
mod entrance;
mod fields;
mod forgetting;
mod forks;
mod grpc;
mod http;
mod live_pieces;
mod log_follower;
mod log_metrics;
mod log_position;
mod log_state;
mod objects;
mod ownership;
mod problem;
mod recent_messages;
mod server;
mod state;
mod tail;
mod tail_merge;
mod tokens;
mod turn_status;
mod user_pieces;
mod visibility;
mod watch;

use kairo_core::service::{ServiceContext, ServiceError};

pub use auth::Scope;
pub use config::{Config, GatewayConfig};
pub use http::access::{Access, KeyRequirement, LimitRule, all_endpoints as endpoints};

/// Serves until shutdown.
pub async fn run(config: Config, context: ServiceContext) -> Result<(), ServiceError> {
    server::serve(config, context).await
}
