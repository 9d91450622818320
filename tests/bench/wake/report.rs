//! What waking takes, as a table for people and as JSON.

use std::fmt;

use serde::Serialize;

use super::Measured;
use crate::{arguments::Wake, ticks::Figures};

/// What is aimed at, in milliseconds: from a message's delivery to the decision.
const AWAKE_MS: f64 = 5.0;
const MIB: f64 = 1024.0 * 1024.0;

#[derive(Debug, Serialize)]
pub struct Report {
    agents: u32,
    log_messages: u64,
    fill_seconds: f64,
    first_reading_seconds: f64,
    ready_seconds: f64,
    /// From sending the message to the decision.
    whole: Figures,
    /// From the message's delivery to the agent to the decision.
    awake: Figures,
    unanswered: usize,
    publish_quiet: Figures,
    publish_waking: Figures,
    /// Resident, before and after.
    nats_server_mib: [f64; 2],
    agent_runtime_mib: [f64; 2],
    takeover: Figures,
    takeover_unanswered: usize,
}

impl Report {
    pub fn new(wanted: &Wake, measured: &Measured) -> Self {
        let mib = |bytes: [u64; 2]| bytes.map(|bytes| bytes as f64 / MIB);
        Self {
            agents: wanted.agents,
            log_messages: measured.filled.0,
            fill_seconds: measured.filled.1.as_secs_f64(),
            first_reading_seconds: measured.caught_up.as_secs_f64(),
            ready_seconds: measured.ready.as_secs_f64(),
            whole: Figures::of(&measured.whole),
            awake: Figures::of(&measured.awake),
            unanswered: measured.unanswered,
            publish_quiet: Figures::of(&measured.publish_quiet),
            publish_waking: Figures::of(&measured.publish_waking),
            nats_server_mib: mib(measured.nats),
            agent_runtime_mib: mib(measured.agent_runtime),
            takeover: Figures::of(&measured.orphans),
            takeover_unanswered: measured.orphans_unanswered,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, log_messages, fill_seconds, first_reading_seconds, ready_seconds, .. } = self;
        writeln!(
            f,
            "\n{agents} idle agents, {log_messages} messages, written in {fill_seconds:.1} s, read for the first time \
             in {first_reading_seconds:.1} s; agent-runtime restarted on them in {ready_seconds:.1} s\n"
        )?;
        writeln!(f, "{:44}{:>8}{:>10}{:>10}{:>12}", "", "count", "p50 ms", "p99 ms", "longest ms")?;
        for (name, figures) in [
            ("message sent to first decision", &self.whole),
            ("message delivered to first decision", &self.awake),
            ("acknowledged publish, all idle", &self.publish_quiet),
            ("acknowledged publish, agents waking", &self.publish_waking),
            ("wait around kill -9 of one of two replicas", &self.takeover),
        ] {
            let Figures { count, p50_ms, p99_ms, longest_ms } = figures;
            writeln!(f, "{name:44}{count:>8}{p50_ms:>10.2}{p99_ms:>10.2}{longest_ms:>12.2}")?;
        }
        let [idle, woken] = self.nats_server_mib;
        writeln!(f, "\nnats-server, resident: {idle:.0} MiB, {woken:.0} MiB after waking")?;
        let [idle, woken] = self.agent_runtime_mib;
        writeln!(f, "agent-runtime, resident: {idle:.0} MiB, {woken:.0} MiB after waking")?;
        let (unanswered, orphaned) = (self.unanswered, self.takeover_unanswered);
        writeln!(f, "without a decision within a minute: {unanswered}, and {orphaned} around the kill")?;
        writeln!(f, "aim: message delivered to first decision, p99 <= {AWAKE_MS} ms")
    }
}
