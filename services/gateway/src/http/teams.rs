//! `GET /v1/teams`: teams, with their agents and what each of them is at. `GET /v1/teams/{team}`: one.

mod budget;
mod team_definition;

use std::collections::BTreeMap;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use kairo_core::{
    ids::Name,
    prices::{ModelPrice, ModelPrices, TokenCost, TokenCounts},
};
use kairo_proto::{
    v1::{
        AgentProfile, AgentRow, GetTeamResponse, ListTeamsResponse, TaskAtWorkRow, Team, TeamMemberRow, TeamRow,
        TeamSpent,
    },
    words::TeamStatus,
};
use kairo_read_model::{DailyModelUsage, ReadError, ReadSnapshot, TeamStanding};

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
pub use budget::BudgetChange;
pub use team_definition::create_team;
#[cfg(test)]
pub use team_definition::parse_team;

/// The teams that the caller may see, in the order of their names: all of them, or page by page.
pub async fn list_teams(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListTeamsResponse>>, Problem> {
    let (after, limit) = asked.parse_with(|query| parse_page_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut agents = query::await_answer(&gateway, snapshot.list_agents()).await?;
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    let is_behind = |lead: &&AgentRow| after.as_ref().is_none_or(|after| lead.agent.as_str() > after.as_str());
    let seen = agents.iter().filter(|lead| visible_team(lead, &caller).is_some()).filter(is_behind);
    let mut leads: Vec<AgentRow> = seen.cloned().collect();
    let page = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let more = leads.len() > page;
    leads.truncate(page);
    let next_after = leads.last().filter(|_| more).map(|lead| lead.agent.clone());
    let teams = query::await_answer(&gateway, team_rows(&gateway, &snapshot, leads, agents)).await?;
    let currency = gateway.config.currency.clone();
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListTeamsResponse { teams, currency, next_after, ..Default::default() }),
    ))
}

fn parse_page_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<Name>, Option<u32>), Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let after = fields.optional("after", NAME, query_value(parse_name));
    let limit = query::parse_row_count("limit", &mut fields, config);
    fields.complete(|| Some((after, limit)))
}

/// One team.
pub async fn get_team(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetTeamResponse>>, Problem> {
    let team = query::path_team(path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let lead = query::await_answer(&gateway, snapshot.find_agent(team.as_str())).await?;
    let unknown = || {
        let detail = format!("no team {team} is known; GET /v1/teams lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    let lead = lead.filter(|lead| visible_team(lead, &caller).is_some()).ok_or_else(unknown)?;
    let named: Vec<String> = team_workers(&lead).map(|worker| worker.agent.clone()).collect();
    let team = async {
        let agents = snapshot.find_agents(&named).await?;
        team_rows(&gateway, &snapshot, vec![lead], agents).await
    };
    let team = query::await_answer(&gateway, team).await?.pop();
    let currency = gateway.config.currency.clone();
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetTeamResponse { team, currency, ..Default::default() }),
    ))
}

/// The team that an agent leads, if it leads one and the caller may see it.
fn visible_team<'a>(lead: &'a AgentRow, caller: &Caller) -> Option<&'a Team> {
    let profile = lead.profile.as_ref()?;
    profile.team.as_ref().filter(|_| caller.can_see(&lead.agent, Some(&profile.owner)))
}

fn team_workers(lead: &AgentRow) -> impl Iterator<Item = &kairo_proto::v1::TeamWorker> {
    lead.profile.iter().filter_map(|profile| profile.team.as_ref()).flat_map(|team| &team.workers)
}

/// The teams of these leads, whose workers are among these agents, as far as they are known yet.
async fn team_rows(
    gateway: &Gateway,
    snapshot: &ReadSnapshot,
    leads: Vec<AgentRow>,
    agents: Vec<AgentRow>,
) -> Result<Vec<TeamRow>, ReadError> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let named: Vec<String> = leads.iter().map(|lead| lead.agent.clone()).collect();
    let of_workers = leads.iter().flat_map(team_workers).map(|worker| worker.agent.clone());
    let members: Vec<String> = named.iter().cloned().chain(of_workers).collect();
    let known = TeamSnapshot {
        agents: agents.into_iter().map(|agent| (agent.agent.clone(), agent)).collect(),
        standings: snapshot.team_standings(&named).await?,
        // Of several the first one counts.
        at_work: snapshot.tasks_at_work(&members).await?.into_iter().rev().collect(),
        spent: snapshot.daily_usage(today, &members).await?,
        today,
    };
    Ok(leads.into_iter().filter_map(|lead| known.team_row(lead, &gateway.config.prices)).collect())
}

/// The data behind the status of a set of teams.
struct TeamSnapshot {
    agents: BTreeMap<String, AgentRow>,
    standings: Vec<TeamStanding>,
    at_work: BTreeMap<String, TaskAtWorkRow>,
    spent: Vec<DailyModelUsage>,
    today: Date,
}

