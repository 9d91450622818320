//! `GET /v1/tasks/{task_id}/result`: a program waits for the end of a task.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use futures::StreamExt;
use kairo_core::{event_json::EventJson, ids::Name};
use kairo_proto::{
    v1::{
        AgentFailed, AwaitTaskResponse, TaskChanged, TaskEnded, TaskFired, TaskRow, TaskScheduled,
        UserMessageUndelivered,
    },
    words::TaskStatus,
};
use kairo_read_model::EventsQuery;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{Gateway, query, snapshot_at_least, sorted_json::SortedJson};
use crate::{
    auth::{Caller, limits},
    dispatch::Interest,
    fields::{RequestFields, parse_text, query_value},
    log_follower::end_of_log,
    problem::Problem,
    tail::{TailFilter, TailMessage},
    visibility::{KnownOwners, Visibility, event_visibility, subject_agent},
};

/// The default and the longest wait, in milliseconds.
const DEFAULT_WAIT: u64 = 30_000;
const MAX_WAIT: u64 = 300_000;
/// The number of events of a request that are searched for a refusal. It is the first thing that the agent decides.
const FIRST_EVENTS: u32 = 10;
/// Events that change a task in the read model.
const TASK_EVENTS: [&str; 4] = [TaskScheduled::TYPE, TaskFired::TYPE, TaskChanged::TYPE, TaskEnded::TYPE];

/// Answers as soon as the task is over, or when the time is up.
pub async fn await_task(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<AwaitTaskResponse>, Problem> {
    let id = query::path_id("task_id", path)?;
    let deadline = Instant::now() + parse_wait(query.as_deref())?;
    let mut wait = TaskWait { gateway: &gateway, caller: &caller, id, position: end_of_log(&gateway.bus).await? };
    loop {
        let task = wait.find_task().await?;
        let is_over = task.as_ref().is_some_and(is_over);
        if is_over {
            return Ok(SortedJson(AwaitTaskResponse { task, is_over }));
        }
        tokio::select! {
            waited = timeout_at(deadline, wait.next_change(task.as_ref())) => match waited {
                Ok(changed) => changed?,
                Err(_) => break,
            },
            () = caller.wait_for_expiry() => return Err(Problem::no_valid_key()),
            () = gateway.shutdown.cancelled() => {
                return Err(Problem::unavailable("the gateway is stopping; send the same request again"));
            }
        }
    }
    let task = wait.find_task().await?;
    let unknown =
        || Problem::not_found(format!("no task {id} is known; kairo tasks --status all lists those there are"));
    let task = task.ok_or_else(unknown)?;
    let is_over = is_over(&task);
    Ok(SortedJson(AwaitTaskResponse { task: Some(task), is_over }))
}

fn parse_wait(url_query: Option<&str>) -> Result<Duration, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let fits = |text: &str| parse_text(text).filter(|wait| *wait <= MAX_WAIT);
    let wait = fields.optional("timeout_ms", format!("0 to {MAX_WAIT} milliseconds"), query_value(fits));
    fields.complete(|| Some(Duration::from_millis(wait.unwrap_or(DEFAULT_WAIT))))
}

fn is_over(task: &TaskRow) -> bool {
    match TaskStatus::from(task.status.as_str()) {
        TaskStatus::Completed | TaskStatus::Canceled | TaskStatus::Archived | TaskStatus::Failed => true,
        TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Active | TaskStatus::Paused => false,
        TaskStatus::Unknown(_) => false,
    }
}

/// A task that is waited for.
struct TaskWait<'a> {
    gateway: &'a Gateway,
    caller: &'a Caller,
    id: Uuid,
    /// The position in the log up to which the read model has been asked.
    position: u64,
}

