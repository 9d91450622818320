//! `task.schedule`, `.register`, `.queue`, `.first`, `.list`, `.pause`, `.resume`, `.cancel`, `.archive` and `.run`.
//!
//! * `making`: tasks with a time, and hooks
//! * `queueing`: tasks that are worked on when their turn comes
//! * `listing`: what tasks there are
//! * `changing`: what becomes of them

mod creation;
mod listing;
mod queueing;
#[cfg(test)]
mod tests;
mod transitions;

use jiff::{SignedDuration, Timestamp, civil::Time};
use kairo_proto::{
    v1,
    words::{TaskKind, TaskSource, TaskTiming},
};
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::queueing::{TEXT_CHARS, cancel_queued};
use super::{BeginFn, Intrinsic, IntrinsicContext, IntrinsicStart, finish_without_model};
use crate::{
    request::Tool,
    schedule::{self, Schedule},
    state::Profile,
    tasks::{CONDITION_CHARS, Task, TaskActivation},
};

/// Delay after its due time from which a task counts as late, in seconds.
const LATE_SECONDS: i64 = 60;
/// The tool that puts a task into the queue.
pub const QUEUE: &str = "task.queue";
/// The tool that makes a task the next in the queue.
const FIRST: &str = "task.first";
/// Longest title, in characters.
pub const TITLE_CHARS: usize = 200;

pub fn all() -> Vec<Intrinsic> {
    vec![
        intrinsic(SCHEDULE.0, SCHEDULE.1, schedule_params(), json!(["action"]), creation::schedule),
        intrinsic(REGISTER.0, REGISTER.1, register_params(), json!(["trigger", "action"]), creation::register),
        intrinsic(LIST.0, LIST.1, list_params(), json!([]), listing::list),
        task_id_intrinsic(
            "task.pause",
            "Pauses a task or hook: it is not due and not triggered until task.resume.",
            transitions::pause,
        ),
        task_id_intrinsic(
            "task.resume",
            "Resumes a paused task or hook. What was missed in between is not made up for.",
            transitions::resume,
        ),
        task_id_intrinsic("task.cancel", "Cancels a task or hook for good.", transitions::cancel),
        task_id_intrinsic(
            "task.archive",
            "Puts a task away: an open one ends, one that is over is no longer listed with the others.",
            transitions::archive,
        ),
        task_id_intrinsic(
            "task.run",
            "Runs a task now. A repeated one stays due at its next time, any other is completed by it.",
            transitions::run,
        ),
        intrinsic(QUEUE, QUEUED, queue_params(), json!(["text"]), queueing::enqueue),
        task_id_intrinsic(FIRST, "Makes a queued task the next one that is worked on.", queueing::put_first),
    ]
}

/// Returns true if a tool is of use only to agents that work in the background.
pub fn is_of_queue(tool: &str) -> bool {
    matches!(tool, QUEUE | FIRST)
}

/// Returns true if an agent that works in the background has a tool by its conduct alone.
pub fn is_of_conduct(tool: &str) -> bool {
    is_of_queue(tool) || matches!(tool, "task.cancel" | "task.list" | "action.cancel")
}

/// Those that only people order.
pub fn order_intrinsics() -> Vec<Intrinsic> {
    vec![
        task_id_intrinsic("task.share", "Lets a hook fire for whatever happens to the agent.", transitions::share),
        task_id_intrinsic(
            "task.unshare",
            "Lets a hook fire for what concerns its own user only.",
            transitions::unshare,
        ),
    ]
}

pub fn intrinsic(name: &str, description: &str, properties: Value, required: Value, begin: BeginFn) -> Intrinsic {
    Intrinsic {
        tool: Tool {
            name: name.into(),
            description: description.into(),
            schema: json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
            .to_string()
            .into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        },
        begin,
        finish: finish_without_model,
    }
}

