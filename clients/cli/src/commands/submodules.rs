//! `kairo submodules`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kairo_core::ids::Name;
use kairo_proto::{
    v1::{ListSubmodulesResponse, SubmoduleRow},
    words::OrderedCommand,
};

use super::{
    GatewaySession, name,
    orders::{OrderOptions, STATUS},
};
use crate::{Error, client::NewSubmodule, event_lines::printable, steps::one_line, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo submodules council
  kairo submodules council add critic --prompt 'You say what may go wrong.'
  kairo submodules council add diary --prompt 'You look up what was said.' --tier light --without-decisions
  kairo submodules council remove critic";

/// List the submodules of an agent: voices that think along; or add or remove one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SubmodulesArgs {
    /// The agent
    #[arg(value_parser = name, value_name = "AGENT")]
    agent: Name,
    #[command(subcommand)]
    command: Option<SubmodulesCommand>,
}

#[derive(Debug, Subcommand)]
enum SubmodulesCommand {
    /// Every submodule of the agent; this is also what no subcommand does
    List,
    /// Add a submodule; whoever gives the order is the human who consents
    #[command(after_help = STATUS)]
    Add(Box<SubmoduleAddArgs>),
    /// Remove a submodule
    #[command(after_help = STATUS)]
    Remove {
        /// The submodule
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        manner: OrderOptions,
    },
}

#[derive(Debug, Args)]
struct SubmoduleAddArgs {
    /// Its name: 1 to 32 of a-z, 0-9, _ and -
    #[arg(value_name = "NAME")]
    name: String,
    /// Prompt: its role, and what it looks at
    #[arg(long, value_name = "TEXT")]
    prompt: String,
    /// The model that it thinks with: heavy, fast or light; without it, fast
    #[arg(long, value_name = "TIER", value_parser = ["heavy", "fast", "light"])]
    tier: Option<String>,
    /// Kind of input it is shown: message, result, process, event, task or approval; can be repeated, without it
    /// everything
    #[arg(long, value_name = "KIND")]
    hears: Vec<String>,
    /// Milliseconds within which it must have answered, 100 to 120000; without it, 10000
    #[arg(long, value_name = "MS")]
    deadline_ms: Option<u32>,
    /// Do not show it what was decided; without this, it is shown that afterwards
    #[arg(long, conflicts_with = "wants_decisions")]
    without_decisions: bool,
    /// Show it what was decided, afterwards, as is done without it
    #[arg(long, hide = true)]
    wants_decisions: bool,
    #[command(flatten)]
    manner: OrderOptions,
}

pub(super) async fn run(arguments: SubmodulesArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let agent = arguments.agent;
    match arguments.command {
        None | Some(SubmodulesCommand::List) => {
            list_submodules(&agent, session).await?;
            Ok(ExitCode::SUCCESS)
        }
        Some(SubmodulesCommand::Add(add)) => {
            let SubmoduleAddArgs {
                name,
                prompt,
                tier,
                hears,
                deadline_ms,
                without_decisions,
                wants_decisions: _,
                manner,
            } = *add;
            let wants_decisions = without_decisions.then_some(false);
            let submodule = NewSubmodule { name, prompt: Some(prompt), tier, hears, deadline_ms, wants_decisions };
            manner.order_submodule(agent.to_string(), &OrderedCommand::Add, submodule, session).await
        }
        Some(SubmodulesCommand::Remove { name, manner }) => {
            let submodule = NewSubmodule { name, ..NewSubmodule::default() };
            manner.order_submodule(agent.to_string(), &OrderedCommand::Remove, submodule, session).await
        }
    }
}

async fn list_submodules(agent: &Name, session: &GatewaySession) -> Result<(), Error> {
    let path = format!("v1/agents/{agent}/submodules");
    let Some(ListSubmodulesResponse { submodules, .. }) = session.get_or_print_json(&path, &[]).await? else {
        return Ok(());
    };
    format_submodules(&submodules).into_iter().try_for_each(terminal::row)?;
    Ok(())
}

fn format_submodules(submodules: &[SubmoduleRow]) -> Vec<String> {
    let row = |row: &SubmoduleRow| {
        let hears = if row.hears.is_empty() { "everything".to_owned() } else { row.hears.join(" ") };
        let from = if row.added { "added" } else { "profile" };
        let wants = if row.wants_decisions { "yes" } else { "" };
        let prompt = row.prompt.as_deref().map(one_line).unwrap_or_default();
        [
            printable(&row.name),
            printable(&row.tier),
            printable(&hears),
            format!("{} ms", row.deadline_ms),
            wants.to_owned(),
            from.to_owned(),
            prompt,
        ]
    };
    table(["name", "tier", "hears", "deadline", "decisions", "from", "prompt"], submodules.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_are_a_table() {
        let row = SubmoduleRow {
            name: "critic".into(),
            prompt: Some("Say what\nmay go wrong.".into()),
            tier: "fast".into(),
            deadline_ms: 500,
            added: true,
            ..Default::default()
        };
        let text = format_submodules(&[row]).join("\n");
        for part in ["NAME", "critic  fast  everything  500 ms", "added", "Say what may go wrong."] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
