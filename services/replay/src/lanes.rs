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
    deliberation::is_without_words,
    replay::{
        Asked, Replay, Unmade,
        again::{Again, Kept, Step},
        changes::Changes,
    },
    tokens,
};
use kairo_proto::v1::{AgentDecision, Completion};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::verdict::{Rate, Verdict, chance};
use crate::{
    deeds::{self, Call},
    report::{Place, shown},
};

/// One of the two lanes that models are asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Control,
    Candidate,
}

/// A decision that is to be asked for again.
#[derive(Debug)]
pub struct Shadow {
    control: Again,
    candidate: Again,
    /// The answers that neither lane asks for, as the change does not reach them.
    kept: Kept,
    expected: [Vec<Expected>; 2],
}

/// A call that a sample makes if models answer as they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
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
pub enum Came {
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
    pub outcome: Came,
    /// Model calls that were made.
    pub calls: u64,
    /// Their cost, as a decimal number; none if the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tool calls that it makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Call>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Place>,
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
    pub verdict: Verdict,
    /// The probability that the candidate does the same as recorded this seldom if nothing is changed.
    pub chance: f64,
    pub control: Samples,
    pub candidate: Samples,
}

/// The model calls made for a whole report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asking {
    /// Of each lane, for each decision.
    pub samples: u32,
    /// The model of each tier.
    pub control: BTreeMap<String, String>,
    pub candidate: BTreeMap<String, String>,
    #[serde(flatten)]
    pub came_to: CameTo,
}

/// The calls and cost of asking models; amounts are decimal numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CameTo {
    /// The calls to expect if models answer as they did.
    pub expected_calls: u64,
    pub expected_cost: Option<String>,
    /// `None` if there is no bound.
    pub budget: Option<String>,
    pub calls: u64,
    pub cost: Option<String>,
    pub ended: Ended,
}

/// The reason for which asking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
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
    pub fn of(replay: &Replay, record: &Record, replaced: &BTreeSet<String>) -> Option<Self> {
        let control = replay.again(record, &Changes::default()).ok()?.ok()?;
        let candidate = replay.again(record, replay.changes()).ok()?.ok()?;
        if control.recorded().completions.iter().any(is_without_words) {
            return None;
        }
        let (then, now) = (control.with_recorded(), candidate.with_recorded());
        then.decision.ok()?;
        let asked_now: BTreeSet<String> = now.asked.iter().map(|asked| asked.request.digest()).collect();
        let is_kept =
            |asked: &&Asked| !replaced.contains(asked.request.tier) && asked_now.contains(&asked.request.digest());
        let kept = Kept::of(then.asked.iter().filter(is_kept));
        let expected = [&then.asked, &now.asked].map(|asked| expected(asked, &then.asked, &kept));
        let is_reached = expected.iter().any(|calls| !calls.is_empty());
        is_reached.then_some(Self { control, candidate, kept, expected })
    }

    /// The calls of one sample.
    pub fn expected(&self, lane: Lane) -> &[Expected] {
        let [control, candidate] = &self.expected;
        match lane {
            Lane::Control => control,
            Lane::Candidate => candidate,
        }
    }

    /// Goes on with the answers that a sample was given up to there.
    ///
    /// # Errors
    /// If there is nothing to decide.
    pub fn step(&self, lane: Lane, answers: &[Completion]) -> Result<Step, Unmade> {
        let again = match lane {
            Lane::Control => &self.control,
            Lane::Candidate => &self.candidate,
        };
        again.step(&self.kept, answers)
    }

    /// Compares a decision with the recorded one.
    pub fn judge(&self, made: AgentDecision) -> Sample {
        let recorded = self.control.recorded();
        let places = deeds::differences_beside(recorded, &made, || self.control.known());
        let actions = deeds::calls(recorded, &made);
        let unanswered = deeds::unanswered(recorded, &made);
        let outcome = match places.first() {
            None => Came::Same,
            Some(first) if first.is_wording => Came::Reworded,
            Some(_) if unanswered.is_some() => Came::Unanswered,
            Some(_) if actions.iter().any(|call| call.divergent) => Came::Divergent,
            Some(_) => Came::Differs,
        };
        let reason = unanswered.filter(|_| outcome == Came::Unanswered);
        let made = if outcome == Came::Same { None } else { shown(made) };
        let differences = places.into_iter().map(Place::from).collect();
        Sample { outcome, calls: 0, cost: None, reason, actions, differences, made }
    }
}

/// The calls that were made and are not kept; `then` are those of the decision as it was.
pub(crate) fn expected(asked: &[Asked], then: &[Asked], kept: &Kept) -> Vec<Expected> {
    let calls = asked.iter().filter(|asked| !kept.has(&asked.request.digest()));
    calls
        .map(|asked| {
            let recorded = asked.completion.input_tokens;
            let counted = tokens::of_request(&asked.request) as u64;
            // What the endpoint counted then, by as much more or less as is counted here.
            let as_then = then.iter().find(|it| it.completion == asked.completion).filter(|_| recorded > 0);
            let then = as_then.map(|it| tokens::of_request(&it.request) as u64).filter(|then| *then > 0);
            let input_tokens = then.map_or(counted, |then| recorded.saturating_mul(counted).div_ceil(then));
            let (tier, output_tokens) = (asked.request.tier, answered(&asked.completion));
            Expected { tier, input_tokens, is_counted: then.is_none(), output_tokens }
        })
        .collect()
}

/// The tokens of an answer, as the log says or, where the endpoint did not say, as they are counted here.
fn answered(completion: &Completion) -> u64 {
    let Completion { text, reasoning, tool_calls, output_tokens, .. } = completion;
    let calls = tool_calls.iter().flat_map(|call| [&call.tool, &call.arguments]);
    let counted = || [text, reasoning].into_iter().chain(calls).map(|text| tokens::of_text(text)).sum::<usize>();
    if *output_tokens > 0 { *output_tokens } else { u64::try_from(counted()).unwrap_or(u64::MAX) }
}

impl Sample {
    /// One that was not asked, or not to the end.
    pub fn not_asked(reason: String) -> Self {
        let (actions, differences) = (Vec::new(), Vec::new());
        Self { outcome: Came::NotAsked, calls: 0, cost: None, reason: Some(reason), actions, differences, made: None }
    }
}

impl Came {
    /// Returns true if the sample does what was recorded; none if nobody knows.
    pub fn is_same(self) -> Option<bool> {
        match self {
            Self::Same | Self::Reworded => Some(true),
            Self::Differs | Self::Divergent => Some(false),
            Self::Unanswered | Self::NotAsked => None,
        }
    }
}

impl std::fmt::Display for Came {
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
    pub fn of(control: Vec<Sample>, candidate: Vec<Sample>) -> Self {
        let (control, candidate) = (Samples::from(control), Samples::from(candidate));
        let verdict = Verdict::of(control.rate, candidate.rate);
        // In ten-thousandths: more would be pretence.
        let chance = (chance(control.rate, candidate.rate) * 10_000.0).round() / 10_000.0;
        Self { verdict, chance, control, candidate }
    }
}

#[cfg(test)]
mod tests;
