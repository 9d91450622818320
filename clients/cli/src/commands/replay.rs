//! `kairo replay`

pub mod changes;
pub mod decision_lines;
pub(in crate::commands) mod html;
mod lanes;
mod other_build;
mod pool;
mod revision;
pub(in crate::commands) mod word_diff;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use kairo_core::ids::Name;
use kairo_mind::replay::changes::ReplayChanges;
use kairo_replay::{
    diff::Diff,
    lanes::{SamplingTotals, Shadow},
    replay_dispatch::{Dispatch, Share},
    report::{DecisionReport, OutcomeCounts, Range, ReplayStop, Report},
};
use serde::Serialize;

use self::{
    lanes::LanePlan,
    pool::{DecisionCallback, ReplayPool},
};
use super::{GatewaySession, archive::ArchiveOption, diff, name};
use crate::{Error, agent_log::LogSource, asking, secret_key, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo replay --agent default                     make every decision of the agent again
  kairo replay --agent default --save default.log  and keep its part of the log in a file
  kairo replay default.log                         the same from the file; no gateway is needed
  kairo replay default.log --from 120 --to 140     only the decisions there; what is before is folded
  kairo replay default.log --prompt new.md         which decisions would another prompt reach?
  kairo replay default.log --limit max_steps=4     and another limit?
  kairo replay --agent ann,bob --report today.json keep what came of it, for `kairo diff`
  kairo replay default.log --html report.html      the same to look at: what was recorded beside what is made
  kairo replay default.log --prompt new.md --samples 3 --budget 0.50
                                                   ask models: what does the agent do with it?
  kairo replay default.log --model gpt-5-mini --budget 0.50
                                                   and what would another model do?
  kairo replay default.log --with ./old/kairo      in what does another build decide otherwise?
  kairo replay default.log --with v0.1.0           and a revision of the repository here?

Each decision is made again from the state that the log says it was made in, with the answers that
models gave then, by this build. Nothing is written, and nothing is asked unless --samples or
--model says so. A decision is the same, reworded (only what people or models read differs) or
differs; it is drifted where a model would be asked something else, so that nobody knows what it
would answer; or it is not replayable, with the reason. Of a request that is another, the number and
the part are named.

With --samples or --model, models are asked for the decisions that the changes reach, in two lanes:
the control asks what was asked then, and the candidate asks it with the changes. What the control
does otherwise than recorded is the model's own noise. The models are those of the services'
configuration (--config or KAIRO_CONFIG, and KAIRO_MODELS__… variables). The number of calls and
their cost are told before, and no call is made that may cost more than what is left of --budget.
No tool is run: a call that the log has a result of keeps it, any other is divergent. Ctrl-C ends it
and shows what is there.

A message that a newer build wrote, and this one does not understand, is not passed over: replay stops
before it, says where it is and which version of reader it takes, and reports the decisions up to there.

With --with, only that is shown in what the two builds differ, and the status is 0 if in nothing and 1 if
in something. Else the status is 0 if all decisions are the same (of those that models were asked for: if the
verdict is the same or noise), 1 if not, 2 if replay stopped at a newer message, and 64 if a file that is named, or the
configuration, cannot be used.";
/// The status where a message takes a newer build.
const STOPPED: u8 = 2;

/// Make agents' decisions again from the log, as they stand or with changes, and compare
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    /// The agents, with commas between; without a file, their part of the log is read from the gateway, which takes an
    /// administrator's key
    #[arg(
        long = "agent",
        value_parser = name,
        value_delimiter = ',',
        value_name = "NAME,…",
        required_unless_present = "file"
    )]
    agents: Vec<Name>,
    /// A file that --save or `kairo incident export` wrote
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Keep what was read in this file, one message a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "archive"])]
    save: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveOption,
    #[command(flatten)]
    range: RangeOptions,
    #[command(flatten)]
    changes: changes::ReplayChangeOptions,
    #[command(flatten)]
    lanes: lanes::LaneOptions,
    /// Keep what came of it in this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Keep it in this file as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Have this other build of kairo make the same decisions again, and show in what it differs from this one. A revision
    /// of the git repository here is built first, once, in the cache folder of the user
    #[arg(long, value_name = "BINARY|REVISION", conflicts_with_all = ["replaced", "samples", "budget", "archive"])]
    with: Option<PathBuf>,
}

