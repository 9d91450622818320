//! What happened in a thread, as seed 000 writes it: events with their results.

use std::collections::HashMap;

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sqlx::query_as;
use uuid::Uuid;

use super::{END, place};
use crate::{
    MAX_ROWS, Place, ReadError, Snapshot,
    rendered::{self, rendered},
    stored::{Key, Time, U32, U64},
};

/// What stands with the call it is about, or with the user's own words, instead of by itself.
const TOLD_ELSEWHERE: &[&str] = &[
    v1::AgentMessage::TYPE,
    v1::UserMessage::TYPE,
    v1::ToolInvoke::TYPE,
    v1::ToolProgress::TYPE,
    v1::ToolResult::TYPE,
    v1::ProcessProgress::TYPE,
];

/// A stretch of a thread's events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadHistory {
    /// In the order of the log.
    pub events: Vec<ThreadEvent>,
    /// Whether there are older ones.
    pub more: bool,
}

/// Something that happened in a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadEvent {
    pub sequence: u64,
    pub position: u32,
    pub event_id: Uuid,
    pub correlation_id: Uuid,
    /// `user.input`, `thread.match`, `agent.reply`, the name of a tool and so on.
    pub event: String,
    /// What a tool was called with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// Of a tool's call: `asked`, `running`, `done` or how it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// None for a tool that is not done.
    pub result: Option<Value>,
    pub timestamp: Time,
}

impl ThreadEvent {
    fn place(&self) -> Place {
        (self.sequence, self.position)
    }
}

/// A user's message, or words of the thread's own log.
struct Input {
    event_id: Uuid,
    sequence: u64,
    position: u32,
    ts: Time,
    correlation_id: Uuid,
    user_id: Option<String>,
    text: String,
    parts: Value,
}

/// How a tool's call stands.
struct Outcome {
    action_id: Uuid,
    status: String,
    result: Option<Value>,
    error_message: Option<String>,
}

impl Snapshot {
    /// The newest of a thread's events, before a place if one is given. By the indexes `events_of_thread` and
    /// `messages_of_thread`.
    pub async fn history(
        &self,
        agent: &str,
        thread: &str,
        before: Option<Place>,
        limit: u32,
    ) -> Result<ThreadHistory, ReadError> {
        let limit = limit.clamp(1, MAX_ROWS);
        let (agent, thread) = (Key::from(agent), Key::from(thread));
        let (sequence, position) = place(before.unwrap_or(END));
        let rows = rendered!(
            "agent = $1 AND thread_id = $2 AND (sequence, position) < ($3, $4)
                AND type <> ALL($6)
             ORDER BY sequence DESC, position DESC LIMIT $5",
            &agent as _,
            &thread as _,
            sequence,
            position,
            i64::from(limit) + 1,
            TOLD_ELSEWHERE as _
        );
        let rows = rows.fetch_all(&mut **self.connection().await).await?;
        let inputs = query_as!(
            Input,
            r#"
            SELECT event_id, sequence AS "sequence!: U64", position AS "position: U32", ts AS "ts!: Time",
                   correlation_id AS "correlation_id!", user_id, text, parts
            FROM messages
            WHERE role = 'user' AND sequence IS NOT NULL AND agent = $1 AND thread_id = $2
                AND (sequence, position) < ($3, $4)
            ORDER BY sequence DESC, position DESC LIMIT $5"#,
            agent as _,
            thread as _,
            sequence,
            position,
            i64::from(limit) + 1,
        );
        let inputs = inputs.fetch_all(&mut **self.connection().await).await?;
        let mut events: Vec<ThreadEvent> = rendered::events(rows).into_iter().map(told).collect();
        events.extend(inputs.into_iter().map(heard));
        events.sort_by_key(|event| std::cmp::Reverse(event.place()));
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = events.len() > most;
        events.truncate(most);
        events.reverse();
        self.add_outcomes(&mut events).await?;
        Ok(ThreadHistory { events, more })
    }

