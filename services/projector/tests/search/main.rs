//! Searching, with a real Postgres and a real Meilisearch, in use and under fire.
//!
//! What needs Meilisearch runs where `MEILI_BIN` names its program, or `MEILI_URL` (and `MEILI_MASTER_KEY`) one that
//! runs; what kills it needs the program. Else a test says that it was skipped.
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
