//! The outcome of replaying a decision, and the reasons why a decision cannot be replayed.

use kairo_events::ids::Name;
use kairo_proto::v1::AgentDecision;
use serde::Serialize;

use super::{comparison::Difference, recording::RequestDrift};

/// The reason a decision cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The input of the decision is not in the log.
    NoInput,
    /// The tool catalogue of this version is not in the log.
    NoCatalogue(String),
    /// Nothing on its input wants a decision.
    NothingToDecide,
    /// Models are asked more than the log has answers to.
    Unanswered,
    /// The log does not keep what the models answered.
    WithoutWords,
    /// It is a copy of another decision, or does not follow from what stands before it.
    OutOfPlace,
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::NoInput => "what it is on is not in the log",
            Self::NoCatalogue(version) => return write!(out, "the catalogue {version} is not in the log"),
            Self::NothingToDecide => "there is nothing to decide on its input",
            Self::Unanswered => "more is asked than was recorded",
            Self::WithoutWords => "what the models answered was too large to be kept",
            Self::OutOfPlace => "it does not follow from what stands before it",
        })
    }
}

/// A decision that was made again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayedDecision {
    pub agent: Name,
    /// Position of the decision in the log.
    pub sequence: u64,
    /// Id of the input; `input` has its position and type, as far as the log has them.
    pub input_id: String,
    #[serde(skip)]
    pub input: Option<(u64, String)>,
    #[serde(flatten)]
    pub outcome: ReplayOutcome,
    /// Requests that are not the ones that were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<RequestDrift>,
    /// True if the basis of the decision was not recorded and the defaults were used instead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_basis: bool,
    /// Both decisions, where it is not the same from the same requests.
    #[serde(skip)]
    pub beside: Option<Box<DecisionPair>>,
}

/// A decision beside the one that was made again.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionPair {
    pub recorded: AgentDecision,
    /// `None` if it could not be made.
    pub made: Option<AgentDecision>,
    /// Every place at which they differ, what counts most first.
    pub places: Vec<Difference>,
}

/// The comparison of a replayed decision with the one in the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ReplayOutcome {
    /// It is the same, but for ids that are derived from what it was made of.
    Same,
    /// It does the same, and says it in other words.
    Reworded { at: String },
    /// It does something else.
    Differs { at: String, recorded: String, made: String },
    /// It cannot be made again.
    NotReplayable { reason: String },
    /// The user it is about is forgotten: nobody knows what it was.
    Forgotten,
}

impl ReplayedDecision {
    /// Returns true if the decision equals the recorded one and no request drifted.
    pub fn is_same(&self) -> bool {
        self.outcome == ReplayOutcome::Same && self.drifted.is_empty()
    }
}

impl ReplayOutcome {
    pub(super) fn not_replayable(why: &ReplayError) -> Self {
        Self::NotReplayable { reason: why.to_string() }
    }
}

pub(super) fn judge_difference(first: Option<&Difference>) -> ReplayOutcome {
    match first.cloned() {
        None => ReplayOutcome::Same,
        Some(Difference { at, is_wording: true, .. }) => ReplayOutcome::Reworded { at },
        Some(Difference { at, recorded, made, .. }) => ReplayOutcome::Differs { at, recorded, made },
    }
}

pub(super) fn same_outcome(agent: Name, sequence: u64) -> ReplayedDecision {
    let (input_id, outcome) = (String::new(), ReplayOutcome::Same);
    let (input, drifted, beside) = (None, Vec::new(), None);
    ReplayedDecision { agent, sequence, input_id, input, outcome, drifted, without_basis: false, beside }
}
