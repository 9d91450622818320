//! `kairo agents history`: the versions of an agent.

use clap::Args;
use jiff::tz::TimeZone;
use kairo_core::ids::Name;
use kairo_proto::v1::{AgentVersionRow, ListAgentVersionsResponse};

use super::change_lines::format_changes;
use crate::{
    Error,
    commands::{GatewaySession, name},
    event_lines::printable,
    rows,
    table::table,
    terminal,
};

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// The agent
    #[arg(value_parser = name, value_name = "NAME")]
    agent: Name,
    /// Versions to show, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Only versions before this position in the log
    #[arg(long, value_name = "POSITION")]
    before: Option<u64>,
    /// Show each changed field with its value before and after
    #[arg(long)]
    diff: bool,
}

impl HistoryArgs {
    pub(super) async fn run(self, session: &GatewaySession) -> Result<(), Error> {
        let mut query = vec![("limit", self.limit.to_string())];
        query.extend(self.before.map(|before| ("before", before.to_string())));
        let path = format!("v1/agents/{}/versions", self.agent);
        let Some(answer) = session.get_or_print_json::<ListAgentVersionsResponse>(&path, &query).await? else {
            return Ok(());
        };
        let zone = TimeZone::system();
        match self.diff {
            true => answer.versions.iter().flat_map(|row| format_version(row, &zone)).try_for_each(terminal::line)?,
            false => format_versions(&answer.versions, &zone).into_iter().try_for_each(terminal::row)?,
        }
        if let Some(before) = answer.next_before {
            terminal::line(format!("older versions: kairo agents history {} --before {before}", self.agent))?;
        } else if !answer.is_complete {
            terminal::line("older versions are no longer in the log")?;
        }
        Ok(())
    }
}

fn format_versions(versions: &[AgentVersionRow], zone: &TimeZone) -> Vec<String> {
    let rows = versions.iter().map(|row| {
        let fields: Vec<String> = row.changes.iter().map(|change| printable(&change.field)).collect();
        [
            row.sequence.to_string(),
            version_name(row),
            rows::format_time(row.defined_at, zone),
            printable(row.entered_by.as_deref().unwrap_or_default()),
            fields.join(" "),
        ]
    });
    table(["position", "name", "defined", "by", "changed"], rows)
}

fn format_version(row: &AgentVersionRow, zone: &TimeZone) -> Vec<String> {
    let by = row.entered_by.as_deref().map(|by| format!(" by {}", printable(by))).unwrap_or_default();
    let named = Some(version_name(row)).filter(|name| !name.is_empty());
    let named = named.map(|name| format!(" ({name})")).unwrap_or_default();
    let head = format!("{}{named} {}{by}", row.sequence, rows::format_time(row.defined_at, zone));
    [head].into_iter().chain(format_changes(&row.changes)).collect()
}

fn version_name(row: &AgentVersionRow) -> String {
    printable(row.version.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_says_when_and_by_whom_and_what_it_changed() {
        let row: AgentVersionRow = serde_json::from_value(json!({
            "sequence": 1732, "version": "brief", "defined_at": "2026-01-01T00:00:00Z", "entered_by": "api_key:x",
            "changes": [{ "field": "max_steps", "before": 3, "after": 5 }, { "field": "owner", "before": "ann" }],
        }))
        .unwrap();
        let lines = format_versions(std::slice::from_ref(&row), &TimeZone::UTC);
        assert_eq!(lines[1], "1732      brief  2026-01-01 00:00:00  api_key:x  max_steps owner");
        let lines = format_version(&row, &TimeZone::UTC);
        let expected = ["1732 (brief) 2026-01-01 00:00:00 by api_key:x", "  ~ max_steps: 3 → 5", "  - owner: ann"];
        assert_eq!(lines, expected);
    }
}
