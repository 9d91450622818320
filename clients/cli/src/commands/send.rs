//! `kairo send`

mod attachments;

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    GatewaySession, duration,
    live_reply::{self, ReplyWait},
    name,
};
use crate::{Error, client::NewMessage, exchange::Exchange, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo send --wait 'What time is it?'
  kairo send --wait '@cook What is for dinner?'    to cook, who also gets the messages after it
  kairo send --wait --chain 'What time is it?'     and everything that happened on the way
  kairo send --wait --attach photo.jpg 'What is this?'
  kairo send --wait --environment @page.json 'What does this page say?'
  kairo send --agent ops --state '{\"door\": \"open\"}'  what is so, instead of words
  kairo send --agent ops --message-id m-17 'Go'    again with the same id, it is still one message

Exit status with --wait:
  0  the agent replied, or asks something: it is shown how to answer
  2  the agent failed, or there is no such agent
  3  no reply in time; it may still come: kairo events --correlation ID";

/// Say something to an agent
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SendArgs {
    /// Text of the message; may be left out where a file is attached or a state is told
    #[arg(required_unless_present_any = ["attach", "state"], default_value = "", hide_default_value = true)]
    text: String,
    /// An image, a piece of audio or a video that belongs to it; may be given several times
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Environment of the message, such as the page that is open: a JSON object, or @FILE
    #[arg(long, value_name = "JSON", value_parser = environment)]
    environment: Option<Value>,
    /// A state, such as a sensor's or that of a page: a JSON object
    #[arg(long, value_parser = object, value_name = "JSON")]
    state: Option<Map<String, Value>>,
    /// Agent to send the message to (default: the one that the text names with @agent or /command at its beginning, else
    /// the one that the user addressed last)
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// User who sends the message
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    user: Name,
    /// The thread it belongs to, instead of the one the agent chooses
    #[arg(long, value_parser = name, value_name = "ID")]
    thread: Option<Name>,
    /// The message's own id; the same id again is the same message
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
    /// Wait for the reply, and show it while it is being written
    #[arg(long)]
    wait: bool,
    /// Afterwards show every event that the message led to; implies --wait
    #[arg(long)]
    chain: bool,
    /// Longest wait for the reply
    #[arg(long, default_value = "120s", value_parser = duration, value_name = "TIME")]
    timeout: Duration,
}

fn environment(text: &str) -> Result<Value, String> {
    let text = match text.strip_prefix('@') {
        Some(file) => fs::read_to_string(file).map_err(|error| format!("{file} cannot be read: {error}"))?,
        None => text.to_owned(),
    };
    object(&text).map(Value::Object)
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("expected a JSON object such as {{\"door\": \"open\"}}: {error}"))
}

pub(super) async fn run(arguments: SendArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let deadline = Instant::now() + arguments.timeout;
    let parts = attachments::store_files(&session.client, &arguments.attach).await?;
    let message = NewMessage {
        user: arguments.user.to_string(),
        text: arguments.text,
        agent: arguments.agent.map(|agent| agent.to_string()),
        message_id: arguments.message_id,
        thread_id: arguments.thread.map(|thread| thread.to_string()),
        parts,
        environment: arguments.environment,
        state: arguments.state,
    };
    if !(arguments.wait || arguments.chain) {
        let accepted = session.client.send(&message).await?;
        match session.json {
            true => terminal::json(&accepted)?,
            false => terminal::line(format!("accepted as event {} at {}", accepted.event_id, accepted.sequence))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut exchange = Exchange::begin(&session.client, &message).await?;
    let waiting = ReplyWait { deadline, show: !session.json, user: &arguments.user, unasked: None };
    let ending = live_reply::wait_for_ending(&mut exchange, waiting, &session.client).await?;
    if session.json {
        let events = arguments.chain.then_some(&exchange.events);
        terminal::json(&json!({"accepted": exchange.accepted, "ending": ending, "events": events}))?;
    } else if arguments.chain {
        terminal::line("")?;
        live_reply::print_events(&exchange)?;
    }
    Ok(live_reply::exit_status(ending.as_ref()))
}
