//! Reading profiles: of agents as they are defined, and of those that a team is made of.

use jiff::tz::TimeZone;
use kairo_core::{commands::is_command_name, ids::Name, tool_groups};
use kairo_proto::{
    v1::{AgentProfile, Caps, ProfileCommand},
    words::OutsideContent,
};
use serde_json::Value;

use super::{caps, submodules::SubmoduleSettings};
use crate::{
    config::GatewayConfig,
    fields::{RequestFields, bounded_text, json_count, json_text, one_of},
};

/// Longest description, in bytes.
pub const MAX_DESCRIPTION: usize = 4_096;
/// Tools a profile names at most, and the longest name, in bytes.
pub const MAX_TOOLS: usize = 256;
const MAX_TOOL_NAME: usize = 64;
/// Bounds of a profile's numbers.
const MAX_STEPS: u32 = 1_000;
const MAX_HISTORY: u32 = 10_000;
const MAX_REFLECTIONS: u32 = 8;
/// Longest deadline of what other agents are asked for, in seconds.
const MAX_DEADLINE: u32 = 86_400;
/// The longest wait for a human's consent, in seconds: thirty days.
const MAX_CONSENT_TIMEOUT: u32 = 2_592_000;
/// Most calls of models that one message may set off.
const MAX_MESSAGE_CALLS: u32 = 100_000;
const MAX_ANSWERS: u32 = 1_000;
/// Commands a profile declares at most, and the longest label and help of one, in bytes.
const MAX_COMMANDS: usize = 32;
const MAX_LABEL: usize = 64;
const MAX_HELP: usize = 256;
/// The fields of a profile that every agent has, in a team or not.
pub struct ProfileTraits {
    description: Option<String>,
    prompt: Option<String>,
    tools: Option<Vec<String>>,
    max_steps: Option<u32>,
    history_limit: Option<u32>,
    interjection: Option<&'static str>,
    planning: Option<&'static str>,
    threads: Option<&'static str>,
    time_zone: Option<String>,
    day_ends_at: Option<String>,
    outside_content: Option<&'static str>,
    guesses_goal: Option<bool>,
    max_reflections: Option<u32>,
    commands: Option<Vec<ProfileCommand>>,
    inner_state: Option<bool>,
    summary_after: Option<u32>,
    request_deadline: Option<u32>,
    message_model_calls: Option<u32>,
    consent_timeout: Option<u32>,
    voices: SubmoduleSettings,
    caps: Option<Caps>,
}

impl ProfileTraits {
    pub fn from_fields(fields: &mut RequestFields<Value>, limits: &GatewayConfig) -> Self {
        let describe = format!("text of at most {MAX_DESCRIPTION} bytes");
        let longest = limits.max_prompt_bytes;
        let steps = format!("0 to {MAX_STEPS} (0: the default)");
        let history = format!("0 to {MAX_HISTORY} (0: the default)");
        let trust = OutsideContent::WORDS.join(" or ");
        let reviews = format!("0 to {MAX_REFLECTIONS} (0: never)");
        let summaries = format!("0 to {MAX_ANSWERS} answers (0: never)");
        let deadline = format!("0 to {MAX_DEADLINE} seconds (0: the default)");
        let calls = format!("0 to {MAX_MESSAGE_CALLS} (0: the default)");
        let consents = format!("0 to {MAX_CONSENT_TIMEOUT} seconds (0: never)");
        Self {
            description: fields.optional("description", describe, json_text(|it| up_to(MAX_DESCRIPTION, it))),
            prompt: fields.required(
                "prompt",
                format!("text of 1 to {longest} bytes"),
                json_text(bounded_text(longest)),
            ),
            tools: fields.optional("tools", TOOLS, parse_tools),
            max_steps: fields.optional("max_steps", steps, json_count(0..=MAX_STEPS)),
            history_limit: fields.optional("history_limit", history, json_count(0..=MAX_HISTORY)),
            interjection: fields.optional("interjection", "order, join or restart", json_text(one_of(&INTERJECTIONS))),
            planning: fields.optional("planning", PLANNING.join(" or "), json_text(one_of(&PLANNING))),
            threads: fields.optional("threads", THREADS.join(" or "), json_text(one_of(&THREADS))),
            time_zone: fields.optional("time_zone", TIME_ZONE, json_text(time_zone)),
            day_ends_at: fields.optional("day_ends_at", TIME_OF_DAY, json_text(time_of_day)),
            outside_content: fields.optional("outside_content", trust, json_text(one_of(OutsideContent::WORDS))),
            guesses_goal: fields.optional("guesses_goal", "true or false", Value::as_bool),
            max_reflections: fields.optional("max_reflections", reviews, json_count(0..=MAX_REFLECTIONS)),
            commands: fields.optional("commands", COMMANDS, parse_commands),
            inner_state: fields.optional("inner_state", "true or false", Value::as_bool),
            summary_after: fields.optional("summary_after", summaries, json_count(0..=MAX_ANSWERS)),
            request_deadline: fields.optional("request_deadline", deadline, json_count(0..=MAX_DEADLINE)),
            message_model_calls: fields.optional("message_model_calls", calls, json_count(0..=MAX_MESSAGE_CALLS)),
            consent_timeout: fields.optional("consent_timeout", consents, json_count(0..=MAX_CONSENT_TIMEOUT)),
            voices: SubmoduleSettings::from_fields(fields),
            caps: caps::parse(fields),
        }
    }

