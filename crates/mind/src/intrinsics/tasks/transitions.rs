//! Changes of tasks: paused, resumed, canceled, archived, run.

use kairo_proto::v1::{TaskChanged, TaskFired, decided_event::Event};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{IntrinsicContext, IntrinsicStart, local_time, may_access, queueing, zone_of};
use crate::{
    intrinsics::IntrinsicOutcome,
    tasks::{LINEAGE, Task, TaskActivation, TaskPhase},
};

pub fn pause(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let task = find_user_task(context, params)?;
    match task.status {
        TaskPhase::Pending | TaskPhase::Active => Ok(change_status(task, TaskPhase::Paused, None).into()),
        status => Err(refusal(task, status, "paused")),
    }
}

pub fn resume(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let task = find_user_task(context, params)?;
    if task.status != TaskPhase::Paused {
        return Err(refusal(task, task.status, "resumed"));
    }
    let (schedule, next) = match &task.what {
        TaskActivation::Time { schedule, next } => (schedule, next),
        TaskActivation::Hook { .. } => return Ok(change_status(task, TaskPhase::Active, None).into()),
        TaskActivation::Queue { .. } => {
            return Ok(change_status(task, TaskPhase::Pending, next_day_run(context, task)).into());
        }
    };
    let (was, occurrence) = next.unwrap_or((context.now, 0));
    let Some(next) = schedule.next_after(context.now) else {
        let was = local_time(was, &zone_of(context));
        return Err(format!(
            "the time of {:?} was {was}, which is past: run it with task.run, or cancel it",
            task.title
        ));
    };
    let status = if schedule.repeats() { TaskPhase::Active } else { TaskPhase::Pending };
    let mut done = change_status(task, status, Some((next.to_string(), occurrence.saturating_add(1))));
    if let Some(fields) = done.result.as_object_mut() {
        fields.insert("next_at".to_owned(), json!(local_time(next, &zone_of(context))));
    }
    Ok(done.into())
}

pub fn cancel(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let task = find_user_task(context, params)?;
    match task.status.is_over() {
        false if matches!(task.what, TaskActivation::Queue { .. }) => Ok(queueing::cancel_queued(task).into()),
        false => Ok(change_status(task, TaskPhase::Canceled, None).into()),
        true => Err(refusal(task, task.status, "canceled")),
    }
}

pub fn archive(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let task = find_user_task(context, params)?;
    match task.status {
        TaskPhase::Archived => Err(refusal(task, task.status, "archived")),
        status if matches!(task.what, TaskActivation::Queue { .. }) && !status.is_over() => {
            Err(format!("{:?} is in the queue: cancel it with task.cancel first", task.title))
        }
        _ => Ok(change_status(task, TaskPhase::Archived, None).into()),
    }
}

pub fn run(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let task = find_task(context, params)?;
    let (schedule, next) = match &task.what {
        TaskActivation::Time { schedule, next } => (schedule, next),
        TaskActivation::Hook { .. } => {
            return Err(format!("{:?} is a hook: it runs when its trigger happens", task.title));
        }
        TaskActivation::Queue { .. } if next_day_run(context, task).is_some() => {
            return Err(format!("{:?} waits for the next day: the team has spent what it may today", task.title));
        }
        TaskActivation::Queue { again: Some(_), .. } if task.status == TaskPhase::Pending => {
            return Ok(change_status(task, TaskPhase::Pending, None).into());
        }
        TaskActivation::Queue { .. } => {
            return Err(format!("{:?} is in the queue: task.first makes it the next one", task.title));
        }
    };
    let (Some((at, occurrence)), false) = (*next, task.status.is_over()) else {
        return Err(refusal(task, task.status, "run"));
    };
    let lineage = &context.turn.lineage;
    if lineage.contains(&task.id) || lineage.len() >= LINEAGE {
        return Err(format!("{:?} cannot run again on behalf of itself", task.title));
    }
    let next = match schedule.repeats() {
        true if at > context.now => Some(at),
        true => schedule.next_after(context.now),
        false => None,
    };
    let fired = TaskFired {
        task_id: task.id.to_string(),
        occurrence,
        due_at: context.now.to_string(),
        next_at: next.map(|next| next.to_string()).unwrap_or_default(),
        trigger_event_id: context.id.to_string(),
        data: "{}".to_owned(),
        lineage: lineage.iter().map(Uuid::to_string).collect(),
        ..TaskFired::default()
    };
    let mut result = json!({ "task_id": task.id, "title": task.title, "status": "fired" });
    if let (Some(next), Some(fields)) = (next, result.as_object_mut()) {
        fields.insert("next_at".to_owned(), json!(local_time(next, &zone_of(context))));
    }
    Ok(IntrinsicOutcome { events: vec![Event::TaskFired(fired)], result }.into())
}

