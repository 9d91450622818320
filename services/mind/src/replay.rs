//! Making the decisions of a log again: each from the state that the log says it was made in, with the completions that it
//! recorded, and compared with what it says. Pure: nothing is asked, nothing is written.
//!
//! * [`basis`](super::basis): what a decision rests on beside the log
//! * `compare`: in what two decisions differ

mod compare;

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
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
    v1::{AgentDecision, Completion, RequestDigests},
};
use serde::Serialize;
use uuid::Uuid;

use self::compare::{Difference, compare};
use super::{
    basis,
    deliberation::{Deliberation, Limits, Next, Question, is_without_words},
    log::{Input, Log, Snapshot},
    request::{Catalogue, ModelRequest, Tool, short_digest},
    state::AgentState,
};

/// Why a decision cannot be made again that the log's answers do not lead to.
const NOTHING: &str = "there is nothing to decide, or more is asked than was recorded";

/// A decision that was made again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    pub agent: Name,
    /// Where the decision stands in the log.
    pub sequence: u64,
    /// The event it is on.
    pub input_id: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Requests that are not the ones that were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<Drift>,
    /// Whether what it rested on was not recorded and the defaults were taken instead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_basis: bool,
}

/// A request that another build builds otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Which of the decision's completions answers it, counted from 1.
    pub request: usize,
    /// What of it is another: system, tools, history, facts; none where the log does not say.
    pub parts: Vec<&'static str>,
}

/// How a decision that was made again compares with the one in the log.
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
}

impl Replayed {
    /// Whether the decision is what the log says, from the very requests it says.
    pub fn is_same(&self) -> bool {
        self.outcome == Outcome::Same && self.drifted.is_empty()
    }
}

/// A log as it is replayed: all of its agents, in its order.
#[derive(Debug, Default)]
pub struct Replay {
    catalogues: BTreeMap<String, Catalogue>,
    bases: BTreeMap<String, Limits>,
    agents: BTreeMap<Name, Log>,
    /// Key under which secrets are sealed, for agents that keep some.
    secret_key: Option<[u8; 32]>,
}

/// What a decision is made again with.
struct Making<'r> {
    state: Arc<AgentState>,
    input: Input,
    catalogue: Cow<'r, Catalogue>,
    limits: Cow<'r, Limits>,
}

/// A model call of a decision, made again.
#[derive(Clone, Debug)]
pub struct Asked {
    pub request: Arc<ModelRequest>,
    /// The answer that the log has of it.
    pub completion: Completion,
    /// In what the request differs from the one that was made then; none where it is the same.
    pub drift: Option<Drift>,
}

impl Replay {
    /// Secrets that the log keeps are sealed under `secret_key`; without it decisions that seal some differ.
    pub fn new(secret_key: Option<[u8; 32]>) -> Self {
        Self { secret_key, ..Self::default() }
    }

    /// Takes in the next record of the log. A decision is made again.
    pub fn take(&mut self, record: Record) -> Option<Replayed> {
        self.note(&record);
        let (route, agent) = subjects::route(&record.subject)?;
        if !subjects::is_of_agents(route) {
            return None;
        }
        let decision = AgentDecision::of(&record.body);
        let replayed = decision.and_then(|decision| self.decide(&agent, &record, decision));
        let log = self.agents.entry(agent.clone()).or_default();
        if log.push(record.clone()).is_ok() {
            return replayed;
        }
        let reason = "it does not follow from what stands before it".to_owned();
        Some(Replayed { outcome: Outcome::NotReplayable { reason }, ..of(agent, &record) })
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

    /// What stands of an agent, after all that was taken in.
    pub fn snapshot(&self, agent: &Name) -> Snapshot {
        self.agents.get(agent).map_or_else(|| Log::default().snapshot(Uuid::nil()), |log| log.snapshot(Uuid::nil()))
    }

    /// The model calls of a decision that is the next record, in their order.
    ///
    /// # Errors
    /// Why they cannot be made again.
    pub fn asked(&self, record: &Record) -> Result<Vec<Asked>, String> {
        let decision = AgentDecision::of(&record.body).ok_or("it is no decision")?;
        let agent = subjects::route(&record.subject).map(|(_, agent)| agent).ok_or("it is no agent's")?;
        let empty = Log::default();
        let log = self.agents.get(&agent).unwrap_or(&empty);
        if !log.is_new(record.sequence, decision) {
            return Err("it is a copy of a decision, and decides nothing".to_owned());
        }
        let mut recording = Recording::of(decision);
        let made = self.making(log, decision)?.make(&mut recording);
        // What was asked up to there is of use in any case.
        match made.is_some() || !recording.asked.is_empty() {
            true => Ok(recording.asked),
            false => Err(NOTHING.to_owned()),
        }
    }

    /// None for a copy, which decides nothing.
    fn decide(&self, agent: &Name, record: &Record, decision: &AgentDecision) -> Option<Replayed> {
        let empty = Log::default();
        let log = self.agents.get(agent).unwrap_or(&empty);
        if !log.is_new(record.sequence, decision) {
            return None;
        }
        let replayed = Replayed { input_id: decision.input_id.clone(), ..of(agent.clone(), record) };
        match self.making(log, decision) {
            Err(reason) => Some(Replayed { outcome: Outcome::NotReplayable { reason }, ..replayed }),
            Ok(making) => {
                let (outcome, drifted) = making.compared_with(decision);
                let without_basis = !self.bases.contains_key(&decision.basis);
                Some(Replayed { outcome, drifted, without_basis, ..replayed })
            }
        }
    }

    /// What a decision of this log is made again with.
    fn making(&self, log: &Log, decision: &AgentDecision) -> Result<Making<'_>, String> {
        let (state, input) = log.before(decision).ok_or("what it is on is not in the log")?;
        let catalogue = match decision.catalogue_version.as_str() {
            "" => Cow::Owned(Catalogue::default()),
            version => {
                let known = self.catalogues.get(version);
                Cow::Borrowed(known.ok_or_else(|| format!("the catalogue {version} is not in the log"))?)
            }
        };
        let assumed = || Limits { secret_key: self.secret_key, basis: decision.basis.clone(), ..Limits::default() };
        let limits = self.bases.get(&decision.basis).map_or_else(|| Cow::Owned(assumed()), Cow::Borrowed);
        Ok(Making { state, input, catalogue, limits })
    }
}

