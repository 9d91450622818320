//! The results, for people and as JSON.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::{
    fill::Mix,
    floor::Floor,
    queries::{Latencies, MIX},
    rebuild::Rebuild,
};
use crate::{arguments::Projection, load::percentile};

/// The targets of the results.
const SHARE: f64 = 0.5;
const RATE: f64 = 50_000.0;
const SLOWER: f64 = 2.0;

#[derive(Debug, Serialize)]
pub struct Report {
    messages: u64,
    mix: Mix,
    /// Messages a second.
    floor: f64,
    /// Messages a second of projector: the first generation, until it is live; another one beside it, until it has read
    /// all; and until it is live.
    first: f64,
    filled: f64,
    built: f64,
    first_build: Rebuild,
    rebuild: Rebuild,
    rebuild_with_queries: Rebuild,
    queries_per_s: u64,
    queries_at_rest: Quantiles,
    queries_during: Quantiles,
}

/// In milliseconds.
#[derive(Debug, Serialize)]
struct Quantiles {
    queries: usize,
    failed: usize,
    p50: f64,
    p99: f64,
    longest: f64,
}

impl Report {
    pub fn new(
        wanted: &Projection,
        mix: Mix,
        floor: &Floor,
        [first, alone, beside]: [Rebuild; 3],
        [at_rest, during]: [&Latencies; 2],
    ) -> Self {
        let messages = floor.messages as f64;
        Self {
            messages: floor.messages,
            mix,
            floor: messages / floor.seconds,
            first: first.messages as f64 / first.all,
            first_build: first,
            filled: alone.messages as f64 / alone.filling,
            built: alone.messages as f64 / alone.all,
            rebuild: alone,
            rebuild_with_queries: beside,
            queries_per_s: wanted.queries_per_s,
            queries_at_rest: Quantiles::of(at_rest),
            queries_during: Quantiles::of(during),
        }
    }
}

impl Quantiles {
    fn of(latencies: &Latencies) -> Self {
        let milliseconds = |share| percentile::<Duration>(&latencies.answered, share).as_secs_f64() * 1_000.0;
        Self {
            queries: latencies.answered.len(),
            failed: latencies.failed,
            p50: milliseconds(0.5),
            p99: milliseconds(0.99),
            longest: milliseconds(1.0),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, mix, floor, .. } = self;
        writeln!(
            f,
            "\n{messages} messages of {:.0} bytes on average, {} copies of a recorded run:",
            mix.bytes, mix.copies
        )?;
        let types = mix.types.iter().map(|(name, share)| format!("{:.1}% {name}", share * 100.0));
        writeln!(f, "{}\n", types.collect::<Vec<_>>().join(", "))?;
        writeln!(f, "{:46}{:>12}{:>9}{:>22}", "", "messages/s", "floor", "aim")?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, rate: f64, aim: &str| {
            writeln!(f, "{name:46}{rate:>12.0}{:>9.2}{aim:>22}", rate / floor)
        };
        line(f, "floor: read the log, insert its bytes", *floor, "")?;
        line(f, "first generation, until it answers queries", self.first, "")?;
        line(f, "rebuild, the log read", self.filled, &format!(">= {SHARE}, > {RATE:.0}"))?;
        line(f, "rebuild, until it answers queries", self.built, "")?;
        writeln!(f, "\n{:46}{:>9}{:>10}{:>11}{:>7}", "seconds", "filling", "indexing", "comparing", "all")?;
        for (name, it) in [
            ("first generation", &self.first_build),
            ("rebuild", &self.rebuild),
            ("rebuild with queries running", &self.rebuild_with_queries),
        ] {
            writeln!(f, "{name:46}{:>9.1}{:>10.1}{:>11.1}{:>7.1}", it.filling, it.indexing, it.comparing, it.all)?;
        }
        let kinds = MIX.len();
        writeln!(
            f,
            "\n{:46}{:>9}{:>9}{:>9}{:>9}{:>9}",
            format!("{} queries/s of {kinds} kinds", self.queries_per_s),
            "queries",
            "failed",
            "p50 ms",
            "p99 ms",
            "longest"
        )?;
        for (name, it) in [("at rest", &self.queries_at_rest), ("during a rebuild", &self.queries_during)] {
            writeln!(f, "{name:46}{:>9}{:>9}{:>9.1}{:>9.1}{:>9.1}", it.queries, it.failed, it.p50, it.p99, it.longest)?;
        }
        let ratio = self.queries_during.p99 / self.queries_at_rest.p99;
        writeln!(f, "p99 during a rebuild is {ratio:.1} times that at rest; the aim is {SLOWER:.0} at most")
    }
}
