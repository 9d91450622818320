//! Looking into an agent's log without changing anything: what the agent knew at a place in it, in what that differs from
//! another place, and where something became so; and which of its decisions would have been others. Pure: whoever has the
//! messages can look.
//!
//! * [`timeline`]: the messages of one agent, taken in one after the other, and its state behind each
//! * [`difference`]: in what two states differ
//! * [`expression`]: what is looked for, in the Common Expression Language
//! * [`replaying`]: the decisions of a log made again, within a range, as they stand or with changes
//! * [`report`]: what came of that, as it is kept

pub mod difference;
pub mod expression;
pub mod replaying;
pub mod report;
#[cfg(test)]
mod testing;
pub mod timeline;
