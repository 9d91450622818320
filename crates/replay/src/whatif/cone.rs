//! The report on the messages that a change to a log reaches.

use kairo_mind::replay::RequestDrift;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{decision_effects::DecisionCall, lanes::ModelCallTotals, report::DecisionDifference, timeline::BrokenLog};

/// The format of the report. Changes within one version only add fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConeFormat {
    #[default]
    #[serde(rename = "kairo.whatif.v1")]
    V1,
}

/// A change to one message of the log.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageChange {
    /// The message is not there.
    Drop,
    /// It says this, in the JSON of its type.
    Edit(Vec<u8>),
}

/// The reason for which a change cannot be examined.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    #[error(transparent)]
    Broken(#[from] BrokenLog),
    #[error("message {0} is not in the log, or not of these agents: expected one that is")]
    NotThere(u64),
    #[error("message {at} is a decision, which is made of others: drop or edit what it is on, message {input}")]
    Decision { at: u64, input: u64 },
    #[error("message {0} cannot be read, so nothing rests on it: expected one that can")]
    Unreadable(u64),
    #[error("the new body of message {at}: {why}; expected the JSON of {type_name}, as `kairo events --json` shows it")]
    Body { at: u64, type_name: String, why: String },
    #[error("the new body of message {0} says what the old one says: expected another")]
    Unchanged(u64),
}

/// The effect of the change on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is the one that is not there.
    Dropped,
    /// It is the one that says something else.
    Edited,
    /// It would not be there.
    Vanished,
    /// A decision that models were asked for again, and that stays as it is.
    Kept,
    /// A decision that is another one, for certain.
    Changed,
    /// A decision whose outcome is not known.
    Unknown,
}

impl Fate {
    /// All there are: those of the change itself, what follows for certain, and what is not known.
    pub const ALL: [Self; 6] = [Self::Dropped, Self::Edited, Self::Vanished, Self::Changed, Self::Kept, Self::Unknown];
}

/// A message that the change reaches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReachedMessage {
    pub sequence: u64,
    pub subject: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub fate: Fate,
    /// The message that it hangs on: what it follows from, or the change itself, where it is reached by what is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Requests that would be others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<RequestDrift>,
    /// The places at which a changed decision differs: `recorded` is its value with the log as it stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<DecisionDifference>,
    /// The decision that would be made, if that is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Value>,
    /// Model calls that were made for it.
    #[serde(skip_serializing_if = "is_none")]
    pub asked: usize,
    /// Calls that it would make and of which the log has no result: they are not executed, and stay open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<DecisionCall>,
}

/// The number of decisions behind the change, by what the change does to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConeCounts {
    pub decisions: usize,
    /// Those that stay as they are, for certain.
    pub kept: usize,
    /// Those that stay as they are unless something new shows in them that a decision before them does which is not known, or is
    /// another.
    pub presumed: usize,
    pub changed: usize,
    pub unknown: usize,
    pub vanished: usize,
    /// Those of the kept, presumed and changed that models were asked for.
    pub asked: usize,
}

/// All that the change reaches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cone {
    /// It says of the object what it is.
    pub report: ConeFormat,
    pub counts: ConeCounts,
    /// The calls and cost of asking models, if they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<ModelCallTotals>,
    /// In the order of the log; the change itself is the first.
    pub reached: Vec<ReachedMessage>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}
