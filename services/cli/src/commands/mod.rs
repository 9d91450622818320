//! The commands, a file each.

mod actions;
mod agents;
mod answer;
mod chat;
mod conversation;
mod dead_letters;
mod dev;
mod events;
mod id;
mod orders;
mod processes;
mod projections;
mod send;
mod status;
mod watch;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use jiff::SignedDuration;
use kairo_core::ids::Name;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Error,
    client::{Client, ClientError},
    endpoint, terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo dev                              start everything on this machine
  kairo send --wait 'What time is it?'   say something and wait for the reply
  kairo watch --agent default            watch one agent: what it says, decides and runs
  kairo events --follow                  watch everything that happens
  kairo status                           who is there, and is anything behind?

The gateway is found by --url or KAIRO_URL, else by the `kairo dev` that was started in this
folder or one above it, else at http://127.0.0.1:7420.";

/// Runs and watches LLM agents that are event-sourced services over NATS JetStream.
#[derive(Debug, Parser)]
#[command(name = "kairo", version, after_help = EXAMPLES, propagate_version = true)]
pub struct Arguments {
    /// The gateway to speak to
    #[arg(long, global = true, env = "KAIRO_URL", value_name = "URL")]
    url: Option<String>,
    /// Answer in JSON, for programs
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Arguments),
    Send(send::Arguments),
    Chat(chat::Arguments),
    Events(events::Arguments),
    Agents(agents::Arguments),
    Conversation(conversation::Arguments),
    Actions(actions::Arguments),
    Processes(processes::Arguments),
    Watch(watch::Arguments),
    Status(status::Arguments),
    DeadLetters(dead_letters::Arguments),
    Projections(projections::Arguments),
}

/// What every command that speaks to a gateway works with.
struct Session {
    client: Client,
    json: bool,
}

impl Arguments {
    /// Does what the command line says; the status is the command's own.
    pub async fn run(self) -> Result<ExitCode, Error> {
        let json = self.json;
        if let Command::Dev(arguments) = self.command {
            return dev::run(arguments, json).await;
        }
        let url = match self.url.filter(|url| !url.is_empty()) {
            Some(url) => url,
            None => endpoint::discover(&std::env::current_dir().map_err(Error::file("look at", "."))?),
        };
        let session = Session { client: Client::new(&url)?, json };
        match self.command {
            Command::Dev(_) => Ok(ExitCode::SUCCESS),
            Command::Send(arguments) => send::run(arguments, &session).await,
            Command::Chat(arguments) => chat::run(arguments, &session).await,
            Command::Events(arguments) => events::run(arguments, &session).await,
            Command::Agents(arguments) => agents::run(arguments, &session).await,
            Command::Conversation(arguments) => conversation::run(arguments, &session).await,
            Command::Actions(arguments) => actions::run(arguments, &session).await,
            Command::Processes(arguments) => processes::run(arguments, &session).await,
            Command::Watch(arguments) => watch::run(arguments, &session).await,
            Command::Status(arguments) => status::run(arguments, &session).await,
            Command::DeadLetters(arguments) => dead_letters::run(arguments, &session).await,
            Command::Projections(arguments) => projections::run(arguments, &session).await,
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
        let unreadable = |error: serde_json::Error| ClientError::Answer {
            url: self.client.url().to_owned(),
            reason: error.to_string(),
        };
        Ok(serde_json::from_value(answer).map_err(unreadable)?)
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
