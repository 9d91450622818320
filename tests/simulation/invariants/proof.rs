//! Every decision carries the digest of what stands before it, whichever replica wrote it and whatever it had read: whoever reads
//! the log from its beginning comes to the same.

use std::collections::BTreeSet;

use kairo_core::{record::Record, subjects::EVENTS_STREAM, vocabulary::HASH_CHAINS};
use kairo_replay::proof::{LogExtent, Prover};

use crate::{audit::decision, world::World};

pub(super) fn mistakes(world: &World) -> Vec<String> {
    let Some(stream) = world.server.streams.get(EVENTS_STREAM) else { return Vec::new() };
    let mut proving = Prover::new(BTreeSet::new(), LogExtent::Whole, None);
    let mut wrong = Vec::new();
    for stored in stream.all_entries() {
        if let Err(broken) = proving.apply(&stored.raw().to_log_message()) {
            wrong.push(format!("the log cannot be proven: {broken}"));
        }
    }
    let proof = proving.finish();
    let misfits = proof.agents.iter().filter_map(|proven| Some((&proven.agent, proven.misfit.as_ref()?)));
    wrong.extend(
        misfits.map(|(agent, misfit)| format!("of {agent}, {} is {}: {}", misfit.sequence, misfit.kind, misfit.why)),
    );
    let original = |record: &&Record| !world.copies.contains(&record.sequence);
    let decisions = world.records().iter().filter(original).filter_map(decision).count() as u64;
    let (proven, before) =
        proof.agents.iter().fold((0, 0), |(proven, before), it| (proven + it.decisions, before + it.before_epoch));
    let expected = if world.epoch < HASH_CHAINS { (0, decisions) } else { (decisions, 0) };
    if wrong.is_empty() && (proven, before) != expected {
        wrong.push(format!("{proven} decisions are proven and {before} are from before the epoch, of {decisions}"));
    }
    wrong
}
