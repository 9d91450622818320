//! Tasks with a time, and hooks.

use kairo_events::ids;
use kairo_proto::{
    v1::{self, TaskScheduled, decided_event::Event},
    words::{TaskKind, TaskSource, TaskStatus},
};
use serde_json::{Map, Value, json};

use super::{IntrinsicContext, IntrinsicStart, TITLE_CHARS, local_time, zone_of};
use crate::{
    chain::{StepSpec, check, format},
    intrinsics::IntrinsicOutcome,
    schedule,
    tasks::{ACTION_BYTES, CONDITION_CHARS},
};

/// Events that a hook may run before a step, besides `task.*`: they run at once, within the decision.
const BEFORE_STEPS: [&str; 4] = ["step.stop", "step.change", "user.notify", "memory.append"];
/// Of these, what acts on the step.
const ON_STEPS: [&str; 2] = ["step.stop", "step.change"];
/// Longest name of what a hook waits for, in characters.
const NAME_CHARS: usize = 128;

pub fn schedule(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let zone = zone_of(context);
    let task = schedule::arguments::build_task(params, context.now, &zone)?;
    let steps = read_action(context, params, false)?;
    let task = v1::Task { kind: TaskKind::Scheduled.text(), ..task };
    let next = task.next_at.parse().map(|next| local_time(next, &zone)).unwrap_or_default();
    let (task, title) = fill_in_task(context, params, task, &steps)?;
    let result =
        json!({ "task_id": task.task_id, "title": title, "status": TaskStatus::Pending.as_str(), "next_at": next });
    Ok(IntrinsicOutcome { events: vec![scheduled_event(task)], result }.into())
}

pub fn register(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let trigger = read_trigger(context, params)?;
    let condition = match params.get("condition") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(_) => return Err("condition: expected a text such as \"sender contains 'Sarah'\"".to_owned()),
    };
    if condition.chars().count() > CONDITION_CHARS {
        return Err(format!("condition: expected at most {CONDITION_CHARS} characters"));
    }
    let steps = read_action(context, params, trigger.starts_with("pre:"))?;
    let task = v1::Task { kind: TaskKind::Hook.text(), trigger: trigger.clone(), condition, ..v1::Task::default() };
    let (task, title) = fill_in_task(context, params, task, &steps)?;
    let result =
        json!({ "task_id": task.task_id, "title": title, "status": TaskStatus::Active.as_str(), "trigger": trigger });
    Ok(IntrinsicOutcome { events: vec![scheduled_event(task)], result }.into())
}

fn scheduled_event(task: v1::Task) -> Event {
    Event::TaskScheduled(TaskScheduled { task: Some(task) })
}

/// With all that every task has, and its title.
fn fill_in_task(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    task: v1::Task,
    steps: &[StepSpec],
) -> Result<(v1::Task, String), String> {
    let action = format::to_json(steps).to_string();
    if action.len() > ACTION_BYTES {
        return Err(format!(
            "action: expected at most {} KB of JSON, found {} bytes",
            ACTION_BYTES / 1024,
            action.len()
        ));
    }
    let title = read_title(params, steps)?;
    let task = v1::Task {
        task_id: ids::derive(context.id, "task").to_string(),
        title: title.clone(),
        action,
        thread_id: context.state.conversation_of(context.turn),
        user: context.turn.user.clone(),
        source: TaskSource::User.text(),
        outside: context.state.provenance_of(context.turn).marks(),
        ..task
    };
    context.state.tasks.check_room(&task)?;
    Ok((task, title))
}

/// Returns the task's title; without one it is derived from its steps.
fn read_title(params: &Map<String, Value>, steps: &[StepSpec]) -> Result<String, String> {
    let own = match params.get("title") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text.trim(),
        Some(_) => return Err("title: expected a text".to_owned()),
    };
    let message = || steps.iter().find_map(|step| step.params.get("message").and_then(Value::as_str));
    let events = || steps.iter().map(|step| step.event.as_str()).collect::<Vec<_>>().join(", ");
    let title = match own {
        "" => message().map_or_else(events, str::to_owned),
        own => own.to_owned(),
    };
    Ok(title.chars().take(TITLE_CHARS).collect())
}

/// The steps, checked as those of a chain are. A single step may stand alone, and a whole action may come as text.
fn read_action(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    before: bool,
) -> Result<Vec<StepSpec>, String> {
    let given = match params.get("action") {
        None | Some(Value::Null) => return Err("action: expected the steps to run, such as [{\"event\": \"user.notify\", \"params\": {\"message\": \"...\"}}]".to_owned()),
        Some(Value::String(text)) if text.trim_start().starts_with(['[', '{']) => {
            serde_json::from_str(text).map_err(|error| format!("action: {error}"))?
        }
        Some(value) => value.clone(),
    };
    let given = match given {
        Value::String(_) => Value::Array(vec![given]),
        Value::Object(ref fields) if !fields.contains_key("chain") => Value::Array(vec![given]),
        other => other,
    };
    let told = |mistakes: Vec<String>| format!("action: {}", mistakes.join("; "));
    let steps = format::from_json(&given, context.most_steps).map_err(told)?;
    let known = |name: &str| (context.known)(name) || before && ON_STEPS.contains(&name);
    let mut mistakes = check::mistakes(&steps, known, &context.turn.thread_id);
    mistakes.extend(steps.iter().filter_map(|step| placement_mistake(&step.event, before)));
    if mistakes.is_empty() { Ok(steps) } else { Err(told(mistakes)) }
}

fn placement_mistake(event: &str, before: bool) -> Option<String> {
    let may = BEFORE_STEPS.contains(&event) || event.starts_with("task.");
    match before {
        true if !may => Some(format!(
            "{event} cannot run before a step: a pre: hook may do {} and task.* only",
            BEFORE_STEPS.join(", ")
        )),
        false if ON_STEPS.contains(&event) => Some(format!("{event} is for hooks whose trigger begins with pre: only")),
        _ => None,
    }
}

/// Reads the trigger: `pre:` or `post:` (the default for a bare name), and the name of a tool or an event.
fn read_trigger(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<String, String> {
    let expected = "trigger: expected post:<tool>, pre:<tool>, post:email.received or post:<source>.<verb>";
    let text = params.get("trigger").and_then(Value::as_str).unwrap_or_default().trim().to_lowercase();
    let (when, name) = text.split_once(':').unwrap_or(("post", &text));
    let when = when.trim();
    let name = name.trim();
    let allowed = |sign: char| sign.is_ascii_alphanumeric() || "._-".contains(sign);
    let parts = name.split('.').all(|part| !part.is_empty());
    if !matches!(when, "pre" | "post")
        || name.len() > NAME_CHARS
        || !name.chars().all(allowed)
        || !parts
        || !name.contains('.')
    {
        return Err(format!("{expected}, found {text:?}"));
    }
    if when == "pre" && !(context.known)(name) {
        return Err(format!("trigger: there is no tool {name:?} before which a hook could run"));
    }
    Ok(format!("{when}:{name}"))
}
