//! `kairo agents`

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::{commands::is_command_name, ids::Name};
use kairo_proto::v1::{AgentProfile, AgentRow, GetAgentResponse, ListAgentsResponse};
use serde_json::Value;

use super::{GatewaySession, caps::CapOptions, name, task_bounds::TaskBoundOptions};
use crate::{
    Error,
    client::{NewSubmodule, Profile, ProfileCommand, ProfileMember, ProfilePerception, SessionBounds},
    default_tools,
    event_lines::printable,
    rows,
    steps::one_line,
    table::table,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo agents
  kairo agents define --agent poet --prompt 'You answer in verse.' --tool 'tools.*'
  kairo agents define --agent ops --prompt-file ops.md --description 'looks after the machines'
  kairo agents show aide
  kairo agents define --agent aide --prompt-file aide.md --planning chain --threads topics \\
      --time-zone Europe/Berlin --day-ends-at 22:00
  kairo agents define --agent scout --prompt-file scout.md --conduct background --owner ann \\
      --mission 'Tell ann when a competitor changes its prices.' --next-run-after 21600
  kairo agents define --agent aide --prompt 'Be brief.' --cap-tokens-per-day 200000 --cap-cost 50";

/// List the agents, show one, or define one
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
    /// Show an agent: what it is for, what it has to do, and when it runs next
    Show {
        /// The agent
        #[arg(value_parser = name, value_name = "NAME")]
        agent: Name,
    },
    /// Create an agent, or change what it is made from
    Define(Box<AgentDefineArgs>),
}

#[derive(Debug, Args)]
struct AgentDefineArgs {
    /// The agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Name,
    /// Prompt of the agent
    #[arg(long, value_name = "TEXT", required_unless_present = "prompt_file", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// Prompt of the agent, from a file; - reads standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Description shown to people
    #[arg(long, default_value = "", value_name = "TEXT")]
    description: String,
    /// A tool it is offered, or a prefix followed by *; can be repeated; ! before one takes out what it covers.
    /// * is every tool; without it, few, see docs/agents.md
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Model calls in one turn before it must answer
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,
    /// Planning: tools (calls tools itself) or chain (plans, and smaller models carry the plan out); without it, tools
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
    /// Conduct: direct (the turn that does the work answers) or background (work is acknowledged at once, queued, and
    /// done beside the conversation); without it, direct
    #[arg(long, value_name = "HOW", value_parser = ["direct", "background"])]
    conduct: Option<String>,
    /// Seconds until a queued task that failed is tried again; without it, 60
    #[arg(long, value_name = "SECONDS")]
    session_pause: Option<u32>,
    #[command(flatten)]
    session: SessionOptions,
    #[command(flatten)]
    task: TaskBoundOptions,
    /// Have a fast model first guess the goal of each message: one more fast call for each
    #[arg(long)]
    guesses_goal: bool,
    /// Most reviews of draft replies in a turn, 0 to 8: a fast call each, and a heavy one where a draft is rewritten;
    /// without it, 0
    #[arg(long, value_name = "N")]
    max_reflections: Option<u32>,
    /// Mission it works for on its own account; takes --conduct background and --owner
    #[arg(long, value_name = "TEXT", requires = "owner")]
    mission: Option<String>,
    /// User who owns the mission and is told what is worth telling
    #[arg(long, value_parser = name, value_name = "NAME")]
    owner: Option<Name>,
    /// Seconds from the end of its work until it asks itself what to do for its mission; without it, 3600
    #[arg(long, value_name = "SECONDS")]
    next_run_after: Option<u32>,
    /// Command that users may call it by, with its label in lists and its help; can be repeated
    #[arg(long = "command", value_name = "VALUE:LABEL[:HELP]", value_parser = command)]
    commands: Vec<ProfileCommand>,
    /// Keep an inner state: what it writes with state.write is there in later turns, separate for each user
    #[arg(long)]
    inner_state: bool,
    /// Answers in a conversation after which the light model sums it up, for lists and searches; without it, never
    #[arg(long, value_name = "N")]
    summary_after: Option<u32>,
    /// Seconds until what another agent was asked for is late, where the call does not say; without it, 600
    #[arg(long, value_name = "SECONDS")]
    request_deadline: Option<u32>,
    /// Calls of models that everything which one message sets off may take, over all agents; without it, 500
    #[arg(long, value_name = "N")]
    message_model_calls: Option<u32>,
    /// An agent that it is composed of, whose tools it is offered, those named or all; can be repeated, and the first that
    /// has a tool carries its calls out
    #[arg(long = "member", value_name = "NAME[:TOOL,…]", value_parser = member)]
    members: Vec<ProfileMember>,
    /// A tool that only reads, looked at before each message is thought about, with what it is called with; can be repeated
    #[arg(long = "perceive", value_name = "TOOL[:JSON]", value_parser = perception)]
    environment: Vec<ProfilePerception>,
    #[command(flatten)]
    voices: SubmoduleOptions,
    #[command(flatten)]
    caps: CapOptions,
}

