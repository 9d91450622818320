//! `kairo inner-state`

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use kairo_core::ids::Name;
use kairo_proto::{
    time,
    v1::{GetInnerStateHistoryResponse, InnerStateRow, ListInnerStateResponse},
};

use super::{GatewaySession, memories::open_secret, name};
use crate::{
    Error,
    event_lines::{in_one_line, printable},
    secret_key,
    table::table,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo inner-state keeper
  kairo inner-state keeper --prefix launch/ --user ann
  kairo inner-state keeper launch/date --history
  kairo inner-state keeper door --reveal";

/// Show what an agent keeps in its inner state, and what stood there before
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InnerStateArgs {
    /// The agent
    #[arg(value_parser = name, value_name = "AGENT")]
    agent: Name,
    /// Only what stands under this key
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// All that was written under the key, and when it was deleted
    #[arg(long, requires = "key")]
    history: bool,
    /// Also show the secrets of what stands under the key, opened on this machine with the key that kairo memories reveal
    /// finds
    #[arg(long, requires = "key", conflicts_with = "history")]
    reveal: bool,
    /// Only under keys that begin so
    #[arg(long, value_name = "TEXT", conflicts_with = "key")]
    prefix: Option<String>,
    /// Only what is this user's, and what is for all
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
}

pub(super) async fn run(arguments: InnerStateArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let place = format!("v1/agents/{}/inner-state", arguments.agent);
    let mut query = vec![("limit", arguments.limit.to_string())];
    query.extend(arguments.key.map(|key| ("key", key)));
    query.extend(arguments.prefix.map(|prefix| ("prefix", prefix)));
    query.extend(arguments.user.map(|user| ("user", user.to_string())));
    let rows = match arguments.history {
        true => {
            let history = session.get_or_print_json(&format!("{place}/history"), &query).await?;
            history.map(|GetInnerStateHistoryResponse { changes, .. }| changes)
        }
        false => {
            let listed = session.get_or_print_json(&place, &query).await?;
            listed.map(|ListInnerStateResponse { entries, .. }| entries)
        }
    };
    let Some(rows) = rows else { return Ok(ExitCode::SUCCESS) };
    format_inner_state(&rows).into_iter().try_for_each(terminal::row)?;
    if arguments.reveal {
        let key = secret_key::find()?;
        for row in &rows {
            for secret in &row.secrets {
                let open = open_secret(&key, &row.version_id, secret)?;
                terminal::line(format!("{}: {}", printable(&secret.name), printable(&open)))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn format_inner_state(rows: &[InnerStateRow]) -> Vec<String> {
    let rows = rows.iter().map(|row| {
        let at = row.updated_at.as_ref().and_then(time::read).unwrap_or(Timestamp::UNIX_EPOCH);
        [
            in_one_line(&row.key),
            row.user.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{at:.0}"),
            match row.deleted {
                true => "(deleted)".to_owned(),
                false => in_one_line(&row.content),
            },
            in_one_line(&row.related_keys.join(", ")),
        ]
    });
    table(["key", "user", "written", "content", "related"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_all_and_what_was_deleted_is_told_apart() {
        let row = |key: &str, user: Option<&str>, deleted| InnerStateRow {
            key: key.into(),
            user: user.map(str::to_owned),
            content: if deleted { String::new() } else { "in\nJune".into() },
            related_keys: vec!["team".into()],
            deleted,
            updated_at: Some(time::message("2026-11-21T10:00:00Z".parse().unwrap())),
            ..InnerStateRow::default()
        };
        let told = format_inner_state(&[row("launch", Some("ann"), false), row("house", None, true)]);
        assert_eq!(told[1], "launch  ann   2026-11-21T10:00:00Z  in June    team");
        assert_eq!(told[2], "house   -     2026-11-21T10:00:00Z  (deleted)  team");
    }
}
