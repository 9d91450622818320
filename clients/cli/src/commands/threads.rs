//! `kairo threads`

mod messages;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::{ids::Name, media};
use kairo_proto::v1::{GetThreadResponse, ListThreadsResponse, Part, ThreadEventRow, ThreadRow};
use kairo_proto::words::{ActionStatus, ThreadStatus};
use serde_json::Value;

use super::{
    GatewaySession, name,
    orders::{OrderOptions, STATUS},
};
use crate::{
    Error, rows,
    steps::{self, one_line},
    table::table,
    terminal,
    watch::short_id,
};

const EXAMPLES: &str = "\
Examples:
  kairo threads
  kairo threads --agent aide --archived
  kairo threads show 1f0c2ab4
  kairo threads show 1f0c2ab4 --events
  kairo threads archive 1f0c2ab4";

/// Threads that are looked through for the beginning of an id: the newest.
const LOOKED_THROUGH: u32 = 500;

/// Show threads and what happened in them, or put one away
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct ThreadsArgs {
    #[command(subcommand)]
    command: Option<ThreadsCommand>,
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Only of this user
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Those that were put away, instead of those in use
    #[arg(long, conflicts_with = "all")]
    archived: bool,
    /// Those that were put away, too
    #[arg(long)]
    all: bool,
    /// At most so many, those first in which something happened last
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
}

#[derive(Debug, Subcommand)]
enum ThreadsCommand {
    /// Show what a thread is about, and what was said in it
    Show(ThreadShowArgs),
    /// Put a thread away; it comes back when somebody goes on with it
    #[command(after_help = STATUS)]
    Archive(ThreadOrderArgs),
    /// Take a thread out again
    #[command(after_help = STATUS)]
    Unarchive(ThreadOrderArgs),
}

#[derive(Debug, Args)]
struct ThreadSelector {
    /// The thread, or the beginning of its id
    #[arg(value_name = "ID")]
    id: String,
    /// Agent of the thread; only needed where several agents have one of this id
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
}

#[derive(Debug, Args)]
struct ThreadShowArgs {
    #[command(flatten)]
    thread: ThreadSelector,
    /// All that happened in it instead, and its chains
    #[arg(long)]
    events: bool,
    /// Number of the newest messages or events to show
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u32,
}

#[derive(Debug, Args)]
struct ThreadOrderArgs {
    #[command(flatten)]
    thread: ThreadSelector,
    #[command(flatten)]
    manner: OrderOptions,
}

pub(super) async fn run(arguments: ThreadsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None => list_threads(arguments, session).await,
        Some(ThreadsCommand::Show(show)) => show.show_thread(session).await,
        Some(ThreadsCommand::Archive(order)) => order.submit(true, session).await,
        Some(ThreadsCommand::Unarchive(order)) => order.submit(false, session).await,
    }
}

