//! The token usage and cost of model calls, added up.

use jiff::{Timestamp, civil::Date};
use sqlx::query_as;

use super::row_limit;
use crate::{
    ReadError, ReadSnapshot,
    sql_values::{SqlKey, SqlText, Time, U64},
};

/// The fields to group by; calls are summed over the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageGrouping {
    pub day: bool,
    pub agent: bool,
    pub user: bool,
    pub thread: bool,
    pub model: bool,
    pub module: bool,
}

/// The group of a sum: a field is empty if it is not grouped by, or if the calls have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageKey {
    /// YYYY-MM-DD in UTC.
    pub day: String,
    pub agent: String,
    pub user: String,
    pub thread: String,
    pub model: String,
    /// The submodule; empty for the agent itself, too.
    pub module: String,
}

/// The calls to sum, and their grouping; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct UsageQuery {
    pub by: UsageGrouping,
    pub agent: Option<String>,
    pub user: Option<String>,
    pub thread: Option<String>,
    pub model: Option<String>,
    pub module: Option<String>,
    /// Only what came of what was sent by this principal, such as `api_key:mjz5cqn2x7bd3kfa`.
    pub entered_by: Option<String>,
    /// Decided on at this time or later.
    pub since: Option<Timestamp>,
    /// On these days (UTC), both included.
    pub from: Option<Date>,
    pub to: Option<Date>,
    /// Those that come after this one, in the order of their days, agents, users, threads, models and submodules.
    pub after: Option<UsageKey>,
    /// At most so many keys, and never more than [`MAX_ROWS`](crate::MAX_ROWS).
    pub limit: u32,
}

/// The usage of one model within one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUsage {
    pub day: String,
    pub agent: String,
    pub user: String,
    pub thread: String,
    /// Empty where models are not told apart.
    pub model_key: String,
    pub module: String,
    pub model: String,
    pub calls: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub latency_ms: u64,
    pub cached_tokens: u64,
    /// Calls of which the numbers of tokens are an estimate, and those tokens.
    pub estimated_calls: u64,
    pub estimated_tokens: u64,
    /// Calls that were answered, of which no numbers of tokens are known.
    pub uncounted: u64,
}

impl ModelUsage {
    pub fn usage_key(&self) -> UsageKey {
        UsageKey {
            day: self.day.clone(),
            agent: self.agent.clone(),
            user: self.user.clone(),
            thread: self.thread.clone(),
            model: self.model_key.clone(),
            module: self.module.clone(),
        }
    }
}

impl ReadSnapshot {
    /// Rows of one key follow each other. By index `model_calls_of_agent` or `model_calls_by_day`. A page is of keys;
    /// each has a row for every model, since prices are those of models.
    pub async fn model_usage(&self, wanted: &UsageQuery) -> Result<Vec<ModelUsage>, ReadError> {
        let key = |text: &Option<String>| text.as_deref().map(SqlKey::from);
        let day = |day: Option<Date>| day.map(|day| day.to_string());
        let after = |part: fn(&UsageKey) -> &str| wanted.after.as_ref().map(|after| SqlText::from(part(after)));
        let usage = query_as!(
            ModelUsage,
            r#"
            WITH called AS (
                SELECT CASE WHEN $1 THEN calls.day::text ELSE '' END AS day,
                       CASE WHEN $2 THEN calls.agent ELSE '' END AS agent,
                       CASE WHEN $3 THEN coalesce(calls.user_id, threads.user_id, '') ELSE '' END AS user_id,
                       CASE WHEN $4 THEN coalesce(calls.thread_id, '') ELSE '' END AS thread_id,
                       CASE WHEN $5 THEN calls.model ELSE '' END AS model_key,
                       CASE WHEN $18 THEN calls.module ELSE '' END AS module_key,
                       calls.model, calls.failed, calls.input_tokens, calls.output_tokens, calls.latency_ms,
                       calls.cached_tokens, calls.is_estimate
                FROM model_calls AS calls LEFT JOIN threads ON threads.agent = calls.agent
                    AND threads.thread_id = calls.thread_id
                WHERE ($6::text IS NULL OR calls.agent = $6)
                    AND ($7::text IS NULL OR coalesce(calls.user_id, threads.user_id) = $7)
                    AND ($8::text IS NULL OR calls.thread_id = $8)
                    AND ($9::text IS NULL OR calls.model = $9)
                    AND ($19::text IS NULL OR calls.module = $19)
                    AND ($10::text IS NULL OR calls.day >= $10::text::date)
                    AND ($11::text IS NULL OR calls.day <= $11::text::date)
                    AND ($21::text IS NULL OR calls.correlation_id IN
                        (SELECT correlation_id FROM entries WHERE entered_by = $21))
                    AND ($22::timestamptz IS NULL OR calls.decided_at >= $22)
            ), page AS (
                SELECT DISTINCT day, agent, user_id, thread_id, model_key, module_key FROM called
                WHERE $12::text IS NULL
                    OR (day, agent, user_id, thread_id, model_key, module_key) > ($12, $13, $14, $15, $16, $20)
                ORDER BY day, agent, user_id, thread_id, model_key, module_key LIMIT $17
            )
            SELECT day AS "day!", agent AS "agent!", user_id AS "user!", thread_id AS "thread!",
                   model_key AS "model_key!", module_key AS "module!", model AS "model!", count(*) AS "calls!: U64", count(failed) AS "failed!: U64",
                   sum(input_tokens)::bigint AS "input_tokens!: U64",
                   sum(output_tokens)::bigint AS "output_tokens!: U64", sum(latency_ms)::bigint AS "latency_ms!: U64",
                   sum(cached_tokens)::bigint AS "cached_tokens!: U64",
                   count(*) FILTER (WHERE is_estimate) AS "estimated_calls!: U64",
                   coalesce(sum(input_tokens + output_tokens) FILTER (WHERE is_estimate), 0)::bigint AS "estimated_tokens!: U64",
                   count(*) FILTER (WHERE failed IS NULL AND input_tokens = 0 AND output_tokens = 0) AS "uncounted!: U64"
            FROM called JOIN page USING (day, agent, user_id, thread_id, model_key, module_key)
            GROUP BY day, agent, user_id, thread_id, model_key, module_key, model
            ORDER BY day, agent, user_id, thread_id, model_key, module_key, model"#,
            wanted.by.day,
            wanted.by.agent,
            wanted.by.user,
            wanted.by.thread,
            wanted.by.model,
            key(&wanted.agent) as _,
            key(&wanted.user) as _,
            key(&wanted.thread) as _,
            key(&wanted.model) as _,
            day(wanted.from),
            day(wanted.to),
            after(|after| &after.day) as _,
            after(|after| &after.agent) as _,
            after(|after| &after.user) as _,
            after(|after| &after.thread) as _,
            after(|after| &after.model) as _,
            row_limit(wanted.limit),
            wanted.by.module,
            key(&wanted.module) as _,
            after(|after| &after.module) as _,
            wanted.entered_by,
            wanted.since.map(Time) as _,
        );
        Ok(usage.fetch_all(&mut **self.connection().await).await?)
    }
}
