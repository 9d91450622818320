//! `/v1/agents`: what agents are made from.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jiff::Timestamp;
use kairo_core::{
    bus::{BusError, append::Outgoing},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Raw,
    subjects::{AGENT_DEFINED, Service},
};
use kairo_proto::{
    Body,
    v1::{AgentDefined, AgentProfile},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Gateway, body::JsonBody, query, span::traceparent};
use crate::{
    config::GatewayConfig,
    fields::{Fields, NAME, at_most, count, name, text},
    problem::Problem,
};

/// Definitions of the same agent that may come in between before a request is given back to its client.
const TRIES: usize = 8;

/// The answer: this profile is in force.
#[derive(Debug, Serialize)]
pub struct Defined {
    agent: String,
    /// Where the definition stands in the log.
    sequence: u64,
}

/// Creates an agent (201) or changes it (200). The definition it has already is not written again.
pub async fn post(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<Defined>), Problem> {
    let (agent, profile) = read(&body, &gateway.config)?;
    let subject = AGENT_DEFINED.of(&agent);
    let id = ids::entering();
    let mut tries = TRIES;
    loop {
        let last = gateway.bus.last(&subject).await?;
        let expected = last.as_ref().map_or(0, |last| last.sequence);
        let status = if last.is_some() { StatusCode::OK } else { StatusCode::CREATED };
        if last.and_then(|last| in_force(&gateway, &last)).as_ref() == Some(&profile) {
            return Ok((status, Json(Defined { agent: profile.agent, sequence: expected })));
        }
        let envelope = Envelope::entering(id, Service::Gateway, Origin::User, Timestamp::now());
        let envelope = Envelope { traceparent: traceparent(&headers), ..envelope };
        let body = AgentDefined { profile: Some(profile.clone()) };
        match gateway.bus.append(&Outgoing::new(&AGENT_DEFINED, &agent, envelope, body), expected).await {
            Ok(written) => return Ok((status, Json(Defined { agent: profile.agent, sequence: written.sequence }))),
            Err(BusError::Conflict { .. }) if tries > 0 => tries -= 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The profile a message defines; none if it cannot be read, which a new definition puts right.
fn in_force(gateway: &Gateway, last: &Raw) -> Option<AgentProfile> {
    match last.read(gateway.bus.limits.max_body_bytes).ok()?.body {
        Body::AgentDefined(AgentDefined { profile }) => profile,
        _ => None,
    }
}

/// Every agent.
pub async fn get(State(gateway): State<Gateway>) -> Result<Json<Value>, Problem> {
    let agents = query::answered(&gateway, gateway.read_model.agents()).await?;
    Ok(Json(json!({ "agents": agents })))
}

/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 4_096;
/// Tools a profile names at most, and the longest name, in bytes.
const MAX_TOOLS: usize = 256;
const MAX_TOOL_NAME: usize = 64;
/// Bounds of a profile's numbers.
const MAX_STEPS: u32 = 1_000;
const MAX_HISTORY: u32 = 10_000;

fn read(body: &[u8], limits: &GatewayConfig) -> Result<(Name, AgentProfile), Problem> {
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
    let interjection = fields.optional("interjection", "order, join or restart", text(interjection));
    fields.complete(|| {
        let agent = agent?;
        let profile = AgentProfile {
            agent: agent.to_string(),
            description: description.unwrap_or_default(),
            prompt: prompt?,
            tools: tools.unwrap_or_default(),
            max_steps: max_steps.unwrap_or_default(),
            history_limit: history_limit.unwrap_or_default(),
            interjection: interjection.unwrap_or_default(),
        };
        Some((agent, profile))
    })
}

/// What becomes of a message that comes while the agent is deciding.
fn interjection(text: &str) -> Option<String> {
    matches!(text, "order" | "join" | "restart").then(|| text.to_owned())
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
            "interjection": "later"}"#;
        let problem = read(body, &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "description", "prompt", "tools", "max_steps", "history_limit", "interjection"]);
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
