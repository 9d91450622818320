//! The whole system, under use and under fire. Every test starts a Kairo of its own ([`world`]).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod asyncapi;
mod bad_input;
mod bus;
mod cancel;
mod chaos;
mod choices;
mod command_line;
mod configuration;
mod contract;
mod delivery;
mod deployment;
mod documents;
mod faults;
mod freshness;
mod golden_path;
mod interjection;
mod keys;
mod memory;
mod models;
mod openai;
mod openapi;
mod outside_events;
mod rebuild;
mod replicas;
mod structure;
mod telemetry;
mod timers;
mod tools;
mod use_cases;
mod validator;
mod watch;
mod websocket;
mod world;
