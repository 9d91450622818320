//! The pure core of agent-runtime: what an agent knows, and how it decides. No IO, no clock, no chance. Whoever has an
//! agent's part of the log can fold it and decide as the agent did.
//!
//! * [`log`]: the order in which the log is folded, and what is left to decide on
//! * [`state`]: what an agent knows, folded from the log; [`thread`] its conversations, [`in_flight`] what it has
//!   going, `events` how that changes, `importing` what was said elsewhere; [`inner_state`] what it keeps in words for later turns
//! * [`deliberation`]: from one input to one decision, by way of model calls
//! * [`chat`]: what chat clients bring with the words
//! * [`composition`]: agents that are composed of others; [`environment`] what is perceived when a message comes
//! * `working`: what is worked on beside the conversations, `session` what that may take; `requests` what agents ask of each other; [`team`] those that work
//!   for one
//! * [`request`]: what a model is asked; [`offering`] which tools it lists; [`facts`] what it is told to be in progress
//! * [`tokens`]: how much that is
//! * [`answer`]: what a model's answer means; [`answer_forms`] those that are JSON
//! * [`basis`]: what decisions rest on beside the log; [`replay`] makes those of a log again

pub mod answer;
pub mod answer_forms;
mod apply_message;
pub mod basis;
pub mod call_bounds;
pub mod caps;
pub mod chain;
pub mod chat;
pub mod chat_completions;
pub mod composition;
pub mod conditions;
mod cutting;
pub mod deliberation;
pub mod environment;
mod events;
pub mod facts;
mod folding;
mod forgetting;
mod idle_threads;
mod importing;
pub mod in_flight;
pub mod inner_state;
pub mod intrinsics;
mod keywords;
mod late_answers;
pub mod late_requests;
pub mod log;
pub mod memories;
mod models;
pub mod offering;
pub mod outside;
mod owning;
pub mod prices;
pub mod profile;
mod promises;
pub mod prompts;
mod reflection;
pub mod replay;
pub mod request;
mod requests;
pub mod schedule;
pub mod schema;
pub mod secrets;
mod seen;
mod session;
mod shared;
pub mod state;
pub mod submodules;
mod summing_up;
mod target;
pub mod tasks;
pub mod team;
#[cfg(test)]
mod tests;
pub mod thread;
pub mod tokens;
mod wanted;
pub mod words;
mod working;
