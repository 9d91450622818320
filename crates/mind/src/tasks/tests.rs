use jiff::Timestamp;
use kairo_proto::v1;
use uuid::Uuid;

use super::{ENDED, MOST_HOOKS, MOST_OPEN, StatusFilter, TaskFilter, TaskPhase, Tasks};

const ID: Uuid = Uuid::from_u128(7);

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(1_772_700_000 + hour * 3600).unwrap()
}

fn task(id: Uuid, kind: &str) -> v1::Task {
    v1::Task {
        task_id: id.to_string(),
        kind: kind.to_owned(),
        title: "Water the plants".to_owned(),
        action: r#"[{"event":"user.notify","params":{"message":"water"}}]"#.to_owned(),
        source: "user".to_owned(),
        ..Default::default()
    }
}

fn once(id: Uuid) -> v1::Task {
    let next = at(1).to_string();
    v1::Task { r#type: "once".to_owned(), at: next.clone(), next_at: next, occurrence: 1, ..task(id, "scheduled") }
}

fn hourly(id: Uuid) -> v1::Task {
    let interval = "3600s".to_owned();
    v1::Task { r#type: "repeat".to_owned(), interval, at: at(0).to_string(), ..once(id) }
}

fn hook(id: Uuid) -> v1::Task {
    v1::Task { trigger: "post:email.received".to_owned(), ..task(id, "hook") }
}

fn with(task: &v1::Task) -> Tasks {
    let mut tasks = Tasks::default();
    tasks.apply_scheduled(at(0), task);
    tasks
}

fn fired(occurrence: u64, next: Option<Timestamp>) -> v1::TaskFired {
    let next_at = next.map(|next| next.to_string()).unwrap_or_default();
    v1::TaskFired { task_id: ID.to_string(), occurrence, next_at, ..Default::default() }
}

fn changed(status: &str, next: Option<(Timestamp, u64)>) -> v1::TaskChanged {
    let (next_at, occurrence) = next.map(|(at, nth)| (at.to_string(), nth)).unwrap_or_default();
    v1::TaskChanged { task_id: ID.to_string(), status: status.to_owned(), next_at, occurrence, ..Default::default() }
}

#[test]
fn a_time_is_dealt_with_once() {
    let mut tasks = with(&hourly(ID));
    assert!(tasks.due_task(ID, 1).is_some());
    assert!(tasks.due_task(ID, 2).is_none() && tasks.due_task(ID, 0).is_none());
    tasks.apply_fired(&fired(1, Some(at(2))));
    assert!(tasks.due_task(ID, 1).is_none(), "a timer that comes twice");
    assert_eq!(tasks.due_task(ID, 2).unwrap().next_due(), Some((at(2), 2)));
    assert_eq!(tasks.open[&ID].status, TaskPhase::Active);
}

#[test]
fn what_is_due_once_is_completed() {
    let mut tasks = with(&once(ID));
    tasks.apply_fired(&fired(1, None));
    assert!(tasks.open.is_empty() && tasks.due_task(ID, 1).is_none());
    assert_eq!(tasks.get(ID).unwrap().status, TaskPhase::Completed);
    // Its steps are still known: they are about to run.
    assert!(tasks.get(ID).unwrap().action.is_array());
}

#[test]
fn a_paused_task_is_not_due_until_it_is_resumed() {
    let mut tasks = with(&hourly(ID));
    tasks.apply_changed(&changed("paused", None));
    assert!(tasks.due_task(ID, 1).is_none());
    tasks.apply_changed(&changed("active", Some((at(9), 2))));
    assert!(tasks.due_task(ID, 1).is_none(), "the timer of before");
    assert_eq!(tasks.due_task(ID, 2).unwrap().next_due(), Some((at(9), 2)));
    tasks.apply_changed(&changed("canceled", None));
    assert!(tasks.due_task(ID, 2).is_none());
    tasks.apply_changed(&changed("archived", None));
    assert_eq!(tasks.get(ID).unwrap().status, TaskPhase::Archived);
}

#[test]
fn hooks_wait_while_they_are_active() {
    let mut tasks = with(&hook(ID));
    assert_eq!(tasks.hooks("post:email.received").count(), 1);
    assert_eq!(tasks.hooks("post:email.send").count(), 0);
    tasks.apply_fired(&fired(0, None));
    assert_eq!(tasks.hooks("post:email.received").count(), 1);
    tasks.apply_changed(&changed("paused", None));
    assert_eq!(tasks.hooks("post:email.received").count(), 0);
}

#[test]
fn what_is_unknown_or_unreadable_changes_nothing() {
    let mut tasks = with(&hourly(ID));
    let before = tasks.clone();
    tasks.apply_scheduled(at(0), &v1::Task { next_at: "soon".to_owned(), ..once(Uuid::from_u128(8)) });
    tasks.apply_scheduled(at(0), &v1::Task { task_id: "x".to_owned(), ..once(ID) });
    tasks.apply_fired(&v1::TaskFired { task_id: Uuid::from_u128(9).to_string(), ..Default::default() });
    tasks.apply_changed(&changed("dancing", None));
    tasks.apply_changed(&v1::TaskChanged {
        task_id: "x".to_owned(),
        status: "paused".to_owned(),
        ..Default::default()
    });
    assert_eq!(tasks, before);
}

#[test]
fn nothing_grows_without_end() {
    let mut tasks = Tasks::default();
    for number in 0..MOST_HOOKS as u128 {
        assert_eq!(tasks.check_room(&hook(ID)), Ok(()));
        tasks.apply_scheduled(at(0), &hook(Uuid::from_u128(number)));
    }
    assert!(tasks.check_room(&hook(ID)).unwrap_err().contains("100 hooks"));
    for number in 0..2 * MOST_OPEN as u128 {
        tasks.apply_scheduled(at(0), &once(Uuid::from_u128(number)));
    }
    assert!(tasks.open.len() <= MOST_OPEN + 1);
    assert!(tasks.check_room(&once(ID)).is_err());
    for id in tasks.open.keys().copied().collect::<Vec<_>>() {
        tasks.apply_fired(&v1::TaskFired { task_id: id.to_string(), ..Default::default() });
    }
    assert!(tasks.ended.len() <= ENDED);
    assert!(serde_json::to_string(&tasks).unwrap().len() < 512 * 1024);
}

#[test]
fn actions_of_tasks_that_are_over_are_forgotten_first() {
    let mut tasks = Tasks::default();
    let action = serde_json::json!(["x".repeat(30 * 1024)]).to_string();
    for number in 0..10 {
        tasks.apply_scheduled(at(0), &v1::Task { action: action.clone(), ..once(Uuid::from_u128(number)) });
        tasks.apply_fired(&v1::TaskFired { task_id: Uuid::from_u128(number).to_string(), ..Default::default() });
    }
    assert!(tasks.ended.back().unwrap().action.is_array());
    assert!(tasks.ended.front().unwrap().action.is_null());
    let full = v1::Task { action: "x".repeat(300 * 1024), ..once(ID) };
    assert!(tasks.check_room(&full).unwrap_err().contains("256 KB"));
}

#[test]
fn lists_what_is_wanted() {
    let ids: Vec<Uuid> = (1..=4).map(Uuid::from_u128).collect();
    let mut tasks = Tasks::default();
    tasks.apply_scheduled(at(0), &hook(ids[0]));
    tasks.apply_scheduled(at(0), &hourly(ids[1]));
    let later = v1::Task { next_at: at(30).to_string(), title: "Call Ann".to_owned(), ..once(ids[2]) };
    tasks.apply_scheduled(at(0), &later);
    tasks.apply_scheduled(at(0), &v1::Task { source: "system".to_owned(), ..hourly(ids[3]) });
    let list = |filter: TaskFilter| tasks.list(&filter).iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(list(TaskFilter::default()), [ids[1], ids[2], ids[0]]);
    assert_eq!(list(TaskFilter { status: StatusFilter::Pending, ..Default::default() }), [ids[1], ids[2]]);
    assert_eq!(list(TaskFilter { status: StatusFilter::Active, ..Default::default() }), [ids[1], ids[0]]);
    assert_eq!(list(TaskFilter { due: Some((at(0), at(24))), ..Default::default() }), [ids[1]]);
    assert_eq!(list(TaskFilter { text: Some("ann".to_owned()), ..Default::default() }), [ids[2]]);
    assert_eq!(list(TaskFilter { kind: Some("hook".to_owned()), ..Default::default() }), [ids[0]]);
    assert_eq!(list(TaskFilter { trigger: Some("email.received".to_owned()), ..Default::default() }), [ids[0]]);
    assert_eq!(list(TaskFilter { source: Some("system".to_owned()), ..Default::default() }), [ids[3]]);
    assert_eq!(tasks.day_end().unwrap().id, ids[3]);
    let completed = TaskFilter { status: StatusFilter::Exactly(TaskPhase::Completed), ..Default::default() };
    assert!(list(completed).is_empty());
}
