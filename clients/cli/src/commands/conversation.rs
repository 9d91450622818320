//! `kairo conversation`

mod export;
mod import;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use kairo_core::{ids::Name, media};
use kairo_proto::v1::{GetConversationResponse, MessageRow, Part};
use kairo_proto::words::MessageRole;
use serde_json::Value;

use super::{GatewaySession, name};
use crate::{Error, event_lines::printable, rows, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo conversation default --user you
  kairo conversation export default --user you -o talk.json
  kairo conversation import talk.json --agent other";

/// Show what an agent and its users said to each other, or take it elsewhere
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct ConversationArgs {
    #[command(subcommand)]
    command: Option<ConversationCommand>,
    /// The agent
    #[arg(value_parser = name, default_value = "default")]
    agent: Name,
    /// Only with this user
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Only so many of the newest
    #[arg(long, value_name = "N")]
    latest: Option<u64>,
}

#[derive(Debug, Subcommand)]
enum ConversationCommand {
    Export(export::ConversationExportArgs),
    Import(import::ConversationImportArgs),
}

pub(super) async fn run(arguments: ConversationArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        Some(ConversationCommand::Export(arguments)) => export::run(arguments, session).await,
        Some(ConversationCommand::Import(arguments)) => import::run(arguments, session).await,
        None => show_conversation(arguments, session).await,
    }
}

async fn show_conversation(arguments: ConversationArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let path = format!("v1/conversations/{}", arguments.agent);
    let mut query: Vec<(&str, String)> = Vec::new();
    query.extend(arguments.user.map(|user| ("user", user.to_string())));
    query.extend(arguments.latest.map(|count| ("latest", count.to_string())));
    let mut after = None;
    loop {
        let mut query = query.clone();
        query.extend(after.map(|after: u64| ("after", after.to_string())));
        let answer: Value = session.client.get(&path, &query).await?;
        if session.json {
            let messages = answer.get("messages").and_then(Value::as_array);
            messages.into_iter().flatten().try_for_each(terminal::json)?;
        }
        let page: GetConversationResponse = session.parse_answer(answer)?;
        if !session.json {
            page.messages.iter().map(format_message).try_for_each(terminal::line)?;
        }
        after = page.next_after.map(|place| place.sequence);
        if after.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn format_message(said: &MessageRow) -> String {
    let who = match said.role_word() {
        MessageRole::User => said.user.as_deref(),
        MessageRole::Agent => said.agent.as_deref(),
        MessageRole::Failure | MessageRole::Unknown(_) => Some(said.role.as_str()),
    };
    let time = rows::format_time(said.ts, &TimeZone::system());
    let parts: Vec<Part> = said.parts.iter().cloned().map(Part::from).collect();
    format!("{time}  {:<12}  {}", who.unwrap_or_default(), printable(&media::text_with_parts(&said.text, &parts)))
}
