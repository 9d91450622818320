//! `kairo conversation`

use std::process::ExitCode;

use clap::Args;
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::{ids::Name, media};
use kairo_proto::v1::Part;
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
    /// Only so many of the newest
    #[arg(long, value_name = "N")]
    latest: Option<u64>,
}

#[derive(Deserialize)]
struct Page {
    messages: Vec<Value>,
    /// Where to go on; none at the end.
    #[serde(default)]
    next_after: Option<u64>,
}

#[derive(Deserialize)]
struct Said {
    ts: Timestamp,
    role: String,
    agent: Option<String>,
    user: Option<String>,
    text: String,
    #[serde(default)]
    parts: Vec<Part>,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let path = format!("v1/conversations/{}", arguments.agent);
    let mut query: Vec<(&str, String)> = Vec::new();
    query.extend(arguments.user.map(|user| ("user", user.to_string())));
    query.extend(arguments.latest.map(|count| ("latest", count.to_string())));
    let mut after = None;
    loop {
        let mut query = query.clone();
        query.extend(after.map(|after: u64| ("after", after.to_string())));
        let page: Page = session.client.get(&path, &query).await?;
        for message in page.messages {
            match session.json {
                true => terminal::json(&message)?,
                false => terminal::line(line(&session.read(message)?))?,
            }
        }
        after = page.next_after;
        if after.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn line(said: &Said) -> String {
    let who = match said.role.as_str() {
        "user" => said.user.as_deref(),
        "agent" => said.agent.as_deref(),
        role => Some(role),
    };
    let time = said.ts.to_zoned(TimeZone::system()).strftime("%F %T");
    format!("{time}  {:<12}  {}", who.unwrap_or_default(), printable(&media::in_words(&said.text, &said.parts)))
}
