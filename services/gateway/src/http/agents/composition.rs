//! The composition of a profile: its member agents, and the perceptions it reads when a message comes.

use kairo_core::ids::Name;
use kairo_proto::v1::{AgentProfile, Member, Perception, ToolSpec};
use serde_json::Value;

use super::{
    DefinitionWriter,
    profile::{MAX_DESCRIPTION, MAX_TOOLS, TOOLS, parse_tools},
};
use crate::{
    fields::{NAME, RequestFields, bounded_text, json_text, parse_name},
    http::tools,
    problem::{FieldError, Problem},
};

/// Members of an agent, and tools that it looks at, at most.
const MAX_MEMBERS: usize = 16;
const MAX_PERCEPTIONS: usize = 8;
/// Largest arguments of a perception, in bytes.
const MAX_ARGUMENTS: usize = 4_096;
/// Longest name of a tool, in bytes.
const MAX_TOOL_NAME: usize = 64;
/// Tools that do something although calling them twice has the effect of once.
const ACTING: [&str; 2] = ["calendar.create", "document.create"];

/// The fields `members` and `environment`.
#[derive(Debug, Default)]
pub struct ProfileComposition {
    members: Vec<Member>,
    environment: Vec<Perception>,
}

impl ProfileComposition {
    pub fn from_fields(fields: &mut RequestFields<Value>, agent: Option<&Name>) -> Self {
        let members = parse_list(fields, "members", MAX_MEMBERS, parse_member);
        let environment = parse_list(fields, "environment", MAX_PERCEPTIONS, parse_perception);
        for (at, member) in members.iter().enumerate() {
            let field = format!("members[{at}].agent");
            if agent.is_some_and(|agent| agent.as_str() == member.agent) {
                fields.reject(&field, "another agent: none is composed of itself");
            }
            if members.iter().take(at).any(|other| other.agent == member.agent) {
                fields.reject(&field, "an agent that no other member is");
            }
        }
        Self { members, environment }
    }

    /// The profile with what they say.
    pub fn apply_to(self, profile: AgentProfile) -> AgentProfile {
        AgentProfile { members: self.members, environment: self.environment, ..profile }
    }
}

/// A list of objects; what is wrong with one is told by where it stands.
fn parse_list<T>(
    fields: &mut RequestFields<Value>,
    field: &'static str,
    most: usize,
    read: impl Fn(RequestFields<Value>) -> Result<T, Problem>,
) -> Vec<T> {
    let expected = format!("a list of at most {most} JSON objects");
    let given =
        fields.optional(field, expected, |value: &Value| value.as_array().filter(|items| items.len() <= most).cloned());
    let mut items = Vec::new();
    for (at, value) in given.iter().flatten().enumerate() {
        match RequestFields::from_nested(value).and_then(&read) {
            Ok(item) => items.push(item),
            Err(problem) => fields.add_nested_errors(&format!("{field}[{at}]"), problem),
        }
    }
    items
}

fn parse_member(mut fields: RequestFields<Value>) -> Result<Member, Problem> {
    let agent = fields.required("agent", NAME, json_text(parse_name));
    let described = format!("text of at most {MAX_DESCRIPTION} bytes");
    let up_to = |text: &str| (text.len() <= MAX_DESCRIPTION).then(|| text.to_owned());
    let description = fields.optional("description", described, json_text(up_to)).unwrap_or_default();
    let tools = fields.optional("tools", TOOLS, parse_tools).unwrap_or_default();
    fields.complete(|| Some(Member { agent: agent?.to_string(), description, tools }))
}

fn parse_perception(mut fields: RequestFields<Value>) -> Result<Perception, Problem> {
    let expected = format!("the name of a tool, of 1 to {MAX_TOOL_NAME} bytes");
    let tool = fields.required("tool", expected, json_text(bounded_text(MAX_TOOL_NAME)));
    let expected = format!("a JSON object of at most {MAX_ARGUMENTS} bytes");
    let arguments = fields.optional("arguments", expected, |value: &Value| {
        let text = value.to_string();
        (value.is_object() && text.len() <= MAX_ARGUMENTS).then_some(text)
    });
    fields.complete(|| Some(Perception { tool: tool?, arguments: arguments.unwrap_or_default() }))
}

impl DefinitionWriter<'_> {
    /// The profile with what its members say of themselves, where it says nothing; refused where it is composed of what
    /// is not there or the caller may not act on, or looks at what does more than read.
    pub async fn resolve_composition(&self, mut profile: AgentProfile) -> Result<AgentProfile, Problem> {
        let mut errors = Vec::new();
        for (at, member) in profile.members.iter_mut().enumerate() {
            let Ok(agent) = Name::parse(&member.agent) else { continue };
            self.caller.require_agent(Some(agent.as_str()))?;
            match self.current_profile(&agent).await? {
                Some(defined) => errors.extend(fill_member(at, member, &defined)),
                None => {
                    errors.push(field_error(&format!("members[{at}].agent"), "an agent that is defined", &member.agent))
                }
            }
        }
        if !profile.environment.is_empty() {
            let catalogue = tools::current_catalogue(self.gateway).await?.tools;
            errors.extend(
                profile.environment.iter().enumerate().filter_map(|(at, it)| check_perception(at, it, &catalogue)),
            );
        }
        if errors.is_empty() { Ok(profile) } else { Err(Problem::invalid_fields(errors)) }
    }
}

