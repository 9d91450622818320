//! The `kairo` command.
//!
//! [`commands`] holds a file for each command. They speak to the gateway through [`client`], find it through
//! [`endpoint`], show events through [`event_lines`] and wait for replies through [`exchange`] and [`turn`], for what
//! becomes of an order through [`order`]; what an agent asks on the way is a [`question`]. `kairo watch` folds events
//! into a picture ([`watch`]). `asking` asks models for decisions of a log again, and for forks. `kairo dev` ([`dev`]) starts everything
//! through [`kairo_local`], and so does `kairo example` ([`example`]).

mod agent_log;
mod asking;
mod browser;
pub mod client;
pub mod commands;
mod default_tools;
pub mod dev;
mod drill;
mod durations;
pub mod endpoint;
mod error;
pub mod event_lines;
pub mod example;
pub mod exchange;
mod models;
mod objects;
pub mod order;
pub mod question;
mod rows;
mod secret_key;
mod signing_key;
pub mod steps;
mod table;
mod terminal;
pub mod turn;
pub mod watch;

use std::process::ExitCode;

use clap::Parser;

pub use error::Error;

/// The `kairo` command: reads the command line, does what it says, and tells what went wrong.
///
/// Exits 1 when something failed and 64 for a command line that cannot be used; commands have statuses of their own.
pub async fn main() -> ExitCode {
    let arguments = match commands::CliArgs::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => {
            // Help and version are told in the same way as mistakes.
            let status = if told.use_stderr() { ExitCode::from(error::USAGE) } else { ExitCode::SUCCESS };
            drop(told.print());
            return status;
        }
    };
    match arguments.run().await {
        Ok(status) => status,
        Err(error) if error.is_closed_output() => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&error);
            error.exit_status()
        }
    }
}
