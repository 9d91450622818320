//! The rows of the tables as documents.

use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, query_as, query_scalar, types::Json};

use super::document::{DocumentKind, SearchDocument, step_words};
use crate::{READ_MODEL, ReadError, ReadSnapshot, sql_values::Time};

/// A row of any of the tables, in the shape that they share.
#[derive(Debug, FromRow)]
pub struct SearchRow {
    kind: String,
    id: String,
    agent: String,
    user_id: Option<String>,
    title: String,
    text: String,
    keywords: Option<Json<Vec<String>>>,
    action: Option<Value>,
    #[sqlx(rename = "type")]
    kind_of: String,
    status: Option<String>,
    day: i64,
    updated_at: Time,
    sequence: i64,
    thread: Option<String>,
}

/// As a number, YYYYMMDD, for years of any number of digits.
macro_rules! day {
    ($time:literal) => {
        concat!(
            "(extract(year FROM ",
            $time,
            ") * 10000 + extract(month FROM ",
            $time,
            ") * 100 + extract(day FROM ",
            $time,
            "))::bigint AS day, "
        )
    };
}

/// The columns of a thread, with this title and these words of it.
macro_rules! thread {
    ($title:literal, $words:literal, $rest:literal) => {
        concat!(
            "SELECT 'thread' AS kind, thread_id AS id, agent, nullif(user_id, '') AS user_id, left(",
            $title,
            ", 65536) AS title, left(summary, 65536) AS text, NULL::jsonb AS keywords, NULL::jsonb AS action, ",
            "kind AS type, status, ",
            day!("(updated_at AT TIME ZONE 'UTC')"),
            "updated_at, greatest(last_sequence, described_at, placed_at) AS sequence, NULL::text AS thread, ",
            $words,
            " AS words, search_folded(left(",
            $title,
            ", 1000) || ' ' || left(summary, 10000)) AS fuzzy FROM threads ",
            $rest
        )
    };
}

/// Each table in this shape, and how it is found: by `words`, and by what is like `fuzzy`, which is the expression of
/// an index and must be written as it is there.
pub(super) const THREADS: &str = thread!("title", "words", "WHERE title <> ''");
/// Those without a title of their own, by the beginning of their first message: the few that nothing is told of yet. By
/// the indexes `threads_untitled` and `messages_of_thread`.
pub(super) const UNTITLED: &str = thread!(
    "opening",
    "setweight(to_tsvector('simple', search_words(opening)), 'A') || words",
    "LEFT JOIN LATERAL (SELECT left(btrim(regexp_replace(left(messages.text, 500), '\\s+', ' ', 'g')), 120) AS beginning \
     FROM messages WHERE messages.agent = threads.agent AND messages.thread_id = threads.thread_id \
     AND messages.sequence IS NOT NULL AND messages.role <> 'failure' AND messages.text ~ '\\S' \
     ORDER BY messages.sequence, messages.position LIMIT 1) AS first ON true, coalesce(first.beginning, '') AS opening WHERE title = ''"
);
pub(super) const TASKS: &str = concat!(
    "SELECT 'task' AS kind, task_id::text AS id, agent, user_id, left(title, 65536) AS title, ",
    "left(concat_ws(' ', trigger, condition, definition ->> 'text'), 65536) AS text, NULL::jsonb AS keywords, action, kind AS type, status, ",
    day!("(changed_at AT TIME ZONE 'UTC')"),
    "changed_at AS updated_at, changed_sequence AS sequence, NULL::text AS thread, words, search_folded(left(title, 1000) || ' ' || steps) AS fuzzy ",
    "FROM tasks"
);
pub(super) const MEMORIES: &str = concat!(
    "SELECT 'memory' AS kind, memory_id::text AS id, agent, user_id, left(subject, 65536) AS title, ",
    "left(content, 65536) AS text, definition -> 'keywords' AS keywords, NULL::jsonb AS action, kind AS type, NULL::text AS status, ",
    day!("coalesce(day, (updated_at AT TIME ZONE 'UTC')::date)"),
    "updated_at, sequence, NULL::text AS thread, words, search_folded(left(named, 1000) || ' ' || left(content, 10000)) AS fuzzy FROM memories"
);

/// Messages of users to agents, once delivered, and of agents to users.
pub(super) const MESSAGES: &str = concat!(
    "SELECT 'message' AS kind, event_id::text AS id, agent, user_id, '' AS title, left(text, 65536) AS text, ",
    "NULL::jsonb AS keywords, NULL::jsonb AS action, role AS type, NULL::text AS status, ",
    day!("(ts AT TIME ZONE 'UTC')"),
    "ts AS updated_at, changed AS sequence, thread_id AS thread, words, search_folded(left(text, 10000)) AS fuzzy ",
    "FROM messages WHERE sequence IS NOT NULL AND agent IS NOT NULL AND user_id IS NOT NULL ",
    "AND (role = 'agent' OR role = 'user' AND delivered IS NOT NULL)"
);