/// Fills a member's empty description and tools from its own profile.
fn fill_member(at: usize, member: &mut Member, defined: &AgentProfile) -> Option<FieldError> {
    if member.description.is_empty() {
        member.description.clone_from(&defined.description);
    }
    if member.tools.is_empty() {
        let of_members = defined.members.iter().flat_map(|member| &member.tools);
        member.tools = defined.tools.iter().chain(of_members).cloned().collect();
        // An agent that names no tools has them all.
        if member.tools.is_empty() {
            member.tools.push("*".to_owned());
        }
    }
    let most = format!("at most {MAX_TOOLS} tools; name those that are wanted");
    (member.tools.len() > MAX_TOOLS).then(|| field_error(&format!("members[{at}].tools"), &most, &member.agent))
}

fn check_perception(at: usize, perception: &Perception, catalogue: &[ToolSpec]) -> Option<FieldError> {
    let known = catalogue.iter().find(|tool| tool.name == perception.tool);
    let expected = match known {
        None => "a tool of the catalogue",
        Some(tool) if only_reads(tool) => return None,
        Some(_) => "a tool that only reads: idempotent, seen by nobody else, and without consent",
    };
    Some(field_error(&format!("environment[{at}].tool"), expected, &perception.tool))
}

fn only_reads(tool: &ToolSpec) -> bool {
    let name = tool.name.as_str();
    let is_about_actions = name.starts_with("action.") || name.starts_with("process.");
    let asks = tool.needs_approval || !tool.needs_approval_with.is_empty();
    tool.idempotent && !tool.acts_outside && !asks && !is_about_actions && !ACTING.contains(&name)
}

fn field_error(field: &str, expected: &str, found: &str) -> FieldError {
    FieldError { field: field.to_owned(), expected: expected.to_owned(), found: Some(found.to_owned()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<ProfileComposition, Vec<String>> {
        let mut fields = RequestFields::from_json(body.to_string().as_bytes()).unwrap();
        let agent = Name::parse("a").unwrap();
        let read = ProfileComposition::from_fields(&mut fields, Some(&agent));
        fields.complete(|| Some(read)).map_err(|problem| problem.errors.into_iter().map(|it| it.field).collect())
    }

    #[test]
    fn an_agent_is_composed_of_others_each_once() {
        let composed = read(&json!({
            "members": [{ "agent": "b", "description": "searches", "tools": ["web.*"] }, { "agent": "c" }],
            "environment": [{ "tool": "tools.now", "arguments": { "zone": "UTC" } }, { "tool": "email.search" }],
        }))
        .unwrap();
        assert_eq!((composed.members[0].agent.as_str(), composed.members[1].tools.len()), ("b", 0));
        assert_eq!((composed.environment[0].arguments.as_str(), composed.environment.len()), (r#"{"zone":"UTC"}"#, 2));
        let wrong = json!({ "members": [{ "agent": "a" }, { "agent": "b" }, { "agent": "b", "tools": "all" }, 7, { "agent": "b" }] });
        assert_eq!(
            read(&wrong).unwrap_err(),
            ["members[2].tools", "members[3]", "members[0].agent", "members[2].agent"]
        );
        let many = |count: usize| (0..count).map(|at| json!({ "agent": format!("m{at}") })).collect::<Vec<_>>();
        assert!(read(&json!({ "members": many(16) })).is_ok());
        assert_eq!(read(&json!({ "members": many(17) })).unwrap_err(), ["members"]);
        let tools = |count: usize| vec![json!({ "tool": "tools.now" }); count];
        assert!(read(&json!({ "environment": tools(8) })).is_ok());
        assert_eq!(read(&json!({ "environment": tools(9) })).unwrap_err(), ["environment"]);
        let long = json!({ "x": "x".repeat(4_096) });
        let wrong = json!({ "environment": [{ "tool": "" }, { "tool": "a", "arguments": long }, { "arguments": [] }] });
        let expected =
            ["environment[0].tool", "environment[1].arguments", "environment[2].tool", "environment[2].arguments"];
        assert_eq!(read(&wrong).unwrap_err(), expected);
    }

    #[test]
    fn a_member_is_there_for_what_its_own_profile_names() {
        let of = |tools: &[&str], members: Vec<Member>| AgentProfile {
            description: "searches".into(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            members,
            ..Default::default()
        };
        let filled = |mut member: Member, defined: &AgentProfile| (fill_member(0, &mut member, defined), member).1;
        let searching = filled(Member::default(), &of(&["web.*"], Vec::new()));
        assert_eq!((searching.description.as_str(), searching.tools), ("searches", vec!["web.*".to_owned()]));
        assert_eq!(filled(Member::default(), &of(&[], Vec::new())).tools, ["*"]);
        let inner = Member { tools: vec!["http.get".into()], ..Default::default() };
        assert_eq!(filled(Member::default(), &of(&[], vec![inner.clone()])).tools, ["http.get"]);
        assert_eq!(filled(inner, &of(&["web.*"], Vec::new())).tools, ["http.get"]);
    }

    #[test]
    fn only_what_reads_is_looked_at() {
        let tool = |name: &str| ToolSpec { name: name.into(), idempotent: true, ..Default::default() };
        assert!(only_reads(&tool("tools.now")));
        for acting in [
            tool("document.create"),
            tool("process.signal"),
            ToolSpec { idempotent: false, ..tool("a") },
            ToolSpec { acts_outside: true, ..tool("a") },
            ToolSpec { needs_approval: true, ..tool("a") },
        ] {
            assert!(!only_reads(&acting), "{acting:?}");
        }
        let looks_at = |tool: &str| Perception { tool: tool.into(), ..Default::default() };
        let catalogue = [tool("tools.now"), tool("document.create")];
        assert_eq!(check_perception(0, &looks_at("tools.now"), &catalogue), None);
        for (at, unknown) in ["no.such", "document.create"].into_iter().enumerate() {
            let error = check_perception(at, &looks_at(unknown), &catalogue).unwrap();
            assert_eq!((error.field, error.found), (format!("environment[{at}].tool"), Some(unknown.to_owned())));
        }
    }
}
