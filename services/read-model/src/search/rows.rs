//! The rows of the tables as documents.

use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, query_as, query_scalar, types::Json};

use super::document::{Document, Kind, steps};
use crate::{READ_MODEL, ReadError, Snapshot, stored::Time};

/// A row of any of the three tables, in the shape that they share.
#[derive(Debug, FromRow)]
pub struct Row {
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

/// Each table in this shape, and how it is found: by `words`, and by what is like `fuzzy`, which is the expression of
/// an index and must be written as it is there.
pub(super) const THREADS: &str = concat!(
    "SELECT 'thread' AS kind, thread_id AS id, agent, nullif(user_id, '') AS user_id, left(title, 65536) AS title, ",
    "left(summary, 65536) AS text, NULL::jsonb AS keywords, NULL::jsonb AS action, kind AS type, status, ",
    day!("(updated_at AT TIME ZONE 'UTC')"),
    "updated_at, greatest(last_sequence, described_at, placed_at) AS sequence, words, left(title, 1000) || ' ' || left(summary, 10000) AS fuzzy ",
    "FROM threads"
);
pub(super) const TASKS: &str = concat!(
    "SELECT 'task' AS kind, task_id::text AS id, agent, user_id, left(title, 65536) AS title, ",
    "left(concat_ws(' ', trigger, condition, definition ->> 'text'), 65536) AS text, NULL::jsonb AS keywords, action, kind AS type, status, ",
    day!("(changed_at AT TIME ZONE 'UTC')"),
    "changed_at AS updated_at, changed_sequence AS sequence, words, left(title, 1000) || ' ' || steps AS fuzzy ",
    "FROM tasks"
);
pub(super) const MEMORIES: &str = concat!(
    "SELECT 'memory' AS kind, memory_id::text AS id, agent, user_id, left(subject, 65536) AS title, ",
    "left(content, 65536) AS text, definition -> 'keywords' AS keywords, NULL::jsonb AS action, kind AS type, NULL::text AS status, ",
    day!("coalesce(day, (updated_at AT TIME ZONE 'UTC')::date)"),
    "updated_at, sequence, words, left(named, 1000) || ' ' || left(content, 10000) AS fuzzy FROM memories"
);

impl Row {
    pub fn document(self) -> Option<Document> {
        let kind = Kind::parse(&self.kind)?;
        let steps = self.action.as_ref().map(steps).unwrap_or_default();
        let text = if steps.is_empty() { self.text } else { format!("{} {steps}", self.text).trim().to_owned() };
        Some(Document {
            uid: Document::key(kind, &self.agent, &self.id),
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
        })
    }
}

fn source(kind: Kind) -> &'static str {
    match kind {
        Kind::Thread => THREADS,
        Kind::Task => TASKS,
        Kind::Memory => MEMORIES,
    }
}

impl Snapshot {
    /// The generation of the tables that it is of.
    pub async fn generation(&self) -> Result<i64, ReadError> {
        let live = "SELECT generation FROM generations WHERE projection = $1 AND version = $2 AND state = 'live'";
        let live = query_scalar(live).bind(READ_MODEL.name).bind(READ_MODEL.version);
        Ok(live.fetch_one(&mut **self.connection().await).await?)
    }

    /// What was changed by messages after this one, in the order of those, by index `threads_by_change`,
    /// `tasks_by_change` or `memories_by_sequence`: so many, and more only where several were changed at once.
    pub async fn changed(&self, kind: Kind, after: i64, limit: u32) -> Result<Vec<Document>, ReadError> {
        let sql = format!(
            "SELECT * FROM ({}) AS rows WHERE sequence > $1 ORDER BY sequence FETCH FIRST ($2) ROWS WITH TIES",
            source(kind)
        );
        let rows = query_as::<_, Row>(AssertSqlSafe(sql)).bind(after).bind(i64::from(limit));
        let rows = rows.fetch_all(&mut **self.connection().await).await?;
        Ok(rows.into_iter().filter_map(Row::document).collect())
    }
}
