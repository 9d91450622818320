//! The messages of a thread, built from its events and numbered.
//!
//! A message is a user's words, the words and calls of one decision, the end of a call, the start of a task, its
//! result, or a summary. An action that the agent itself carries out, such as `task.queue`, is a call and its end.
//! Messages are in the order in which they came into the thread, which only ever grows at its end, so that a number
//! never changes: a user's message comes with its delivery if it named the thread, else with the event that put it
//! there. Words from elsewhere came with the document that reported them.

mod content;

use std::collections::{BTreeMap, HashMap};

use kairo_proto::{
    v1::{self, ThreadMessageRow},
    words::ThreadKind,
};
use sqlx::{query_as, query_scalar};
use uuid::Uuid;

use super::{conversation::Parts, row_limit, to_bigint};
use crate::{
    ReadError, ReadSnapshot,
    event_rows::{self, rendered},
    sql_values::{SqlKey, Time, U32, U64},
};
use content::{CallEnd, EntryOrigin, InputMessage, TaskText, ThreadContent, ThreadMessageEntry, TimedEvent};

/// Events that make a message besides users' words and ends of calls. The end of a task makes one only in the thread
/// that worked on it.
const TOLD: [&str; 4] = [v1::AgentAction::TYPE, v1::TaskStarted::TYPE, v1::ThreadCompacted::TYPE, v1::TaskEnded::TYPE];
/// Events that messages are built from.
const READ: [&str; 6] = [
    v1::AgentAction::TYPE,
    v1::TaskStarted::TYPE,
    v1::ThreadCompacted::TYPE,
    v1::TaskEnded::TYPE,
    v1::ChainStepEnded::TYPE,
    v1::TaskScheduled::TYPE,
];

/// The messages of a thread to return.
#[derive(Clone, Debug, Default)]
pub struct ThreadMessagesQuery {
    pub agent: String,
    pub thread: String,
    /// Those behind the one of this number.
    pub after: u64,
    /// The newest so many instead of the oldest.
    pub latest: Option<u32>,
    /// At most so many, and never more than [`MAX_ROWS`](crate::MAX_ROWS).
    pub limit: u32,
}

/// The events that a message comes from.
struct EntryRow {
    number: u64,
    sequence: u64,
    position: u32,
    sent: Option<Uuid>,
    ended: Option<Uuid>,
    /// The step that the agent itself carried out.
    step: Option<String>,
    is_end: bool,
}

impl From<EntryRow> for ThreadMessageEntry {
    fn from(found: EntryRow) -> Self {
        let EntryRow { number, sequence, position, sent, ended, step, is_end } = found;
        let of = match (sent, ended, step) {
            (Some(event), _, _) => EntryOrigin::User(event),
            (None, Some(action), _) => EntryOrigin::End(action),
            (None, None, Some(tool)) if is_end => EntryOrigin::StepEnd(tool),
            (None, None, Some(tool)) => EntryOrigin::Step(tool),
            (None, None, None) => EntryOrigin::Decision,
        };
        Self { number, sequence, position, origin: of }
    }
}

