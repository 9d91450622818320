//! Counts of events, by stretches of the log.

use jiff::Timestamp;

use super::to_bigint;
use crate::{
    ReadError, ReadSnapshot,
    sql_values::{SqlKey, Time, U64},
};

/// The events to count; all conditions must hold.
#[derive(Clone, Debug)]
pub struct OutlineQuery {
    /// Those that concern this agent, what is addressed to it included.
    pub agent: Option<String>,
    pub thread: Option<String>,
    /// The first message that counts, and the last one.
    pub from: u64,
    pub to: u64,
    /// Stretches, each of the same number of messages of the log.
    pub buckets: u32,
    /// Of more events than this, the newest are counted.
    pub most: u32,
}

/// Events of a family within a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineSlice {
    /// The stretch, from 0.
    pub bucket: u64,
    /// The second word of their types.
    pub family: String,
    pub events: u64,
    /// The messages that hold the first and the last of them, and when the first happened.
    pub first: u64,
    pub last: u64,
    pub since: Timestamp,
}

impl ReadSnapshot {
    /// In the order of stretches, and of each the most first. By index `events_of_agent`, `events_of_thread` or the primary key, of
    /// which no more is read than is counted.
    pub async fn event_outline(&self, query: &OutlineQuery) -> Result<Vec<OutlineSlice>, ReadError> {
        let connection = &mut **self.connection().await;
        let rows = sqlx::query_as!(
            OutlineSlice,
            r#"
            WITH counted AS MATERIALIZED (
                SELECT sequence, ts, split_part(type, '.', 2) AS family FROM events
                WHERE ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR thread_id = $2)
                    AND sequence BETWEEN $3 AND $4
                ORDER BY sequence DESC, position DESC LIMIT $5
            ), range AS (SELECT min(sequence) AS lowest, max(sequence) - min(sequence) + 1 AS width FROM counted)
            SELECT (sequence - lowest) * $6 / width AS "bucket!: U64", family AS "family!", count(*) AS "events!: U64",
                   min(sequence) AS "first!: U64", max(sequence) AS "last!: U64", min(ts) AS "since!: Time"
            FROM counted, range GROUP BY 1, family ORDER BY 1, count(*) DESC, family
            "#,
            query.agent.as_deref().map(SqlKey::from) as _,
            query.thread.as_deref().map(SqlKey::from) as _,
            to_bigint(query.from),
            to_bigint(query.to),
            i64::from(query.most),
            i64::from(query.buckets.max(1)),
        );
        Ok(rows.fetch_all(connection).await?)
    }
}
