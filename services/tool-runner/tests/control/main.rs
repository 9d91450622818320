//! Calls about other calls and about processes, told to replicas of the service over a private nats-server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod actions;
mod arrivals;
mod consent;
mod imap;
mod kairo;
mod late;
mod processes;
mod progress;
mod room;
mod workers;