async fn list_threads(arguments: ThreadsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ThreadsArgs { agent, user, archived, all, limit, .. } = arguments;
    let status = match (archived, all) {
        (true, _) => ThreadStatus::Archived.known_word(),
        (false, true) => "all",
        (false, false) => "open",
    };
    let mut query = vec![("status", status.to_owned()), ("limit", limit.to_string())];
    query.extend(agent.map(|agent| ("agent", agent.to_string())));
    query.extend(user.map(|user| ("user", user.to_string())));
    if let Some(ListThreadsResponse { threads, .. }) = session.get_or_print_json("v1/threads", &query).await? {
        if threads.is_empty() {
            let hint = if !all { "; see kairo threads --all for those that were put away" } else { "" };
            terminal::line(format!("no thread{hint}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        format_threads(&threads, Timestamp::now()).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_threads(threads: &[ThreadRow], now: Timestamp) -> Vec<String> {
    let rows = threads.iter().map(|thread| {
        [
            thread.agent.clone(),
            short_id(&thread.thread_id),
            thread.user.clone(),
            thread.status.clone(),
            rows::format_elapsed(thread.updated_at, None, now).map(|lapse| format!("{lapse} ago")).unwrap_or_default(),
            one_line(if thread.title.is_empty() { "-" } else { &thread.title }),
            one_line(&thread.summary),
        ]
    });
    table(["agent", "thread", "user", "status", "last", "title", "summary"], rows)
}

impl ThreadSelector {
    /// The agent and the id of the thread that is meant.
    async fn find(self, session: &GatewaySession) -> Result<(String, Name), Error> {
        let mut query = vec![("status", "all".to_owned()), ("limit", LOOKED_THROUGH.to_string())];
        query.extend(self.agent.as_ref().map(|agent| ("agent", agent.to_string())));
        let ListThreadsResponse { threads, .. } = session.client.get("v1/threads", &query).await?;
        let (agent, id) = match (find_by_prefix(&threads, &self.id)?, self.agent) {
            (Some(thread), _) => (thread.agent.clone(), thread.thread_id.clone()),
            // One of long ago, named in full.
            (None, Some(agent)) => (agent.to_string(), self.id),
            (None, None) => return Err(Error::Advice(unknown_thread(&self.id))),
        };
        let thread = Name::parse(&id).map_err(|_| Error::Advice(unknown_thread(&id)))?;
        Ok((agent, thread))
    }
}

fn unknown_thread(id: &str) -> String {
    format!("no thread has an id that begins with {id}; see kairo threads --all")
}

/// The one whose id this is, or begins so.
fn find_by_prefix<'t>(threads: &'t [ThreadRow], id: &str) -> Result<Option<&'t ThreadRow>, Error> {
    let exact: Vec<&ThreadRow> = threads.iter().filter(|thread| thread.thread_id == id).collect();
    let begins = || threads.iter().filter(|thread| thread.thread_id.starts_with(id)).collect();
    let fitting: Vec<&ThreadRow> = if exact.is_empty() { begins() } else { exact };
    match fitting.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(Error::Advice(format!(
            "{} threads have ids that begin with {id}; write more of it or name the --agent, see kairo threads --json",
            several.len()
        ))),
    }
}

impl ThreadOrderArgs {
    async fn submit(self, archived: bool, session: &GatewaySession) -> Result<ExitCode, Error> {
        let (agent, thread) = self.thread.find(session).await?;
        self.manner.archive_thread(agent, &thread, archived, session).await
    }
}

impl ThreadShowArgs {
    async fn show_thread(self, session: &GatewaySession) -> Result<ExitCode, Error> {
        let (agent, thread) = self.thread.find(session).await?;
        if !self.events {
            let query = [("agent", agent), ("latest", self.limit.to_string())];
            if let Some(shown) = session.get_or_print_json(&format!("v1/threads/{thread}/messages"), &query).await? {
                let page = messages::format_messages(&shown, &TimeZone::system());
                session.require_field("thread", page)?.into_iter().try_for_each(terminal::row)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let query = [("agent", agent), ("limit", self.limit.to_string())];
        if let Some(shown) = session.get_or_print_json(&format!("v1/threads/{thread}"), &query).await? {
            let page = format_thread(&shown, Timestamp::now(), &TimeZone::system());
            session.require_field("thread", page)?.into_iter().try_for_each(terminal::row)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the page of a thread: its heading, events and chains; `None` if the answer has no thread.
fn format_thread(shown: &GetThreadResponse, now: Timestamp, zone: &TimeZone) -> Option<Vec<String>> {
    let GetThreadResponse { thread, events, next_before, chains, .. } = shown;
    let mut lines = format_heading(thread.as_ref()?, zone);
    lines.push(String::new());
    lines.extend(next_before.iter().map(|_| "… older events: see --limit".to_owned()));
    let rows = events
        .iter()
        .map(|event| [rows::format_time(event.timestamp, zone), one_line(&event.event), format_event(event)]);
    lines.extend(table(["time", "event", "result"], rows));
    for chain in chains {
        lines.push(String::new());
        lines.extend(steps::format_chain(chain, now));
    }
    Some(lines)
}

/// Returns the heading of a thread: its title, participants and status.
fn format_heading(thread: &ThreadRow, zone: &TimeZone) -> Vec<String> {
    let title = if thread.title.is_empty() { "(no title)" } else { &thread.title };
    let mut lines = vec![
        one_line(title),
        format!("{} of {} with {}, {}", thread.kind, thread.user, thread.agent, thread.status),
        format!("id {}", thread.thread_id),
        format!(
            "begun {}, last {}",
            rows::format_time(thread.created_at, zone),
            rows::format_time(thread.updated_at, zone)
        ),
    ];
    if !thread.summary.is_empty() {
        lines.push(one_line(&thread.summary));
    }
    lines
}

fn format_event(event: &ThreadEventRow) -> String {
    let result = match rows::value(event.result.as_ref()) {
        // What it says to people, where it says something.
        Value::Object(fields) if event.params.is_none() => {
            let parts: Option<Vec<Part>> =
                fields.get("parts").and_then(|parts| serde_json::from_value(parts.clone()).ok());
            let text = fields.get("text").and_then(Value::as_str);
            text.map(|text| media::text_with_parts(text, &parts.unwrap_or_default()))
        }
        Value::String(text) => Some(text),
        _ => event.result.as_ref().map(|result| result.text.clone()),
    };
    let unfinished = event
        .status
        .as_deref()
        .filter(|status| *status != ActionStatus::Done.as_str())
        .map(|status| format!("[{status}]"));
    let params = event.params.as_ref().map(|params| format!("{} ->", params.text));
    let parts = [params, unfinished, result];
    one_line(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thread(agent: &str, id: &str) -> Value {
        json!({
            "agent": agent, "thread_id": id, "user": "ann", "kind": "topic", "status": "active", "title": "Budget",
            "summary": "Sarah's\nnumbers", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:05:00Z",
        })
    }

    fn threads(ids: &[(&str, &str)]) -> Vec<ThreadRow> {
        ids.iter().map(|(agent, id)| serde_json::from_value(thread(agent, id)).unwrap()).collect()
    }

    #[test]
    fn a_thread_is_meant_by_its_id_or_its_beginning() {
        let threads = threads(&[("bob", "budget"), ("bob", "budget-2"), ("eve", "mail"), ("bob", "mail")]);
        let found = |id| find_by_prefix(&threads, id).map(|thread| thread.map(|thread| thread.thread_id.as_str()));
        assert_eq!(found("budget").unwrap(), Some("budget"));
        assert_eq!(found("budget-").unwrap(), Some("budget-2"));
        assert_eq!(found("x").unwrap(), None);
        assert!(found("mail").unwrap_err().to_string().starts_with("2 threads have ids that begin with mail"));
    }

    #[test]
    fn threads_are_listed_by_their_titles() {
        let lines = format_threads(&threads(&[("bob", "1f0c2ab4-0000")]), "2026-01-01T00:06:00Z".parse().unwrap());
        assert_eq!(lines[1], "bob    1f0c2ab4  ann   active  1m 0s ago  Budget  Sarah's numbers");
    }

    #[test]
    fn a_thread_is_shown_with_what_happened_and_its_chains() {
        let event = |event: &str, more: Value| {
            let mut value = json!({"event": event, "timestamp": "2026-01-01T00:00:01Z"});
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            value
        };
        let shown: GetThreadResponse = serde_json::from_value(json!({
            "thread": thread("bob", "t"),
            "events": [
                event("user.input", json!({"result": {"text": "Check\nmail"}})),
                event("user.input", json!({"result": {"text": "", "parts": [{"media_type": "image/png", "size": 9}]}})),
                event("email.search", json!({"params": {"from": "Sarah"}, "status": "running", "result": null})),
                event("tools.now", json!({"params": {}, "status": "done", "result": {"n": 1}})),
            ],
            "next_before": "3.0",
            "chains": [{
                "chain_id": "1f0c2ab4-0000-0000-0000-000000000001", "origin": "plan", "plan": "",
                "started_at": "2026-01-01T00:00:00Z", "steps": [],
            }],
        }))
        .unwrap();
        let text = format_thread(&shown, "2026-01-01T00:00:09Z".parse().unwrap(), &TimeZone::UTC).unwrap().join("\n");
        for part in [
            "Budget\ntopic of ann with bob, active\nid t\nbegun 2026-01-01 00:00:00, last 2026-01-01 00:05:00\n",
            "Sarah's numbers\n\n… older events",
            "00:00:01  user.input    Check mail",
            "00:00:01  user.input    [image image/png, 9 bytes]",
            "email.search  {\"from\":\"Sarah\"} -> [running]",
            "tools.now     {} -> {\"n\":1}",
            "chain 1f0c2ab4 (of a plan) runs for 9s",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
