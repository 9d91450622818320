//! The options that set fields of a profile.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::Args;
use kairo_core::{commands::is_command_name, ids::Name};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    Error,
    client::{NewSubmodule, ProfileCommand, ProfileMember, ProfilePerception, SessionBounds},
    commands::{caps::CapOptions, name, task_bounds::TaskBoundOptions},
    default_tools,
};

/// An option for each field of a profile. A field whose option is not given is not set.
#[derive(Debug, Args)]
pub(super) struct ProfileOptions {
    /// Prompt of the agent
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// Prompt of the agent, from a file; - reads standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Description shown to people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A tool it is offered, or a prefix followed by *; can be repeated; ! before one takes out what it covers.
    /// * is every tool (default: few, see docs/agents.md)
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Model calls in one turn before it must answer
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,
    /// Entries of a thread that are kept for the model, the oldest dropped first (default: 200)
    #[arg(long, value_name = "N")]
    history_limit: Option<u32>,
    /// How to treat a message that arrives while the agent is deciding: order (one after the other), join (together with
    /// all others that have arrived) or restart (begin the decision again) (default: order)
    #[arg(long, value_name = "HOW", value_parser = ["order", "join", "restart"])]
    interjection: Option<String>,
    /// Planning: tools (calls tools itself) or chain (plans, and smaller models carry the plan out) (default: tools)
    #[arg(long, value_name = "HOW", value_parser = ["tools", "chain"])]
    planning: Option<String>,
    /// Its threads: single (one for each user) or topics (one for each subject) (default: single)
    #[arg(long, value_name = "WHICH", value_parser = ["single", "topics"])]
    threads: Option<String>,
    /// The time zone of its days and times, such as Europe/Berlin (default: UTC)
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// When its day ends, as HH:MM: what happened is then written to its memory (default: never)
    #[arg(long, value_name = "TIME")]
    day_ends_at: Option<String>,
    /// Calls that act outside, such as email.send or process.run, once it has seen mails, pages or what MCP servers say:
    /// consent (a human is asked) or trusted (they are made) (default: consent)
    #[arg(long, value_name = "HOW", value_parser = ["consent", "trusted"])]
    outside_content: Option<String>,
    /// Conduct: direct (the turn that does the work answers) or background (work is acknowledged at once, queued, and
    /// done beside the conversation) (default: direct)
    #[arg(long, value_name = "HOW", value_parser = ["direct", "background"])]
    conduct: Option<String>,
    /// Seconds until a queued task that failed is tried again (default: 60)
    #[arg(long, value_name = "SECONDS")]
    session_pause: Option<u32>,
    #[command(flatten)]
    session: SessionOptions,
    #[command(flatten)]
    task: TaskBoundOptions,
    /// Have a fast model first guess the goal of each message: one more fast call for each
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    guesses_goal: Option<bool>,
    /// Most reviews of draft replies in a turn, 0 to 8: a fast call each, and a heavy one where a draft is rewritten;
    /// (default: 0)
    #[arg(long, value_name = "N")]
    max_reflections: Option<u32>,
    /// Mission it works for on its own account; takes --conduct background and --owner
    #[arg(long, value_name = "TEXT")]
    mission: Option<String>,
    /// User who owns the mission and is told what is worth telling
    #[arg(long, value_parser = name, value_name = "NAME")]
    owner: Option<Name>,
    /// Seconds from the end of its work until it asks itself what to do for its mission (default: 3600)
    #[arg(long, value_name = "SECONDS")]
    next_run_after: Option<u32>,
    /// Command that users may call it by, with its label in lists and its help; can be repeated
    #[arg(long = "command", value_name = "VALUE:LABEL[:HELP]", value_parser = command)]
    commands: Vec<ProfileCommand>,
    /// Keep an inner state: what it writes with state.write is there in later turns, separate for each user
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    inner_state: Option<bool>,
    /// Answers in a conversation after which the light model sums it up, for lists and searches (default: never)
    #[arg(long, value_name = "N")]
    summary_after: Option<u32>,
    /// Seconds until a request to another agent is late, unless the call says otherwise (default: 600)
    #[arg(long, value_name = "SECONDS")]
    request_deadline: Option<u32>,
    /// Most model calls for one message and everything that it sets off, over all agents (default: 500)
    #[arg(long, value_name = "N")]
    message_model_calls: Option<u32>,
    /// Seconds until a call that waits for a human's consent counts as rejected (default: never)
    #[arg(long, value_name = "SECONDS")]
    consent_timeout: Option<u32>,
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

impl ProfileOptions {
    /// Without tools, those of an agent whose definition names none.
    pub(super) fn with_default_tools(self) -> Self {
        let tools = default_tools::tools_or_default(self.tools, !self.members.is_empty());
        Self { tools, ..self }
    }

