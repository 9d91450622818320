//! `kairo state`

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use kairo_replay::{
    expression::{Expression, ExpressionOutcome},
    state_difference::{StateDifference, find_differences},
    timeline::{AppliedMessage, Requests, Timeline},
    wire,
};
use serde_json::{Value, json};

use super::{GatewaySession, archive::ArchiveOption, name};
use crate::{
    Error,
    agent_log::{self, LogSource},
    event_lines::printable,
    secret_key, terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo state default                               what the agent knows now
  kairo state default --at 120                      and behind message 120 of the log
  kairo state default --at 120 --diff 131           what has changed between the two
  kairo state default --at 131 --request            what models were asked for the decision at 131
  kairo state default --at 131 --request --curl     and the commands that ask them the same
  kairo state default --first 'size(in_flight) > 1' behind which message that became true
  kairo state default --file default.log --at 120   from a file that `kairo replay --save` wrote
  kairo state default --archive /srv/archive        from an archive, and the log that goes on behind it

The agent's part of the log is read and folded again here, which changes nothing. An expression is in
CEL; its variables are the fields of the state, as they are shown. The status is 1 where nothing is
found: no state there, no decision, or no message behind which the expression holds.";

/// Show what an agent knew at any place of its log, and what its models were asked
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StateArgs {
    /// The agent; its part of the log is read from the gateway, which takes an administrator's key
    #[arg(value_parser = name, value_name = "AGENT")]
    agent: Name,
    /// Read the log from a file that `kairo replay --save` or `kairo incident export` wrote
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveOption,
    /// Behind this message of the log; where it is none of the agent's, behind the last one before it
    #[arg(long, value_name = "SEQUENCE")]
    at: Option<u64>,
    /// Show in what the state behind this message differs
    #[arg(long, value_name = "SEQUENCE", requires = "at")]
    diff: Option<u64>,
    /// Show what models were asked for the decision at that place, made again from the log
    #[arg(long, requires = "at", conflicts_with_all = ["diff", "first"])]
    request: bool,
    /// Show them as commands for a shell, which take MODEL_URL (up to and including /v1) and MODEL_KEY from its environment
    #[arg(long, requires = "request")]
    curl: bool,
    /// Find the first message behind which this expression holds
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "diff")]
    first: Option<String>,
}

pub(super) async fn run(arguments: StateArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let StateArgs { agent, file, archive, at, diff, request, first, curl } = &arguments;
    let first = first.as_deref().map(Expression::parse).transpose();
    let first = first.map_err(|error| Error::Advice(format!("--first: {error}")))?;
    let wanted = if *request { at.unwrap_or_default() } else { 0 };
    let mut looking = StateSearch {
        timeline: Timeline::new(agent.clone(), wanted, secret_key::find().ok()),
        places: at.iter().chain(diff).copied().collect(),
        first,
        seen: Vec::new(),
        found: None,
        unclear: None,
    };
    looking.places.sort_unstable();
    let take = |message: &LogMessage| looking.apply_message(message);
    let source = LogSource::file_or_agents(file.as_deref(), &session.client, std::slice::from_ref(agent), None);
    let source = source.after_archive(archive.folder());
    source.read(take).await?;
    looking.finish();
    match &arguments {
        StateArgs { first: Some(_), .. } => looking.print_first_match(session.json),
        StateArgs { request: true, .. } => print_requests(looking.timeline.requests(), wanted, *curl, session.json),
        StateArgs { diff: Some(to), at: Some(from), .. } => looking.print_difference((*from, *to), session.json),
        _ => looking.print_state(agent, session.json),
    }
}

/// Reading a log as far as is needed.
struct StateSearch {
    timeline: Timeline,
    /// The sequences at which the state is wanted, in order; empty for the end.
    places: Vec<u64>,
    first: Option<Expression>,
    /// The states behind those places.
    seen: Vec<(u64, Value)>,
    found: Option<Value>,
    /// The reason why the expression was last neither true nor false.
    unclear: Option<String>,
}

