//! `POST /v1/agents`, `PATCH /v1/agents/{agent}` and `POST /v1/agents/{agent}/rollback`: an agent gets a new profile.

use axum::{
    Extension, Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode},
};
use kairo_core::{ids::Name, profile_document};
use kairo_proto::v1::{AgentDefined, AgentProfile, DefineAgentResponse};

use super::{
    DefinitionWriter, caps,
    definition::{AgentDefinition, DefinitionOptions, ProfilePatch, parse_agent, revalidate},
    definition_writer::{CurrentDefinition, DefinitionAttempts},
    rollback::{RollbackRequest, find_version},
    unknown_tools,
};
use crate::{
    auth::Caller,
    http::{Gateway, body::JsonBody, query, request_span::traceparent, tools},
    problem::Problem,
};

/// Creates an agent (201) or changes it (200). The definition it has already is not written again.
pub async fn define_agent(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<DefineAgentResponse>), Problem> {
    let AgentDefinition { agent, profile, options } = parse_agent(&body, &gateway.config)?;
    caller.require_agent(Some(agent.as_str()))?;
    let writer = DefinitionWriter { gateway: &gateway, caller: &caller, traceparent: traceparent(&headers) };
    let (is_new, answer) = writer.redefine(&agent, &options, |_| Ok(profile.clone())).await?;
    let status = if is_new && !options.dry_run { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(answer)))
}

/// Changes single fields of an agent.
pub async fn change_agent(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Json<DefineAgentResponse>, Problem> {
    let agent = query::path_agent(path)?;
    let options = DefinitionOptions::from_query(query.as_deref())?;
    let patch = ProfilePatch::parse(&body)?;
    patch.require_known_fields(&agent, &gateway.config)?;
    let writer = DefinitionWriter { gateway: &gateway, caller: &caller, traceparent: traceparent(&headers) };
    let apply = |current: &CurrentDefinition| {
        let before = current.profile.as_ref().ok_or_else(|| unknown_agent(&agent))?;
        patch.apply(before, &agent, &gateway.config)
    };
    let (_, answer) = writer.redefine(&agent, &options, apply).await?;
    Ok(Json(answer))
}

/// Gives an agent the profile of an earlier version again.
pub async fn roll_back_agent(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Json<DefineAgentResponse>, Problem> {
    let agent = query::path_agent(path)?;
    let RollbackRequest { version, dry_run } = RollbackRequest::parse(&body)?;
    let earlier = find_version(&gateway, &agent, &version).await?;
    reject_team_agent(&earlier.profile)?;
    let profile = revalidate(&earlier.profile, &agent, &gateway.config)?;
    let writer = DefinitionWriter { gateway: &gateway, caller: &caller, traceparent: traceparent(&headers) };
    let options = DefinitionOptions { version: earlier.version, dry_run };
    let (_, answer) = writer.redefine(&agent, &options, |_| Ok(profile.clone())).await?;
    Ok(Json(answer))
}

impl DefinitionWriter<'_> {
    /// Defines an agent by the profile that `build` makes of the definition in force, and says whether the agent is new.
    /// If another definition is written in between, `build` is called again with it, so that neither change is lost.
    async fn redefine(
        &self,
        agent: &Name,
        options: &DefinitionOptions,
        build: impl Fn(&CurrentDefinition) -> Result<AgentProfile, Problem>,
    ) -> Result<(bool, DefineAgentResponse), Problem> {
        let mut attempts = DefinitionAttempts::new();
        loop {
            let current = self.current_definition(agent).await?;
            current.profile.as_ref().map_or(Ok(()), reject_team_agent)?;
            let profile = self.prepare(build(&current)?, current.profile.as_ref()).await?;
            let is_in_force = current.profile.as_ref() == Some(&profile)
                && (options.version.is_empty() || options.version == current.version);
            let definition = AgentDefined { profile: Some(profile), version: options.version.clone() };
            let written = match is_in_force || options.dry_run {
                true => Some(current.sequence),
                false => attempts.append(self, agent, &definition, current.sequence).await?,
            };
            let (Some(sequence), Some(profile)) = (written, &definition.profile) else { continue };
            let answer = DefineAgentResponse {
                agent: agent.to_string(),
                sequence,
                changes: profile_document::changes(current.profile.as_ref(), profile),
                warnings: self.tool_warnings(profile).await?,
            };
            return Ok((current.is_missing(), answer));
        }
    }

    /// Checks the profile against everything but its own fields, and fills in what follows from the one in force.
    async fn prepare(&self, profile: AgentProfile, before: Option<&AgentProfile>) -> Result<AgentProfile, Problem> {
        self.require_epoch(&profile).await?;
        let profile = self.resolve_composition(profile).await?;
        caps::require_prices(self.gateway, &profile).await?;
        Ok(caps::set_count_start(profile, before))
    }

    /// Returns a warning for each name in the profile that matches no tool. There are none before tool-runner has
    /// published its catalogue.
    pub async fn tool_warnings(&self, profile: &AgentProfile) -> Result<Vec<String>, Problem> {
        let tools = tools::known_names(self.gateway).await?;
        Ok(tools.map(|tools| unknown_tools::warnings(profile, &tools)).unwrap_or_default())
    }
}

/// Refuses an agent of a team: the team defines it, and a definition of its own would take it out of the team.
fn reject_team_agent(before: &AgentProfile) -> Result<(), Problem> {
    let team = if before.team.is_some() { &before.agent } else { &before.lead };
    if team.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "{} is an agent of the team {team}: define the team again, with kairo teams create or POST /v1/teams",
        before.agent
    );
    Err(Problem::conflict(detail))
}

pub fn unknown_agent(agent: &Name) -> Problem {
    Problem::not_found(format!("no agent {agent} is known; kairo agents lists those there are"))
}
