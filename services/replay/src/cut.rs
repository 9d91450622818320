//! A log at one place: what stood there, what was in flight, and what came of it later. It is what a fork begins with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kairo_events::{
    ids::Name,
    log_message,
    record::Record,
    subjects::{self, AGENT_MESSAGE},
    vocabulary::{Newer, NotUnderstood},
};
use kairo_mind::replay::Replay;
use kairo_proto::{
    Body,
    v1::{
        AgentAnswer, AgentDecision, AgentDefined, AgentMessage, AgentProfile, Ask, Completion, DecisionBasis,
        LogMessage, ProcessExited, ProcessSpawned, ToolCatalogue, ToolResult,
    },
    words::RequestKind,
};
use serde_json::Value;

use crate::timeline::{Broken, in_order};

/// The reason for which a cut cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum NoCut {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("nothing of {} stands in the log up to message {at}: expected a later place, or another agent", .agents.join(", "))]
    Nobody { at: u64, agents: Vec<String> },
}

/// A call of a tool that the log has, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub tool: String,
    pub arguments: Value,
    pub result: ToolResult,
    /// The position of the result.
    pub at: u64,
}

/// A request to another agent, and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub ask: Ask,
    pub answer: AgentAnswer,
    pub at: u64,
}

/// An action that was decided on up to the cut and had not ended there.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    pub agent: Name,
    /// The id of the action.
    pub action: String,
    pub what: What,
    /// The records behind the cut that concern the action; empty if there are none.
    pub later: Vec<Record>,
}

impl Pending {
    /// Returns true if the log behind the cut has the end of the action.
    pub fn ends(&self) -> bool {
        self.later.iter().any(|record| {
            matches!(
                (&self.what, &record.body),
                (What::Process(_), Body::ProcessExited(_))
                    | (What::Call { .. }, Body::ToolResult(_))
                    | (What::Ask(_), Body::AgentAnswer(_))
            )
        })
    }
}

/// The kind of an action in flight.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Call {
        tool: String,
    },
    Ask(Box<Ask>),
    /// It goes on by itself.
    Process(Box<ProcessSpawned>),
}

/// The answers of models, tools and other agents in the log, on either side of the cut.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Models' answers by the digest of the request, in the order in which they were given.
    pub completions: BTreeMap<String, VecDeque<Completion>>,
    pub calls: Vec<Call>,
    pub answers: Vec<Answered>,
}

#[derive(Clone, Debug)]
struct Begun {
    agent: Name,
    what: Begin,
    /// True if it was decided on up to the cut; `ended_before` is true if it ended up to there, too.
    is_before: bool,
    ended_before: bool,
    process: Option<ProcessSpawned>,
    later: Vec<Record>,
}

#[derive(Clone, Debug)]
enum Begin {
    Call { tool: String, arguments: Value },
    Ask(Box<Ask>),
}

/// A log, as far as it was taken in.
#[derive(Debug)]
pub struct Cut {
    /// None for the end of the log.
    at: Option<u64>,
    /// None for all that the log has.
    agents: BTreeSet<Name>,
    met: BTreeSet<Name>,
    read: u64,
    before: Vec<LogMessage>,
    state: Replay,
    begun: BTreeMap<String, Begun>,
    recorded: Recorded,
    catalogue: Option<ToolCatalogue>,
    basis: Option<DecisionBasis>,
    /// It goes on with what takes a newer build.
    is_over: bool,
}

/// The parts that a fork starts from.
#[derive(Debug)]
pub struct Parts {
    pub at: u64,
    pub agents: BTreeSet<Name>,
    /// The log up to the cut.
    pub before: Vec<LogMessage>,
    /// The agents as they were there.
    pub state: Replay,
    pub pending: Vec<Pending>,
    pub recorded: Recorded,
    /// The newest one up to the cut.
    pub catalogue: Option<ToolCatalogue>,
    pub basis: Option<DecisionBasis>,
}

impl Parts {
    /// An agent's profile at the cut.
    pub fn profile(&self, agent: &Name) -> Option<AgentProfile> {
        let defined = self.before.iter().rev().filter_map(|message| log_message::understand(message).ok()?.ok());
        let of = |record: &Record| subjects::route(&record.subject).is_some_and(|(_, owner)| owner == *agent);
        defined.filter(of).find_map(|record| AgentDefined::of(&record.body)?.profile.clone())
    }

