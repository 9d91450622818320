//! A log at one place: what stood there, what was in flight, and what came of it later. It is what a fork begins with.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kairo_events::{
    ids::Name,
    log_message,
    record::Record,
    subjects::{self, AGENT_MESSAGE},
    vocabulary::{NewerReaderNeeded, NotUnderstood},
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

use crate::timeline::{BrokenLog, check_order};

/// The reason for which a cut cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    #[error(transparent)]
    Broken(#[from] BrokenLog),
    #[error("nothing of {} stands in the log up to message {at}: expected a later place, or another agent", .agents.join(", "))]
    Nobody { at: u64, agents: Vec<String> },
}

/// A call of a tool that the log has, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    pub tool: String,
    pub arguments: Value,
    pub result: ToolResult,
    /// The position of the result.
    pub at: u64,
}

/// A request to another agent, and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedAnswer {
    pub ask: Ask,
    pub answer: AgentAnswer,
    pub at: u64,
}

/// An action that was decided on up to the cut and had not ended there.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingAction {
    pub agent: Name,
    /// The id of the action.
    pub action: String,
    pub what: PendingActionKind,
    /// The records behind the cut that concern the action; empty if there are none.
    pub later: Vec<Record>,
}

impl PendingAction {
    /// Returns true if the log behind the cut has the end of the action.
    pub fn has_recorded_end(&self) -> bool {
        self.later.iter().any(|record| {
            matches!(
                (&self.what, &record.body),
                (PendingActionKind::Process(_), Body::ProcessExited(_))
                    | (PendingActionKind::Call { .. }, Body::ToolResult(_))
                    | (PendingActionKind::Ask(_), Body::AgentAnswer(_))
            )
        })
    }
}

/// The kind of an action in flight.
#[derive(Clone, Debug, PartialEq)]
pub enum PendingActionKind {
    Call {
        tool: String,
    },
    Ask(Box<Ask>),
    /// It goes on by itself.
    Process(Box<ProcessSpawned>),
}

/// The answers of models, tools and other agents in the log, on either side of the cut.
#[derive(Clone, Debug, Default)]
pub struct RecordedResults {
    /// Models' answers by the digest of the request, in the order in which they were given.
    pub completions: BTreeMap<String, VecDeque<Completion>>,
    pub calls: Vec<RecordedCall>,
    pub answers: Vec<RecordedAnswer>,
}

#[derive(Clone, Debug)]
struct StartedAction {
    agent: Name,
    what: StartedActionKind,
    /// True if it was decided on up to the cut; `ended_before` is true if it ended up to there, too.
    is_before: bool,
    ended_before: bool,
    process: Option<ProcessSpawned>,
    later: Vec<Record>,
}

#[derive(Clone, Debug)]
enum StartedActionKind {
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
    begun: BTreeMap<String, StartedAction>,
    recorded: RecordedResults,
    catalogue: Option<ToolCatalogue>,
    basis: Option<DecisionBasis>,
    /// It goes on with what takes a newer build.
    is_over: bool,
}

/// The parts that a fork starts from.
#[derive(Debug)]
pub struct ForkParts {
    pub at: u64,
    pub agents: BTreeSet<Name>,
    /// The log up to the cut.
    pub before: Vec<LogMessage>,
    /// The agents as they were there.
    pub state: Replay,
    pub pending: Vec<PendingAction>,
    pub recorded: RecordedResults,
    /// The newest one up to the cut.
    pub catalogue: Option<ToolCatalogue>,
    pub basis: Option<DecisionBasis>,
}

impl ForkParts {
    /// An agent's profile at the cut.
    pub fn profile(&self, agent: &Name) -> Option<AgentProfile> {
        let defined = self.before.iter().rev().filter_map(|message| log_message::decode_record(message).ok()?.ok());
        let of = |record: &Record| subjects::find_route(&record.subject).is_some_and(|(_, owner)| owner == *agent);
        defined.filter(of).find_map(|record| AgentDefined::of(&record.body)?.profile.clone())
    }

