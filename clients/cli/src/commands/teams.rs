//! `kairo teams`

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::ids::Name;
use kairo_proto::{
    v1::{CreateTeamResponse, GetTeamResponse, ListTeamsResponse, TeamMemberRow, TeamRow},
    words::OrderedCommand,
};
use serde_json::Value;

use super::{
    GatewaySession, agents,
    id_prefix::short_id,
    name,
    orders::{OrderOptions, STATUS, TeamBudget, WaitOptions},
};
use crate::{
    Error,
    client::{NewLead, NewTeam, NewWorker},
    rows,
    steps::one_line,
    table::table,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo teams
  kairo teams create market --owner ann --mission 'Tell ann when a competitor changes its prices.' \\
      --lead-prompt 'You lead a team.' --worker 'reader=You read pages.' --worker 'writer=You write.' \\
      --tokens-per-day 2000000 --cost-per-day 2.50
  kairo teams create --file team.json
  kairo teams show market
  kairo teams pause market
  kairo teams resume market --budget 3000000";

/// List the teams, show one, make one, or let one rest
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TeamsArgs {
    #[command(subcommand)]
    command: Option<TeamsCommand>,
}

#[derive(Debug, Subcommand)]
enum TeamsCommand {
    /// Every team; this is also what no subcommand does
    List,
    /// Show a team, and what its agents are at
    Show {
        /// The team
        #[arg(value_parser = name, value_name = "NAME")]
        team: Name,
    },
    /// Create a team, or change what it is made from
    Create(Box<TeamCreateArgs>),
    /// Let a team begin nothing until it is resumed
    #[command(after_help = STATUS)]
    Pause(TeamOrderArgs),
    /// Go on with a team that rests
    #[command(after_help = STATUS)]
    Resume(TeamResumeArgs),
    /// Let a team begin nothing any more, for good
    #[command(after_help = STATUS)]
    Archive(TeamOrderArgs),
}

#[derive(Debug, Args)]
struct TeamCreateArgs {
    /// The team, which is also the name of the agent that leads it
    #[arg(
        value_parser = name, value_name = "NAME", required_unless_present = "file",
        requires = "owner", requires = "mission", requires = "lead_prompt", requires = "workers"
    )]
    team: Option<Name>,
    /// All of it, as JSON of POST /v1/teams; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "team", "owner", "mission", "lead_prompt", "workers", "time_zone", "next_run_after", "tokens_per_day", "cost_per_day",
    ])]
    file: Option<PathBuf>,
    /// The user whose mission it is, who is told what is worth telling
    #[arg(long, value_parser = name, value_name = "NAME")]
    owner: Option<Name>,
    /// Mission of the team
    #[arg(long, value_name = "TEXT")]
    mission: Option<String>,
    /// Prompt of the agent that leads it
    #[arg(long, value_name = "TEXT")]
    lead_prompt: Option<String>,
    /// An agent that works for it, NAME=PROMPT; can be repeated
    #[arg(long = "worker", value_parser = worker, value_name = "NAME=PROMPT")]
    workers: Vec<NewWorker>,
    /// The time zone of its days; without it, UTC
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Seconds from the end of its work until it asks itself what to do for its mission; without it, 3600
    #[arg(long, value_name = "SECONDS")]
    next_run_after: Option<u32>,
    /// Tokens that all of it may spend in a day; without it, any number
    #[arg(long, value_name = "N")]
    tokens_per_day: Option<u64>,
    /// Money that all of it may spend in a day, in the currency of prices; without it, any amount
    #[arg(long, value_name = "AMOUNT")]
    cost_per_day: Option<String>,
}

#[derive(Debug, Args)]
struct TeamOrderArgs {
    /// The team
    #[arg(value_parser = name, value_name = "NAME")]
    team: Name,
    /// User who gives the order; without it, its owner
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    #[command(flatten)]
    patience: WaitOptions,
}

#[derive(Debug, Args)]
struct TeamResumeArgs {
    #[command(flatten)]
    order: TeamOrderArgs,
    /// Tokens that all of it may spend in a day from now on, 0 for any number; without it, as many as before
    #[arg(long, visible_alias = "tokens-per-day", value_name = "TOKENS")]
    budget: Option<u64>,
    /// Money that all of it may spend in a day from now on, in the currency of prices; without it, as much as before
    #[arg(long, value_name = "AMOUNT")]
    cost_per_day: Option<String>,
}

