//! Agents that are composed of others: which member has which tool; and, in a member, what it was asked for. Folded from
//! the log.
//!
//! A call of a member's tool is an action `ask` of the composed agent, in flight like any other call. In the member the request
//! begins a turn of its own, which makes the call under the member's profile, or thinks in a thread of its own, and which ends
//! with the one answer.

use kairo_events::{ids, record::Record, tool_groups};
use kairo_proto::{
    v1::{self, AgentAnswered, AgentDecision, AgentRequest, DecidedEvent, ToolError, ToolResult},
    words::{RequestKind, ToolErrorKind},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    intrinsics,
    state::{AgentState, AgentTurn, Profile, TurnCause, is_none},
    team::{Amount, completion_tokens},
    thread::{Thread, ThreadEntry, cut_to_entry},
};

/// Longest chain of agents that ask each other on behalf of one request.
const PATH: usize = 8;

/// An agent that another is composed of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompositeMember {
    pub agent: String,
    /// The member's purpose, as shown to models.
    pub description: String,
    /// Patterns of the tools offered through the member, as in a profile.
    pub tools: Vec<String>,
}

/// A request from another agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncomingRequest {
    pub from: String,
    pub request_id: String,
    /// The call to make; `None` if the agent is to think.
    pub call: Option<RequestedCall>,
    /// The agents on whose behalf the request is made.
    pub path: Vec<String>,
    /// Spending on the request so far.
    pub spent: Amount,
    /// Model calls allotted to the request; 0 if they are not counted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub model_calls: u32,
}

/// A call that another agent asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    pub tool: String,
    /// A JSON object, as text.
    pub arguments: String,
    /// The unchanged outcome of the tool, once it ended.
    pub outcome: Option<RequestedCallOutcome>,
}

/// The outcome of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedCallOutcome {
    /// JSON, as text.
    pub result: String,
    /// Kind and message of the error, if the call failed.
    pub error: Option<(String, String)>,
}

impl CompositeMember {
    pub(super) fn from_proto(member: &v1::Member) -> Self {
        let v1::Member { agent, description, tools } = member.clone();
        Self { agent, description, tools }
    }
}

impl RequestedCallOutcome {
    fn from_result(result: &ToolResult) -> Self {
        let error = result.error.as_ref().map(|error| (error.kind.clone(), error.message.clone()));
        Self { result: result.result.clone(), error }
    }

    pub fn failed(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { result: String::new(), error: Some((kind.text(), message.into())) }
    }

    pub fn error(&self) -> Option<ToolError> {
        self.error.as_ref().map(|(kind, message)| ToolError { kind: kind.clone(), message: message.clone() })
    }
}

impl Profile {
    /// Returns the member that carries out calls of a tool: the first that has it, unless the agent has it itself.
    pub fn member_with(&self, tool: &str) -> Option<&CompositeMember> {
        if self.members.is_empty() || self.has_tool(tool) || !is_callable_by_others(tool) {
            return None;
        }
        self.members.iter().find(|member| !member.tools.is_empty() && is_listed(tool, &member.tools))
    }
}

/// Returns true if the pattern covers a tool: a name, a prefix with `*`, or `group:` with the name of a group.
pub fn covers(pattern: &str, tool: &str) -> bool {
    if let Some(group) = pattern.strip_prefix(tool_groups::PREFIX) {
        return tool_groups::group(tool) == group;
    }
    match pattern.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => pattern == tool,
    }
}

/// Returns true if a list of patterns covers a tool: names, prefixes with `*`, groups, and each of these behind a `!`,
/// which excludes the tools it covers. A list that only excludes covers everything else.
pub fn is_listed(tool: &str, patterns: &[String]) -> bool {
    let is_taken_out = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(|out| covers(out, tool));
    let mut named = patterns.iter().filter(|pattern| !pattern.starts_with('!')).peekable();
    !is_taken_out && (named.peek().is_none() || named.any(|pattern| covers(pattern, tool)))
}

/// Returns true if other agents may call a member's tool. Intrinsics belong to an agent's own decisions, and tools on
/// actions and processes act on those of their caller.
fn is_callable_by_others(tool: &str) -> bool {
    let is_about_its_own = tool.starts_with("action.") || tool.starts_with("process.") && tool != "process.run";
    !is_about_its_own && intrinsics::by_name(tool).is_none()
}

impl AgentTurn {
    /// Returns the request of another agent that began the turn, if one did.
    pub fn agent_request(&self) -> Option<&IncomingRequest> {
        match &self.cause {
            TurnCause::Request(requested) => Some(requested),
            TurnCause::Message | TurnCause::Event | TurnCause::Task(_) | TurnCause::Work(_) => None,
            TurnCause::Order(_) | TurnCause::Refused { .. } => None,
        }
    }

