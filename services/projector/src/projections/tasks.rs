//! Tasks: made, fired, changed. What the last event about one says is in force.

use std::collections::btree_map::Entry;

use kairo_proto::{
    Decided, about,
    v1::{self, DecidedEvent, TaskChanged, TaskEnded, TaskFired, TaskStarted},
    words::{TaskKind, TaskStatus},
};
use kairo_read_model::sql_values::{SqlJson, SqlKey, Time};
use uuid::Uuid;

use super::{ProjectedRecord, decided_events, definition_of, non_empty_text, to_bigint, turn_of};
use crate::changes::{TableChanges, TaskCreation, TaskFiring, TaskState};

/// Fields that are queried or searched beside the task's id.
const COLUMNS: [&str; 10] =
    ["task_id", "kind", "title", "user", "thread_id", "next_at", "occurrence", "trigger", "condition", "action"];

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    for (position, event, what) in decided_events(fact) {
        let Decided::Task(what) = what.about() else { continue };
        match what {
            about::Task::Scheduled(scheduled) => {
                if let Some(task) = &scheduled.task {
                    project_schedule(fact, position, event, task, changes);
                }
            }
            about::Task::Fired(fired) => project_firing(fact, position, event, fired, changes),
            about::Task::Changed(changed) => project_change(fact, changed, changes),
            about::Task::Started(started) => project_start(fact, started, changes),
            about::Task::Ended(ended) => project_end(fact, ended, changes),
        }
    }
}

fn project_schedule(
    fact: &ProjectedRecord,
    position: i32,
    event: &DecidedEvent,
    task: &v1::Task,
    changes: &mut TableChanges,
) {
    let Ok(task_id) = Uuid::parse_str(&task.task_id) else { return };
    changes.tasks.entry(task_id).or_insert_with(|| TaskCreation {
        sequence: fact.sequence,
        position,
        agent: fact.owner.clone(),
        user: SqlKey::non_empty(&task.user),
        thread_id: SqlKey::non_empty(&task.thread_id),
        correlation_id: turn_of(fact, event),
        kind: task.kind.as_str().into(),
        title: task.title.as_str().into(),
        definition: definition_of(task, &COLUMNS),
        trigger: SqlKey::non_empty(&task.trigger),
        condition: non_empty_text(&task.condition),
        action: SqlJson::from_text(&task.action),
        created_at: fact.at,
        status: if task.kind_word() == TaskKind::Hook { TaskStatus::Active } else { TaskStatus::Pending },
        next_at: parse_time(&task.next_at),
        occurrence: occurrence_number(task.occurrence),
    });
}

fn project_firing(
    fact: &ProjectedRecord,
    position: i32,
    event: &DecidedEvent,
    fired: &TaskFired,
    changes: &mut TableChanges,
) {
    let Ok(task_id) = Uuid::parse_str(&fired.task_id) else { return };
    let Ok(event_id) = Uuid::parse_str(&event.event_id) else { return };
    changes.firings.entry(event_id).or_insert_with(|| TaskFiring {
        sequence: fact.sequence,
        position,
        task_id,
        fired_at: fact.at,
        occurrence: occurrence_number(fired.occurrence),
        due_at: parse_time(&fired.due_at),
        late: fired.late,
        trigger_event_id: Uuid::parse_str(&fired.trigger_event_id).ok(),
    });
    let next_at = parse_time(&fired.next_at);
    let next = next_at.and(occurrence_number(fired.occurrence.saturating_add(1)));
    let state = TaskState { next_at, occurrence: next, ..unchanged_state(fact) };
    match changes.task_states.entry(task_id) {
        Entry::Occupied(mut there) => {
            let status = there.get().status.clone().map(|status| after_firing(status, fired));
            there.insert(TaskState { status, ..state });
        }
        Entry::Vacant(place) => _ = place.insert(state),
    }
}

