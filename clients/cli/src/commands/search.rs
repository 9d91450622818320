//! `kairo search`

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;
use jiff::civil::Date;
use kairo_core::ids::Name;
use kairo_proto::v1::{SearchFacets, SearchResponse};
use kairo_proto::words::HitKind;

use super::{GatewaySession, name};
use crate::{Error, event_lines::in_one_line, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo search budget
  kairo search bugdet reveiw --in threads,tasks
  kairo search launch --agent default --from 2026-11-01 --facets
  kairo search --in messages --user ann wireless
  kairo search --in tasks --status pending --json";

/// Search threads, tasks, memories, inner state and what was said, misspelt words included
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SearchArgs {
    /// Words that must all occur; without any, what changed last comes first
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Only among these
    #[arg(long = "in", value_delimiter = ',', value_parser = ["threads", "tasks", "memories", "messages", "state"], value_name = "KINDS")]
    kinds: Vec<String>,
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Only what is this user's, and memories and inner state for all
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Only of this type, such as topic, hook or person
    #[arg(long = "type", value_name = "TYPE")]
    kind_of: Option<String>,
    /// Only in this status, such as active or pending
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only about this day or later ones
    #[arg(long, value_name = "YYYY-MM-DD")]
    from: Option<Date>,
    /// Only about this day or earlier ones
    #[arg(long, value_name = "YYYY-MM-DD")]
    to: Option<Date>,
    /// Also count what there is by kind, agent, type and status
    #[arg(long)]
    facets: bool,
    /// At most so many
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: u32,
}

pub(super) async fn run(arguments: SearchArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let singular = |kind: &String| match kind.as_str() {
        "memories" => HitKind::Memory.text(),
        other => other.trim_end_matches('s').to_owned(),
    };
    let kinds: Vec<String> = arguments.kinds.iter().map(singular).collect();
    let mut query = vec![("limit", arguments.limit.to_string())];
    query.extend((!arguments.words.is_empty()).then(|| ("q", arguments.words.join(" "))));
    query.extend((!kinds.is_empty()).then(|| ("in", kinds.join(","))));
    query.extend(arguments.agent.map(|agent| ("agent", agent.to_string())));
    query.extend(arguments.user.map(|user| ("user", user.to_string())));
    query.extend(arguments.kind_of.map(|kind| ("type", kind)));
    query.extend(arguments.status.map(|status| ("status", status)));
    query.extend(arguments.from.map(|day| ("from", day.to_string())));
    query.extend(arguments.to.map(|day| ("to", day.to_string())));
    query.extend(arguments.facets.then(|| ("facets", "true".to_owned())));
    if let Some(answer) = session.get_or_print_json("v1/search", &query).await? {
        format_hits(&answer).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_hits(answer: &SearchResponse) -> Vec<String> {
    let rows = answer.hits.iter().map(|hit| {
        let snippet = plain_snippet(&hit.snippet);
        let text = match hit.title.as_str() {
            "" => snippet,
            title => format!("{}: {snippet}", in_one_line(title)),
        };
        let kind = format!("{} {}", hit.kind, in_one_line(&hit.r#type));
        [
            kind,
            hit.status.as_deref().map(in_one_line).unwrap_or_default(),
            hit.agent.clone(),
            in_one_line(&hit.id),
            text,
        ]
    });
    let mut lines = table(["kind", "status", "agent", "id", "found"], rows);
    lines.push(format!("{} found by {}", answer.total, answer.backend));
    lines.extend(answer.facets.iter().flat_map(format_facets));
    lines
}

/// Returns lines on the number of results by facet and value.
fn format_facets(facets: &SearchFacets) -> Vec<String> {
    let SearchFacets { agent, kind, status, r#type } = facets;
    let given = [("agent", agent), ("kind", kind), ("status", status), ("type", r#type)];
    let given = given.into_iter().filter(|(_, counts)| !counts.is_empty());
    let line = |(facet, counts): (&str, &BTreeMap<String, u64>)| {
        let counts: Vec<String> =
            counts.iter().map(|(value, count)| format!("{} {count}", in_one_line(value))).collect();
        format!("{facet}: {}", counts.join(", "))
    };
    given.map(line).collect()
}

/// A snippet for a terminal: what was found between `[` and `]`.
fn plain_snippet(snippet: &str) -> String {
    let marked = snippet.replace("<mark>", "[").replace("</mark>", "]");
    in_one_line(&marked.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_found_is_one_line_each_and_then_counted() {
        let answer = json!({
            "hits": [{ "kind": "thread", "id": "t", "agent": "bob", "title": "Plans", "type": "topic", "status": "active",
                       "snippet": "the <mark>budget</mark> &amp;lt; 5\u{1b}[31m" }],
            "total": 3,
            "facets": { "type": { "topic": 3 }, "kind": { "thread": 2, "task": 1 }, "status": {} },
            "backend": "postgres",
        });
        let lines = format_hits(&serde_json::from_value(answer).unwrap());
        assert!(lines[1].contains("thread topic  active  bob    t   Plans: the [budget] &lt; 5"), "{lines:?}");
        assert!(!lines.concat().contains('\u{1b}'));
        assert_eq!(lines[2..], ["3 found by postgres", "kind: task 1, thread 2", "type: topic 3"]);
    }
}