    /// The fields that are given, as the gateway takes them.
    pub(super) fn into_fields(self) -> Result<Map<String, Value>, Error> {
        let prompt = match (self.prompt, self.prompt_file) {
            (None, Some(file)) => Some(read_file_or_stdin(&file)?),
            (prompt, _) => prompt,
        };
        let submodules = self.voices.load_submodules()?;
        let mut fields = GivenFields::default();
        fields.set("prompt", prompt);
        fields.set("description", self.description);
        fields.set_list("tools", self.tools);
        fields.set("max_steps", self.max_steps);
        fields.set("history_limit", self.history_limit);
        fields.set("interjection", self.interjection);
        fields.set("planning", self.planning);
        fields.set("threads", self.threads);
        fields.set("time_zone", self.time_zone);
        fields.set("day_ends_at", self.day_ends_at);
        fields.set("outside_content", self.outside_content);
        fields.set("conduct", self.conduct);
        fields.set("session_pause", self.session_pause);
        fields.set("session", self.session.into_bounds());
        fields.set("task", self.task.into_bounds());
        fields.set("guesses_goal", self.guesses_goal);
        fields.set("max_reflections", self.max_reflections);
        fields.set("mission", self.mission);
        fields.set("owner", self.owner.map(|owner| owner.to_string()));
        fields.set("next_run_after", self.next_run_after);
        fields.set_list("commands", self.commands);
        fields.set("inner_state", self.inner_state);
        fields.set("summary_after", self.summary_after);
        fields.set("request_deadline", self.request_deadline);
        fields.set("message_model_calls", self.message_model_calls);
        fields.set("consent_timeout", self.consent_timeout);
        fields.set_list("members", self.members);
        fields.set_list("environment", self.environment);
        fields.set_list("submodules", submodules);
        fields.set("max_submodules", self.voices.max_submodules);
        fields.set("history_cutoff", self.voices.history_cutoff);
        fields.set("history_window", self.voices.history_window);
        fields.set("caps", self.caps.into_fields());
        Ok(fields.0)
    }
}

/// Fields of a profile by their names.
#[derive(Default)]
struct GivenFields(Map<String, Value>);

impl GivenFields {
    fn set(&mut self, field: &str, value: Option<impl Serialize>) {
        if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
            self.0.insert(field.to_owned(), value);
        }
    }

    fn set_list(&mut self, field: &str, values: Vec<impl Serialize>) {
        self.set(field, Some(values).filter(|values| !values.is_empty()));
    }
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
    /// Most submodules, those added later included (default: 8)
    #[arg(long, value_name = "N")]
    max_submodules: Option<u32>,
    /// Newest entries of a thread that are shown when it is thought about (default: all that are kept)
    #[arg(long, value_name = "N")]
    history_cutoff: Option<u32>,
    /// Age in seconds beyond which entries of a thread are not shown (default: any age)
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
    /// Model calls that a session of its work may take before the rest waits (default: any number)
    #[arg(long, value_name = "N")]
    session_calls: Option<u32>,
    /// Tokens that a session of its work may take, input and output (default: any number)
    #[arg(long, value_name = "N")]
    session_tokens: Option<u64>,
    /// Most that a session of its work may cost, in the currency of the prices (default: any amount)
    #[arg(long, value_name = "AMOUNT")]
    session_cost: Option<String>,
    /// Seconds that a session of its work may take, from its first task on (default: any number)
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

/// Reads a file; `-` is standard input.
pub(in crate::commands) fn read_file_or_stdin(file: &Path) -> Result<String, Error> {
    let text = match file == Path::new("-") {
        true => io::read_to_string(io::stdin().lock().take(u64::from(u32::MAX))),
        false => fs::read_to_string(file),
    };
    text.map_err(Error::file("read", file))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestCommand {
        #[command(flatten)]
        profile: ProfileOptions,
    }

    /// A value that each option takes, by the names of values in its help.
    fn example_value(option: &clap::Arg) -> String {
        if let Some(value) = option.get_possible_values().first() {
            return value.get_name().to_owned();
        }
        let named = option.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
        match named.as_deref() {
            Some("N" | "SECONDS") => "7",
            Some("AMOUNT") => "1.5",
            Some("NAME=PROMPT") => "critic=You doubt.",
            Some("VALUE:LABEL[:HELP]") => "cook:Cook",
            Some("BOOL") => "true",
            Some("NAME") => "ann",
            _ => "x",
        }
        .to_owned()
    }

    #[test]
    fn every_field_of_a_profile_has_an_option() {
        let command = TestCommand::command();
        let set: Vec<String> = command
            .get_arguments()
            .filter_map(|option| Some((option.get_long()?, option)))
            .filter(|(long, _)| !["help", "prompt-file", "submodules-file", "without-decisions"].contains(long))
            .map(|(long, option)| format!("--{long}={}", example_value(option)))
            .collect();
        let parsed = TestCommand::try_parse_from([String::new()].into_iter().chain(set)).unwrap();
        let given: BTreeSet<String> =
            parsed.profile.into_fields().unwrap().into_iter().map(|(field, _)| field).collect();
        let files = FileDescriptorSet::decode(kairo_proto::DESCRIPTORS).unwrap().file;
        let mut messages = files.iter().flat_map(|file| &file.message_type);
        let request = messages.find(|message| message.name() == "DefineAgentRequest").unwrap();
        let known = request.field.iter().map(|field| field.name().to_owned());
        let beside = ["agent", "version", "dry_run"];
        let expected: BTreeSet<String> = known.filter(|field| !beside.contains(&field.as_str())).collect();
        assert_eq!(given, expected);
    }

    #[test]
    fn an_option_that_is_not_given_sets_nothing() {
        let parsed = TestCommand::try_parse_from([
            "",
            "--guesses-goal=false",
            "--cap-cost",
            "3",
            "--cap-tokens=0",
            "--session-calls",
            "5",
        ]);
        let fields = Value::Object(parsed.unwrap().profile.into_fields().unwrap());
        let expected = serde_json::json!({
            "guesses_goal": false, "caps": { "cost_in_total": "3", "tokens_in_total": 0 }, "session": { "model_calls": 5 },
        });
        assert_eq!(fields, expected);
    }
}