    /// By the primary key.
    async fn add_outcomes(&self, events: &mut [ThreadEvent]) -> Result<(), ReadError> {
        let calls: Vec<Uuid> =
            events.iter().filter(|event| event.params.is_some()).map(|event| event.event_id).collect();
        let outcomes = query_as!(
            Outcome,
            "SELECT action_id, status, result, error_message FROM actions WHERE action_id = ANY($1)",
            &calls,
        );
        let outcomes = outcomes.fetch_all(&mut **self.connection().await).await?;
        let mut outcomes: HashMap<Uuid, Outcome> =
            outcomes.into_iter().map(|outcome| (outcome.action_id, outcome)).collect();
        for event in events.iter_mut().filter(|event| event.params.is_some()) {
            if let Some(outcome) = outcomes.remove(&event.event_id) {
                event.result = outcome.result.or_else(|| outcome.error_message.map(|error| json!({ "error": error })));
                event.status = Some(outcome.status);
            }
        }
        Ok(())
    }
}

fn heard(input: Input) -> ThreadEvent {
    let mut said = json!({ "text": input.text, "user": input.user_id });
    if let (Value::Object(said), true) = (&mut said, input.parts.as_array().is_some_and(|parts| !parts.is_empty())) {
        said.insert("parts".to_owned(), input.parts);
    }
    ThreadEvent {
        sequence: input.sequence,
        position: input.position,
        event_id: input.event_id,
        correlation_id: input.correlation_id,
        event: "user.input".to_owned(),
        params: None,
        status: None,
        result: Some(said),
        timestamp: input.ts,
    }
}

/// An event in seed 002's form as seed 000 writes it.
fn told(event: EventJson) -> ThreadEvent {
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, params) = match event.type_name.as_str() {
        v1::AgentAction::TYPE if text("type") == "tool_call" => {
            (text("tool").to_owned(), Some(event.payload.get("args").cloned().unwrap_or_default()))
        }
        v1::AgentAction::TYPE => ("agent.reply".to_owned(), None),
        v1::AgentThought::TYPE => ("agent.think".to_owned(), None),
        v1::AgentChoice::TYPE => ("user.choice".to_owned(), None),
        v1::AgentApproval::TYPE => ("user.approval".to_owned(), None),
        v1::AgentCommand::TYPE => ("user.command".to_owned(), None),
        v1::ThreadMatched::TYPE | v1::ThreadSuggested::TYPE => ("thread.match".to_owned(), None),
        v1::ThreadSummarized::TYPE => ("thread.summarize".to_owned(), None),
        v1::ThreadArchived::TYPE => ("thread.archive".to_owned(), None),
        v1::ChainStarted::TYPE => ("agent.chain".to_owned(), None),
        v1::MemoryAppended::TYPE => ("memory.append".to_owned(), None),
        other => (short(other).to_owned(), None),
    };
    let result = params.is_none().then(|| without_form(&event.payload));
    ThreadEvent {
        sequence: event.sequence,
        position: event.position,
        event_id: event.event_id,
        correlation_id: event.correlation_id,
        event: name,
        params,
        status: None,
        result,
        timestamp: Time(event.ts),
    }
}

/// `tool.result` of `kairo.tool.result.v1`.
fn short(type_name: &str) -> &str {
    let name = type_name.strip_prefix("kairo.").unwrap_or(type_name);
    name.rsplit_once(".v").map_or(name, |(name, _)| name)
}

/// What an event says, without what only tells one form of it from another.
fn without_form(payload: &Value) -> Value {
    let Value::Object(fields) = payload else { return payload.clone() };
    let kept = fields.iter().filter(|(name, _)| name.as_str() != "type");
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(type_name: &str, payload: Value) -> ThreadEvent {
        told(
            serde_json::from_value(json!({
                "event_id": Uuid::nil(), "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
                "payload": payload, "meta": {"tags": []}, "type": type_name, "sequence": 1, "position": 0,
                "subject": "kairo.agent.a.decision", "correlation_id": Uuid::nil(), "causation_id": null,
                "thread_id": "t",
            }))
            .unwrap(),
        )
    }

    #[test]
    fn events_have_the_names_of_the_seed() {
        let call = event(
            v1::AgentAction::TYPE,
            json!({"type": "tool_call", "tool": "email.search", "args": {"from": "Sarah"}, "text": ""}),
        );
        assert_eq!(
            (call.event.as_str(), call.params, call.result),
            ("email.search", Some(json!({"from": "Sarah"})), None)
        );
        let said = event(v1::AgentAction::TYPE, json!({"type": "say", "text": "hello"}));
        assert_eq!((said.event.as_str(), said.result), ("agent.reply", Some(json!({"text": "hello"}))));
        assert_eq!(event(v1::ThreadMatched::TYPE, json!({})).event, "thread.match");
        assert_eq!(event(v1::ChainStepEnded::TYPE, json!({})).event, "chain.step_ended");
    }
}
