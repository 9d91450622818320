//! `GET /v1/teams`: teams, with their agents and what each of them is at. `GET /v1/teams/{team}`: one.

mod budget;
mod creating;

use std::collections::BTreeMap;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use kairo_core::{
    ids::Name,
    prices::{Cost, Price, Prices, Usage},
};
use kairo_proto::{
    v1::{
        AgentProfile, AgentRow, GetTeamResponse, ListTeamsResponse, TaskAtWorkRow, Team, TeamMemberRow, TeamRow,
        TeamSpent,
    },
    words::TeamStatus,
};
use kairo_read_model::{ReadError, Snapshot, SpentOn, TeamStanding};

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, name, value},
    problem::Problem,
};
pub use budget::Budget;
pub use creating::post;
#[cfg(test)]
pub use creating::read;

/// The teams that the caller may see, in the order of their names: all of them, or page by page.
pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Answer<Told<ListTeamsResponse>>, Problem> {
    let (after, limit) = asked.read(|query| read_page(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut agents = query::answered(&gateway, snapshot.agents()).await?;
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    let is_behind = |lead: &&AgentRow| after.as_ref().is_none_or(|after| lead.agent.as_str() > after.as_str());
    let seen = agents.iter().filter(|lead| team_of(lead, &caller).is_some()).filter(is_behind);
    let mut leads: Vec<AgentRow> = seen.cloned().collect();
    let page = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let more = leads.len() > page;
    leads.truncate(page);
    let next_after = leads.last().filter(|_| more).map(|lead| lead.agent.clone());
    let teams = query::answered(&gateway, shown(&gateway, &snapshot, leads, agents)).await?;
    let currency = gateway.config.currency.clone();
    Ok(Answer::of(&snapshot, Told(ListTeamsResponse { teams, currency, next_after, ..Default::default() })))
}

fn read_page(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<Name>, Option<u32>), Problem> {
    let mut fields = Fields::from_query(url_query);
    let after = fields.optional("after", NAME, value(name));
    let limit = query::rows("limit", &mut fields, config);
    fields.complete(|| Some((after, limit)))
}

/// One team.
pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetTeamResponse>>, Problem> {
    let team = query::team(path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let lead = query::answered(&gateway, snapshot.agent(team.as_str())).await?;
    let unknown = || {
        let detail = format!("no team {team} is known; GET /v1/teams lists those there are");
        Problem::not_found(detail).at(snapshot.position())
    };
    let lead = lead.filter(|lead| team_of(lead, &caller).is_some()).ok_or_else(unknown)?;
    let named: Vec<String> = workers(&lead).map(|worker| worker.agent.clone()).collect();
    let team = async {
        let agents = snapshot.agents_named(&named).await?;
        shown(&gateway, &snapshot, vec![lead], agents).await
    };
    let team = query::answered(&gateway, team).await?.pop();
    let currency = gateway.config.currency.clone();
    Ok(Answer::of(&snapshot, Told(GetTeamResponse { team, currency, ..Default::default() })))
}

/// The team that an agent leads, if it leads one and the caller may see it.
fn team_of<'a>(lead: &'a AgentRow, caller: &Caller) -> Option<&'a Team> {
    let profile = lead.profile.as_ref()?;
    profile.team.as_ref().filter(|_| caller.sees(&lead.agent, Some(&profile.owner)))
}

fn workers(lead: &AgentRow) -> impl Iterator<Item = &kairo_proto::v1::TeamWorker> {
    lead.profile.iter().filter_map(|profile| profile.team.as_ref()).flat_map(|team| &team.workers)
}

/// The teams of these leads, whose workers are among these agents, as far as they are known yet.
async fn shown(
    gateway: &Gateway,
    snapshot: &Snapshot,
    leads: Vec<AgentRow>,
    agents: Vec<AgentRow>,
) -> Result<Vec<TeamRow>, ReadError> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let named: Vec<String> = leads.iter().map(|lead| lead.agent.clone()).collect();
    let of_workers = leads.iter().flat_map(workers).map(|worker| worker.agent.clone());
    let members: Vec<String> = named.iter().cloned().chain(of_workers).collect();
    let known = Known {
        agents: agents.into_iter().map(|agent| (agent.agent.clone(), agent)).collect(),
        standings: snapshot.team_standings(&named).await?,
        // Of several the first one counts.
        at_work: snapshot.at_work(&members).await?.into_iter().rev().collect(),
        spent: snapshot.spent_on(today, &members).await?,
        today,
    };
    Ok(leads.into_iter().filter_map(|lead| known.team(lead, &gateway.config.prices)).collect())
}

/// The data behind the status of a set of teams.
struct Known {
    agents: BTreeMap<String, AgentRow>,
    standings: Vec<TeamStanding>,
    at_work: BTreeMap<String, TaskAtWorkRow>,
    spent: Vec<SpentOn>,
    today: Date,
}

