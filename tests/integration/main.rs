//! The whole system, under use and under fire. Every test starts a Kairo of its own ([`world`]).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod acceptance;
mod archive;
mod asyncapi;
mod background;
mod backup;
mod bad_input;
mod bench;
mod browser;
mod bus;
mod cancel;
mod certificates;
mod chaos;
mod chats;
mod choices;
mod chromium;
mod command_line;
mod commands;
mod composite;
mod configuration;
mod congestion;
mod console;
mod contract;
mod delivery;
mod deployment;
mod documents;
mod entered;
mod environment;
mod etag;
mod exporting;
mod failures;
mod faults;
mod fleet;
mod forgetting;
mod freshness;
mod golden_path;
mod grpc;
mod imports;
mod inner_state;
mod interjection;
mod isolation;
mod keys;
mod limited;
mod lists;
mod machine;
mod memory;
mod models;
mod monitoring;
mod multimodal;
mod objects;
mod oidc;
mod open;
mod openai;
mod openapi;
mod outside_content;
mod outside_events;
mod owned;
mod permissions;
mod port;
mod projections;
mod proof;
mod queries;
mod reasoning;
mod rebuild;
mod replay;
mod replicas;
mod roles;
mod rotation;
mod search;
mod structure;
mod submodules;
mod summaries;
mod team;
mod teams_boundary;
mod telemetry;
mod tickets;
mod timers;
mod tools;
mod turn_status;
mod upgrade;
mod usage;
mod use_cases;
mod validator;
mod versions;
mod watch;
mod websocket;
mod world;
