//! The commands, a file each.

mod actions;
mod agents;
mod approvals;
mod approve;
mod archive;
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
mod event_lookup;
mod events;
mod example;
mod export;
mod fleet;
mod forget;
mod fork;
mod id_prefix;
mod inbox;
mod incident;
mod inner_state;
mod keys;
mod live_reply;
mod mcp;
mod mcp_question;
mod memories;
mod nkeys;
mod orders;
mod privacy;
mod processes;
mod projections;
mod provision;
mod question_prompt;
mod replay;
mod restore;
mod search;
mod send;
mod state;
mod status;
mod submodules;
mod task_bounds;
mod task_queueing;
mod tasks;
mod teams;
mod thoughts;
mod threads;
mod tool_servers;
mod tools;
mod trim;
mod turn;
mod unsolicited_messages;
mod usage;
mod verify;
mod waits;
mod watch;
mod whatif;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use jiff::SignedDuration;
use kairo_core::ids::Name;
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
pub struct CliArgs {
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
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Dev(dev::DevArgs),
    Example(example::ExampleArgs),
    Send(send::SendArgs),
    Chat(chat::ChatArgs),
    Events(events::EventsArgs),
    Agents(agents::AgentsArgs),
    Conversation(conversation::ConversationArgs),
    Actions(actions::ActionsArgs),
    Processes(processes::ProcessesArgs),
    Memories(memories::MemoriesArgs),
    InnerState(inner_state::InnerStateArgs),
    Search(search::SearchArgs),
    Threads(threads::ThreadsArgs),
    Turn(turn::TurnArgs),
    Tasks(tasks::TasksArgs),
    Teams(teams::TeamsArgs),
    Submodules(submodules::SubmodulesArgs),
    Thoughts(thoughts::ThoughtsArgs),
    Inbox(inbox::InboxArgs),
    Answer(mcp_question::AnswerArgs),
    Approvals(approvals::ApprovalsArgs),
    Chains(chains::ChainsArgs),
    Choose(choose::ChooseArgs),
    /// Consent to a call that an agent asked about, and wait for its result
    Approve(approve::ApproveArgs),
    /// Refuse a call that an agent asked about
    Reject(approve::RejectArgs),
    Watch(watch::WatchArgs),
    Console(console::ConsoleArgs),
    Usage(usage::UsageArgs),
    Status(status::StatusArgs),
    Tools(tools::ToolsArgs),
    Fleet(fleet::FleetArgs),
    Export(export::ExportArgs),
    Forget(forget::ForgetArgs),
    Privacy(privacy::PrivacyArgs),
    Mcp(mcp::McpArgs),
    Keys(keys::KeysArgs),
    DeadLetters(dead_letters::DeadLettersArgs),
    Projections(projections::ProjectionsArgs),
    Provision(provision::ProvisionArgs),
    Nkeys(nkeys::NkeysArgs),
    Backup(backup::BackupArgs),
    Archive(archive::ArchiveArgs),
    Trim(trim::TrimArgs),
    Restore(restore::RestoreArgs),
    Replay(replay::ReplayArgs),
    Diff(diff::DiffArgs),
    Whatif(whatif::WhatifArgs),
    Incident(incident::IncidentArgs),
    Fork(fork::ForkArgs),
    State(state::StateArgs),
    Verify(verify::VerifyArgs),
    Checkpoint(checkpoint::CheckpointArgs),
}

/// The context of a command that speaks to a gateway.
struct GatewaySession {
    client: Client,
    json: bool,
}

