//! The times of waking, as a table for people and as JSON.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::{Measured, Restart};
use crate::{arguments::Wake, ticks::Figures};

/// The target, in milliseconds: from a message's delivery to the decision.
const AWAKE_MS: f64 = 5.0;
const MIB: f64 = 1024.0 * 1024.0;

#[derive(Debug, Serialize)]
pub struct Report {
    agents: u32,
    log_messages: u64,
    fill_seconds: f64,
    first_reading_seconds: f64,
    log_bytes: u64,
    stored_bytes: u64,
    /// By service.
    restarts: BTreeMap<&'static str, Restarted>,
    joined_seconds: f64,
    /// From sending the message to the decision.
    whole: Figures,
    /// From the message's delivery to the agent to the decision.
    awake: Figures,
    unanswered: usize,
    publish_quiet: Figures,
    publish_waking: Figures,
    /// Resident, by process, before and after.
    resident_mib: [BTreeMap<&'static str, f64>; 2],
    takeover: Figures,
    takeover_unanswered: usize,
}

impl Report {
    pub fn new(wanted: &Wake, measured: &Measured) -> Self {
        let mib = |by_process: &BTreeMap<&'static str, u64>| {
            by_process.iter().map(|(name, bytes)| (*name, *bytes as f64 / MIB)).collect()
        };
        Self {
            agents: wanted.agents,
            log_messages: measured.filled.0,
            fill_seconds: measured.filled.1.as_secs_f64(),
            first_reading_seconds: measured.caught_up.as_secs_f64(),
            log_bytes: measured.log_bytes,
            stored_bytes: measured.stored_bytes,
            restarts: measured.restarts.iter().map(|(name, restart)| (*name, Restarted::of(restart))).collect(),
            joined_seconds: measured.joined.as_secs_f64(),
            whole: Figures::of(&measured.whole),
            awake: Figures::of(&measured.awake),
            unanswered: measured.unanswered,
            publish_quiet: Figures::of(&measured.publish_quiet),
            publish_waking: Figures::of(&measured.publish_waking),
            resident_mib: measured.resident.each_ref().map(mib),
            takeover: Figures::of(&measured.orphans),
            takeover_unanswered: measured.orphans_unanswered,
        }
    }
}

/// Seconds from asking a replica to end.
#[derive(Debug, Serialize)]
struct Restarted {
    ready_seconds: f64,
    decided_seconds: Option<f64>,
}

impl Restarted {
    fn of(restart: &Restart) -> Self {
        Self {
            ready_seconds: restart.ready.as_secs_f64(),
            decided_seconds: restart.decided.map(|decided| decided.as_secs_f64()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, log_messages, fill_seconds, first_reading_seconds, .. } = self;
        writeln!(
            f,
            "\n{agents} idle agents, {log_messages} messages, written in {fill_seconds:.1} s, read for the first time \
             in {first_reading_seconds:.1} s\n{:.0} MiB of log, {:.0} MiB with snapshots and all else in JetStream\n",
            self.log_bytes as f64 / MIB,
            self.stored_bytes as f64 / MIB
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
        let [idle, woken] = &self.resident_mib;
        writeln!(f, "\n{:44}{:>10}{:>14}", "resident, MiB", "idle", "after waking")?;
        for (name, mib) in idle {
            writeln!(f, "{name:44}{mib:>10.0}{:>14.0}", woken.get(name).copied().unwrap_or_default())?;
        }
        for (name, Restarted { ready_seconds, decided_seconds }) in &self.restarts {
            let decided = decided_seconds.map_or("none".to_owned(), |seconds| format!("{seconds:.1} s"));
            writeln!(f, "{name} restarted: ready after {ready_seconds:.1} s, first decision after {decided}")?;
        }
        writeln!(f, "a second agent-runtime owned its share {:.1} s after its start", self.joined_seconds)?;
        let (unanswered, orphaned) = (self.unanswered, self.takeover_unanswered);
        writeln!(f, "without a decision within a minute: {unanswered}, and {orphaned} around the kill")?;
        writeln!(f, "aim: message delivered to first decision, p99 <= {AWAKE_MS} ms")
    }
}