    /// Returns the user who spoke to an agent last.
    pub fn spoke_last(&self, agent: &Name) -> Option<Name> {
        let subject = AGENT_MESSAGE.of(agent);
        let last = self.before.iter().rev().find(|message| message.subject == subject)?;
        let said = log_message::understand(last).ok()?.ok()?;
        Name::parse(&AgentMessage::of(&said.body)?.user).ok()
    }
}

impl Cut {
    /// These agents, or all that the log has, as they were behind the message at `at`, or at the end of the log.
    pub fn new(at: Option<u64>, agents: BTreeSet<Name>) -> Self {
        Self {
            at,
            agents,
            met: BTreeSet::new(),
            read: 0,
            before: Vec::new(),
            state: Replay::new(None),
            begun: BTreeMap::new(),
            recorded: Recorded::default(),
            catalogue: None,
            basis: None,
            is_over: false,
        }
    }

    /// Takes in the next message of the log, on either side of the cut.
    ///
    /// # Errors
    /// When the message is none of a log, or, up to the cut, takes a newer reader or does not follow from what was taken in.
    pub fn take(&mut self, message: &LogMessage) -> Result<(), Broken> {
        let sequence = message.sequence;
        in_order(sequence, self.read)?;
        self.read = sequence;
        let owner = subjects::route(&message.subject).filter(|(route, _)| subjects::is_of_agents(route));
        let agent = owner.map(|(_, agent)| agent);
        let is_anothers = |agent: &Name| !self.agents.is_empty() && !self.agents.contains(agent);
        if self.is_over || agent.as_ref().is_some_and(is_anothers) {
            return Ok(());
        }
        let is_before = self.at.is_none_or(|at| sequence <= at);
        match log_message::understand(message).map_err(|cause| Broken::Foreign { sequence, cause })? {
            Ok(record) => {
                if let Some(agent) = agent {
                    self.note(&agent, &record, is_before);
                    self.met.extend(is_before.then_some(agent));
                }
                if is_before {
                    self.stand(record)?;
                }
            }
            Err(NotUnderstood::Newer(Newer { reader, why })) if is_before => {
                return Err(Broken::Newer { sequence, reader, why });
            }
            // What was recorded before it is of use all the same.
            Err(NotUnderstood::Newer(_)) => self.is_over = true,
            Err(NotUnderstood::Unreadable(_)) if is_before => self.state.pass_over(sequence, &message.subject),
            Err(NotUnderstood::Unreadable(_)) => {}
        }
        if is_before {
            self.before.push(message.clone());
        }
        Ok(())
    }

    /// All that was taken in.
    ///
    /// # Errors
    /// If one of the agents did not exist yet.
    pub fn parts(self) -> Result<Parts, NoCut> {
        let Self { at, agents, met, read, before, state, begun, recorded, catalogue, basis, .. } = self;
        let at = at.unwrap_or(read);
        let missing: Vec<String> = agents.difference(&met).map(Name::to_string).collect();
        if met.is_empty() || !missing.is_empty() {
            return Err(NoCut::Nobody { at, agents: missing });
        }
        let mut pending: Vec<Pending> =
            begun.into_iter().filter_map(|(action, begun)| begun.in_flight(action)).collect();
        pending.sort_by_key(|pending| pending.later.first().map_or(u64::MAX, |record| record.sequence));
        Ok(Parts { at, agents: met, before, state, pending, recorded, catalogue, basis })
    }

    /// Folds what stands before the cut.
    fn stand(&mut self, record: Record) -> Result<(), Broken> {
        let sequence = record.sequence;
        if let Body::ToolCatalogue(catalogue) = &record.body {
            self.catalogue = Some(catalogue.clone());
        }
        if let Body::DecisionBasis(basis) = &record.body {
            self.basis = Some(basis.clone());
        }
        match self.state.follow(record) {
            true => Ok(()),
            false => Err(Broken::Hole { sequence }),
        }
    }

    /// Notes what was asked, what came of it, and what models answered.
    fn note(&mut self, agent: &Name, record: &Record, is_before: bool) {
        if let Some(decision) = AgentDecision::of(&record.body) {
            self.decided(agent, decision, is_before);
        } else if let Some(result) = ToolResult::of(&record.body).filter(|result| !result.late) {
            self.ended(&result.action_id, record, is_before);
            self.called(result, record.sequence);
        } else if let Some(answer) = AgentAnswer::of(&record.body) {
            self.ended(&answer.request_id, record, is_before);
            self.answered(answer, record.sequence);
        } else if let Some(spawned) = ProcessSpawned::of(&record.body) {
            self.spawned(spawned, record, is_before);
        } else if let Some(exited) = ProcessExited::of(&record.body) {
            self.exited(exited, record, is_before);
        }
    }

