//! Making the decisions of a log again: each from the state that the log says it was made in, with the completions that it
//! recorded, and compared with what it says. Pure: nothing is asked, nothing is written.
//!
//! * [`super::build_pin`]: what a decision rests on beside the log
//! * [`rerun`]: a decision made again with answers that models give now
//! * [`changes`]: what decisions are made again with instead of what the log says
//! * [`comparison`]: in what two decisions differ
//! * `recording`: the answers that the log has, given to what is asked again; `digesting` the digests by which they are found

pub mod changes;
pub mod comparison;
mod digest_cache;
mod outcome;
mod recording;
pub mod rerun;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use kairo_events::{
    ids::Name,
    record::Record,
    subjects::{self, AGENT_DECISION},
    vocabulary,
};
use kairo_proto::{
    Body,
    v1::{AgentDecision, Completion},
};
use uuid::Uuid;

pub use self::outcome::{DecisionPair, ReplayError, ReplayOutcome, ReplayedDecision};
pub use self::recording::{ReplayedCall, RequestDrift, RequestPart, part_digests};
use self::{
    changes::ReplayChanges,
    comparison::{differences_beside, ids_in},
    digest_cache::DigestCache,
    outcome::{judge_difference, same_outcome},
    recording::RecordedAnswers,
    rerun::Rerun,
};
use super::{
    build_pin,
    deliberation::{DecisionLimits, Deliberation, DeliberationStep, ModelQuestion, has_lost_words},
    log::{DecisionInput, Divergence, Log, Snapshot},
    request::{Catalogue, ModelRequest, Tool},
    state::AgentState,
};

/// A log as it is replayed: all of its agents, in its order.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    catalogues: BTreeMap<String, Catalogue>,
    bases: BTreeMap<String, DecisionLimits>,
    agents: BTreeMap<Name, Log>,
    /// Key under which secrets are sealed, for agents that keep some.
    secret_key: Option<[u8; 32]>,
    changes: ReplayChanges,
    digesting: DigestCache,
}

/// The state, input, catalogue and limits of a replayed decision.
#[derive(Clone, Debug)]
struct ReplayInputs<'r> {
    state: Arc<AgentState>,
    input: DecisionInput,
    catalogue: Cow<'r, Catalogue>,
    limits: Cow<'r, DecisionLimits>,
}

/// A decision made again, with what was asked for it.
#[derive(Clone, Debug)]
pub struct ReplayRun {
    /// In their order, also where it could not be made in the end.
    pub asked: Vec<ReplayedCall>,
    /// For each question in its order, which of those answers it: what was asked twice was answered once.
    pub answers: Vec<usize>,
    pub decision: Result<AgentDecision, ReplayError>,
}

impl ReplayRun {
    /// The requests of this one that are not those of the other.
    pub fn drifted_from(&self, other: &Self) -> Vec<RequestDrift> {
        recording::drifts_between(&self.asked, &other.asked)
    }
}

impl Replay {
    /// Secrets that the log keeps are sealed under `secret_key`; without it decisions that seal some differ.
    pub fn new(secret_key: Option<[u8; 32]>) -> Self {
        Self { secret_key, ..Self::default() }
    }

    /// Decisions are made again with these changes. What is folded stays as the log says it.
    #[must_use]
    pub fn with_changes(self, changes: ReplayChanges) -> Self {
        Self { changes, ..self }
    }

    /// Takes in the next record of the log. A decision is made again.
    pub fn replay_record(&mut self, record: Record) -> Option<ReplayedDecision> {
        self.keep_catalogue_and_basis(&record);
        let (route, agent) = subjects::find_route(&record.subject)?;
        if !subjects::is_agent_route(route) {
            return None;
        }
        let mut digesting = std::mem::take(&mut self.digesting);
        let decision = AgentDecision::of(&record.body);
        let replayed = decision.and_then(|decision| self.replay_decision(&agent, &record, decision, &mut digesting));
        self.digesting = digesting;
        let sequence = record.sequence;
        match self.agents.entry(agent.clone()).or_default().push(record) {
            Ok(_) => replayed,
            Err(Divergence) => Some(ReplayedDecision {
                outcome: ReplayOutcome::not_replayable(&ReplayError::OutOfPlace),
                ..same_outcome(agent, sequence)
            }),
        }
    }

