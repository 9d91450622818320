//! Builds the text and calls of a thread's message from the stored rows. Pure.

use std::collections::{BTreeMap, HashMap};

use kairo_core::record::Record;
use kairo_proto::{
    v1::{
        AgentDecision, ChainStepEnded, DecidedEvent, Json, PartRow, TaskEnded, ThreadMessageRow, ThreadToolCallRow,
        agent_action::Action, decided_event::Event,
    },
    words::{MessageRole, StepState, TaskKind, TaskStatus, ThreadMessageRole},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::sql_values::Time;

/// The origin of a message, and its place among all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMessageEntry {
    pub number: u64,
    /// The position in the log at which it came into the thread.
    pub sequence: u64,
    pub position: u32,
    pub origin: EntryOrigin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryOrigin {
    /// A user's message, or what was said elsewhere, by its event.
    User(Uuid),
    /// The end of a call, by its action.
    End(Uuid),
    /// The words and calls of the decision at that position.
    Decision,
    /// A call of this tool, which the agent itself carried out.
    Step(String),
    /// The end of that step.
    StepEnd(String),
}

impl EntryOrigin {
    pub fn message_event(&self) -> Option<Uuid> {
        if let Self::User(event) = self { Some(*event) } else { None }
    }

    pub fn ended_action(&self) -> Option<Uuid> {
        if let Self::End(action) = self { Some(*action) } else { None }
    }

    /// Returns true if a decision holds the message.
    pub fn is_decided(&self) -> bool {
        matches!(self, Self::Decision | Self::Step(_) | Self::StepEnd(_))
    }
}

/// The stored rows of a page of a thread.
#[derive(Debug, Default)]
pub struct ThreadContent {
    pub inputs: HashMap<Uuid, InputMessage>,
    pub ends: HashMap<Uuid, CallEnd>,
    /// By their places.
    pub events: BTreeMap<(u64, u32), TimedEvent>,
    pub tasks: HashMap<Uuid, TaskText>,
}

/// A user's words, or what was said elsewhere.
#[derive(Debug)]
pub struct InputMessage {
    pub event_id: Uuid,
    pub sequence: u64,
    pub position: u32,
    pub ts: Time,
    pub correlation_id: Uuid,
    pub role: String,
    pub text: String,
    pub parts: Vec<PartRow>,
}

/// The end of a call, with its result or error.
#[derive(Debug)]
pub struct CallEnd {
    pub action_id: Uuid,
    pub correlation_id: Uuid,
    pub ended_at: Time,
    pub ok: bool,
    pub result: Option<Value>,
    pub error_kind: Option<String>,
    pub error_message: Option<String>,
}

/// The title and text of a task.
#[derive(Debug)]
pub struct TaskText {
    pub task_id: Uuid,
    pub title: String,
    pub text: Option<String>,
}

/// An event of a decision.
#[derive(Debug)]
pub struct TimedEvent {
    pub at: Time,
    pub event: DecidedEvent,
}

impl TimedEvent {
    pub fn from_record(record: &Record, position: u32) -> Option<Self> {
        let events = &AgentDecision::of(&record.body)?.events;
        let event = events.get(usize::try_from(position).ok()?)?.clone();
        Some(Self { at: Time(record.envelope.time), event })
    }

    /// The task that it begins.
    pub fn started_task(&self) -> Option<Uuid> {
        let Some(Event::TaskStarted(started)) = &self.event.event else { return None };
        started.task_id.parse().ok()
    }
}

/// The message of an entry. There is one in any case, so that numbers have no gaps.
pub fn build_message(entry: &ThreadMessageEntry, thread: &ThreadContent) -> ThreadMessageRow {
    let row = ThreadMessageRow {
        sequence: entry.number,
        log_sequence: entry.sequence,
        position: entry.position,
        ..ThreadMessageRow::default()
    };
    match &entry.origin {
        EntryOrigin::User(event) => user_row(row, thread.inputs.get(event)),
        EntryOrigin::End(action) => tool_row(row, *action, thread.ends.get(action)),
        EntryOrigin::Decision => decision_row(row, entry, thread),
        EntryOrigin::Step(tool) => step_call_row(row, tool, thread.events.get(&(entry.sequence, entry.position))),
        EntryOrigin::StepEnd(_) => step_end_row(row, thread.events.get(&(entry.sequence, entry.position))),
    }
}

fn user_row(row: ThreadMessageRow, heard: Option<&InputMessage>) -> ThreadMessageRow {
    let row = ThreadMessageRow { role: ThreadMessageRole::User.text(), ..row };
    let Some(heard) = heard else { return row };
    let role = match MessageRole::from(heard.role.as_str()) {
        MessageRole::Agent => ThreadMessageRole::Assistant,
        MessageRole::User | MessageRole::Failure | MessageRole::Unknown(_) => ThreadMessageRole::User,
    };
    ThreadMessageRow {
        role: role.text(),
        // It stands before what put it into the thread.
        log_sequence: heard.sequence,
        position: heard.position,
        correlation_id: heard.correlation_id.to_string(),
        timestamp: Some(heard.ts.into()),
        content: heard.text.clone(),
        parts: heard.parts.clone(),
        ..row
    }
}

fn tool_row(row: ThreadMessageRow, action: Uuid, end: Option<&CallEnd>) -> ThreadMessageRow {
    let tool_call_id = Some(action.to_string());
    let row = ThreadMessageRow { role: ThreadMessageRole::Tool.text(), tool_call_id, ..row };
    let Some(end) = end else { return row };
    let content = match (&end.result, end.ok) {
        (Some(Value::String(text)), true) => text.clone(),
        (Some(result), true) => result.to_string(),
        (None, true) => String::new(),
        (_, false) => {
            let parts = [&end.error_kind, &end.error_message].map(|part| part.as_deref().unwrap_or_default());
            let told: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            told.join(": ")
        }
    };
    ThreadMessageRow {
        correlation_id: end.correlation_id.to_string(),
        timestamp: Some(end.ended_at.into()),
        content,
        ok: Some(end.ok),
        ..row
    }
}

fn decision_row(row: ThreadMessageRow, entry: &ThreadMessageEntry, thread: &ThreadContent) -> ThreadMessageRow {
    let Some(first) = thread.events.get(&(entry.sequence, entry.position)) else {
        return ThreadMessageRow { role: ThreadMessageRole::Assistant.text(), ..row };
    };
    let row = ThreadMessageRow {
        correlation_id: first.event.correlation_id.clone(),
        timestamp: Some(first.at.into()),
        ..row
    };
    if let Some(task) = first.started_task() {
        let task = thread.tasks.get(&task);
        let text = task.map(|task| task.text.clone().unwrap_or_else(|| task.title.clone()));
        return ThreadMessageRow { role: ThreadMessageRole::User.text(), content: text.unwrap_or_default(), ..row };
    }
    if let Some(Event::ThreadCompacted(compacted)) = &first.event.event {
        return ThreadMessageRow { role: ThreadMessageRole::System.text(), content: compacted.summary.clone(), ..row };
    }
    if let Some(Event::TaskEnded(ended)) = &first.event.event {
        return task_end_row(row, ended);
    }
    let places = (entry.sequence, 0)..=(entry.sequence, u32::MAX);
    action_row(row, thread.events.range(places).map(|(_, decided)| &decided.event))
}

/// Builds the message for the end of a task, in the thread that worked on it.
fn task_end_row(row: ThreadMessageRow, ended: &TaskEnded) -> ThreadMessageRow {
    if ended.status_word() == TaskStatus::Completed {
        return ThreadMessageRow { role: ThreadMessageRole::Assistant.text(), content: ended.result.clone(), ..row };
    }
    let told: Vec<&str> = [ended.status.as_str(), &ended.reason].into_iter().filter(|part| !part.is_empty()).collect();
    ThreadMessageRow { role: ThreadMessageRole::System.text(), content: told.join(": "), ..row }
}

/// A call that the agent itself carried out.
fn step_call_row(row: ThreadMessageRow, tool: &str, decided: Option<&TimedEvent>) -> ThreadMessageRow {
    let row = ThreadMessageRow { role: ThreadMessageRole::Assistant.text(), ..row };
    let Some((row, event, ended)) = with_step_end(row.clone(), decided) else { return row };
    ThreadMessageRow { tool_calls: vec![tool_call_row(event, tool, &ended.params)], ..row }
}

fn step_end_row(row: ThreadMessageRow, decided: Option<&TimedEvent>) -> ThreadMessageRow {
    let row = ThreadMessageRow { role: ThreadMessageRole::Tool.text(), ..row };
    let Some((row, event, ended)) = with_step_end(row.clone(), decided) else { return row };
    let ok = ended.outcome_word() == StepState::Done;
    let reason = || {
        let told = [ended.outcome.as_str(), &ended.reason].into_iter().filter(|part| !part.is_empty());
        told.collect::<Vec<_>>().join(": ")
    };
    let content = if ok { ended.result.clone() } else { reason() };
    ThreadMessageRow { tool_call_id: Some(event.event_id.clone()), content, ok: Some(ok), ..row }
}

fn with_step_end(
    row: ThreadMessageRow,
    decided: Option<&TimedEvent>,
) -> Option<(ThreadMessageRow, &DecidedEvent, &ChainStepEnded)> {
    let TimedEvent { at, event } = decided?;
    let Some(Event::ChainStepEnded(ended)) = &event.event else { return None };
    let correlation_id = event.correlation_id.clone();
    Some((ThreadMessageRow { correlation_id, timestamp: Some((*at).into()), ..row }, event, ended))
}

/// A task that was queued along with words; one that a step of a chain queued is that step's.
fn queued_task_call(event: &DecidedEvent, steps: &[Value]) -> Option<ThreadToolCallRow> {
    let Some(Event::TaskScheduled(scheduled)) = &event.event else { return None };
    let task = scheduled.task.as_ref().filter(|task| task.kind_word() == TaskKind::Queued)?;
    let is_of_step = steps.iter().any(|result| result.get("task_id").is_some_and(|id| *id == *task.task_id));
    let arguments = json!({ "title": task.title, "text": task.text }).to_string();
    (!is_of_step).then(|| tool_call_row(event, "task.queue", &arguments))
}

/// Builds the message for the words and calls of one decision.
fn action_row<'d>(row: ThreadMessageRow, events: impl Iterator<Item = &'d DecidedEvent> + Clone) -> ThreadMessageRow {
    let mut said = Vec::new();
    let mut tool_calls = Vec::new();
    let mut is_failure = false;
    let results = events.clone().filter_map(|event| {
        let Some(Event::ChainStepEnded(ended)) = &event.event else { return None };
        serde_json::from_str(&ended.result).ok()
    });
    let results: Vec<Value> = results.collect();
    for event in events {
        tool_calls.extend(queued_task_call(event, &results));
        let Some(Event::Action(action)) = &event.event else { continue };
        match &action.action {
            Some(Action::Say(say)) => {
                is_failure |= !say.failure.is_empty();
                said.push(say.text.as_str());
            }
            Some(Action::ToolCall(call)) => tool_calls.push(tool_call_row(event, &call.tool, &call.arguments)),
            Some(Action::Ask(ask)) => tool_calls.push(tool_call_row(event, &ask.tool, &ask.arguments)),
            None => {}
        }
    }
    // Words that tell people of a failure are nothing that the assistant said.
    let is_report = is_failure && said.len() == 1 && tool_calls.is_empty();
    let role = if is_report { ThreadMessageRole::System } else { ThreadMessageRole::Assistant };
    ThreadMessageRow { role: role.text(), content: said.join("\n\n"), tool_calls, ..row }
}

fn tool_call_row(event: &DecidedEvent, tool: &str, arguments: &str) -> ThreadToolCallRow {
    // What is not JSON stays text.
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned()));
    ThreadToolCallRow { id: event.event_id.clone(), tool: tool.to_owned(), arguments: Some(Json::from(&arguments)) }
}

#[cfg(test)]
mod tests;
