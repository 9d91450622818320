//! `kairo conversation`

use std::process::ExitCode;

use clap::Args;
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::ids::Name;
use serde::Deserialize;
use serde_json::Value;

use super::{Session, name};
use crate::{Error, chain::printable, terminal};

/// Show what an agent and its users said to each other
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kairo conversation default --user you")]
pub(super) struct Arguments {
    /// The agent
    #[arg(value_parser = name, default_value = "default")]
    agent: Name,
    /// Only with this user
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
}

#[derive(Deserialize)]
struct Said {
    ts: Timestamp,
    role: String,
    agent: Option<String>,
    user: Option<String>,
    text: String,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let path = format!("v1/conversations/{}", arguments.agent);
    let mut after = 0;
    loop {
        let mut query = vec![("after", after.to_string())];
        query.extend(arguments.user.iter().map(|user| ("user", user.to_string())));
        let mut page: Value = session.client.get(&path, &query).await?;
        let Some(messages) = page.get_mut("messages").and_then(Value::as_array_mut).map(std::mem::take) else { break };
        let Some(last) = messages.last() else { break };
        after = last.get("sequence").and_then(Value::as_u64).unwrap_or(u64::MAX);
        for message in messages {
            match session.json {
                true => terminal::json(&message)?,
                false => terminal::line(line(&session.read(message)?))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(said: &Said) -> String {
    let who = match said.role.as_str() {
        "user" => said.user.as_deref(),
        "agent" => said.agent.as_deref(),
        role => Some(role),
    };
    let time = said.ts.to_zoned(TimeZone::system()).strftime("%F %T");
    format!("{time}  {:<12}  {}", who.unwrap_or_default(), printable(&said.text))
}
