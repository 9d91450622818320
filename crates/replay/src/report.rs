//! The report of a replay: the outcome of every decision made again, kept in a file and handed to programs.

use std::collections::BTreeMap;

use kairo_events::ids::Name;
use kairo_mind::replay::{DecisionPair, ReplayOutcome, ReplayedDecision, RequestDrift, comparison};
use kairo_proto::v1::AgentDecision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lanes::{Lanes, SamplingTotals};

/// Of a decision that is shown, at most this much, in bytes of JSON; a larger one is left out.
pub const SHOWN: usize = 64 * 1024;

/// The format of a report. Changes within one version only add fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportFormat {
    #[default]
    #[serde(rename = "kairo.replay.v1")]
    V1,
}

/// All that came of a log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// It says of the file what it is.
    pub report: ReportFormat,
    /// The version of the build that made the decisions again.
    pub version: String,
    /// Those that were asked for; none for all that the log has.
    pub agents: Vec<Name>,
    pub range: Range,
    /// The changes applied to the replay, such as `prompt` or `max_steps=5`.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The model calls made for the report, if models were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<SamplingTotals>,
    pub counts: OutcomeCounts,
    /// A digest of each agent's state behind what was read, the same wherever the same log was read.
    pub states: BTreeMap<Name, String>,
    /// The message at which replay stopped.
    pub stopped: Option<ReplayStop>,
    pub decisions: Vec<DecisionReport>,
}

/// The range of messages to report on; those before it are only applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub from: Option<u64>,
    pub to: Option<u64>,
}

/// The comparison of a decision made again with the one in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeClass {
    /// It is the same, but for ids that are derived from what it was made of.
    Same,
    /// It does the same, and says it in other words.
    Reworded,
    /// It does something else, with the answers that models gave to the same requests.
    Differs,
    /// A model would be asked something else: what it would answer, and what would be decided then, is not known.
    Drifted,
    /// It cannot be made again.
    NotReplayable,
    /// The user it is about is forgotten: nobody knows what it was, and there is nothing to compare.
    Forgotten,
}

/// A decision that was made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionReport {
    pub agent: Name,
    /// The position in the log.
    pub sequence: u64,
    pub outcome: OutcomeClass,
    /// The event it is on.
    pub input_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<ReportedInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Requests that are not the ones that were recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<RequestDrift>,
    /// The places at which the two differ. For a drifted decision: those at which the recorded answers lead
    /// elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<DecisionDifference>,
    /// True if the basis of the decision was not recorded, so that the defaults were used instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_basis: bool,
    /// Both decisions without what models answered, where it is not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Value>,
    /// The samples taken by asking models for the decision again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
}

/// The message that a decision is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedInput {
    pub sequence: u64,
    #[serde(rename = "type")]
    pub type_name: String,
}

/// A place at which two decisions differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionDifference {
    /// Such as `events.0.action.arguments`.
    pub at: String,
    pub recorded: String,
    pub made: String,
}

/// The number of decisions by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    pub decisions: usize,
    pub same: usize,
    pub reworded: usize,
    pub differ: usize,
    /// Decisions of which some request is another.
    pub drifted: usize,
    pub not_replayable: usize,
    /// Decisions about users who are forgotten.
    #[serde(default)]
    pub forgotten: usize,
    /// Decisions whose basis the log does not say.
    pub without_basis: usize,
    /// Messages of the agents that nobody can read: no decision is on them.
    pub unreadable: usize,
}

/// The message at which replay stopped: this build can make no decision again behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayStop {
    pub sequence: u64,
    #[serde(rename = "type")]
    pub type_name: String,
    /// The version of readers that it takes, at the least.
    pub reader: u32,
    /// The version that this build is.
    pub reads: u32,
    pub why: String,
}

impl OutcomeClass {
    /// All there are, from what needs no look to what needs one most.
    pub const ALL: [Self; 6] =
        [Self::Same, Self::Forgotten, Self::Reworded, Self::Drifted, Self::Differs, Self::NotReplayable];

    /// Returns true if the outcome needs no review.
    pub fn is_acceptable(self) -> bool {
        matches!(self, Self::Same | Self::Forgotten)
    }
}

impl std::fmt::Display for OutcomeClass {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Same => "the same",
            Self::Reworded => "reworded",
            Self::Differs => "differs",
            Self::Drifted => "drifted",
            Self::NotReplayable => "not replayable",
            Self::Forgotten => "forgotten",
        })
    }
}

impl Report {
    /// Returns true if no decision needs review: each is what the log says or, if models were asked, does the same or
    /// is no worse than the model's own noise.
    pub fn is_acceptable(&self) -> bool {
        let is_well = |decision: &DecisionReport| match &decision.lanes {
            Some(lanes) => lanes.verdict.is_acceptable(),
            None => decision.outcome.is_acceptable(),
        };
        self.decisions.iter().all(is_well)
    }
}

impl OutcomeCounts {
    /// Counts one more.
    pub fn count(&mut self, decision: &DecisionReport) {
        self.decisions += 1;
        self.without_basis += usize::from(decision.without_basis);
        *match decision.outcome {
            OutcomeClass::Same => &mut self.same,
            OutcomeClass::Reworded => &mut self.reworded,
            OutcomeClass::Differs => &mut self.differ,
            OutcomeClass::Drifted => &mut self.drifted,
            OutcomeClass::NotReplayable => &mut self.not_replayable,
            OutcomeClass::Forgotten => &mut self.forgotten,
        } += 1;
    }

    /// Returns true if every decision is the one in the log, made from the very requests recorded there.
    pub fn all_same(&self) -> bool {
        self.same + self.forgotten == self.decisions
    }
}

impl From<ReplayedDecision> for DecisionReport {
    fn from(replayed: ReplayedDecision) -> Self {
        let ReplayedDecision { agent, sequence, input_id, input, outcome, drifted, without_basis, beside } = replayed;
        let (class, reason) = match outcome {
            ReplayOutcome::NotReplayable { reason } => (OutcomeClass::NotReplayable, Some(reason)),
            ReplayOutcome::Forgotten => (OutcomeClass::Forgotten, None),
            _ if !drifted.is_empty() => (OutcomeClass::Drifted, None),
            ReplayOutcome::Same => (OutcomeClass::Same, None),
            ReplayOutcome::Reworded { .. } => (OutcomeClass::Reworded, None),
            ReplayOutcome::Differs { .. } => (OutcomeClass::Differs, None),
        };
        let input = input.map(|(sequence, type_name)| ReportedInput { sequence, type_name });
        let (recorded, made, differences) = beside.map_or((None, None, Vec::new()), |beside| {
            let DecisionPair { recorded, made, places } = *beside;
            (
                decision_json(recorded),
                made.and_then(decision_json),
                places.into_iter().map(DecisionDifference::from).collect(),
            )
        });
        Self {
            agent,
            sequence,
            outcome: class,
            input_id,
            input,
            reason,
            drifted,
            differences,
            without_basis,
            recorded,
            made,
            lanes: None,
        }
    }
}

impl From<comparison::Difference> for DecisionDifference {
    fn from(comparison::Difference { at, recorded, made, .. }: comparison::Difference) -> Self {
        Self { at, recorded, made }
    }
}

/// Returns a decision as JSON, without the models' answers; none if it is larger than [`SHOWN`].
pub(crate) fn decision_json(decision: AgentDecision) -> Option<Value> {
    let decision = AgentDecision { completions: Vec::new(), given_up: Vec::new(), link: None, ..decision };
    serde_json::to_value(&decision).ok().filter(|value| value.to_string().len() <= SHOWN)
}
