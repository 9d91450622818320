//! `kairo chains`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde_json::Value;
use uuid::Uuid;

use super::{
    GatewaySession,
    event_lookup::RecentEventSelector,
    orders::{OrderOptions, STATUS},
};
use crate::Error;

/// Stop a chain: the steps that an agent carries out
#[derive(Debug, Args)]
pub(super) struct ChainsArgs {
    #[command(subcommand)]
    command: ChainsCommand,
}

#[derive(Debug, Subcommand)]
enum ChainsCommand {
    /// Stop a chain; what runs of it is stopped, what has not begun never does
    #[command(after_help = STATUS)]
    Cancel(ChainCancelArgs),
}

#[derive(Debug, Args)]
struct ChainCancelArgs {
    #[command(flatten)]
    chain: RecentEventSelector,
    #[command(flatten)]
    manner: OrderOptions,
}

pub(super) async fn run(arguments: ChainsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ChainsCommand::Cancel(ChainCancelArgs { chain, manner }) = arguments.command;
    let (agent, chain) = chain.find_by_event(started_chain_id, "chain", session).await?;
    manner.cancel_chain(agent, chain, session).await
}

/// The chain that an event says has begun.
fn started_chain_id(event: &EventJson) -> Option<Uuid> {
    let id = || event.payload.get("chain_id").and_then(Value::as_str);
    Uuid::parse_str((event.type_name == v1::ChainStarted::TYPE).then(id)??).ok()
}