pub fn share(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    set_shared(context, params, true)
}

pub fn unshare(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    set_shared(context, params, false)
}

/// A shared hook sees what concerns other users, so no model decides on it.
fn set_shared(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    shared: bool,
) -> Result<IntrinsicStart, String> {
    if !context.turn.is_order() {
        return Err("only an administrator shares hooks".to_owned());
    }
    let task = find_user_task(context, params)?;
    if !matches!(task.what, TaskActivation::Hook { .. }) {
        return Err(format!("{:?} is no hook: it runs for nobody but its user", task.title));
    }
    if task.status.is_over() {
        return Err(refusal(task, task.status, "shared"));
    }
    let mut done = change_status(task, task.status, None);
    for event in &mut done.events {
        if let Event::TaskChanged(changed) = event {
            changed.shared = Some(shared);
        }
    }
    Ok(done.into())
}

/// When what wakes a team that has spent what it may in a day is due.
fn next_day_run(context: &IntrinsicContext<'_>, task: &Task) -> Option<(String, u64)> {
    let profile = context.state.profile.as_ref()?;
    let waits = task.is_next_run() && context.state.team.over_budget;
    waits.then(|| (profile.next_day(context.now).to_string(), task.last_occurrence().saturating_add(1)))
}

fn change_status(task: &Task, status: TaskPhase, next: Option<(String, u64)>) -> IntrinsicOutcome {
    let (next_at, occurrence) = next.unwrap_or_default();
    let task_id = task.id.to_string();
    let reason = "on request".to_owned();
    let result = json!({ "task_id": task_id, "title": task.title, "status": status.word().as_str() });
    let status = status.word().text();
    let event = TaskChanged { task_id, status, reason, next_at, occurrence, ..TaskChanged::default() };
    IntrinsicOutcome { events: vec![Event::TaskChanged(event)], result }
}

pub(super) fn refusal(task: &Task, status: TaskPhase, wanted: &str) -> String {
    format!("{:?} is {} and cannot be {wanted}", task.title, status.word())
}

fn find_task<'a>(context: &IntrinsicContext<'a>, params: &Map<String, Value>) -> Result<&'a Task, String> {
    let text = params.get("task_id").and_then(Value::as_str).unwrap_or_default().trim();
    let id = Uuid::parse_str(text)
        .map_err(|_| format!("task_id: expected an id as task.list returns it, found {text:?}"))?;
    let task = context.state.tasks.get(id).filter(|task| may_access(context, task));
    task.ok_or_else(|| format!("task_id: there is no task {id} of this user; task.list says which there are"))
}

/// The end of the day is the profile's to say.
pub(super) fn find_user_task<'a>(
    context: &IntrinsicContext<'a>,
    params: &Map<String, Value>,
) -> Result<&'a Task, String> {
    let task = find_task(context, params)?;
    match task.is_of_system() {
        true => Err(format!("{:?} belongs to the system: the agent's profile says when its day ends", task.title)),
        false => Ok(task),
    }
}
