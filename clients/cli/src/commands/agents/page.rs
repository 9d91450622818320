//! `kairo agents show`: the page of an agent.

use jiff::{Timestamp, tz::TimeZone};
use kairo_core::{ids::Name, profile_document};
use kairo_proto::v1::{AgentProfile, AgentRow, GetAgentResponse};

use super::change_lines::value_text;
use crate::{Error, commands::GatewaySession, rows, steps::one_line, terminal};

pub(super) async fn show_agent(agent: &Name, session: &GatewaySession) -> Result<(), Error> {
    let Some(GetAgentResponse { agent, .. }) = session.get_or_print_json(&format!("v1/agents/{agent}"), &[]).await?
    else {
        return Ok(());
    };
    let page = agent.as_ref().map(|agent| format_agent(agent, Timestamp::now(), &TimeZone::system()));
    session.require_field("agent", page)?.into_iter().try_for_each(terminal::line)?;
    Ok(())
}

/// Returns the page of an agent: the state of its work, and every field of its profile that is set.
fn format_agent(row: &AgentRow, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let none = AgentProfile::default();
    let profile = row.profile.as_ref().unwrap_or(&none);
    let mut lines = vec![row.agent.clone()];
    lines.extend(Some(one_line(&profile.description)).filter(|text| !text.is_empty()));
    lines.push(format!(
        "defined {}; earlier versions: kairo agents history {}",
        rows::format_time(row.defined_at, zone),
        row.agent
    ));
    if profile.team.is_some() {
        lines.push(format!("leads a team: kairo teams show {}", row.agent));
    }
    if !profile.lead.is_empty() {
        lines.push(format!("works for the team {0}: kairo teams show {0}", profile.lead));
    }
    let oldest = rows::format_elapsed(row.oldest_queued_at, None, now);
    let oldest = oldest.map(|waits| format!(", the oldest for {waits}")).unwrap_or_default();
    lines.extend(row.queued.map(|queued| format!("queued tasks: {queued}{oldest}")));
    lines.extend(row.next_run_at.map(|next| format!("next run {}", rows::format_time(Some(next), zone))));
    lines.extend(
        row.last_completed_at.map(|last| format!("last at work until {}", rows::format_time(Some(last), zone))),
    );
    lines.push(String::new());
    lines.extend(format_profile(profile));
    lines
}

/// Each field with its value; a value of several lines stands below its field.
fn format_profile(profile: &AgentProfile) -> Vec<String> {
    let fields = profile_document::fields(profile);
    // The lead and the team have lines of their own above.
    let shown: Vec<_> = fields.iter().filter(|(field, _)| !["description", "lead"].contains(&field.as_str())).collect();
    let width = shown.iter().map(|(field, _)| field.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (field, value) in shown {
        let text = value_text(value);
        if !text.contains('\n') {
            lines.push(format!("{field:width$}  {text}"));
            continue;
        }
        lines.push(field.clone());
        lines.extend(text.lines().map(|line| format!("  {line}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_shown_with_its_work_and_its_whole_profile() {
        let row: AgentRow = serde_json::from_value(json!({
            "agent": "scout", "sequence": 7, "defined_at": "2026-01-01T00:00:00Z", "queued": 2,
            "profile": {
                "agent": "scout", "description": "looks", "mission": "Look out.", "owner": "ann", "prompt": "Be\nkeen.",
                "tools": ["http.get", "email.*"], "caps": { "tokens_per_day": "5", "since": "2026-01-01T00:00:00Z" },
            },
            "oldest_queued_at": "2026-01-01T00:01:00Z", "next_run_at": "2026-01-01T02:00:00Z",
        }))
        .unwrap();
        let now = "2026-01-01T00:02:05Z".parse().unwrap();
        let text = format_agent(&row, now, &TimeZone::UTC).join("\n");
        assert_eq!(
            text,
            "scout\nlooks\ndefined 2026-01-01 00:00:00; earlier versions: kairo agents history scout\n\
             queued tasks: 2, the oldest for 1m 5s\nnext run 2026-01-01 02:00:00\n\n\
             caps     {\"tokens_per_day\":5}\nmission  Look out.\nowner    ann\nprompt\n  Be\n  keen.\n\
             tools    http.get email.*"
        );
    }
}
