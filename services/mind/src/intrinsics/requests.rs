//! Handling of requests from other agents. No model calls these: a request is one such order.

use kairo_events::ids;
use kairo_proto::{
    v1::{self, AgentAnswered, TaskAnswer, TaskEnded, TaskScheduled, TeamChanged, decided_event::Event},
    words::{RequestKind, TaskKind, TaskSource, TaskStatus, TeamStatus},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Begun, Context, Done, Intrinsic, of_orders, tasks::TITLE_CHARS};
use crate::team::Status;

pub const ACCEPT: &str = "request.accept";
pub const WITHDRAW: &str = "request.withdraw";
pub const FOLLOW: &str = "request.follow";

pub fn ordered() -> Vec<Intrinsic> {
    vec![
        of_orders(ACCEPT, "Queues what another agent asks for.", accept),
        of_orders(WITHDRAW, "Leaves what another agent asked for.", withdraw),
        of_orders(FOLLOW, "Rests or goes on, as the lead says.", follow),
    ]
}

/// A request, as an order carries it.
#[derive(Deserialize)]
struct Request {
    request_id: String,
    from: String,
    kind: String,
    title: String,
    text: String,
    path: Vec<String>,
    outside: Vec<String>,
    /// Nothing was heard of it before it was withdrawn.
    is_new: bool,
    decided: u64,
    #[serde(default)]
    model_calls: u32,
}

fn read(params: &Map<String, Value>) -> Result<Request, String> {
    serde_json::from_value(Value::Object(params.clone())).map_err(|error| error.to_string())
}

fn accept(context: &Context<'_>, params: &Map<String, Value>) -> Result<Begun, String> {
    let task = task(context, read(params)?);
    let refused = match &context.state.profile {
        None => Some(format!("there is no agent named {}", context.agent)),
        Some(_) if context.state.team.status == Status::Archived => Some("its team was archived".to_owned()),
        Some(_) => context.state.tasks.check_room(&task).err(),
    };
    let ended = refused.map(|reason| ended(&task, TaskStatus::Failed, reason));
    Ok(done(Some(task), ended))
}

fn withdraw(context: &Context<'_>, params: &Map<String, Value>) -> Result<Begun, String> {
    let request = read(params)?;
    let reason = format!("{} asked for it no longer", request.from);
    if let Some(open) = context.state.tasks.asked_for(&request.from, &request.request_id) {
        let (task_id, status) = (open.id.to_string(), TaskStatus::Canceled.text());
        return Ok(done(None, Some(TaskEnded { task_id, status, reason, ..TaskEnded::default() })));
    }
    if context.state.turn_for(&request.from, &request.request_id).is_some() {
        let answer = TaskAnswer { agent: request.from, request_id: request.request_id, ..TaskAnswer::default() };
        let answered = AgentAnswered { reason, answer: Some(answer), ..AgentAnswered::default() };
        return Ok(Done { events: vec![Event::Answered(answered)], result: Value::Null }.into());
    }
    if !request.is_new {
        return Ok(done(None, None));
    }
    // Whoever asked is told that nothing comes of it.
    let task = task(context, request);
    let ended = ended(&task, TaskStatus::Canceled, reason);
    Ok(done(Some(task), Some(ended)))
}

fn follow(context: &Context<'_>, params: &Map<String, Value>) -> Result<Begun, String> {
    let Request { from, kind, title, decided, .. } = read(params)?;
    if context.state.profile.as_ref().is_none_or(|profile| profile.lead != from) {
        return Err(format!("{from} does not lead this agent"));
    }
    if decided < context.state.team.told {
        return Ok(done(None, None));
    }
    let status = match RequestKind::from(kind.as_str()) {
        RequestKind::Pause => TeamStatus::Paused.text(),
        _ => TeamStatus::Active.text(),
    };
    let changed = TeamChanged { status, reason: title, decided, ..TeamChanged::default() };
    Ok(Done { events: vec![Event::TeamChanged(changed)], result: Value::Null }.into())
}

fn task(context: &Context<'_>, request: Request) -> v1::Task {
    v1::Task {
        task_id: ids::derived(context.id, "task").to_string(),
        kind: TaskKind::Queued.text(),
        title: request.title.chars().take(TITLE_CHARS).collect(),
        text: request.text,
        action: "[]".to_owned(),
        user: context.turn.user.clone(),
        source: TaskSource::Delegation.text(),
        outside: request.outside,
        asked_by: request.from,
        request_id: request.request_id,
        path: request.path,
        model_calls: request.model_calls,
        ..v1::Task::default()
    }
}

fn ended(task: &v1::Task, status: TaskStatus, reason: String) -> TaskEnded {
    TaskEnded { task_id: task.task_id.clone(), status: status.text(), reason, ..TaskEnded::default() }
}

fn done(task: Option<v1::Task>, ended: Option<TaskEnded>) -> Begun {
    let scheduled = task.map(|task| Event::TaskScheduled(TaskScheduled { task: Some(task) }));
    let events = scheduled.into_iter().chain(ended.map(Event::TaskEnded)).collect();
    Done { events, result: Value::Null }.into()
}
