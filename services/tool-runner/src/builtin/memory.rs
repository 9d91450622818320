//! `memory.search`: what an agent remembers, from the read model.
//!
//! The mind writes memories into the log; projector makes them rows. A search waits until the rows take account of the
//! decision that asked for it, so that an agent finds what it has just written.

mod days;
mod kinds;

use std::num::NonZeroU32;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{Span, Zoned};
use kairo_proto::v1::MemoryRow;
use kairo_read_model::{MemoriesQuery, NotFresh, PostgresConfig, ReadError, ReadErrorKind, ReadModel};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::workspace::{set_field, truncate_text};
use super::{parse_args, time_zone};
use crate::config::ToolsConfig;
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

/// The tool's name.
pub const NAME: &str = "memory.search";

/// Memories returned when a call does not say how many, and at most.
const DEFAULT_MATCHES: u32 = 10;
const MOST_MATCHES: u32 = 50;
/// Days that are recent.
const RECENT_DAYS: i32 = 14;
/// Most bytes of content, and most source events, returned of one memory.
const CONTENT_BYTES: usize = 4_000;
const SOURCES: usize = 20;
/// Bytes reserved for the rest of a result.
const FRAME_BYTES: usize = 1_024;

/// Settings of memory search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySearchConfig {
    /// Longest wait of a search for the read model to apply the decision that asked for it, in milliseconds. Default
    /// 2000.
    pub wait_ms: u64,
    /// Connections to Postgres at most, instead of `postgres.max_connections`. Default 2.
    pub connections: u32,
}

impl Default for MemorySearchConfig {
    fn default() -> Self {
        Self { wait_ms: 2_000, connections: 2 }
    }
}

impl MemorySearchConfig {
    /// Returns the mistakes in it, each with the name of its key.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.wait_ms > 60_000 {
            mistakes.push("wait_ms: must be at most 60000".to_owned());
        }
        if !(1..=100).contains(&self.connections) {
            mistakes.push("connections: must be 1 to 100".to_owned());
        }
        mistakes
    }
}

/// The tool with its connections, which are made when they are first needed.
#[derive(Debug)]
pub struct MemorySearch {
    spec: ToolSpec,
    read_model: ReadModel,
    time_zone: String,
    wait: Duration,
    room: usize,
}

#[derive(Deserialize)]
struct MemorySearchArgs {
    #[serde(default)]
    query: String,
    scope: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    date: Option<Value>,
    limit: Option<NonZeroU32>,
}

impl MemorySearch {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// When the URL cannot be read, which the configuration's validation finds first.
    /// On memories that were read from this log.
    pub fn new(postgres: &PostgresConfig, config: &ToolsConfig, log: Uuid) -> Result<Self, ReadError> {
        let postgres = PostgresConfig { max_connections: config.memory_search.connections, ..postgres.clone() };
        let read_model = ReadModel::open(&postgres)?;
        read_model.restrict_to_log(log);
        Ok(Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: "Searches the agent's memory: its journal, and what it knows about people, projects, preferences, decisions and facts. Any of the query's words may match, best first; without a query, the newest first. source_event_ids are events of the log that a memory came from.".to_owned(),
                schema: schema(),
                idempotent: true,
                timeout: config.call_timeout(),
                executor: Executor::ToolRunner,
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
                definition: None,
            },
            read_model,
            time_zone: config.time_zone.clone(),
            wait: Duration::from_millis(config.memory_search.wait_ms),
            room: config.max_result_bytes.saturating_sub(FRAME_BYTES),
        })
    }

    async fn search(&self, args: MemorySearchArgs, ctx: &CallContext) -> CallResult {
        let query = self.build_query(args, ctx)?;
        let role = self.read_model.postgres_role();
        let model = self.read_model.for_holder(ctx.holder());
        let snapshot = model.snapshot_at_least(ctx.decision_sequence, self.wait).await;
        let snapshot = snapshot.map_err(|error| not_fresh_error(error, &role))?;
        let found = snapshot.search_memories(&query).await.map_err(|error| read_model_error(&error, &role))?;
        drop(snapshot);
        let mut matches = Vec::new();
        let mut bytes = 0;
        for memory in &found {
            let shown = render_memory(memory);
            bytes += shown.to_string().len() + 1;
            if bytes > self.room {
                break;
            }
            matches.push(shown);
        }
        let mut result = json!({});
        let left_out = found.len() - matches.len();
        set_field(&mut result, "matches", matches);
        if left_out > 0 {
            set_field(&mut result, "left_out", left_out);
        }
        Ok(result)
    }

    fn build_query(&self, args: MemorySearchArgs, ctx: &CallContext) -> Result<MemoriesQuery, ToolError> {
        let now = ctx.now.to_zoned(time_zone(&self.time_zone)?);
        let (from, to) = match (&args.date, args.scope.as_deref()) {
            (Some(date), _) => days::parse_range("date", date, &now).map(|(first, last)| (Some(first), Some(last)))?,
            (None, Some("recent")) => (Some(first_recent_day(&now)?), None),
            (None, _) => (None, None),
        };
        Ok(MemoriesQuery {
            words: args.query,
            agent: Some(ctx.agent.clone()),
            // Users who share an agent do not see each other's; where it is not said who asks, the thread is asked.
            user: ctx.user.clone(),
            thread: ctx.user.is_none().then(|| ctx.thread_id.clone()),
            kinds: kinds::by_name(args.kind.as_deref().unwrap_or(kinds::ANY))?,
            from,
            to,
            limit: args.limit.map_or(DEFAULT_MATCHES, NonZeroU32::get).min(MOST_MATCHES),
            ..MemoriesQuery::default()
        })
    }
}

