//! `kairo projections`

use std::{process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::{Session, status::Status};
use crate::{Error, terminal};

/// How often the progress is asked for.
const PACE: Duration = Duration::from_millis(250);

/// Look after the read models
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the read model anew from the log, and show how far it is
    #[command(after_help = "Example:\n  kairo projections rebuild")]
    Rebuild,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let Command::Rebuild = arguments.command;
    let answer: Value = session.client.post("v1/projections/rebuild", &json!({})).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {per_sec}") {
        bar.set_style(style);
    }
    let mut goal = None;
    loop {
        let status: Status = session.client.get("v1/status", &[]).await?;
        // The log grows while it is read; what is new is no part of the rebuild.
        let goal = *goal.get_or_insert(status.stream.last_sequence);
        let position = status.projection.map_or(0, |projection| projection.position);
        bar.set_length(goal);
        bar.set_position(position);
        if position >= goal {
            break;
        }
        tokio::time::sleep(PACE).await;
    }
    bar.finish_and_clear();
    terminal::line("the read model has been built anew from the log")?;
    Ok(ExitCode::SUCCESS)
}
