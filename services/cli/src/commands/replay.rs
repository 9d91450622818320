//! `kairo replay`

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use clap::Args;
use kairo_core::{
    ids::Name,
    log_message,
    vocabulary::{Newer, NotUnderstood, READER},
};
use kairo_mind::replay::{Drift, Outcome, Replay, Replayed};
use kairo_proto::v1::LogMessage;
use serde::Serialize;
use serde_json::json;

use super::{Session, name};
use crate::{Error, agent_log, event_lines::printable, secret_key, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo replay --agent default                     make every decision of the agent again
  kairo replay --agent default --save default.log  and keep its part of the log in a file
  kairo replay default.log                         the same from the file; no gateway is needed

Each decision is made again from the state that the log says it was made in, with the answers that
models gave then, by this build. Nothing is asked and nothing is written. A decision is the same,
reworded (only what people or models read differs) or differs; or it is not replayable, with the
reason. Where a model would be asked something else, the number of the request is named.

A message that a newer build wrote, and this one does not understand, is not passed over: replay stops
before it, says where it is and which version of reader it takes, and reports the decisions up to there.

The status is 0 if all decisions are the same, 1 if not, and 2 if replay stopped at a newer message.";
/// The status where a message takes a newer build.
const STOPPED: u8 = 2;

/// Make an agent's decisions again from the log, and compare
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The agent; its part of the log is read from the gateway, which takes an administrator's key
    #[arg(long, value_parser = name, value_name = "NAME", required_unless_present = "file")]
    agent: Option<Name>,
    /// A file that --save wrote
    #[arg(value_name = "FILE", conflicts_with = "agent")]
    file: Option<PathBuf>,
    /// Keep what was read in this file, one message a line
    #[arg(long, value_name = "FILE", requires = "agent")]
    save: Option<PathBuf>,
}

/// How many decisions came out how.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Counts {
    decisions: usize,
    same: usize,
    reworded: usize,
    differ: usize,
    not_replayable: usize,
    /// Decisions of which some request is another, whatever came of it.
    drifted: usize,
    /// Decisions whose basis the log does not say.
    without_basis: usize,
}

