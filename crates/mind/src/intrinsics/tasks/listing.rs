//! Listing of tasks.

use jiff::{Timestamp, Zoned};
use kairo_events::dates;
use kairo_proto::words::TaskStatus;
use serde_json::{Map, Value, json};

use super::{IntrinsicContext, IntrinsicStart, local_time, may_access, zone_of};
use crate::{
    chain::format,
    intrinsics::IntrinsicOutcome,
    schedule::arguments::parse_time_zone,
    tasks::{StatusFilter, Task, TaskActivation, TaskFilter, TaskPhase},
};

/// Most tasks listed at once.
pub const MOST: usize = 200;
/// Tasks listed when nothing is said.
const USUAL: usize = 50;

pub fn list(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let zone = zone_of(context);
    let now = context.now.to_zoned(parse_time_zone(&zone)?);
    let filter = read_filter(params, &now)?;
    let limit = match params.get("limit") {
        None | Some(Value::Null) => USUAL,
        Some(limit) => match limit.as_u64().and_then(|limit| usize::try_from(limit).ok()) {
            Some(limit) if (1..=MOST).contains(&limit) => limit,
            _ => return Err(format!("limit: expected a number from 1 to {MOST}, found {limit}")),
        },
    };
    let mut found = context.state.tasks.list(&filter);
    found.retain(|task| may_access(context, task));
    let tasks: Vec<Value> = found.iter().take(limit).map(|task| task_json(task, &zone, context.most_steps)).collect();
    let mut result = json!({ "tasks": tasks });
    if let (Some(more @ 1..), Some(fields)) = (found.len().checked_sub(limit), result.as_object_mut()) {
        fields.insert("left_out".to_owned(), json!(more));
    }
    Ok(IntrinsicOutcome { events: Vec::new(), result }.into())
}

fn task_json(task: &Task, zone: &str, most_steps: usize) -> Value {
    let steps = format::from_json(&task.action, most_steps).unwrap_or_default();
    let action: Vec<String> = steps.into_iter().map(|step| step.event).collect();
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
    add("task_id", json!(task.id));
    add("title", json!(task.title));
    add("status", json!(task.status.word().as_str()));
    add("kind", json!(task.kind().as_str()));
    add("source", json!(task.source));
    add("action", json!(action));
    match &task.what {
        TaskActivation::Time { schedule, next } => {
            add("repeats", json!(schedule.repeats()));
            if let Some((at, _)) = next {
                add("next_at", json!(local_time(*at, zone)));
            }
        }
        TaskActivation::Hook { trigger, condition } => {
            add("trigger", json!(trigger));
            add("condition", json!(condition));
        }
        TaskActivation::Queue { text, result, .. } => {
            add("text", json!(text));
            if !result.is_empty() {
                add("result", json!(result));
            }
        }
    }
    Value::Object(fields)
}

fn read_filter(params: &Map<String, Value>, now: &Zoned) -> Result<TaskFilter, String> {
    let empty = Map::new();
    let given = match params.get("filter") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(given)) => given,
        Some(_) => return Err("filter: expected an object such as {\"due\": \"2026-03-05\"}".to_owned()),
    };
    let known = ["due", "text", "kind", "source", "trigger"];
    if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("filter: {name} is none of {}", known.join(", ")));
    }
    let text = |name: &str| match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("filter.{name}: expected a text")),
    };
    let due = match given.get("due") {
        None | Some(Value::Null) => None,
        Some(due) => Some(read_due_span(due, now)?),
    };
    let kind = text("kind")?;
    let source = text("source")?;
    Ok(TaskFilter { status: read_status(params)?, due, text: text("text")?, kind, source, trigger: text("trigger")? })
}

fn read_status(params: &Map<String, Value>) -> Result<StatusFilter, String> {
    let found = match params.get("status") {
        None | Some(Value::Null) => return Ok(StatusFilter::Open),
        Some(found) => found,
    };
    let text = found.as_str().unwrap_or_default();
    Ok(match (text, TaskPhase::from_word(text.into())) {
        ("all", _) => StatusFilter::All,
        ("pending", _) => StatusFilter::Pending,
        ("active", _) => StatusFilter::Active,
        (_, Some(status)) => StatusFilter::Exactly(status),
        (_, None) => {
            return Err(format!("status: expected {} or all, found {found}", TaskStatus::WORDS.join(", ")));
        }
    })
}

/// A day, a range, or what `tools.now` and `tools.date_calc` return. A moment stands for its day.
fn read_due_span(due: &Value, now: &Zoned) -> Result<(Timestamp, Timestamp), String> {
    let read = |text: &str| dates::parse_range(text.trim(), now).map_err(|error| format!("filter.due: {error}"));
    let wrong = || "filter.due: expected a date, or an object with start and end".to_owned();
    let (start, end) = match due {
        Value::String(text) => match text.split_once("..").or_else(|| text.split_once('/')) {
            Some((first, last)) => (read(first)?.0, read(last)?.1),
            None => read(text)?,
        },
        Value::Object(fields) => {
            let text = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).and_then(Value::as_str);
            let one = text(&["start", "from"]).or_else(|| text(&["date", "now"])).ok_or_else(wrong)?;
            match text(&["end", "until", "to"]) {
                Some(end) => (read(one)?.0, read(end)?.1),
                None => read(one)?,
            }
        }
        _ => return Err(wrong()),
    };
    if start < end {
        return Ok((start.timestamp(), end.timestamp()));
    }
    if end < start {
        return Err("filter.due: it ends before it begins".to_owned());
    }
    let (start, end) = read(&start.with_time_zone(now.time_zone().clone()).date().to_string())?;
    Ok((start.timestamp(), end.timestamp()))
}
