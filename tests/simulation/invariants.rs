//! The invariants of every run, checked once it is at rest.

mod canceled;
mod chains;
mod order;
mod proof;
mod tasks;

use std::collections::BTreeMap;

use bytes::Bytes;
use kairo_agent_runtime::{decode_snapshot, snapshot_key};
use kairo_core::{
    bus::ledger::NOBODY,
    ids::Name,
    record::Record,
    subjects::{DLQ_STREAM, EVENTS_STREAM, PROCESS_SPAWNED, SNAPSHOTS_BUCKET},
    vocabulary::{self, SEALING},
};
use kairo_in_memory::server::{Stream, StreamEntry};
use kairo_mind::log::{Log, NextInput, Snapshot};
use kairo_proto::{
    About, Body, ContentType, about,
    v1::{AgentDecision, AgentDefined, DeadLetter, ProcessExited, ToolInvoke, ToolResult},
};
use uuid::Uuid;

use crate::{
    audit::{self, decision, tool_calls},
    flaw,
    load::AGENTS,
    model, orders,
    replica::AT_ONCE,
    world::{Process, ProcessState, World},
};

/// Everything that is wrong with a run that has come to its end.
pub fn mistakes(world: &World) -> Vec<String> {
    let mut wrong = world.violations.clone();
    // A copy made by hand is nobody's second event. What happened outside may come about by it, once.
    let from_outside = |body: &Body| matches!(body.about(), About::Outside(_));
    let counts = |it: &&Record| !world.copies.contains(&it.sequence) || from_outside(&it.body);
    let originals: Vec<Record> = world.records().iter().filter(counts).cloned().collect();
    wrong.extend(audit::miscounted(&originals));
    wrong.extend(audit::replays(&as_minds_saw_it(world)).iter().map(ToString::to_string));
    wrong.extend(effects(world, &originals));
    wrong.extend(processes(world, &originals));
    wrong.extend(canceled::mistakes(world, &originals));
    wrong.extend(chains::mistakes(world, &originals));
    wrong.extend(order::mistakes(&originals));
    wrong.extend(proof::mistakes(world));
    wrong.extend(tasks::firings(&originals));
    let logs: Vec<Log> = AGENTS.iter().map(|agent| orders::read(world, &Name::parse(agent).unwrap())).collect();
    wrong.extend(logs.iter().flat_map(|log| tasks::planned(world, log)));
    wrong.extend(tasks::registered(world, &logs));
    for agent in AGENTS {
        wrong.extend(minds(world, &Name::parse(agent).unwrap()));
    }
    wrong.extend(letters(world));
    wrong.extend(of_the_epoch(world));
    wrong.extend(in_the_clear(world));
    wrong.extend(paid(world));
    wrong.extend(spinning(world));
    wrong
}

/// Decisions that say something of somebody, and are not sealed although there is a key.
fn in_the_clear(world: &World) -> Vec<String> {
    if world.privacy.master_key.is_empty() || world.epoch < SEALING {
        return Vec::new();
    }
    let personal = |record: &&Record| decision(record).is_some() && !record.envelope.owners.all_owners().is_empty();
    let log = world.server.streams.get(EVENTS_STREAM);
    let stored = |record: &Record| log.and_then(|log| log.entry_at(record.sequence)).map(StreamEntry::raw);
    let open = world.records().iter().filter(personal).filter(|it| stored(it).is_some_and(|raw| !raw.is_sealed()));
    open.map(|record| format!("the decision {} stands in the clear", record.sequence)).collect()
}

/// Replicas that went round in circles.
fn spinning(world: &World) -> Vec<String> {
    let replicas = world.replicas.iter().enumerate();
    let most = replicas.map(|(number, replica)| (number, replica.life.most_at_once()));
    let spinning = most.filter(|(_, most)| *most > AT_ONCE);
    spinning.map(|(number, most)| format!("replica {number} began {most} tasks in one moment")).collect()
}

/// The log as it was read by those who decided.
fn as_minds_saw_it(world: &World) -> Vec<Record> {
    let mut records = world.records().to_vec();
    if world.faults.outdated_catalogue {
        records.iter_mut().for_each(|record| flaw::forget_consent(&mut record.body));
    }
    records
}

/// Nothing of a run is set aside: all of it can be read, and dealt with.
fn letters(world: &World) -> Vec<String> {
    let letters = world.server.streams.get(DLQ_STREAM).into_iter().flat_map(Stream::all_entries);
    let read = letters.filter_map(|stored| {
        let body = Body::decode(DeadLetter::TYPE, ContentType::Protobuf, &stored.payload).ok()?;
        DeadLetter::try_from(body).ok()
    });
    read.map(|letter| format!("{} of {} was set aside: {}", letter.sequence, letter.subject, letter.reason)).collect()
}