impl TaskWait<'_> {
    /// The task as of the position, if it is known and the caller may see it.
    ///
    /// # Errors
    /// If the agent refused to queue it.
    async fn find_task(&self) -> Result<Option<TaskRow>, Problem> {
        let wait = Duration::from_millis(self.gateway.config.freshness_wait_ms);
        let holder = limits::holder_for_caller(self.caller, None);
        let snapshot = snapshot_at_least(self.gateway, &holder, self.position, wait).await?;
        let task = query::await_answer(self.gateway, snapshot.find_task(self.id)).await?;
        if task.is_none() {
            // It may have been refused before anybody waited for it.
            let of_request = EventsQuery { correlation: Some(self.id), limit: FIRST_EVENTS, ..EventsQuery::default() };
            let events = query::await_answer(self.gateway, snapshot.list_events(&of_request)).await?;
            self.reject_refused(&events)?;
        }
        Ok(task.filter(|task| self.caller.can_see(&task.agent, task.user.as_deref())))
    }

    /// Waits for the next event of the task, and moves the position to it.
    ///
    /// # Errors
    /// If the agent refused to queue it.
    async fn next_change(&mut self, task: Option<&TaskRow>) -> Result<(), Problem> {
        let agent = task.and_then(|task| Name::parse(&task.agent).ok());
        // A task of a program has the id of the event that asked for it, which is its correlation id.
        let interest = agent.clone().map_or(Interest::Correlation(self.id), Interest::Agent);
        let listener = self.gateway.tail.join(TailFilter { interest, agent }, self.position);
        let mut log = listener.into_stream().boxed();
        while let Some(message) = log.next().await {
            // What fails while it is worked on is tried again, or ends the task.
            if task.is_none() {
                self.reject_refused(&message.events)?;
            }
            if self.concerns_task(&message) {
                self.position = message.sequence;
                return Ok(());
            }
        }
        Ok(())
    }

    fn concerns_task(&self, message: &Arc<TailMessage>) -> bool {
        let id = self.id.to_string();
        let names_task = |event: &EventJson| {
            let payload = event.payload.get("task_id").or_else(|| event.payload.get("task")?.get("task_id"));
            payload.and_then(serde_json::Value::as_str) == Some(id.as_str())
        };
        message.events.iter().any(|event| TASK_EVENTS.contains(&event.type_name.as_str()) && names_task(event))
    }

    /// Returns an error if one of these events says why the agent did not take the task.
    fn reject_refused(&self, events: &[EventJson]) -> Result<(), Problem> {
        let is_refusal =
            |event: &&EventJson| [AgentFailed::TYPE, UserMessageUndelivered::TYPE].contains(&event.type_name.as_str());
        let mut of_request = events.iter().filter(|event| event.correlation_id == self.id).filter(is_refusal);
        of_request.next().map_or(Ok(()), |event| {
            Err(Problem::conflict(format!("the task was not queued: {}", self.refusal_text(event))))
        })
    }

    /// The words of a refusal, for those who may see them: ids of others' tasks can be guessed.
    fn refusal_text(&self, event: &EventJson) -> String {
        let is_of_user = |user: &str| event_visibility(event, user, &KnownOwners::default()) == Visibility::Theirs;
        let is_of_agent =
            subject_agent(&event.subject).is_none_or(|agent| self.caller.require_agent(Some(agent)).is_ok());
        match self.caller.user().is_none_or(is_of_user) && is_of_agent {
            true => event.text().to_owned(),
            false => "the agent refused it".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_bounded() {
        let wait = |query| parse_wait(query).map(|wait| wait.as_millis()).ok();
        assert_eq!(wait(None), Some(30_000));
        assert_eq!(wait(Some("timeout_ms=0")), Some(0));
        for wrong in ["timeout_ms=300001", "timeout_ms=-1", "timeout_ms=x", "wait=7"] {
            assert_eq!(wait(Some(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn a_task_is_over_when_nothing_more_becomes_of_it() {
        let over = |status: &TaskStatus| is_over(&TaskRow { status: status.text(), ..TaskRow::default() });
        let ended: Vec<&str> =
            TaskStatus::WORDS.iter().copied().filter(|word| over(&TaskStatus::from(*word))).collect();
        assert_eq!(ended, ["completed", "canceled", "archived", "failed"]);
    }
}
