//! `kairo watch --team`: what happens to all agents of a team, a line each.

use std::process::ExitCode;

use futures::{StreamExt, stream::FuturesUnordered};
use jiff::tz::TimeZone;
use kairo_core::ids::Name;
use kairo_proto::v1::{GetTeamResponse, TeamRow};
use serde_json::json;

use crate::{
    Error,
    client::{ClientError, EventFilter, Follow, Told},
    commands::Session,
    terminal,
    watch::{Happening, Place},
};

/// Follows each of its agents as it is followed alone: whoever may watch only some of them is told so.
pub(super) async fn watch(team: &Name, after: Option<Place>, session: &Session) -> Result<ExitCode, Error> {
    let shown: GetTeamResponse = session.client.get(&format!("v1/teams/{team}"), &[]).await?;
    let position = shown.position;
    let members = session.needed("team", shown.team.as_ref().map(members))?;
    let width = members.iter().map(|member| member.as_str().len()).max().unwrap_or_default();
    let begin = after.map_or(position, |after| after.sequence.saturating_sub(1));
    let follows = members.into_iter().map(|agent| {
        let filter = EventFilter { agent: Some(agent.clone()), after: Some(begin), ..EventFilter::default() };
        next(agent, session.client.follow(filter, false))
    });
    let mut follows: FuturesUnordered<_> = follows.collect();
    while let Some((agent, follow, told)) = follows.next().await {
        if let Told::Event(event) = told?
            && let Some(happening) = Happening::of(&event, agent.as_str())
            && after.is_none_or(|after| happening.place > after)
        {
            happened(&agent, width, &happening, session.json)?;
        }
        follows.push(next(agent, follow));
    }
    Ok(ExitCode::SUCCESS)
}

fn members(team: &TeamRow) -> Vec<Name> {
    let members = team.lead.iter().chain(&team.workers);
    members.filter_map(|member| Name::parse(&member.agent).ok()).collect()
}

/// The next that an agent's stream tells.
async fn next(agent: Name, mut follow: Follow) -> (Name, Follow, Result<Told, ClientError>) {
    let told = follow.next().await;
    (agent, follow, told)
}

fn happened(agent: &Name, width: usize, happening: &Happening, json: bool) -> Result<(), Error> {
    match json {
        true => terminal::json(&json!({ "agent": agent.as_str(), "happening": happening }))?,
        false => terminal::line(format!("{:<width$}  {}", agent.as_str(), happening.line(&TimeZone::system())))?,
    }
    Ok(())
}
