//! `process.list`: an agent's processes.

use std::{collections::BTreeMap, sync::Arc};

use futures::{
    future::{BoxFuture, try_join_all},
    try_join,
};
use kairo_core::bus::ledger::LedgerEntry;
use kairo_proto::v1::{ProcessExited, ProcessSpawned};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Control, control_tool, describe, parse_agent, unavailable_error};
use crate::tool::{CallContext, CallResult, ToolError, ToolSpec};

/// Most processes in one answer.
const MOST: usize = 50;

pub struct ProcessList {
    control: Arc<Control>,
    spec: ToolSpec,
}

control_tool!(ProcessList);

impl ProcessList {
    pub fn new(control: Arc<Control>) -> Self {
        let description = "Lists your processes, newest first: those that run, and those that ended lately.";
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let spec = control.build_spec("process.list", description, schema);
        Self { control, spec }
    }

    async fn run(&self, _args: Value, ctx: CallContext) -> CallResult {
        let agent = parse_agent(&ctx)?;
        let spawned = &self.control.spawned;
        let exited = &self.control.exited;
        let entries =
            try_join!(spawned.all_entries(&agent, ctx.target_after), exited.all_entries(&agent, ctx.target_after));
        let (spawned, exited) = entries.map_err(unavailable_error)?;
        let listed =
            newest_positions(&spawned, &exited).into_iter().map(|sequence| self.describe(sequence, ctx.user.as_ref()));
        let listed = try_join_all(listed).await?;
        Ok(json!({ "processes": listed.into_iter().flatten().collect::<Vec<_>>() }))
    }

    /// A process, if it is the user's: who shares an agent does not see what others run.
    fn describe<'a>(
        &'a self,
        sequence: u64,
        user: Option<&'a String>,
    ) -> BoxFuture<'a, Result<Option<Value>, ToolError>> {
        Box::pin(async move {
            let record = self.control.bus.record_at(sequence).await.map_err(unavailable_error)?;
            let is_theirs = |of: &Option<String>| user.is_none() || of.as_ref() == user;
            let spawned = ProcessSpawned::of(&record.body).filter(|spawned| is_theirs(&spawned.user));
            let exited = ProcessExited::of(&record.body).filter(|exited| is_theirs(&exited.user));
            Ok(spawned.map(describe::running_summary).or_else(|| exited.map(describe::ended_summary)))
        })
    }
}

/// Returns the position in the log of each process's end or, if it has none, its beginning. Ordered by beginning,
/// newest first; if there are too many, running processes come before those that ended.
fn newest_positions(spawned: &BTreeMap<Uuid, LedgerEntry>, exited: &BTreeMap<Uuid, LedgerEntry>) -> Vec<u64> {
    let never_ran = exited.iter().filter(|(action, _)| !spawned.contains_key(action));
    // Whether it has ended, since when it is known, and where to read of it.
    let mut all: Vec<(bool, u64, u64)> = spawned
        .iter()
        .map(|(action, begun)| match exited.get(action) {
            Some(end) => (true, begun.sequence, end.sequence),
            None => (false, begun.sequence, begun.sequence),
        })
        .chain(never_ran.map(|(_, end)| (true, end.sequence, end.sequence)))
        .collect();
    all.sort_unstable_by_key(|(ended, since, _)| (*ended, u64::MAX - since));
    all.truncate(MOST);
    all.sort_unstable_by_key(|(_, since, _)| u64::MAX - since);
    all.into_iter().map(|(_, _, sequence)| sequence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: &[(u128, u64)]) -> BTreeMap<Uuid, LedgerEntry> {
        let entry = |(action, sequence): &(u128, u64)| {
            (Uuid::from_u128(*action), LedgerEntry { sequence: *sequence, by: String::new() })
        };
        entries.iter().map(entry).collect()
    }

    #[test]
    fn processes_are_listed_newest_first_by_what_was_said_of_them_last() {
        let spawned = entries(&[(1, 10), (2, 11), (3, 14)]);
        let exited = entries(&[(2, 20), (4, 13)]);
        assert_eq!(newest_positions(&spawned, &exited), [14, 13, 20, 10]);
        assert_eq!(newest_positions(&entries(&[]), &entries(&[])), [0_u64; 0]);
    }

    #[test]
    fn what_runs_is_listed_however_much_ended_since() {
        let spawned: Vec<(u128, u64)> = (1..=100).map(|n| (n, n as u64)).collect();
        let exited: Vec<(u128, u64)> = (2..=100).map(|n| (n, 1_000 + n as u64)).collect();
        let listed = newest_positions(&entries(&spawned), &entries(&exited));
        assert_eq!((listed.len(), listed.last()), (MOST, Some(&1)));
    }
}