    /// Keeps what decisions rest on beside what happened to the agent.
    fn keep_catalogue_and_basis(&mut self, record: &Record) {
        if let Body::ToolCatalogue(catalogue) = &record.body {
            let tools = catalogue.tools.iter().cloned().map(Tool::from).collect();
            let version = catalogue.version.clone();
            self.catalogues.insert(version.clone(), Catalogue { version, tools });
        }
        if let Body::DecisionBasis(recorded) = &record.body {
            let limits = DecisionLimits { secret_key: self.secret_key, ..build_pin::recorded_limits(recorded) };
            self.bases.insert(recorded.digest.clone(), limits);
        }
    }

    /// Takes in a message of an agent that cannot be read.
    pub fn pass_over(&mut self, sequence: u64, subject: &str) {
        if let Some((_, agent)) = subjects::find_route(subject).filter(|(route, _)| subjects::is_agent_route(route)) {
            let on_decisions = subject == AGENT_DECISION.of_owner(&agent);
            self.agents.entry(agent).or_default().skip_unreadable(sequence, on_decisions);
        }
    }

    /// A digest of each agent's state, the same wherever the same log was read.
    pub fn state_digests(&self) -> BTreeMap<Name, Uuid> {
        let digest = |log: &Log| {
            let state = serde_json::to_vec(&log.snapshot(Uuid::nil())).unwrap_or_default();
            Uuid::new_v5(&Uuid::NAMESPACE_OID, &state)
        };
        self.agents.iter().map(|(agent, log)| (agent.clone(), digest(log))).collect()
    }

    /// Takes in the next record without making anything again. False where it does not follow from what was taken in.
    pub fn apply_record(&mut self, record: Record) -> bool {
        self.keep_catalogue_and_basis(&record);
        let route = subjects::find_route(&record.subject).filter(|(route, _)| subjects::is_agent_route(route));
        let Some((_, agent)) = route else { return true };
        let log = self.agents.entry(agent).or_default();
        let lacks_its_input = AgentDecision::of(&record.body)
            .is_some_and(|decision| log.is_new(record.sequence, decision) && !log.is_pending(decision.decided_on()));
        !lacks_its_input && log.push(record).is_ok()
    }

    /// Returns true if any agent has an input to decide on.
    pub fn is_waiting(&self) -> bool {
        let waits = |log: &Log| log.clone().next_input().is_some() || log.next_background_input().is_some();
        self.agents.values().any(waits)
    }

    /// Returns the snapshot of an agent's state after all records applied so far.
    pub fn snapshot(&self, agent: &Name) -> Snapshot {
        self.agents.get(agent).map_or_else(|| Log::default().snapshot(Uuid::nil()), |log| log.snapshot(Uuid::nil()))
    }

    /// The model calls of a decision that is the next record, in their order.
    ///
    /// # Errors
    /// Returns the reason the model calls cannot be replayed.
    pub fn model_calls(&self, record: &Record) -> Result<Vec<ReplayedCall>, String> {
        let made = self.run_recorded(record)?;
        match made.decision {
            Err(why) if made.asked.is_empty() => Err(why.to_string()),
            // What was asked up to there is of use in any case.
            _ => Ok(made.asked),
        }
    }

    /// Makes a decision again that is the next record, with the answers that it recorded.
    ///
    /// # Errors
    /// Fails if the record is no decision, or decides nothing.
    pub fn run_recorded(&self, record: &Record) -> Result<ReplayRun, String> {
        let (decision, making) = self.next_decision(record, &self.changes)?;
        let mut digesting = DigestCache::default();
        let mut recording = RecordedAnswers::from_decision(decision, &mut digesting);
        let made = making.and_then(|making| making.decide(|question| recording.next_answer(question)));
        Ok(ReplayRun { asked: recording.asked, answers: recording.answers, decision: made })
    }

    /// A decision that is the next record, to be made again with these changes and any answers.
    ///
    /// # Errors
    /// Fails if the record is no decision, or decides nothing. The inner result fails if the log lacks an input of the
    /// decision.
    pub fn rerun(&self, record: &Record, changes: &ReplayChanges) -> Result<Result<Rerun, ReplayError>, String> {
        let (decision, making) = self.next_decision(record, changes)?;
        Ok(making.map(|making| Rerun { making: making.into_owned(), recorded: decision.clone() }))
    }

