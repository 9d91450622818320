//! `POST /v1/teams`: a team, with all of its agents.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use kairo_core::{ids::Name, profile_document};
use kairo_proto::{
    v1::{AgentChanges, AgentProfile, CreateTeamResponse, Team, TeamWorker},
    words::Conduct,
};
use serde_json::Value;

use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, bounded_text, json_bool, json_text, parse_name},
    http::{
        Gateway,
        agents::{
            COST, CurrentDefinition, DefinitionWriter, MAX_MISSION, ProfileTraits, SessionSettings, caps,
            next_run_after, parse_cost, parse_tokens,
        },
        body::JsonBody,
        request_span::traceparent,
    },
    problem::Problem,
};

/// Most workers of a team.
const MAX_WORKERS: usize = 32;

/// The agents of a team, as they are to be.
#[derive(Debug)]
pub struct TeamDefinition {
    lead: (Name, AgentProfile),
    workers: Vec<(Name, AgentProfile)>,
    /// True if nothing is written.
    dry_run: bool,
}

/// Creates a team (201) or changes it (200). Definitions that are in force already are not written again.
pub async fn create_team(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<CreateTeamResponse>), Problem> {
    let TeamDefinition { lead: (team, lead), workers, dry_run } = parse_team(&body, &gateway.config)?;
    let agents: Vec<Name> = [&team].into_iter().chain(workers.iter().map(|(agent, _)| agent)).cloned().collect();
    agents.iter().try_for_each(|agent| caller.require_agent(Some(agent.as_str())))?;
    let defining = DefinitionWriter { gateway: &gateway, caller: &caller, traceparent: traceparent(&headers) };
    // Everything is checked before anything is written. Only a definition that comes in between can still be refused after that.
    let mut changes = Vec::new();
    let mut warnings = Vec::new();
    let mut profiles = Vec::with_capacity(agents.len());
    for (agent, profile) in [(team.clone(), lead)].into_iter().chain(workers) {
        defining.require_epoch(&profile).await?;
        let current = defining.current_definition(&agent).await?;
        current.profile.as_ref().map_or(Ok(()), |before| require_team_agent(&team, before))?;
        let profile = prepare_caps(&gateway, profile, current.profile.as_ref()).await?;
        changes.extend(agent_changes(&agent, &current, &profile));
        warnings
            .extend(defining.tool_warnings(&profile).await?.into_iter().map(|warning| format!("{agent}: {warning}")));
        profiles.push((agent, profile));
    }
    let (sequence, is_new) = match dry_run {
        true => (defining.current_definition(&team).await?.sequence, false),
        false => write_team(&defining, &team, &profiles).await?,
    };
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let agents = agents.iter().map(Name::to_string).collect();
    Ok((status, Json(CreateTeamResponse { team: team.to_string(), sequence, agents, changes, warnings })))
}

/// Writes the definitions of a team, and returns the newest position and whether the team is new. The first of them is
/// the lead's. It is written last: there is no team until all who work for it are there.
async fn write_team(
    defining: &DefinitionWriter<'_>,
    team: &Name,
    profiles: &[(Name, AgentProfile)],
) -> Result<(u64, bool), Problem> {
    let mut newest = 0;
    let mut is_new = false;
    for (agent, profile) in profiles.iter().skip(1).chain(profiles.first()) {
        let written = defining.write(agent, profile, |before| require_team_agent(team, before)).await?;
        newest = newest.max(written.sequence);
        is_new = written.is_new;
    }
    Ok((newest, is_new))
}

/// The difference that the definition makes to an agent, if it makes one.
fn agent_changes(agent: &Name, current: &CurrentDefinition, profile: &AgentProfile) -> Option<AgentChanges> {
    let changes = profile_document::changes(current.profile.as_ref(), profile);
    let is_new = current.is_missing();
    (is_new || !changes.is_empty()).then(|| AgentChanges { agent: agent.to_string(), is_new, changes })
}

/// The profile with the time from which its caps are counted, if its bounds can be counted.
async fn prepare_caps(
    gateway: &Gateway,
    profile: AgentProfile,
    before: Option<&AgentProfile>,
) -> Result<AgentProfile, Problem> {
    caps::require_prices(gateway, &profile).await?;
    Ok(caps::set_count_start(profile, before))
}

/// Refuses an agent that exists outside this team: the team would take it over.
fn require_team_agent(team: &Name, before: &AgentProfile) -> Result<(), Problem> {
    if before.agent == team.as_str() { require_lead(before) } else { require_worker_of(team, before) }
}

/// Refuses to make a team of an agent that is something else.
fn require_lead(before: &AgentProfile) -> Result<(), Problem> {
    if before.team.is_some() {
        return Ok(());
    }
    let detail = format!("team: {} is an agent that leads no team; choose another name", before.agent);
    Err(Problem::conflict(detail))
}