fn task_id_intrinsic(name: &str, description: &str, begin: BeginFn) -> Intrinsic {
    let id = json!({ "task_id": { "type": "string", "description": "As task.schedule, task.register or task.list returned it" } });
    intrinsic(name, description, id, json!(["task_id"]), begin)
}

const SCHEDULE: (&str, &str) = (
    "task.schedule",
    "Schedules steps to run later: once at a time (at), once after a while (delay), or repeatedly (interval, every, cron or rrule: exactly one). A reminder is the action [{\"event\": \"user.notify\", \"params\": {\"message\": \"...\"}}]. Returns task_id, title and next_at.",
);
const REGISTER: (&str, &str) = (
    "task.register",
    "Registers a hook: steps that run whenever something happens and the condition holds. trigger post:<tool> runs after each call of that tool that succeeded, post:email.received when a mail comes in, post:<source>.<verb> on an event of another system, pre:<tool> before each call of that tool (its action may hold step.stop, step.change, user.notify, memory.append and task.* only). The action refers to what happened as {event.field}. Returns task_id.",
);
const LIST: (&str, &str) = (
    "task.list",
    "Lists tasks and hooks. status pending: what has a time that is yet to come; active: hooks that wait and repeated tasks. Without status, everything that is not over.",
);

const QUEUED: &str = "Queues a task: it is worked on in the background, beside the conversation, as soon as those before it are done, with all tools there are. Returns task_id.";

fn queue_params() -> Value {
    json!({
        "text": {
            "type": "string",
            "minLength": 1,
            "maxLength": TEXT_CHARS,
            "description": "What is to be done, with all that whoever does it must know: the conversation is not shown to them",
        },
        "title": text_schema("For people, at most eight words; default from the text"),
    })
}

fn text_schema(description: &str) -> Value {
    json!({ "type": "string", "maxLength": 500, "description": description })
}

fn action_schema() -> Value {
    json!({
        "type": ["array", "object", "string"],
        "description": "The steps, in the form of a chain: [{\"event\": \"user.notify\", \"params\": {\"message\": \"Time to go\"}}, [\"in.parallel\", \"this.too\"]]. A single step may stand alone",
    })
}

fn schedule_params() -> Value {
    json!({
        "type": { "enum": TaskTiming::WORDS, "description": "Default: what the other parameters mean" },
        "at": {
            "type": ["string", "object"],
            "maxLength": 500,
            "description": "When: RFC 3339, \"2026-03-05 17:00\", \"tomorrow 08:00\", \"next friday at noon\", \"17:00\"; a day alone means 09:00. Of a repeated task, the first time or the time of the day",
        },
        "delay": text_schema("How long from now: \"30m\", \"2 hours\", \"PT30M\""),
        "interval": text_schema("How long between two times: \"15 minutes\", \"1 day\", \"2 weeks\"; at least 10 seconds"),
        "every": text_schema("\"day\", \"weekday\", \"weekend\", \"monday\" or \"monday and thursday\", at the time of at"),
        "cron": text_schema("minute hour day month weekday, such as \"0 8 * * 1-5\"; with seconds in front, six fields"),
        "rrule": text_schema("RFC 5545, such as \"FREQ=MONTHLY;BYDAY=1MO;BYHOUR=8\""),
        "time_zone": text_schema("IANA name; default the agent's"),
        "title": text_schema("For people; default from the action"),
        "action": action_schema(),
    })
}

fn register_params() -> Value {
    json!({
        "trigger": text_schema("\"post:email.received\", \"post:<tool>\", \"pre:<tool>\" or \"post:<source>.<verb>\""),
        "condition": {
            "type": "string",
            "maxLength": CONDITION_CHARS,
            "description": "When to run: \"sender contains 'Sarah' AND (subject contains 'budget' OR body contains 'budget')\". Operators: contains, =, !=, <, >, <=, >=, starts with, ends with, matches (a regular expression), in ['a', 'b'], exists; AND, OR, NOT, parentheses; or CEL; or plain words, which a model judges. Empty: always. A mail has sender, to, subject, body and date; a tool call its parameters and its result",
        },
        "title": text_schema("For people; default from the action"),
        "action": action_schema(),
    })
}