    fn agent_request_mut(&mut self) -> Option<&mut IncomingRequest> {
        match &mut self.cause {
            TurnCause::Request(requested) => Some(requested),
            TurnCause::Message | TurnCause::Event | TurnCause::Task(_) | TurnCause::Work(_) => None,
            TurnCause::Order(_) | TurnCause::Refused { .. } => None,
        }
    }
}

impl AgentState {
    /// The agents on whose behalf another one is asked in this turn; or why that one cannot be asked.
    pub fn path_to(&self, agent: &str, turn: &AgentTurn, other: &str) -> Result<Vec<String>, String> {
        let of_task = || Some(self.tasks.get(turn.queued_task()?)?.requester()?.path.clone());
        let asked = turn.agent_request().map(|requested| requested.path.clone());
        let mut path = asked.or_else(of_task).unwrap_or_default();
        path.push(agent.to_owned());
        match path.iter().any(|before| before == other) || path.len() >= PATH {
            true => Err(format!("{other} cannot be asked: {} asked each other for this already", path.join(", "))),
            false => Ok(path),
        }
    }

    /// The open turn in which an agent is given what it asked for by this action.
    pub fn turn_of_request(&self, from: &str, request_id: &str) -> Option<(&Uuid, &AgentTurn)> {
        let is_it = |requested: &IncomingRequest| requested.from == from && requested.request_id == request_id;
        self.turns.iter().find(|(_, turn)| turn.agent_request().is_some_and(is_it))
    }

    /// A call, or a thought, that another agent asks for begins a turn.
    pub(super) fn begin_request_turn(&mut self, record: &Record, request: &AgentRequest) {
        let turn_id = record.envelope.id;
        let user = request.user.as_str();
        let call = (request.kind_word() == RequestKind::Call).then(|| RequestedCall {
            tool: request.tool.clone(),
            arguments: request.arguments.clone(),
            outcome: None,
        });
        // A call needs no thread: nobody thinks about it here.
        let thread_id = if call.is_some() { String::new() } else { ids::derive(turn_id, "thread").to_string() };
        let requested = IncomingRequest {
            from: request.from.clone(),
            request_id: request.request_id.clone(),
            call,
            path: request.path.clone(),
            spent: Amount::default(),
            model_calls: request.model_calls,
        };
        self.begin_turn(turn_id, record, TurnCause::Request(requested), &thread_id, user);
        if !thread_id.is_empty() {
            let thread = Thread { user: user.to_owned(), asked: true, ..Thread::default() };
            self.threads.insert(thread_id.clone(), thread.into());
            let words = cut_to_entry(&request.text).as_str().into();
            self.add_entry(record.sequence, &thread_id, ThreadEntry::User { turn: turn_id, words });
        }
        self.mark_outside(&thread_id, turn_id, &request.outside);
    }

    /// The tool of a call that was asked for has ended.
    pub(super) fn apply_requested_call_ended(&mut self, turn: Uuid, result: &ToolResult) {
        let requested = self.turns.get_mut(&turn).and_then(AgentTurn::agent_request_mut);
        if let Some(call) = requested.and_then(|requested| requested.call.as_mut()) {
            call.outcome = Some(RequestedCallOutcome::from_result(result));
        }
    }

    /// Counts what a decision took for what was asked for.
    pub(super) fn spend_on_request(&mut self, turn: Option<Uuid>, decision: &AgentDecision) {
        let requested = turn.and_then(|id| self.turns.get_mut(&id)).and_then(AgentTurn::agent_request_mut);
        if let Some(requested) = requested {
            let tokens = completion_tokens(&decision.completions);
            let amount = Amount { tokens, cost: decision.cost, unpriced: decision.unpriced_tokens };
            requested.spent = requested.spent.plus(amount);
        }
    }

    /// Ends the turn of a request that is answered, and its thread, and returns unused model calls to the asker.
    pub(super) fn apply_request_answered(&mut self, turn: Uuid, event: &DecidedEvent, answered: &AgentAnswered) {
        let left = answered.answer.as_ref().map_or(0, |answer| answer.model_calls_left);
        let correlation = Uuid::parse_str(&event.correlation_id).unwrap_or_default();
        self.call_bounds.return_to_asker(correlation, u64::from(left));
        self.turns.remove(&turn);
        if self.threads.get(&event.thread_id).is_some_and(|thread| thread.asked) {
            self.threads.remove(&event.thread_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_listed;

    #[test]
    fn lists_of_tools_name_and_take_out() {
        let has = |patterns: &[&str], tool: &str| {
            is_listed(tool, &patterns.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
        };
        for (patterns, tool, expected) in [
            (&["tools.*"][..], "tools.now", true),
            (&["tools.*"], "http.get", false),
            (&["*", "!email.*"], "email.send", false),
            (&["*", "!email.*"], "http.get", true),
            (&["!email.*"], "http.get", true),
            (&["!email.*", "email.read"], "email.read", false),
        ] {
            assert_eq!(has(patterns, tool), expected, "{patterns:?} {tool}");
        }
    }
}
