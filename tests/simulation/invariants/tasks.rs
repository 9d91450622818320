//! Of tasks: each time comes about once, each hook never because of itself, and what is planned is set.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::{
    bus::hooks::HookChange,
    hooks::{HookRegistration, HookState},
    ids::Name,
    record::Record,
    subjects::HOOKS_STREAM,
};
use kairo_mind::{
    log::Log,
    tasks::{Task, TaskActivation, TaskPhase},
};
use kairo_proto::v1::{TaskDue, ToolResult, decided_event::Event};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    audit::{decision, tool_calls},
    world::World,
};

/// Checks the records of tasks in the log.
pub fn firings(records: &[Record]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut times = BTreeSet::new();
    let mut due: BTreeMap<String, u64> = BTreeMap::new();
    let mut results: BTreeMap<String, &str> = BTreeMap::new();
    // On whose behalf a turn runs, and in which turn an action was.
    let mut lineages: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut turns: BTreeMap<String, String> = BTreeMap::new();
    for record in records {
        let id = || record.envelope.id.to_string();
        due.extend(TaskDue::of(&record.body).map(|it| (id(), it.occurrence)));
        results.extend(ToolResult::of(&record.body).map(|it| (id(), it.action_id.as_str())));
        for event in decision(record).iter().flat_map(|decision| &decision.events) {
            let turn = if event.turn_id.is_empty() { &event.correlation_id } else { &event.turn_id };
            let Some(Event::TaskFired(fired)) = &event.event else { continue };
            let (task, occurrence) = (fired.task_id.as_str(), fired.occurrence);
            let lineage: BTreeSet<&str> = fired.lineage.iter().map(String::as_str).collect();
            if occurrence > 0 && !times.insert((task, occurrence)) {
                wrong.push(format!("the task {task} fired twice for its time {occurrence}"));
            }
            let due = due.get(&fired.trigger_event_id);
            if occurrence > 0 && due.is_some_and(|due| *due != occurrence) {
                wrong.push(format!("the task {task} fired for its time {occurrence} when another was due"));
            }
            let caused_by = results.get(&fired.trigger_event_id).and_then(|action| turns.get(*action));
            let within = caused_by.and_then(|turn| lineages.get(turn));
            if lineage.contains(task) || within.is_some_and(|within| within.contains(task)) {
                wrong.push(format!("the hook {task} was triggered by itself"));
            }
            lineages.insert(turn.clone(), lineage.into_iter().chain([task]).collect());
        }
        if let Some(decision) = decision(record) {
            let actions: BTreeSet<String> = tool_calls(decision).map(|(action, _)| action).collect();
            for event in decision.events.iter().filter(|event| actions.contains(&event.event_id)) {
                let turn = if event.turn_id.is_empty() { &event.correlation_id } else { &event.turn_id };
                turns.insert(event.event_id.clone(), turn.clone());
            }
        }
    }
    wrong
}

/// Checks that the open tasks of an agent will come about.
pub fn planned(world: &World, log: &Log) -> Vec<String> {
    let mut wrong = Vec::new();
    let open = &log.state.tasks.open;
    let timers: BTreeMap<(Uuid, u64), Timestamp> = world.server.timers().into_iter().collect();
    let registrations = registrations(world);
    for task in open.values() {
        let waits = matches!(task.status, TaskPhase::Pending | TaskPhase::Active);
        if let (Some((at, occurrence)), true) = (task.next_due(), waits) {
            if at < world.now() {
                wrong.push(format!("the task {} was due at {at}, its time {occurrence}", task.id));
            } else if timers.get(&(task.id, occurrence)) != Some(&at) {
                wrong.push(format!("no timer is set for {at}, the time {occurrence} of the task {}", task.id));
            }
        }
        if let Some(trigger) = outside(task) {
            let expected = if task.status == TaskPhase::Active { HookState::Active } else { HookState::Paused };
            let known = registrations.get(&task.id).map(|(_, known)| (known.trigger.as_str(), known.state));
            if known != Some((trigger, expected)) {
                wrong.push(format!("the hook {} waits for {trigger} ({expected:?}), and known is {known:?}", task.id));
            }
        }
    }
    wrong
}

/// Finds registrations that wait for something outside although their task does not.
pub fn registered(world: &World, logs: &[Log]) -> Vec<String> {
    let waits = |task: &Uuid| {
        let found = logs.iter().find_map(|log| log.state.tasks.open.get(task));
        found.is_some_and(|task| task.status == TaskPhase::Active)
    };
    let registrations = registrations(world);
    let known = registrations.iter().filter(|(task, (_, known))| known.active_trigger().is_some() && !waits(task));
    known.map(|(task, (agent, known))| format!("{task} of {agent} is over, and known is {known:?}")).collect()
}

/// Returns the registrations in the bucket of hooks, by task.
fn registrations(world: &World) -> BTreeMap<Uuid, (Name, HookRegistration)> {
    let hooks = &world.server.streams[HOOKS_STREAM];
    let changes = hooks.messages_on(&[], 0, Instant::now()).filter_map(|raw| HookChange::from_message(&raw));
    let known =
        changes.filter_map(|HookChange { task: (agent, task), registration }| Some((task, (agent, registration?))));
    known.collect()
}

fn outside(task: &Task) -> Option<&str> {
    let TaskActivation::Hook { trigger, .. } = &task.what else { return None };
    trigger.strip_prefix("post:").filter(|event| *event != "email.received")
}
