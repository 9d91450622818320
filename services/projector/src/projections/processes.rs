//! Processes: spawned, exited. One that was refused exits without having been spawned.

use kairo_proto::{
    Body,
    v1::{ProcessExited, ProcessSpawned},
};
use kairo_read_model::stored::Json;
use uuid::Uuid;

use super::Fact;
use crate::changes::{Changes, Exited, Spawned};

pub fn project(fact: &Fact, changes: &mut Changes) {
    match &fact.record.body {
        Body::ProcessSpawned(process) => spawn(fact, process, changes),
        Body::ProcessExited(process) => exit(fact, process, changes),
        _ => {}
    }
}

fn spawn(fact: &Fact, process: &ProcessSpawned, changes: &mut Changes) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.spawned.entry(process_id).or_insert_with(|| Spawned {
        action_id: Uuid::parse_str(&process.action_id).ok(),
        agent: fact.owner.clone(),
        supervisor: process.supervisor.as_str().into(),
        pid: i64::from(process.pid),
        program: process.program.as_str().into(),
        arguments: Json::of(&process.arguments),
        started_at: fact.at,
    });
}

fn exit(fact: &Fact, process: &ProcessExited, changes: &mut Changes) {
    let Ok(process_id) = Uuid::parse_str(&process.process_id) else { return };
    changes.exited.entry(process_id).or_insert_with(|| Exited {
        action_id: Uuid::parse_str(&process.action_id).ok(),
        agent: fact.owner.clone(),
        supervisor: process.supervisor.as_str().into(),
        ended_at: fact.at,
        outcome: process.outcome.as_str().into(),
        code: process.code,
        signal: process.signal,
        reason: process.reason.as_str().into(),
    });
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
