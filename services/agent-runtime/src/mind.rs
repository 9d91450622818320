//! The pure core: what an agent knows, and how it decides. No IO, no clock, no chance.
//!
//! * [`log`]: the order in which the log is folded, and what is left to decide on
//! * [`state`]: what an agent knows, folded from the log; [`thread`] its conversations, [`in_flight`] what it has
//!   going, `events` how that changes
//! * [`deliberation`]: from one input to one decision, by way of model calls
//! * [`request`]: what a model is asked, built from the state; [`facts`] what is in progress
//! * [`answer`]: what a model's answer means

pub mod answer;
pub mod deliberation;
mod events;
pub mod facts;
pub mod in_flight;
pub mod log;
pub mod request;
mod seen;
pub mod state;
mod target;
#[cfg(test)]
mod tests;
pub mod thread;
