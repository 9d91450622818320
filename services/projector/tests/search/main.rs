//! Searching, with a real Postgres and a real Meilisearch, in use and under fire.
//!
//! Tests of Meilisearch need `MEILI_BIN`, the path of its program, or `MEILI_URL` (and `MEILI_MASTER_KEY`) of a running
//! instance; tests that kill it need the program. Otherwise they report that they were skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod answers;
mod faults;
mod history;
mod meili;
mod promises;
#[path = "../../../../tests/chaos/random.rs"]
#[allow(dead_code, reason = "it is made for other tests, too")]
mod random;
mod rebuilt;
mod setup;
#[path = "../read_model/world.rs"]
#[allow(dead_code, reason = "it is made for other tests, too")]
mod world;
