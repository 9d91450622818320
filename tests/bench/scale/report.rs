//! The results of scaling, as tables for people and as JSON.

use std::{fmt, fs, thread};

use serde::Serialize;

use super::load::Case;
use crate::{Outcome, fair, wake};

/// The target: this share of the ideal, as long as the machine is not at its limit.
const SHARE: f64 = 0.9;
const KIB_IN_GIB: f64 = 1024.0 * 1024.0;

#[derive(Debug, Serialize)]
pub struct Report {
    cores: usize,
    memory_gib: f64,
    pub load: Vec<Case>,
    pub idle: Option<wake::Report>,
    pub neighbours: Option<fair::Report>,
}

impl Report {
    /// Nothing is measured yet.
    pub fn of_this_machine() -> Outcome<Self> {
        let memory = fs::read_to_string("/proc/meminfo")?;
        let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
        let memory_kib: f64 = memory.ok_or("/proc/meminfo does not say how much memory there is")?.trim().parse()?;
        let cores = thread::available_parallelism()?.get();
        Ok(Self { cores, memory_gib: memory_kib / KIB_IN_GIB, load: Vec::new(), idle: None, neighbours: None })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nthis machine: {} cores, {:.1} GiB", self.cores, self.memory_gib)?;
        if !self.load.is_empty() {
            self.write_load(f)?;
        }
        if let Some(idle) = &self.idle {
            write!(f, "{idle}")?;
        }
        if let Some(neighbours) = &self.neighbours {
            write!(f, "{neighbours}")?;
        }
        Ok(())
    }
}

impl Report {
    fn write_load(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nreplicas of agent-runtime and of router; ideal: replicas x calls in flight / delay of the model\n"
        )?;
        write!(
            f,
            "{:>8}{:>11}{:>8}{:>9}{:>13}{:>8}",
            "replicas", "in flight", "agents", "ideal/s", "decisions/s", "share"
        )?;
        writeln!(f, "{:>9}{:>9}{:>15}{:>15}{:>8}", "p50 ms", "p99 ms", "requests each", "messages each", "cores")?;
        for case in &self.load {
            let Case { replicas, in_flight, agents, ideal_per_s, per_s, share, waits, .. } = case;
            write!(f, "{replicas:>8}{in_flight:>11}{agents:>8}{ideal_per_s:>9.0}{per_s:>13.1}{share:>8.2}")?;
            write!(f, "{:>9.0}{:>9.0}{:>15.4}", waits.p50_ms, waits.p99_ms, case.requests_per_decision)?;
            writeln!(f, "{:>15.1}{:>8.2}", case.nats_messages_per_decision, case.cores.values().sum::<f64>())?;
        }
        self.write_cores(f)?;
        writeln!(f, "aim: {SHARE} of the ideal as long as fewer cores are used than there are, and one request each")?;
        for case in self.load.iter().filter(|case| case.unanswered > 0 || case.replies != case.decisions) {
            let Case { replicas, replies, unanswered, decisions, failure, .. } = case;
            let failure = failure.as_ref().map(|failure| format!(" ({failure})")).unwrap_or_default();
            write!(f, "{replicas} replicas: {replies} replies, {unanswered} unanswered{failure}, ")?;
            writeln!(f, "{decisions} decisions")?;
        }
        Ok(())
    }

    /// A line for each process, a column for each number of replicas.
    fn write_cores(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:28}", "cores used, by replicas")?;
        self.load.iter().try_for_each(|case| write!(f, "{:>8}", case.replicas))?;
        writeln!(f)?;
        for name in self.load.first().into_iter().flat_map(|case| case.cores.keys()) {
            write!(f, "{name:28}")?;
            let cores = self.load.iter().map(|case| case.cores.get(name).copied().unwrap_or_default());
            cores.into_iter().try_for_each(|cores| write!(f, "{cores:>8.2}"))?;
            writeln!(f)?;
        }
        writeln!(f)
    }
}
