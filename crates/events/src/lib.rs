//! The contents of the log and how they are written: for the mind, and for any other reader of the log. Pure: no IO, no
//! clock, no chance.
//!
//! * [`subjects`]: the map, every subject with its emitter and its consumers; [`partition`] how they are shared out
//! * [`permissions`]: who may do what on NATS, made from it; [`workers`] where tool workers are spoken to
//! * [`record`]: a message that was read, its [`envelope`] and its body; [`header_lines`] headers as text
//! * [`carry_forward`]: what stands on before the log is trimmed
//! * [`hash_chain`]: what ties an agent's decisions to all that stands before them
//! * [`event_json`]: events as people and clients see them; [`log_message`] messages as they are handed out whole
//! * [`threads`]: ids of threads that say whose they are; [`imports`] conversations that were had elsewhere
//! * [`principal`]: who entered an event
//! * [`profile_document`]: profiles in the form in which clients define them, and their differences
//! * [`ids`], [`address`], [`commands`], [`hooks`], [`media`], [`dates`]: what events name, and how it is written
//! * [`sealing`]: secrets within events; [`personal`] content of users, which goes when they are forgotten; [`schema`] how large a tool's JSON Schema is; [`consent`] which calls a human must
//!   consent to
//! * [`vocabulary`]: which readers a message takes, and which messages may be written; [`synthetic`] what a next version
//!   might bring
//! * [`prices`]: what tokens of models cost
//! * [`decider`]: the shape of what decides on events
//!
//! The bus, which brings messages and takes them, is in `kairo-core`.

pub mod address;
pub mod carry_forward;
pub mod commands;
pub mod consent;
pub mod copies;
pub mod dates;
pub mod decider;
pub mod envelope;
pub mod event_json;
pub mod hash_chain;
pub mod header_lines;
pub mod hooks;
pub mod ids;
pub mod imports;
pub mod log_message;
pub mod media;
pub mod memories;
pub mod outside;
pub mod partition;
pub mod permissions;
pub mod personal;
pub mod prices;
pub mod principal;
pub mod profile_document;
pub mod record;
pub mod schema;
pub mod sealing;
pub mod subjects;
pub mod synthetic;
pub mod threads;
pub mod tool_groups;
pub mod vocabulary;
pub mod workers;
