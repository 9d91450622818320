//! `kairo actions`

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use kairo_core::ids::Name;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{Session, name};
use crate::{Error, chain::printable, table::table, terminal};

/// Show what agents have asked for that has no result yet
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kairo actions --agent ops")]
pub(super) struct Arguments {
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
}

#[derive(Deserialize)]
struct Actions {
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Action {
    action_id: Uuid,
    agent: String,
    tool: String,
    arguments: Value,
    status: String,
    decided_at: Timestamp,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let mut query = vec![("in_flight", true.to_string())];
    query.extend(arguments.agent.map(|agent| ("agent", agent.to_string())));
    if let Some(Actions { actions }) = session.ask("v1/actions", &query).await? {
        let rows = actions.into_iter().map(|action| {
            let arguments = printable(&action.arguments.to_string());
            let asked = action.decided_at.to_string();
            [action.agent, action.tool, action.status, asked, action.action_id.to_string(), arguments]
        });
        let heads = ["agent", "tool", "status", "asked", "action", "arguments"];
        table(heads, rows).into_iter().try_for_each(terminal::line)?;
    }
    Ok(ExitCode::SUCCESS)
}
