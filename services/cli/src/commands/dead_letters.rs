//! `kairo dead-letters`

use std::process::ExitCode;

use clap::Args;
use kairo_core::event_json::EventJson;
use serde::Deserialize;
use serde_json::Value;

use super::Session;
use crate::{Error, chain::printable, table::table, terminal};

/// Show the messages that were set aside because nobody could deal with them, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kairo dead-letters --limit 10")]
pub(super) struct Arguments {
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
}

#[derive(Deserialize)]
struct Letters {
    dead_letters: Vec<EventJson>,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let query = [("limit", arguments.limit.to_string())];
    if let Some(Letters { dead_letters }) = session.ask("v1/dead-letters", &query).await? {
        let rows = dead_letters.into_iter().map(|letter| {
            let of = |field: &str| match letter.payload.get(field) {
                Some(Value::String(text)) => printable(text),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            [letter.ts.to_string(), of("consumer"), of("subject"), of("sequence"), of("reason")]
        });
        table(["time", "consumer", "subject", "place", "reason"], rows).into_iter().try_for_each(terminal::line)?;
    }
    Ok(ExitCode::SUCCESS)
}
