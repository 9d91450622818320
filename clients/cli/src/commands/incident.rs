//! `kairo incident`

mod export;
mod junit;
mod manifest_summary;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use kairo_replay::{
    accepted_differences::{AcceptedDifferences, Grade, TestVerdict},
    incident::Manifest,
    report::Report,
};
use serde::Serialize;
use serde_json::json;

use super::{
    GatewaySession,
    replay::{ReplayPlan, changes, decision_lines as decisions},
};
use crate::{
    Error,
    agent_log::{self, LogSource},
    event_lines::printable,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo incident export --agent default --around 131 -o slot.kairo
  kairo incident show slot.kairo                           what is in it
  kairo incident run slot.kairo                            make its decisions again, without a server
  kairo incident run slot.kairo --prompt new.md            which of them would another prompt reach?
  kairo incident test slot.kairo --accept accepted.yaml    as a test: only what is accepted may be otherwise
  kairo incident test *.kairo --junit report.xml           several, for CI

`kairo replay`, `kairo state --file` and `kairo whatif` open such a file as well.";
const TEST_EXAMPLES: &str = "\
What is accepted stands in a YAML file, with the reason:

  decisions:
    - sequence: 131
      outcome: drifted      # same, reworded, drifted, differs or not_replayable; none for any
      why: the prompt now names the time zone
  state: a field was added  # why the state at the end may be another

The status is 0 if all is the same or accepted, 1 if decisions differ, 2 if only the state at the end does,
3 if something cannot be made again or the file is not as it was exported, and 64 if a file cannot be used.";
/// Largest file of what is accepted, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Keep what an agent did in one file, make it again anywhere, and hold builds to it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct IncidentArgs {
    #[command(subcommand)]
    command: IncidentCommand,
}

#[derive(Debug, Subcommand)]
enum IncidentCommand {
    Export(export::IncidentExportArgs),
    Show(IncidentShowArgs),
    Run(IncidentRunArgs),
    Test(IncidentTestArgs),
}

