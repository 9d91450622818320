//! Making the decisions of a log again: each from the state that the log says it was made in, with the completions that it
//! recorded, and compared with what it says. Pure: nothing is asked, nothing is written.
//!
//! * [`basis`](super::basis): what a decision rests on beside the log
//! * [`again`]: a decision made again with answers that models give now
//! * [`changes`]: what decisions are made again with instead of what the log says
//! * [`compare`]: in what two decisions differ
//! * `recording`: the answers that the log has, given to what is asked again; `digesting` the digests by which they are found

pub mod again;
pub mod changes;
pub mod compare;
mod digesting;
mod recording;

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
use serde::Serialize;
use uuid::Uuid;

pub use self::recording::{Asked, Drift, RequestPart, digests};
use self::{
    again::Again,
    changes::Changes,
    compare::{Difference, differences_beside, ids_in},
    digesting::Digesting,
    recording::Recording,
};
use super::{
    basis,
    deliberation::{Deliberation, Limits, Next, Question, is_without_words},
    log::{Diverged, Input, Log, Snapshot},
    request::{Catalogue, ModelRequest, Tool},
    state::AgentState,
};

/// The reason a decision cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmade {
    /// The input of the decision is not in the log.
    NoInput,
    /// The tool catalogue of this version is not in the log.
    NoCatalogue(String),
    /// Nothing on its input wants a decision.
    Nothing,
    /// Models are asked more than the log has answers to.
    Unanswered,
    /// The log does not keep what the models answered.
    WithoutWords,
    /// It is a copy of another decision, or does not follow from what stands before it.
    OutOfPlace,
}

impl std::fmt::Display for Unmade {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::NoInput => "what it is on is not in the log",
            Self::NoCatalogue(version) => return write!(out, "the catalogue {version} is not in the log"),
            Self::Nothing => "there is nothing to decide on its input",
            Self::Unanswered => "more is asked than was recorded",
            Self::WithoutWords => "what the models answered was too large to be kept",
            Self::OutOfPlace => "it does not follow from what stands before it",
        })
    }
}

/// A decision that was made again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    pub agent: Name,
    /// Position of the decision in the log.
    pub sequence: u64,
    /// Id of the input; `input` has its position and type, as far as the log has them.
    pub input_id: String,
    #[serde(skip)]
    pub input: Option<(u64, String)>,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Requests that are not the ones that were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<Drift>,
    /// True if the basis of the decision was not recorded and the defaults were used instead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_basis: bool,
    /// Both decisions, where it is not the same from the same requests.
    #[serde(skip)]
    pub beside: Option<Box<Beside>>,
}

/// A decision beside the one that was made again.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    pub recorded: AgentDecision,
    /// `None` if it could not be made.
    pub made: Option<AgentDecision>,
    /// Every place at which they differ, what counts most first.
    pub places: Vec<Difference>,
}

/// The comparison of a replayed decision with the one in the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
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

impl Replayed {
    /// Returns true if the decision equals the recorded one and no request drifted.
    pub fn is_same(&self) -> bool {
        self.outcome == Outcome::Same && self.drifted.is_empty()
    }
}

/// A log as it is replayed: all of its agents, in its order.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    catalogues: BTreeMap<String, Catalogue>,
    bases: BTreeMap<String, Limits>,
    agents: BTreeMap<Name, Log>,
    /// Key under which secrets are sealed, for agents that keep some.
    secret_key: Option<[u8; 32]>,
    changes: Changes,
    digesting: Digesting,
}

/// The state, input, catalogue and limits of a replayed decision.
#[derive(Clone, Debug)]
struct Making<'r> {
    state: Arc<AgentState>,
    input: Input,
    catalogue: Cow<'r, Catalogue>,
    limits: Cow<'r, Limits>,
}

/// A decision made again, with what was asked for it.
#[derive(Clone, Debug)]
pub struct Made {
    /// In their order, also where it could not be made in the end.
    pub asked: Vec<Asked>,
    /// For each question in its order, which of those answers it: what was asked twice was answered once.
    pub answers: Vec<usize>,
    pub decision: Result<AgentDecision, Unmade>,
}

impl Made {
    /// The requests of this one that are not those of the other.
    pub fn drifted_from(&self, other: &Self) -> Vec<Drift> {
        recording::between(&self.asked, &other.asked)
    }
}

