//! A private Kairo on this machine: nats-server, Postgres and every service, each a real process.
//!
//! `kairo dev` and the integration tests start the same stack through this crate, so it prints
//! nothing, reads no environment variable and takes every path, port and deadline as a parameter.
//!
//! Three promises hold for all that it starts:
//! - it listens on 127.0.0.1 only;
//! - it dies with us, even if we are killed with -9 ([`process`]);
//! - waiting for it is waiting for an event (a line it prints, its exit) with a deadline.
//!
//! Dropping a value of this crate kills and reaps its processes, which blocks for the moment that
//! the kernel needs. An orderly end is the `stop` method of each.

mod announcement;
mod cluster;
mod database;
mod error;
mod lock;
mod log;
mod nats;
mod placement;
mod port;
mod postgres;
mod process;
mod process_tree;
mod servers;
mod stack;
mod third_party_server;
mod tools;
mod users;

pub use database::Database;
pub use error::LocalError;
pub use lock::DirLock;
pub use nats::{ClusterMember, NatsOptions, NatsServer, TlsFiles};
pub use port::free_port;
pub use postgres::{PgOptions, Postgres};
pub use process::{ChildProcess, Exit, ProcessSpec};
pub use servers::Servers;
pub use stack::{Replica, Service, ServiceSettings, Stack, StackOptions};
pub use third_party_server::ThirdPartyServer;
pub use tools::Tools;
pub use users::{Login, NatsUsers};
