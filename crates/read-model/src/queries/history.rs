//! The history of a thread, as seed 000 writes it: events with their results.

use std::collections::HashMap;

use kairo_core::event_json::EventJson;
use kairo_proto::{
    v1::{self, Json, ThreadEventRow},
    words::MessageRole,
};
use serde_json::{Map, Value, json};
use sqlx::query_as;
use uuid::Uuid;

use super::{END, to_sql_position};
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot, RowPosition,
    event_rows::{self, rendered},
    output_columns::{At, Id, Object},
    sql_values::{SqlKey, Time, U32, U64},
};

/// Events shown with the call they are about, or with the user's own words, instead of by themselves.
const TOLD_ELSEWHERE: &[&str] = &[
    v1::AgentMessage::TYPE,
    v1::UserMessage::TYPE,
    v1::ToolInvoke::TYPE,
    v1::ToolProgress::TYPE,
    v1::ToolResult::TYPE,
    v1::ProcessProgress::TYPE,
];

/// The type of an agent's reply.
const REPLY: &str = "agent.reply";

/// A stretch of a thread's events.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadHistory {
    /// In the order of the log.
    pub events: Vec<ThreadEventRow>,
    /// True if there are older events.
    pub more: bool,
}

/// A user's message, or what was said elsewhere.
struct HistoryInput {
    event_id: String,
    sequence: u64,
    position: u32,
    ts: Option<prost_types::Timestamp>,
    correlation_id: String,
    role: String,
    user_id: Option<String>,
    text: String,
    parts: Value,
}

/// The status and result of a tool call.
struct HistoryOutcome {
    action_id: String,
    status: String,
    result: Option<Json>,
    error_message: Option<String>,
}

impl ReadSnapshot {
    /// The newest of a thread's events, before a place if one is given. By the indexes `events_of_thread` and
    /// `messages_of_thread`.
    pub async fn thread_history(
        &self,
        agent: &str,
        thread: &str,
        before: Option<RowPosition>,
        limit: u32,
    ) -> Result<ThreadHistory, ReadError> {
        let limit = limit.clamp(1, MAX_ROWS);
        let agent = SqlKey::from(agent);
        let thread = SqlKey::from(thread);
        let (sequence, position) = to_sql_position(before.unwrap_or(END));
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
            HistoryInput,
            r#"
            SELECT event_id AS "event_id: Id", sequence AS "sequence!: U64", position AS "position: U32", ts AS "ts!: At",
                   correlation_id AS "correlation_id!: Id", role, user_id, text, parts
            FROM messages
            WHERE (role = 'user' OR delivered IS NOT NULL) AND sequence IS NOT NULL AND agent = $1 AND thread_id = $2
                AND (sequence, position) < ($3, $4)
            ORDER BY sequence DESC, position DESC LIMIT $5"#,
            agent as _,
            thread as _,
            sequence,
            position,
            i64::from(limit) + 1,
        );
        let inputs = inputs.fetch_all(&mut **self.connection().await).await?;
        let mut events: Vec<ThreadEventRow> = event_rows::to_events(rows).into_iter().map(event_row).collect();
        events.extend(inputs.into_iter().map(input_row));
        events.sort_by_key(|event| std::cmp::Reverse((event.sequence, event.position)));
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = events.len() > most;
        events.truncate(most);
        events.reverse();
        self.add_outcomes(&mut events).await?;
        Ok(ThreadHistory { events, more })
    }

    /// By the primary key.
    async fn add_outcomes(&self, events: &mut [ThreadEventRow]) -> Result<(), ReadError> {
        let calls = events.iter().filter(|event| event.params.is_some());
        let calls: Vec<Uuid> = calls.filter_map(|event| event.event_id.parse().ok()).collect();
        let outcomes = query_as!(
            HistoryOutcome,
            r#"SELECT action_id AS "action_id: Id", status, result AS "result!: Object", error_message
               FROM actions WHERE action_id = ANY($1)"#,
            &calls,
        );
        let outcomes = outcomes.fetch_all(&mut **self.connection().await).await?;
        let mut outcomes: HashMap<String, HistoryOutcome> =
            outcomes.into_iter().map(|outcome| (outcome.action_id.clone(), outcome)).collect();
        for event in events.iter_mut().filter(|event| event.params.is_some()) {
            if let Some(outcome) = outcomes.remove(&event.event_id) {
                event.result = outcome
                    .result
                    .or_else(|| outcome.error_message.map(|error| Json::from(&json!({ "error": error }))));
                event.status = Some(outcome.status);
            }
        }
        Ok(())
    }
}