/// The keys of inner state, as they are now. What was deleted, too, where documents are to follow it.
macro_rules! state {
    ($rest:literal) => {
        concat!(
            "SELECT 'state' AS kind, key AS id, agent, nullif(user_id, '') AS user_id, ",
            "CASE WHEN deleted THEN '' ELSE key END AS title, left(content, 65536) AS text, ",
            "definition -> 'related_keys' AS keywords, NULL::jsonb AS action, ",
            "CASE WHEN user_id = '' THEN 'agent' ELSE 'user' END AS type, ",
            "CASE WHEN deleted THEN 'deleted' END AS status, ",
            day!("(updated_at AT TIME ZONE 'UTC')"),
            "updated_at, sequence, NULL::text AS thread, words, search_folded(key || ' ' || left(content, 10000)) AS fuzzy FROM inner_state",
            $rest
        )
    };
}
const STATE: &str = state!(" WHERE NOT deleted");
const STATE_AND_DELETED: &str = state!("");
/// The status of documents that stand for nothing any more.
pub(super) const DELETED: &str = "deleted";

impl SearchRow {
    pub fn into_document(self) -> Option<SearchDocument> {
        let kind = DocumentKind::parse(&self.kind)?;
        let steps = self.action.as_ref().map(step_words).unwrap_or_default();
        let text = if steps.is_empty() { self.text } else { format!("{} {steps}", self.text).trim().to_owned() };
        // Several users may have the same key.
        let uid = match kind {
            DocumentKind::State => {
                let id = format!("{}/{}", self.user_id.as_deref().unwrap_or_default(), self.id);
                SearchDocument::uid_of(kind, &self.agent, &id)
            }
            DocumentKind::Thread | DocumentKind::Task | DocumentKind::Memory | DocumentKind::Message => {
                SearchDocument::uid_of(kind, &self.agent, &self.id)
            }
        };
        Some(SearchDocument {
            uid,
            kind,
            id: self.id,
            agent: self.agent,
            user: self.user_id,
            title: self.title,
            text,
            keywords: self.keywords.map(|Json(keywords)| keywords).unwrap_or_default(),
            kind_of: self.kind_of,
            status: self.status,
            day: self.day,
            updated: self.updated_at.0.as_microsecond(),
            sequence: self.sequence,
            thread: self.thread,
        })
    }
}

fn source_queries(kind: DocumentKind) -> &'static [&'static str] {
    match kind {
        DocumentKind::Thread => &[THREADS, UNTITLED],
        DocumentKind::Task => &[TASKS],
        DocumentKind::Memory => &[MEMORIES],
        DocumentKind::Message => &[MESSAGES],
        DocumentKind::State => &[STATE],
    }
}

/// The rows of these kinds, for `FROM`.
pub(super) fn union_of_kinds(kinds: &[DocumentKind]) -> String {
    let all: Vec<&str> = kinds.iter().flat_map(|kind| source_queries(*kind)).copied().collect();
    format!("({}) AS rows", all.join(" UNION ALL "))
}

impl ReadSnapshot {
    /// The generation of the tables that it is of.
    pub async fn generation_number(&self) -> Result<i64, ReadError> {
        let live = "SELECT generation FROM generations WHERE projection = $1 AND version = $2 AND state = 'live'";
        let live = query_scalar(live).bind(READ_MODEL.name).bind(READ_MODEL.version);
        Ok(live.fetch_one(&mut **self.connection().await).await?)
    }

    /// Returns the documents changed by messages after this one, in the order of those, by index `threads_by_change`,
    /// `tasks_by_change`, `memories_by_sequence`, `messages_by_change` or `inner_state_by_sequence`: `limit` of them,
    /// and more only if several were changed at once.
    pub async fn changed_documents(
        &self,
        kind: DocumentKind,
        after: i64,
        limit: u32,
    ) -> Result<Vec<SearchDocument>, ReadError> {
        let rows = match kind {
            DocumentKind::State => format!("({STATE_AND_DELETED}) AS rows"),
            DocumentKind::Thread | DocumentKind::Task | DocumentKind::Memory | DocumentKind::Message => {
                union_of_kinds(&[kind])
            }
        };
        let sql = format!("SELECT * FROM {rows} WHERE sequence > $1 ORDER BY sequence FETCH FIRST ($2) ROWS WITH TIES");
        let rows = query_as::<_, SearchRow>(AssertSqlSafe(sql)).bind(after).bind(i64::from(limit));
        let rows = rows.fetch_all(&mut **self.connection().await).await?;
        Ok(rows.into_iter().filter_map(SearchRow::into_document).collect())
    }
}
