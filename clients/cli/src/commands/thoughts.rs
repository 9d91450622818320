//! `kairo thoughts`

use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use kairo_core::ids::Name;
use kairo_proto::{
    v1::{ListThoughtsResponse, ThoughtRow},
    words::ThoughtKind,
};

use super::{GatewaySession, name};
use crate::{Error, event_lines::printable, rows, steps::one_line, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo thoughts council
  kairo thoughts council --module critic --limit 20";

/// List who within an agent thought what, which questions were asked and who was late, with what it took
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ThoughtsArgs {
    /// The agent
    #[arg(value_parser = name, value_name = "AGENT")]
    agent: Name,
    /// Only of this submodule
    #[arg(long, value_name = "MODULE")]
    module: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    /// Those before this message of the log, as the end of a page says
    #[arg(long, value_name = "SEQUENCE")]
    before: Option<u64>,
}

pub(super) async fn run(arguments: ThoughtsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ThoughtsArgs { agent, module, limit, before } = arguments;
    let given = [("module", module), ("before", before.map(|before| before.to_string()))];
    let mut query: Vec<(&str, String)> = vec![("limit", limit.to_string())];
    query.extend(given.into_iter().filter_map(|(field, value)| Some((field, value?))));
    if let Some(answer) = session.get_or_print_json(&format!("v1/agents/{agent}/thoughts"), &query).await? {
        format_thoughts(&agent, &answer, &TimeZone::system()).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The oldest first, as one thinks.
fn format_thoughts(agent: &Name, answer: &ListThoughtsResponse, zone: &TimeZone) -> Vec<String> {
    let row = |row: &ThoughtRow| {
        let who = row.module.as_deref().unwrap_or(agent.as_str());
        let (tokens, took) = match row.input_tokens.saturating_add(row.output_tokens) {
            0 if row.latency_ms == 0 => (String::new(), String::new()),
            tokens => (tokens.to_string(), format!("{} ms", row.latency_ms)),
        };
        [
            rows::format_time(row.at, zone),
            printable(who),
            describe_kind(row),
            tokens,
            took,
            printable(&one_line(&row.text)),
        ]
    };
    let mut lines = table(["at", "who", "what", "tokens", "took", "text"], answer.thoughts.iter().rev().map(row));
    lines.extend(answer.next_before.iter().map(|next| format!("before these: --before {next}")));
    lines
}

fn describe_kind(row: &ThoughtRow) -> String {
    match row.kind_word() {
        ThoughtKind::Thought => "thinks",
        ThoughtKind::Left => "thinks for next time",
        ThoughtKind::Asked => "is asked",
        ThoughtKind::Late => "is late",
        ThoughtKind::Failed => "has failed",
        ThoughtKind::Broadcast => "shows what was decided",
        ThoughtKind::Unknown(_) => "does what a newer version knows",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_told_with_who_thinks_and_what_it_took() {
        let row = |kind: ThoughtKind, module: Option<&str>, text: &str, output_tokens| ThoughtRow {
            kind: kind.text(),
            module: module.map(str::to_owned),
            text: text.into(),
            output_tokens,
            latency_ms: output_tokens * 10,
            ..Default::default()
        };
        let answer = ListThoughtsResponse {
            thoughts: vec![
                row(ThoughtKind::Late, Some("slow"), "no answer within 100 ms", 0),
                row(ThoughtKind::Thought, Some("critic"), "It may\nrain.", 7),
                row(ThoughtKind::Thought, None, "I go out.", 3),
            ],
            next_before: Some(9),
            ..Default::default()
        };
        let agent = Name::parse("council").unwrap();
        let lines = format_thoughts(&agent, &answer, &TimeZone::UTC);
        for (at, part) in [(1, "council  thinks"), (2, "critic   thinks   7       70 ms"), (3, "slow     is late")] {
            assert!(lines[at].contains(part), "{part:?} is not in {lines:#?}");
        }
        assert!(lines[2].contains("It may rain.") && lines[4] == "before these: --before 9", "{lines:#?}");
    }
}