/// Refuses to take an agent away from whomever it works for.
fn require_worker_of(team: &Name, before: &AgentProfile) -> Result<(), Problem> {
    if before.lead == team.as_str() {
        return Ok(());
    }
    let whose = match (before.lead.as_str(), &before.team) {
        ("", None) => "an agent in no team".to_owned(),
        ("", Some(_)) => "a team of its own".to_owned(),
        (other, _) => format!("an agent of the team {other}"),
    };
    let detail = format!("workers: {} is {whose}; choose another name for the worker", before.agent);
    Err(Problem::conflict(detail))
}

pub fn parse_team(body: &[u8], limits: &GatewayConfig) -> Result<TeamDefinition, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let team = fields.required("team", NAME, json_text(parse_name));
    let owner = fields.required("owner", NAME, json_text(parse_name));
    let mission =
        fields.required("mission", format!("text of 1 to {MAX_MISSION} bytes"), json_text(bounded_text(MAX_MISSION)));
    let lead = parse_lead(&mut fields, limits);
    let workers = parse_workers(&mut fields, team.as_ref(), limits);
    let tokens_per_day = parse_tokens(&mut fields, "tokens_per_day");
    let cost_per_day = fields.optional("cost_per_day", COST, json_text(parse_cost));
    let dry_run = fields.optional("dry_run", "true or false", json_bool).unwrap_or_default();
    fields.complete(|| {
        let team = team?;
        let lead = lead?;
        let workers = workers?;
        let of_team = Team {
            workers: workers.iter().map(|worker| worker.to_team_worker()).collect(),
            tokens_per_day,
            cost_per_day: cost_per_day.unwrap_or_default(),
        };
        let lead = AgentProfile {
            mission: mission?,
            owner: owner?.to_string(),
            team: Some(of_team),
            ..lead.into_profile(&team)?
        };
        let workers = workers.into_iter().map(|worker| worker.into_profile(&team)).collect::<Option<_>>()?;
        Some(TeamDefinition { lead: (team, lead), workers, dry_run })
    })
}

/// An agent of a team, whose name is told elsewhere.
struct MemberDefinition {
    traits: ProfileTraits,
    sessions: SessionSettings,
    next_run_after: u32,
}

impl MemberDefinition {
    fn from_fields(fields: &mut RequestFields<Value>, limits: &GatewayConfig) -> Self {
        let traits = ProfileTraits::from_fields(fields, limits);
        Self { traits, sessions: SessionSettings::from_fields(fields), next_run_after: 0 }
    }

    fn into_profile(self, agent: &Name) -> Option<AgentProfile> {
        Some(self.sessions.apply_to(AgentProfile {
            conduct: Conduct::Background.known_word().to_owned(),
            next_run_after: self.next_run_after,
            ..self.traits.into_profile(agent)?
        }))
    }
}

fn parse_lead(fields: &mut RequestFields<Value>, limits: &GatewayConfig) -> Option<MemberDefinition> {
    let given = fields
        .required("lead", "a JSON object with a prompt", |value: &Value| value.is_object().then(|| value.clone()))?;
    let lead = RequestFields::from_nested(&given).and_then(|mut within| {
        let member = MemberDefinition::from_fields(&mut within, limits);
        let next_run_after = next_run_after(&mut within);
        within.complete(|| Some(MemberDefinition { next_run_after, ..member }))
    });
    lead.map_err(|problem| fields.add_nested_errors("lead", problem)).ok()
}

/// A worker that is asked for.
struct WorkerDefinition {
    agent: Name,
    member: MemberDefinition,
}

impl WorkerDefinition {
    fn to_team_worker(&self) -> TeamWorker {
        let description = self.member.traits.description().to_owned();
        TeamWorker { agent: self.agent.to_string(), description }
    }

    fn into_profile(self, team: &Name) -> Option<(Name, AgentProfile)> {
        let profile = AgentProfile { lead: team.to_string(), ..self.member.into_profile(&self.agent)? };
        Some((self.agent, profile))
    }
}

/// None without the name of the team, by which they are named; what else is wrong with them is told even so.
fn parse_workers(
    fields: &mut RequestFields<Value>,
    team: Option<&Name>,
    limits: &GatewayConfig,
) -> Option<Vec<WorkerDefinition>> {
    let expected = format!("a list of 1 to {MAX_WORKERS} workers");
    let given = fields.required("workers", expected, |value: &Value| {
        value.as_array().filter(|workers| (1..=MAX_WORKERS).contains(&workers.len())).cloned()
    })?;
    let mut workers: Vec<WorkerDefinition> = Vec::new();
    for (index, value) in given.iter().enumerate() {
        match parse_worker(value, team, &workers, limits) {
            Ok(worker) => workers.extend(worker),
            Err(problem) => fields.add_nested_errors(&format!("workers[{index}]"), problem),
        }
    }
    team.map(|_| workers)
}