/// Submodules, and what of a thread is shown when it is thought about.
#[derive(Debug, Args)]
struct SubmoduleOptions {
    /// A submodule: a voice that thinks along, by its name and prompt; can be repeated
    #[arg(long = "submodule", value_name = "NAME=PROMPT", value_parser = submodule)]
    submodules: Vec<NewSubmodule>,
    /// Submodules with all that can be said of them: a JSON list of objects with name, prompt, tier, hears, deadline_ms and
    /// wants_decisions
    #[arg(long, value_name = "FILE", conflicts_with = "submodules")]
    submodules_file: Option<PathBuf>,
    /// A submodule of `--submodule` that is not shown what was decided; can be repeated, without it each is shown that
    #[arg(long, value_name = "NAME", conflicts_with = "submodules_file")]
    without_decisions: Vec<String>,
    /// Most submodules, those added later included; without it, 8
    #[arg(long, value_name = "N")]
    max_submodules: Option<u32>,
    /// Newest entries of a thread that are shown when it is thought about; without it, all that are kept
    #[arg(long, value_name = "N")]
    history_cutoff: Option<u32>,
    /// Age in seconds beyond which entries of a thread are not shown; without it, any age is
    #[arg(long, value_name = "SECONDS")]
    history_window: Option<u32>,
}

impl SubmoduleOptions {
    fn load_submodules(&self) -> Result<Vec<NewSubmodule>, Error> {
        let Some(file) = &self.submodules_file else { return self.submodules_from_flags() };
        let text = read_file_or_stdin(file)?;
        serde_json::from_str(&text).map_err(|error| Error::Advice(format!("{}: {error}", file.display())))
    }
}

impl SubmoduleOptions {
    /// Those that options name, each with whether it is shown what was decided.
    fn submodules_from_flags(&self) -> Result<Vec<NewSubmodule>, Error> {
        let is_named = |name: &&String| self.submodules.iter().any(|submodule| submodule.name == **name);
        if let Some(other) = self.without_decisions.iter().find(|name| !is_named(name)) {
            let advice = format!("--without-decisions {other}: no --submodule of this command has that name");
            return Err(Error::Advice(advice));
        }
        let with_switch = |submodule: &NewSubmodule| {
            let is_left_out = self.without_decisions.contains(&submodule.name);
            NewSubmodule { wants_decisions: is_left_out.then_some(false), ..submodule.clone() }
        };
        Ok(self.submodules.iter().map(with_switch).collect())
    }
}

fn submodule(text: &str) -> Result<NewSubmodule, String> {
    match text.split_once('=').map(|(name, prompt)| (name.trim(), prompt.trim())) {
        Some((name, prompt)) if !name.is_empty() && !prompt.is_empty() => {
            Ok(NewSubmodule { name: name.to_owned(), prompt: Some(prompt.to_owned()), ..NewSubmodule::default() })
        }
        _ => Err("expected NAME=PROMPT, such as 'critic=You say what may go wrong.'".to_owned()),
    }
}

