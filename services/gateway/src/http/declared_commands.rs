//! `GET /v1/commands`: what users may call agents by, as the definitions in the log say.

use axum::{
    Extension,
    extract::{RawQuery, State},
};
use kairo_proto::v1::{DeclaredCommand, ListCommandsResponse};

use super::{Gateway, sorted_json::SortedJson};
use crate::{auth::Caller, fields::RequestFields, problem::Problem};

/// The commands of the agents that the caller may name.
pub async fn list_commands(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<ListCommandsResponse>, Problem> {
    RequestFields::from_query(query.as_deref()).complete(|| Some(()))?;
    gateway.commands.catch_up(0).await?;
    let known = gateway.commands.lock_commands();
    let seen = known.all().filter(|(agent, _)| caller.require_agent(Some(agent.as_str())).is_ok());
    let commands = seen.map(|(agent, command)| DeclaredCommand {
        agent: agent.to_string(),
        command: command.value.clone(),
        label: command.label.clone(),
        help: command.help.clone(),
    });
    Ok(SortedJson(ListCommandsResponse { commands: commands.collect() }))
}
