//! Decisions that models are asked for again, in two lanes beside what was recorded: the control asks as it was asked then, the
//! candidate with what is changed. What the control does otherwise than recorded is the model's own noise.
//!
//! Pure: it says what is to be asked and what the answers come to; whoever has models asks.
//!
//! * [`verdict`]: whether a difference is more than noise; [`budget`]: what may be spent

pub mod budget;
pub mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::record::Record;
use kairo_mind::{
    deliberation::has_lost_words,
    replay::{
        Replay, ReplayError, ReplayedCall,
        changes::ReplayChanges,
        rerun::{KeptAnswers, Rerun, RerunStep},
    },
    tokens,
};
use kairo_proto::v1::{AgentDecision, Completion};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::verdict::{LaneVerdict, Rate, fisher_p_value};
use crate::{
    decision_effects::{self, DecisionCall},
    report::{DecisionDifference, decision_json},
};

/// One of the two lanes that models are asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingLane {
    Control,
    Candidate,
}

/// A decision that is to be asked for again.
#[derive(Debug)]
pub struct Shadow {
    control: Rerun,
    candidate: Rerun,
    /// The answers that neither lane asks for, as the change does not reach them.
    kept: KeptAnswers,
    expected: [Vec<ExpectedCall>; 2],
}

/// A call that a sample makes if models answer as they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedCall {
    pub tier: &'static str,
    /// As the endpoint counted then, by as much more or less as the request is another; counted here where it did not say.
    pub input_tokens: u64,
    pub is_counted: bool,
    /// As many as then, counted where the log does not say.
    pub output_tokens: u64,
}

/// The outcome of one sample of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleOutcome {
    /// It does what was recorded.
    Same,
    /// It does that in other words.
    Reworded,
    /// It does something else, with no call that the log has no result of.
    Differs,
    /// It makes a call that the log has no result of, which is not executed.
    Divergent,
    /// The model did not answer.
    Unanswered,
    /// It was not asked, or not to the end.
    NotAsked,
}

/// One of the times that a decision was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub outcome: SampleOutcome,
    /// Model calls that were made.
    pub calls: u64,
    /// Their cost, as a decimal number; none if the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tool calls that it makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<DecisionCall>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<DecisionDifference>,
    /// The decision made, if it is not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Value>,
}

/// The samples of one lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    #[serde(flatten)]
    pub rate: Rate,
    pub samples: Vec<Sample>,
}

/// Both lanes of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lanes {
    pub verdict: LaneVerdict,
    /// The probability that the candidate does the same as recorded this seldom if nothing is changed.
    pub chance: f64,
    pub control: Samples,
    pub candidate: Samples,
}

/// The model calls made for a whole report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingTotals {
    /// Of each lane, for each decision.
    pub samples: u32,
    /// The model of each tier.
    pub control: BTreeMap<String, String>,
    pub candidate: BTreeMap<String, String>,
    #[serde(flatten)]
    pub came_to: ModelCallTotals,
}

/// The calls and cost of asking models; amounts are decimal numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCallTotals {
    /// The calls to expect if models answer as they did.
    pub expected_calls: u64,
    pub expected_cost: Option<String>,
    /// `None` if there is no bound.
    pub budget: Option<String>,
    pub calls: u64,
    pub cost: Option<String>,
    pub ended: AskingEnd,
}

/// The reason for which asking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskingEnd {
    /// All is.
    Complete,
    /// The budget that is left does not suffice.
    Budget,
    /// Somebody ended it.
    Interrupted,
}

impl Shadow {
    /// A decision that is the next record, if it can be made again as it was and these changes or the models of these tiers, which
    /// others replace, reach it.
    pub fn from_record(replay: &Replay, record: &Record, replaced: &BTreeSet<String>) -> Option<Self> {
        let control = replay.rerun(record, &ReplayChanges::default()).ok()?.ok()?;
        let candidate = replay.rerun(record, replay.changes()).ok()?.ok()?;
        if control.recorded_decision().completions.iter().any(has_lost_words) {
            return None;
        }
        let then = control.run_recorded();
        let now = candidate.run_recorded();
        then.decision.ok()?;
        let asked_now: BTreeSet<String> = now.asked.iter().map(|asked| asked.request.digest()).collect();
        let is_kept = |asked: &&ReplayedCall| {
            !replaced.contains(asked.request.tier) && asked_now.contains(&asked.request.digest())
        };
        let kept = KeptAnswers::from_calls(then.asked.iter().filter(is_kept));
        let expected = [&then.asked, &now.asked].map(|asked| expected_calls(asked, &then.asked, &kept));
        let is_reached = expected.iter().any(|calls| !calls.is_empty());
        is_reached.then_some(Self { control, candidate, kept, expected })
    }

    /// The calls of one sample.
    pub fn expected_calls(&self, lane: SamplingLane) -> &[ExpectedCall] {
        let [control, candidate] = &self.expected;
        match lane {
            SamplingLane::Control => control,
            SamplingLane::Candidate => candidate,
        }
    }

