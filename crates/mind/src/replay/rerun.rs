//! A decision that is made again with answers which models give now, where the log has none. Whoever has it asks: it says what
//! is to be asked next, given all answers up to there, and in the end the decision.

use std::collections::{BTreeMap, HashSet};

use kairo_proto::v1::{AgentDecision, Completion};

use super::{
    ReplayError, ReplayInputs, ReplayRun, ReplayedCall, digest_cache::DigestCache, recording::RecordedAnswers,
};
use crate::deliberation::{Deliberation, DeliberationStep, ModelQuestion};

/// A decision of a log, with all that it is made of but the answers of models.
#[derive(Clone, Debug)]
pub struct Rerun {
    pub(super) making: ReplayInputs<'static>,
    pub(super) recorded: AgentDecision,
}

/// Answers that stand, by the digest of the request: those of requests that a change does not reach.
#[derive(Clone, Debug, Default)]
pub struct KeptAnswers(BTreeMap<String, Vec<Completion>>);

/// The next step of a replayed decision.
#[derive(Debug)]
pub enum RerunStep {
    /// The answers to these, in this order, behind those that were given.
    Ask(Vec<ModelQuestion>),
    Made(Box<AgentDecision>),
}

impl KeptAnswers {
    /// The answers that the log has to these calls.
    pub fn from_calls<'a>(asked: impl IntoIterator<Item = &'a ReplayedCall>) -> Self {
        let mut kept = Self::default();
        for asked in asked {
            kept.0.entry(asked.request.digest()).or_default().push(asked.completion.clone());
        }
        kept
    }

    /// Returns true if there is an answer to this request.
    pub fn has_answer(&self, digest: &str) -> bool {
        self.0.contains_key(digest)
    }

    /// The answer to what is asked for the so many-th time: whoever failed the first time may have been asked again.
    fn answer(&self, digest: &str, time: usize) -> Option<&Completion> {
        let answers = self.0.get(digest)?;
        answers.get(time).or(answers.last())
    }
}

impl Rerun {
    pub fn recorded_decision(&self) -> &AgentDecision {
        &self.recorded
    }

    /// The ids that were there before it.
    pub fn known_ids(&self) -> HashSet<String> {
        self.making.known_ids()
    }

    /// Makes it with the answers that the log has, whatever is asked.
    pub fn run_recorded(&self) -> ReplayRun {
        let mut digesting = DigestCache::default();
        let mut recording = RecordedAnswers::from_decision(&self.recorded, &mut digesting);
        let decision = self.making.decide(|question| recording.next_answer(question));
        ReplayRun { asked: recording.asked, answers: recording.answers, decision }
    }

    /// Makes it with the answers that are kept and, for whatever else is asked, with these, in their order. Nothing of it goes on
    /// from call to call, so that it can be made with any answers at any time.
    ///
    /// # Errors
    /// Fails if there is nothing to decide.
    pub fn next_step(&self, kept: &KeptAnswers, answers: &[Completion]) -> Result<RerunStep, ReplayError> {
        let ReplayInputs { state, input, catalogue, limits } = &self.making;
        let mut answers = answers.iter();
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let (mut deliberation, mut next) =
            Deliberation::begin(state, input, catalogue, limits).ok_or(ReplayError::NothingToDecide)?;
        loop {
            let questions = match next {
                DeliberationStep::Commit(decision) => return Ok(RerunStep::Made(decision)),
                DeliberationStep::Ask(questions) => questions,
            };
            let mut given = Vec::new();
            let mut missing = Vec::new();
            for question in &questions {
                let digest = question.request.digest();
                let time = times.entry(digest.clone()).or_default();
                match kept.answer(&digest, *time).or_else(|| answers.next()) {
                    Some(answer) => given.push(answer.clone()),
                    None => missing.push(question.clone()),
                }
                *time += 1;
            }
            if !missing.is_empty() {
                return Ok(RerunStep::Ask(missing));
            }
            (deliberation, next) = deliberation.resume(given);
        }
    }
}
