//! The projector against a real nats-server and a real Postgres, in use and under fire.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod faults;
mod history;
mod memories;
mod planned;
mod queries;
mod rebuilds;
mod refused;
mod schema;
mod work;
mod world;
