//! `kairo chat`

mod input_completion;

use std::{io, process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use tokio::{task::spawn_blocking, time::Instant};

use super::{
    GatewaySession, duration,
    live_reply::{self, ReplyWait},
    name,
    question_prompt::read_line,
    unsolicited_messages::UnsolicitedMessages,
};
use crate::{Error, client::NewMessage, exchange::Exchange, terminal};

/// Talk to an agent, a line at a time
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kairo chat --agent default\n\nCtrl-D ends it; the agent remembers.\n\n\
    Without --agent, `@name words` and `/command words` speak to another agent from there on. `/` or `@` and Enter, or the\n\
    beginning of a command or a name, lists those there are.\n\n\
    Where the agent asks something, such as whether to go on in another thread or whether it may send a mail, you are\n\
    asked; without a terminal, how to answer is shown instead.")]
pub(super) struct ChatArgs {
    /// Agent to talk to; without it, whoever `@name` or a `/command` named last, and else the default agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// User who talks
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    user: Name,
    /// Longest wait for each reply
    #[arg(long, default_value = "120s", value_parser = duration, value_name = "TIME")]
    timeout: Duration,
}

pub(super) async fn run(arguments: ChatArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let mut unasked = UnsolicitedMessages::follow_from_now(arguments.agent.as_ref(), &arguments.user, session).await?;
    while let Some(text) = next_line(&mut unasked, session.json).await? {
        if text.trim().is_empty() {
            continue;
        }
        if arguments.agent.is_none() && !session.json {
            let offered = input_completion::suggest(text.trim(), session).await?;
            if !offered.is_empty() {
                offered.into_iter().try_for_each(terminal::row)?;
                continue;
            }
        }
        let message = NewMessage {
            user: arguments.user.to_string(),
            text,
            agent: arguments.agent.as_ref().map(Name::to_string),
            message_id: None,
            thread_id: None,
            parts: Vec::new(),
            environment: None,
            state: None,
        };
        let mut exchange = Exchange::begin(&session.client, &message).await?;
        unasked.exclude_turn(exchange.accepted.correlation_id);
        let waiting = ReplyWait {
            deadline: Instant::now() + arguments.timeout,
            show: !session.json,
            user: &arguments.user,
            unasked: Some(&mut unasked),
        };
        let ending = live_reply::wait_for_ending(&mut exchange, waiting, &session.client).await?;
        if session.json {
            terminal::json(&ending)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The next line that is typed, `None` when there are no more. Shows what the agent says by itself meanwhile.
async fn next_line(unasked: &mut UnsolicitedMessages, json: bool) -> Result<Option<String>, Error> {
    let prompt = || if json { Ok(()) } else { terminal::piece("> ") };
    prompt()?;
    let mut line = spawn_blocking(read_line);
    loop {
        tokio::select! {
            line = &mut line => return Ok(line.map_err(io::Error::other)??),
            aside = unasked.next_message() => {
                unasked.print_message(&aside?)?;
                prompt()?;
            }
        }
    }
}
