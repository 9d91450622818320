//! Processes: spawned, on their way, asked to end, exited. One that was refused exits without having been spawned.

use std::collections::btree_map::Entry;

use kairo_proto::{
    About,
    about::Process,
    v1::{ProcessCanceled, ProcessExited, ProcessProgress, ProcessSpawned, ProcessUsage},
};
use kairo_read_model::sql_values::{SqlJson, SqlKey};
use uuid::Uuid;

use super::{ProjectedRecord, progress_report, to_bigint};
use crate::changes::{
    ProcessAdvance, ProcessCancellation, ProcessEvent, ProcessExit, ProcessResources, ProcessSpawn, TableChanges,
};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    let About::Process(process) = fact.record.body.about() else { return };
    match process {
        Process::Spawned(process) => project_spawn(fact, process, changes),
        Process::Progress(process) => project_progress(fact, process, changes),
        Process::Canceled(process) => project_cancel(fact, process, changes),
        Process::Reply(_) => {}
        Process::Exited(process) => project_exit(fact, process, changes),
    }
}

fn process_event(fact: &ProjectedRecord, action_id: &str, supervisor: &str) -> ProcessEvent {
    ProcessEvent {
        sequence: fact.sequence,
        action_id: Uuid::parse_str(action_id).ok(),
        agent: fact.owner.clone(),
        supervisor: supervisor.into(),
        at: fact.at,
    }
}

fn project_spawn(fact: &ProjectedRecord, process: &ProcessSpawned, changes: &mut TableChanges) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.spawned.entry(process_id).or_insert_with(|| ProcessSpawn {
        event: process_event(fact, &process.action_id, &process.supervisor),
        tool: SqlKey::non_empty(&process.tool),
        background: process.background,
        pid: i64::from(process.pid),
        program: process.program.as_str().into(),
        arguments: SqlJson::from_value(&process.arguments),
    });
}

fn project_progress(fact: &ProjectedRecord, process: &ProcessProgress, changes: &mut TableChanges) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    let progress = progress_report(fact.at, process.fraction, &process.message);
    let advance = ProcessAdvance { progress, tail: process.tail.as_str().into() };
    match changes.advanced.entry(process_id) {
        Entry::Occupied(there) if advance.progress.is_older_than(&there.get().progress) => {}
        Entry::Occupied(mut there) => _ = there.insert(advance),
        Entry::Vacant(place) => _ = place.insert(advance),
    }
}

fn project_cancel(fact: &ProjectedRecord, process: &ProcessCanceled, changes: &mut TableChanges) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.canceled.entry(process_id).or_insert_with(|| ProcessCancellation {
        event: process_event(fact, &process.action_id, &process.supervisor),
        by: Uuid::parse_str(&process.by_action_id).ok(),
    });
}

fn project_exit(fact: &ProjectedRecord, process: &ProcessExited, changes: &mut TableChanges) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.exited.entry(process_id).or_insert_with(|| ProcessExit {
        event: process_event(fact, &process.action_id, &process.supervisor),
        tool: SqlKey::non_empty(&process.tool),
        background: process.background,
        program: (!process.program.is_empty()).then(|| process.program.as_str().into()),
        outcome: process.outcome.as_str().into(),
        code: process.code,
        signal: process.signal,
        reason: process.reason.as_str().into(),
        usage: process.usage.as_ref().map(to_resources),
        stdout_tail: process.stdout_tail.as_str().into(),
        stderr_tail: process.stderr_tail.as_str().into(),
        stdout_bytes: to_bigint(process.stdout_bytes),
        stderr_bytes: to_bigint(process.stderr_bytes),
    });
}

fn to_resources(usage: &ProcessUsage) -> ProcessResources {
    ProcessResources {
        wall_ms: to_bigint(usage.wall_ms),
        user_ms: to_bigint(usage.user_ms),
        system_ms: to_bigint(usage.system_ms),
        max_rss_bytes: to_bigint(usage.max_rss_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{project_all, record},
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
        let changes = project_all([exited(4, "exited", Some(0)), exited(5, "supervisor_lost", None)]);
        assert_eq!((changes.exited[&id].outcome.as_str(), changes.exited[&id].code), ("exited", Some(0)));
    }
}
