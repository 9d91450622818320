//! The waits of the others, as a table for people and as JSON.

use std::fmt;

use serde::Serialize;

use super::{
    Flood,
    shares_report::{Head, Share},
    stages::Stage,
};
use crate::{
    arguments::Fair,
    load::{Waits, percentile},
    report::milliseconds,
};

/// The target: the others' p99 under a flood, as a multiple of that without.
const RATIO: f64 = 1.5;

#[derive(Debug, Serialize)]
pub struct Report {
    agents: u64,
    replicas: u8,
    alone: Figures,
    flooded: Figures,
    p99_ratio: f64,
    /// Of the flooded ones.
    stages: Vec<Stage>,
    flood: Flood,
    /// The shares in everything else that is shared.
    shares: Vec<Share>,
}

#[derive(Debug, Serialize)]
struct Figures {
    replies: usize,
    unanswered: u64,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    /// When its message was sent, in seconds from the beginning.
    longest_at_s: f64,
}

impl Report {
    pub fn new(
        wanted: &Fair,
        alone: &Waits,
        flooded: &Waits,
        flood: Flood,
        stages: Vec<Stage>,
        shares: Vec<Share>,
    ) -> Self {
        let (alone, flooded) = (Figures::of(alone), Figures::of(flooded));
        let p99_ratio = flooded.p99_ms / alone.p99_ms;
        Self { agents: wanted.agents, replicas: wanted.replicas, alone, flooded, p99_ratio, stages, flood, shares }
    }
}

impl Figures {
    fn of(waits: &Waits) -> Self {
        let at = |share| milliseconds(percentile(&waits.replies, share));
        Self {
            replies: waits.replies.len(),
            unanswered: waits.unanswered,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            longest_ms: milliseconds(waits.longest.0),
            longest_at_s: waits.longest.1.as_secs_f64(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flood { wanted, accepted, refused, answered, seconds } = self.flood;
        writeln!(f, "\n{} agents with one message at a time, {} replicas\n", self.agents, self.replicas)?;
        writeln!(
            f,
            "{:24}{:>10}{:>12}{:>10}{:>10}{:>12}{:>8}",
            "", "replies", "unanswered", "p50 ms", "p99 ms", "longest ms", "at s"
        )?;
        for (name, figures) in [("alone", &self.alone), ("another is flooded", &self.flooded)] {
            let Figures { replies, unanswered, p50_ms, p99_ms, longest_ms, longest_at_s } = figures;
            write!(f, "{name:24}{replies:>10}{unanswered:>12}{p50_ms:>10.1}{p99_ms:>10.1}")?;
            writeln!(f, "{longest_ms:>12.1}{longest_at_s:>8.1}")?;
        }
        for Stage { name, p99_ms, longest_ms } in &self.stages {
            writeln!(f, "  {name:44}{p99_ms:>10.1}{longest_ms:>12.1}")?;
        }
        writeln!(f, "\np99 {:.2} x alone; aim <= {RATIO}", self.p99_ratio)?;
        writeln!(
            f,
            "the flood: {accepted} of {wanted} accepted, {refused} times refused with 429, {answered} answered, in \
             {seconds:.1} s"
        )?;
        if !self.shares.is_empty() {
            write!(f, "{Head}")?;
        }
        self.shares.iter().try_for_each(|share| write!(f, "{share}"))
    }
}
