//! The cost of the digests of decisions for the replica that decides: each message of the recorded run is taken into
//! its agent's chain, as when it is read, and each decision is linked and taken in once more, as when it is written.

use std::{collections::BTreeMap, hint::black_box, time::Instant};

use kairo_core::{
    hash_chain::{ChainRole, HashChain},
    ids::Name,
    record::{RawMessage, Record},
    subjects,
};
use kairo_tests::audit;
use serde::Serialize;

/// The cost of digesting.
#[derive(Serialize)]
pub struct Digesting {
    pub decisions: usize,
    /// Messages of agents, decisions included.
    pub messages: usize,
    pub bytes: usize,
    /// For each decision, with the messages that came since the one before.
    pub us_per_decision: f64,
}

/// All of it, so many `rounds` of it.
pub fn measure(raws: &[RawMessage], records: &[Record], rounds: u32) -> Digesting {
    let own = |raw: &RawMessage| {
        let (_, agent) = subjects::find_route(&raw.subject).filter(|(route, _)| subjects::is_agent_route(route))?;
        Some(agent)
    };
    let of_agents: Vec<(Name, &RawMessage, &Record)> =
        raws.iter().zip(records).filter_map(|(raw, record)| Some((own(raw)?, raw, record))).collect();
    let started = Instant::now();
    for _ in 0..rounds {
        let mut chains: BTreeMap<&Name, HashChain> = BTreeMap::new();
        for (agent, raw, record) in &of_agents {
            let chain = chains.entry(agent).or_default();
            if audit::decision(record).is_some() {
                black_box(chain.next_link());
                black_box(raw.hash_chain_content());
            }
            chain.apply_message(
                raw.sequence,
                raw.hash_chain_content(),
                ChainRole::from_message(&raw.subject, Some(&record.body)),
            );
        }
        black_box(chains);
    }
    let took = started.elapsed() / rounds;
    let decisions = records.iter().filter(|record| audit::decision(record).is_some()).count();
    Digesting {
        decisions,
        messages: of_agents.len(),
        bytes: of_agents.iter().map(|(_, raw, _)| raw.payload.len()).sum(),
        us_per_decision: took.as_secs_f64() * 1e6 / decisions.max(1) as f64,
    }
}
