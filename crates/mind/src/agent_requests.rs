//! Requests between agents, and their outcomes. Calls and thoughts have turns of their own, see [`super::composition`].

use kairo_events::record::Record;
use kairo_proto::{
    v1::{AgentAnswer, AgentRequest, Ask, DecidedEvent, ToolCall, ToolError, ToolResult},
    words::{RequestKind, TaskStatus, ToolErrorKind},
};
use serde_json::json;
use uuid::Uuid;

use super::{
    intrinsics::requests,
    state::{AgentState, DirectOrder, TurnCause},
    team::Amount,
};

impl AgentState {
    /// Another agent asks for something: it is decided on without asking a model.
    pub(super) fn apply_request(&mut self, record: &Record, request: &AgentRequest) {
        let (id, tool) = match request.kind_word() {
            // Not in the queue of an agent that works in the background: two that wait for each other's would wait for ever.
            RequestKind::Call | RequestKind::Think => {
                if self.seen.insert(&format!("request/{}", request.request_id)) {
                    self.receive_allotted_calls(record, request);
                    self.begin_request_turn(record, request);
                }
                return;
            }
            RequestKind::Work => (format!("request/{}", request.request_id), requests::ACCEPT),
            RequestKind::Cancel => (format!("withdrawal/{}", request.request_id), requests::WITHDRAW),
            RequestKind::Pause | RequestKind::Resume => (format!("team/{}", record.envelope.id), requests::FOLLOW),
            RequestKind::Unknown(_) => return,
        };
        if !self.seen.insert(&id) {
            return;
        }
        if tool == requests::ACCEPT {
            self.receive_allotted_calls(record, request);
        }
        // What is withdrawn before it comes is not begun any more.
        let is_new = tool == requests::WITHDRAW && self.seen.insert(&format!("request/{}", request.request_id));
        let arguments = json!({
            "request_id": request.request_id,
            "from": request.from,
            "kind": request.kind,
            "title": request.title,
            "text": request.text,
            "path": request.path,
            "outside": request.outside,
            "is_new": is_new,
            "decided": request.decided,
            "model_calls": request.model_calls,
        });
        let order = DirectOrder { tool: tool.to_owned(), arguments: arguments.to_string() };
        self.begin_turn(record.envelope.id, record, TurnCause::Order(order), "", &request.user);
    }

    /// Takes in another agent's answer, as the result of the call that asked for it.
    pub(super) fn apply_answer(&mut self, record: &Record, answer: &AgentAnswer) {
        let Ok(action) = Uuid::parse_str(&answer.request_id) else { return };
        let is_of = |asked: &Option<String>| asked.as_deref() == Some(answer.from.as_str());
        if !self.in_flight.get(&action).is_some_and(|known| is_of(&known.asked)) {
            return;
        }
        self.add_worker_spending(record.envelope.time, Amount::from_proto(answer.spent.as_ref()));
        self.call_bounds.reclaim_unused(record.envelope.correlation_id, u64::from(answer.model_calls_left));
        // Of a call it is what the tool said.
        let result = match answer.kind_word() {
            RequestKind::Call => answer.result.clone(),
            _ => json!({ "agent": answer.from, "status": answer.status, "result": answer.result }).to_string(),
        };
        let in_words = |status: TaskStatus| ToolError {
            kind: if status == TaskStatus::Canceled { ToolErrorKind::Canceled } else { ToolErrorKind::Failed }.text(),
            message: answer.reason.clone(),
        };
        let error = match answer.status_word() {
            TaskStatus::Completed => None,
            status => Some(answer.error.clone().unwrap_or_else(|| in_words(status))),
        };
        let ok = error.is_none();
        let action_id = answer.request_id.clone();
        let outside = answer.outside.clone();
        let result = if ok { result } else { String::new() };
        self.apply_tool_result(record, &ToolResult { action_id, ok, result, error, outside, ..ToolResult::default() });
    }

    /// Something is asked of another agent: what is to be done is in flight from now on.
    pub(super) fn apply_ask(&mut self, record: &Record, after: u64, event: &DecidedEvent, turn_id: Uuid, ask: &Ask) {
        match ask.kind_word() {
            RequestKind::Work | RequestKind::Call | RequestKind::Think => {}
            RequestKind::Cancel => {
                let withdrawn = Uuid::parse_str(&ask.request_id).ok().and_then(|id| self.in_flight.get_mut(&id));
                return withdrawn.into_iter().for_each(|known| known.cancel_requested = true);
            }
            RequestKind::Pause | RequestKind::Resume | RequestKind::Unknown(_) => return,
        }
        let call = ToolCall {
            tool: ask.tool.clone(),
            arguments: ask.arguments.clone(),
            chain_id: ask.chain_id.clone(),
            step: ask.step,
            ..ToolCall::default()
        };
        self.apply_tool_call(record, after, event, turn_id, &call);
        let asked = Uuid::parse_str(&event.event_id).ok().and_then(|action| self.in_flight.get_mut(&action));
        if let Some(known) = asked {
            known.asked = Some(ask.agent.clone());
            known.begun = true;
            known.due = (!ask.due_at.is_empty()).then(|| ask.due_at.clone());
        }
        if let Ok(correlation) = Uuid::parse_str(&event.correlation_id) {
            self.call_bounds.allot_to_agent(correlation, u64::from(ask.model_calls), record.sequence);
        }
    }

    /// Adds the model calls that the asker allots with its request.
    fn receive_allotted_calls(&mut self, record: &Record, request: &AgentRequest) {
        let calls = u64::from(request.model_calls);
        self.call_bounds.receive_allotment(record.envelope.correlation_id, calls, record.sequence);
    }
}
