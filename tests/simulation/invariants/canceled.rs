//! Checks that an action stopped before it began never begins.

use std::collections::BTreeMap;

use kairo_core::{bus::ledger::NOBODY, record::Record};
use kairo_proto::{
    Body,
    v1::{ToolInvoke, ToolResult},
};
use kairo_tool_runner::plan::NOT_BEGUN;
use uuid::Uuid;

use crate::{
    audit::{decision, tool_calls},
    world::World,
};

const STOPPING: [&str; 2] = ["action.cancel", "process.cancel"];

/// The first position in the log of each event of an action, by action.
#[derive(Default)]
struct Places {
    stopped: BTreeMap<String, u64>,
    invoked: BTreeMap<String, u64>,
    spawned: BTreeMap<String, u64>,
    not_begun: BTreeMap<String, u64>,
}

impl Places {
    fn note(&mut self, record: &Record) {
        let first = |places: &mut BTreeMap<String, u64>, action: &str| {
            places.entry(action.to_owned()).or_insert(record.sequence);
        };
        for (_, call) in decision(record).into_iter().flat_map(tool_calls) {
            if STOPPING.contains(&call.tool.as_str()) {
                first(&mut self.stopped, &call.target_action_id);
            }
        }
        for action in ToolInvoke::of(&record.body).into_iter().flat_map(|invoke| &invoke.actions) {
            if action.executor != NOBODY {
                first(&mut self.invoked, &action.action_id);
            }
        }
        if let Body::ProcessSpawned(spawned) = &record.body {
            first(&mut self.spawned, &spawned.action_id);
        }
        if let Some(result) = ToolResult::of(&record.body)
            && result.error.as_ref().is_some_and(|error| error.message == NOT_BEGUN)
        {
            first(&mut self.not_begun, &result.action_id);
        }
    }
}

pub fn mistakes(world: &World, records: &[Record]) -> Vec<String> {
    let mut places = Places::default();
    records.iter().for_each(|record| places.note(record));
    let mut wrong = Vec::new();
    for (id, stopped) in &places.stopped {
        let Ok(action) = Uuid::parse_str(id) else { continue };
        let begins_before = |begun: &BTreeMap<String, u64>| begun.get(id).is_some_and(|begun| begun < stopped);
        let called = world.called.get(&action).copied().unwrap_or_default();
        if called > 0 && !begins_before(&places.invoked) {
            wrong.push(format!("{id} was done {called} times although it was stopped at {stopped}, before it began"));
        }
        let ran = world.processes.iter().any(|process| process.action == Some(action) && process.ran);
        if ran && !begins_before(&places.spawned) {
            wrong.push(format!("the process of {id} ran although it was stopped at {stopped}, before it was there"));
        }
    }
    for (id, said) in &places.not_begun {
        if places.invoked.get(id).is_some_and(|invoked| invoked > said) {
            wrong.push(format!("{id} began after it was said at {said} that it never does"));
        }
    }
    wrong
}