/// Nothing is written that the epoch does not know, and what takes more than the first readers says so.
fn of_the_epoch(world: &World) -> Vec<String> {
    let wrong = |record: &&Record| {
        let takes = vocabulary::required_reader(&record.body);
        let said = AgentDecision::of(&record.body).is_some_and(|decision| decision.reader != takes);
        takes > world.epoch || said
    };
    let wrong = world.records().iter().filter(wrong);
    wrong.map(|record| format!("{} is nothing to be written in epoch {}", record.sequence, world.epoch)).collect()
}

/// Times that an agent may begin a decision anew because another message came, if it is one that does.
const RESTARTS: u32 = 3;

/// Times that the same may be asked again because the answer could not be used, or there was none: tries of each kind but the first.
const AGAIN: u32 = 2 + 7;

/// A model is asked once for each answer that a decision was made of, and once more for what was lost with whoever was
/// disturbed.
fn paid(world: &World) -> Vec<String> {
    let restarts = |record: &Record| {
        let profile = AgentDefined::of(&record.body).and_then(|defined| defined.profile.as_ref());
        profile.is_some_and(|it| it.interjection == "restart")
    };
    let restarts = if world.records().iter().any(restarts) { RESTARTS } else { 0 };
    // What an agent asks itself day after day is the same to the letter.
    let mut used = BTreeMap::<&str, u32>::new();
    for completion in world.records().iter().filter_map(decision).flat_map(|decision| &decision.completions) {
        *used.entry(&completion.request_digest).or_default() += 1;
    }
    // What was given up is in the log, too; of one that was interrupted it does not say which question it was.
    let mut unnamed = 0;
    for given_up in world.records().iter().filter_map(decision).flat_map(|decision| &decision.given_up) {
        match given_up.request_digest.as_str() {
            "" => unnamed += 1,
            digest => *used.entry(digest).or_default() += 1,
        }
    }
    let of = |digest: &str| used.get(digest).copied().unwrap_or_default().max(1);
    let lost = AGAIN + world.disruptions + restarts + unnamed;
    let too_often = world.asked.iter().filter(|(digest, times)| **times > of(digest) + lost);
    too_often
        .map(|(digest, times)| {
            format!("a model was asked {times} times for {digest}, of which {} are in the log", of(digest))
        })
        .collect()
}

