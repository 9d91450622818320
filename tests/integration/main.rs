//! The whole system, under use and under fire. Every test starts a Kairo of its own ([`world`]).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod bus;
mod contract;
mod documents;
mod golden_path;
mod structure;
mod world;