/// Bounds of a session of work of an agent in the background.
#[derive(Debug, Args)]
struct SessionOptions {
    /// Model calls that a session of its work may take before the rest waits; without it, any number
    #[arg(long, value_name = "N")]
    session_calls: Option<u32>,
    /// Tokens that a session of its work may take, input and output; without it, any number
    #[arg(long, value_name = "N")]
    session_tokens: Option<u64>,
    /// Most that a session of its work may cost, in the currency of the prices; without it, any amount
    #[arg(long, value_name = "AMOUNT")]
    session_cost: Option<String>,
    /// Seconds that a session of its work may take, from its first task on; without it, any number
    #[arg(long, value_name = "N")]
    session_seconds: Option<u32>,
}

impl SessionOptions {
    fn into_bounds(self) -> Option<SessionBounds> {
        let Self { session_calls: model_calls, session_tokens: tokens, session_cost: cost, session_seconds: seconds } =
            self;
        let bounds = SessionBounds { model_calls, tokens, cost, seconds };
        (bounds != SessionBounds::default()).then_some(bounds)
    }
}

fn command(text: &str) -> Result<ProfileCommand, String> {
    let mut parts = text.splitn(3, ':').map(str::trim);
    let value = parts.next().unwrap_or_default();
    let label = parts.next().unwrap_or_default();
    if !is_command_name(value) || label.is_empty() {
        return Err(
            "expected VALUE:LABEL or VALUE:LABEL:HELP, such as 'search:Search:finds things on the web'".to_owned()
        );
    }
    let help = parts.next().unwrap_or_default();
    Ok(ProfileCommand { value: value.to_owned(), label: label.to_owned(), help: help.to_owned() })
}

fn member(text: &str) -> Result<ProfileMember, String> {
    let (agent, tools) = text.split_once(':').unwrap_or((text, ""));
    let agent = name(agent)?.to_string();
    let tools = tools.split(',').map(str::trim).filter(|tool| !tool.is_empty()).map(str::to_owned).collect();
    Ok(ProfileMember { agent, tools })
}

fn perception(text: &str) -> Result<ProfilePerception, String> {
    let (tool, arguments) = text.split_once(':').unwrap_or((text, "{}"));
    let arguments: Value = serde_json::from_str(arguments).map_err(|error| format!("expected TOOL:JSON: {error}"))?;
    Ok(ProfilePerception { tool: tool.to_owned(), arguments })
}

