//! `/v1/agents`: what agents are made from.

use axum::{
    Extension, Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode},
};
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::{
    bus::{BusError, append::Outgoing},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Raw,
    subjects::{AGENT_DEFINED, Service},
    vocabulary::BACKGROUND,
};
use kairo_proto::v1::{
    AgentDefined, AgentProfile, AgentRow, DefineAgentResponse, GetAgentResponse, ListAgentsResponse,
};
use kairo_proto::words::{Conduct, OutsideContent};
use serde_json::Value;

use super::{
    Gateway,
    answer::Told,
    body::JsonBody,
    query,
    read_consistency::{Answer, Asked},
    span::traceparent,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, at_most, count, name, one_of, text, value},
    problem::Problem,
};

/// Definitions of the same agent that may come in between before a request is given back to its client.
const TRIES: usize = 8;

/// Creates an agent (201) or changes it (200). The definition it has already is not written again.
pub async fn post(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<DefineAgentResponse>), Problem> {
    let (agent, profile) = read(&body, &gateway.config)?;
    caller.act_on_agent(Some(agent.as_str()))?;
    if !profile.conduct.is_empty() && gateway.bus.epoch().await? < BACKGROUND {
        let detail = format!("agents have a conduct from epoch {BACKGROUND} on: see kairo fleet promote");
        return Err(Problem::conflict(detail));
    }
    let subject = AGENT_DEFINED.of(&agent);
    let id = ids::entering();
    let mut tries = TRIES;
    loop {
        let last = gateway.bus.last(&subject).await?;
        let expected = last.as_ref().map_or(0, |last| last.sequence);
        let status = if last.is_some() { StatusCode::OK } else { StatusCode::CREATED };
        if last.and_then(|last| in_force(&gateway, &last)).as_ref() == Some(&profile) {
            return Ok((status, Json(DefineAgentResponse { agent: profile.agent, sequence: expected })));
        }
        let envelope = Envelope::entering(id, Service::Gateway, Origin::User, Timestamp::now());
        let (traceparent, entered_by) = (traceparent(&headers), Some(caller.principal()));
        let envelope = Envelope { traceparent, entered_by, ..envelope };
        let body = AgentDefined { profile: Some(profile.clone()) };
        match gateway.bus.append(&Outgoing::new(&AGENT_DEFINED, &agent, envelope, body), expected).await {
            Ok(written) => {
                return Ok((status, Json(DefineAgentResponse { agent: profile.agent, sequence: written.sequence })));
            }
            Err(BusError::Conflict { .. }) if tries > 0 => tries -= 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The profile a message defines; none if it cannot be read, which a new definition puts right.
fn in_force(gateway: &Gateway, last: &Raw) -> Option<AgentProfile> {
    let body = last.read(gateway.bus.limits.max_body_bytes).ok()?.body;
    AgentDefined::try_from(body).ok()?.profile
}

/// The agents that the caller may see, in the order of their names: all of them, or page by page.
pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Answer<Told<ListAgentsResponse>>, Problem> {
    let (after, limit) = asked.read(|query| read_page(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut agents = query::answered(&gateway, snapshot.agents()).await?;
    agents.retain(|agent| caller.act_on_agent(Some(&agent.agent)).is_ok());
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    agents.retain(|agent| after.as_ref().is_none_or(|after| agent.agent.as_str() > after.as_str()));
    let page = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let more = agents.len() > page;
    agents.truncate(page);
    agents.iter_mut().for_each(|agent| withhold(agent, &caller));
    let next_after = agents.last().filter(|_| more).map(|agent| agent.agent.clone());
    Ok(Answer::of(&snapshot, Told(ListAgentsResponse { agents, next_after, ..Default::default() })))
}

fn read_page(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<Name>, Option<u32>), Problem> {
    let mut fields = Fields::from_query(url_query);
    let after = fields.optional("after", NAME, value(name));
    let limit = query::rows("limit", &mut fields, config);
    fields.complete(|| Some((after, limit)))
}

/// One agent.
pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetAgentResponse>>, Problem> {
    let name = query::agent(path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let agent = query::answered(&gateway, snapshot.agent(name.as_str())).await?;
    let unknown = || {
        let detail = format!("no agent {name} is known; GET /v1/agents lists those there are");
        Problem::not_found(detail).at(snapshot.position())
    };
    let mut agent = agent.ok_or_else(unknown)?;
    withhold(&mut agent, &caller);
    Ok(Answer::of(&snapshot, Told(GetAgentResponse { agent: Some(agent), ..Default::default() })))
}

/// Users need not read how an agent is instructed, which may be what keeps it from telling them.
fn withhold(agent: &mut AgentRow, caller: &Caller) {
    if let (Some(profile), Some(_)) = (&mut agent.profile, caller.user()) {
        profile.prompt.clear();
    }
}

/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 4_096;
/// Tools a profile names at most, and the longest name, in bytes.
const MAX_TOOLS: usize = 256;
const MAX_TOOL_NAME: usize = 64;
/// Bounds of a profile's numbers.
const MAX_STEPS: u32 = 1_000;
const MAX_HISTORY: u32 = 10_000;
const MAX_PAUSE: u32 = 86_400;

pub fn read(body: &[u8], limits: &GatewayConfig) -> Result<(Name, AgentProfile), Problem> {
    let mut fields = Fields::from_json(body)?;
    let agent = fields.required("agent", NAME, text(name));
    let describe = format!("text of at most {MAX_DESCRIPTION} bytes");
    let description = fields.optional("description", describe, text(|it| up_to(MAX_DESCRIPTION, it)));
    let longest = limits.max_prompt_bytes;
    let prompt = fields.required("prompt", format!("text of 1 to {longest} bytes"), text(at_most(longest)));
    let tools = fields.optional("tools", TOOLS, tools);
    let max_steps = fields.optional("max_steps", format!("0 to {MAX_STEPS} (0: the default)"), count(0..=MAX_STEPS));
    let history = format!("0 to {MAX_HISTORY} (0: the default)");
    let history_limit = fields.optional("history_limit", history, count(0..=MAX_HISTORY));
    let interjection = fields.optional("interjection", "order, join or restart", text(one_of(&INTERJECTIONS)));
    let planning = fields.optional("planning", PLANNING.join(" or "), text(one_of(&PLANNING)));
    let threads = fields.optional("threads", THREADS.join(" or "), text(one_of(&THREADS)));
    let time_zone = fields.optional("time_zone", TIME_ZONE, text(time_zone));
    let day_ends_at = fields.optional("day_ends_at", TIME_OF_DAY, text(time_of_day));
    let trust = OutsideContent::WORDS.join(" or ");
    let outside_content = fields.optional("outside_content", trust, text(one_of(OutsideContent::WORDS)));
    let conduct = fields.optional("conduct", Conduct::WORDS.join(" or "), text(one_of(Conduct::WORDS)));
    let pause = format!("0 to {MAX_PAUSE} seconds (0: the default)");
    let session_pause = fields.optional("session_pause", pause, count(0..=MAX_PAUSE));
    fields.complete(|| {
        let agent = agent?;
        let profile = AgentProfile {
            agent: agent.to_string(),
            description: description.unwrap_or_default(),
            prompt: prompt?,
            tools: tools.unwrap_or_default(),
            max_steps: max_steps.unwrap_or_default(),
            history_limit: history_limit.unwrap_or_default(),
            interjection: interjection.unwrap_or_default().to_owned(),
            planning: planning.unwrap_or_default().to_owned(),
            threads: threads.unwrap_or_default().to_owned(),
            time_zone: time_zone.unwrap_or_default(),
            day_ends_at: day_ends_at.unwrap_or_default(),
            outside_content: outside_content.unwrap_or_default().to_owned(),
            conduct: conduct.unwrap_or_default().to_owned(),
            session_pause: session_pause.unwrap_or_default(),
        };
        Some((agent, profile))
    })
}

/// What becomes of a message that comes while the agent is deciding.
const INTERJECTIONS: [&str; 3] = ["order", "join", "restart"];
/// How the agent acts.
const PLANNING: [&str; 2] = ["tools", "chain"];
/// Which thread a message belongs to.
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

fn up_to(max: usize, text: &str) -> Option<String> {
    (text.len() <= max).then(|| text.to_owned())
}

const TOOLS: &str = "a list of at most 256 names of tools, or of prefixes followed by *";

fn tools(value: &Value) -> Option<Vec<String>> {
    let tools = value.as_array().filter(|tools| tools.len() <= MAX_TOOLS)?;
    tools.iter().map(|tool| tool.as_str().filter(|tool| is_tool_pattern(tool)).map(str::to_owned)).collect()
}

fn is_tool_pattern(pattern: &str) -> bool {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !pattern.is_empty() && pattern.len() <= MAX_TOOL_NAME && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_needs_a_name_and_a_prompt() {
        let (agent, profile) = read(br#"{"agent": "a", "prompt": "be kind"}"#, &GatewayConfig::default()).unwrap();
        let expected = AgentProfile { agent: "a".into(), prompt: "be kind".into(), ..Default::default() };
        assert_eq!((agent.as_str(), profile), ("a", expected));
    }

    #[test]
    fn everything_wrong_is_named() {
        let body =
            br#"{"agent": "A", "description": 1, "prompt": "", "tools": ["a b"], "max_steps": -1, "history_limit": 1.5,
            "interjection": "later", "planning": "never", "threads": 2, "time_zone": "Mars/Utopia",
            "day_ends_at": "24:00", "outside_content": "maybe", "conduct": "idle", "session_pause": -1, "mood": "good"}"#;
        let problem = read(body, &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        let expected =
            ["agent", "description", "prompt", "tools", "max_steps", "history_limit", "interjection", "planning"];
        assert_eq!(
            fields,
            [
                &expected[..],
                &["threads", "time_zone", "day_ends_at", "outside_content", "conduct", "session_pause", "mood"]
            ]
            .concat()
        );
        assert!(problem.errors.iter().all(|error| error.field == "mood" || !error.expected.is_empty()));
    }

    #[test]
    fn how_an_agent_plans_and_when_its_days_end() {
        let body = br#"{"agent": "a", "prompt": "be kind", "planning": "chain", "threads": "topics",
            "time_zone": "asia/tokyo", "day_ends_at": "23:30"}"#;
        let (_, profile) = read(body, &GatewayConfig::default()).unwrap();
        assert_eq!((profile.planning.as_str(), profile.threads.as_str()), ("chain", "topics"));
        assert_eq!((profile.time_zone.as_str(), profile.day_ends_at.as_str()), ("Asia/Tokyo", "23:30"));
    }

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
    fn tools_are_names_or_prefixes() {
        for good in ["*", "tools.*", "http.get", "mcp.Read_file-2"] {
            assert!(is_tool_pattern(good), "{good}");
        }
        for bad in ["", "a*b", "**", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_tool_pattern(bad), "{bad}");
        }
    }
}