/// Where replay stops: nothing behind can be made again by this build.
#[derive(Debug, Serialize)]
struct Stopped {
    sequence: u64,
    #[serde(rename = "type")]
    type_name: String,
    /// The version of readers that it takes, at the least.
    reader: u32,
    /// The version that this build is.
    reads: u32,
    why: String,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let mut replay = Replay::new(secret_key::find().ok());
    let mut counts = Counts::default();
    let mut stopped = None;
    let take = |message: &LogMessage| -> Result<ControlFlow<()>, Error> {
        if stopped.is_none() {
            match replayed(&mut replay, message)? {
                ControlFlow::Break(at) => stopped = Some(at),
                ControlFlow::Continue(Some(replayed)) => {
                    counts.count(&replayed);
                    show(&replayed, session.json)?;
                }
                ControlFlow::Continue(None) => {}
            }
        }
        Ok(if stopped.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    match (arguments.file, arguments.agent) {
        (Some(file), _) => agent_log::of_file(&file, take)?,
        (None, Some(agent)) => agent_log::of_agent(&session.client, &agent, arguments.save.as_deref(), take).await?,
        (None, None) => return Err(Error::Advice("name an agent with --agent, or a file".to_owned())),
    }
    let states = replay.states();
    match session.json {
        true => terminal::json(&json!({ "counts": counts, "states": states, "stopped": stopped }))?,
        false => {
            let stop = stopped.iter().map(Stopped::line);
            counts.lines().into_iter().chain(stop).try_for_each(terminal::line)?;
        }
    }
    if stopped.is_some() {
        return Ok(ExitCode::from(STOPPED));
    }
    Ok(if counts.all_same() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn replayed(replay: &mut Replay, message: &LogMessage) -> Result<ControlFlow<Stopped, Option<Replayed>>, Error> {
    let at = |error| Error::Advice(format!("message {}: {error}", message.sequence));
    Ok(match log_message::understand(message).map_err(at)? {
        Ok(record) => ControlFlow::Continue(replay.take(record)),
        Err(NotUnderstood::Newer(newer)) => ControlFlow::Break(Stopped::at(message, newer)),
        // Nobody decides on it either.
        Err(NotUnderstood::Unreadable(_)) => {
            replay.pass_over(message.sequence, &message.subject);
            ControlFlow::Continue(None)
        }
    })
}

impl Stopped {
    fn at(message: &LogMessage, Newer { reader, why }: Newer) -> Self {
        let type_name = message.headers.get("ce-type").cloned().unwrap_or_default();
        Self { sequence: message.sequence, type_name, reader, reads: READER, why }
    }

    fn line(&self) -> String {
        let Self { sequence, type_name, reader, reads, why } = self;
        let (type_name, why) = (printable(type_name), printable(why));
        format!(
            "stopped at message {sequence} ({type_name}): {why}. It takes a reader of version {reader}, and this build is one \
             of version {reads}: replay it and what follows with a newer build"
        )
    }
}

/// Those that are the same are counted only.
fn show(replayed: &Replayed, json: bool) -> Result<(), Error> {
    if json {
        return Ok(terminal::json(replayed)?);
    }
    let Replayed { agent, sequence, outcome, drifted, .. } = replayed;
    let what = match outcome {
        Outcome::Same if drifted.is_empty() => return Ok(()),
        Outcome::Same => "same, from other requests".to_owned(),
        Outcome::Reworded { at } => format!("reworded at {at}"),
        Outcome::Differs { at, recorded, made } => {
            format!("differs at {at}: recorded {}, made again {}", printable(recorded), printable(made))
        }
        Outcome::NotReplayable { reason } => format!("not replayable: {reason}"),
    };
    let requests: Vec<String> = drifted.iter().map(told).collect();
    let requests = match requests.as_slice() {
        [] => String::new(),
        told => format!(" (another request: {})", told.join("; ")),
    };
    Ok(terminal::line(format!("{agent}, decision {sequence}: {what}{requests}"))?)
}

/// Such as `2 (tools, facts)`.
fn told(Drift { request, parts }: &Drift) -> String {
    match parts.as_slice() {
        [] => request.to_string(),
        parts => format!("{request} ({})", parts.join(", ")),
    }
}

impl Counts {
    fn count(&mut self, replayed: &Replayed) {
        self.decisions += 1;
        self.drifted += usize::from(!replayed.drifted.is_empty());
        self.without_basis += usize::from(replayed.without_basis);
        *match replayed.outcome {
            Outcome::Same => &mut self.same,
            Outcome::Reworded { .. } => &mut self.reworded,
            Outcome::Differs { .. } => &mut self.differ,
            Outcome::NotReplayable { .. } => &mut self.not_replayable,
        } += 1;
    }

    fn all_same(&self) -> bool {
        self.same == self.decisions && self.drifted == 0
    }

    fn lines(&self) -> Vec<String> {
        let Self { decisions, same, reworded, differ, not_replayable, drifted, without_basis } = self;
        let counted = [
            (same, "the same"),
            (reworded, "reworded"),
            (differ, "differ"),
            (not_replayable, "not replayable"),
            (drifted, "asked something else"),
            (without_basis, "made without a recorded basis; the defaults were assumed"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| **count > 0);
        let lines = counted.map(|(count, what)| format!("  {count} {what}"));
        std::iter::once(format!("{decisions} decisions made again")).chain(lines).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(outcome: Outcome, drifted: Vec<Drift>) -> Replayed {
        let agent = Name::parse("cook").unwrap();
        Replayed { agent, sequence: 7, input_id: String::new(), outcome, drifted, without_basis: false }
    }

    #[test]
    fn only_what_is_the_same_from_the_same_requests_counts_as_the_same() {
        let mut counts = Counts::default();
        counts.count(&replayed(Outcome::Same, Vec::new()));
        assert!(counts.all_same());
        counts.count(&replayed(Outcome::Same, vec![Drift { request: 2, parts: vec!["tools"] }]));
        assert!(!counts.all_same());
        counts.count(&replayed(Outcome::Reworded { at: "events.0".to_owned() }, Vec::new()));
        assert_eq!(
            counts.lines(),
            ["3 decisions made again", "  2 the same", "  1 reworded", "  1 asked something else"]
        );
    }
}