impl Known {
    fn team(&self, row: AgentRow, prices: &Prices) -> Option<TeamRow> {
        let lead = self.member(&row, "lead", row.profile.as_ref()?.description.clone());
        let AgentProfile { agent, mission, owner, team, .. } = row.profile?;
        let Team { workers, tokens_per_day, cost_per_day } = team?;
        let spent = self.spent(&agent, workers.iter().map(|worker| worker.agent.as_str()), prices);
        let workers = workers.into_iter().map(|worker| {
            // Its own definition may be read after the lead's.
            let nothing = || AgentRow { agent: worker.agent.clone(), queued: Some(0), ..AgentRow::default() };
            let known = self.agents.get(&worker.agent).cloned().unwrap_or_else(nothing);
            self.member(&known, "worker", worker.description)
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

    fn member(&self, row: &AgentRow, role: &str, description: String) -> TeamMemberRow {
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
    fn spent<'a>(&self, lead: &'a str, workers: impl Iterator<Item = &'a str>, prices: &Prices) -> TeamSpent {
        let members: Vec<&str> = [lead].into_iter().chain(workers).collect();
        let (mut tokens, mut sum) = (0_u64, Some(Cost::default()));
        for spent in self.spent.iter().filter(|spent| members.contains(&spent.agent.as_str())) {
            let (input, output) = (spent.input_tokens, spent.output_tokens);
            tokens = tokens.saturating_add(input).saturating_add(output);
            // What took nothing costs nothing, whatever the model; what an answer took that nobody counted is not known.
            let cost = match input.saturating_add(output) {
                _ if spent.uncounted > 0 => None,
                0 => Some(Cost::default()),
                _ => Price::of(prices, &spent.model).map(|price| {
                    price.cost_of(Usage {
                        input_tokens: input,
                        cached_tokens: spent.cached_tokens,
                        output_tokens: output,
                    })
                }),
            };
            sum = sum.zip(cost).map(|(sum, cost)| sum.plus(cost));
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
        let (agent, owner) = ("market".to_owned(), "ann".to_owned());
        let profile = AgentProfile { agent: agent.clone(), owner, team: Some(team), ..Default::default() };
        AgentRow { agent, profile: Some(profile), queued: Some(2), ..Default::default() }
    }

    fn spent(agent: &str, model: &str, input_tokens: u64) -> SpentOn {
        SpentOn {
            agent: agent.into(),
            model: model.into(),
            input_tokens,
            output_tokens: 0,
            cached_tokens: 0,
            uncounted: 0,
        }
    }

    fn known(spent: Vec<SpentOn>) -> Known {
        let standing = TeamStanding {
            agent: "market".into(),
            status: "paused".into(),
            reason: String::new(),
            over_budget: true,
            changed_at: None,
        };
        let at_work = BTreeMap::from([("market-reader".to_owned(), TaskAtWorkRow::default())]);
        let (agents, today) = (BTreeMap::new(), "2026-11-21".parse().unwrap());
        Known { agents, standings: vec![standing], at_work, spent, today }
    }

    #[test]
    fn a_team_is_shown_with_all_of_its_agents_known_or_not() {
        let team = known(Vec::new()).team(lead(), &Prices::default()).unwrap();
        assert_eq!((team.status.as_str(), team.over_budget, team.reason), ("paused", true, None));
        assert_eq!((team.tokens_per_day, team.cost_per_day), (100, None));
        let at_lead = team.lead.unwrap();
        assert_eq!((at_lead.role.as_str(), at_lead.queued, at_lead.task), ("lead", 2, None));
        let workers: Vec<_> = team.workers.iter().map(|it| (it.agent.as_str(), it.task.is_some())).collect();
        assert_eq!(workers, [("market-reader", true), ("market-writer", false)]);
    }

    #[test]
    fn what_a_team_spent_is_what_its_agents_spent() {
        let prices: Prices = serde_json::from_str(r#"{"m": {"input": "2", "output": "4"}}"#).unwrap();
        let of = |spent| known(spent).team(lead(), &prices).unwrap().spent.unwrap();
        let both = vec![spent("market", "m", 1_000), spent("market-reader", "m", 500), spent("other", "m", 7)];
        let sum = of(both.clone());
        assert_eq!((sum.day.as_str(), sum.tokens, sum.cost.as_deref()), ("2026-11-21", 1_500, Some("0.003")));
        let unpriced = [both, vec![spent("market-writer", "x", 1)]].concat();
        assert_eq!((of(unpriced.clone()).tokens, of(unpriced).cost), (1_501, None));
        assert_eq!(of(vec![spent("market", "x", 0)]).cost.as_deref(), Some("0"));
    }
}
