//! Tests of the whole system: real nats-server, real Postgres, every service as a process of its own.
//!
//! `integration/` is one test binary with a file per theme; `golden/` keeps bytes of every event version ever
//! published.
//! `chaos/` is a command that kills Kairo for minutes, and a short test of the same; `simulation/` drives the pure cores
//! alone.

#[path = "../audit.rs"]
pub mod audit;
#[path = "../causes.rs"]
pub mod causes;
pub mod certificates;
#[path = "../chaos/mod.rs"]
pub mod chaos;
pub mod cluster;
pub mod login;
#[path = "../multiply.rs"]
pub mod multiply;
pub mod situations;
