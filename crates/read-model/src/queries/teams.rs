//! Teams: how it is with them, what their agents work on, and what they spent.

use jiff::civil::Date;
use kairo_proto::v1::TaskAtWorkRow;
use sqlx::{query, query_as};

use crate::{
    ReadError, ReadSnapshot,
    output_columns::At,
    sql_values::{SqlKey, U64},
};

/// The standing of a team, as its lead reported it last.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamStanding {
    /// The lead.
    pub agent: String,
    /// A word of `TeamStatus`.
    pub status: String,
    pub reason: String,
    pub over_budget: bool,
    pub changed_at: Option<prost_types::Timestamp>,
}

/// The usage of one model by an agent on a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyModelUsage {
    pub agent: String,
    pub model: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    /// Calls that were answered, of which no numbers of tokens are known.
    pub uncounted: u64,
}

fn to_keys(agents: &[String]) -> Vec<SqlKey> {
    agents.iter().map(|agent| SqlKey::from(agent.as_str())).collect()
}

impl ReadSnapshot {
    /// Returns the standing of these leads' teams; none for those that were always active. By the primary key.
    pub async fn team_standings(&self, leads: &[String]) -> Result<Vec<TeamStanding>, ReadError> {
        let standings = query_as!(
            TeamStanding,
            r#"
            SELECT agent, status, reason, over_budget, changed_at AS "changed_at: At"
            FROM teams WHERE agent = ANY($1)"#,
            to_keys(leads) as _,
        );
        Ok(standings.fetch_all(&mut **self.connection().await).await?)
    }

    /// Returns the tasks that each of these agents works on, the first begun first. By index `tasks_at_work`.
    pub async fn tasks_at_work(&self, agents: &[String]) -> Result<Vec<(String, TaskAtWorkRow)>, ReadError> {
        let tasks = query!(
            r#"
            SELECT agent, task_id, title, changed_at AS "changed_at: At"
            FROM tasks WHERE agent = ANY($1) AND kind = 'queued' AND status = 'in_progress'
            ORDER BY agent, changed_sequence"#,
            to_keys(agents) as _,
        )
        .map(|row| {
            let task_id = row.task_id.to_string();
            (row.agent, TaskAtWorkRow { task_id, title: row.title, since: row.changed_at.into() })
        });
        Ok(tasks.fetch_all(&mut **self.connection().await).await?)
    }

    /// Returns the usage of these agents on this day (UTC), model by model. By index `model_calls_of_agent`.
    pub async fn daily_usage(&self, day: Date, agents: &[String]) -> Result<Vec<DailyModelUsage>, ReadError> {
        let spent = query_as!(
            DailyModelUsage,
            r#"
            SELECT agent, model, sum(input_tokens)::bigint AS "input_tokens!: U64",
                   sum(output_tokens)::bigint AS "output_tokens!: U64",
                   sum(cached_tokens)::bigint AS "cached_tokens!: U64",
                   count(*) FILTER (WHERE failed IS NULL AND input_tokens = 0 AND output_tokens = 0) AS "uncounted!: U64"
            FROM model_calls WHERE agent = ANY($1) AND day = $2::text::date
            GROUP BY agent, model ORDER BY agent, model"#,
            to_keys(agents) as _,
            day.to_string(),
        );
        Ok(spent.fetch_all(&mut **self.connection().await).await?)
    }
}
