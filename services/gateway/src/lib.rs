//! gateway: the boundary between the world and the log.
//!
//! The number of [`connections`], and the work done over them, is bounded. An API key or a token identifies the caller
//! ([`auth`]), and the table of endpoints defines what it may do ([`http::access`]). Requests over HTTP are checked
//! ([`fields`]) and become an event or a query, one file an endpoint ([`http`]); the same endpoints serve gRPC
//! ([`grpc`]). Errors are answered as a [`problem`].
//!
//! A [`watch`], as server-sent events or over a WebSocket, streams the log directly ([`tail`], [`follow`]): it is read
//! once and handed to the subscribers ([`dispatch`]). Pieces of answers come from their writers ([`live`],
//! [`tokens`]), preceded for late listeners by what was written before ([`tail_merge`]); changes of turn status are
//! sent on request ([`turn_status`]). Agents ([`directory`]) and messages ([`recent`]) seen in the log are cached.
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
mod early;
mod entrance;
mod fields;
mod follow;
mod forgetting;
mod forks;
mod grpc;
mod http;
mod live;
mod log_metrics;
mod log_state;
mod objects;
mod own_pieces;
mod ownership;
mod place;
mod problem;
mod recent;
mod server;
mod state;
mod tail;
mod tail_merge;
mod tokens;
mod turn_status;
mod visibility;
mod watch;

use kairo_core::service::{Context, ServiceError};

pub use auth::Scope;
pub use config::{Config, GatewayConfig};
pub use http::access::{Access, Limited, Needs, all as endpoints};

/// Serves until shutdown.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    server::serve(config, context).await
}
