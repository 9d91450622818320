//! gateway: the boundary between the world and the log.
//!
//! What [`connections`] there may be is bounded, and so is what goes on over them. Who asks is told by an API key or a
//! token ([`auth`]), and what they may do by the table of endpoints ([`http::access`]). What clients ask for over HTTP is
//! checked ([`fields`]) and becomes an event or a query, one file an endpoint ([`http`]), which answer what is asked over
//! gRPC, too ([`grpc`]); what is wrong is answered as a [`problem`]. What clients [`watch`], as server-sent events or over a
//! WebSocket, comes straight from the log ([`tail`], [`follow`]), which is read once and handed to those who wait for it
//! ([`dispatch`]), pieces of answers from those who are writing them ([`live`], [`tokens`]), and for those who come
//! [`tail_merge`] what processes wrote before; who asks is told how far turns are ([`turn_status`]). What was seen of the log is remembered where it saves asking: agents
//! ([`directory`]) and messages ([`recent`]). People look at all of it with the [`console`]. Images and audio that nobody names are removed again ([`objects`]), and users forgotten ([`forgetting`]).
//! What other systems publish on NATS comes in by the [`entrance`]. What may be spent on models is looked at where messages enter ([`caps`]).
//! Agents go on apart from the log in [`forks`], whose services run in the gateway's memory.

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

/// Serves until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    server::serve(config, context).await
}
