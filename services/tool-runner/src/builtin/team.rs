//! `team.members`: the people in the agent's contacts.

mod card;
#[cfg(test)]
mod differential;

use std::num::NonZeroUsize;

use serde::Deserialize;
use serde_json::{Value, json};

pub use self::card::{ContactCard, members_of_team};
use super::parse_args;
use super::workspace::{Desk, FileToolDefinition, FolderScan, no_outside_sources, result_limit, set_field};
use crate::tool::{CallResult, ToolError};

/// People returned when a call does not say how many.
const DEFAULT_RESULTS: usize = 50;
/// People that one call holds in memory.
const MAX_HELD: usize = 20_000;

pub const TOOLS: [FileToolDefinition; 1] = [FileToolDefinition {
    name: "team.members",
    description: "People in the contacts: name, role, email, phone, organization, teams and note. team keeps those of a department, category or group; query those with all its words anywhere in their entry.",
    schema,
    work,
    outside: no_outside_sources,
}];

fn schema() -> Value {
    let text =
        |description: &str| json!({"type": "string", "minLength": 1, "maxLength": 200, "description": description});
    json!({
        "type": "object",
        "properties": {
            "query": text("Such as part of a name, a role or an address"),
            "team": text("Name of a department, category or group, such as marketing"),
            "limit": {"type": "integer", "minimum": 1, "description": "People returned, default 50"},
        },
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
struct TeamMembersArgs {
    query: Option<String>,
    team: Option<String>,
    limit: Option<NonZeroUsize>,
}

fn work(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: TeamMembersArgs = parse_args(args)?;
    let (cards, read) = load_contacts(desk)?;
    let people: Vec<&ContactCard> = match &args.team {
        Some(team) => members_of_team(&cards, team),
        None => cards.iter().filter(|card| card.is_person()).collect(),
    };
    let fits = |card: &&&ContactCard| args.query.as_ref().is_none_or(|query| card.matches(query));
    let found: Vec<&ContactCard> = people.iter().filter(fits).copied().collect();
    let members =
        desk.take_fitting(found.iter().map(|card| render_card(card)), result_limit(args.limit, DEFAULT_RESULTS, desk));
    let mut result = json!({"members": members, "total": found.len()});
    read.report_omissions(&mut result);
    Ok(result)
}

/// All contacts of the agent, by name.
pub fn load_contacts(desk: &Desk<'_>) -> Result<(Vec<ContactCard>, FolderScan), ToolError> {
    let mut cards = Vec::new();
    let mut cut = false;
    let mut read = desk.each_file("contacts", ".vcf", |_, file| {
        let (more, whole) = card::read(&file.text());
        let room = MAX_HELD.saturating_sub(cards.len());
        cut |= more.len() > room;
        cards.extend(more.into_iter().take(room));
        whole
    })?;
    read.incomplete |= cut;
    cards.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((cards, read))
}

fn render_card(card: &ContactCard) -> Value {
    let mut json = json!({"name": card.name});
    for (key, text) in [
        ("role", card.role.as_ref()),
        ("email", card.emails.first()),
        ("phone", card.phones.first()),
        ("organization", card.organization.as_ref()),
        ("note", card.note.as_ref()),
    ] {
        if let Some(text) = text {
            set_field(&mut json, key, text.as_str());
        }
    }
    for (key, texts) in [("teams", card.teams.as_slice()), ("further_emails", card.emails.get(1..).unwrap_or_default())]
    {
        if !texts.is_empty() {
            set_field(&mut json, key, json!(texts));
        }
    }
    json
}
