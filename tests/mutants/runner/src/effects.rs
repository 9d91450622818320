//! All that the mind makes of a log, whether replay compares it or not: what tells a mutant that replay overlooks from one of which
//! nothing comes in these logs.

use std::{
    collections::{BTreeMap, VecDeque, hash_map::DefaultHasher},
    fmt::Debug,
    hash::{Hash, Hasher},
};

use kairo_events::{ids::Name, log_message, record::Record, subjects};
use kairo_mind::{
    build_pin,
    deliberation::{DecisionLimits, Deliberation, DeliberationStep, ModelQuestion},
    log::Log,
    request::{Catalogue, Tool},
};
use kairo_proto::{
    Body,
    v1::{AgentDecision, Completion, LogMessage},
};
use serde::Serialize;
use uuid::Uuid;

/// Digests of what was made of logs.
#[derive(Default, Serialize)]
pub struct Effects {
    /// The digest of all decisions, with every id.
    decisions: Digest,
    /// The digest of all questions, with facts that no model is sent: whether a user watches, how long is waited, which
    /// calls need consent.
    questions: Digest,
    /// The digest of the agents' states behind every message.
    states: Digest,
}

#[derive(Default, Serialize)]
#[serde(transparent)]
struct Digest(u64);

impl Digest {
    fn add(&mut self, made: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.0, made).hash(&mut hasher);
        self.0 = hasher.finish();
    }

    fn add_shown(&mut self, made: &impl Debug) {
        self.add(format!("{made:?}"));
    }
}

/// The facts that decisions of a log rest on, as far as it was read.
#[derive(Default)]
struct Known {
    catalogues: BTreeMap<String, Catalogue>,
    limits: BTreeMap<String, DecisionLimits>,
    logs: BTreeMap<Name, Log>,
}

impl Effects {
    /// Adds what is made of a log.
    pub fn add(&mut self, log: &[LogMessage]) {
        let mut known = Known::default();
        for message in log {
            let Ok(Ok(record)) = log_message::decode_record(message) else { continue };
            known.note(&record);
            let Some((_, agent)) =
                subjects::find_route(&record.subject).filter(|(route, _)| subjects::is_agent_route(route))
            else {
                continue;
            };
            if let Some(decision) = AgentDecision::of(&record.body) {
                self.decide(&known, &agent, &record, decision);
            }
            let log = known.logs.entry(agent).or_default();
            self.states.add(log.push(record).is_ok());
            self.states.add(serde_json::to_string(&log.snapshot(Uuid::nil())).unwrap_or_default());
        }
    }

    fn decide(&mut self, known: &Known, agent: &Name, record: &Record, decision: &AgentDecision) {
        let (nothing, no_tools, no_limits) = (Log::default(), Catalogue::default(), DecisionLimits::default());
        let log = known.logs.get(agent).unwrap_or(&nothing);
        let before = log.is_new(record.sequence, decision).then(|| log.state_before(decision)).flatten();
        let Some((state, input)) = before else { return self.decisions.add("none") };
        let catalogue = known.catalogues.get(&decision.catalogue_version).unwrap_or(&no_tools);
        let limits = known.limits.get(&decision.basis).unwrap_or(&no_limits);
        let mut answers = Answers { left: decision.completions.iter().cloned().collect(), given: BTreeMap::new() };
        let mut deliberating = Deliberation::begin(&state, &input, catalogue, limits);
        while let Some((deliberation, next)) = deliberating {
            deliberating = match next {
                DeliberationStep::Commit(made) => {
                    self.decisions.add_shown(&made);
                    None
                }
                DeliberationStep::Ask(questions) => {
                    questions.iter().for_each(|question| self.questions.add_shown(question));
                    let answers: Option<Vec<_>> = questions.iter().map(|question| answers.to(question)).collect();
                    answers.map(|answers| deliberation.resume(answers))
                }
            };
        }
    }
}

impl Known {
    fn note(&mut self, record: &Record) {
        if let Body::ToolCatalogue(catalogue) = &record.body {
            let version = catalogue.version.clone();
            let tools = catalogue.tools.iter().cloned().map(Tool::from).collect();
            self.catalogues.insert(version.clone(), Catalogue { version, tools });
        }
        if let Body::DecisionBasis(recorded) = &record.body {
            self.limits.insert(recorded.digest.clone(), build_pin::recorded_limits(recorded));
        }
    }
}

/// The answers of a decision, each to its request or, where there is none for it, the next.
struct Answers {
    left: VecDeque<Completion>,
    given: BTreeMap<String, Completion>,
}

impl Answers {
    fn to(&mut self, question: &ModelQuestion) -> Option<Completion> {
        let digest = question.request.digest();
        let at = self.left.iter().position(|completion| completion.request_digest == digest);
        let answer = match (at, self.given.get(&digest)) {
            (Some(at), _) => self.left.remove(at),
            (None, Some(given)) => Some(given.clone()),
            (None, None) => self.left.pop_front(),
        }?;
        self.given.insert(digest, answer.clone());
        Some(answer)
    }
}