    /// The decision that is the next record, and what it is made again with.
    fn next_decision<'r>(
        &self,
        record: &'r Record,
        changes: &ReplayChanges,
    ) -> Result<(&'r AgentDecision, Result<ReplayInputs<'_>, ReplayError>), String> {
        let decision = AgentDecision::of(&record.body).ok_or("it is no decision")?;
        let agent = subjects::find_route(&record.subject).map(|(_, agent)| agent).ok_or("it is no agent's")?;
        let empty = Log::default();
        let log = self.agents.get(&agent).unwrap_or(&empty);
        if !log.is_new(record.sequence, decision) {
            return Err("it is a copy of a decision, and decides nothing".to_owned());
        }
        Ok((decision, self.inputs_of(log, decision, changes)))
    }

    /// Replays the decision in the next record with other answers than it recorded; `answer` returns none for a
    /// question without one.
    ///
    /// # Errors
    /// Returns the reason the decision cannot be made.
    pub fn run_with_answers(
        &self,
        record: &Record,
        mut answer: impl FnMut(&ModelRequest) -> Option<Completion>,
    ) -> Result<AgentDecision, ReplayError> {
        let (_, making) = self.next_decision(record, &self.changes).map_err(|_| ReplayError::NothingToDecide)?;
        making?.decide(|question| answer(&question.request))
    }

    /// The ids that were there before a decision that is the next record; none where it cannot be made.
    pub fn known_ids(&self, record: &Record) -> HashSet<String> {
        let making = self.next_decision(record, &self.changes).map(|(_, making)| making);
        making.ok().and_then(Result::ok).map(|making| making.known_ids()).unwrap_or_default()
    }

    /// The changes that decisions are made again with.
    pub fn changes(&self) -> &ReplayChanges {
        &self.changes
    }

    /// None for a copy, which decides nothing.
    fn replay_decision(
        &self,
        agent: &Name,
        record: &Record,
        decision: &AgentDecision,
        digesting: &mut DigestCache,
    ) -> Option<ReplayedDecision> {
        let empty = Log::default();
        let log = self.agents.get(agent).unwrap_or(&empty);
        if !log.is_new(record.sequence, decision) {
            return None;
        }
        let replayed =
            ReplayedDecision { input_id: decision.input_id.clone(), ..same_outcome(agent.clone(), record.sequence) };
        if !record.envelope.forgotten.is_empty() {
            return Some(ReplayedDecision { outcome: ReplayOutcome::Forgotten, ..replayed });
        }
        Some(match self.inputs_of(log, decision, &self.changes) {
            Err(why) => {
                let beside = DecisionPair { recorded: decision.clone(), made: None, places: Vec::new() };
                ReplayedDecision {
                    outcome: ReplayOutcome::not_replayable(&why),
                    beside: Some(beside.into()),
                    ..replayed
                }
            }
            Ok(making) => {
                let without_basis = !self.bases.contains_key(&decision.basis);
                let input = &making.input.record;
                let is_forgotten = !input.envelope.forgotten.is_empty();
                let input = Some((input.sequence, input.envelope.type_name.clone()));
                let replayed = ReplayedDecision { without_basis, input, ..replayed };
                match is_forgotten {
                    true => ReplayedDecision { outcome: ReplayOutcome::Forgotten, ..replayed },
                    false => making.compare_with(decision, replayed, digesting),
                }
            }
        })
    }

    /// Collects the state, input, catalogue and limits of a decision in this log, with the changes applied.
    fn inputs_of(
        &self,
        log: &Log,
        decision: &AgentDecision,
        changes: &ReplayChanges,
    ) -> Result<ReplayInputs<'_>, ReplayError> {
        let (mut state, input) = log.state_before(decision).ok_or(ReplayError::NoInput)?;
        changes.change_state(&mut state);
        let catalogue = match (decision.catalogue_version.as_str(), &changes.tools) {
            ("", _) => Cow::Owned(Catalogue::default()),
            // The decision says the version that it was made with, which is not what is compared.
            (version, Some(tools)) => Cow::Owned(Catalogue { version: version.to_owned(), tools: tools.clone() }),
            (version, None) => {
                let known = self.catalogues.get(version);
                Cow::Borrowed(known.ok_or_else(|| ReplayError::NoCatalogue(version.to_owned()))?)
            }
        };
        // Builds that said no basis knew of no endings.
        let is_new = decision.completions.iter().any(|completion| !completion.ending.is_empty());
        let limits = if is_new { DecisionLimits::default() } else { DecisionLimits::of_old_build() };
        let assumed = || DecisionLimits { secret_key: self.secret_key, basis: decision.basis.clone(), ..limits };
        let limits = self.bases.get(&decision.basis).map_or_else(|| Cow::Owned(assumed()), Cow::Borrowed);
        Ok(ReplayInputs { state, input, catalogue, limits: changes.change_limits(limits) })
    }
}

