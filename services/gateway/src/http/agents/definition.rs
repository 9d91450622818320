//! Reading definitions of agents: a whole one, or a change of the one in force. Pure.

use kairo_core::{ids::Name, profile_document};
use kairo_proto::{v1::AgentProfile, words::Conduct};
use serde_json::{Map, Value};

use super::{
    composition::ProfileComposition,
    profile::{ProfileTraits, up_to},
    sessions::SessionSettings,
};
use crate::{
    config::GatewayConfig,
    fields::{
        NAME, RequestFields, bounded_text, json_bool, json_count, json_text, one_of, parse_name, parse_text,
        query_value,
    },
    problem::Problem,
};

/// The largest mission, in bytes.
pub const MAX_MISSION: usize = 8_000;
/// The longest time until the next run, in seconds.
const MAX_NEXT_RUN: u32 = 604_800;
/// The longest name of a version, in bytes.
const MAX_VERSION: usize = 64;
const VERSION: &str = "text of 1 to 64 bytes that is no number and has no control characters";

/// A definition of an agent that is in no team.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDefinition {
    pub agent: Name,
    pub profile: AgentProfile,
    pub options: DefinitionOptions,
}

/// The part of a definition that is not in the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionOptions {
    /// The name of this version of the agent; empty for none.
    pub version: String,
    /// True if nothing is written.
    pub dry_run: bool,
}

impl DefinitionOptions {
    fn from_fields(fields: &mut RequestFields<Value>) -> Self {
        let version = fields.optional("version", VERSION, json_text(parse_version));
        let dry_run = fields.optional("dry_run", "true or false", json_bool);
        Self { version: version.unwrap_or_default(), dry_run: dry_run.unwrap_or_default() }
    }

    /// Reads the query of a change.
    pub fn from_query(query: Option<&str>) -> Result<Self, Problem> {
        let mut fields = RequestFields::from_query(query);
        let version = fields.optional("version", VERSION, query_value(parse_version));
        let dry_run = fields.optional("dry_run", "true or false", query_value(parse_text));
        fields.complete(|| Some(Self { version: version.unwrap_or_default(), dry_run: dry_run.unwrap_or_default() }))
    }
}

fn parse_version(text: &str) -> Option<String> {
    let text = bounded_text(MAX_VERSION)(text)?;
    // A number is the position of a definition in the log.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    (!text.contains(char::is_control) && !is_number).then_some(text)
}

/// Reads a whole definition.
pub fn parse_agent(body: &[u8], limits: &GatewayConfig) -> Result<AgentDefinition, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let agent = fields.required("agent", NAME, json_text(parse_name));
    let options = DefinitionOptions::from_fields(&mut fields);
    let given = ProfileFields::from_fields(&mut fields, agent.as_ref(), limits);
    fields.complete(|| {
        let agent = agent?;
        Some(AgentDefinition { profile: given.into_profile(&agent)?, agent, options })
    })
}

/// A change of single fields: a JSON merge patch (RFC 7396).
#[derive(Clone, Debug)]
pub struct ProfilePatch(Map<String, Value>);

impl ProfilePatch {
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(Problem::malformed_request("a JSON object is expected")),
            Err(error) => Err(Problem::malformed_request(format!("this is not JSON: {error}"))),
        }
    }

    /// Refuses a change of a field that no profile has.
    pub fn require_known_fields(&self, agent: &Name, limits: &GatewayConfig) -> Result<(), Problem> {
        let mut fields = RequestFields::from_nested(&Value::Object(Map::new()))?;
        ProfileFields::from_fields(&mut fields, Some(agent), limits);
        fields.unknown_names(self.0.keys().map(String::as_str)).map_or(Ok(()), Err)
    }

    /// The profile with this change.
    ///
    /// # Errors
    /// If the result is no valid profile, or if the patch names a field that no profile has.
    pub fn apply(&self, before: &AgentProfile, agent: &Name, limits: &GatewayConfig) -> Result<AgentProfile, Problem> {
        let mut document = Value::Object(profile_document::fields(before));
        merge(&mut document, &Value::Object(self.0.clone()));
        // A null for a field that no profile has is a mistake, too, and is no longer in the document.
        let removed = self.0.iter().filter(|(_, value)| value.is_null()).map(|(field, _)| field.as_str());
        parse_profile(&document, agent, removed, limits)
    }
}

