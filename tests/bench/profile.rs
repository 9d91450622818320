//! A CPU profile of the processes: `perf` on all of them at once, while turns go on.

use tokio::process::Command;

use crate::{
    Outcome,
    load::{Lane, all_at_once},
    machine::Machine,
};

/// The duration of the profile in seconds, and its samples per second.
const SECONDS: &str = "5";
const FREQUENCY: &str = "499";
/// Functions shown of each process.
const SHOWN: usize = 25;

/// Prints the hottest functions of every process to standard error.
pub async fn show<L: Lane>(machine: &Machine, turns: &mut Vec<L>) -> Outcome<()> {
    let processes = machine.processes();
    let pids: Vec<String> = processes.iter().map(|(_, pid)| pid.to_string()).collect();
    let data = machine.folder().join("perf.data");
    let mut recording = Command::new("perf")
        .args(["record", "--quiet", "--freq", FREQUENCY, "--pid", &pids.join(","), "--output"])
        .arg(&data)
        .args(["--", "sleep", SECONDS])
        .spawn()
        .map_err(|error| format!("--profile needs perf (Debian package linux-perf): {error}"))?;
    while recording.try_wait()?.is_none() {
        all_at_once(turns, 256).await?;
    }
    for (name, pid) in processes {
        let report = Command::new("perf")
            .args(["report", "--stdio", "--quiet", "--sort", "dso,symbol", "--pid", &pid.to_string(), "--input"])
            .arg(&data)
            .output()
            .await?;
        eprintln!("\n{name}");
        let text = String::from_utf8_lossy(&report.stdout);
        text.lines().filter(|line| !line.trim().is_empty()).take(SHOWN).for_each(|line| eprintln!("{line}"));
    }
    Ok(())
}
