//! `kairo chains`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde_json::Value;
use uuid::Uuid;

use super::{
    Session,
    orders::{Manner, STATUS},
    recent::Chosen,
};
use crate::Error;

/// Stop a chain: the steps that an agent carries out
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Stop a chain; what runs of it is stopped, what has not begun never does
    #[command(after_help = STATUS)]
    Cancel(Cancel),
}

#[derive(Debug, Args)]
struct Cancel {
    #[command(flatten)]
    chain: Chosen,
    #[command(flatten)]
    manner: Manner,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let Command::Cancel(Cancel { chain, manner }) = arguments.command;
    let (agent, chain) = chain.find(started, "chain", session).await?;
    manner.cancel_chain(agent, chain, session).await
}

/// The chain that an event says has begun.
fn started(event: &EventJson) -> Option<Uuid> {
    let id = || event.payload.get("chain_id").and_then(Value::as_str);
    Uuid::parse_str((event.type_name == v1::ChainStarted::TYPE).then(id)??).ok()
}
