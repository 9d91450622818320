//! `kairo tasks`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::ids::Name;
use kairo_proto::{
    v1::{GetTaskResponse, ListTasksResponse, TaskRow},
    words::{TaskKind, TaskTiming},
};

use super::{
    GatewaySession,
    id_prefix::{IdPrefix, short_id},
    name,
    orders::{OrderOptions, STATUS, TaskOrder},
    task_queueing::{self, TaskAddArgs},
};
use crate::{
    Error, rows,
    steps::{self, one_line},
    table::table,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo tasks
  kairo tasks --agent aide --status all
  kairo tasks show 1f0c2ab4
  kairo tasks add --agent scout --wait 'Find out what the harbour fees are.'
  kairo tasks pause 1f0c2ab4";

/// Tasks that are looked through for the beginning of an id: the newest.
const LOOKED_THROUGH: u32 = 500;

/// Show what agents are to do at a time or when something happens, or change it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct TasksArgs {
    #[command(subcommand)]
    command: Option<TasksCommand>,
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Only of this user
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Show tasks that are queued or worked on, in that order, instead of the newest
    #[arg(long, conflicts_with_all = ["status", "kind"])]
    queue: bool,
    /// pending, in_progress, active, paused, completed, canceled, archived, failed; open for those that are not over, or all
    #[arg(long, default_value = "open", value_name = "STATUS")]
    status: String,
    /// scheduled, hook or queued
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// At most so many, the newest
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u32,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    /// Show a task, when it fired, and what it did then
    Show(TaskSelector),
    /// Put a task into the queue of an agent that works in the background
    #[command(after_help = task_queueing::EXAMPLES)]
    Add(TaskAddArgs),
    /// Let a task rest until it is resumed
    #[command(after_help = STATUS)]
    Pause(TaskOrderArgs),
    /// Go on with a task that rests
    #[command(after_help = STATUS)]
    Resume(TaskOrderArgs),
    /// End a task
    #[command(after_help = STATUS)]
    Cancel(TaskOrderArgs),
    /// Run a task now, whenever it is due
    #[command(after_help = STATUS)]
    Run(TaskOrderArgs),
    /// Let a hook fire for whatever happens to the agent, whomever it concerns (administrators)
    #[command(after_help = STATUS)]
    Share(TaskOrderArgs),
    /// Let a hook fire for what concerns its own user only, as it did (administrators)
    #[command(after_help = STATUS)]
    Unshare(TaskOrderArgs),
}

#[derive(Debug, Args)]
struct TaskSelector {
    /// The task, or the first digits of its id
    #[arg(value_name = "ID")]
    id: IdPrefix,
    /// Agent of the task; only needed for one that kairo tasks does not list
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
}

#[derive(Debug, Args)]
struct TaskOrderArgs {
    #[command(flatten)]
    task: TaskSelector,
    #[command(flatten)]
    manner: OrderOptions,
}

pub(super) async fn run(arguments: TasksArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None => list_tasks(arguments, session).await,
        Some(TasksCommand::Show(task)) => show_task(task, session).await,
        Some(TasksCommand::Add(task)) => task.run(session).await,
        Some(TasksCommand::Pause(order)) => order.submit(TaskOrder::Pause, session).await,
        Some(TasksCommand::Resume(order)) => order.submit(TaskOrder::Resume, session).await,
        Some(TasksCommand::Cancel(order)) => order.submit(TaskOrder::Cancel, session).await,
        Some(TasksCommand::Run(order)) => order.submit(TaskOrder::Run, session).await,
        Some(TasksCommand::Share(order)) => order.submit(TaskOrder::Share, session).await,
        Some(TasksCommand::Unshare(order)) => order.submit(TaskOrder::Unshare, session).await,
    }
}