/// Range of decisions
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct RangeOptions {
    /// Only decisions from this message of the log on
    #[arg(long, value_name = "SEQUENCE")]
    from: Option<u64>,
    /// Only decisions up to this message of the log
    #[arg(long, value_name = "SEQUENCE")]
    to: Option<u64>,
}

impl RangeOptions {
    /// Returns the options as command-line arguments for another build.
    fn to_arguments(self) -> impl Iterator<Item = OsString> {
        let option = |name: &str, at: Option<u64>| at.map(|at| format!("{name}={at}").into());
        [option("--from", self.from), option("--to", self.to)].into_iter().flatten()
    }

    fn to_range(self) -> Result<Range, Error> {
        let Self { from, to } = self;
        match (from, to) {
            (Some(from), Some(to)) if from > to => {
                Err(Error::Usage(format!("--to: expected at least the {from} of --from, found {to}")))
            }
            _ => Ok(Range { from, to }),
        }
    }
}

impl ReplayArgs {
    /// Makes the decisions again, and keeps what came of it where that is wanted.
    async fn replay(
        &self,
        save: Option<PathBuf>,
        session: &GatewaySession,
        tell: impl FnMut(&DecisionReport) -> Result<(), Error>,
    ) -> Result<Report, Error> {
        let Self { agents, file, archive, range, changes, lanes, .. } = self;
        let source = LogSource::file_or_agents(file.as_deref(), &session.client, agents, save);
        let source = source.after_archive(archive.folder());
        let what = ReplayPlan { agents, range: range.to_range()?, changes: changes.load()? };
        let report = match lanes.to_plan(&what.changes)? {
            Some(wanted) => what.replay_asking_models(&source, &wanted, tell).await?,
            None => what.replay(&source, tell).await?,
        };
        if let Some(path) = &self.report {
            write_report(path, &report)?;
        }
        if let Some(path) = &self.html {
            html::write_report(path, &report)?;
        }
        Ok(report)
    }
}

pub(super) async fn run(arguments: ReplayArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match &arguments.with {
        Some(binary) => run_with_other_build(&arguments, binary, session).await,
        None => run_alone(&arguments, session).await,
    }
}

async fn run_alone(arguments: &ReplayArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let report =
        arguments.replay(arguments.save.clone(), session, |decision| print_decision(decision, session.json)).await?;
    match session.json {
        true => terminal::json(&summarize(&report))?,
        false => {
            let asked = report.asked.iter().flat_map(|asked| decision_lines::format_asking(asked, &report));
            let stop = report.stopped.iter().map(decision_lines::describe_stop);
            decision_lines::format_counts(&report.counts)
                .into_iter()
                .chain(asked)
                .chain(stop)
                .try_for_each(terminal::line)?;
        }
    }
    Ok(match (&report.stopped, report.is_acceptable()) {
        (Some(_), _) => ExitCode::from(STOPPED),
        (None, true) => ExitCode::SUCCESS,
        (None, false) => ExitCode::FAILURE,
    })
}

/// Replays the log with this build and with another one, and shows the differences.
async fn run_with_other_build(
    arguments: &ReplayArgs,
    other: &Path,
    session: &GatewaySession,
) -> Result<ExitCode, Error> {
    let binary = revision::resolve_binary(other).await?;
    let ReplayArgs { agents, file, save, range, changes, .. } = arguments;
    let folder = tempfile::tempdir().map_err(Error::file("write in", std::env::temp_dir()))?;
    // Both read the same bytes.
    let read = save.clone().unwrap_or_else(|| folder.path().join("agents.log"));
    let report = arguments.replay(Some(read.clone()), session, |_| Ok(())).await?;
    let options = range.to_arguments().chain(changes.to_arguments()).collect();
    let other = other_build::run_replay(&binary, file.as_deref().unwrap_or(&read), agents, options).await?;
    let diff = Diff::between(&other, &report);
    diff::print_diff(&diff.map_err(|error| Error::Usage(format!("--with: {error}")))?, session.json)
}

