//! `kairo dead-letters`

use std::process::ExitCode;

use clap::Args;
use kairo_proto::v1::ListDeadLettersResponse;
use serde_json::Value;

use super::Session;
use crate::{Error, event_lines::printable, rows, table::table, terminal};

/// Show the messages that were set aside because nobody could deal with them, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kairo dead-letters --limit 10")]
pub(super) struct Arguments {
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let query = [("limit", arguments.limit.to_string())];
    if let Some(ListDeadLettersResponse { dead_letters }) = session.ask("v1/dead-letters", &query).await? {
        let rows = dead_letters.into_iter().map(|letter| {
            let payload = rows::value(letter.payload.as_ref());
            let of = |field: &str| match payload.get(field) {
                Some(Value::String(text)) => printable(text),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            let at = rows::time(letter.ts).map(|at| at.to_string()).unwrap_or_default();
            [at, of("consumer"), of("subject"), of("sequence"), of("reason")]
        });
        table(["time", "consumer", "subject", "place", "reason"], rows).into_iter().try_for_each(terminal::line)?;
    }
    Ok(ExitCode::SUCCESS)
}
