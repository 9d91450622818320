//! `/v1/agents`: what agents are made from.

pub mod caps;
mod composition;
mod definition;
mod definition_writer;
mod profile;
mod redefinition;
mod rollback;
mod sessions;
mod submodules;
mod unknown_tools;
mod versions;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_core::ids::Name;
use kairo_proto::v1::{AgentRow, GetAgentResponse, ListAgentsResponse};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, query_value},
    problem::Problem,
};
pub use definition::{MAX_MISSION, next_run_after};
#[cfg(test)]
pub use definition::{ProfilePatch, parse_agent};
pub use definition_writer::{CurrentDefinition, DefinitionWriter, decode_definition};
pub use profile::ProfileTraits;
pub use redefinition::{change_agent, define_agent, roll_back_agent};
#[cfg(test)]
pub use rollback::RollbackRequest;
pub use sessions::{COST, SessionSettings, parse_cost, parse_tokens};
pub use submodules::{list_submodules, parse_submodule};
pub use versions::list_versions;

/// The agents that the caller may see, in the order of their names: all of them, or page by page.
pub async fn list_agents(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListAgentsResponse>>, Problem> {
    let (after, limit) = asked.parse_with(|query| parse_page_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut agents = query::await_answer(&gateway, snapshot.list_agents()).await?;
    agents.retain(|agent| caller.require_agent(Some(&agent.agent)).is_ok());
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    agents.retain(|agent| after.as_ref().is_none_or(|after| agent.agent.as_str() > after.as_str()));
    let page = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let more = agents.len() > page;
    agents.truncate(page);
    agents.iter_mut().for_each(|agent| redact_agent(agent, &caller));
    let next_after = agents.last().filter(|_| more).map(|agent| agent.agent.clone());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListAgentsResponse { agents, next_after, ..Default::default() }),
    ))
}

fn parse_page_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<Name>, Option<u32>), Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let after = fields.optional("after", NAME, query_value(parse_name));
    let limit = query::parse_row_count("limit", &mut fields, config);
    fields.complete(|| Some((after, limit)))
}

/// One agent.
pub async fn get_agent(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetAgentResponse>>, Problem> {
    let name = query::path_agent(path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let agent = query::await_answer(&gateway, snapshot.find_agent(name.as_str())).await?;
    let unknown = || {
        let detail = format!("no agent {name} is known; GET /v1/agents lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    let mut agent = agent.ok_or_else(unknown)?;
    redact_agent(&mut agent, &caller);
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetAgentResponse { agent: Some(agent), ..Default::default() }),
    ))
}

/// Users need not read how an agent is instructed, which may be what keeps it from telling them, nor what it does for
/// others.
fn redact_agent(agent: &mut AgentRow, caller: &Caller) {
    let (Some(profile), Some(user)) = (&mut agent.profile, caller.user()) else { return };
    profile.prompt.clear();
    profile.submodules.iter_mut().for_each(|submodule| submodule.prompt.clear());
    if profile.owner != user {
        profile.mission.clear();
        profile.owner.clear();
        profile.team = None;
        (agent.queued, agent.oldest_queued_at) = (None, None);
        (agent.next_run_at, agent.last_completed_at) = (None, None);
    }
}
