//! `kairo fleet`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kairo_proto::v1::PromoteFleetResponse;
use serde_json::{Value, json};

use super::Session;
use crate::{Error, terminal};

const PROMOTE: &str = "\
Example:
  kairo fleet promote

After a release, when every replica is of the new version (see kairo status). It is refused while one of an older version
answers, and there is no way back.

Exit status: 0 if the epoch is in force, else 1.";

/// Look after all replicas together
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Have everything written that this version can write
    #[command(after_help = PROMOTE)]
    Promote,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    match arguments.command {
        Command::Promote => promote(session).await,
    }
}

async fn promote(session: &Session) -> Result<ExitCode, Error> {
    let answer: Value = session.client.post("v1/fleet/promote", &json!({})).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let PromoteFleetResponse { epoch, before } = session.read(answer)?;
    terminal::line(match epoch == before {
        true => format!("epoch {epoch} is in force already"),
        false => format!("epoch {epoch} is in force; it was {before}"),
    })?;
    Ok(ExitCode::SUCCESS)
}
