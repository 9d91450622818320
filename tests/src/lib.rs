//! Tests of the whole system: real nats-server, real Postgres, every service as a process of its own.
//!
//! `integration/` is one test binary with a file per theme; `golden/` keeps bytes of every event version ever
//! published.
