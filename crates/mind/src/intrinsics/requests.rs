//! Handling of requests from other agents. No model calls these: a request is one such order.

use kairo_events::ids;
use kairo_proto::{
    v1::{self, AgentAnswered, TaskAnswer, TaskEnded, TaskScheduled, TeamChanged, decided_event::Event},
    words::{RequestKind, TaskKind, TaskSource, TaskStatus, TeamStatus},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, order_intrinsic, tasks::TITLE_CHARS};
use crate::team::TeamActivity;

pub const ACCEPT: &str = "request.accept";
pub const WITHDRAW: &str = "request.withdraw";
pub const FOLLOW: &str = "request.follow";

pub fn order_intrinsics() -> Vec<Intrinsic> {
    vec![
        order_intrinsic(ACCEPT, "Queues what another agent asks for.", accept),
        order_intrinsic(WITHDRAW, "Leaves what another agent asked for.", withdraw),
        order_intrinsic(FOLLOW, "Rests or goes on, as the lead says.", follow_lead),
    ]
}

/// A request, as an order carries it.
#[derive(Deserialize)]
struct OrderedRequest {
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

fn read_request(params: &Map<String, Value>) -> Result<OrderedRequest, String> {
    serde_json::from_value(Value::Object(params.clone())).map_err(|error| error.to_string())
}

fn accept(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let task = request_task(context, read_request(params)?);
    let refused = match &context.state.profile {
        None => Some(format!("there is no agent named {}", context.agent)),
        Some(_) if context.state.team.status == TeamActivity::Archived => Some("its team was archived".to_owned()),
        Some(_) => context.state.tasks.check_room(&task).err(),
    };
    let ended = refused.map(|reason| task_ended(&task, TaskStatus::Failed, reason));
    Ok(outcome_of(Some(task), ended))
}

fn withdraw(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let request = read_request(params)?;
    let reason = format!("{} asked for it no longer", request.from);
    if let Some(open) = context.state.tasks.find_requested(&request.from, &request.request_id) {
        let task_id = open.id.to_string();
        let status = TaskStatus::Canceled.text();
        return Ok(outcome_of(None, Some(TaskEnded { task_id, status, reason, ..TaskEnded::default() })));
    }
    if context.state.turn_of_request(&request.from, &request.request_id).is_some() {
        let answer = TaskAnswer { agent: request.from, request_id: request.request_id, ..TaskAnswer::default() };
        let answered = AgentAnswered { reason, answer: Some(answer), ..AgentAnswered::default() };
        return Ok(IntrinsicOutcome { events: vec![Event::Answered(answered)], result: Value::Null }.into());
    }
    if !request.is_new {
        return Ok(outcome_of(None, None));
    }
    // Whoever asked is told that nothing comes of it.
    let task = request_task(context, request);
    let ended = task_ended(&task, TaskStatus::Canceled, reason);
    Ok(outcome_of(Some(task), Some(ended)))
}

fn follow_lead(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let OrderedRequest { from, kind, title, decided, .. } = read_request(params)?;
    if context.state.profile.as_ref().is_none_or(|profile| profile.lead != from) {
        return Err(format!("{from} does not lead this agent"));
    }
    if decided < context.state.team.told {
        return Ok(outcome_of(None, None));
    }
    let status = match RequestKind::from(kind.as_str()) {
        RequestKind::Pause => TeamStatus::Paused.text(),
        _ => TeamStatus::Active.text(),
    };
    let changed = TeamChanged { status, reason: title, decided, ..TeamChanged::default() };
    Ok(IntrinsicOutcome { events: vec![Event::TeamChanged(changed)], result: Value::Null }.into())
}

fn request_task(context: &IntrinsicContext<'_>, request: OrderedRequest) -> v1::Task {
    v1::Task {
        task_id: ids::derive(context.id, "task").to_string(),
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

fn task_ended(task: &v1::Task, status: TaskStatus, reason: String) -> TaskEnded {
    TaskEnded { task_id: task.task_id.clone(), status: status.text(), reason, ..TaskEnded::default() }
}

fn outcome_of(task: Option<v1::Task>, ended: Option<TaskEnded>) -> IntrinsicStart {
    let scheduled = task.map(|task| Event::TaskScheduled(TaskScheduled { task: Some(task) }));
    let events = scheduled.into_iter().chain(ended.map(Event::TaskEnded)).collect();
    IntrinsicOutcome { events, result: Value::Null }.into()
}