    /// Returns the description of the agent for people and for a lead.
    pub fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    /// The profile of this agent; none without a prompt.
    pub fn into_profile(self, agent: &Name) -> Option<AgentProfile> {
        Some(self.voices.apply_to(AgentProfile {
            agent: agent.to_string(),
            description: self.description.unwrap_or_default(),
            prompt: self.prompt?,
            tools: self.tools.unwrap_or_default(),
            max_steps: self.max_steps.unwrap_or_default(),
            history_limit: self.history_limit.unwrap_or_default(),
            interjection: self.interjection.unwrap_or_default().to_owned(),
            planning: self.planning.unwrap_or_default().to_owned(),
            threads: self.threads.unwrap_or_default().to_owned(),
            time_zone: self.time_zone.unwrap_or_default(),
            day_ends_at: self.day_ends_at.unwrap_or_default(),
            outside_content: self.outside_content.unwrap_or_default().to_owned(),
            guesses_goal: self.guesses_goal.unwrap_or_default(),
            max_reflections: self.max_reflections.unwrap_or_default(),
            commands: self.commands.unwrap_or_default(),
            inner_state: self.inner_state.unwrap_or_default(),
            summary_after: self.summary_after.unwrap_or_default(),
            request_deadline: self.request_deadline.unwrap_or_default(),
            message_model_calls: self.message_model_calls.unwrap_or_default(),
            consent_timeout: self.consent_timeout.unwrap_or_default(),
            caps: self.caps,
            ..AgentProfile::default()
        }))
    }
}

/// Ways to treat a message that arrives while the agent is deciding.
const INTERJECTIONS: [&str; 3] = ["order", "join", "restart"];
/// Ways in which the agent acts.
const PLANNING: [&str; 2] = ["tools", "chain"];
/// Ways to assign messages to threads.
const THREADS: [&str; 2] = ["single", "topics"];

const TIME_ZONE: &str = "the IANA name of a time zone, such as Europe/Berlin";
const TIME_OF_DAY: &str = "a time of day from 00:00 to 23:59, as HH:MM";

/// The zone as it is spelled in the database.
fn time_zone(name: &str) -> Option<String> {
    let zone = TimeZone::get(name).ok().filter(|zone| !zone.is_unknown())?;
    zone.iana_name().map(str::to_owned)
}

fn time_of_day(text: &str) -> Option<String> {
    let (hour, minute) = text.split_once(':')?;
    let within = |digits: &str, end: u8| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number && digits.parse().is_ok_and(|number: u8| number < end)
    };
    (within(hour, 24) && within(minute, 60)).then(|| text.to_owned())
}

pub fn up_to(max: usize, text: &str) -> Option<String> {
    (text.len() <= max).then(|| text.to_owned())
}

pub const TOOLS: &str = "a list of at most 256 names of tools, of prefixes followed by *, or of groups such as group:mail, with ! \
    before those that are taken out";

pub fn parse_tools(value: &Value) -> Option<Vec<String>> {
    let tools = value.as_array().filter(|tools| tools.len() <= MAX_TOOLS)?;
    let is_listed = |tool: &&str| is_tool_pattern(tool.strip_prefix('!').unwrap_or(tool));
    tools.iter().map(|tool| tool.as_str().filter(is_listed).map(str::to_owned)).collect()
}

