//! Processes: spawned, on their way, asked to end, exited. One that was refused exits without having been spawned.

use std::collections::btree_map::Entry;

use kairo_proto::{
    About,
    about::Process,
    v1::{ProcessCanceled, ProcessExited, ProcessProgress, ProcessSpawned, ProcessUsage},
};
use kairo_read_model::stored::{Json, Key};
use uuid::Uuid;

use super::{Fact, number, progress};
use crate::changes::{Advance, Canceled, Changes, Exited, ProcessEvent, Spawned, Usage};

pub fn project(fact: &Fact, changes: &mut Changes) {
    let About::Process(process) = fact.record.body.about() else { return };
    match process {
        Process::Spawned(process) => spawn(fact, process, changes),
        Process::Progress(process) => advance(fact, process, changes),
        Process::Canceled(process) => cancel(fact, process, changes),
        Process::Reply(_) => {}
        Process::Exited(process) => exit(fact, process, changes),
    }
}

fn event(fact: &Fact, action_id: &str, supervisor: &str) -> ProcessEvent {
    ProcessEvent {
        sequence: fact.sequence,
        action_id: Uuid::parse_str(action_id).ok(),
        agent: fact.owner.clone(),
        supervisor: supervisor.into(),
        at: fact.at,
    }
}

fn spawn(fact: &Fact, process: &ProcessSpawned, changes: &mut Changes) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.spawned.entry(process_id).or_insert_with(|| Spawned {
        event: event(fact, &process.action_id, &process.supervisor),
        tool: Key::some(&process.tool),
        background: process.background,
        pid: i64::from(process.pid),
        program: process.program.as_str().into(),
        arguments: Json::of(&process.arguments),
    });
}

fn advance(fact: &Fact, process: &ProcessProgress, changes: &mut Changes) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    let progress = progress(fact.at, process.fraction, &process.message);
    let advance = Advance { progress, tail: process.tail.as_str().into() };
    match changes.advanced.entry(process_id) {
        Entry::Occupied(there) if advance.progress.is_older_than(&there.get().progress) => {}
        Entry::Occupied(mut there) => _ = there.insert(advance),
        Entry::Vacant(place) => _ = place.insert(advance),
    }
}

fn cancel(fact: &Fact, process: &ProcessCanceled, changes: &mut Changes) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.canceled.entry(process_id).or_insert_with(|| Canceled {
        event: event(fact, &process.action_id, &process.supervisor),
        by: Uuid::parse_str(&process.by_action_id).ok(),
    });
}

fn exit(fact: &Fact, process: &ProcessExited, changes: &mut Changes) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.exited.entry(process_id).or_insert_with(|| Exited {
        event: event(fact, &process.action_id, &process.supervisor),
        tool: Key::some(&process.tool),
        background: process.background,
        program: (!process.program.is_empty()).then(|| process.program.as_str().into()),
        outcome: process.outcome.as_str().into(),
        code: process.code,
        signal: process.signal,
        reason: process.reason.as_str().into(),
        usage: process.usage.as_ref().map(used),
        stdout_tail: process.stdout_tail.as_str().into(),
        stderr_tail: process.stderr_tail.as_str().into(),
        stdout_bytes: number(process.stdout_bytes),
        stderr_bytes: number(process.stderr_bytes),
    });
}

fn used(usage: &ProcessUsage) -> Usage {
    Usage {
        wall_ms: number(usage.wall_ms),
        user_ms: number(usage.user_ms),
        system_ms: number(usage.system_ms),
        max_rss_bytes: number(usage.max_rss_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{projected, record},
        *,
    };

    #[test]
    fn the_first_exit_counts() {
        let id = Uuid::from_u128(3);
        let exited = |sequence, outcome: &str, code| {
            let process_id = id.to_string();
            let body = ProcessExited { process_id, outcome: outcome.into(), code, ..Default::default() };
            record(sequence, "kairo.process.bob.exited", body)
        };
        let changes = projected([exited(4, "exited", Some(0)), exited(5, "supervisor_lost", None)]);
        assert_eq!((changes.exited[&id].outcome.as_str(), changes.exited[&id].code), ("exited", Some(0)));
    }
}
