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
mod authorization_server;
mod background;
mod backup;
mod bad_input;
mod bench;
mod browser;
mod bus;
mod cancel;
mod caps;
mod chaos;
mod chat_clients;
mod chats;
mod choices;
mod chromium;
mod client_libraries;
mod command_line;
mod commands;
mod composite;
mod configuration;
mod congestion;
mod consents;
mod console;
mod contract;
mod deadlines;
mod delivery;
mod deployment;
mod documents;
mod entered;
mod environment;
mod etag;
mod exporting;
mod failures;
mod fair;
mod faults;
mod fleet;
mod forgetting;
mod forks;
mod freshness;
mod going_on;
mod golden_path;
mod grpc;
mod imports;
mod inner_state;
mod interjection;
mod isolation;
mod keys;
mod kms;
mod limited;
mod lists;
mod llama;
mod loading;
mod machine;
mod memory;
mod models;
mod monitoring;
mod multimodal;
mod object_storage;
mod objects;
mod oidc;
mod open;
mod openai;
mod openapi;
mod outside_content;
mod outside_events;
mod owned;
mod people;
mod permissions;
mod port;
mod projections;
mod proof;
#[path = "../../services/tool-runner/tests/mcp/provider.rs"]
#[allow(dead_code, reason = "tool-runner has further tests with it")]
mod provider;
mod queries;
mod reasoning;
mod rebuild;
mod relay;
mod replay;
mod replicas;
mod roles;
mod rotation;
mod search;
mod situations;
mod strange;
mod structure;
mod submodules;
mod summaries;
mod team;
mod teams_boundary;
mod telemetry;
mod templates;
mod tickets;
mod timers;
mod tool_servers;
mod tools;
mod trimming;
mod turn_status;
mod unread;
mod upgrade;
mod usage;
mod use_cases;
mod validator;
mod versions;
mod watch;
mod websocket;
mod world;