const COMMANDS: &str = "a list of at most 32 commands {value, label, help}, each with a value of its own: 1 to 32 of a-z, 0-9, _ \
    and -, a label of 1 to 64 bytes, and a help of at most 256 bytes, which may be left out";

fn parse_commands(value: &Value) -> Option<Vec<ProfileCommand>> {
    let commands = value.as_array().filter(|commands| commands.len() <= MAX_COMMANDS)?;
    let commands: Vec<ProfileCommand> = commands.iter().map(parse_command).collect::<Option<_>>()?;
    let is_first = |(at, command): (usize, &ProfileCommand)| {
        commands.iter().position(|other| other.value == command.value) == Some(at)
    };
    commands.iter().enumerate().all(is_first).then_some(commands)
}

fn parse_command(value: &Value) -> Option<ProfileCommand> {
    let fields = value.as_object()?;
    let known = fields.keys().all(|field| matches!(field.as_str(), "value" | "label" | "help"));
    let line = |text: &str, max: usize| text.len() <= max && !text.contains(char::is_control);
    let value = fields.get("value")?.as_str().filter(|value| is_command_name(value))?;
    let label = fields.get("label")?.as_str().filter(|label| !label.trim().is_empty() && line(label, MAX_LABEL))?;
    let help = fields.get("help").map_or(Some(""), Value::as_str).filter(|help| line(help, MAX_HELP))?;
    known.then(|| ProfileCommand { value: value.to_owned(), label: label.to_owned(), help: help.to_owned() })
}

fn is_tool_pattern(pattern: &str) -> bool {
    if let Some(group) = pattern.strip_prefix(tool_groups::PREFIX) {
        return !group.contains('*') && is_tool_pattern(group);
    }
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !pattern.is_empty() && pattern.len() <= MAX_TOOL_NAME && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_those_of_the_database() {
        for good in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3"] {
            assert_eq!(time_zone(good).as_deref(), Some(good));
        }
        for bad in
            ["", " ", "Berlin", "CEST-2", "+02:00", "Etc/Unknown", "../etc/passwd", "Europe/", &"x".repeat(70_000)]
        {
            assert_eq!(time_zone(bad), None, "{bad:.40}");
        }
    }

    #[test]
    fn a_time_of_day_is_written_in_full() {
        for good in ["00:00", "09:05", "23:59"] {
            assert_eq!(time_of_day(good).as_deref(), Some(good));
        }
        for bad in
            ["", "9:05", "24:00", "12:60", "12:5", "12:00:00", "12.00", "+1:00", "-1:00", "noon", "\u{661}2:00", ":"]
        {
            assert_eq!(time_of_day(bad), None, "{bad}");
        }
    }

    #[test]
    fn commands_have_names_of_their_own() {
        let read = |text: &str| parse_commands(&serde_json::from_str(text).unwrap());
        let search = ProfileCommand { value: "search".into(), label: "Search".into(), help: String::new() };
        assert_eq!(read(r#"[{"value": "search", "label": "Search"}]"#), Some(vec![search]));
        assert!(read(r#"[{"value": "a", "label": "A", "help": "does"}, {"value": "b", "label": "A"}]"#).is_some());
        for bad in [
            "{}",
            r#"[{"value": "a"}]"#,
            r#"[{"value": "A", "label": "A"}]"#,
            r#"[{"value": "/a", "label": "A"}]"#,
            r#"[{"value": "a", "label": " "}]"#,
            r#"[{"value": "a", "label": "A\nB"}]"#,
            r#"[{"value": "a", "label": "A", "help": 7}]"#,
            r#"[{"value": "a", "label": "A", "more": ""}]"#,
            r#"[{"value": "a", "label": "A"}, {"value": "a", "label": "B"}]"#,
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn tools_are_names_or_prefixes() {
        for good in ["*", "tools.*", "http.get", "mcp.Read_file-2", "group:mail"] {
            assert!(is_tool_pattern(good), "{good}");
        }
        for bad in ["", "a*b", "**", "a b", "ä", "group:", "group:*", "group:a:b", "tools:x", &"x".repeat(65)] {
            assert!(!is_tool_pattern(bad), "{bad}");
        }
        assert_eq!(parse_tools(&serde_json::json!(["*", "!email.*"])).unwrap().len(), 2);
        assert_eq!(parse_tools(&serde_json::json!(["!"])), None);
    }
}
