//! The duration of `kairo fork` until the agents are at rest behind the end of their logs.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    process::Stdio,
    time::Instant,
};

use kairo_local::StackOptions;
use serde::Serialize;
use serde_json::Value;
use tokio::process::Command;

use super::long;
use crate::{Outcome, arguments::Replay, rounds::progress};

/// Agents of a team.
const TEAM: usize = 8;

/// The durations of forks, in seconds.
#[derive(Serialize)]
pub struct Forking {
    pub messages: u64,
    pub one: f64,
    pub team: f64,
}

pub async fn measure(wanted: &Replay) -> Outcome<Forking> {
    let messages = wanted.agent_messages;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("team.log");
    progress(&format!("forking an agent with {messages} messages, and {TEAM} of them"));
    let names: Vec<String> = (0..TEAM).map(|number| format!("agent-{number}")).collect();
    let mut file = BufWriter::new(File::create(&path)?);
    let mut last = 0;
    for name in &names {
        for message in long::turns(name, last + 1, messages.div_ceil(4)).messages() {
            serde_json::to_writer(&mut file, &message)?;
            file.write_all(b"\n")?;
            last = message.sequence;
        }
    }
    file.flush()?;
    let one = forked(&path, last, names.get(..1).unwrap_or_default()).await?;
    let team = forked(&path, last, &names).await?;
    Ok(Forking { messages, one, team })
}

async fn forked(path: &Path, at: u64, agents: &[String]) -> Outcome<f64> {
    let program = StackOptions::bin_dir_of_this_build()?.join("kairo");
    let started = Instant::now();
    let mut command = Command::new(program);
    command.args(["--json", "fork", &agents.join(","), "--at", &at.to_string(), "--file"]).arg(path);
    let output = command.stdin(Stdio::null()).output().await?;
    let seconds = started.elapsed().as_secs_f64();
    let text = String::from_utf8(output.stdout)?;
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    match output.status.success() && last.get("at_rest") == Some(&Value::Bool(true)) {
        true => Ok(seconds),
        false => Err(format!("the fork did not come to rest: {last}").into()),
    }
}
