//! `kairo privacy`

mod wrap;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kairo_proto::v1::RewrapDataKeysResponse;
use serde_json::{Value, json};

use super::GatewaySession;
use crate::{Error, terminal};

const ROTATE: &str = "\
Example:
  kairo privacy rotate

What users say is sealed with data keys, and these are kept under privacy.master_key. To replace that:

  1. Make a key: openssl rand -hex 32, or kairo privacy wrap
  2. Give every service the new one as privacy.master_key, and the one before in privacy.old_master_keys; restart them.
  3. kairo privacy rotate
  4. Take the one before away from every service, and restart them.

Nothing becomes unreadable on the way; a service that was not restarted yet waits with what is sealed under the new key. The command
may be run again wherever it was interrupted. What it keeps anew is written over where it stood; copies of the bucket
KAIRO_DATA_KEYS that were made before can still be read with the key before.

Exit status: 0 if all data keys are under the key in force, else 1.";

/// Look after the keys that what users say is sealed with
#[derive(Debug, Args)]
pub(super) struct PrivacyArgs {
    #[command(subcommand)]
    command: PrivacyCommand,
}

#[derive(Debug, Subcommand)]
enum PrivacyCommand {
    /// Keep every data key under the master key in force
    #[command(after_help = ROTATE)]
    Rotate,
    /// Have a key management service wrap the master key
    #[command(after_help = wrap::EXAMPLES)]
    Wrap(wrap::PrivacyWrapArgs),
}

pub(super) async fn run(arguments: &PrivacyArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match &arguments.command {
        PrivacyCommand::Rotate => rewrap_data_keys(session).await,
        PrivacyCommand::Wrap(arguments) => wrap::run(arguments, session.json).await,
    }
}

async fn rewrap_data_keys(session: &GatewaySession) -> Result<ExitCode, Error> {
    let answer: Value = session.client.post("v1/privacy/rewrap", &json!({})).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let RewrapDataKeysResponse { rewrapped } = session.parse_answer(answer)?;
    terminal::line(match rewrapped {
        0 => "all data keys are under the master key in force already".to_owned(),
        1 => "1 data key was under another master key; all are under the one in force now".to_owned(),
        more => format!("{more} data keys were under another master key; all are under the one in force now"),
    })?;
    Ok(ExitCode::SUCCESS)
}