/// Returns the status of a task after it has fired, by the same rule as the statement for a task already in the table:
/// one that is not due again is over. Only hooks fire without having been due.
fn after_firing(status: SqlKey, fired: &TaskFired) -> SqlKey {
    let hook = fired.due_at.is_empty() && fired.occurrence == 0;
    let after = match TaskStatus::from(status.as_str()) {
        TaskStatus::Pending | TaskStatus::Active | TaskStatus::Paused
            if !hook && parse_time(&fired.next_at).is_none() =>
        {
            TaskStatus::Completed
        }
        TaskStatus::Pending => TaskStatus::Active,
        _ => return status,
    };
    after.as_str().into()
}

fn project_change(fact: &ProjectedRecord, changed: &TaskChanged, changes: &mut TableChanges) {
    let Ok(task_id) = Uuid::parse_str(&changed.task_id) else { return };
    let next_at = parse_time(&changed.next_at);
    let state = TaskState {
        status: SqlKey::non_empty(&changed.status),
        reason: non_empty_text(&changed.reason),
        next_at,
        occurrence: next_at.and(occurrence_number(changed.occurrence)),
        put_first: changed.first.then_some(fact.sequence),
        ..unchanged_state(fact)
    };
    set_state(task_id, state, changes);
}

fn project_start(fact: &ProjectedRecord, started: &TaskStarted, changes: &mut TableChanges) {
    let Ok(task_id) = Uuid::parse_str(&started.task_id) else { return };
    let status = Some(TaskStatus::InProgress.as_str().into());
    let work_thread_id = SqlKey::non_empty(&started.thread_id);
    set_state(task_id, TaskState { status, work_thread_id, ..unchanged_state(fact) }, changes);
}

fn project_end(fact: &ProjectedRecord, ended: &TaskEnded, changes: &mut TableChanges) {
    let Ok(task_id) = Uuid::parse_str(&ended.task_id) else { return };
    let status = SqlKey::non_empty(&ended.status);
    let reason = non_empty_text(&ended.reason);
    let result = non_empty_text(&ended.result);
    set_state(task_id, TaskState { status, reason, result, ..unchanged_state(fact) }, changes);
}

/// Returns the state for an event that leaves the state of its task unchanged.
fn unchanged_state(fact: &ProjectedRecord) -> TaskState {
    TaskState {
        sequence: fact.sequence,
        at: fact.at,
        status: None,
        reason: None,
        next_at: None,
        occurrence: None,
        result: None,
        work_thread_id: None,
        put_first: None,
    }
}

/// Sets the state of a task. Fields that this event leaves unset keep the values of an earlier event of the batch.
fn set_state(task_id: Uuid, state: TaskState, changes: &mut TableChanges) {
    let before = changes.task_states.remove(&task_id);
    let (result, work_thread_id, put_first) =
        before.map(|it| (it.result, it.work_thread_id, it.put_first)).unwrap_or_default();
    let state = TaskState {
        result: state.result.or(result),
        work_thread_id: state.work_thread_id.or(work_thread_id),
        put_first: state.put_first.or(put_first),
        ..state
    };
    changes.task_states.insert(task_id, state);
}

fn parse_time(text: &str) -> Option<Time> {
    text.parse().ok().map(Time)
}

