//! `kairo agents`

mod apply;
mod apply_document;
mod change_lines;
mod definition;
mod export;
mod page;
mod profile_options;
mod versions;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use kairo_core::ids::Name;
use kairo_proto::v1::{AgentRow, ListAgentsResponse};

use super::{GatewaySession, name};
use crate::{Error, default_tools, event_lines::printable, rows, table::table, terminal};
use apply::ApplyArgs;
use definition::{AgentDefineArgs, AgentRollbackArgs, AgentSetArgs};
use export::ExportArgs;
pub(super) use profile_options::read_file_or_stdin;
use versions::HistoryArgs;

const EXAMPLES: &str = "\
Examples:
  kairo agents
  kairo agents show aide
  kairo agents define --agent poet --prompt 'You answer in verse.' --tool 'tools.*'
  kairo agents define --agent ops --prompt-file ops.md --description 'looks after the machines'
  kairo agents set poet --max-steps 5 --reset description
  kairo agents history poet
  kairo agents rollback poet --to 1732
  kairo agents export > agents.yaml
  kairo agents apply -f agents.yaml --dry-run";

const DEFINE_EXAMPLES: &str = "\
Examples:
  kairo agents define --agent aide --prompt-file aide.md --planning chain --threads topics \\
      --time-zone Europe/Berlin --day-ends-at 22:00
  kairo agents define --agent scout --prompt-file scout.md --conduct background --owner ann \\
      --mission 'Tell ann when a competitor changes its prices.' --next-run-after 21600
  kairo agents define --agent aide --prompt 'Be brief.' --cap-tokens-per-day 200000 --cap-cost 50";

const SET_EXAMPLES: &str = "\
Examples:
  kairo agents set aide --prompt-file aide.md --version-name brief
  kairo agents set aide --cap-tokens-per-day 200000 --dry-run
  kairo agents set aide --reset description --reset caps
  kairo agents set aide --guesses-goal=false";

/// List, show, define and change agents, return to earlier versions, and apply or export a file of agents
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Every agent; this is also what no subcommand does
    List,
    /// Show an agent: its whole profile, its queue, and when it runs next
    Show {
        /// The agent
        #[arg(value_parser = name, value_name = "NAME")]
        agent: Name,
    },
    /// Create an agent, or replace the whole profile of one
    #[command(after_help = DEFINE_EXAMPLES)]
    Define(Box<AgentDefineArgs>),
    /// Change single fields of an agent; all other fields stay as they are. Options that can be repeated, such as --tool,
    /// replace the whole list
    #[command(after_help = SET_EXAMPLES)]
    Set(Box<AgentSetArgs>),
    /// Show the versions of an agent, and what each of them changed
    #[command(after_help = "Examples:\n  kairo agents history aide\n  kairo agents history aide --limit 2 --diff")]
    History(HistoryArgs),
    /// Return an agent to an earlier version
    #[command(
        after_help = "Examples:\n  kairo agents rollback aide --to 1732\n  kairo agents rollback aide --to brief --dry-run"
    )]
    Rollback(AgentRollbackArgs),
    /// Define the agents and teams of a YAML file; those that already match it are left alone
    #[command(after_help = apply::EXAMPLES)]
    Apply(ApplyArgs),
    /// Print agents and teams as a YAML file for `kairo agents apply`
    #[command(after_help = "Examples:\n  kairo agents export > agents.yaml\n  kairo agents export poet market")]
    Export(ExportArgs),
}

pub(super) async fn run(arguments: AgentsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None | Some(AgentsCommand::List) => list_agents(session).await?,
        Some(AgentsCommand::Show { agent }) => page::show_agent(&agent, session).await?,
        Some(AgentsCommand::Define(arguments)) => arguments.run(session).await?,
        Some(AgentsCommand::Set(arguments)) => arguments.run(session).await?,
        Some(AgentsCommand::History(arguments)) => arguments.run(session).await?,
        Some(AgentsCommand::Rollback(arguments)) => arguments.run(session).await?,
        Some(AgentsCommand::Apply(arguments)) => arguments.run(session).await?,
        Some(AgentsCommand::Export(arguments)) => arguments.run(session).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list_agents(session: &GatewaySession) -> Result<(), Error> {
    let Some(ListAgentsResponse { agents, .. }) = session.get_or_print_json("v1/agents", &[]).await? else {
        return Ok(());
    };
    format_agents(agents, &TimeZone::system()).into_iter().try_for_each(terminal::row)?;
    Ok(())
}

fn format_agents(agents: Vec<AgentRow>, zone: &TimeZone) -> Vec<String> {
    let rows = agents.into_iter().map(|row| {
        let profile = row.profile.unwrap_or_default();
        let tools = match profile.tools.as_slice() {
            [] => "all".to_owned(),
            tools if *tools == default_tools::DEFAULT_TOOLS => "few".to_owned(),
            tools => tools.join(" "),
        };
        let queued = row.queued.map(|queued| queued.to_string()).unwrap_or_default();
        [row.agent, queued, rows::format_time(row.next_run_at, zone), tools, printable(&profile.description)]
    });
    table(["agent", "queued", "next run", "tools", "description"], rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_has_one_line_in_the_list() {
        let row: AgentRow = serde_json::from_value(json!({
            "agent": "scout", "sequence": 7, "defined_at": "2026-01-01T00:00:00Z", "queued": 2,
            "profile": { "agent": "scout", "description": "looks" }, "next_run_at": "2026-01-01T02:00:00Z",
        }))
        .unwrap();
        let lines = format_agents(vec![row], &TimeZone::UTC);
        assert_eq!(lines[1], "scout  2       2026-01-01 02:00:00  all    looks");
    }
}