fn worker(text: &str) -> Result<NewWorker, String> {
    let (called, prompt) = text.split_once('=').ok_or("expected NAME=PROMPT, such as 'reader=You read pages.'")?;
    Ok(NewWorker { name: name(called)?.to_string(), prompt: prompt.to_owned() })
}

pub(super) async fn run(arguments: TeamsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None | Some(TeamsCommand::List) => list_teams(session).await,
        Some(TeamsCommand::Show { team }) => show_team(&team, session).await,
        Some(TeamsCommand::Create(create)) => create.create_team(session).await,
        Some(TeamsCommand::Pause(order)) => order.submit(&OrderedCommand::Pause, TeamBudget::default(), session).await,
        Some(TeamsCommand::Resume(TeamResumeArgs { order, budget, cost_per_day })) => {
            let budget = TeamBudget { tokens_per_day: budget, cost_per_day };
            order.submit(&OrderedCommand::Resume, budget, session).await
        }
        Some(TeamsCommand::Archive(order)) => {
            order.submit(&OrderedCommand::Archive, TeamBudget::default(), session).await
        }
    }
}

async fn list_teams(session: &GatewaySession) -> Result<ExitCode, Error> {
    if let Some(ListTeamsResponse { teams, .. }) = session.get_or_print_json("v1/teams", &[]).await? {
        format_teams(&teams, &TimeZone::system()).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_teams(teams: &[TeamRow], zone: &TimeZone) -> Vec<String> {
    let rows = teams.iter().map(|team| {
        let members = team.lead.iter().chain(&team.workers);
        let queued: u64 = members.map(|member| member.queued).sum();
        let next = team.lead.as_ref().and_then(|lead| lead.next_run_at);
        [
            team.team.clone(),
            team.owner.clone(),
            team.status.clone(),
            team.workers.len().to_string(),
            queued.to_string(),
            rows::format_time(next, zone),
            one_line(&team.mission),
        ]
    });
    table(["team", "owner", "status", "workers", "queued", "next run", "mission"], rows)
}

async fn show_team(team: &Name, session: &GatewaySession) -> Result<ExitCode, Error> {
    let Some(GetTeamResponse { team, currency, .. }) =
        session.get_or_print_json(&format!("v1/teams/{team}"), &[]).await?
    else {
        return Ok(ExitCode::SUCCESS);
    };
    let page = team.as_ref().map(|team| format_team(team, &currency, Timestamp::now(), &TimeZone::system()));
    session.require_field("team", page)?.into_iter().try_for_each(terminal::row)?;
    Ok(ExitCode::SUCCESS)
}

/// A team, what it has spent, and what each of its agents is at.
fn format_team(team: &TeamRow, currency: &str, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let why = team.reason.as_deref().map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    let until = if team.over_budget { ", until the day is over" } else { "" };
    let mut lines = vec![
        team.team.clone(),
        format!("mission of {}: {}", team.owner, one_line(&team.mission)),
        format!("{}{until}{why}", team.status),
        describe_spending(team, currency),
        String::new(),
    ];
    let members = team.lead.iter().chain(&team.workers);
    let rows = members.map(|member| {
        [
            member.agent.clone(),
            member.role.clone(),
            current_work(member, now),
            queued_work(member, now),
            rows::format_time(member.next_run_at, zone),
            rows::format_time(member.last_completed_at, zone),
            one_line(&member.description),
        ]
    });
    lines.extend(table(["agent", "role", "at work on", "queued", "next run", "last at work", "description"], rows));
    lines
}

/// Describes what was spent today, and the budget.
fn describe_spending(team: &TeamRow, currency: &str) -> String {
    let spent = team.spent.clone().unwrap_or_default();
    let most = if team.tokens_per_day > 0 { format!(" of {}", team.tokens_per_day) } else { String::new() };
    let cost = spent.cost.as_deref().unwrap_or("an unknown amount");
    let most_cost = team.cost_per_day.as_deref().map(|cost| format!(" of {cost}")).unwrap_or_default();
    format!("spent on {} (UTC): {}{most} tokens, {cost}{most_cost} {currency}", spent.day, spent.tokens)
}

fn current_work(member: &TeamMemberRow, now: Timestamp) -> String {
    let Some(task) = &member.task else { return "-".to_owned() };
    let since = rows::format_elapsed(task.since, None, now).map(|since| format!(" for {since}")).unwrap_or_default();
    format!("{} ({}){since}", one_line(&task.title), short_id(&task.task_id))
}

fn queued_work(member: &TeamMemberRow, now: Timestamp) -> String {
    let oldest = rows::format_elapsed(member.oldest_queued_at, None, now);
    format!("{}{}", member.queued, oldest.map(|waits| format!(", oldest {waits}")).unwrap_or_default())
}

impl TeamCreateArgs {
    async fn create_team(self, session: &GatewaySession) -> Result<ExitCode, Error> {
        let body = self.into_body()?;
        let answer: Value = session.client.post("v1/teams", &body).await?;
        if session.json {
            terminal::json(&answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        let CreateTeamResponse { team, agents, .. } = session.parse_answer(answer)?;
        let agents = agents.join(", ");
        terminal::line(format!("{team} is there: {agents}; see what it does: kairo teams show {team}"))?;
        Ok(ExitCode::SUCCESS)
    }

    fn into_body(self) -> Result<Value, Error> {
        let unreadable = |error: serde_json::Error| Error::Advice(format!("the team is not JSON: {error}"));
        if let Some(file) = self.file {
            return serde_json::from_str(&agents::read_file_or_stdin(&file)?).map_err(unreadable);
        }
        let lead = NewLead {
            prompt: self.lead_prompt.unwrap_or_default(),
            time_zone: self.time_zone,
            next_run_after: self.next_run_after,
        };
        let team = NewTeam {
            team: self.team.map(|team| team.to_string()).unwrap_or_default(),
            owner: self.owner.map(|owner| owner.to_string()).unwrap_or_default(),
            mission: self.mission.unwrap_or_default(),
            lead,
            workers: self.workers,
            tokens_per_day: self.tokens_per_day,
            cost_per_day: self.cost_per_day,
        };
        serde_json::to_value(team).map_err(unreadable)
    }
}

impl TeamOrderArgs {
    async fn submit(
        self,
        word: &OrderedCommand,
        budget: TeamBudget,
        session: &GatewaySession,
    ) -> Result<ExitCode, Error> {
        let user = match self.user {
            Some(user) => user,
            None => fetch_owner(&self.team, session).await?,
        };
        let manner = OrderOptions { user, patience: self.patience };
        manner.order_team(self.team.to_string(), word, budget, session).await
    }
}

async fn fetch_owner(team: &Name, session: &GatewaySession) -> Result<Name, Error> {
    let shown: GetTeamResponse = session.client.get(&format!("v1/teams/{team}"), &[]).await?;
    let owner = shown.team.and_then(|team| Name::parse(&team.owner).ok());
    session.require_field("team", owner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn team() -> TeamRow {
        serde_json::from_value(json!({
            "team": "market", "owner": "ann", "mission": "Know\nthem.", "status": "paused", "reason": "enough",
            "over_budget": true, "tokens_per_day": 1000, "cost_per_day": "2.50", "sequence": 7,
            "defined_at": "2026-01-01T00:00:00Z",
            "spent": { "day": "2026-01-01", "tokens": 1500, "cost": "0.003" },
            "lead": { "agent": "market", "role": "lead", "queued": 0, "next_run_at": "2026-01-01T02:00:00Z" },
            "workers": [{
                "agent": "market-reader", "description": "reads pages", "role": "worker", "queued": 2,
                "oldest_queued_at": "2026-01-01T00:00:00Z",
                "task": { "task_id": "1f0c2ab4-0000-0000-0000-000000000001", "title": "Read", "since": "2026-01-01T00:01:00Z" },
            }],
        }))
        .unwrap()
    }

    #[test]
    fn a_team_is_shown_with_what_its_agents_are_at() {
        let text = format_team(&team(), "EUR", "2026-01-01T00:02:05Z".parse().unwrap(), &TimeZone::UTC).join("\n");
        for part in [
            "market\nmission of ann: Know them.\npaused, until the day is over: enough\n",
            "spent on 2026-01-01 (UTC): 1500 of 1000 tokens, 0.003 of 2.50 EUR\n",
            "Read (1f0c2ab4) for 1m 5s",
            "2, oldest 2m 5s",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let line = format_teams(&[team()], &TimeZone::UTC).pop().unwrap();
        assert_eq!(line, "market  ann    paused  1        2       2026-01-01 02:00:00  Know them.");
    }

    #[test]
    fn a_worker_is_a_name_and_a_prompt() {
        let read = worker("reader=You read a=b.").unwrap();
        assert_eq!((read.name.as_str(), read.prompt.as_str()), ("reader", "You read a=b."));
        assert!(worker("reader").is_err() && worker("The reader=x").is_err());
    }
}
