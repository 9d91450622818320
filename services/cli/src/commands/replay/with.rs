//! The same log made again by another build of the command, which is run as a program of its own.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use kairo_replay::report::Report;
use tokio::{process::Command, time::timeout};

use crate::{Error, commands::diff, event_lines::printable};

/// How long the other build may take.
const DEADLINE: Duration = Duration::from_secs(3_600);
/// What is shown of what it says when it fails, in characters.
const SHOWN: usize = 500;

/// Has `binary` make the decisions of a file again with these options, and reads its report.
///
/// # Errors
/// Where it cannot be run, does not end in time, or writes no report of this form.
pub async fn report(binary: &Path, log: &Path, options: Vec<OsString>) -> Result<Report, Error> {
    let folder = tempfile::tempdir().map_err(Error::file("write in", std::env::temp_dir()))?;
    let written: PathBuf = folder.path().join("report.json");
    let mut command = Command::new(binary);
    command.args(["--json", "replay"]).arg(log).arg("--report").arg(&written).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().map_err(Error::file("run", binary))?;
    let shown = binary.display();
    let ended = timeout(DEADLINE, child.wait_with_output()).await;
    let output = ended
        .map_err(|_| Error::Advice(format!("{shown} did not end within {} seconds", DEADLINE.as_secs())))?
        .map_err(Error::file("run", binary))?;
    // Its status says whether all is the same; whether it could do what was asked for, its report.
    if !written.is_file() {
        let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(SHOWN).collect();
        let (said, status) = (printable(&said), output.status);
        return Err(Error::Usage(format!(
            "--with: {shown} wrote no report ({status}): expected a build of kairo that knows `kairo replay --report`. It \
             said: {said}"
        )));
    }
    diff::read(&written)
}