    /// Goes on with the answers that a sample was given up to there.
    ///
    /// # Errors
    /// If there is nothing to decide.
    pub fn step(&self, lane: SamplingLane, answers: &[Completion]) -> Result<RerunStep, ReplayError> {
        let again = match lane {
            SamplingLane::Control => &self.control,
            SamplingLane::Candidate => &self.candidate,
        };
        again.next_step(&self.kept, answers)
    }

    /// Compares a decision with the recorded one.
    pub fn judge(&self, made: AgentDecision) -> Sample {
        let recorded = self.control.recorded_decision();
        let places = decision_effects::compare_effects(recorded, &made, || self.control.known_ids());
        let actions = decision_effects::mark_divergent_calls(recorded, &made);
        let unanswered = decision_effects::missing_answer_error(recorded, &made);
        let outcome = match places.first() {
            None => SampleOutcome::Same,
            Some(first) if first.is_wording => SampleOutcome::Reworded,
            Some(_) if unanswered.is_some() => SampleOutcome::Unanswered,
            Some(_) if actions.iter().any(|call| call.divergent) => SampleOutcome::Divergent,
            Some(_) => SampleOutcome::Differs,
        };
        let reason = unanswered.filter(|_| outcome == SampleOutcome::Unanswered);
        let made = if outcome == SampleOutcome::Same { None } else { decision_json(made) };
        let differences = places.into_iter().map(DecisionDifference::from).collect();
        Sample { outcome, calls: 0, cost: None, reason, actions, differences, made }
    }
}

/// The calls that were made and are not kept; `then` are those of the decision as it was.
pub(crate) fn expected_calls(asked: &[ReplayedCall], then: &[ReplayedCall], kept: &KeptAnswers) -> Vec<ExpectedCall> {
    let calls = asked.iter().filter(|asked| !kept.has_answer(&asked.request.digest()));
    calls
        .map(|asked| {
            let recorded = asked.completion.input_tokens;
            let counted = tokens::of_request(&asked.request) as u64;
            // What the endpoint counted then, by as much more or less as is counted here.
            let as_then = then.iter().find(|it| it.completion == asked.completion).filter(|_| recorded > 0);
            let then = as_then.map(|it| tokens::of_request(&it.request) as u64).filter(|then| *then > 0);
            let input_tokens = then.map_or(counted, |then| recorded.saturating_mul(counted).div_ceil(then));
            let tier = asked.request.tier;
            let output_tokens = answer_tokens(&asked.completion);
            ExpectedCall { tier, input_tokens, is_counted: then.is_none(), output_tokens }
        })
        .collect()
}

/// The tokens of an answer, as the log says or, where the endpoint did not say, as they are counted here.
fn answer_tokens(completion: &Completion) -> u64 {
    let Completion { text, reasoning, tool_calls, output_tokens, .. } = completion;
    let calls = tool_calls.iter().flat_map(|call| [&call.tool, &call.arguments]);
    let counted = || [text, reasoning].into_iter().chain(calls).map(|text| tokens::of_text(text)).sum::<usize>();
    if *output_tokens > 0 { *output_tokens } else { u64::try_from(counted()).unwrap_or(u64::MAX) }
}

impl Sample {
    /// One that was not asked, or not to the end.
    pub fn not_asked(reason: String) -> Self {
        let actions = Vec::new();
        let differences = Vec::new();
        Self {
            outcome: SampleOutcome::NotAsked,
            calls: 0,
            cost: None,
            reason: Some(reason),
            actions,
            differences,
            made: None,
        }
    }
}

impl SampleOutcome {
    /// Returns true if the sample does what was recorded; none if nobody knows.
    pub fn is_same(self) -> Option<bool> {
        match self {
            Self::Same | Self::Reworded => Some(true),
            Self::Differs | Self::Divergent => Some(false),
            Self::Unanswered | Self::NotAsked => None,
        }
    }
}

impl std::fmt::Display for SampleOutcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Same => "the same",
            Self::Reworded => "reworded",
            Self::Differs => "differs",
            Self::Divergent => "divergent",
            Self::Unanswered => "unanswered",
            Self::NotAsked => "not asked",
        })
    }
}

impl From<Vec<Sample>> for Samples {
    fn from(samples: Vec<Sample>) -> Self {
        let answered: Vec<bool> = samples.iter().filter_map(|sample| sample.outcome.is_same()).collect();
        let same = answered.iter().filter(|same| **same).count();
        Self { rate: Rate { same, of: answered.len() }, samples }
    }
}

impl Lanes {
    pub fn from_samples(control: Vec<Sample>, candidate: Vec<Sample>) -> Self {
        let control = Samples::from(control);
        let candidate = Samples::from(candidate);
        let verdict = LaneVerdict::from_rates(control.rate, candidate.rate);
        // In ten-thousandths: more would be pretence.
        let chance = (fisher_p_value(control.rate, candidate.rate) * 10_000.0).round() / 10_000.0;
        Self { verdict, chance, control, candidate }
    }
}

#[cfg(test)]
mod tests;
