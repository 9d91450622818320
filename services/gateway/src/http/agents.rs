//! `/v1/agents`: what agents are made from.

pub mod caps;
mod composition;
mod definition_writer;
mod profile;
mod sessions;
mod submodules;

use axum::{
    Extension, Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode},
};
use kairo_core::ids::Name;
use kairo_proto::v1::{AgentProfile, AgentRow, DefineAgentResponse, GetAgentResponse, ListAgentsResponse};

use super::{
    Gateway,
    body::JsonBody,
    query,
    read_consistency::{PositionedResponse, ReadRequest},
    request_span::traceparent,
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, query_value},
    problem::Problem,
};
pub use definition_writer::{DefinitionWriter, WrittenDefinition};
pub use profile::{MAX_MISSION, ProfileTraits, next_run_after, parse_agent};
pub use sessions::{COST, SessionSettings, parse_cost, parse_tokens};
pub use submodules::{list_submodules, parse_submodule};

/// Creates an agent (201) or changes it (200). The definition it has already is not written again.
pub async fn define_agent(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<DefineAgentResponse>), Problem> {
    let (agent, profile) = parse_agent(&body, &gateway.config)?;
    caller.require_agent(Some(agent.as_str()))?;
    let defining = DefinitionWriter { gateway: &gateway, caller: &caller, traceparent: traceparent(&headers) };
    defining.require_epoch(&profile).await?;
    let profile = defining.resolve_composition(profile).await?;
    caps::require_prices(&gateway, &profile).await?;
    let profile = match profile.caps {
        Some(_) => caps::set_count_start(profile, defining.current_profile(&agent).await?.as_ref()),
        None => profile,
    };
    let WrittenDefinition { sequence, is_new } = defining.write(&agent, &profile, reject_team_agent).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(DefineAgentResponse { agent: profile.agent, sequence })))
}

/// Refuses an agent of a team: the team defines it, and a definition of its own would take it out of the team.
fn reject_team_agent(before: &AgentProfile) -> Result<(), Problem> {
    let team = if before.team.is_some() { &before.agent } else { &before.lead };
    match team.is_empty() {
        true => Ok(()),
        false => {
            let detail = format!("{} is an agent of the team {team}: change it with POST /v1/teams", before.agent);
            Err(Problem::conflict(detail))
        }
    }
}

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
