//! A long log in a file, made again by `kairo replay` as a user would, beside the floor: reading and decoding the same file.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use kairo_core::{log_message, vocabulary::NotUnderstood};
use kairo_local::StackOptions;
use kairo_proto::v1::LogMessage;
use kairo_replay::testing::{TestAgent, call_completion, text_completion};
use serde::Serialize;
use serde_json::Value;
use tokio::{process::Command, time};

use crate::{Outcome, arguments::Replay, cpu, rounds::progress};

/// The interval at which the memory of the command is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The speed of replaying a long log.
#[derive(Serialize)]
pub struct Long {
    pub messages: u64,
    pub decisions: u64,
    pub bytes: u64,
    pub floor_seconds: f64,
    pub seconds: f64,
    /// The most that the command held, in bytes.
    pub resident: u64,
}

impl Long {
    pub fn floor_per_s(&self) -> f64 {
        self.messages as f64 / self.floor_seconds
    }

    pub fn per_s(&self) -> f64 {
        self.messages as f64 / self.seconds
    }
}

pub async fn measure(wanted: &Replay) -> Outcome<Long> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("long.log");
    progress(&format!("writing a log of {} messages", wanted.messages));
    let messages = write(&path, wanted)?;
    progress("reading and decoding it");
    let started = Instant::now();
    if read(&path)? != messages {
        return Err("not every message can be read".into());
    }
    let floor_seconds = started.elapsed().as_secs_f64();
    progress("making its decisions again");
    let (seconds, resident, decisions) = replayed(&path).await?;
    let bytes = path.metadata()?.len();
    Ok(Long { messages, decisions, bytes, floor_seconds, seconds, resident })
}

/// Agents one after the other, each of which is asked for the time, looks at the clock and says it; how many messages.
fn write(path: &Path, wanted: &Replay) -> Outcome<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut written = 0;
    while written < wanted.messages {
        let count = wanted.agent_messages.min(wanted.messages - written).div_ceil(4);
        for message in turns(&format!("agent-{written}"), written + 1, count).messages() {
            serde_json::to_writer(&mut file, &message)?;
            file.write_all(b"\n")?;
            written = message.sequence;
        }
    }
    file.flush()?;
    Ok(written)
}

/// An agent that is asked for the time so often, in a log in which this is the next sequence.
pub fn turns(name: &str, next: u64, count: u64) -> TestAgent {
    let mut agent = TestAgent::starting_at(name, next);
    for turn in 0..count {
        agent.hears("", &format!("what is the time? I ask for the {turn}. time"));
        let looks = agent.decide(&[call_completion("tools.now")]);
        agent.learns(looks, "\"2026-01-01T00:00:00Z\"");
        agent.decide(&[text_completion("It is midnight, and the year has just begun.")]);
    }
    agent
}

/// Does the work that any reader has to do; returns the number of messages.
fn read(path: &Path) -> Outcome<u64> {
    let mut messages = 0;
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        let message: LogMessage = serde_json::from_slice(&line?)?;
        match log_message::decode_record(&message)? {
            Ok(_) => messages += 1,
            Err(NotUnderstood::Newer(newer)) => return Err(newer.why.into()),
            Err(NotUnderstood::Unreadable(why)) => return Err(why.into()),
        }
    }
    Ok(messages)
}

/// Seconds, the most memory in bytes, and how many decisions came out the same: all, or it is an error.
async fn replayed(path: &Path) -> Outcome<(f64, u64, u64)> {
    let program = StackOptions::bin_dir_of_this_build()?.join("kairo");
    let started = Instant::now();
    let mut command = Command::new(program);
    let command = command.args(["replay", "--json"]).arg(path).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut resident = 0;
    let id = command.id();
    let mut ended = std::pin::pin!(command.wait_with_output());
    let output = loop {
        tokio::select! {
            output = &mut ended => break output?,
            () = time::sleep(LOOK) => {
                resident = id.and_then(|id| cpu::most_resident(id).ok()).unwrap_or_default().max(resident);
            }
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    let text = String::from_utf8(output.stdout)?;
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    let counted = |class: &str| last.pointer(&format!("/counts/{class}")).and_then(Value::as_u64).unwrap_or_default();
    match output.status.success() && counted("same") == counted("decisions") {
        true => Ok((seconds, resident, counted("decisions"))),
        false => Err(format!("decisions of the long log come out otherwise: {last}").into()),
    }
}