impl Replay {
    /// Secrets that the log keeps are sealed under `secret_key`; without it decisions that seal some differ.
    pub fn new(secret_key: Option<[u8; 32]>) -> Self {
        Self { secret_key, ..Self::default() }
    }

    /// Decisions are made again with these changes. What is folded stays as the log says it.
    #[must_use]
    pub fn with(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    /// Takes in the next record of the log. A decision is made again.
    pub fn take(&mut self, record: Record) -> Option<Replayed> {
        self.note(&record);
        let (route, agent) = subjects::route(&record.subject)?;
        if !subjects::is_of_agents(route) {
            return None;
        }
        let mut digesting = std::mem::take(&mut self.digesting);
        let decision = AgentDecision::of(&record.body);
        let replayed = decision.and_then(|decision| self.decide(&agent, &record, decision, &mut digesting));
        self.digesting = digesting;
        let sequence = record.sequence;
        match self.agents.entry(agent.clone()).or_default().push(record) {
            Ok(_) => replayed,
            Err(Diverged) => Some(Replayed { outcome: Outcome::not(&Unmade::OutOfPlace), ..of(agent, sequence) }),
        }
    }

    /// Keeps what decisions rest on beside what happened to the agent.
    fn note(&mut self, record: &Record) {
        if let Body::ToolCatalogue(catalogue) = &record.body {
            let tools = catalogue.tools.iter().cloned().map(Tool::from).collect();
            let version = catalogue.version.clone();
            self.catalogues.insert(version.clone(), Catalogue { version, tools });
        }
        if let Body::DecisionBasis(recorded) = &record.body {
            let limits = Limits { secret_key: self.secret_key, ..basis::limits(recorded) };
            self.bases.insert(recorded.digest.clone(), limits);
        }
    }

    /// Takes in a message of an agent that cannot be read.
    pub fn pass_over(&mut self, sequence: u64, subject: &str) {
        if let Some((_, agent)) = subjects::route(subject).filter(|(route, _)| subjects::is_of_agents(route)) {
            let on_decisions = subject == AGENT_DECISION.of(&agent);
            self.agents.entry(agent).or_default().pass_over(sequence, on_decisions);
        }
    }

    /// A digest of each agent's state, the same wherever the same log was read.
    pub fn states(&self) -> BTreeMap<Name, Uuid> {
        let digest = |log: &Log| {
            let state = serde_json::to_vec(&log.snapshot(Uuid::nil())).unwrap_or_default();
            Uuid::new_v5(&Uuid::NAMESPACE_OID, &state)
        };
        self.agents.iter().map(|(agent, log)| (agent.clone(), digest(log))).collect()
    }

    /// Takes in the next record without making anything again. False where it does not follow from what was taken in.
    pub fn follow(&mut self, record: Record) -> bool {
        self.note(&record);
        let route = subjects::route(&record.subject).filter(|(route, _)| subjects::is_of_agents(route));
        let Some((_, agent)) = route else { return true };
        let log = self.agents.entry(agent).or_default();
        let lacks_its_input = AgentDecision::of(&record.body)
            .is_some_and(|decision| log.is_new(record.sequence, decision) && !log.is_ahead(decision.decided_on()));
        !lacks_its_input && log.push(record).is_ok()
    }

    /// Returns true if any agent has an input to decide on.
    pub fn is_waiting(&self) -> bool {
        let waits = |log: &Log| log.clone().next_input().is_some() || log.next_work().is_some();
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
    pub fn asked(&self, record: &Record) -> Result<Vec<Asked>, String> {
        let made = self.make(record)?;
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
    pub fn make(&self, record: &Record) -> Result<Made, String> {
        let (decision, making) = self.next(record, &self.changes)?;
        let mut digesting = Digesting::default();
        let mut recording = Recording::of(decision, &mut digesting);
        let made = making.and_then(|making| making.make(|question| recording.answer(question)));
        Ok(Made { asked: recording.asked, answers: recording.answers, decision: made })
    }

    /// A decision that is the next record, to be made again with these changes and any answers.
    ///
    /// # Errors
    /// Fails if the record is no decision, or decides nothing. The inner result fails if the log lacks an input of the
    /// decision.
    pub fn again(&self, record: &Record, changes: &Changes) -> Result<Result<Again, Unmade>, String> {
        let (decision, making) = self.next(record, changes)?;
        Ok(making.map(|making| Again { making: making.owned(), recorded: decision.clone() }))
    }

    /// The decision that is the next record, and what it is made again with.
    fn next<'r>(
        &self,
        record: &'r Record,
        changes: &Changes,
    ) -> Result<(&'r AgentDecision, Result<Making<'_>, Unmade>), String> {
        let decision = AgentDecision::of(&record.body).ok_or("it is no decision")?;
        let agent = subjects::route(&record.subject).map(|(_, agent)| agent).ok_or("it is no agent's")?;
        let empty = Log::default();
        let log = self.agents.get(&agent).unwrap_or(&empty);
        if !log.is_new(record.sequence, decision) {
            return Err("it is a copy of a decision, and decides nothing".to_owned());
        }
        Ok((decision, self.making(log, decision, changes)))
    }

    /// Replays the decision in the next record with other answers than it recorded; `answer` returns none for a
    /// question without one.
    ///
    /// # Errors
    /// Returns the reason the decision cannot be made.
    pub fn make_with(
        &self,
        record: &Record,
        mut answer: impl FnMut(&ModelRequest) -> Option<Completion>,
    ) -> Result<AgentDecision, Unmade> {
        let (_, making) = self.next(record, &self.changes).map_err(|_| Unmade::Nothing)?;
        making?.make(|question| answer(&question.request))
    }

    /// The ids that were there before a decision that is the next record; none where it cannot be made.
    pub fn known(&self, record: &Record) -> HashSet<String> {
        let making = self.next(record, &self.changes).map(|(_, making)| making);
        making.ok().and_then(Result::ok).map(|making| making.known()).unwrap_or_default()
    }

    /// The changes that decisions are made again with.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// None for a copy, which decides nothing.
    fn decide(
        &self,
        agent: &Name,
        record: &Record,
        decision: &AgentDecision,
        digesting: &mut Digesting,
    ) -> Option<Replayed> {
        let empty = Log::default();
        let log = self.agents.get(agent).unwrap_or(&empty);
        if !log.is_new(record.sequence, decision) {
            return None;
        }
        let replayed = Replayed { input_id: decision.input_id.clone(), ..of(agent.clone(), record.sequence) };
        if !record.envelope.forgotten.is_empty() {
            return Some(Replayed { outcome: Outcome::Forgotten, ..replayed });
        }
        Some(match self.making(log, decision, &self.changes) {
            Err(why) => {
                let beside = Beside { recorded: decision.clone(), made: None, places: Vec::new() };
                Replayed { outcome: Outcome::not(&why), beside: Some(beside.into()), ..replayed }
            }
            Ok(making) => {
                let without_basis = !self.bases.contains_key(&decision.basis);
                let input = &making.input.record;
                let is_forgotten = !input.envelope.forgotten.is_empty();
                let input = Some((input.sequence, input.envelope.type_name.clone()));
                let replayed = Replayed { without_basis, input, ..replayed };
                match is_forgotten {
                    true => Replayed { outcome: Outcome::Forgotten, ..replayed },
                    false => making.compared_with(decision, replayed, digesting),
                }
            }
        })
    }

    /// Collects the state, input, catalogue and limits of a decision in this log, with the changes applied.
    fn making(&self, log: &Log, decision: &AgentDecision, changes: &Changes) -> Result<Making<'_>, Unmade> {
        let (mut state, input) = log.before(decision).ok_or(Unmade::NoInput)?;
        changes.change_state(&mut state);
        let catalogue = match (decision.catalogue_version.as_str(), &changes.tools) {
            ("", _) => Cow::Owned(Catalogue::default()),
            // The decision says the version that it was made with, which is not what is compared.
            (version, Some(tools)) => Cow::Owned(Catalogue { version: version.to_owned(), tools: tools.clone() }),
            (version, None) => {
                let known = self.catalogues.get(version);
                Cow::Borrowed(known.ok_or_else(|| Unmade::NoCatalogue(version.to_owned()))?)
            }
        };
        // Builds that said no basis knew of no endings.
        let is_new = decision.completions.iter().any(|completion| !completion.ending.is_empty());
        let limits = if is_new { Limits::default() } else { Limits::of_old_build() };
        let assumed = || Limits { secret_key: self.secret_key, basis: decision.basis.clone(), ..limits };
        let limits = self.bases.get(&decision.basis).map_or_else(|| Cow::Owned(assumed()), Cow::Borrowed);
        Ok(Making { state, input, catalogue, limits: changes.limits(limits) })
    }
}

fn of(agent: Name, sequence: u64) -> Replayed {
    let (input_id, outcome) = (String::new(), Outcome::Same);
    let (input, drifted, beside) = (None, Vec::new(), None);
    Replayed { agent, sequence, input_id, input, outcome, drifted, without_basis: false, beside }
}

/// A decision as it comes out when it is made again: without what was spent in vain before it, and what ties it to what stands
/// before it.
pub fn as_made(decision: &AgentDecision) -> AgentDecision {
    AgentDecision {
        given_up: Vec::new(),
        given_up_cost: 0,
        given_up_unpriced_tokens: 0,
        link: None,
        reader: vocabulary::FIRST,
        ..decision.clone()
    }
}

impl Making<'_> {
    /// Returns a copy that outlives the log it borrows from.
    fn owned(self) -> Making<'static> {
        let Self { state, input, catalogue, limits } = self;
        let (catalogue, limits) = (Cow::Owned(catalogue.into_owned()), Cow::Owned(limits.into_owned()));
        Making { state, input, catalogue, limits }
    }

    fn compared_with(&self, recorded: &AgentDecision, replayed: Replayed, digesting: &mut Digesting) -> Replayed {
        // What was spent in vain before it is no part of what was decided, and neither is what ties it to that.
        let is_bare = recorded.given_up.is_empty() && recorded.link.is_none() && recorded.reader == vocabulary::FIRST;
        let recorded = &*match is_bare {
            true => Cow::Borrowed(recorded),
            false => Cow::Owned(as_made(recorded)),
        };
        let beside =
            |made: Option<AgentDecision>, places| Some(Box::new(Beside { recorded: recorded.clone(), made, places }));
        if recorded.completions.iter().any(is_without_words) {
            let outcome = Outcome::not(&Unmade::WithoutWords);
            return Replayed { outcome, beside: beside(None, Vec::new()), ..replayed };
        }
        let mut recording = Recording::of(recorded, digesting);
        let made = self.make(|question| recording.answer(question));
        let drifted = recording.drifted();
        let made = match made {
            Ok(made) => made,
            Err(why) => {
                return Replayed { outcome: Outcome::not(&why), beside: beside(None, Vec::new()), drifted, ..replayed };
            }
        };
        let places = differences_beside(recorded, &made, || self.known());
        if !places.is_empty() {
            // The one that was made may have been too large to be written.
            let Self { state, input, catalogue, limits } = self;
            let instead = Deliberation::too_large(state, input, catalogue, limits, made.completions.clone());
            if instead.is_some_and(|instead| differences_beside(recorded, &instead, || self.known()).is_empty()) {
                return Replayed { drifted, ..replayed };
            }
        }
        let is_same = places.is_empty() && drifted.is_empty();
        let outcome = judged(places.first());
        let beside = if is_same { None } else { beside(Some(made), places) };
        Replayed { outcome, drifted, beside, ..replayed }
    }

    /// The ids that were there before it was decided.
    fn known(&self) -> HashSet<String> {
        let input = self.input.record.envelope.id.to_string();
        let state = serde_json::to_string(&self.state).unwrap_or_default();
        ids_in(&state).into_iter().chain([input]).collect()
    }

    fn make(&self, mut answer: impl FnMut(&Question) -> Option<Completion>) -> Result<AgentDecision, Unmade> {
        let Self { state, input, catalogue, limits } = self;
        let (mut deliberation, mut next) =
            Deliberation::begin(state, input, catalogue, limits).ok_or(Unmade::Nothing)?;
        loop {
            match next {
                Next::Commit(decision) => return Ok(*decision),
                Next::Ask(questions) => {
                    let answers: Option<Vec<_>> = questions.iter().map(&mut answer).collect();
                    (deliberation, next) = deliberation.resume(answers.ok_or(Unmade::Unanswered)?);
                }
            }
        }
    }
}

impl Outcome {
    fn not(why: &Unmade) -> Self {
        Self::NotReplayable { reason: why.to_string() }
    }
}

fn judged(first: Option<&Difference>) -> Outcome {
    match first.cloned() {
        None => Outcome::Same,
        Some(Difference { at, is_wording: true, .. }) => Outcome::Reworded { at },
        Some(Difference { at, recorded, made, .. }) => Outcome::Differs { at, recorded, made },
    }
}