    fn spawned(&mut self, spawned: &ProcessSpawned, record: &Record, is_before: bool) {
        let Some(begun) = self.begun.get_mut(&spawned.action_id) else { return };
        match is_before {
            true => begun.process = Some(spawned.clone()),
            false if begun.is_before => begun.later.push(record.clone()),
            false => {}
        }
    }

    fn decided(&mut self, agent: &Name, decision: &AgentDecision, is_before: bool) {
        for completion in &decision.completions {
            let answers = self.recorded.completions.entry(completion.request_digest.clone()).or_default();
            answers.push_back(completion.clone());
        }
        for event in &decision.events {
            let what = match (event.tool_call(), event.ask()) {
                (Some(call), _) => Begin::Call { tool: call.tool.clone(), arguments: json(&call.arguments) },
                // Nobody answers an order to leave something.
                (_, Some(ask)) if is_answered(ask) => Begin::Ask(Box::new(ask.clone())),
                _ => continue,
            };
            let agent = agent.clone();
            let begun = Begun { agent, what, is_before, ended_before: false, process: None, later: Vec::new() };
            self.begun.insert(event.event_id.clone(), begun);
        }
    }

    fn ended(&mut self, action: &str, record: &Record, is_before: bool) {
        let Some(begun) = self.begun.get_mut(action) else { return };
        if !is_before && begun.is_before && !begun.ended_before {
            begun.later.push(record.clone());
        }
        begun.ended_before |= is_before;
    }

    fn exited(&mut self, exited: &ProcessExited, record: &Record, is_before: bool) {
        let Some(begun) = self.begun.get_mut(&exited.action_id) else { return };
        if !is_before && begun.is_before {
            begun.later.push(record.clone());
        }
        if is_before {
            begun.process = None;
        }
    }

    fn called(&mut self, result: &ToolResult, at: u64) {
        if let Some(Begin::Call { tool, arguments }) = self.begun.get(&result.action_id).map(|begun| &begun.what) {
            let (tool, arguments) = (tool.clone(), arguments.clone());
            self.recorded.calls.push(Call { tool, arguments, result: result.clone(), at });
        }
    }

    fn answered(&mut self, answer: &AgentAnswer, at: u64) {
        if let Some(Begin::Ask(ask)) = self.begun.get(&answer.request_id).map(|begun| &begun.what) {
            self.recorded.answers.push(Answered { ask: Ask::clone(ask), answer: answer.clone(), at });
        }
    }
}

impl Begun {
    /// Returns the action if it is in flight at the cut.
    fn in_flight(self, action: String) -> Option<Pending> {
        let Self { agent, what, is_before, ended_before, process, later } = self;
        let what = match (what, process) {
            (_, Some(process)) if process.background && is_before => What::Process(Box::new(process)),
            _ if !is_before || ended_before => return None,
            (Begin::Call { tool, .. }, _) => What::Call { tool },
            (Begin::Ask(ask), _) => What::Ask(ask),
        };
        Some(Pending { agent, action, what, later })
    }
}

/// Returns true if the request gets an answer.
pub fn is_answered(ask: &Ask) -> bool {
    matches!(ask.kind_word(), RequestKind::Work | RequestKind::Call | RequestKind::Think)
}

/// Arguments as they are compared: in whatever order.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

impl Recorded {
    /// Returns the result of the `nth` call of this tool with these arguments behind the cut, or else the last one
    /// before it: each recorded result is used once, and the last one from then on.
    pub fn result(&self, tool: &str, arguments: &Value, at: u64, nth: usize) -> Option<&Call> {
        let of = |call: &&Call| call.tool == tool && call.arguments == *arguments;
        let later: Vec<&Call> = self.calls.iter().filter(of).filter(|call| call.at > at).collect();
        later.get(nth).or(later.last()).copied().or_else(|| self.calls.iter().rfind(of))
    }