/// Counted from 1.
fn occurrence_number(count: u64) -> Option<i64> {
    (count > 0).then(|| to_bigint(count))
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{TaskScheduled, decided_event::Event};

    use super::{
        super::testing::{decision, project_all, sample_event_with},
        *,
    };

    const ID: &str = "0190f7a0-0000-7000-8000-0000000000a1";

    fn id() -> Uuid {
        Uuid::parse_str(ID).unwrap()
    }

    fn scheduled(kind: &str) -> DecidedEvent {
        let task = v1::Task {
            task_id: ID.into(),
            kind: kind.into(),
            title: "look".into(),
            action: "[\"tools.now\"]".into(),
            at: "every morning".into(),
            next_at: "2026-11-22T09:00:00Z".into(),
            occurrence: 1,
            ..Default::default()
        };
        sample_event_with("t", "scheduled", Event::TaskScheduled(TaskScheduled { task: Some(task) }))
    }

    fn fired(occurrence: u64, next_at: &str) -> DecidedEvent {
        let next_at = next_at.to_owned();
        let body = TaskFired { task_id: ID.into(), occurrence, next_at, late: true, ..Default::default() };
        sample_event_with("t", &format!("fired {occurrence}"), Event::TaskFired(body))
    }

    fn changed(status: &str, next_at: &str) -> DecidedEvent {
        let status = status.to_owned();
        let next_at = next_at.to_owned();
        let body = TaskChanged { task_id: ID.into(), status, next_at, occurrence: 4, ..Default::default() };
        sample_event_with("t", "changed", Event::TaskChanged(body))
    }

    #[test]
    fn a_task_waits_until_its_time_and_a_hook_is_active_at_once() {
        let changes =
            project_all([decision(3, "bob", [scheduled("scheduled")]), decision(4, "bob", [scheduled("hook")])]);
        let task = &changes.tasks[&id()];
        assert_eq!((&task.status, task.sequence, task.occurrence), (&TaskStatus::Pending, 3, Some(1)));
        assert_eq!((task.action.as_str(), task.definition.as_str()), (r#"["tools.now"]"#, r#"{"at":"every morning"}"#));
        assert_eq!(project_all([decision(4, "bob", [scheduled("hook")])]).tasks[&id()].status, TaskStatus::Active);
    }

    #[test]
    fn every_firing_is_kept_and_the_last_says_when_the_next_is() {
        let changes = project_all([
            decision(3, "bob", [fired(1, "2026-11-23T09:00:00Z")]),
            decision(4, "bob", [fired(2, "2026-11-24T09:00:00Z"), fired(2, "2026-11-24T09:00:00Z")]),
        ]);
        assert_eq!(changes.firings.len(), 2);
        let state = &changes.task_states[&id()];
        assert_eq!((state.status.clone(), state.occurrence, state.sequence), (None, Some(3), 4));
        assert_eq!(project_all([decision(4, "bob", [fired(2, "")])]).task_states[&id()].occurrence, None);
    }

    #[test]
    fn a_queued_task_is_worked_on_in_a_thread_and_has_a_result() {
        let [task_id, thread_id] = [ID, "w"].map(str::to_owned);
        let started = Event::TaskStarted(TaskStarted { task_id: task_id.clone(), thread_id, before_work: false });
        let ended = TaskEnded {
            task_id: task_id.clone(),
            status: "completed".into(),
            result: "it is up".into(),
            ..Default::default()
        };
        let first = TaskChanged { task_id, status: "pending".into(), first: true, ..Default::default() };
        let events = [
            decision(3, "bob", [sample_event_with("t", "first", Event::TaskChanged(first))]),
            decision(4, "bob", [sample_event_with("w", "started", started)]),
            decision(5, "bob", [sample_event_with("w", "ended", Event::TaskEnded(ended))]),
        ];
        let state = project_all(events).task_states[&id()].clone();
        assert_eq!((state.status, state.result), (Some("completed".into()), Some("it is up".into())));
        assert_eq!((state.work_thread_id, state.put_first, state.sequence), (Some("w".into()), Some(3), 5));
    }

    #[test]
    fn the_last_change_is_in_force_and_a_pending_task_that_fires_is_active() {
        let status = |last: DecidedEvent, before: DecidedEvent| {
            let changes = project_all([decision(3, "bob", [before]), decision(4, "bob", [last])]);
            changes.task_states[&id()].status.as_ref().map(|status| status.as_str().to_owned())
        };
        assert_eq!(status(changed("paused", ""), fired(1, "")).as_deref(), Some("paused"));
        let next = "2026-11-24T09:00:00Z";
        assert_eq!(status(fired(1, next), changed("paused", "")).as_deref(), Some("paused"));
        assert_eq!(status(fired(1, next), changed("pending", "")).as_deref(), Some("active"));
        assert_eq!(status(fired(1, ""), changed("pending", "")).as_deref(), Some("completed"));
        assert_eq!(status(fired(1, ""), changed("canceled", "")).as_deref(), Some("canceled"));
        assert_eq!(status(fired(0, ""), changed("active", "")).as_deref(), Some("active"));
        let resumed = project_all([decision(3, "bob", [changed("active", "2026-11-24T09:00:00Z")])]);
        assert_eq!(resumed.task_states[&id()].occurrence, Some(4));
        assert_eq!(project_all([decision(3, "bob", [changed("active", "noon")])]).task_states[&id()].next_at, None);
    }
}
