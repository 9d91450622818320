//! Replay of the log by another build of the command, which is run as a program of its own.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use kairo_core::ids::Name;
use kairo_replay::report::{DecisionReport, OutcomeCounts, ReplayStop, Report};
use serde::Deserialize;
use tokio::{process::Command, time::timeout};

use crate::{Error, commands::diff, event_lines::printable};

/// The longest time the other build may take.
const DEADLINE: Duration = Duration::from_secs(3_600);
/// The most characters shown of its output when it fails.
const SHOWN: usize = 500;

/// Has `binary` make the decisions of a file again with these options, and reads its report. One from before there were reports tells
/// the outcome of each decision of these agents, none for all, and no places, where that is all that is asked for.
///
/// # Errors
/// Returns an error if it cannot be run, does not end in time, or writes no report of this form.
pub async fn run_replay(binary: &Path, log: &Path, agents: &[Name], options: Vec<OsString>) -> Result<Report, Error> {
    let folder = tempfile::tempdir().map_err(Error::file("write in", std::env::temp_dir()))?;
    let written: PathBuf = folder.path().join("report.json");
    let mut command = replay_command(binary, log);
    let named = agents.iter().map(|agent| format!("--agent={agent}"));
    command.arg("--report").arg(&written).args(named).args(&options).stdout(Stdio::null());
    let output = run_to_end(command, binary).await?;
    // Its status says whether all is the same; whether it could do what was asked for, its report.
    if written.is_file() {
        return diff::read_report(&written);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if options.is_empty() && said.contains("'--report'") {
        let output = run_to_end(replay_command(binary, log), binary).await?;
        if let Some(report) = report_from_lines(&output.stdout, agents) {
            return Ok(report);
        }
    }
    let shown = binary.display();
    let status = output.status;
    let said = printable(&said.trim().chars().take(SHOWN).collect::<String>());
    Err(Error::Usage(format!(
        "--with: {shown} wrote no report ({status}): expected a build of kairo that knows `kairo replay --report` or, without \
         --from, --to and changes, `kairo replay FILE --json`. It said: {said}"
    )))
}

fn replay_command(binary: &Path, log: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args(["--json", "replay"]).arg(log);
    command
}

async fn run_to_end(mut command: Command, binary: &Path) -> Result<Output, Error> {
    command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await;
    let late = |_| Error::Advice(format!("{} did not end within {} seconds", binary.display(), DEADLINE.as_secs()));
    output.map_err(late)?.map_err(Error::file("run", binary))
}

/// The report that a build comes to which tells decisions line by line, and at the end the states; none where it does not.
fn report_from_lines(said: &[u8], agents: &[Name]) -> Option<Report> {
    #[derive(Deserialize)]
    struct LegacyReplayEnd {
        states: BTreeMap<Name, String>,
        stopped: Option<ReplayStop>,
    }
    let mut lines: Vec<&[u8]> = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let LegacyReplayEnd { states, stopped } = serde_json::from_slice(lines.pop()?).ok()?;
    let decisions: Result<Vec<DecisionReport>, _> = lines.into_iter().map(serde_json::from_slice).collect();
    let is_wanted = |agent: &Name| agents.is_empty() || agents.contains(agent);
    let decisions: Vec<DecisionReport> = decisions.ok()?.into_iter().filter(|it| is_wanted(&it.agent)).collect();
    let states = states.into_iter().filter(|(agent, _)| is_wanted(agent)).collect();
    let version = "from before there were reports".to_owned();
    let mut counts = OutcomeCounts::default();
    decisions.iter().for_each(|decision| counts.count(decision));
    Some(Report { version, agents: agents.to_vec(), states, stopped, counts, decisions, ..Report::default() })
}

#[cfg(test)]
mod tests {
    use kairo_replay::report::OutcomeClass;

    use super::*;

    const SAID: &str = r#"{"agent":"cook","sequence":7,"input_id":"a","outcome":"same"}
{"agent":"ann","sequence":9,"input_id":"b","outcome":"differs","difference":{"at":"x"}}
{"counts":{"decisions":2,"differ":1,"same":1},"states":{"cook":"s","ann":"t"},"stopped":null}
"#;

    #[test]
    fn a_build_from_before_there_were_reports_tells_outcomes_line_by_line() {
        let report = report_from_lines(SAID.as_bytes(), &[]).unwrap();
        let outcomes: Vec<_> = report.decisions.iter().map(|it| (it.sequence, it.outcome)).collect();
        assert_eq!((outcomes, report.states.len()), (vec![(7, OutcomeClass::Same), (9, OutcomeClass::Differs)], 2));
        let of_one = report_from_lines(SAID.as_bytes(), &[Name::parse("cook").unwrap()]).unwrap();
        assert_eq!((of_one.counts.decisions, of_one.counts.same, of_one.states.len()), (1, 1, 1));
        for other in ["", "no JSON\n", &SAID[..SAID.len() / 2], &SAID.replace("same", "fine")] {
            assert_eq!(report_from_lines(other.as_bytes(), &[]), None, "{other}");
        }
    }
}
