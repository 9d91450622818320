//! Tools that workers carry out: processes in any language, which speak JSON over core NATS (docs/tool-workers.md).
//!
//! tool-runner keeps the ledger and writes the log; a worker is only asked. Which workers there are and what they offer,
//! [`attendance`] knows; a call goes to one replica of its worker ([`worker_call`]). What is said is in [`message`].

mod attendance;
pub mod config;
pub mod message;
mod presence;
pub mod roster;
mod tool;
mod worker_call;

pub use attendance::Attendance;
pub use presence::Presence;
