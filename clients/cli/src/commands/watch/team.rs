//! `kairo watch --team`: what happens to all agents of a team, a line each.

use std::process::ExitCode;

use futures::{StreamExt, stream::FuturesUnordered};
use jiff::tz::TimeZone;
use kairo_core::ids::Name;
use kairo_proto::v1::{GetTeamResponse, TeamRow};
use serde_json::json;

use crate::{
    Error,
    client::{ClientError, EventFilter, EventFollower, StreamUpdate},
    commands::GatewaySession,
    terminal,
    watch::{EventPosition, Happening},
};

/// Follows each of its agents as it is followed alone: whoever may watch only some of them is told so.
pub(super) async fn watch_team(
    team: &Name,
    after: Option<EventPosition>,
    session: &GatewaySession,
) -> Result<ExitCode, Error> {
    let shown: GetTeamResponse = session.client.get(&format!("v1/teams/{team}"), &[]).await?;
    let position = shown.position;
    let members = session.require_field("team", shown.team.as_ref().map(team_members))?;
    let width = members.iter().map(|member| member.as_str().len()).max().unwrap_or_default();
    let begin = after.map_or(position, |after| after.sequence.saturating_sub(1));
    let follows = members.into_iter().map(|agent| {
        let filter = EventFilter { agent: Some(agent.clone()), after: Some(begin), ..EventFilter::default() };
        next_from_stream(agent, session.client.follow(filter, false))
    });
    let mut follows: FuturesUnordered<_> = follows.collect();
    while let Some((agent, follow, told)) = follows.next().await {
        if let StreamUpdate::Event(event) = told?
            && let Some(happening) = Happening::from_event(&event, agent.as_str())
            && after.is_none_or(|after| happening.place > after)
        {
            print_happening(&agent, width, &happening, session.json)?;
        }
        follows.push(next_from_stream(agent, follow));
    }
    Ok(ExitCode::SUCCESS)
}

fn team_members(team: &TeamRow) -> Vec<Name> {
    let members = team.lead.iter().chain(&team.workers);
    members.filter_map(|member| Name::parse(&member.agent).ok()).collect()
}

/// The next that an agent's stream tells.
async fn next_from_stream(
    agent: Name,
    mut follow: EventFollower,
) -> (Name, EventFollower, Result<StreamUpdate, ClientError>) {
    let told = follow.next().await;
    (agent, follow, told)
}

fn print_happening(agent: &Name, width: usize, happening: &Happening, json: bool) -> Result<(), Error> {
    match json {
        true => terminal::json(&json!({ "agent": agent.as_str(), "happening": happening }))?,
        false => terminal::line(format!("{:<width$}  {}", agent.as_str(), happening.line(&TimeZone::system())))?,
    }
    Ok(())
}