    /// Returns the user who spoke to an agent last.
    pub fn last_speaker(&self, agent: &Name) -> Option<Name> {
        let subject = AGENT_MESSAGE.of_owner(agent);
        let last = self.before.iter().rev().find(|message| message.subject == subject)?;
        let said = log_message::decode_record(last).ok()?.ok()?;
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
            recorded: RecordedResults::default(),
            catalogue: None,
            basis: None,
            is_over: false,
        }
    }

    /// Takes in the next message of the log, on either side of the cut.
    ///
    /// # Errors
    /// When the message is none of a log, or, up to the cut, takes a newer reader or does not follow from what was taken in.
    pub fn apply(&mut self, message: &LogMessage) -> Result<(), BrokenLog> {
        let sequence = message.sequence;
        check_order(sequence, self.read)?;
        self.read = sequence;
        let owner = subjects::find_route(&message.subject).filter(|(route, _)| subjects::is_agent_route(route));
        let agent = owner.map(|(_, agent)| agent);
        let is_anothers = |agent: &Name| !self.agents.is_empty() && !self.agents.contains(agent);
        if self.is_over || agent.as_ref().is_some_and(is_anothers) {
            return Ok(());
        }
        let is_before = self.at.is_none_or(|at| sequence <= at);
        match log_message::decode_record(message).map_err(|cause| BrokenLog::Foreign { sequence, cause })? {
            Ok(record) => {
                if let Some(agent) = agent {
                    self.index_record(&agent, &record, is_before);
                    self.met.extend(is_before.then_some(agent));
                }
                if is_before {
                    self.apply_record(record)?;
                }
            }
            Err(NotUnderstood::Newer(NewerReaderNeeded { reader, why })) if is_before => {
                return Err(BrokenLog::Newer { sequence, reader, why });
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
    pub fn into_parts(self) -> Result<ForkParts, CutError> {
        let Self { at, agents, met, read, before, state, begun, recorded, catalogue, basis, .. } = self;
        let at = at.unwrap_or(read);
        let missing: Vec<String> = agents.difference(&met).map(Name::to_string).collect();
        if met.is_empty() || !missing.is_empty() {
            return Err(CutError::Nobody { at, agents: missing });
        }
        let mut pending: Vec<PendingAction> =
            begun.into_iter().filter_map(|(action, begun)| begun.into_pending(action)).collect();
        pending.sort_by_key(|pending| pending.later.first().map_or(u64::MAX, |record| record.sequence));
        Ok(ForkParts { at, agents: met, before, state, pending, recorded, catalogue, basis })
    }

    /// Folds what stands before the cut.
    fn apply_record(&mut self, record: Record) -> Result<(), BrokenLog> {
        let sequence = record.sequence;
        if let Body::ToolCatalogue(catalogue) = &record.body {
            self.catalogue = Some(catalogue.clone());
        }
        if let Body::DecisionBasis(basis) = &record.body {
            self.basis = Some(basis.clone());
        }
        match self.state.apply_record(record) {
            true => Ok(()),
            false => Err(BrokenLog::Hole { sequence }),
        }
    }

    /// Notes what was asked, what came of it, and what models answered.
    fn index_record(&mut self, agent: &Name, record: &Record, is_before: bool) {
        if let Some(decision) = AgentDecision::of(&record.body) {
            self.record_decision(agent, decision, is_before);
        } else if let Some(result) = ToolResult::of(&record.body).filter(|result| !result.late) {
            self.record_end(&result.action_id, record, is_before);
            self.record_call_result(result, record.sequence);
        } else if let Some(answer) = AgentAnswer::of(&record.body) {
            self.record_end(&answer.request_id, record, is_before);
            self.record_answer(answer, record.sequence);
        } else if let Some(spawned) = ProcessSpawned::of(&record.body) {
            self.record_process_start(spawned, record, is_before);
        } else if let Some(exited) = ProcessExited::of(&record.body) {
            self.record_process_exit(exited, record, is_before);
        }
    }

    fn record_process_start(&mut self, spawned: &ProcessSpawned, record: &Record, is_before: bool) {
        let Some(begun) = self.begun.get_mut(&spawned.action_id) else { return };
        match is_before {
            true => begun.process = Some(spawned.clone()),
            false if begun.is_before => begun.later.push(record.clone()),
            false => {}
        }
    }

    fn record_decision(&mut self, agent: &Name, decision: &AgentDecision, is_before: bool) {
        for completion in &decision.completions {
            let answers = self.recorded.completions.entry(completion.request_digest.clone()).or_default();
            answers.push_back(completion.clone());
        }
        for event in &decision.events {
            let what = match (event.tool_call(), event.ask()) {
                (Some(call), _) => {
                    StartedActionKind::Call { tool: call.tool.clone(), arguments: parse_arguments(&call.arguments) }
                }
                // Nobody answers an order to leave something.
                (_, Some(ask)) if expects_answer(ask) => StartedActionKind::Ask(Box::new(ask.clone())),
                _ => continue,
            };
            let agent = agent.clone();
            let begun = StartedAction { agent, what, is_before, ended_before: false, process: None, later: Vec::new() };
            self.begun.insert(event.event_id.clone(), begun);
        }
    }

    fn record_end(&mut self, action: &str, record: &Record, is_before: bool) {
        let Some(begun) = self.begun.get_mut(action) else { return };
        if !is_before && begun.is_before && !begun.ended_before {
            begun.later.push(record.clone());
        }
        begun.ended_before |= is_before;
    }

    fn record_process_exit(&mut self, exited: &ProcessExited, record: &Record, is_before: bool) {
        let Some(begun) = self.begun.get_mut(&exited.action_id) else { return };
        if !is_before && begun.is_before {
            begun.later.push(record.clone());
        }
        if is_before {
            begun.process = None;
        }
    }

    fn record_call_result(&mut self, result: &ToolResult, at: u64) {
        if let Some(StartedActionKind::Call { tool, arguments }) =
            self.begun.get(&result.action_id).map(|begun| &begun.what)
        {
            let tool = tool.clone();
            let arguments = arguments.clone();
            self.recorded.calls.push(RecordedCall { tool, arguments, result: result.clone(), at });
        }
    }

    fn record_answer(&mut self, answer: &AgentAnswer, at: u64) {
        if let Some(StartedActionKind::Ask(ask)) = self.begun.get(&answer.request_id).map(|begun| &begun.what) {
            self.recorded.answers.push(RecordedAnswer { ask: Ask::clone(ask), answer: answer.clone(), at });
        }
    }
}

impl StartedAction {
    /// Returns the action if it is in flight at the cut.
    fn into_pending(self, action: String) -> Option<PendingAction> {
        let Self { agent, what, is_before, ended_before, process, later } = self;
        let what = match (what, process) {
            (_, Some(process)) if process.background && is_before => PendingActionKind::Process(Box::new(process)),
            _ if !is_before || ended_before => return None,
            (StartedActionKind::Call { tool, .. }, _) => PendingActionKind::Call { tool },
            (StartedActionKind::Ask(ask), _) => PendingActionKind::Ask(ask),
        };
        Some(PendingAction { agent, action, what, later })
    }
}

/// Returns true if the request gets an answer.
pub fn expects_answer(ask: &Ask) -> bool {
    matches!(ask.kind_word(), RequestKind::Work | RequestKind::Call | RequestKind::Think)
}

/// Arguments as they are compared: in whatever order.
fn parse_arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

impl RecordedResults {
    /// Returns the result of the `nth` call of this tool with these arguments behind the cut, or else the last one
    /// before it: each recorded result is used once, and the last one from then on.
    pub fn find_call(&self, tool: &str, arguments: &Value, at: u64, nth: usize) -> Option<&RecordedCall> {
        let of = |call: &&RecordedCall| call.tool == tool && call.arguments == *arguments;
        let later: Vec<&RecordedCall> = self.calls.iter().filter(of).filter(|call| call.at > at).collect();
        later.get(nth).or(later.last()).copied().or_else(|| self.calls.iter().rfind(of))
    }

    /// The answer of another agent to the same, in the same way.
    pub fn find_answer(&self, ask: &Ask, at: u64, nth: usize) -> Option<&RecordedAnswer> {
        let of = |it: &&RecordedAnswer| is_same_request(&it.ask, ask);
        let later: Vec<&RecordedAnswer> = self.answers.iter().filter(of).filter(|it| it.at > at).collect();
        later.get(nth).or(later.last()).copied().or_else(|| self.answers.iter().rfind(of))
    }
}

/// Returns true if both make the same request to the same agent.
fn is_same_request(one: &Ask, other: &Ask) -> bool {
    let of = |ask: &Ask| {
        let arguments = parse_arguments(&ask.arguments);
        (ask.agent.clone(), ask.kind.clone(), ask.title.clone(), ask.text.clone(), ask.tool.clone(), arguments)
    };
    of(one) == of(other)
}