impl StateSearch {
    fn apply_message(&mut self, message: &LogMessage) -> agent_log::ReadFlow {
        while let Some(place) = self.places.first().copied().filter(|place| *place < message.sequence) {
            self.record_state(place);
        }
        if self.is_complete() {
            return Ok(ControlFlow::Break(()));
        }
        let taken = self.timeline.apply(message).map_err(|broken| Error::Advice(broken.to_string()))?;
        if let (AppliedMessage::Own, Some(first)) = (taken, &self.first) {
            let state = self.timeline.state();
            match first.evaluate_on(&state) {
                ExpressionOutcome::Holds => self.found = Some(state),
                ExpressionOutcome::DoesNot => self.unclear = None,
                ExpressionOutcome::Unclear(why) => self.unclear = Some(why),
            }
        }
        Ok(if self.is_complete() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The log is at its end: the places that are left are there, and so is the end itself where none was named.
    fn finish(&mut self) {
        while let Some(place) = self.places.first().copied() {
            self.record_state(place);
        }
        if self.seen.is_empty() {
            self.record_state(self.timeline.last_own());
        }
    }

    fn record_state(&mut self, place: u64) {
        self.places.retain(|it| *it != place);
        self.seen.push((place, self.timeline.state()));
    }

    fn is_complete(&self) -> bool {
        self.found.is_some() || self.places.is_empty() && !self.seen.is_empty()
    }

    fn print_first_match(&self, json: bool) -> Result<ExitCode, Error> {
        let Some(state) = &self.found else {
            let why = self.unclear.as_ref().map(|why| format!("; of the last state it said: {}", printable(why)));
            let text = format!("it holds behind no message{}", why.unwrap_or_default());
            return print_not_found(&text, json);
        };
        match json {
            true => terminal::json(&json!({ "at": state.get("at"), "type": state.get("type") }))?,
            false => {
                let text = |name: &str| state.get(name).map_or_else(String::new, |value| value.to_string());
                let named = state.get("type").and_then(Value::as_str).unwrap_or_default();
                terminal::line(format!("message {} ({})", text("at"), printable(named)))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print_state(&self, agent: &Name, json: bool) -> Result<ExitCode, Error> {
        match self.seen.last() {
            Some((_, state)) if state.get("at") != Some(&json!(0)) => {
                print_value(state, json)?;
                Ok(ExitCode::SUCCESS)
            }
            _ => print_not_found(&format!("the log has nothing of the agent {agent} up to there"), json),
        }
    }

    fn print_difference(&self, (from, to): (u64, u64), json: bool) -> Result<ExitCode, Error> {
        let at = |place: u64| self.seen.iter().find(|(it, _)| *it == place).map_or(&Value::Null, |(_, state)| state);
        let found = find_differences(at(from), at(to));
        if json {
            terminal::json(&json!({ "differences": found }))?;
            return Ok(ExitCode::SUCCESS);
        }
        found.iter().flat_map(format_difference).try_for_each(terminal::line)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn print_not_found(text: &str, json: bool) -> Result<ExitCode, Error> {
    match json {
        true => terminal::json(&json!({ "found": null, "reason": text }))?,
        false => terminal::line(text)?,
    }
    Ok(ExitCode::FAILURE)
}

/// For people in many lines, for programs in one.
fn print_value(value: &Value, json: bool) -> Result<(), Error> {
    match json {
        true => terminal::json(value)?,
        false => terminal::line(printable_json(value))?,
    }
    Ok(())
}

/// Formats a value that others wrote, so that nothing in it moves the cursor of a terminal.
fn printable_json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.lines().map(|line| printable(line).to_string()).collect::<Vec<_>>().join("\n")
}

fn format_difference(difference: &StateDifference) -> Vec<String> {
    let StateDifference { path, before, after } = difference;
    let line = |sign: char, value: &Value| format!("{sign} {}: {}", printable(path), printable(&value.to_string()));
    let before = before.as_ref().map(|it| line('-', it));
    let after = after.as_ref().map(|it| line('+', it));
    before.into_iter().chain(after).collect()
}

fn print_requests(requests: Option<&Requests>, at: u64, curl: bool, json: bool) -> Result<ExitCode, Error> {
    let asked = match requests {
        None => return print_not_found(&format!("message {at} is no decision of this agent"), json),
        Some(Err(why)) => return print_not_found(&format!("the decision cannot be made again: {why}"), json),
        Some(Ok(asked)) => asked,
    };
    if curl {
        for command in asked.iter().map(wire::curl) {
            match json {
                true => terminal::json(&json!({ "command": command }))?,
                false => terminal::line(command)?,
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    asked.iter().try_for_each(|asked| print_value(&wire::describe_call(asked), json))?;
    Ok(ExitCode::SUCCESS)
}