pub(super) async fn run(arguments: AgentsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None | Some(AgentsCommand::List) => list_agents(session).await?,
        Some(AgentsCommand::Show { agent }) => show_agent(&agent, session).await?,
        Some(AgentsCommand::Define(arguments)) => define_agent(*arguments, session).await?,
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

async fn show_agent(agent: &Name, session: &GatewaySession) -> Result<(), Error> {
    let Some(GetAgentResponse { agent, .. }) = session.get_or_print_json(&format!("v1/agents/{agent}"), &[]).await?
    else {
        return Ok(());
    };
    let page = agent.as_ref().map(|agent| format_agent(agent, Timestamp::now(), &TimeZone::system()));
    session.require_field("agent", page)?.into_iter().try_for_each(terminal::row)?;
    Ok(())
}

/// Returns the page of an agent: its definition and the state of its work.
fn format_agent(row: &AgentRow, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let none = AgentProfile::default();
    let profile = row.profile.as_ref().unwrap_or(&none);
    let mut lines = vec![row.agent.clone()];
    lines.extend(Some(one_line(&profile.description)).filter(|text| !text.is_empty()));
    lines.push(format!("defined {}", rows::format_time(row.defined_at, zone)));
    if !profile.mission.is_empty() {
        lines.push(format!("mission of {}: {}", profile.owner, one_line(&profile.mission)));
    }
    if profile.team.is_some() {
        lines.push(format!("leads a team: kairo teams show {}", row.agent));
    }
    if !profile.lead.is_empty() {
        lines.push(format!("works for the team {0}: kairo teams show {0}", profile.lead));
    }
    for member in &profile.members {
        lines.push(format!("member {}: {}", member.agent, member.tools.join(" ")));
    }
    let looked_at: Vec<&str> = profile.environment.iter().map(|it| it.tool.as_str()).collect();
    if !looked_at.is_empty() {
        lines.push(format!("looks at {} before each message", looked_at.join(" ")));
    }
    let oldest = rows::format_elapsed(row.oldest_queued_at, None, now);
    let oldest = oldest.map(|waits| format!(", the oldest for {waits}")).unwrap_or_default();
    lines.extend(row.queued.map(|queued| format!("queued tasks: {queued}{oldest}")));
    lines.extend(row.next_run_at.map(|next| format!("next run {}", rows::format_time(Some(next), zone))));
    lines.extend(
        row.last_completed_at.map(|last| format!("last at work until {}", rows::format_time(Some(last), zone))),
    );
    lines
}

async fn define_agent(arguments: AgentDefineArgs, session: &GatewaySession) -> Result<(), Error> {
    let prompt = match (arguments.prompt, arguments.prompt_file) {
        (Some(prompt), _) => prompt,
        (None, file) => read_file_or_stdin(&file.unwrap_or_else(|| "-".into()))?,
    };
    let profile = Profile {
        agent: arguments.agent.to_string(),
        description: arguments.description,
        prompt,
        tools: default_tools::tools_or_default(arguments.tools, !arguments.members.is_empty()),
        max_steps: arguments.max_steps,
        planning: arguments.planning,
        threads: arguments.threads,
        time_zone: arguments.time_zone,
        day_ends_at: arguments.day_ends_at,
        outside_content: arguments.outside_content,
        conduct: arguments.conduct,
        session_pause: arguments.session_pause,
        session: arguments.session.into_bounds(),
        task: arguments.task.into_bounds(),
        guesses_goal: arguments.guesses_goal,
        max_reflections: arguments.max_reflections,
        mission: arguments.mission,
        owner: arguments.owner.map(|owner| owner.to_string()),
        next_run_after: arguments.next_run_after,
        commands: arguments.commands,
        inner_state: arguments.inner_state,
        summary_after: arguments.summary_after,
        request_deadline: arguments.request_deadline,
        message_model_calls: arguments.message_model_calls,
        members: arguments.members,
        environment: arguments.environment,
        submodules: arguments.voices.load_submodules()?,
        max_submodules: arguments.voices.max_submodules,
        history_cutoff: arguments.voices.history_cutoff,
        history_window: arguments.voices.history_window,
        caps: arguments.caps.into_caps(),
    };
    let answer: Value = session.client.post("v1/agents", &profile).await?;
    match session.json {
        true => terminal::json(&answer)?,
        false => terminal::line(format!("{0} is defined; talk to it: kairo send --agent {0} --wait …", profile.agent))?,
    }
    Ok(())
}

/// Reads a file; `-` is standard input.
pub(super) fn read_file_or_stdin(file: &Path) -> Result<String, Error> {
    let text = match file == Path::new("-") {
        true => io::read_to_string(io::stdin().lock().take(u64::from(u32::MAX))),
        false => fs::read_to_string(file),
    };
    text.map_err(Error::file("read", file))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_shown_with_what_it_has_to_do() {
        let row: AgentRow = serde_json::from_value(json!({
            "agent": "scout", "sequence": 7, "defined_at": "2026-01-01T00:00:00Z", "queued": 2,
            "profile": { "agent": "scout", "description": "looks", "mission": "Look\nout.", "owner": "ann" },
            "oldest_queued_at": "2026-01-01T00:01:00Z", "next_run_at": "2026-01-01T02:00:00Z",
        }))
        .unwrap();
        let now = "2026-01-01T00:02:05Z".parse().unwrap();
        let text = format_agent(&row, now, &TimeZone::UTC).join("\n");
        assert_eq!(
            text,
            "scout\nlooks\ndefined 2026-01-01 00:00:00\nmission of ann: Look out.\n\
             queued tasks: 2, the oldest for 1m 5s\nnext run 2026-01-01 02:00:00"
        );
        let lines = format_agents(vec![row], &TimeZone::UTC);
        assert_eq!(lines[1], "scout  2       2026-01-01 02:00:00  all    looks");
    }
}