/// Show what incident files hold, if they are as they were exported
#[derive(Debug, Args)]
struct IncidentShowArgs {
    /// Files that `kairo incident export` wrote
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Make the decisions of incident files again
#[derive(Debug, Args)]
struct IncidentRunArgs {
    /// Files that `kairo incident export` wrote
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    changes: changes::ReplayChangeOptions,
}

/// Make the decisions of incident files again; what is not the same must be accepted
#[derive(Debug, Args)]
#[command(after_help = TEST_EXAMPLES)]
struct IncidentTestArgs {
    /// Files that `kairo incident export` wrote
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File of accepted differences, in YAML
    #[arg(long, value_name = "FILE")]
    accept: Option<PathBuf>,
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    changes: changes::ReplayChangeOptions,
}

pub(super) async fn run(arguments: IncidentArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        IncidentCommand::Export(arguments) => export::run(arguments, session).await,
        IncidentCommand::Show(IncidentShowArgs { files }) => {
            for path in files {
                manifest_summary::print_manifest(&read_manifest(&path)?, &path, session.json)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        IncidentCommand::Run(IncidentRunArgs { files, changes }) => {
            let grade = test_files(&files, &changes, &AcceptedDifferences::default(), session.json).await?;
            Ok(ExitCode::from(worst_grade(&grade).exit_status()))
        }
        IncidentCommand::Test(IncidentTestArgs { files, accept, junit, changes }) => {
            let accepted = accept.as_deref().map(read_accepted).transpose()?.unwrap_or_default();
            let came = test_files(&files, &changes, &accepted, session.json).await?;
            if let Some(path) = junit {
                let suites: Vec<junit::JunitSuite<'_>> = came.iter().map(IncidentOutcome::to_junit_suite).collect();
                // Another status says something about the decisions.
                let unwritten = |error| Error::Usage(format!("--junit: cannot write {}: {error}", path.display()));
                fs::write(&path, junit::render_suites(&suites)).map_err(unwritten)?;
            }
            Ok(ExitCode::from(worst_grade(&came).exit_status()))
        }
    }
}

/// The report and verdict of a file, or the reason why it cannot be replayed.
struct IncidentOutcome {
    file: String,
    result: Result<(Report, TestVerdict), String>,
}

impl IncidentOutcome {
    fn grade(&self) -> Grade {
        self.result.as_ref().map_or(Grade::NotReplayable, |(_, verdict)| verdict.result)
    }

    fn to_junit_suite(&self) -> junit::JunitSuite<'_> {
        let of = self.result.as_ref().map(|(report, verdict)| (report, verdict)).map_err(String::as_str);
        (&self.file, of)
    }

    fn to_lines(&self) -> Vec<String> {
        let file = printable(&self.file);
        let (report, verdict) = match &self.result {
            Ok(came) => came,
            Err(why) => return vec![format!("{file}: not replayable: {}", printable(why))],
        };
        let mut lines = vec![format!("{file}: {}", report.agents.first().map(ToString::to_string).unwrap_or_default())];
        lines.extend(report.decisions.iter().filter_map(decisions::format_decision_line));
        lines.extend(report.stopped.iter().map(decisions::describe_stop));
        lines.extend(decisions::format_counts(&report.counts));
        let accepted = verdict.accepted.iter();
        lines.extend(accepted.map(|(at, why)| format!("  decision {at} is accepted: {}", printable(why))));
        let unused = verdict.unused.iter();
        lines.extend(unused.map(|at| format!("  decision {at} is accepted, and need not be: take it out")));
        if verdict.state_differs {
            lines.push("  the state at the end is another".to_owned());
        }
        lines
    }

    fn to_json(&self) -> impl Serialize + use<> {
        let Self { file, result: of } = self;
        let form = "kairo.incident.v1";
        match of {
            Ok((report, verdict)) => json!({ "report": form, "file": file, "verdict": verdict, "replay": report }),
            Err(why) => {
                let verdict = json!({ "result": Grade::NotReplayable, "reason": why });
                json!({ "report": form, "file": file, "verdict": verdict })
            }
        }
    }
}

fn worst_grade(came: &[IncidentOutcome]) -> Grade {
    came.iter().map(IncidentOutcome::grade).max().unwrap_or_default()
}

async fn test_files(
    files: &[PathBuf],
    changes: &changes::ReplayChangeOptions,
    accepted: &AcceptedDifferences,
    json: bool,
) -> Result<Vec<IncidentOutcome>, Error> {
    let mut all = Vec::new();
    for path in files {
        let of = match replay_incident(path, changes).await {
            Ok((manifest, report)) => {
                let verdict = accepted.judge(&report, &manifest.state);
                Ok((report, verdict))
            }
            // Of these, the file alone is the reason.
            Err(Error::Damaged(why) | Error::Advice(why)) => Err(why),
            Err(other) => return Err(other),
        };
        let came = IncidentOutcome { file: path.display().to_string(), result: of };
        match json {
            true => terminal::json(&came.to_json())?,
            false => came.to_lines().into_iter().try_for_each(terminal::line)?,
        }
        all.push(came);
    }
    Ok(all)
}

/// Reads the manifest of an incident file, and fails if the file was altered since its export.
fn read_manifest(path: &Path) -> Result<Manifest, Error> {
    let opened = agent_log::verify_incident(path)?.ok_or_else(|| {
        let path = path.display();
        Error::Usage(format!("{path}: expected a file that `kairo incident export` wrote"))
    })?;
    Ok(opened.manifest)
}

async fn replay_incident(path: &Path, changes: &changes::ReplayChangeOptions) -> Result<(Manifest, Report), Error> {
    let manifest = read_manifest(path)?;
    let agents = std::slice::from_ref(&manifest.agent);
    let what = ReplayPlan { agents, range: manifest.range, changes: changes.load()? };
    let report = what.replay(&LogSource::File(path), |_| Ok(())).await?;
    Ok((manifest, report))
}

fn read_accepted(path: &Path) -> Result<AcceptedDifferences, Error> {
    let wrong = |why: String| Error::Usage(format!("{}: {why}", path.display()));
    let size = fs::metadata(path).map_err(|error| wrong(format!("it cannot be read: {error}")))?.len();
    if size > LARGEST {
        return Err(wrong(format!("expected at most {LARGEST} bytes, found {size}")));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    let accepted: AcceptedDifferences = serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match accepted.first_mistake() {
        Some(why) => Err(wrong(why)),
        None => Ok(accepted),
    }
}
