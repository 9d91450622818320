//! What must be true of every run, once it is at rest.

mod chains;
mod tasks;

use std::collections::BTreeMap;

use kairo_agent_runtime::mind::log::{Log, Snapshot};
use kairo_core::{ids::Name, record::Record, subjects::PROCESS_SPAWNED};
use kairo_proto::{Body, v1::ToolResult};
use kairo_tool_runner::plan::NOBODY;
use uuid::Uuid;

use crate::{
    actor::Actor,
    audit::{self, decision, tool_calls},
    load::AGENTS,
    model, orders,
    replica::concerns,
    scheduler::Simulation,
    world::{ProcessState, World},
};

/// Everything that is wrong with a run that has come to its end.
pub fn mistakes(simulation: &Simulation) -> Vec<String> {
    let world = simulation.world.borrow();
    let mut wrong = world.violations.clone();
    // A copy made by hand is nobody's second event. What happened outside may come about by it, once.
    let from_outside = |body: &Body| matches!(body, Body::EmailReceived(_) | Body::TaskTriggered(_) | Body::TaskDue(_));
    let counts = |it: &&Record| !world.log.copies.contains(&it.sequence) || from_outside(&it.body);
    let originals: Vec<Record> = world.log.records.iter().filter(counts).cloned().collect();
    wrong.extend(audit::mistakes(&originals));
    wrong.extend(effects(&world, &originals));
    wrong.extend(processes(&world, &originals));
    wrong.extend(chains::mistakes(&world, &originals));
    wrong.extend(tasks::firings(&originals));
    let logs: Vec<Log> = AGENTS.iter().map(|agent| orders::read(&world, &Name::parse(agent).unwrap())).collect();
    wrong.extend(logs.iter().flat_map(|log| tasks::planned(&world, log)));
    wrong.extend(tasks::registered(&world, &logs));
    for agent in AGENTS {
        wrong.extend(minds(simulation, &world, &Name::parse(agent).unwrap()));
    }
    wrong
}

/// Keyed effects happened once, unkeyed ones at most once; what is not certain to have happened is in doubt.
fn effects(world: &World, records: &[Record]) -> Vec<String> {
    let results = results(records);
    let mut wrong = Vec::new();
    let withdrawn = |id: &str| {
        let of = |record: &Record| match &record.body {
            Body::ToolInvoke(it) => it.actions.iter().any(|it| it.action_id == id && it.executor == NOBODY),
            _ => false,
        };
        records.iter().any(of)
    };
    for (id, call) in records.iter().filter_map(decision).flat_map(tool_calls) {
        let action = Uuid::parse_str(&id).unwrap();
        let called = world.called.get(&action).copied().unwrap_or(0);
        let error = results.get(&id).and_then(|result| result.error.as_ref()).map(|error| error.kind.as_str());
        if withdrawn(&id) && (called > 0 || world.processes.iter().any(|it| it.action == action && it.ran)) {
            wrong.push(format!("{id} was done although nobody was to do it"));
        }
        match call.tool.as_str() {
            // With its key, a second call has no second effect.
            tool if model::is_keyed(tool)
                && (called == 0 && error != Some("canceled") || error == Some("in_doubt")) =>
            {
                wrong.push(format!("{called} effects of the keyed {id}, which ended as {error:?}"));
            }
            model::UNKEYED | model::MAIL if called > 1 => wrong.push(format!("{called} effects of the unkeyed {id}")),
            model::UNKEYED | model::MAIL
                if called == 0 && !matches!(error, Some("in_doubt" | "canceled" | "approval_required")) =>
            {
                wrong.push(format!("no effect of {id}, which ended as {error:?}"));
            }
            model::RUN | model::SPAWN if called > 0 => wrong.push(format!("the process {id} was called as a tool")),
            _ => {}
        }
    }
    wrong
}

