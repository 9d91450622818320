//! `kairo diff`

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use kairo_replay::{
    diff::{Brief, DecisionChange, DecisionChangeKind, Diff, ReportOrigin},
    report::{OutcomeClass, Report},
};

use super::replay::decision_lines;
use crate::{Error, event_lines::printable, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo replay default.log --report before.json
  kairo replay default.log --prompt new.md --report after.json
  kairo diff before.json after.json        which decisions come out otherwise?

The two are compared decision by decision: which of them are in one report alone, which have another
outcome, and which have the same at another place or from other requests. The status is 0 if nothing
differs, 1 if something does, and 64 if a file is no report.";
/// Largest report that is read, in bytes.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Compare two reports of `kairo replay` decision by decision
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DiffArgs {
    /// A report that `kairo replay --report` wrote
    #[arg(value_name = "REPORT")]
    before: PathBuf,
    /// Another one, of the same log
    #[arg(value_name = "REPORT")]
    after: PathBuf,
}

pub(super) fn run(arguments: &DiffArgs, json: bool) -> Result<ExitCode, Error> {
    let DiffArgs { before, after } = arguments;
    let between = Diff::between(&read_report(before)?, &read_report(after)?);
    let both = || format!("{} and {}", before.display(), after.display());
    print_diff(&between.map_err(|error| Error::Usage(format!("{}: {error}", both())))?, json)
}

/// Reads a report.
///
/// # Errors
/// Returns an error with the file and the place in it if the file is no report.
pub(super) fn read_report(path: &Path) -> Result<Report, Error> {
    let wrong = |why: String| {
        Error::Usage(format!("{}: expected a report as `kairo replay --report` writes it: {why}", path.display()))
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    match read {
        Ok(size) if size as u64 > LARGEST => Err(wrong(format!("it is larger than {LARGEST} bytes"))),
        Ok(_) => serde_json::from_str(&text).map_err(|error| wrong(error.to_string())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Shows the differences; the exit status says whether there are any.
///
/// # Errors
/// Returns an error if the answer cannot be written.
pub(super) fn print_diff(diff: &Diff, json: bool) -> Result<ExitCode, Error> {
    match json {
        true => terminal::json(diff)?,
        false => format_diff(diff).into_iter().try_for_each(terminal::line)?,
    }
    Ok(if diff.is_same() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn format_diff(diff: &Diff) -> Vec<String> {
    let Diff { before, after, unchanged, decisions, states, .. } = diff;
    let mut lines = vec![format!("{}, then {}", describe_build(before), describe_build(after))];
    lines.extend(decisions.iter().map(format_change));
    lines.extend(states.iter().map(|agent| format!("{agent}: the state at the end is another")));
    if before.stopped != after.stopped {
        let at = |stopped: Option<u64>| stopped.map_or("nowhere".to_owned(), |at| format!("at message {at}"));
        lines.push(format!("stopped {}, then {}", at(before.stopped), at(after.stopped)));
    }
    lines.push(match decisions.len() {
        1 => format!("1 decision comes out otherwise, {unchanged} do not"),
        count => format!("{count} decisions come out otherwise, {unchanged} do not"),
    });
    lines
}

fn describe_build(ReportOrigin { version, changed, .. }: &ReportOrigin) -> String {
    let changed = if changed.is_empty() { String::new() } else { format!(" with another {}", changed.join(", ")) };
    printable(&format!("build {version}{changed}"))
}

fn format_change(DecisionChange { agent, sequence, change, before, after }: &DecisionChange) -> String {
    let told = |brief: &Option<Brief>| brief.as_ref().map_or_else(|| "none".to_owned(), format_brief);
    let what = match change {
        DecisionChangeKind::Appeared => format!("appeared: {}", told(after)),
        DecisionChangeKind::Vanished => format!("vanished: {}", told(before)),
        DecisionChangeKind::Outcome | DecisionChangeKind::Details => format!("{}, then {}", told(before), told(after)),
    };
    format!("{agent}, decision {sequence}: {what}")
}

fn format_brief(Brief { outcome, reason, drifted, differences, verdict }: &Brief) -> String {
    let at = differences.first().map(|place| match outcome {
        OutcomeClass::Same | OutcomeClass::NotReplayable | OutcomeClass::Forgotten => String::new(),
        OutcomeClass::Reworded => format!(" at {}", place.at),
        OutcomeClass::Differs | OutcomeClass::Drifted => format!(" at {} (made again {})", place.at, place.made),
    });
    let why = reason.as_ref().map(|why| format!(": {why}"));
    let requests: Vec<String> = drifted.iter().map(decision_lines::format_request).collect();
    let requests = (!requests.is_empty()).then(|| format!(", request {}", requests.join("; ")));
    let verdict = verdict.map(|verdict| format!(", asked again: {verdict}"));
    printable(&format!(
        "{outcome}{}{}{}{}",
        at.unwrap_or_default(),
        why.unwrap_or_default(),
        requests.unwrap_or_default(),
        verdict.unwrap_or_default()
    ))
}
