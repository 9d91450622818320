//! `kairo dead-letters`

use std::{collections::BTreeMap, process::ExitCode};

use clap::{Args, Subcommand};
use kairo_proto::v1::{Event, ListDeadLettersResponse, RetryDeadLetterResponse, RetryRow};
use serde_json::{Value, json};

use super::GatewaySession;
use crate::{Error, event_lines::printable, rows, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo dead-letters --limit 10     the newest, each with its number and what became of the last retry
  kairo dead-letters retry 7        have the message of letter 7 dealt with again

Exit status: 0.";

const RETRY: &str = "\
Example:
  kairo dead-letters retry 7 && kairo dead-letters

The service that wrote the letter reads its message where it stands and treats it as one that is delivered once more, as soon as a
replica of it is there. What came of it, kairo dead-letters shows. A letter that was dealt with is not dealt with again. Letters of
projector are not retried: kairo projections rebuild reads their messages again.

Exit status: 0 if the service will deal with it, else 1.";

/// Show the messages that were set aside because nobody could deal with them, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DeadLettersArgs {
    #[command(subcommand)]
    command: Option<DeadLettersCommand>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
}

#[derive(Debug, Subcommand)]
enum DeadLettersCommand {
    /// Have the message of a letter dealt with again, by the service that wrote the letter
    #[command(after_help = RETRY)]
    Retry {
        /// The number of the letter
        letter: u64,
    },
}

pub(super) async fn run(arguments: DeadLettersArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None => list_dead_letters(arguments.limit, session).await,
        Some(DeadLettersCommand::Retry { letter }) => retry_dead_letter(letter, session).await,
    }
}

async fn list_dead_letters(limit: u32, session: &GatewaySession) -> Result<ExitCode, Error> {
    let query = [("limit", limit.to_string())];
    if let Some(ListDeadLettersResponse { dead_letters, retries }) =
        session.get_or_print_json("v1/dead-letters", &query).await?
    {
        let retries: BTreeMap<u64, RetryRow> = retries.into_iter().map(|retry| (retry.letter, retry)).collect();
        let rows = dead_letters.into_iter().map(|letter| dead_letter_cells(&letter, retries.get(&letter.sequence)));
        let heads = ["letter", "time", "consumer", "subject", "place", "retry", "reason"];
        table(heads, rows).into_iter().try_for_each(terminal::line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn dead_letter_cells(letter: &Event, retry: Option<&RetryRow>) -> [String; 7] {
    let payload = rows::value(letter.payload.as_ref());
    let of = |field: &str| match payload.get(field) {
        Some(Value::String(text)) => printable(text),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let at = rows::time(letter.ts).map(|at| at.to_string()).unwrap_or_default();
    let retried = retry.map_or_else(|| "-".to_owned(), retry_state);
    [letter.sequence.to_string(), at, of("consumer"), of("subject"), of("sequence"), retried, of("reason")]
}

/// Returns the outcome of a retry and its reason, or `waiting` while there is none.
fn retry_state(retry: &RetryRow) -> String {
    let RetryRow { outcome, reason, .. } = retry;
    let outcome = printable(outcome.as_deref().unwrap_or("waiting"));
    if reason.is_empty() { outcome } else { format!("{outcome}: {}", printable(reason)) }
}

async fn retry_dead_letter(letter: u64, session: &GatewaySession) -> Result<ExitCode, Error> {
    let answer: Value = session.client.post(&format!("v1/dead-letters/{letter}/retry"), &json!({})).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let RetryDeadLetterResponse { letter, service, .. } = session.parse_answer(answer)?;
    terminal::line(format!(
        "{} deals with letter {letter} again; kairo dead-letters shows what comes of it",
        printable(&service)
    ))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::DeadLetter;

    use super::*;

    #[test]
    fn a_letter_says_how_far_its_retry_is() {
        let payload =
            json!({ "consumer": "router", "subject": "kairo.user.ann.message", "sequence": 7, "reason": "bad\u{1b}" });
        let letter: Event = serde_json::from_value(json!({
            "event_id": "0199c4a4-b1cf-7a66-9d4e-0d7f4a3d5b11", "ts": "2026-11-21T10:00:00Z", "source": "system",
            "modality": "system", "payload": payload, "meta": { "tags": [] }, "type": DeadLetter::TYPE, "sequence": 3,
            "position": 0, "subject": "kairo.dlq.router.letter", "correlation_id": "0199c4a4-b1cf-7a66-9d4e-0d7f4a3d5b11",
        }))
        .unwrap();
        let retry = |outcome: Option<&str>, reason: &str| {
            let retry =
                RetryRow { outcome: outcome.map(str::to_owned), reason: reason.to_owned(), ..Default::default() };
            dead_letter_cells(&letter, Some(&retry))[5].clone()
        };
        assert_eq!(dead_letter_cells(&letter, None)[5], "-");
        assert_eq!(retry(None, ""), "waiting");
        assert_eq!(retry(Some("handled"), ""), "handled");
        assert_eq!(retry(Some("failed"), "away"), "failed: away");
        let shown = dead_letter_cells(&letter, None);
        assert_eq!((shown[0].as_str(), shown[4].as_str(), shown[6].contains('\u{1b}')), ("3", "7", false));
    }
}