fn input_row(input: HistoryInput) -> ThreadEventRow {
    let event = match MessageRole::from(input.role.as_str()) {
        MessageRole::Agent => REPLY,
        MessageRole::User | MessageRole::Failure | MessageRole::Unknown(_) => "user.input",
    };
    let mut said = json!({ "text": input.text, "user": input.user_id });
    if let (Value::Object(said), true) = (&mut said, input.parts.as_array().is_some_and(|parts| !parts.is_empty())) {
        said.insert("parts".to_owned(), input.parts);
    }
    ThreadEventRow {
        sequence: input.sequence,
        position: input.position,
        event_id: input.event_id,
        correlation_id: input.correlation_id,
        event: event.to_owned(),
        params: None,
        status: None,
        result: Some(Json::from(&said)),
        timestamp: input.ts,
    }
}

/// An event in seed 002's form as seed 000 writes it.
fn event_row(event: EventJson) -> ThreadEventRow {
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, params) = match event.type_name.as_str() {
        v1::AgentAction::TYPE if text("type") == "tool_call" => {
            (text("tool").to_owned(), Some(Json::from(event.payload.get("args").unwrap_or(&Value::Null))))
        }
        v1::AgentAction::TYPE => (REPLY.to_owned(), None),
        v1::AgentThought::TYPE => ("agent.think".to_owned(), None),
        v1::AgentChoice::TYPE => ("user.choice".to_owned(), None),
        v1::AgentApproval::TYPE => ("user.approval".to_owned(), None),
        v1::AgentCommand::TYPE => ("user.command".to_owned(), None),
        v1::ThreadMatched::TYPE | v1::ThreadSuggested::TYPE => ("thread.match".to_owned(), None),
        v1::ThreadSummarized::TYPE => ("thread.summarize".to_owned(), None),
        v1::ThreadArchived::TYPE => ("thread.archive".to_owned(), None),
        v1::ChainStarted::TYPE => ("agent.chain".to_owned(), None),
        v1::StateWritten::TYPE => ("state.write".to_owned(), None),
        v1::StateDeleted::TYPE => ("state.delete".to_owned(), None),
        v1::MemoryAppended::TYPE => ("memory.append".to_owned(), None),
        other => (short_type_name(other).to_owned(), None),
    };
    let result = params.is_none().then(|| Json::from(&without_form(&event.payload)));
    ThreadEventRow {
        sequence: event.sequence,
        position: event.position,
        event_id: event.event_id.to_string(),
        correlation_id: event.correlation_id.to_string(),
        event: name,
        params,
        status: None,
        result,
        timestamp: Some(Time(event.ts).into()),
    }
}

/// `tool.result` of `kairo.tool.result.v1`.
fn short_type_name(type_name: &str) -> &str {
    let name = type_name.strip_prefix("kairo.").unwrap_or(type_name);
    name.rsplit_once(".v").map_or(name, |(name, _)| name)
}

/// Returns the payload of an event without its `type`, which only tells one form of it from another.
fn without_form(payload: &Value) -> Value {
    let Value::Object(fields) = payload else { return payload.clone() };
    let kept = fields.iter().filter(|(name, _)| name.as_str() != "type");
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(type_name: &str, payload: Value) -> ThreadEventRow {
        event_row(
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
            ("email.search", Some(Json::from(&json!({"from": "Sarah"}))), None)
        );
        let said = event(v1::AgentAction::TYPE, json!({"type": "say", "text": "hello"}));
        assert_eq!((said.event.as_str(), said.result), ("agent.reply", Some(Json::from(&json!({"text": "hello"})))));
        assert_eq!(event(v1::ThreadMatched::TYPE, json!({})).event, "thread.match");
        assert_eq!(event(v1::ChainStepEnded::TYPE, json!({})).event, "chain.step_ended");
    }
}
