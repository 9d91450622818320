//! The tasks that a turn of an agent in the background puts into its queue, for a client that waits for their results
//! instead of the acknowledgement. Pure.

use std::collections::BTreeSet;

use kairo_core::event_json::EventJson;
use kairo_proto::{
    v1,
    words::{TaskKind, TaskSource, TaskStatus},
};
use serde_json::Value;

use super::turn::TurnFailure;

/// The failure kind of a turn with a task that was not completed.
const TASK_FAILED: &str = "task_failed";

/// The tasks of a turn.
#[derive(Debug, Default)]
pub struct QueuedWork {
    /// Those that are not over.
    open: BTreeSet<String>,
    results: Vec<String>,
    failed: Option<TurnFailure>,
}

impl QueuedWork {
    /// Takes in an event of the turn.
    pub fn apply_event(&mut self, event: &EventJson) {
        let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
        match event.type_name.as_str() {
            v1::TaskScheduled::TYPE => self.open.extend(queued_task(event)),
            v1::TaskEnded::TYPE if self.open.remove(text("task_id")) => match TaskStatus::from(text("status")) {
                TaskStatus::Completed => self.results.push(text("result").to_owned()),
                status => {
                    let words = match text("reason") {
                        "" => format!("the task was not completed ({status})"),
                        reason => format!("the task was not completed ({status}): {reason}"),
                    };
                    self.failed = Some(TurnFailure { kind: TASK_FAILED.to_owned(), text: words, retry_after_ms: 0 });
                }
            },
            _ => {}
        }
    }

    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The results of the tasks that were completed, in order.
    pub fn results(&self) -> &[String] {
        &self.results
    }

    /// The failure of a task, once all of them are over.
    pub fn failure(&self) -> Option<&TurnFailure> {
        self.failed.as_ref().filter(|_| self.open.is_empty())
    }
}

/// The id of the task that an event puts into the queue, if it is a user's. Tasks that other tasks queue are left out,
/// since nobody is told of them.
fn queued_task(event: &EventJson) -> Option<String> {
    let task = event.payload.get("task")?;
    let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_queued = TaskKind::from(text("kind")) == TaskKind::Queued;
    let is_of_user = TaskSource::from(text("source")) == TaskSource::User;
    (is_queued && is_of_user).then(|| text("task_id").to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn event(type_name: &str, payload: Value) -> EventJson {
        serde_json::from_value(json!({
            "event_id": Uuid::nil(), "ts": "2026-11-21T10:00:00Z", "source": "internal", "modality": "text",
            "payload": payload, "meta": { "tags": [] }, "type": type_name, "sequence": 1, "position": 0,
            "subject": "kairo.agent.coach.decision", "correlation_id": Uuid::nil(), "causation_id": null,
            "thread_id": null,
        }))
        .unwrap()
    }

    fn scheduled(id: &str, source: &str) -> EventJson {
        event(v1::TaskScheduled::TYPE, json!({ "task": { "task_id": id, "kind": "queued", "source": source } }))
    }

    fn ended(id: &str, status: &str, result: &str, reason: &str) -> EventJson {
        let payload = json!({ "task_id": id, "status": status, "result": result, "reason": reason });
        event(v1::TaskEnded::TYPE, payload)
    }

    #[test]
    fn results_are_those_of_all_tasks_of_the_user() {
        let mut work = QueuedWork::default();
        for event in [scheduled("a", "user"), scheduled("b", "user"), scheduled("c", "self")] {
            work.apply_event(&event);
        }
        work.apply_event(&ended("c", "completed", "nobody's", ""));
        work.apply_event(&ended("b", "completed", "of b", ""));
        assert!(work.is_open() && work.results() == ["of b"]);
        work.apply_event(&ended("a", "completed", "of a", ""));
        assert!(!work.is_open() && work.failure().is_none());
        assert_eq!(work.results(), ["of b", "of a"]);
    }

    #[test]
    fn a_task_that_is_not_completed_fails_the_turn_when_all_are_over() {
        let mut work = QueuedWork::default();
        work.apply_event(&scheduled("a", "user"));
        work.apply_event(&scheduled("b", "user"));
        work.apply_event(&ended("a", "failed", "", "no bridge"));
        assert_eq!(work.failure(), None);
        work.apply_event(&ended("b", "completed", "of b", ""));
        assert_eq!(work.failure().unwrap().text, "the task was not completed (failed): no bridge");
    }
}