fn of(agent: Name, record: &Record) -> Replayed {
    let (sequence, input_id) = (record.sequence, String::new());
    Replayed { agent, sequence, input_id, outcome: Outcome::Same, drifted: Vec::new(), without_basis: false }
}

impl Making<'_> {
    fn compared_with(&self, recorded: &AgentDecision) -> (Outcome, Vec<Drift>) {
        if recorded.completions.iter().any(is_without_words) {
            let reason = "what the models answered was too large to be kept".to_owned();
            return (Outcome::NotReplayable { reason }, Vec::new());
        }
        // What was spent in vain before it is no part of what was decided.
        let (given_up, reader) = (Vec::new(), vocabulary::FIRST);
        let recorded = &AgentDecision { given_up, reader, ..recorded.clone() };
        let mut recording = Recording::of(recorded);
        let Some(made) = self.make(&mut recording) else {
            return (Outcome::NotReplayable { reason: NOTHING.to_owned() }, recording.drifted());
        };
        let mut outcome = judged(compare(recorded, &made));
        if outcome != Outcome::Same {
            // The one that was made may have been too large to be written.
            let Self { state, input, catalogue, limits } = self;
            let instead = Deliberation::too_large(state, input, catalogue, limits, made.completions);
            if instead.is_some_and(|instead| compare(recorded, &instead).is_none()) {
                outcome = Outcome::Same;
            }
        }
        (outcome, recording.drifted())
    }

    fn make(&self, recording: &mut Recording) -> Option<AgentDecision> {
        let Self { state, input, catalogue, limits } = self;
        let (mut deliberation, mut next) = Deliberation::begin(state, input, catalogue, limits)?;
        loop {
            match next {
                Next::Commit(decision) => return Some(decision),
                Next::Ask(questions) => {
                    let answers: Option<Vec<_>> = questions.iter().map(|question| recording.answer(question)).collect();
                    (deliberation, next) = deliberation.resume(answers?);
                }
            }
        }
    }
}

fn judged(difference: Option<Difference>) -> Outcome {
    match difference {
        None => Outcome::Same,
        Some(Difference { at, is_wording: true, .. }) => Outcome::Reworded { at },
        Some(Difference { at, recorded, made, .. }) => Outcome::Differs { at, recorded, made },
    }
}

/// The completions of a decision, as they answer what is asked again.
struct Recording {
    /// With their numbers, counted from 1.
    left: VecDeque<(usize, Completion)>,
    /// Answers that were given twice: whoever decided had paid for them once.
    given: BTreeMap<String, Completion>,
    asked: Vec<Asked>,
}

impl Recording {
    fn of(decision: &AgentDecision) -> Self {
        let left = (1..).zip(decision.completions.iter().cloned()).collect();
        Self { left, given: BTreeMap::new(), asked: Vec::new() }
    }

    fn drifted(&self) -> Vec<Drift> {
        self.asked.iter().filter_map(|asked| asked.drift.clone()).collect()
    }

    /// The answer to this very request or, where there is none, the next one that was not given yet.
    fn answer(&mut self, question: &Question) -> Option<Completion> {
        let digest = question.request.digest();
        let at = self.left.iter().position(|(_, completion)| completion.request_digest == digest);
        let (completion, drift) = match at.and_then(|at| self.left.remove(at)) {
            Some((_, completion)) => (completion, None),
            None => match self.given.get(&digest) {
                Some(completion) => return Some(completion.clone()),
                None => {
                    let (request, completion) = self.left.pop_front()?;
                    let parts = differing(&question.request, completion.digests.as_ref());
                    (completion, Some(Drift { request, parts }))
                }
            },
        };
        self.given.insert(digest, completion.clone());
        self.asked.push(Asked { request: question.request.clone(), completion: completion.clone(), drift });
        Some(completion)
    }
}

/// The parts of a request that are not what was recorded.
fn differing(request: &ModelRequest, recorded: Option<&RequestDigests>) -> Vec<&'static str> {
    let Some(recorded) = recorded else { return Vec::new() };
    let made = request.digests(short_digest(&serde_json::to_vec(&request.tools).unwrap_or_default()));
    let compared = [
        ("system", made.system, recorded.system),
        ("tools", made.tools, recorded.tools),
        ("history", made.history, recorded.history),
        ("facts", made.facts, recorded.facts),
    ];
    compared.into_iter().filter(|(_, made, recorded)| made != recorded).map(|(part, ..)| part).collect()
}
