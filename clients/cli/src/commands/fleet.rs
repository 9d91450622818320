//! `kairo fleet`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kairo_proto::{
    time,
    v1::{
        EnabledRow, FleetReplicaRow, GetFleetResponse, HoldFleetResponse, HoldRow, PromoteFleetResponse,
        ReleaseFleetResponse,
    },
};
use serde_json::{Value, json};

use super::GatewaySession;
use crate::{Error, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo fleet                   which versions are there, and what a promotion would enable
  kairo fleet hold              keep the way back open, until kairo fleet release
  kairo fleet promote           after a release, when nothing older is left

Exit status: 0, and 1 where something could not be done.";

const PROMOTE: &str = "\
Example:
  kairo fleet promote

After a release, when every replica is of the new version (see kairo fleet). It is refused while one of an older version
answers and while somebody holds it, and there is no way back: builds that read less refuse to start.

Exit status: 0 if the epoch is in force, else 1.";

const HOLD: &str = "\
Example:
  kairo fleet hold && kairo fleet

Until then every service can go back to the version before. kairo dev, which promotes by itself, keeps to it as well. The order
stands in the log, with who gave it.

Exit status: 0.";

/// Show which versions are there, and raise the epoch
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FleetArgs {
    #[command(subcommand)]
    command: Option<FleetCommand>,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Have everything written that this version can write
    #[command(after_help = PROMOTE)]
    Promote,
    /// Keep everybody from promoting
    #[command(after_help = HOLD)]
    Hold,
    /// End a hold
    Release,
}

pub(super) async fn run(arguments: FleetArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let answer: Value = match arguments.command {
        None => session.client.get("v1/fleet", &[]).await?,
        Some(FleetCommand::Promote) => post_order(session, "promote").await?,
        Some(FleetCommand::Hold) => post_order(session, "hold").await?,
        Some(FleetCommand::Release) => post_order(session, "release").await?,
    };
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines = match arguments.command {
        None => format_fleet(session.parse_answer(answer)?),
        Some(FleetCommand::Promote) => vec![format_promotion(session.parse_answer(answer)?)],
        Some(FleetCommand::Hold) => {
            let HoldFleetResponse { hold } = session.parse_answer(answer)?;
            vec![format_hold(&session.require_field("hold", hold)?)]
        }
        Some(FleetCommand::Release) => {
            let ReleaseFleetResponse { released } = session.parse_answer(answer)?;
            vec![
                released
                    .map_or_else(|| "nobody held it".to_owned(), |hold| format!("released: {}", format_hold(&hold))),
            ]
        }
    };
    lines.into_iter().try_for_each(terminal::line)?;
    Ok(ExitCode::SUCCESS)
}

async fn post_order(session: &GatewaySession, order: &str) -> Result<Value, Error> {
    Ok(session.client.post(&format!("v1/fleet/{order}"), &json!({})).await?)
}

fn format_fleet(fleet: GetFleetResponse) -> Vec<String> {
    let GetFleetResponse { epoch, reader, replicas, behind, enables, hold } = fleet;
    let rows = replicas.into_iter().map(|replica| {
        let FleetReplicaRow { service, instance, version, reader } = replica;
        [service, version, reader.to_string(), instance]
    });
    let mut lines = table(["service", "version", "reads", "replica"], rows);
    lines.push(String::new());
    lines.push(format!("epoch {epoch} is in force"));
    if epoch >= reader {
        lines.push("there is nothing to promote to".to_owned());
    } else {
        lines.push(format!("a promotion raises it to {reader}:"));
    }
    lines.extend(enables.into_iter().map(|EnabledRow { epoch, what }| format!("  {epoch}  {what}")));
    if !behind.is_empty() {
        lines.push(format!("replace these first, which read less: {}", behind.join(", ")));
    }
    lines.extend(hold.as_ref().map(format_hold));
    lines
}

fn format_promotion(PromoteFleetResponse { epoch, before }: PromoteFleetResponse) -> String {
    match epoch == before {
        true => format!("epoch {epoch} is in force already"),
        false => format!("epoch {epoch} is in force; it was {before}"),
    }
}

fn format_hold(HoldRow { by, since }: &HoldRow) -> String {
    let since = since.as_ref().and_then(time::read).map(|since| format!(" since {since:.0}"));
    format!("{by} keeps the epoch from being raised{}", since.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_promotion_would_do_and_what_stands_in_its_way_is_told() {
        let answer = json!({
            "epoch": 6, "reader": 8,
            "replicas": [{"service": "router", "instance": "router-1", "version": "0.1.0", "reader": 6}],
            "behind": ["router-1"],
            "enables": [{"epoch": 7, "what": "digests"}, {"epoch": 8, "what": "seals"}],
            "hold": {"by": "api_key:ann", "since": "2026-11-25T18:00:00Z"},
        });
        let told = format_fleet(serde_json::from_value(answer).unwrap()).join("\n");
        assert_eq!(
            told,
            "SERVICE  VERSION  READS  REPLICA\nrouter   0.1.0    6      router-1\n\nepoch 6 is in force\n\
             a promotion raises it to 8:\n  7  digests\n  8  seals\nreplace these first, which read less: router-1\n\
             api_key:ann keeps the epoch from being raised since 2026-11-25T18:00:00Z"
        );
        let nothing = format_fleet(GetFleetResponse { epoch: 8, reader: 8, ..Default::default() });
        assert_eq!(nothing.last().unwrap(), "there is nothing to promote to");
    }
}
