//! `member.ask`, for agents that are composed of others.

use kairo_proto::{v1::Ask, words::RequestKind};
use serde_json::{Map, Value, json};

use super::{
    Intrinsic, IntrinsicContext, IntrinsicStart,
    tasks::{TEXT_CHARS, TITLE_CHARS, intrinsic},
    team::{DEADLINE, deadline_param},
};

/// Has a member think and answer.
pub const ASK: &str = "member.ask";

pub fn all() -> Vec<Intrinsic> {
    let member = json!({ "type": "string", "description": "One of those that you are composed of" });
    let text = json!({ "type": "string", "description": "What it is asked, whole: the member knows nothing else", "maxLength": TEXT_CHARS });
    let described = "Has one of your members think about something with its own prompt and tools, and returns its answer; several calls in one answer are done at once.";
    let properties = json!({ "member": member, "text": text, DEADLINE: deadline_param() });
    vec![intrinsic(ASK, described, properties, json!(["member", "text"]), ask)]
}

/// Returns true if a tool is of use only to agents that have members.
pub fn is_of_composites(tool: &str) -> bool {
    tool == ASK
}

fn ask(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let given = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let members = context.state.profile.as_ref().map(|profile| profile.members.as_slice()).unwrap_or_default();
    let known = members.iter().map(|member| member.agent.as_str());
    let Some(agent) = known.clone().find(|agent| *agent == given("member")) else {
        let known = known.collect::<Vec<_>>().join(", ");
        return Err(format!("member: {:?} is none of the members; they are {known}", given("member")));
    };
    let text = given("text");
    if text.is_empty() {
        return Err("text: expected what the member is asked, in words".to_owned());
    }
    Ok(IntrinsicStart::Request(Box::new(Ask {
        agent: agent.to_owned(),
        kind: RequestKind::Think.text(),
        user: context.turn.user.clone(),
        title: text.chars().take(TITLE_CHARS).collect(),
        text: text.to_owned(),
        path: context.state.path_to(context.agent, context.turn, agent)?,
        outside: context.state.provenance_of(context.turn).marks(),
        ..Ask::default()
    })))
}
