//! Looking into an agent's log without changing anything: what the agent knew at a place in it, in what that differs from
//! another place, and where something became so. Pure: whoever has the messages can look.
//!
//! * [`timeline`]: the messages of one agent, taken in one after the other, and its state behind each
//! * [`difference`]: in what two states differ
//! * [`expression`]: what is looked for, in the Common Expression Language

pub mod difference;
pub mod expression;
pub mod timeline;
