//! Looking into an agent's log without changing anything: what the agent knew at a place in it, in what that differs from
//! another place, and where something became so; and which of its decisions would have been others. Pure: whoever has the
//! messages can look.
//!
//! * [`whatif`]: what would have been otherwise, had a message not been there or said something else
//! * [`timeline`]: the messages of one agent, taken in one after the other, and its state behind each
//! * [`cut`]: what a fork begins with: what stood at one place, what was in flight, and what came of it
//! * [`state_difference`]: in what two states differ
//! * [`expression`]: what is looked for, in the Common Expression Language
//! * [`wire`]: a model call as the model server was sent it
//! * [`proof`]: whether a log is what was written, by the digests that decisions carry; [`checkpoint`] what the whole log was
//! * [`replayer`]: the decisions of a log made again, within a range, as they stand or with changes; [`replay_dispatch`] by several
//! * [`lanes`]: decisions that models are asked for again, as they were asked then and with changes; [`decision_effects`]: what one does
//! * [`report`]: what came of that, as it is kept; [`diff`]: in what two of these differ
//! * [`document_format`]: which version of its format a document is of
//! * [`incident`]: all of that in one file that needs no server; [`accepted_differences`]: what may come out otherwise

pub mod accepted_differences;
pub mod checkpoint;
pub mod cut;
pub mod decision_effects;
pub mod diff;
pub mod document_format;
pub mod expression;
pub mod incident;
pub mod lanes;
pub mod proof;
pub mod replay_dispatch;
pub mod replayer;
pub mod report;
pub mod state_difference;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod timeline;
pub mod whatif;
pub mod wire;
