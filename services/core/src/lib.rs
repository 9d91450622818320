//! What Kairo's services share: the envelope of an event, the table of subjects, the bus, and the skeleton of a service.
//!
//! Read [`subjects`] first: it is the map.

pub mod address;
pub mod bus;
pub mod config;
pub mod dates;
pub mod decider;
pub mod envelope;
pub mod event_json;
pub mod header_lines;
pub mod hooks;
pub mod ids;
pub mod media;
pub mod ownership;
pub mod partition;
pub mod record;
pub mod schema;
pub mod sealing;
pub mod service;
pub mod slots;
pub mod subjects;
pub mod telemetry;
pub mod watch;
