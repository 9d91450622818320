//! The commands, a file each.

mod actions;
mod agents;
mod answer;
mod approvals;
mod approve;
mod archive;
mod ask;
mod backup;
mod caps;
mod chains;
mod chat;
mod checkpoint;
mod choose;
mod console;
mod conversation;
mod dead_letters;
mod dev;
mod diff;
mod events;
mod example;
mod export;
mod fleet;
mod forget;
mod fork;
mod id;
mod inbox;
mod incident;
mod inner_state;
mod keys;
mod mcp;
mod memories;
mod nkeys;
mod orders;
mod privacy;
mod processes;
mod projections;
mod provision;
mod question;
mod recent;
mod replay;
mod restore;
mod search;
mod send;
mod state;
mod status;
mod submodules;
mod task_bounds;
mod tasks;
mod teams;
mod thoughts;
mod threads;
mod tool_servers;
mod tools;
mod trim;
mod turn;
mod unasked;
mod usage;
mod verify;
mod waits;
mod watch;
mod whatif;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use jiff::SignedDuration;
use kairo_core::ids::Name;
use kairo_proto::words::Verdict;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Error, client::Client, endpoint, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo dev                              start everything on this machine
  kairo example morning                  play an example: what the user says beside what the agent does
  kairo send --wait 'What time is it?'   say something and wait for the reply
  kairo watch --agent default            watch one agent: what it says, decides and runs
  kairo events --follow                  watch everything that happens
  kairo status                           who is there, and is anything behind?
  kairo console                          look at everything in the browser

The gateway is found by --url or KAIRO_URL, else by the `kairo dev` that was started in this
folder or one above it, else at http://127.0.0.1:7420. It is given the API key in KAIRO_API_KEY or in the
file that --key-file names; that `kairo dev` its administrator's key, which lies in its data folder.";

/// Runs and watches LLM agents that are event-sourced services over NATS JetStream.
#[derive(Debug, Parser)]
#[command(name = "kairo", version, after_help = EXAMPLES, propagate_version = true)]
pub struct Arguments {
    /// The gateway to speak to
    #[arg(long, global = true, env = "KAIRO_URL", value_name = "URL")]
    url: Option<String>,
    /// The file with the API key for the gateway, if not in KAIRO_API_KEY
    #[arg(long, global = true, env = "KAIRO_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Make lists cover the log at least up to this sequence, which a command was answered with
    #[arg(long, global = true, value_name = "SEQUENCE")]
    at_least: Option<u64>,
    /// Answer in JSON, for programs
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Arguments),
    Example(example::Arguments),
    Send(send::Arguments),
    Chat(chat::Arguments),
    Events(events::Arguments),
    Agents(agents::Arguments),
    Conversation(conversation::Arguments),
    Actions(actions::Arguments),
    Processes(processes::Arguments),
    Memories(memories::Arguments),
    InnerState(inner_state::Arguments),
    Search(search::Arguments),
    Threads(threads::Arguments),
    Turn(turn::Arguments),
    Tasks(tasks::Arguments),
    Teams(teams::Arguments),
    Submodules(submodules::Arguments),
    Thoughts(thoughts::Arguments),
    Inbox(inbox::Arguments),
    Answer(question::Arguments),
    Approvals(approvals::Arguments),
    Chains(chains::Arguments),
    Choose(choose::Arguments),
    /// Consent to a call that an agent asked about, and wait for its result
    Approve(approve::Arguments),
    /// Refuse a call that an agent asked about
    Reject(approve::Arguments),
    Watch(watch::Arguments),
    Console(console::Arguments),
    Usage(usage::Arguments),
    Status(status::Arguments),
    Tools(tools::Arguments),
    Fleet(fleet::Arguments),
    Export(export::Arguments),
    Forget(forget::Arguments),
    Privacy(privacy::Arguments),
    Mcp(mcp::Arguments),
    Keys(keys::Arguments),
    DeadLetters(dead_letters::Arguments),
    Projections(projections::Arguments),
    Provision(provision::Arguments),
    Nkeys(nkeys::Arguments),
    Backup(backup::Arguments),
    Archive(archive::Arguments),
    Trim(trim::Arguments),
    Restore(restore::Arguments),
    Replay(replay::Arguments),
    Diff(diff::Arguments),
    Whatif(whatif::Arguments),
    Incident(incident::Arguments),
    Fork(fork::Arguments),
    State(state::Arguments),
    Verify(verify::Arguments),
    Checkpoint(checkpoint::Arguments),
}

/// The context of a command that speaks to a gateway.
struct Session {
    client: Client,
    json: bool,
}

