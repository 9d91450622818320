//! `kairo chat`

use std::{io, process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use serde_json::{Value, json};
use tokio::{task::spawn_blocking, time::Instant};

use super::{Session, answer, duration, name, status::Status};
use crate::{
    Error,
    chain::printable,
    client::{ClientError, EventFilter, Follow, NewMessage, Told},
    exchange::Exchange,
    terminal,
    turn::is_unasked,
};

/// Talk to an agent, a line at a time
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kairo chat --agent default\n\nCtrl-D ends it; the agent remembers.")]
pub(super) struct Arguments {
    /// Whom to talk to
    #[arg(long, default_value = "default", value_parser = name, value_name = "NAME")]
    agent: Name,
    /// Who talks
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    user: Name,
    /// How long to wait for each reply
    #[arg(long, default_value = "120s", value_parser = duration, value_name = "TIME")]
    timeout: Duration,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let mut unasked = Unasked::from_now_on(&arguments, session).await?;
    while let Some(text) = next_line(&mut unasked, session.json).await? {
        if text.trim().is_empty() {
            continue;
        }
        let message = NewMessage {
            user: arguments.user.to_string(),
            text,
            agent: Some(arguments.agent.to_string()),
            message_id: None,
            thread_id: None,
        };
        let mut exchange = Exchange::begin(&session.client, &message).await?;
        let ending = answer::wait(&mut exchange, Instant::now() + arguments.timeout, !session.json).await?;
        if session.json {
            terminal::json(&ending)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The next line that is typed, `None` when there are no more. Shows what the agent says by itself meanwhile.
async fn next_line(unasked: &mut Unasked, json: bool) -> Result<Option<String>, Error> {
    let prompt = || if json { Ok(()) } else { terminal::piece("> ") };
    prompt()?;
    let mut line = spawn_blocking(read_line);
    loop {
        tokio::select! {
            line = &mut line => return Ok(line.map_err(io::Error::other)??),
            words = unasked.next() => {
                let words = words?;
                if json {
                    terminal::json(&json!({"outcome": "said", "text": words}))?;
                } else {
                    terminal::line(format!("\n{}", printable(&words)))?;
                    prompt()?;
                }
            }
        }
    }
}

/// What the agent says to the user without having been asked, such as that a process has ended.
struct Unasked {
    follow: Follow,
    user: String,
}

impl Unasked {
    async fn from_now_on(arguments: &Arguments, session: &Session) -> Result<Self, Error> {
        let status: Status = session.client.get("v1/status", &[]).await?;
        let after = Some(status.stream.last_sequence);
        let filter = EventFilter { agent: Some(arguments.agent.clone()), after, ..EventFilter::default() };
        Ok(Self { follow: session.client.follow(filter, false), user: arguments.user.to_string() })
    }

    /// Waits for the next words. May be given up at any time.
    async fn next(&mut self) -> Result<String, ClientError> {
        loop {
            if let Told::Event(event) = self.follow.next().await?
                && is_unasked(&event)
                && event.payload.get("user").and_then(Value::as_str) == Some(&self.user)
            {
                return Ok(event.text().to_owned());
            }
        }
    }
}

/// A line of standard input without its end; `None` when there are no more.
fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}