/// Reads a worker of a team; `None` if the team has no name.
fn parse_worker(
    value: &Value,
    team: Option<&Name>,
    others: &[WorkerDefinition],
    limits: &GatewayConfig,
) -> Result<Option<WorkerDefinition>, Problem> {
    let mut fields = RequestFields::from_nested(value)?;
    let given = fields.required("name", NAME, json_text(parse_name));
    let member = MemberDefinition::from_fields(&mut fields, limits);
    let agent = team.zip(given).and_then(|(team, given)| {
        let agent = Name::parse(&format!("{team}-{given}")).ok();
        match &agent {
            None => fields.reject("name", format!("a name so short that {team}-<name> has at most 64 characters")),
            Some(agent) if others.iter().any(|other| other.agent == *agent) => {
                fields.reject("name", "a name that no other worker of the team has");
            }
            Some(_) => {}
        }
        agent
    });
    fields.complete(|| Some(agent.map(|agent| WorkerDefinition { agent, member })))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(body: &Value) -> Vec<String> {
        let problem = parse_team(body.to_string().as_bytes(), &GatewayConfig::default()).unwrap_err();
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    fn whole() -> Value {
        json!({
            "team": "market", "owner": "ann", "mission": "Know our competitors.",
            "lead": { "prompt": "You lead.", "next_run_after": 60, "time_zone": "Europe/Berlin" },
            "workers": [
                { "name": "reader", "description": "reads pages", "prompt": "You read.", "tools": ["http.get"] },
                { "name": "writer", "prompt": "You write.", "session_pause": 5 },
            ],
            "tokens_per_day": 1000, "cost_per_day": "2.50",
        })
    }

    #[test]
    fn a_team_is_a_lead_and_its_workers() {
        let team = parse_team(whole().to_string().as_bytes(), &GatewayConfig::default()).unwrap();
        let (name, lead) = team.lead;
        assert_eq!((name.as_str(), lead.agent.as_str(), lead.lead.as_str()), ("market", "market", ""));
        assert_eq!((lead.conduct.as_str(), lead.owner.as_str(), lead.next_run_after), ("background", "ann", 60));
        let told = lead.team.unwrap();
        assert_eq!((told.tokens_per_day, told.cost_per_day.as_str()), (1_000, "2.50"));
        let named: Vec<_> = told.workers.iter().map(|it| (it.agent.as_str(), it.description.as_str())).collect();
        assert_eq!(named, [("market-reader", "reads pages"), ("market-writer", "")]);
        let [(reader, first), (_, second)] = &team.workers[..] else { panic!() };
        assert_eq!((reader.as_str(), first.lead.as_str(), first.tools.len()), ("market-reader", "market", 1));
        assert_eq!((second.conduct.as_str(), second.session_pause, second.mission.as_str()), ("background", 5, ""));
    }

    #[test]
    fn everything_wrong_is_named_by_where_it_stands() {
        let mut body = whole();
        body["lead"] = json!({ "prompt": "", "conduct": "direct" });
        body["workers"] = json!([{ "name": "a", "prompt": "x" }, { "name": "a", "prompt": "x", "tools": "all" }, 7]);
        body["cost_per_day"] = json!("0");
        body["tokens_per_day"] = json!(-1);
        let expected = [
            "lead.prompt",
            "lead.conduct",
            "workers[1].tools",
            "workers[1].name",
            "workers[2]",
            "tokens_per_day",
            "cost_per_day",
        ];
        assert_eq!(wrong(&body), expected);
        assert_eq!(wrong(&json!({})), ["team", "owner", "mission", "lead", "workers"]);
    }

    #[test]
    fn names_of_workers_are_with_the_teams_no_longer_than_any() {
        let mut body = whole();
        body["team"] = json!("t".repeat(60));
        assert_eq!(wrong(&body), ["workers[0].name", "workers[1].name"]);
        body["workers"] = json!([{ "name": "abc", "prompt": "x" }]);
        assert!(parse_team(body.to_string().as_bytes(), &GatewayConfig::default()).is_ok());
        body["workers"] = json!([]);
        assert_eq!(wrong(&body), ["workers"]);
        body["team"] = json!("Market!");
        body["workers"] = json!([{ "name": "A", "prompt": "x" }]);
        assert_eq!(wrong(&body), ["team", "workers[0].name"]);
    }

    #[test]
    fn money_is_a_decimal_number_above_nothing() {
        for good in ["1", "0.000001", "2.50"] {
            assert_eq!(parse_cost(good).as_deref(), Some(good));
        }
        for bad in ["", "0", "0.0000001", "-1", "1e3", ".5", "1."] {
            assert_eq!(parse_cost(bad), None, "{bad}");
        }
    }
}
