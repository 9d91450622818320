//! `kairo agents`

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use kairo_core::ids::Name;
use kairo_proto::v1::{AgentRow, ListAgentsResponse};
use serde_json::Value;

use super::{Session, name};
use crate::{Error, client::Profile, event_lines::printable, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo agents
  kairo agents define --agent poet --prompt 'You answer in verse.' --tool 'tools.*'
  kairo agents define --agent ops --prompt-file ops.md --description 'looks after the machines'
  kairo agents define --agent aide --prompt-file aide.md --planning chain --threads topics \\
      --time-zone Europe/Berlin --day-ends-at 22:00";

/// List the agents, or define one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every agent; this is also what no subcommand does
    List,
    /// Create an agent, or change what it is made from
    Define(Box<Define>),
}

#[derive(Debug, Args)]
struct Define {
    /// The agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Name,
    /// What it is told to be
    #[arg(long, value_name = "TEXT", required_unless_present = "prompt_file", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// The same, from a file; - reads standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// What people are told it is
    #[arg(long, default_value = "", value_name = "TEXT")]
    description: String,
    /// A tool it is offered, or a prefix followed by *; can be repeated, without it every tool is offered
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Model calls in one turn before it must answer
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,
    /// How it acts: tools (calls tools itself) or chain (plans, and smaller models carry the plan out); without it, tools
    #[arg(long, value_name = "HOW", value_parser = ["tools", "chain"])]
    planning: Option<String>,
    /// Its threads: single (one for each user) or topics (one for each subject); without it, single
    #[arg(long, value_name = "WHICH", value_parser = ["single", "topics"])]
    threads: Option<String>,
    /// The time zone of its days and times, such as Europe/Berlin; without it, UTC
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// When its day ends, as HH:MM: what happened is then written to its memory; without it, never
    #[arg(long, value_name = "TIME")]
    day_ends_at: Option<String>,
    /// Calls that act outside, such as email.send or process.run, once it has seen mails, pages or what MCP servers say:
    /// consent (a human is asked) or trusted (they are made); without it, consent
    #[arg(long, value_name = "HOW", value_parser = ["consent", "trusted"])]
    outside_content: Option<String>,
    /// Who answers its messages: direct (the turn that does what was asked for) or background (what takes work is
    /// acknowledged at once, queued, and worked on beside the conversation); without it, direct
    #[arg(long, value_name = "HOW", value_parser = ["direct", "background"])]
    conduct: Option<String>,
    /// Seconds until a queued task that failed is tried again; without it, 60
    #[arg(long, value_name = "SECONDS")]
    session_pause: Option<u32>,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    match arguments.command {
        None | Some(Command::List) => list(session).await?,
        Some(Command::Define(arguments)) => define(*arguments, session).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(session: &Session) -> Result<(), Error> {
    let Some(ListAgentsResponse { agents, .. }) = session.ask("v1/agents", &[]).await? else { return Ok(()) };
    let rows = agents.into_iter().map(|AgentRow { agent, profile, .. }| {
        let profile = profile.unwrap_or_default();
        let tools = if profile.tools.is_empty() { "all".to_owned() } else { profile.tools.join(" ") };
        [agent, tools, printable(&profile.description)]
    });
    table(["agent", "tools", "description"], rows).into_iter().try_for_each(terminal::line)?;
    Ok(())
}

async fn define(arguments: Define, session: &Session) -> Result<(), Error> {
    let prompt = match (arguments.prompt, arguments.prompt_file) {
        (Some(prompt), _) => prompt,
        (None, file) => read(&file.unwrap_or_else(|| "-".into()))?,
    };
    let profile = Profile {
        agent: arguments.agent.to_string(),
        description: arguments.description,
        prompt,
        tools: arguments.tools,
        max_steps: arguments.max_steps,
        planning: arguments.planning,
        threads: arguments.threads,
        time_zone: arguments.time_zone,
        day_ends_at: arguments.day_ends_at,
        outside_content: arguments.outside_content,
        conduct: arguments.conduct,
        session_pause: arguments.session_pause,
    };
    let answer: Value = session.client.post("v1/agents", &profile).await?;
    match session.json {
        true => terminal::json(&answer)?,
        false => terminal::line(format!("{0} is defined; talk to it: kairo send --agent {0} --wait …", profile.agent))?,
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, Error> {
    let text = match file == Path::new("-") {
        true => io::read_to_string(io::stdin().lock().take(u64::from(u32::MAX))),
        false => fs::read_to_string(file),
    };
    text.map_err(Error::file("read", file))
}