/// By indexes `messages_of_thread`, `actions_of_thread`, `events_of_thread` and `chains_of_thread`: what is before a page is counted. What
/// stands behind the position of the snapshot may not be all there yet.
macro_rules! entries {
    ($order:literal, $($parameters:tt)*) => {
        query_as!(
            EntryRow,
            r#"
            SELECT number AS "number!: U64", sequence AS "sequence!: U64", position AS "position!: U32", sent, ended,
                   step, is_end AS "is_end!"
            FROM (
                SELECT *, row_number() OVER (ORDER BY sequence, position, place, is_end) AS number FROM (
                    SELECT CASE WHEN delivered_thread IS NULL THEN placed ELSE delivered END AS sequence,
                           position, sequence AS place, event_id AS sent, NULL::uuid AS ended,
                           NULL::text AS step, false AS is_end
                    FROM messages
                    WHERE (role = 'user' OR delivered IS NOT NULL) AND sequence IS NOT NULL
                        AND agent = $1 AND thread_id = $2
                    UNION ALL
                    SELECT ended_sequence, 0, sequence, NULL, action_id, NULL, true FROM actions
                    WHERE agent = $1 AND thread_id = $2 AND ended_sequence IS NOT NULL
                    UNION ALL
                    SELECT sequence, min(position), sequence, NULL, NULL, NULL, false FROM events
                    WHERE agent = $1 AND thread_id = $2 AND type = ANY($4)
                    GROUP BY sequence, CASE WHEN type = $5 THEN -1 ELSE position END
                    UNION ALL
                    SELECT ended_sequence, ended_position, ended_sequence, NULL, NULL, event, part.is_end
                    FROM chains JOIN chain_steps USING (chain_id)
                        CROSS JOIN (VALUES (false), (true)) AS part (is_end)
                    WHERE agent = $1 AND thread_id = $2 AND ended_position IS NOT NULL AND action_id IS NULL
                        AND event <> 'agent.think' AND origin <> 'environment'
                ) AS entries
                WHERE sequence <= $3
            ) AS numbered
            WHERE number > $6 ORDER BY number "# + $order,
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// In the order of their numbers.
    pub async fn thread_messages(&self, query: &ThreadMessagesQuery) -> Result<Vec<ThreadMessageRow>, ReadError> {
        let agent = SqlKey::from(query.agent.as_str());
        let thread = SqlKey::from(query.thread.as_str());
        let entries = self.list_entries(&agent, &thread, query).await?;
        let thread = ThreadContent {
            inputs: self.input_messages(&entries).await?,
            ends: self.call_ends(&entries).await?,
            events: self.decided_events(&agent, &thread, &entries).await?,
            tasks: HashMap::new(),
        };
        let thread = ThreadContent { tasks: self.started_task_texts(&thread.events).await?, ..thread };
        Ok(entries.iter().map(|entry| content::build_message(entry, &thread)).collect())
    }

    async fn list_entries(
        &self,
        agent: &SqlKey,
        thread: &SqlKey,
        query: &ThreadMessagesQuery,
    ) -> Result<Vec<ThreadMessageEntry>, ReadError> {
        let position = to_bigint(self.position());
        let after = to_bigint(query.after);
        let told = self.message_types(agent, thread).await?;
        let connection = &mut **self.connection().await;
        let found = match query.latest {
            None => {
                let said = v1::AgentAction::TYPE;
                let limit = row_limit(query.limit);
                let first = entries!("LIMIT $7", agent as _, thread as _, position, told as _, said, after, limit);
                first.fetch_all(connection).await?
            }
            Some(latest) => {
                let said = v1::AgentAction::TYPE;
                let limit = row_limit(latest.min(query.limit));
                let last = entries!("DESC LIMIT $7", agent as _, thread as _, position, told as _, said, after, limit);
                let mut found = last.fetch_all(connection).await?;
                found.reverse();
                found
            }
        };
        Ok(found.into_iter().map(ThreadMessageEntry::from).collect())
    }

    /// Returns the event types that make a message in a thread: in a conversation, an answer gives the result of a
    /// task. By the primary key.
    async fn message_types(&self, agent: &SqlKey, thread: &SqlKey) -> Result<&'static [&'static str], ReadError> {
        let kind =
            query_scalar!("SELECT kind FROM threads WHERE agent = $1 AND thread_id = $2", agent as _, thread as _);
        let kind = kind.fetch_optional(&mut **self.connection().await).await?;
        let is_work = kind.is_some_and(|kind| kind == ThreadKind::Work.known_word());
        Ok(TOLD.get(..if is_work { TOLD.len() } else { TOLD.len() - 1 }).unwrap_or_default())
    }

    /// By the primary key, as the next.
    async fn input_messages(&self, entries: &[ThreadMessageEntry]) -> Result<HashMap<Uuid, InputMessage>, ReadError> {
        let events: Vec<Uuid> = entries.iter().filter_map(|entry| entry.origin.message_event()).collect();
        let heard = query_as!(
            InputMessage,
            r#"SELECT event_id, sequence AS "sequence!: U64", position AS "position: U32", ts AS "ts!: Time",
                      correlation_id AS "correlation_id!", role, text, parts AS "parts: Parts"
               FROM messages WHERE event_id = ANY($1)"#,
            &events,
        );
        let heard = heard.fetch_all(&mut **self.connection().await).await?;
        Ok(heard.into_iter().map(|heard| (heard.event_id, heard)).collect())
    }

    async fn call_ends(&self, entries: &[ThreadMessageEntry]) -> Result<HashMap<Uuid, CallEnd>, ReadError> {
        let actions: Vec<Uuid> = entries.iter().filter_map(|entry| entry.origin.ended_action()).collect();
        let ends = query_as!(
            CallEnd,
            r#"SELECT action_id, correlation_id, ended_at AS "ended_at!: Time", ok AS "ok!", result, error_kind, error_message
               FROM actions WHERE action_id = ANY($1) AND ended_at IS NOT NULL"#,
            &actions,
        );
        let ends = ends.fetch_all(&mut **self.connection().await).await?;
        Ok(ends.into_iter().map(|end| (end.action_id, end)).collect())
    }

    /// Returns the decided events, by their place. By index `events_of_thread`.
    async fn decided_events(
        &self,
        agent: &SqlKey,
        thread: &SqlKey,
        entries: &[ThreadMessageEntry],
    ) -> Result<BTreeMap<(u64, u32), TimedEvent>, ReadError> {
        let decisions = entries.iter().filter(|entry| entry.origin.is_decided());
        let sequences: Vec<i64> = decisions.map(|entry| to_bigint(entry.sequence)).collect();
        let rows = rendered!(
            "agent = $1 AND thread_id = $2 AND sequence = ANY($3) AND type = ANY($4) ORDER BY sequence, position",
            agent as _,
            thread as _,
            &sequences,
            &READ as _
        );
        let rows = rows.fetch_all(&mut **self.connection().await).await?;
        let mut decided = BTreeMap::new();
        let mut message: Option<(u64, kairo_core::record::Record)> = None;
        for row in rows {
            if message.as_ref().is_none_or(|(sequence, _)| *sequence != row.sequence) {
                message = event_rows::to_record(&row).map(|record| (row.sequence, record));
            }
            let event = message.as_ref().and_then(|(_, record)| TimedEvent::from_record(record, row.position));
            decided.extend(event.map(|event| ((row.sequence, row.position), event)));
        }
        Ok(decided)
    }

    /// Returns the texts of the tasks begun. By the primary key.
    async fn started_task_texts(
        &self,
        decided: &BTreeMap<(u64, u32), TimedEvent>,
    ) -> Result<HashMap<Uuid, TaskText>, ReadError> {
        let tasks: Vec<Uuid> = decided.values().filter_map(TimedEvent::started_task).collect();
        let texts = query_as!(
            TaskText,
            r#"SELECT task_id, title, definition ->> 'text' AS text FROM tasks WHERE task_id = ANY($1)"#,
            &tasks,
        );
        let texts = texts.fetch_all(&mut **self.connection().await).await?;
        Ok(texts.into_iter().map(|task| (task.task_id, task)).collect())
    }
}
