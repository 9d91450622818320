//! `kairo console`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::GatewaySession;
use crate::{
    Error,
    browser::{open_console, sign_in_url},
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo console                 in the browser of this machine
  kairo console --print         the address, for another browser: whoever has it has the key

Exit status: 0, and 1 where no browser came.";

/// Show the console in the browser, signed in with the key that this command has
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConsoleArgs {
    /// Print the address with the key instead
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(arguments: &ConsoleArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let gateway = session.client.url();
    let key = session.client.key();
    match (session.json, arguments.print) {
        (true, _) => terminal::json(&json!({ "console_url": sign_in_url(gateway, key) }))?,
        (false, true) => terminal::line(sign_in_url(gateway, key))?,
        (false, false) => open_console(gateway, key).await?,
    }
    Ok(ExitCode::SUCCESS)
}
