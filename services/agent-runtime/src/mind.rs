//! The pure core: what an agent knows, and how it decides. No IO, no clock, no chance.
//!
//! * [`log`]: the order in which the log is folded, and what is left to decide on
//! * [`state`]: what an agent knows, folded from the log
//! * [`deliberation`]: from one input to one decision, by way of model calls
//! * [`request`]: what a model is asked, built from the state
//! * [`answer`]: what a model's answer means

pub mod answer;
pub mod deliberation;
pub mod log;
pub mod request;
mod seen;
pub mod state;
#[cfg(test)]
mod tests;
