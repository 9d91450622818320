//! The queue of an agent that works in the background.

use kairo_events::ids;
use kairo_proto::{
    v1::{self, TaskChanged, TaskEnded, TaskScheduled, decided_event::Event},
    words::{TaskKind, TaskSource, TaskStatus},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{IntrinsicContext, IntrinsicStart, TITLE_CHARS};
use crate::{
    intrinsics::IntrinsicOutcome,
    state::TurnCause,
    tasks::{LINEAGE, Task, TaskActivation, TaskPhase},
};

/// Longest text of a task, in characters.
pub const TEXT_CHARS: usize = 8_000;

pub fn enqueue(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let task_text = text("text");
    let title = text("title");
    if task_text.is_empty() {
        return Err("text: expected what is to be done, in words".to_owned());
    }
    if task_text.chars().count() > TEXT_CHARS {
        return Err(format!("text: expected at most {TEXT_CHARS} characters"));
    }
    let lineage = &context.turn.lineage;
    if lineage.len() >= LINEAGE {
        return Err(format!("{LINEAGE} tasks follow from one another already: do it now, or leave it"));
    }
    let title = if title.is_empty() { &task_text } else { &title };
    let title: String = title.chars().take(TITLE_CHARS).collect();
    // What is queued at work, or for another agent, nobody is told of.
    let is_its_own = context.state.is_background_turn(context.turn) || context.turn.agent_request().is_some();
    let source = if is_its_own { TaskSource::Itself } else { TaskSource::User };
    let task = v1::Task {
        task_id: new_task_id(context, params)?.to_string(),
        kind: TaskKind::Queued.text(),
        title: title.clone(),
        text: task_text,
        action: "[]".to_owned(),
        thread_id: conversation_of_task(context),
        user: context.turn.user.clone(),
        source: source.text(),
        outside: context.state.provenance_of(context.turn).marks(),
        lineage: lineage.iter().map(Uuid::to_string).collect(),
        ..v1::Task::default()
    };
    context.state.tasks.check_room(&task)?;
    let result = json!({ "task_id": task.task_id, "title": title, "status": TaskStatus::Pending.as_str() });
    Ok(IntrinsicOutcome { events: vec![Event::TaskScheduled(TaskScheduled { task: Some(task) })], result }.into())
}

/// The conversation in which the user is told of the task's end. The task of a program comes from none.
fn conversation_of_task(context: &IntrinsicContext<'_>) -> String {
    match context.turn.cause {
        TurnCause::Order(_) => context.state.conversation_with(context.agent, &context.turn.user),
        _ => context.state.conversation_of(context.turn),
    }
}

/// The id of a new task. The gateway chooses the id of a program's task, so that the program can wait for it.
fn new_task_id(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<Uuid, String> {
    if !context.turn.is_order() {
        return Ok(ids::derive(context.id, "task"));
    }
    if !context.state.works_in_background() {
        return Err("the agent does not work in the background, so it has no queue".to_owned());
    }
    let given = params.get("task_id").and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
    let given = given.ok_or("task_id: expected a UUID")?;
    match context.state.tasks.open.contains_key(&given) {
        true => Err(format!("there is a task {given} already")),
        false => Ok(given),
    }
}

pub fn put_first(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let task = super::transitions::find_user_task(context, params)?;
    if !matches!(task.what, TaskActivation::Queue { .. }) {
        return Err(format!("{:?} is not in the queue: it runs when its time comes", task.title));
    }
    match task.status {
        TaskPhase::Pending | TaskPhase::Paused => {}
        status => return Err(super::transitions::refusal(task, status, "put first")),
    }
    let task_id = task.id.to_string();
    let result =
        json!({ "task_id": task_id, "title": task.title, "status": TaskStatus::Pending.as_str(), "first": true });
    let status = TaskStatus::Pending.text();
    let reason = "on request".to_owned();
    let changed = TaskChanged { task_id, status, reason, first: true, ..TaskChanged::default() };
    Ok(IntrinsicOutcome { events: vec![Event::TaskChanged(changed)], result }.into())
}

/// A queued task is not to be done, or no further.
pub fn cancel_queued(task: &Task) -> IntrinsicOutcome {
    let task_id = task.id.to_string();
    let status = TaskStatus::Canceled;
    let result = json!({ "task_id": task_id, "title": task.title, "status": status.as_str() });
    let reason = "on request".to_owned();
    let ended = TaskEnded { task_id, status: status.text(), reason, ..TaskEnded::default() };
    IntrinsicOutcome { events: vec![Event::TaskEnded(ended)], result }
}