fn list_params() -> Value {
    json!({
        "filter": {
            "type": "object",
            "properties": {
                "due": { "type": ["string", "object"], "description": "A day or range in which it is due: \"2026-03-05\", \"this week\", or a result of tools.now or tools.date_calc" },
                "text": text_schema("In the title or the action"),
                "kind": { "enum": TaskKind::WORDS },
                "source": { "enum": TaskSource::WORDS },
                "trigger": text_schema("Of hooks, such as email.received"),
            },
            "additionalProperties": false,
        },
        "status": { "enum": ["pending", "in_progress", "active", "paused", "completed", "canceled", "archived", "failed", "all"] },
        "limit": { "type": "integer", "minimum": 1, "maximum": listing::MOST, "description": "Default 50" },
    })
}

/// Builds the event for a task whose time came or whose trigger happened. Missed times collapse to one.
pub fn task_fired(task: &Task, occurrence: u64, event: Uuid, now: Timestamp, data: &Value) -> v1::TaskFired {
    let (due, next) = match &task.what {
        TaskActivation::Hook { .. } | TaskActivation::Queue { .. } => (None, None),
        TaskActivation::Time { schedule, next } => {
            let due = next.map_or(now, |(at, _)| at);
            (Some(due), schedule.next_after(now.max(due)))
        }
    };
    v1::TaskFired {
        task_id: task.id.to_string(),
        occurrence,
        due_at: due.map(|due| due.to_string()).unwrap_or_default(),
        late: due.is_some_and(|due| now.duration_since(due) > SignedDuration::from_secs(LATE_SECONDS)),
        next_at: next.map(|next| next.to_string()).unwrap_or_default(),
        trigger_event_id: event.to_string(),
        data: if data.is_object() { data.to_string() } else { "{}".to_owned() },
        outside: task.outside.marks(),
        ..v1::TaskFired::default()
    }
}

/// Builds the task that ends the agent's day. If a profile's time or zone cannot be read, which the gateway refuses,
/// its days end just before midnight, or in UTC.
pub fn end_of_day(profile: &Profile, now: Timestamp, id: Uuid) -> v1::Task {
    let at: Option<Time> = profile.day_ends_at.parse().ok();
    let zone = if schedule::arguments::parse_time_zone(&profile.time_zone).is_ok() {
        profile.time_zone.as_str()
    } else {
        "UTC"
    };
    let at = at.unwrap_or(Time::constant(23, 59, 0, 0));
    let schedule = Schedule::DaysAt { at, zone: zone.to_owned() };
    let mut task = v1::Task {
        task_id: id.to_string(),
        kind: TaskKind::Scheduled.text(),
        title: "End of the day".to_owned(),
        r#type: TaskTiming::Repeat.text(),
        action: "[]".to_owned(),
        source: TaskSource::System.text(),
        next_at: schedule.next_after(now).map(|next| next.to_string()).unwrap_or_default(),
        occurrence: 1,
        ..v1::Task::default()
    };
    schedule.write_to(&mut task);
    task
}

/// Returns true if the turn may access the task: either has no user, or both have the same.
fn may_access(context: &IntrinsicContext<'_>, task: &Task) -> bool {
    let user = &context.turn.user;
    task.user == *user || user.is_empty() || task.user.is_empty()
}

/// The zone of the agent's days and times.
fn zone_of(context: &IntrinsicContext<'_>) -> String {
    context.state.profile.as_ref().map_or_else(|| "UTC".to_owned(), |profile| profile.time_zone.clone())
}

/// A moment with the offset of the zone, without fractions of a second.
fn local_time(moment: Timestamp, zone: &str) -> String {
    match schedule::arguments::parse_time_zone(zone) {
        Ok(zone) => moment.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        Err(_) => moment.to_string(),
    }
}