/// The part of a log to replay, and the changes.
pub(super) struct ReplayPlan<'w> {
    /// Empty for all agents of the log.
    pub agents: &'w [Name],
    pub range: Range,
    pub changes: ReplayChanges,
}

impl ReplayPlan<'_> {
    /// Makes the decisions again and passes each to `tell`.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read or has nothing of a named agent, and any error of `tell`.
    pub async fn replay(
        &self,
        source: &LogSource<'_>,
        mut tell: impl FnMut(&DecisionReport) -> Result<(), Error>,
    ) -> Result<Report, Error> {
        self.replay_in_pool(self.new_share(), source, &mut |decision, _| tell(decision)).await
    }

    /// Replays the log, with models asked for the decisions that the changes reach; each is told when all is asked.
    async fn replay_asking_models(
        &self,
        source: &LogSource<'_>,
        wanted: &LanePlan,
        mut tell: impl FnMut(&DecisionReport) -> Result<(), Error>,
    ) -> Result<Report, Error> {
        let mut at = 0;
        let mut places = Vec::new();
        let mut shadows = Vec::new();
        let share = self.new_share().with_replaced_tiers(wanted.replaced_tiers());
        let mut take = |_: &DecisionReport, shadow: Option<Box<Shadow>>| {
            places.extend(shadow.is_some().then_some(at));
            shadows.extend(shadow);
            at += 1;
            wanted.check_decision_count(shadows.len())
        };
        let mut report = self.replay_in_pool(share, source, &mut take).await?;
        let (lanes, asked) = wanted.ask_lanes(&shadows, &asking::open_media(source)?).await;
        lanes::attach_lanes(&mut report.decisions, &places, lanes);
        report.changed.extend(wanted.describe_changes());
        report.asked = Some(asked);
        report.decisions.iter().try_for_each(&mut tell)?;
        Ok(report)
    }

    fn new_share(&self) -> Share {
        Share::new(self.changes.clone(), secret_key::find().ok())
    }

    async fn replay_in_pool(
        &self,
        share: Share,
        source: &LogSource<'_>,
        tell: &mut DecisionCallback<'_>,
    ) -> Result<Report, Error> {
        let agents = self.agents.iter().cloned().collect();
        let mut pool = ReplayPool::start(Dispatch::new(agents, self.range, &self.changes), &share);
        let read = source.read(|message| pool.take_message(message, tell)).await;
        // What stands before a message that cannot be read is told.
        let (report, missing) = pool.finish(env!("CARGO_PKG_VERSION"), tell)?;
        read?;
        // Where it stopped before the agent's first message, that says enough.
        match missing {
            Some(agent) if report.stopped.is_none() => {
                Err(Error::Advice(format!("the log has nothing of the agent {agent} up to there")))
            }
            _ => Ok(report),
        }
    }
}

/// Those that are the same are counted only, for people.
fn print_decision(decision: &DecisionReport, json: bool) -> Result<(), Error> {
    match json {
        true => terminal::json(decision)?,
        false => decision_lines::format_decision(decision).into_iter().try_for_each(terminal::line)?,
    }
    Ok(())
}

/// The summary behind the decisions.
#[derive(Serialize)]
struct ReplaySummary<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: &'r Option<SamplingTotals>,
    changed: &'r [String],
    counts: OutcomeCounts,
    states: &'r BTreeMap<Name, String>,
    stopped: &'r Option<ReplayStop>,
}

fn summarize(report: &Report) -> ReplaySummary<'_> {
    let Report { asked, changed, counts, states, stopped, .. } = report;
    ReplaySummary { asked, changed, counts: *counts, states, stopped }
}

/// Writes a report to a file.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn write_report(path: &Path, report: &Report) -> Result<(), Error> {
    let text = serde_json::to_string(report).unwrap_or_default();
    let written = std::fs::File::create(path).and_then(|mut file| writeln!(file, "{text}"));
    written.map_err(Error::file("write", path))
}