/// No process is left, none ran twice or without being known, and what they came to is what is said of them.
fn processes(world: &World, records: &[Record]) -> Vec<String> {
    let results = results(records);
    let spawned = |action: &Uuid| {
        let of =
            |record: &&Record| matches!(&record.body, Body::ProcessSpawned(it) if it.action_id == action.to_string());
        records.iter().filter(|record| record.subject.ends_with(PROCESS_SPAWNED.verb)).any(|record| of(&record))
    };
    let canceled_first = |action: &Uuid| {
        let about = |record: &&Record| match &record.body {
            Body::ProcessSpawned(it) => it.action_id == action.to_string(),
            Body::ProcessCanceled(it) => it.action_id == action.to_string(),
            _ => false,
        };
        records.iter().find(about).is_some_and(|first| matches!(first.body, Body::ProcessCanceled(_)))
    };
    let mut wrong = Vec::new();
    let mut ran: BTreeMap<Uuid, u32> = BTreeMap::new();
    for process in &world.processes {
        if matches!(process.state, ProcessState::AtTheGate | ProcessState::Running) {
            wrong.push(format!("the process of {} is still there", process.action));
        }
        *ran.entry(process.action).or_default() += u32::from(process.ran);
    }
    for (action, times) in &ran {
        if *times > 1 {
            wrong.push(format!("the process of {action} ran {times} times"));
        }
        if *times > 0 && canceled_first(action) {
            wrong.push(format!("the process of {action} ran although it was canceled before it was there"));
        }
        if *times > 0 && !spawned(action) {
            wrong.push(format!("the process of {action} ran unknown"));
        }
    }
    for (id, result) in results.iter().filter(|(_, result)| result.tool == model::RUN && result.ok) {
        let ended = |it: &crate::world::Process| it.action.to_string() == *id && it.state == ProcessState::Ended;
        if !world.processes.iter().any(ended) {
            wrong.push(format!("{id} is said to have ended by itself: {}", result.result));
        }
    }
    wrong
}

/// However an agent's log is folded (from its beginning, from any snapshot there ever was, by a replica that lived
/// through it), the same state comes out and nothing is left to decide on.
fn minds(simulation: &Simulation, world: &World, agent: &Name) -> Vec<String> {
    let mut wrong = Vec::new();
    let read_on = |mut log: Log| -> Result<Log, String> {
        for record in world.log.read(log.read, 0, |record| concerns(record, agent)) {
            let sequence = record.sequence;
            log.push(record).map_err(|_| format!("{agent:?} diverges at {sequence}"))?;
        }
        match log.next_input() {
            Some(input) => Err(format!("{agent:?} has not decided on {}", input.sequence)),
            None => Ok(log),
        }
    };
    let scratch = match read_on(Log::default()) {
        Ok(log) => log,
        Err(mistake) => return vec![mistake],
    };
    for (_, bytes) in world.snapshots_ever.iter().filter(|(of, _)| of == agent) {
        let snapshot: Snapshot = serde_json::from_slice(bytes).unwrap();
        let at = snapshot.state.cursor;
        match Log::resume(snapshot).ok_or("a snapshot of another version".to_owned()).and_then(read_on) {
            Ok(log) if log.state == scratch.state => {}
            Ok(log) => {
                let differs = difference(&log, &scratch);
                wrong.push(format!("{agent:?} folded from its snapshot at {at} is another: {differs}"));
            }
            Err(mistake) => wrong.push(format!("from the snapshot at {at}: {mistake}")),
        }
    }
    for actor in simulation.actors.iter().flatten() {
        let Actor::Runtime(runtime) = actor else { continue };
        let slot = runtime.mind(agent);
        let Ok(mind) = slot.try_lock() else { continue };
        // One that finds that others decided otherwise reads the log again, and is then like the first.
        if let Some(Ok(log)) = mind.log.clone().map(read_on)
            && log.state != scratch.state
        {
            let differs = difference(&log, &scratch);
            wrong.push(format!("a replica knows {agent:?} otherwise than the log does: {differs}"));
        }
    }
    if !scratch.state.turns.is_empty() {
        wrong.push(format!("{agent:?} has turns that never ended: {:?}", scratch.state.turns));
    }
    wrong
}

/// The first line in which two states differ.
fn difference(one: &Log, other: &Log) -> String {
    let (one, other) = (format!("{:#?}", one.state), format!("{:#?}", other.state));
    let differ = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    differ.map_or("one is longer".to_owned(), |(one, other)| format!("{} against {}", one.trim(), other.trim()))
}

fn results(records: &[Record]) -> BTreeMap<String, &ToolResult> {
    let result = |record| match record {
        &Record { body: Body::ToolResult(ref result), .. } => Some((result.action_id.clone(), result)),
        _ => None,
    };
    records.iter().filter_map(result).collect()
}
