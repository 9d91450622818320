//! Events in seed 002's form.

use jiff::Timestamp;
use kairo_core::event_json::EventJson;
use sqlx::{Postgres, QueryBuilder, types::Json};
use uuid::Uuid;

use super::{behind, ordered};
use crate::{
    MAX_ROWS, Place, ReadError, Snapshot,
    stored::{Key, Time},
};

/// Which events; all conditions must hold.
#[derive(Clone, Debug)]
pub struct EventsQuery {
    /// Those that concern this agent, what is addressed to it included.
    pub agent: Option<String>,
    pub thread: Option<String>,
    /// The chain that began with the event of this id.
    pub correlation: Option<Uuid>,
    /// Those behind this place; `(n, u32::MAX)` is behind the whole message `n`.
    pub after: Option<Place>,
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
        Self { agent: None, thread: None, correlation: None, after: None, since: None, latest: None, limit }
    }
}

impl EventsQuery {
    /// By index `events_of_agent`, `events_of_thread`, `events_of_chain` or the primary key, whose order is the order
    /// asked for; `since` by `events_by_time`.
    fn sql(&self) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new("SELECT event FROM events WHERE true");
        if let Some(agent) = &self.agent {
            sql.push(" AND agent = ").push_bind(Key::from(agent.as_str()));
        }
        if let Some(thread) = &self.thread {
            sql.push(" AND thread_id = ").push_bind(Key::from(thread.as_str()));
        }
        if let Some(correlation) = self.correlation {
            sql.push(" AND correlation_id = ").push_bind(correlation);
        }
        if let Some(since) = self.since {
            sql.push(" AND ts >= ").push_bind(Time(since));
        }
        if let Some(after) = self.after {
            behind(&mut sql, after);
        }
        let rows = self.latest.map_or(self.limit, |latest| latest.min(self.limit));
        ordered(&mut sql, self.latest.is_some(), rows);
        sql
    }
}

impl Snapshot {
    /// In the order of the log.
    pub async fn events(&self, query: &EventsQuery) -> Result<Vec<EventJson>, ReadError> {
        let rows: Vec<Json<EventJson>> =
            query.sql().build_query_scalar().fetch_all(&mut **self.connection().await).await?;
        let mut events: Vec<EventJson> = rows.into_iter().map(|Json(event)| event).collect();
        if query.latest.is_some() {
            events.reverse();
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_in_the_statement() {
        assert_eq!(
            EventsQuery::default().sql().sql().as_str(),
            "SELECT event FROM events WHERE true ORDER BY sequence ASC, position ASC LIMIT $1"
        );
        let query =
            EventsQuery { agent: Some("a".into()), after: Some((7, 0)), latest: Some(3), ..EventsQuery::default() };
        assert_eq!(
            query.sql().sql().as_str(),
            "SELECT event FROM events WHERE true AND agent = $1 AND (sequence, position) > ($2, $3) \
             ORDER BY sequence DESC, position DESC LIMIT $4"
        );
    }
}
