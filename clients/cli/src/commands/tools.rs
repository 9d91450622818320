//! `kairo tools`

use std::process::ExitCode;

use clap::Args;
use kairo_proto::{
    v1::{GetToolResponse, ListToolsResponse, ToolRow},
    words::{ConsentRule, ToolSource},
};
use serde_json::Value;

use super::GatewaySession;
use crate::{Error, durations, event_lines::printable, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo tools                        every tool that agents can be offered
  kairo tools --group mail           those of a group; a profile names all of them as group:mail
  kairo tools --source mcp           those of MCP servers
  kairo tools github.create_issue    one tool, with its description and schema
  kairo tools --json | jq '.tools[].name'";

/// The sign for an empty value.
const NONE: &str = "-";

/// Show the tools that agents can be offered, and those that are left out
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ToolsArgs {
    /// Only this tool, with all that is known of it
    #[arg(value_name = "NAME", conflicts_with_all = ["group", "source"])]
    name: Option<String>,
    /// Only those of this group, such as mail, or the name of an MCP server
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Only those that come from there: built_in, mcp, worker or web_api
    #[arg(long, value_name = "SOURCE", value_parser = clap::builder::PossibleValuesParser::new(ToolSource::WORDS))]
    source: Option<String>,
}

pub(super) async fn run(arguments: ToolsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ToolsArgs { name, group, source } = arguments;
    if let Some(name) = name {
        return show_tool(&name, session).await;
    }
    let given = [("group", group), ("source", source)];
    let query: Vec<(&str, String)> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let answer: Value = session.client.get("v1/tools", &query).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tools: ListToolsResponse = session.parse_answer(answer)?;
    format_tools(&tools).into_iter().try_for_each(terminal::row)?;
    format_left_out(&tools).into_iter().try_for_each(terminal::line)?;
    Ok(ExitCode::SUCCESS)
}

async fn show_tool(name: &str, session: &GatewaySession) -> Result<ExitCode, Error> {
    let answer: Value = session.client.get(&format!("v1/tools/{name}"), &[]).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let GetToolResponse { tool } = session.parse_answer(answer)?;
    format_tool(&session.require_field("tool", tool)?).into_iter().try_for_each(terminal::line)?;
    Ok(ExitCode::SUCCESS)
}

fn format_tools(tools: &ListToolsResponse) -> Vec<String> {
    let row = |tool: &ToolRow| {
        let said = printable(tool.description.lines().next().unwrap_or_default());
        [printable(&tool.name), tool.group.clone(), describe_source(tool), describe_consent(tool), said]
    };
    table(["tool", "group", "source", "consent", "description"], tools.tools.iter().map(row))
}

fn format_left_out(tools: &ListToolsResponse) -> Vec<String> {
    let told = tools.withheld.iter().map(|tool| format!("  {}: {}", printable(&tool.name), printable(&tool.reason)));
    let lines: Vec<String> = told.collect();
    match lines.is_empty() {
        true => Vec::new(),
        false => [String::new(), "left out:".to_owned()].into_iter().chain(lines).collect(),
    }
}

/// All that is known of a tool.
fn format_tool(tool: &ToolRow) -> Vec<String> {
    let schema: Value = serde_json::from_str(&tool.schema).unwrap_or_default();
    let schema = serde_json::to_string_pretty(&schema).unwrap_or_default();
    let effects = match (tool.idempotent, tool.acts_outside) {
        (_, true) => "others see what it does",
        (true, false) => "calling it twice is as calling it once",
        (false, false) => "calling it twice does it twice",
    };
    let limit = match tool.timeout_ms {
        0 => NONE.to_owned(),
        limit if limit % 1_000 == 0 => durations::format_seconds(limit / 1_000),
        limit => format!("{limit} ms"),
    };
    let facts = [
        ("group", tool.group.clone()),
        ("source", describe_source(tool)),
        ("consent", describe_consent(tool)),
        ("effects", effects.to_owned()),
        ("time limit", limit),
        ("carried out by", tool.executor.clone()),
    ];
    let mut lines = vec![printable(&tool.name)];
    lines.extend(facts.into_iter().map(|(name, value)| format!("  {name:<14}  {}", printable(&value))));
    lines.push(String::new());
    lines.extend(tool.description.lines().map(printable));
    lines.push(String::new());
    lines.extend(schema.lines().map(printable));
    lines
}

/// Returns the source of a tool, such as `mcp github`.
fn describe_source(tool: &ToolRow) -> String {
    let kind = tool.source.replace('_', " ");
    if tool.server.is_empty() { kind } else { format!("{kind} {}", tool.server) }
}

/// Describes if a human must consent, and to which arguments.
fn describe_consent(tool: &ToolRow) -> String {
    match tool.consent_word() {
        always @ ConsentRule::Always => always.text(),
        ConsentRule::Never => NONE.to_owned(),
        ConsentRule::ByArguments => {
            let with = tool.consent_with.iter().map(|argument| format!("{}={}", argument.name, argument.value));
            format!("with {}", with.collect::<Vec<_>>().join(", "))
        }
        ConsentRule::Unknown(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> ListToolsResponse {
        let tool = |name: &str, source: &str, server: &str, consent: &str| {
            json!({"name": name, "source": source, "server": server, "group": "g", "description": "Does it.\nMore.",
                   "schema": "{\"type\":\"object\"}", "consent": consent, "timeout_ms": 60000, "executor": "tool-runner",
                   "consent_with": [{"name": "send", "value": "now"}]})
        };
        serde_json::from_value(json!({
            "tools": [tool("a.b", "mcp", "a", "always"), tool("c.d", "built_in", "", "by_arguments"), tool("e.f", "web_api", "", "never")],
            "withheld": [{"name": "a.z", "reason": "no schema\u{1b}[31m"}],
        }))
        .unwrap()
    }

    #[test]
    fn tools_are_listed_with_those_that_are_left_out() {
        let lines: Vec<String> = format_tools(&tools()).into_iter().chain(format_left_out(&tools())).collect();
        let text = lines.join("\n");
        for part in [
            "a.b   g      mcp a     always",
            "built in  with send=now",
            "web api",
            "Does it.",
            "left out:\n  a.z: no schema",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("More"), "{text}");
        assert_eq!(format_left_out(&ListToolsResponse::default()), [""; 0]);
    }

    #[test]
    fn one_tool_is_shown_whole() {
        let text = format_tool(&tools().tools[0]).join("\n");
        for part in [
            "time limit      1m",
            "carried out by  tool-runner",
            "Does it.\nMore.",
            "\"type\": \"object\"",
            "does it twice",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