    /// The answer of another agent to the same, in the same way.
    pub fn answer(&self, ask: &Ask, at: u64, nth: usize) -> Option<&Answered> {
        let of = |it: &&Answered| is_same(&it.ask, ask);
        let later: Vec<&Answered> = self.answers.iter().filter(of).filter(|it| it.at > at).collect();
        later.get(nth).or(later.last()).copied().or_else(|| self.answers.iter().rfind(of))
    }
}

/// Returns true if both make the same request to the same agent.
fn is_same(one: &Ask, other: &Ask) -> bool {
    let of = |ask: &Ask| {
        let arguments = json(&ask.arguments);
        (ask.agent.clone(), ask.kind.clone(), ask.title.clone(), ask.text.clone(), ask.tool.clone(), arguments)
    };
    of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Agent, calls, name, says};

    fn cut(agent: &Agent, at: u64) -> Parts {
        let mut cut = Cut::new(Some(at), [name("ann")].into());
        agent.messages().iter().for_each(|message| cut.take(message).unwrap());
        cut.parts().unwrap()
    }

    /// An agent that calls a tool twice in the same way.
    fn agent() -> (Agent, [u64; 2], [u64; 2]) {
        let mut agent = Agent::new("ann");
        let once = |agent: &mut Agent, result: &str| {
            agent.hears("t", "the time");
            let called = agent.decides(&[calls("tools.now")]);
            let learned = agent.learns(called, result);
            agent.decides(&[says("noon")]);
            (called, learned)
        };
        let (first, second) = (once(&mut agent, "\"12:00\""), once(&mut agent, "\"12:01\""));
        (agent, [first.0, second.0], [first.1, second.1])
    }

    #[test]
    fn what_was_in_flight_is_pending_and_has_what_the_log_says_of_it_later() {
        let (agent, [first, second], [learned, _]) = agent();
        let parts = cut(&agent, first);
        assert_eq!(parts.before.last().map(|message| message.sequence), Some(first));
        let [pending] = parts.pending.as_slice() else { panic!("{:?}", parts.pending) };
        assert_eq!(pending.later.iter().map(|record| record.sequence).collect::<Vec<_>>(), [learned]);
        assert_eq!(pending.what, What::Call { tool: "tools.now".to_owned() });
        assert!(pending.ends());
        assert!(cut(&agent, learned).pending.is_empty(), "it has ended there");
        // What the log says nothing of has no end.
        let mut short = Cut::new(Some(second), [name("ann")].into());
        let before = agent.messages().into_iter().filter(|message| message.sequence <= second);
        before.for_each(|message| short.take(&message).unwrap());
        let parts = short.parts().unwrap();
        assert!(!parts.pending.first().expect("one in flight").ends());
    }

    #[test]
    fn a_recorded_result_is_used_once_and_the_last_one_from_then_on() {
        let (agent, [first, second], learned) = agent();
        let no_arguments = serde_json::json!({});
        let used =
            |parts: &Parts, nth| parts.recorded.result("tools.now", &no_arguments, parts.at, nth).map(|call| call.at);
        let parts = cut(&agent, first);
        assert_eq!([0, 1, 2].map(|nth| used(&parts, nth)), [learned[0], learned[1], learned[1]].map(Some));
        // Behind all of them, the last before.
        let parts = cut(&agent, second + 2);
        assert_eq!([0, 1].map(|nth| used(&parts, nth)), [Some(learned[1]); 2]);
        assert_eq!(parts.recorded.result("tools.now", &serde_json::json!({ "zone": "UTC" }), 1, 0), None);
        assert_eq!(parts.recorded.result("http.get", &no_arguments, 1, 0), None);
    }

    #[test]
    fn who_is_not_there_yet_and_a_hole_are_told() {
        let (agent, [first, _], _) = agent();
        let mut early = Cut::new(Some(2), [name("ann"), name("bob")].into());
        agent.messages().iter().for_each(|message| early.take(message).unwrap());
        let error = early.parts().unwrap_err().to_string();
        assert!(error.contains("ann, bob") && error.contains("message 2"), "{error}");
        let mut holed = Cut::new(Some(first), BTreeSet::new());
        let without_the_message = agent.messages().into_iter().filter(|message| message.sequence != first - 1);
        let broken = without_the_message.map(|message| holed.take(&message)).find_map(Result::err);
        assert!(matches!(broken, Some(Broken::Hole { sequence }) if sequence == first), "{broken:?}");
    }
}
