//! `GET /v1/commands`: what users may call agents by, as the definitions in the log say.

use axum::{
    Extension,
    extract::{RawQuery, State},
};
use kairo_proto::v1::{DeclaredCommand, ListCommandsResponse};

use super::{Gateway, answer::Told};
use crate::{auth::Caller, fields::Fields, problem::Problem};

/// The commands of the agents that the caller may name.
pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Told<ListCommandsResponse>, Problem> {
    Fields::from_query(query.as_deref()).complete(|| Some(()))?;
    gateway.commands.caught_up(0).await?;
    let known = gateway.commands.known();
    let seen = known.all().filter(|(agent, _)| caller.act_on_agent(Some(agent.as_str())).is_ok());
    let commands = seen.map(|(agent, command)| DeclaredCommand {
        agent: agent.to_string(),
        command: command.value.clone(),
        label: command.label.clone(),
        help: command.help.clone(),
    });
    Ok(Told(ListCommandsResponse { commands: commands.collect() }))
}