impl Tool for MemorySearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside_sources(&self, _: &Value, outcome: &CallResult) -> Vec<String> {
        let found = outcome.as_ref().ok().and_then(|found| found.get("matches")?.as_array());
        let marks = found.into_iter().flatten().filter_map(|memory| memory.get("outside")?.as_array());
        marks.flatten().filter_map(|mark| mark.as_str().map(str::to_owned)).collect()
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let args = parse_args(args)?;
            let found = ctx.cancel.run_until_cancelled(self.search(args, &ctx)).await;
            found.unwrap_or_else(|| Err(ToolError::canceled("the search was given up")))
        })
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 500, "description": "Words, of which any may match; none lists all"},
            "scope": {"enum": ["recent", "all"], "description": "recent is the last 14 days. Default all"},
            "type": {"enum": kinds::all_names(), "description": "Default any"},
            "date": {
                "type": ["string", "object"],
                "maxLength": 200,
                "description": "The day or days it is about, instead of scope: YYYY-MM-DD, such as \"last tuesday\" or \"last week\", a result of tools.now or tools.date_calc, or {\"from\": …, \"to\": …}",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_MATCHES, "description": "Memories returned, default 10"},
        },
        "additionalProperties": false,
    })
}

/// The first day that is recent.
fn first_recent_day(now: &Zoned) -> Result<jiff::civil::Date, ToolError> {
    let first = now.date().checked_sub(Span::new().days(RECENT_DAYS));
    first.map_err(|error| ToolError::failed(format!("there is no day {RECENT_DAYS} days ago: {error}")))
}

/// A memory as an agent is told it: without what is sealed.
fn render_memory(memory: &MemoryRow) -> Value {
    let (content, cut) = truncate_text(&memory.content, CONTENT_BYTES);
    let sources: Vec<&String> = memory.source_event_ids.iter().take(SOURCES).collect();
    let mut shown = json!({
        "memory_id": memory.memory_id,
        "type": memory.r#type,
        "subject": memory.subject,
        "content": content,
        "day": memory.day,
        "keywords": memory.keywords,
        "source_event_ids": sources,
        "score": (memory.score * 1_000.0).round() / 1_000.0,
    });
    if cut {
        set_field(&mut shown, "cut", true);
    }
    if !memory.outside.is_empty() {
        set_field(&mut shown, "outside", memory.outside.as_slice());
    }
    shown
}

fn not_fresh_error(error: NotFresh, role: &str) -> ToolError {
    match error {
        NotFresh::Behind { position, wanted } => {
            let behind = wanted.saturating_sub(position);
            ToolError::unavailable(format!("the read model is {behind} messages behind; try again in a moment"))
        }
        NotFresh::Unanswered(error) => read_model_error(&error, role),
    }
}

fn read_model_error(error: &ReadError, role: &str) -> ToolError {
    match error.kind {
        ReadErrorKind::Unavailable => {
            tracing::warn!(%error, "memory cannot be searched");
            ToolError::unavailable(
                "memory cannot be searched: the read model in Postgres does not answer; try again later, or go on without",
            )
        }
        ReadErrorKind::Denied => {
            tracing::error!(%error, role, "memory cannot be searched");
            ToolError::unavailable(
                "memory cannot be searched: Postgres refuses the role of tool-runner, whose log says what is missing; go on without",
            )
        }
        ReadErrorKind::Other => {
            tracing::error!(%error, "memory cannot be searched");
            ToolError::failed("memory cannot be searched; the operator finds the reason in the log of tool-runner")
        }
    }
}
