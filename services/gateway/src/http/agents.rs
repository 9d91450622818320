//! `/v1/agents`: what agents are made from.

pub mod caps;
mod composition;
mod defining;
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
    answer::Told,
    body::JsonBody,
    query,
    read_consistency::{Answer, Asked},
    span::traceparent,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, name, value},
    problem::Problem,
};
pub use defining::{Defining, Written};
pub use profile::{MAX_MISSION, Traits, next_run_after, read};
pub use sessions::{COST, Sessions, cost, tokens};
pub use submodules::{list as list_submodules, submodule};

/// Creates an agent (201) or changes it (200). The definition it has already is not written again.
pub async fn post(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<DefineAgentResponse>), Problem> {
    let (agent, profile) = read(&body, &gateway.config)?;
    caller.act_on_agent(Some(agent.as_str()))?;
    let defining = Defining { gateway: &gateway, caller: &caller, traceparent: traceparent(&headers) };
    defining.in_epoch(&profile).await?;
    let profile = defining.composed(profile).await?;
    caps::priced(&gateway, &profile).await?;
    let profile = match profile.caps {
        Some(_) => caps::counted(profile, defining.in_force(&agent).await?.as_ref()),
        None => profile,
    };
    let Written { sequence, is_new } = defining.write(&agent, &profile, in_no_team).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(DefineAgentResponse { agent: profile.agent, sequence })))
}

/// Refuses an agent of a team: the team defines it, and a definition of its own would take it out of the team.
fn in_no_team(before: &AgentProfile) -> Result<(), Problem> {
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
pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Answer<Told<ListAgentsResponse>>, Problem> {
    let (after, limit) = asked.read(|query| read_page(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut agents = query::answered(&gateway, snapshot.agents()).await?;
    agents.retain(|agent| caller.act_on_agent(Some(&agent.agent)).is_ok());
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    agents.retain(|agent| after.as_ref().is_none_or(|after| agent.agent.as_str() > after.as_str()));
    let page = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let more = agents.len() > page;
    agents.truncate(page);
    agents.iter_mut().for_each(|agent| withhold(agent, &caller));
    let next_after = agents.last().filter(|_| more).map(|agent| agent.agent.clone());
    Ok(Answer::of(&snapshot, Told(ListAgentsResponse { agents, next_after, ..Default::default() })))
}

fn read_page(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<Name>, Option<u32>), Problem> {
    let mut fields = Fields::from_query(url_query);
    let after = fields.optional("after", NAME, value(name));
    let limit = query::rows("limit", &mut fields, config);
    fields.complete(|| Some((after, limit)))
}

/// One agent.
pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetAgentResponse>>, Problem> {
    let name = query::agent(path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let agent = query::answered(&gateway, snapshot.agent(name.as_str())).await?;
    let unknown = || {
        let detail = format!("no agent {name} is known; GET /v1/agents lists those there are");
        Problem::not_found(detail).at(snapshot.position())
    };
    let mut agent = agent.ok_or_else(unknown)?;
    withhold(&mut agent, &caller);
    Ok(Answer::of(&snapshot, Told(GetAgentResponse { agent: Some(agent), ..Default::default() })))
}

/// Users need not read how an agent is instructed, which may be what keeps it from telling them, nor what it does for
/// others.
fn withhold(agent: &mut AgentRow, caller: &Caller) {
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