async fn list_tasks(arguments: TasksArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let TasksArgs { agent, user, queue, status, kind, limit, .. } = arguments;
    let open = status == "open";
    let wanted = if queue { ("queue", "true".to_owned()) } else { ("status", status) };
    let mut query = vec![wanted, ("limit", limit.to_string())];
    query.extend(agent.map(|agent| ("agent", agent.to_string())));
    query.extend(user.map(|user| ("user", user.to_string())));
    query.extend(kind.map(|kind| ("kind", kind)));
    if let Some(ListTasksResponse { tasks, .. }) = session.get_or_print_json("v1/tasks", &query).await? {
        if tasks.is_empty() {
            let hint = if open && !queue { "; see kairo tasks --status all for those that are over" } else { "" };
            terminal::line(format!("no task{hint}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        format_tasks(&tasks, &TimeZone::system()).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_tasks(tasks: &[TaskRow], zone: &TimeZone) -> Vec<String> {
    let rows = tasks.iter().map(|task| {
        [
            task.agent.clone(),
            short_id(&task.task_id),
            task.status.clone(),
            one_line(if task.title.is_empty() { "-" } else { &task.title }),
            describe_timing(task),
            rows::format_time(task.next_at, zone),
            task.fired.to_string(),
        ]
    });
    table(["agent", "task", "status", "title", "when", "next", "fired"], rows)
}

async fn show_task(task: TaskSelector, session: &GatewaySession) -> Result<ExitCode, Error> {
    let id = match task.id.full_id() {
        Some(id) => id,
        None => task.find(session).await?.1,
    };
    if let Some(shown) = session.get_or_print_json(&format!("v1/tasks/{id}"), &[]).await? {
        let page = format_task(&shown, Timestamp::now(), &TimeZone::system());
        session.require_field("task", page)?.into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl TaskSelector {
    /// The agent and the id of the task that is meant.
    async fn find(self, session: &GatewaySession) -> Result<(String, String), Error> {
        if let (Some(agent), Some(id)) = (&self.agent, self.id.full_id()) {
            return Ok((agent.to_string(), id));
        }
        let mut query = vec![("limit", LOOKED_THROUGH.to_string())];
        query.extend(self.agent.map(|agent| ("agent", agent.to_string())));
        let ListTasksResponse { tasks, .. } = session.client.get("v1/tasks", &query).await?;
        let task = self.id.find_unique(tasks, |task| &task.task_id, "task", "kairo tasks --status all")?;
        Ok((task.agent, task.task_id))
    }
}

impl TaskOrderArgs {
    async fn submit(self, order: TaskOrder, session: &GatewaySession) -> Result<ExitCode, Error> {
        let (agent, task) = self.task.find(session).await?;
        self.manner.order_task(agent, task, order, session).await
    }
}

/// When it is due, or what it waits for, as it was asked for.
fn describe_timing(task: &TaskRow) -> String {
    let hook = task.trigger.as_deref().map(|trigger| format!("on {trigger}"));
    let condition = task.condition.as_deref().map(|condition| format!("if {condition:?}"));
    // The time that a delay or an interval is counted from says nothing to people.
    let delays = task.type_word() == Some(TaskTiming::Delay);
    let counts = task.interval.is_some();
    let each = if delays { "after" } else { "every" };
    let words = [
        task.r#type.clone().filter(|_| !delays && !counts),
        task.at.as_deref().filter(|_| !counts).map(|at| format!("at {at}")),
        task.interval.as_deref().map(|interval| format!("{each} {interval}")),
        task.cron.clone(),
        task.rrule.clone(),
        hook,
        condition,
    ];
    one_line(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// A task, when it fired, and what it did then; none of an answer without a task.
fn format_task(shown: &GetTaskResponse, now: Timestamp, zone: &TimeZone) -> Option<Vec<String>> {
    let GetTaskResponse { task, firings, chains, .. } = shown;
    let task = task.as_ref()?;
    let title = if task.title.is_empty() { "(no title)" } else { &task.title };
    let reason = task.reason.as_deref().map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    let of = task.user.as_deref().map(|user| format!(" for {user}")).unwrap_or_default();
    let mut lines = vec![
        one_line(title),
        format!("{} task of {}{of}, {}{reason}", task.kind, task.agent, task.status),
        format!("id {}", task.task_id),
    ];
    let due = describe_timing(task) + &task.time_zone.as_deref().map(|zone| format!(" ({zone})")).unwrap_or_default();
    lines.extend(Some(due).filter(|due| !due.is_empty()));
    lines.extend([format!("made {} (by {})", rows::format_time(task.created_at, zone), task.source)]);
    lines.extend(task.thread_id.as_deref().map(|thread| format!("in thread {thread}")));
    lines.extend(task.next_at.map(|next| format!("next {}", rows::format_time(Some(next), zone))));
    lines.extend(task.ended_at.map(|ended| format!("over since {}", rows::format_time(Some(ended), zone))));
    lines.extend(task.work_thread_id.as_deref().map(|thread| format!("worked on in thread {thread}")));
    lines.extend(
        task.text.as_deref().filter(|text| *text != task.title).map(|text| format!("to do: {}", one_line(text))),
    );
    lines.extend(task.result.as_deref().map(|result| format!("result: {}", one_line(result))));
    if task.kind_word() == TaskKind::Queued {
        return Some(lines);
    }
    lines.push(match task.last_fired_at {
        None => "not fired yet".to_owned(),
        last => {
            let late = late_suffix(task.last_late.unwrap_or_default());
            format!("fired {} times, last {}{late}", task.fired, rows::format_time(last, zone))
        }
    });
    lines.push(format!("does {}", one_line(rows::text(task.action.as_ref()))));
    if !firings.is_empty() {
        lines.push(String::new());
        let rows = firings.iter().map(|firing| {
            let which = firing.occurrence.map(|occurrence| occurrence.to_string()).unwrap_or_default();
            [
                rows::format_time(firing.fired_at, zone),
                which,
                rows::format_time(firing.due_at, zone) + late_suffix(firing.late),
            ]
        });
        lines.extend(table(["fired", "no.", "due"], rows));
    }
    for chain in chains {
        lines.push(String::new());
        lines.extend(steps::format_chain(chain, now));
    }
    Some(lines)
}

fn late_suffix(late: bool) -> &'static str {
    if late { " (late)" } else { "" }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn task(more: Value) -> Value {
        let mut task = json!({
            "task_id": "1f0c2ab4-0000-0000-0000-000000000001", "agent": "bob", "user": "ann", "kind": "scheduled",
            "title": "Report", "action": ["tools.now"], "source": "user", "status": "active", "fired": 2,
            "created_at": "2026-01-01T00:00:00Z", "last_fired_at": "2026-01-08T00:00:00Z", "last_late": true,
        });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    }

    #[test]
    fn tasks_say_when_they_are_due_or_what_they_wait_for() {
        let tasks = [
            task(json!({"type": "repeat", "interval": "1 week", "next_at": "2026-01-15T00:00:00Z"})),
            task(json!({"kind": "hook", "trigger": "post:email.received", "condition": "if urgent", "title": ""})),
        ];
        let tasks: Vec<TaskRow> = tasks.into_iter().map(|task| serde_json::from_value(task).unwrap()).collect();
        let text = format_tasks(&tasks, &TimeZone::UTC).join("\n");
        for part in [
            "bob    1f0c2ab4  active  Report  every 1 week",
            "2026-01-15 00:00:00  2",
            "active  -       on post:email.received if \"if urgent\"",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn an_answer_without_a_task_shows_nothing() {
        assert_eq!(format_task(&GetTaskResponse::default(), Timestamp::now(), &TimeZone::UTC), None);
    }

    #[test]
    fn a_task_is_shown_with_the_times_it_fired() {
        let shown: GetTaskResponse = serde_json::from_value(json!({
            "task": task(json!({"type": "once", "at": "tomorrow", "time_zone": "Europe/Berlin", "reason": "by ann"})),
            "firings": [{
                "fired_at": "2026-01-08T00:09:00Z", "occurrence": 1, "due_at": "2026-01-08T00:00:00Z", "late": true,
            }],
            "chains": [{
                "chain_id": "1f0c2ab4-0000-0000-0000-000000000001", "origin": "task", "plan": "",
                "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:09Z", "outcome": "done", "steps": [],
            }],
        }))
        .unwrap();
        let text = format_task(&shown, Timestamp::now(), &TimeZone::UTC).unwrap().join("\n");
        for part in [
            "Report\nscheduled task of bob for ann, active: by ann\nid 1f0c2ab4-",
            "once at tomorrow (Europe/Berlin)\nmade 2026-01-01 00:00:00 (by user)",
            "fired 2 times, last 2026-01-08 00:00:00 (late)\ndoes [\"tools.now\"]",
            "2026-01-08 00:09:00  1    2026-01-08 00:00:00 (late)",
            "chain 1f0c2ab4 (of a task) done after 9s",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
