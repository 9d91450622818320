//! The pure core of agent-runtime: what an agent knows, and how it decides. No IO, no clock, no chance. Whoever has an
//! agent's part of the log can fold it and decide as the agent did.
//!
//! * [`log`]: the order in which the log is folded, and what is left to decide on
//! * [`state`]: what an agent knows, folded from the log; [`thread`] its conversations, [`in_flight`] what it has
//!   going, `events` how that changes, `importing` what was said elsewhere; [`inner_state`] what it keeps in words for later turns
//! * [`deliberation`]: from one input to one decision, by way of model calls
//! * [`chat_client`]: what chat clients bring with the words
//! * [`composition`]: agents that are composed of others; [`environment`] what is perceived when a message comes
//! * `working`: what is worked on beside the conversations, `session` what that may take; `requests` what agents ask of each other; [`team`] those that work
//!   for one
//! * [`request`]: what a model is asked; [`tool_offering`] which tools it lists; [`in_flight_facts`] what it is told to be in progress
//! * [`tokens`]: how much that is
//! * [`model_answer`]: what a model's answer means; [`answer_schemas`] those that are JSON
//! * [`build_pin`]: what decisions rest on beside the log; [`replay`] makes those of a log again

mod agent_requests;
pub mod answer_schemas;
mod background_lane;
pub mod build_pin;
pub mod call_bounds;
mod call_target;
pub mod caps;
pub mod chain;
pub mod chat_client;
pub mod chat_completions;
pub mod composition;
pub mod conditions;
mod data_subject;
mod decided_events;
pub mod deliberation;
pub mod environment;
mod forgetting;
mod idle_threads;
pub mod in_flight;
pub mod in_flight_facts;
pub mod inner_state;
pub mod intrinsics;
mod late_answers;
pub mod late_requests;
pub mod log;
pub mod memories;
pub mod message_content;
mod message_intake;
pub mod model_answer;
mod model_health;
mod observed_events;
mod pending_decision;
mod pending_keywords;
pub mod prices;
pub mod profile;
mod promises;
pub mod prompts;
pub mod provenance;
mod reflection;
pub mod replay;
pub mod request;
pub mod schedule;
pub mod schema;
pub mod secrets;
mod seen_ids;
mod shared;
pub mod state;
pub mod submodules;
pub mod tasks;
pub mod team;
#[cfg(test)]
mod tests;
pub mod thread;
mod thread_import;
mod thread_summaries;
pub mod tokens;
pub mod tool_offering;
mod truncation;
mod work_session;