impl CliArgs {
    /// Does what the command line says; the status is the command's own.
    pub async fn run(self) -> Result<ExitCode, Error> {
        let json = self.json;
        match self.command {
            CliCommand::Dev(arguments) => return dev::run(arguments, json).await,
            CliCommand::Example(arguments) => return example::run(arguments, json).await,
            CliCommand::Provision(arguments) => return provision::run(arguments, json).await,
            CliCommand::Nkeys(arguments) => return nkeys::run(&arguments, json),
            CliCommand::Backup(arguments) => return backup::run(arguments, json).await,
            CliCommand::Archive(arguments) => return archive::run(arguments, json).await,
            CliCommand::Restore(arguments) => return restore::run(arguments, json).await,
            CliCommand::Diff(arguments) => return diff::run(&arguments, json),
            _ => {}
        }
        let here = || std::env::current_dir().map_err(Error::file("look at", "."));
        let url = match self.url.filter(|url| !url.is_empty()) {
            Some(url) => url,
            None => endpoint::discover(&here()?),
        };
        let client = Client::new(&url)?.with_at_least(self.at_least);
        let own = keys::load_api_key(self.key_file.as_deref().filter(|file| !file.as_os_str().is_empty()))?;
        let client = match own.or_else(|| endpoint::admin_key_for(&here().ok()?, &url)) {
            Some(key) => client.with_key(key),
            None => client,
        };
        let session = GatewaySession { client, json };
        match self.command {
            CliCommand::Dev(_)
            | CliCommand::Example(_)
            | CliCommand::Provision(_)
            | CliCommand::Nkeys(_)
            | CliCommand::Backup(_)
            | CliCommand::Archive(_)
            | CliCommand::Restore(_)
            | CliCommand::Diff(_) => Ok(ExitCode::SUCCESS),
            CliCommand::Send(arguments) => send::run(arguments, &session).await,
            CliCommand::Chat(arguments) => chat::run(arguments, &session).await,
            CliCommand::Events(arguments) => events::run(arguments, &session).await,
            CliCommand::Agents(arguments) => agents::run(arguments, &session).await,
            CliCommand::Conversation(arguments) => conversation::run(arguments, &session).await,
            CliCommand::Actions(arguments) => actions::run(arguments, &session).await,
            CliCommand::Processes(arguments) => processes::run(arguments, &session).await,
            CliCommand::Memories(arguments) => memories::run(arguments, &session).await,
            CliCommand::InnerState(arguments) => inner_state::run(arguments, &session).await,
            CliCommand::Search(arguments) => search::run(arguments, &session).await,
            CliCommand::Threads(arguments) => threads::run(arguments, &session).await,
            CliCommand::Turn(arguments) => turn::run(arguments, &session).await,
            CliCommand::Tasks(arguments) => tasks::run(arguments, &session).await,
            CliCommand::Teams(arguments) => teams::run(arguments, &session).await,
            CliCommand::Submodules(arguments) => submodules::run(arguments, &session).await,
            CliCommand::Thoughts(arguments) => thoughts::run(arguments, &session).await,
            CliCommand::Inbox(arguments) => inbox::run(arguments, &session).await,
            CliCommand::Answer(arguments) => mcp_question::run(arguments, &session).await,
            CliCommand::Approvals(arguments) => approvals::run(arguments, &session).await,
            CliCommand::Chains(arguments) => chains::run(arguments, &session).await,
            CliCommand::Choose(arguments) => choose::run(arguments, &session).await,
            CliCommand::Approve(arguments) => approve::approve(arguments, &session).await,
            CliCommand::Reject(arguments) => approve::reject(arguments, &session).await,
            CliCommand::Watch(arguments) => watch::run(arguments, &session).await,
            CliCommand::Console(arguments) => console::run(&arguments, &session).await,
            CliCommand::Keys(arguments) => keys::run(arguments, &session).await,
            CliCommand::Usage(arguments) => usage::run(arguments, &session).await,
            CliCommand::Status(arguments) => status::run(arguments, &session).await,
            CliCommand::Tools(arguments) => tools::run(arguments, &session).await,
            CliCommand::Fleet(arguments) => fleet::run(arguments, &session).await,
            CliCommand::Export(arguments) => export::run(arguments, &session).await,
            CliCommand::Forget(arguments) => forget::run(arguments, &session).await,
            CliCommand::Privacy(arguments) => privacy::run(&arguments, &session).await,
            CliCommand::Mcp(arguments) => mcp::run(arguments, &session).await,
            CliCommand::Trim(arguments) => trim::run(arguments, &session).await,
            CliCommand::DeadLetters(arguments) => dead_letters::run(arguments, &session).await,
            CliCommand::Projections(arguments) => projections::run(arguments, &session).await,
            CliCommand::Replay(arguments) => replay::run(arguments, &session).await,
            CliCommand::Whatif(arguments) => whatif::run(arguments, &session).await,
            CliCommand::Incident(arguments) => incident::run(arguments, &session).await,
            CliCommand::Fork(arguments) => fork::run(arguments, &session).await,
            CliCommand::State(arguments) => state::run(arguments, &session).await,
            CliCommand::Verify(arguments) => verify::run(arguments, &session).await,
            CliCommand::Checkpoint(arguments) => checkpoint::run(arguments, &session).await,
        }
    }
}

impl GatewaySession {
    /// GET for a command that shows what it gets: with `--json` as it is, which leaves nothing to do.
    async fn get_or_print_json<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Option<T>, Error> {
        let answer: Value = self.client.get(path, query).await?;
        if self.json {
            terminal::json(&answer)?;
            return Ok(None);
        }
        self.parse_answer(answer).map(Some)
    }

    fn parse_answer<T: DeserializeOwned>(&self, answer: Value) -> Result<T, Error> {
        Ok(serde_json::from_value(answer).map_err(|error| self.client.unreadable(error))?)
    }

    /// Returns a field of an answer; fails if the answer lacks it.
    fn require_field<T>(&self, field: &str, value: Option<T>) -> Result<T, Error> {
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
fn signed_duration(text: &str) -> Result<SignedDuration, String> {
    duration(text).and_then(|duration| SignedDuration::try_from(duration).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CliArgs::command().debug_assert();
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        assert_eq!(duration("120s"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5_400)));
        assert!(duration("-1s").is_err() && duration("12").is_err());
    }
}