/// Keyed effects happened once, unkeyed ones at most once; what is not certain to have happened is in doubt.
fn effects(world: &World, records: &[Record]) -> Vec<String> {
    let results = results(records);
    let mut wrong = Vec::new();
    let withdrawn = |id: &str| {
        let mut begun = records.iter().filter_map(|record| ToolInvoke::of(&record.body)).flat_map(|it| &it.actions);
        begun.any(|it| it.action_id == id && it.executor == NOBODY)
    };
    for (id, call) in records.iter().filter_map(decision).flat_map(tool_calls) {
        let action = Uuid::parse_str(&id).unwrap();
        let called = world.called.get(&action).copied().unwrap_or(0);
        let error = results.get(&id).and_then(|result| result.error.as_ref()).map(|error| error.kind.as_str());
        if withdrawn(&id) && (called > 0 || world.processes.iter().any(|it| it.action == Some(action) && it.ran)) {
            wrong.push(format!("{id} was done although nobody was to do it"));
        }
        match call.tool.as_str() {
            // With its key, a second call has no second effect.
            model::KEYED
                if (called == 0 && !matches!(error, Some("canceled" | "invalid_arguments"))
                    || error == Some("in_doubt")) =>
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
        let mut states = records.iter().filter_map(|record| {
            let About::Process(process) = record.body.about() else { return None };
            match process {
                about::Process::Spawned(it) => Some((&it.action_id, false)),
                about::Process::Canceled(it) => Some((&it.action_id, true)),
                about::Process::Progress(_) | about::Process::Reply(_) | about::Process::Exited(_) => None,
            }
        });
        states.find(|(id, _)| **id == action.to_string()).is_some_and(|(_, canceled)| canceled)
    };
    let mut wrong = Vec::new();
    let mut ran: BTreeMap<Uuid, u32> = BTreeMap::new();
    for process in &world.processes {
        if matches!(process.state, ProcessState::AtTheGate | ProcessState::Running) {
            wrong.push(format!("the process {} of {:?} is still there", process.pid, process.action));
        }
        let Some(action) = process.action else { continue };
        *ran.entry(action).or_default() += u32::from(process.ran);
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
    let lost = records.iter().filter_map(|record| {
        let exited = ProcessExited::of(&record.body).filter(|exited| exited.outcome == "supervisor_lost")?;
        Some((record.sequence, &exited.action_id))
    });
    // One that alone was cut off is given up for lost while its process lives, and ends it when it is back.
    for (said, id) in lost.filter(|_| !world.was_cut) {
        let of = |it: &&Process| it.ran && it.action.is_some_and(|action| action.to_string() == *id);
        if world.processes.iter().filter(of).any(|process| process.over_at >= said) {
            wrong.push(format!("the process of {id} ran on after it was said to be lost"));
        }
    }
    for (id, result) in results.iter().filter(|(_, result)| result.tool == model::RUN && result.ok) {
        let ended =
            |it: &Process| it.action.is_some_and(|action| action.to_string() == *id) && it.state == ProcessState::Ended;
        if !world.processes.iter().any(ended) {
            wrong.push(format!("{id} is said to have ended by itself: {}", result.result));
        }
    }
    wrong
}

/// However an agent's log is folded (from its beginning, or from any snapshot there ever was), the same state comes out
/// and nothing is left to decide on.
fn minds(world: &World, agent: &Name) -> Vec<String> {
    let mut wrong = Vec::new();
    let supply = |log: &mut Log, missing: Vec<u64>| {
        missing.into_iter().for_each(|it| log.supply_record(it, world.server.record(it).cloned()));
    };
    let read_on = |mut log: Log| -> Result<Log, String> {
        let read = log.read;
        for record in world.concerning(agent).filter(|record| record.sequence > read) {
            let lacking = log.missing_for(record);
            supply(&mut log, lacking);
            log.push(record.clone()).map_err(|_| format!("{agent:?} diverges at {}", record.sequence))?;
        }
        loop {
            match log.next_input() {
                Some(NextInput::Missing(missing)) => supply(&mut log, missing),
                Some(NextInput::Input(input)) => {
                    return Err(format!("{agent:?} has not decided on {}", input.record.sequence));
                }
                None => return Ok(log),
            }
        }
    };
    let scratch = match read_on(Log::default()) {
        Ok(log) => log,
        Err(mistake) => return vec![mistake],
    };
    for snapshot in snapshots(world, agent) {
        let at = snapshot.state.cursor;
        match Log::from_snapshot(snapshot, world.log)
            .ok_or("a snapshot of another version".to_owned())
            .and_then(read_on)
        {
            Ok(log) if log.state == scratch.state => {}
            Ok(log) => {
                let differs = difference(&log, &scratch);
                wrong.push(format!("{agent:?} folded from its snapshot at {at} is another: {differs}"));
            }
            Err(mistake) => wrong.push(format!("from the snapshot at {at}: {mistake}")),
        }
    }
    if let Some(work) = scratch.next_background_input() {
        wrong.push(format!("{agent:?} has not gone on with what it works on: {work:?}"));
    }
    if !scratch.state.work.is_idle() {
        wrong.push(format!("{agent:?} is in a session that never ended: {:?}", scratch.state.work));
    }
    if !scratch.state.turns.is_empty() {
        wrong.push(format!("{agent:?} has turns that never ended: {:?}", scratch.state.turns));
    }
    wrong
}

/// From how many of an agent's snapshots its log is folded once more.
const MOST_SNAPSHOTS: usize = 12;

/// Snapshots there ever were of an agent, of this log: the last one, and of many some of those before it.
fn snapshots(world: &World, agent: &Name) -> Vec<Snapshot> {
    let mut entries: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut ever = Vec::new();
    for (subject, value) in &world.snapshots_ever {
        let key = subject.trim_start_matches("$KV.").trim_start_matches(SNAPSHOTS_BUCKET).trim_start_matches('.');
        entries.insert(key.to_owned(), value.clone());
        if key == snapshot_key(agent) {
            ever.extend(decode_snapshot(agent, &entries));
        }
    }
    ever.retain(|snapshot| snapshot.log == world.log);
    let step = ever.len().div_ceil(MOST_SNAPSHOTS).max(1);
    ever.into_iter().rev().step_by(step).collect()
}

/// The first line in which two states differ.
fn difference(one: &Log, other: &Log) -> String {
    let (one, other) = (format!("{:#?}", one.state), format!("{:#?}", other.state));
    let differ = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    differ.map_or("one is longer".to_owned(), |(one, other)| format!("{} against {}", one.trim(), other.trim()))
}

fn results(records: &[Record]) -> BTreeMap<String, &ToolResult> {
    let results = records.iter().filter_map(|record| ToolResult::of(&record.body)).filter(|result| !result.late);
    results.map(|result| (result.action_id.clone(), result)).collect()
}