impl TeamSnapshot {
    fn team_row(&self, row: AgentRow, prices: &ModelPrices) -> Option<TeamRow> {
        let lead = self.member_row(&row, "lead", row.profile.as_ref()?.description.clone());
        let AgentProfile { agent, mission, owner, team, .. } = row.profile?;
        let Team { workers, tokens_per_day, cost_per_day } = team?;
        let spent = self.spent_today(&agent, workers.iter().map(|worker| worker.agent.as_str()), prices);
        let workers = workers.into_iter().map(|worker| {
            // Its own definition may be read after the lead's.
            let nothing = || AgentRow { agent: worker.agent.clone(), queued: Some(0), ..AgentRow::default() };
            let known = self.agents.get(&worker.agent).cloned().unwrap_or_else(nothing);
            self.member_row(&known, "worker", worker.description)
        });
        let standing = self.standings.iter().find(|standing| standing.agent == agent);
        let active = || TeamStatus::Active.known_word().to_owned();
        Some(TeamRow {
            owner,
            mission,
            status: standing.map_or_else(active, |standing| standing.status.clone()),
            reason: standing.map(|standing| standing.reason.clone()).filter(|reason| !reason.is_empty()),
            over_budget: standing.is_some_and(|standing| standing.over_budget),
            changed_at: standing.and_then(|standing| standing.changed_at),
            tokens_per_day,
            cost_per_day: Some(cost_per_day).filter(|cost| !cost.is_empty()),
            spent: Some(spent),
            lead: Some(lead),
            workers: workers.collect(),
            sequence: row.sequence,
            defined_at: row.defined_at,
            team: agent,
        })
    }

    fn member_row(&self, row: &AgentRow, role: &str, description: String) -> TeamMemberRow {
        TeamMemberRow {
            agent: row.agent.clone(),
            description,
            role: role.to_owned(),
            task: self.at_work.get(&row.agent).cloned(),
            queued: row.queued.unwrap_or_default(),
            oldest_queued_at: row.oldest_queued_at,
            next_run_at: row.next_run_at,
            last_completed_at: row.last_completed_at,
        }
    }

    /// Returns the spending of its agents today; the cost is none as soon as one of their models has no price.
    fn spent_today<'a>(
        &self,
        lead: &'a str,
        workers: impl Iterator<Item = &'a str>,
        prices: &ModelPrices,
    ) -> TeamSpent {
        let members: Vec<&str> = [lead].into_iter().chain(workers).collect();
        let mut tokens = 0_u64;
        let mut sum = Some(TokenCost::default());
        for spent in self.spent.iter().filter(|spent| members.contains(&spent.agent.as_str())) {
            let input = spent.input_tokens;
            let output = spent.output_tokens;
            tokens = tokens.saturating_add(input).saturating_add(output);
            // What took nothing costs nothing, whatever the model; what an answer took that nobody counted is not known.
            let cost = match input.saturating_add(output) {
                _ if spent.uncounted > 0 => None,
                0 => Some(TokenCost::default()),
                _ => ModelPrice::of_model(prices, &spent.model).map(|price| {
                    price.cost_of(TokenCounts {
                        input_tokens: input,
                        cached_tokens: spent.cached_tokens,
                        output_tokens: output,
                    })
                }),
            };
            sum = sum.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
        }
        TeamSpent { day: self.today.to_string(), tokens, cost: sum.map(|cost| cost.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::TeamWorker;

    use super::*;

    fn lead() -> AgentRow {
        let workers =
            ["market-reader", "market-writer"].map(|agent| TeamWorker { agent: agent.into(), ..Default::default() });
        let team = Team { workers: workers.into(), tokens_per_day: 100, cost_per_day: String::new() };
        let agent = "market".to_owned();
        let owner = "ann".to_owned();
        let profile = AgentProfile { agent: agent.clone(), owner, team: Some(team), ..Default::default() };
        AgentRow { agent, profile: Some(profile), queued: Some(2), ..Default::default() }
    }

    fn spent(agent: &str, model: &str, input_tokens: u64) -> DailyModelUsage {
        DailyModelUsage {
            agent: agent.into(),
            model: model.into(),
            input_tokens,
            output_tokens: 0,
            cached_tokens: 0,
            uncounted: 0,
        }
    }

    fn team_snapshot(spent: Vec<DailyModelUsage>) -> TeamSnapshot {
        let standing = TeamStanding {
            agent: "market".into(),
            status: "paused".into(),
            reason: String::new(),
            over_budget: true,
            changed_at: None,
        };
        let at_work = BTreeMap::from([("market-reader".to_owned(), TaskAtWorkRow::default())]);
        let agents = BTreeMap::new();
        let today = "2026-11-21".parse().unwrap();
        TeamSnapshot { agents, standings: vec![standing], at_work, spent, today }
    }

    #[test]
    fn a_team_is_shown_with_all_of_its_agents_known_or_not() {
        let team = team_snapshot(Vec::new()).team_row(lead(), &ModelPrices::default()).unwrap();
        assert_eq!((team.status.as_str(), team.over_budget, team.reason), ("paused", true, None));
        assert_eq!((team.tokens_per_day, team.cost_per_day), (100, None));
        let at_lead = team.lead.unwrap();
        assert_eq!((at_lead.role.as_str(), at_lead.queued, at_lead.task), ("lead", 2, None));
        let workers: Vec<_> = team.workers.iter().map(|it| (it.agent.as_str(), it.task.is_some())).collect();
        assert_eq!(workers, [("market-reader", true), ("market-writer", false)]);
    }

    #[test]
    fn what_a_team_spent_is_what_its_agents_spent() {
        let prices: ModelPrices = serde_json::from_str(r#"{"m": {"input": "2", "output": "4"}}"#).unwrap();
        let of = |spent| team_snapshot(spent).team_row(lead(), &prices).unwrap().spent.unwrap();
        let both = vec![spent("market", "m", 1_000), spent("market-reader", "m", 500), spent("other", "m", 7)];
        let sum = of(both.clone());
        assert_eq!((sum.day.as_str(), sum.tokens, sum.cost.as_deref()), ("2026-11-21", 1_500, Some("0.003")));
        let unpriced = [both, vec![spent("market-writer", "x", 1)]].concat();
        assert_eq!((of(unpriced.clone()).tokens, of(unpriced).cost), (1_501, None));
        assert_eq!(of(vec![spent("market", "x", 0)]).cost.as_deref(), Some("0"));
    }
}
