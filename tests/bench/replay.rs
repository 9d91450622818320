//! Every decision of a short run of everything made again ([`kairo_mind::replay`]): whether it comes out the same, and how
//! fast that goes.

mod digesting;
mod forking;
mod live;
mod long;

use std::{fmt, time::Instant};

use kairo_core::record::Record;
use kairo_tests::audit;
use serde::Serialize;

use crate::{Outcome, arguments::Replay, projection::record, rounds::progress, ticks::Figures};
use digesting::Digesting;
use forking::Forking;
use live::Live;
use long::Long;

/// Largest body that is read, in bytes.
const MAX_BODY: usize = 1_000_000;

/// The amount that was replayed, and the measurements. A decision that comes out otherwise is an error.
#[derive(Serialize)]
pub struct Report {
    messages: usize,
    decisions: usize,
    decisions_per_s: f64,
    digesting: Digesting,
    long: Long,
    forking: Forking,
    live: Live,
}

/// Records the run that `projection` is measured on, and makes its decisions again; then those of a long log.
pub async fn measure(wanted: &Replay) -> Outcome<Report> {
    progress("recording a run of every service");
    let recorded = record::run().await?;
    let records: Vec<Record> = recorded.iter().map(|raw| raw.read(MAX_BODY)).collect::<Result<_, _>>()?;
    let decisions = records.iter().filter(|record| audit::decision(record).is_some()).count();
    progress(&format!("making {decisions} decisions again"));
    let started = Instant::now();
    let differing = audit::replays(&records);
    let seconds = started.elapsed().as_secs_f64();
    if !differing.is_empty() {
        let told: Vec<String> = differing.iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        return Err(format!("{} of {decisions} decisions come out otherwise:\n{told}", differing.len()).into());
    }
    let digesting = digesting::measure(&recorded, &records, wanted.digests);
    let long = long::measure(wanted).await?;
    let forking = forking::measure(wanted).await?;
    let live = live::measure(wanted).await?;
    let decisions_per_s = decisions as f64 / seconds;
    Ok(Report { messages: records.len(), decisions, decisions_per_s, digesting, long, forking, live })
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, decisions, decisions_per_s, digesting, long, forking, live } = self;
        writeln!(out, "{decisions} decisions in {messages} messages, all the same; {decisions_per_s:.0} a second")?;
        let Digesting { decisions, messages, bytes, us_per_decision } = digesting;
        writeln!(
            out,
            "digests of {decisions} decisions over {messages} messages of {bytes} bytes: {us_per_decision:.1} µs for each decision"
        )?;
        let megabytes = |bytes: u64| bytes / 1_000_000;
        let (file, resident) = (megabytes(long.bytes), megabytes(long.resident));
        writeln!(
            out,
            "a log of {} messages in a file of {file} MB, with {} decisions:",
            long.messages, long.decisions
        )?;
        writeln!(out, "  reading and decoding   {:>7.1} s {:>9.0} messages/s", long.floor_seconds, long.floor_per_s())?;
        writeln!(
            out,
            "  kairo replay           {:>7.1} s {:>9.0} messages/s, at most {resident} MB",
            long.seconds,
            long.per_s()
        )?;
        let Forking { messages, one, team } = forking;
        writeln!(
            out,
            "kairo fork until all is at rest: of an agent with {messages} messages {one:.2} s, of 8 of them {team:.2} s"
        )?;
        let Live { turns, replays, publish_quiet, publish_replaying } = live;
        writeln!(out, "acknowledged publishes beside {replays} replays of an agent with {turns} turns:")?;
        for (what, figures) in [("nothing happens", publish_quiet), ("replaying", publish_replaying)] {
            let Figures { count, p50_ms, p99_ms, .. } = figures;
            writeln!(out, "  {what:<22} p50 {p50_ms:>6.2} ms  p99 {p99_ms:>6.2} ms  of {count}")?;
        }
        Ok(())
    }
}
