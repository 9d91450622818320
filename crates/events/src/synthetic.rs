//! A stand-in for the next version of Kairo, so that upgrades can be tried between builds that differ although nobody
//! has written the next one yet: from one more epoch on, messages that agents are told have a new version of their
//! type, and decisions take newer readers.
//!
//! Only with the feature `synthetic`, which no release has; without it everything here says that nothing is new.

use kairo_proto::v1::{AgentDecision, AgentMessage};

use crate::vocabulary::{READER, RELEASED};

/// The type that a message is written as in this epoch.
pub fn type_to_write(type_name: String, epoch: u32) -> String {
    match is_synthetic_epoch(epoch) && type_name == AgentMessage::TYPE {
        true => next_version(),
        false => type_name,
    }
}

/// The type that a message is read as.
pub fn type_to_read(type_name: String) -> String {
    match is_synthetic_epoch(READER) && type_name == next_version() {
        true => AgentMessage::TYPE.to_owned(),
        false => type_name,
    }
}

/// The decision as it is written in this epoch.
pub fn mark_decision(decision: AgentDecision, epoch: u32) -> AgentDecision {
    match is_synthetic_epoch(epoch) {
        true => AgentDecision { reader: READER, ..decision },
        false => decision,
    }
}

/// The type that takes the place of the first, and says the same.
fn next_version() -> String {
    AgentMessage::TYPE.replace("v1", "v2")
}

fn is_synthetic_epoch(epoch: u32) -> bool {
    cfg!(feature = "synthetic") && epoch > RELEASED
}
