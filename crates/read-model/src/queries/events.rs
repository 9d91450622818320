//! Events in seed 002's form.

use jiff::Timestamp;
use kairo_core::event_json::EventJson;
use uuid::Uuid;

use super::{BEGINNING, row_limit, to_bigint, to_sql_position};
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot, RowPosition,
    event_rows::{self, rendered},
    sql_values::{SqlKey, Time, U32, U64},
};

/// The events to return; all conditions must hold.
#[derive(Clone, Debug)]
pub struct EventsQuery {
    /// Those that concern this agent, what is addressed to it included.
    pub agent: Option<String>,
    pub thread: Option<String>,
    /// The correlation of the events: all that answer the event of this id.
    pub correlation: Option<Uuid>,
    /// Those behind this place; `(n, u32::MAX)` is behind the whole message `n`.
    pub after: Option<RowPosition>,
    /// Those before this message.
    pub before: Option<u64>,
    /// Those of this time or later.
    pub since: Option<Timestamp>,
    /// The newest so many instead of the oldest.
    pub latest: Option<u32>,
    /// At most so many, and never more than [`MAX_ROWS`].
    pub limit: u32,
}

impl Default for EventsQuery {
    fn default() -> Self {
        let limit = MAX_ROWS;
        Self {
            agent: None,
            thread: None,
            correlation: None,
            after: None,
            before: None,
            since: None,
            latest: None,
            limit,
        }
    }
}

/// By index `events_of_agent`, `events_of_thread`, `events_of_chain` or the primary key, whose order is the order asked
/// for; `since` by `events_by_time`.
macro_rules! events {
    ($query:ident, $limit:expr, $order:literal) => {{
        let (sequence, position) = to_sql_position($query.after.unwrap_or(BEGINNING));
        rendered!(
            "($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR thread_id = $2)
                AND ($3::uuid IS NULL OR correlation_id = $3) AND ($4::timestamptz IS NULL OR ts >= $4)
                AND (sequence, position) > ($5, $6) AND sequence < $7
             ORDER BY "
                + $order,
            $query.agent.as_deref().map(SqlKey::from) as _,
            $query.thread.as_deref().map(SqlKey::from) as _,
            $query.correlation,
            $query.since.map(Time) as _,
            sequence,
            position,
            to_bigint($query.before.unwrap_or(u64::MAX)),
            row_limit($limit)
        )
    }};
}

impl ReadSnapshot {
    /// In the order of the log.
    pub async fn list_events(&self, query: &EventsQuery) -> Result<Vec<EventJson>, ReadError> {
        let connection = &mut **self.connection().await;
        let Some(latest) = query.latest else {
            let first = events!(query, query.limit, "sequence, position LIMIT $8");
            return Ok(event_rows::to_events(first.fetch_all(connection).await?));
        };
        let last = events!(query, latest.min(query.limit), "sequence DESC, position DESC LIMIT $8");
        let mut events = event_rows::to_events(last.fetch_all(connection).await?);
        events.reverse();
        Ok(events)
    }
}