/// A decision as it comes out when it is made again: without what was spent in vain before it, and what ties it to what stands
/// before it.
pub fn as_replayed(decision: &AgentDecision) -> AgentDecision {
    AgentDecision {
        given_up: Vec::new(),
        given_up_cost: 0,
        given_up_unpriced_tokens: 0,
        link: None,
        reader: vocabulary::FIRST,
        ..decision.clone()
    }
}

impl ReplayInputs<'_> {
    /// Returns a copy that outlives the log it borrows from.
    fn into_owned(self) -> ReplayInputs<'static> {
        let Self { state, input, catalogue, limits } = self;
        let (catalogue, limits) = (Cow::Owned(catalogue.into_owned()), Cow::Owned(limits.into_owned()));
        ReplayInputs { state, input, catalogue, limits }
    }

    fn compare_with(
        &self,
        recorded: &AgentDecision,
        replayed: ReplayedDecision,
        digesting: &mut DigestCache,
    ) -> ReplayedDecision {
        // What was spent in vain before it is no part of what was decided, and neither is what ties it to that.
        let is_bare = recorded.given_up.is_empty() && recorded.link.is_none() && recorded.reader == vocabulary::FIRST;
        let recorded = &*match is_bare {
            true => Cow::Borrowed(recorded),
            false => Cow::Owned(as_replayed(recorded)),
        };
        let beside = |made: Option<AgentDecision>, places| {
            Some(Box::new(DecisionPair { recorded: recorded.clone(), made, places }))
        };
        if recorded.completions.iter().any(has_lost_words) {
            let outcome = ReplayOutcome::not_replayable(&ReplayError::WithoutWords);
            return ReplayedDecision { outcome, beside: beside(None, Vec::new()), ..replayed };
        }
        let mut recording = RecordedAnswers::from_decision(recorded, digesting);
        let made = self.decide(|question| recording.next_answer(question));
        let drifted = recording.drifts();
        let made = match made {
            Ok(made) => made,
            Err(why) => {
                return ReplayedDecision {
                    outcome: ReplayOutcome::not_replayable(&why),
                    beside: beside(None, Vec::new()),
                    drifted,
                    ..replayed
                };
            }
        };
        let places = differences_beside(recorded, &made, || self.known_ids());
        if !places.is_empty() {
            // The one that was made may have been too large to be written.
            let Self { state, input, catalogue, limits } = self;
            let instead = Deliberation::oversize_fallback(state, input, catalogue, limits, made.completions.clone());
            if instead.is_some_and(|instead| differences_beside(recorded, &instead, || self.known_ids()).is_empty()) {
                return ReplayedDecision { drifted, ..replayed };
            }
        }
        let is_same = places.is_empty() && drifted.is_empty();
        let outcome = judge_difference(places.first());
        let beside = if is_same { None } else { beside(Some(made), places) };
        ReplayedDecision { outcome, drifted, beside, ..replayed }
    }

    /// The ids that were there before it was decided.
    fn known_ids(&self) -> HashSet<String> {
        let input = self.input.record.envelope.id.to_string();
        let state = serde_json::to_string(&self.state).unwrap_or_default();
        ids_in(&state).into_iter().chain([input]).collect()
    }

    fn decide(
        &self,
        mut answer: impl FnMut(&ModelQuestion) -> Option<Completion>,
    ) -> Result<AgentDecision, ReplayError> {
        let Self { state, input, catalogue, limits } = self;
        let (mut deliberation, mut next) =
            Deliberation::begin(state, input, catalogue, limits).ok_or(ReplayError::NothingToDecide)?;
        loop {
            match next {
                DeliberationStep::Commit(decision) => return Ok(*decision),
                DeliberationStep::Ask(questions) => {
                    let answers: Option<Vec<_>> = questions.iter().map(&mut answer).collect();
                    (deliberation, next) = deliberation.resume(answers.ok_or(ReplayError::Unanswered)?);
                }
            }
        }
    }
}
