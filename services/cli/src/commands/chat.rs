//! `kairo chat`

use std::{io, process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use tokio::{task::spawn_blocking, time::Instant};

use super::{Session, answer, duration, name};
use crate::{Error, client::NewMessage, exchange::Exchange, terminal};

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
    loop {
        if !session.json {
            terminal::piece("> ")?;
        }
        let Some(text) = spawn_blocking(read_line).await.map_err(io::Error::other)?? else { break };
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

/// A line of standard input without its end; `None` when there are no more.
fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}