/// Merges a patch as RFC 7396 has it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (field, value) in patch {
        if value.is_null() {
            target.remove(field);
        } else {
            merge(target.entry(field.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The profile as a client that gives all its fields would define it now.
///
/// # Errors
/// If it is no longer valid, since a limit has changed.
pub fn revalidate(profile: &AgentProfile, agent: &Name, limits: &GatewayConfig) -> Result<AgentProfile, Problem> {
    parse_profile(&Value::Object(profile_document::fields(profile)), agent, std::iter::empty(), limits)
}

fn parse_profile<'a>(
    document: &Value,
    agent: &Name,
    also_known: impl Iterator<Item = &'a str>,
    limits: &GatewayConfig,
) -> Result<AgentProfile, Problem> {
    let mut fields = RequestFields::from_nested(document)?;
    let given = ProfileFields::from_fields(&mut fields, Some(agent), limits);
    fields.require_known(also_known);
    fields.complete(|| given.into_profile(agent))
}

/// All fields of the profile of an agent that is in no team.
struct ProfileFields {
    traits: ProfileTraits,
    conduct: Option<&'static str>,
    sessions: SessionSettings,
    mission: String,
    next_run_after: u32,
    owner: Option<Name>,
    composition: ProfileComposition,
}

impl ProfileFields {
    fn from_fields(fields: &mut RequestFields<Value>, agent: Option<&Name>, limits: &GatewayConfig) -> Self {
        let missions = format!("text of at most {MAX_MISSION} bytes");
        let given = Self {
            traits: ProfileTraits::from_fields(fields, limits),
            conduct: fields.optional("conduct", Conduct::WORDS.join(" or "), json_text(one_of(Conduct::WORDS))),
            sessions: SessionSettings::from_fields(fields),
            mission: fields
                .optional("mission", missions, json_text(|text| up_to(MAX_MISSION, text)))
                .unwrap_or_default(),
            next_run_after: next_run_after(fields),
            owner: fields.optional("owner", NAME, json_text(parse_name)),
            composition: ProfileComposition::from_fields(fields, agent),
        };
        given.reject_contradictions(fields);
        given
    }

    /// Rejects fields that need another field.
    fn reject_contradictions(&self, fields: &mut RequestFields<Value>) {
        let is_background = self.conduct == Some(Conduct::Background.known_word());
        if !self.mission.is_empty() && !is_background {
            fields.reject("conduct", "background, as the agent has a mission");
        }
        for (field, bounds) in [("session", &self.sessions.bounds), ("task", &self.sessions.task)] {
            if bounds.is_some() && !is_background {
                fields.reject(field, "nothing, as the agent's conduct is not background");
            }
        }
        if !self.mission.is_empty() && self.owner.is_none() {
            fields.reject("owner", "the user whose mission it is, as the agent has one");
        }
    }

    /// The profile of this agent; none without a prompt.
    fn into_profile(self, agent: &Name) -> Option<AgentProfile> {
        let profile = AgentProfile {
            conduct: self.conduct.unwrap_or_default().to_owned(),
            mission: self.mission,
            next_run_after: self.next_run_after,
            owner: self.owner.map(|owner| owner.to_string()).unwrap_or_default(),
            ..self.traits.into_profile(agent)?
        };
        Some(self.composition.apply_to(self.sessions.apply_to(profile)))
    }
}

/// The field `next_run_after`; 0 where it is not given.
pub fn next_run_after(fields: &mut RequestFields<Value>) -> u32 {
    let after = format!("0 to {MAX_NEXT_RUN} seconds (0: the default)");
    fields.optional("next_run_after", after, json_count(0..=MAX_NEXT_RUN)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::SessionBounds;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_profile_needs_a_name_and_a_prompt() {
        let defined = parse_agent(br#"{"agent": "a", "prompt": "be kind"}"#, &GatewayConfig::default()).unwrap();
        let expected = AgentProfile { agent: "a".into(), prompt: "be kind".into(), ..Default::default() };
        assert_eq!((defined.agent.as_str(), defined.profile), ("a", expected));
        assert_eq!(defined.options, DefinitionOptions::default());
    }

    #[test]
    fn everything_wrong_is_named() {
        let body =
            br#"{"agent": "A", "description": 1, "prompt": "", "tools": ["a b"], "max_steps": -1, "history_limit": 1.5,
            "interjection": "later", "planning": "never", "threads": 2, "time_zone": "Mars/Utopia",
            "day_ends_at": "24:00", "outside_content": "maybe", "commands": [{"value": "a b"}], "conduct": "idle",
            "session_pause": -1,
            "session": {"model_calls": -1, "tokens": "many", "cost": 2, "seconds": 604801, "calls": 3},
            "guesses_goal": "yes", "max_reflections": 9, "inner_state": 1, "summary_after": -1,
            "mission": 7,
            "next_run_after": 604801, "owner": "Ann", "mood": "good"}"#;
        let problem = parse_agent(body, &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        let expected =
            ["agent", "description", "prompt", "tools", "max_steps", "history_limit", "interjection", "planning"];
        let traits = ["threads", "time_zone", "day_ends_at", "outside_content", "guesses_goal", "max_reflections"];
        let more = ["commands", "inner_state", "summary_after", "conduct", "session_pause"];
        let within = ["session.model_calls", "session.tokens", "session.cost", "session.seconds", "session.calls"];
        let last = ["mission", "next_run_after", "owner", "mood"];
        assert_eq!(fields, [&expected[..], &traits[..], &more[..], &within[..], &last[..]].concat());
        assert!(
            problem
                .errors
                .iter()
                .all(|error| ["mood", "session.calls"].contains(&error.field.as_str()) || !error.expected.is_empty())
        );
    }

    #[test]
    fn how_an_agent_plans_and_when_its_days_end() {
        let body = br#"{"agent": "a", "prompt": "be kind", "planning": "chain", "threads": "topics",
            "time_zone": "asia/tokyo", "day_ends_at": "23:30"}"#;
        let profile = parse_agent(body, &GatewayConfig::default()).unwrap().profile;
        assert_eq!((profile.planning.as_str(), profile.threads.as_str()), ("chain", "topics"));
        assert_eq!((profile.time_zone.as_str(), profile.day_ends_at.as_str()), ("Asia/Tokyo", "23:30"));
    }

    #[test]
    fn a_mission_takes_an_agent_in_the_background_and_an_owner() {
        let read = |more: &str| {
            let body = format!(r#"{{"agent": "a", "prompt": "be kind"{more}}}"#);
            parse_agent(body.as_bytes(), &GatewayConfig::default()).map_err(|problem| problem.errors)
        };
        let whole = r#", "conduct": "background", "mission": "know", "owner": "ann", "next_run_after": 60"#;
        let profile = read(whole).unwrap().profile;
        assert_eq!((profile.mission.as_str(), profile.owner.as_str(), profile.next_run_after), ("know", "ann", 60));
        let wrong = |more: &str| read(more).unwrap_err().into_iter().map(|error| error.field).collect::<Vec<_>>();
        assert_eq!(wrong(r#", "mission": "know""#), ["conduct", "owner"]);
        assert_eq!(wrong(r#", "session": {"seconds": 60}"#), ["session"]);
        let bounded =
            read(r#", "conduct": "background", "session": {"model_calls": 5, "cost": "0.5"}"#).unwrap().profile;
        let bounds = SessionBounds { model_calls: 5, cost: "0.5".to_owned(), ..SessionBounds::default() };
        assert_eq!(bounded.session, Some(bounds));
        assert_eq!(read(r#", "session": {"tokens": 0}"#).unwrap().profile.session, None, "bounds nothing");
        assert_eq!(wrong(r#", "task": {"seconds": 60}"#), ["task"]);
        assert_eq!(
            wrong(r#", "conduct": "background", "task": {"cost": "0", "tries": 3}"#),
            ["task.cost", "task.tries"]
        );
        let bounded = read(r#", "conduct": "background", "task": {"cost": "3"}"#).unwrap().profile;
        assert_eq!((bounded.session, bounded.task.unwrap().cost.as_str()), (None, "3"));
        assert_eq!(wrong(r#", "mission": "know", "conduct": "direct", "owner": "ann""#), ["conduct"]);
        assert_eq!(wrong(&format!(r#", "mission": "{}""#, "x".repeat(8_001))), ["mission"]);
        assert_eq!(wrong(r#", "team": {}, "lead": "b""#), ["lead", "team"]);
        assert!(read(r#", "mission": """#).is_ok());
    }

    /// A definition that sets every field, with whatever needs another field left to the caller.
    fn whole() -> Value {
        json!({
            "description": "cooks", "prompt": "Cook.", "tools": ["http.get", "!email.*", "group:mail"],
            "max_steps": 3, "history_limit": 4, "interjection": "join", "planning": "chain", "threads": "topics",
            "time_zone": "Asia/Tokyo", "day_ends_at": "23:30", "outside_content": "trusted", "conduct": "background",
            "session_pause": 5, "mission": "Know.", "next_run_after": 6, "owner": "ann",
            "session": { "model_calls": 1, "tokens": 1_000_000_000_000_000_u64, "cost": "0.5", "seconds": 9 },
            "task": { "tokens": 7 }, "guesses_goal": true, "max_reflections": 2,
            "commands": [{ "value": "cook", "label": "Cook", "help": "cooks" }],
            "submodules": [
                { "name": "a", "prompt": "A.", "tier": "light", "hears": ["message"], "deadline_ms": 100 },
                { "name": "b", "prompt": "B.", "wants_decisions": false },
            ],
            "max_submodules": 3, "history_cutoff": 8, "history_window": 9, "inner_state": true, "summary_after": 10,
            "members": [{ "agent": "waiter", "description": "serves", "tools": ["http.*"] }],
            "environment": [{ "tool": "tools.now", "arguments": { "zone": "UTC" } }],
            "caps": { "tokens_per_day": 11, "tokens_in_total": 12, "cost_per_day": "1", "cost_in_total": "2" },
            "request_deadline": 13, "message_model_calls": 14, "consent_timeout": 15,
        })
    }

    fn cook() -> Name {
        Name::parse("cook").unwrap()
    }

    fn parsed(document: &Value) -> Result<AgentProfile, Vec<String>> {
        let parsed = parse_profile(document, &cook(), std::iter::empty(), &GatewayConfig::default());
        parsed.map_err(|problem| problem.errors.into_iter().map(|error| error.field).collect())
    }

    fn patched(before: &AgentProfile, patch: &Value) -> Result<AgentProfile, Vec<String>> {
        let patch = ProfilePatch::parse(patch.to_string().as_bytes()).unwrap();
        let after = patch.apply(before, &cook(), &GatewayConfig::default());
        after.map_err(|problem| problem.errors.into_iter().map(|error| error.field).collect())
    }

    #[test]
    fn a_profile_is_defined_again_by_its_own_document() {
        let profile = parsed(&whole()).unwrap();
        let document = Value::Object(profile_document::fields(&profile));
        assert_eq!(document, whole());
        // Each field alone, and all but each.
        for field in whole().as_object().unwrap().keys() {
            let mut without = whole();
            without.as_object_mut().unwrap().remove(field);
            for document in [json!({ "prompt": "Cook.", field: whole()[field] }), without] {
                let Ok(profile) = parsed(&document) else { continue };
                assert_eq!(Value::Object(profile_document::fields(&profile)), document, "{field}");
            }
        }
    }

    #[test]
    fn a_change_leaves_every_other_field_alone() {
        let before = parsed(&whole()).unwrap();
        for (field, value) in whole().as_object().unwrap() {
            // Set to what it is, nothing changes; removed, only it changes, unless others need it.
            assert_eq!(patched(&before, &json!({ field: value })).unwrap(), before, "{field}");
            let removed = patched(&before, &json!({ field: null }));
            match field.as_str() {
                "prompt" => assert_eq!(removed.unwrap_err(), ["prompt"]),
                "conduct" => assert_eq!(removed.unwrap_err(), ["conduct", "session", "task"]),
                "owner" => assert_eq!(removed.unwrap_err(), ["owner"]),
                _ => {
                    let changes = profile_document::changes(Some(&before), &removed.unwrap());
                    assert_eq!(changes.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), [field], "{field}");
                }
            }
        }
    }

    #[test]
    fn objects_are_merged_and_lists_are_replaced() {
        let before = parsed(&whole()).unwrap();
        let after =
            patched(&before, &json!({ "caps": { "tokens_per_day": null, "cost_per_day": "3" }, "tools": ["a"] }));
        let after = Value::Object(profile_document::fields(&after.unwrap()));
        assert_eq!(after["caps"], json!({ "tokens_in_total": 12, "cost_per_day": "3", "cost_in_total": "2" }));
        assert_eq!(after["tools"], json!(["a"]));
        let none = patched(&before, &json!({ "task": { "tokens": null }, "session": { "tokens": 0 } })).unwrap();
        assert_eq!((none.task, none.session.unwrap().tokens), (None, 0));
    }

    #[test]
    fn a_change_of_what_no_profile_has_is_refused() {
        let before = parsed(&whole()).unwrap();
        let wrong =
            json!({ "mood": "good", "colour": null, "agent": "waiter", "caps": { "tokens": 5 }, "max_steps": -1 });
        let mut errors = patched(&before, &wrong).unwrap_err();
        errors.sort();
        assert_eq!(errors, ["agent", "caps.tokens", "colour", "max_steps", "mood"]);
        for malformed in ["", "[]", "7", "null", "{"] {
            assert!(ProfilePatch::parse(malformed.as_bytes()).is_err(), "{malformed}");
        }
    }
}
