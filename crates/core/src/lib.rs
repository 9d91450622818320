//! The common parts of Kairo's services: the bus, and the skeleton of a service. The pure parts, such as the envelope
//! of an event and the table of subjects, are in [`kairo_events`] and have their paths here, too.
//!
//! Read [`subjects`] first: it is the map.

pub mod bus;
pub mod config;
pub mod forget_order;
pub mod header_lines;
pub mod ids;
pub mod keyed_locks;
pub mod metrics;
pub mod ownership;
pub mod privacy;
pub mod process_protection;
pub mod record;
pub mod service;
pub mod sharing;
pub mod signing;
pub mod telemetry;
pub mod tls;
pub mod watch;

pub use kairo_events::{
    address, carry_forward, commands, consent, copies, dates, decider, envelope, event_json, hash_chain, hooks,
    imports, log_message, media, memories, outside, partition, permissions, personal, prices, principal,
    profile_document, schema, sealing, subjects, synthetic, threads, tool_groups, vocabulary, workers,
};