impl Arguments {
    /// Does what the command line says; the status is the command's own.
    pub async fn run(self) -> Result<ExitCode, Error> {
        let json = self.json;
        match self.command {
            Command::Dev(arguments) => return dev::run(arguments, json).await,
            Command::Example(arguments) => return example::run(arguments, json).await,
            Command::Provision(arguments) => return provision::run(arguments, json).await,
            Command::Nkeys(arguments) => return nkeys::run(&arguments, json),
            Command::Backup(arguments) => return backup::run(arguments, json).await,
            Command::Archive(arguments) => return archive::run(arguments, json).await,
            Command::Restore(arguments) => return restore::run(arguments, json).await,
            Command::Diff(arguments) => return diff::run(&arguments, json),
            _ => {}
        }
        let here = || std::env::current_dir().map_err(Error::file("look at", "."));
        let url = match self.url.filter(|url| !url.is_empty()) {
            Some(url) => url,
            None => endpoint::discover(&here()?),
        };
        let client = Client::new(&url)?.at_least(self.at_least);
        let own = keys::own(self.key_file.as_deref().filter(|file| !file.as_os_str().is_empty()))?;
        let client = match own.or_else(|| endpoint::key_of(&here().ok()?, &url)) {
            Some(key) => client.with_key(key),
            None => client,
        };
        let session = Session { client, json };
        match self.command {
            Command::Dev(_)
            | Command::Example(_)
            | Command::Provision(_)
            | Command::Nkeys(_)
            | Command::Backup(_)
            | Command::Archive(_)
            | Command::Restore(_)
            | Command::Diff(_) => Ok(ExitCode::SUCCESS),
            Command::Send(arguments) => send::run(arguments, &session).await,
            Command::Chat(arguments) => chat::run(arguments, &session).await,
            Command::Events(arguments) => events::run(arguments, &session).await,
            Command::Agents(arguments) => agents::run(arguments, &session).await,
            Command::Conversation(arguments) => conversation::run(arguments, &session).await,
            Command::Actions(arguments) => actions::run(arguments, &session).await,
            Command::Processes(arguments) => processes::run(arguments, &session).await,
            Command::Memories(arguments) => memories::run(arguments, &session).await,
            Command::InnerState(arguments) => inner_state::run(arguments, &session).await,
            Command::Search(arguments) => search::run(arguments, &session).await,
            Command::Threads(arguments) => threads::run(arguments, &session).await,
            Command::Turn(arguments) => turn::run(arguments, &session).await,
            Command::Tasks(arguments) => tasks::run(arguments, &session).await,
            Command::Teams(arguments) => teams::run(arguments, &session).await,
            Command::Submodules(arguments) => submodules::run(arguments, &session).await,
            Command::Thoughts(arguments) => thoughts::run(arguments, &session).await,
            Command::Inbox(arguments) => inbox::run(arguments, &session).await,
            Command::Answer(arguments) => question::run(arguments, &session).await,
            Command::Approvals(arguments) => approvals::run(arguments, &session).await,
            Command::Chains(arguments) => chains::run(arguments, &session).await,
            Command::Choose(arguments) => choose::run(arguments, &session).await,
            Command::Approve(arguments) => approve::run(arguments, Verdict::Approved, &session).await,
            Command::Reject(arguments) => approve::run(arguments, Verdict::Rejected, &session).await,
            Command::Watch(arguments) => watch::run(arguments, &session).await,
            Command::Console(arguments) => console::run(&arguments, &session).await,
            Command::Keys(arguments) => keys::run(arguments, &session).await,
            Command::Usage(arguments) => usage::run(arguments, &session).await,
            Command::Status(arguments) => status::run(arguments, &session).await,
            Command::Tools(arguments) => tools::run(arguments, &session).await,
            Command::Fleet(arguments) => fleet::run(arguments, &session).await,
            Command::Export(arguments) => export::run(arguments, &session).await,
            Command::Forget(arguments) => forget::run(arguments, &session).await,
            Command::Privacy(arguments) => privacy::run(&arguments, &session).await,
            Command::Mcp(arguments) => mcp::run(arguments, &session).await,
            Command::Trim(arguments) => trim::run(arguments, &session).await,
            Command::DeadLetters(arguments) => dead_letters::run(arguments, &session).await,
            Command::Projections(arguments) => projections::run(arguments, &session).await,
            Command::Replay(arguments) => replay::run(arguments, &session).await,
            Command::Whatif(arguments) => whatif::run(arguments, &session).await,
            Command::Incident(arguments) => incident::run(arguments, &session).await,
            Command::Fork(arguments) => fork::run(arguments, &session).await,
            Command::State(arguments) => state::run(arguments, &session).await,
            Command::Verify(arguments) => verify::run(arguments, &session).await,
            Command::Checkpoint(arguments) => checkpoint::run(arguments, &session).await,
        }
    }
}

impl Session {
    /// GET for a command that shows what it gets: with `--json` as it is, which leaves nothing to do.
    async fn ask<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<Option<T>, Error> {
        let answer: Value = self.client.get(path, query).await?;
        if self.json {
            terminal::json(&answer)?;
            return Ok(None);
        }
        self.read(answer).map(Some)
    }

    fn read<T: DeserializeOwned>(&self, answer: Value) -> Result<T, Error> {
        Ok(serde_json::from_value(answer).map_err(|error| self.client.unreadable(error))?)
    }

    /// Returns a field of an answer; fails if the answer lacks it.
    fn needed<T>(&self, field: &str, value: Option<T>) -> Result<T, Error> {
        Ok(value.ok_or_else(|| self.client.unreadable(format!("missing field `{field}`")))?)
    }
}

/// An agent, a user or a thread, for clap.
fn name(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(|error| error.to_string())
}

/// A length of time such as `90s`, `2m` or `1h 30m`, for clap.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a length of time such as 90s, 2m or 1h30m".to_owned();
    let duration: SignedDuration = text.parse().map_err(|_| expected())?;
    Duration::try_from(duration).map_err(|_| expected())
}

/// Parses a length of time by which a clock is moved, for clap.
fn ahead(text: &str) -> Result<SignedDuration, String> {
    duration(text).and_then(|duration| SignedDuration::try_from(duration).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        assert_eq!(duration("120s"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5_400)));
        assert!(duration("-1s").is_err() && duration("12").is_err());
    }
}
