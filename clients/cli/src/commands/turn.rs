//! `kairo turn`

mod follow;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use kairo_proto::{
    v1::{GetInteractionResponse, InteractionRow, InteractionStepRow, PerceivedRow},
    words::StepState,
};
use uuid::Uuid;

use super::GatewaySession;
use crate::{Error, rows, steps::one_line, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo turn show 0199c2ab-0000-7000-8000-000000000001
  kairo turn show 0199c2ab-0000-7000-8000-000000000001 --follow   as it goes on, until it ends";

/// Show what an agent made of a message, step by step
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TurnArgs {
    #[command(subcommand)]
    command: TurnCommand,
}

#[derive(Debug, Subcommand)]
enum TurnCommand {
    /// Show what was planned, done and made of it
    Show(TurnShowArgs),
}

#[derive(Debug, Args)]
struct TurnShowArgs {
    /// The turn: the correlation id that sending the message was answered with
    #[arg(value_name = "ID")]
    id: Uuid,
    /// Show it as it goes on, with its status, until it ends
    #[arg(long)]
    follow: bool,
}

pub(super) async fn run(arguments: TurnArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let TurnCommand::Show(show) = arguments.command;
    if show.follow {
        follow::follow_turn(show.id, session).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = format!("v1/interactions/{}", show.id);
    if let Some(GetInteractionResponse { interaction, .. }) = session.get_or_print_json(&path, &[]).await? {
        let turn = session.require_field("interaction", interaction)?;
        format_turn(&turn, &TimeZone::system()).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_turn(turn: &InteractionRow, zone: &TimeZone) -> Vec<String> {
    let InteractionRow { turn_id, goal, intent, status, input_tokens, output_tokens, steps, more, environment, .. } =
        turn;
    let mut lines = vec![
        format!("turn {turn_id}, {}", one_line(status)),
        format!(
            "begun {}, {input_tokens} tokens read and {output_tokens} written",
            rows::format_time(turn.started_at, zone)
        ),
    ];
    lines.extend(goal.as_deref().map(|goal| format!("goal {}", one_line(goal))));
    lines.extend(intent.as_deref().map(|intent| format!("intent {}", one_line(intent))));
    lines.extend(environment.iter().map(format_perception));
    lines.push(String::new());
    let rows = steps.iter().map(|step| {
        let agent = step.agent.as_deref().unwrap_or("-");
        [rows::format_time(step.timestamp, zone), one_line(agent), one_line(&step.kind), format_step(step)]
    });
    lines.extend(table(["time", "agent", "step", "what"], rows));
    if *more {
        lines.push("… more than is shown at once: see kairo events --correlation".to_owned());
    }
    lines
}

/// Describes an observation of the environment that was made before the agent thought.
fn format_perception(row: &PerceivedRow) -> String {
    let what = row.tool.as_deref().unwrap_or("the client");
    let result = row.result.as_ref().map(|json| json.text.clone()).unwrap_or_else(|| "[running]".to_owned());
    let said = row.error.as_ref().map_or(result, |error| format!("[failed] {error}"));
    format!("environment {}: {}", one_line(what), one_line(&said))
}

fn format_step(step: &InteractionStepRow) -> String {
    let json = |json: &Option<kairo_proto::v1::Json>| json.as_ref().map(|json| json.text.clone());
    let called = step
        .action
        .as_ref()
        .map(|action| format!("{action} {} ->", json(&step.arguments).unwrap_or_else(|| "{}".to_owned())));
    let runs = (step.action.is_some() && step.ended_at.is_none()).then(|| "[running]".to_owned());
    let reasoning = step.reasoning.as_ref().map(|reasoning| format!("({reasoning})"));
    let word = step.status_word().filter(|word| *word == StepState::Stopped).unwrap_or(StepState::Failed);
    let error = step.error.as_ref().map(|error| format!("[{word}] {error}"));
    let skipped = (step.status_word() == Some(StepState::Skipped)).then(|| "[skipped]".to_owned());
    let parts =
        [reasoning, step.content.clone(), called, runs, json(&step.result), error, skipped, step.reason.clone()];
    one_line(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_is_shown_step_by_step() {
        let at = "2026-01-01T00:00:01Z";
        let turn: InteractionRow = serde_json::from_value(json!({
            "turn_id": "1f0c2ab4-0000-0000-0000-000000000001", "intent": "tools.now", "status": "executing",
            "started_at": at, "input_tokens": 300, "output_tokens": 30, "more": false,
            "steps": [
                { "kind": "plan", "agent": "bob", "timestamp": at, "ended_at": at, "reasoning": "A clock\nis needed." },
                { "kind": "execute", "agent": "bob", "timestamp": at, "ended_at": at, "action": "tools.now",
                  "arguments": { "zone": "UTC" }, "result": { "n": 1 } },
                { "kind": "execute", "agent": "bob", "timestamp": at, "ended_at": at, "action": "http.get",
                  "arguments": {}, "error": "timed_out: too slow" },
                { "kind": "execute", "agent": "bob", "timestamp": at, "action": "process.run", "arguments": {} },
            ],
        }))
        .unwrap();
        let text = format_turn(&turn, &TimeZone::UTC).join("\n");
        for part in [
            "turn 1f0c2ab4-0000-0000-0000-000000000001, executing\nbegun 2026-01-01 00:00:01, 300 tokens read and 30 written",
            "\nintent tools.now\n\n",
            "bob    plan     (A clock is needed.)",
            "execute  tools.now {\"zone\":\"UTC\"} -> {\"n\":1}",
            "execute  http.get {} -> [failed] timed_out: too slow",
            "execute  process.run {} -> [running]",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("more than"), "{text}");
    }
}
