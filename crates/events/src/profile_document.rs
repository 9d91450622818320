//! A profile as a JSON object, in the form in which clients define an agent, and the difference of two profiles.

use std::collections::BTreeSet;

use kairo_proto::v1::{AgentProfile, ProfileChange};
use serde_json::{Map, Value};

/// Fields whose numbers have 64 bits: proto3's mapping writes them as text.
const LARGE_NUMBERS: [&str; 3] = ["tokens", "tokens_per_day", "tokens_in_total"];

/// The fields of a profile that have a value other than their default, without the name of the agent. A definition with
/// these fields makes the same profile, except for an agent of a team (`team`, `lead`).
///
/// ```
/// use kairo_proto::v1::{AgentProfile, Caps};
///
/// let caps = Some(Caps { tokens_per_day: 5, since: "2026-01-01T00:00:00Z".to_owned(), ..Caps::default() });
/// let profile = AgentProfile { agent: "cook".to_owned(), prompt: "Cook.".to_owned(), caps, ..AgentProfile::default() };
/// let fields = kairo_events::profile_document::fields(&profile);
/// assert_eq!(serde_json::Value::from(fields), serde_json::json!({ "prompt": "Cook.", "caps": { "tokens_per_day": 5 } }));
/// ```
pub fn fields(profile: &AgentProfile) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(profile) else { return Map::new() };
    fields.remove("agent");
    if let Some(Value::Object(caps)) = fields.get_mut("caps") {
        // It is not given: it follows from the definition before.
        caps.remove("since");
    }
    for submodule in objects(fields.get_mut("submodules")) {
        // Here the default is true.
        match submodule.remove("wants_decisions") {
            Some(_) => None,
            None => submodule.insert("wants_decisions".to_owned(), Value::Bool(false)),
        };
    }
    for perception in objects(fields.get_mut("environment")) {
        let arguments = perception.get("arguments").and_then(Value::as_str).map(serde_json::from_str);
        if let Some(Ok(arguments)) = arguments {
            perception.insert("arguments".to_owned(), arguments);
        }
    }
    for bounds in ["session", "task", "caps", "team"] {
        if let Some(Value::Object(bounds)) = fields.get_mut(bounds) {
            bounds.iter_mut().filter(|(field, _)| LARGE_NUMBERS.contains(&field.as_str())).for_each(restore_number);
        }
    }
    fields
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn restore_number((_, value): (&String, &mut Value)) {
    if let Some(number) = value.as_str().and_then(|text| text.parse::<u64>().ok()) {
        *value = Value::from(number);
    }
}

/// The fields in which a profile differs from the one before, by name.
pub fn changes(before: Option<&AgentProfile>, after: &AgentProfile) -> Vec<ProfileChange> {
    let before = before.map(fields).unwrap_or_default();
    let after = fields(after);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let change = |name: &String| ProfileChange {
        field: name.clone(),
        before: before.get(name).map(Into::into),
        after: after.get(name).map(Into::into),
    };
    changed.map(change).collect()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{Perception, SessionBounds, Submodule};
    use serde_json::json;

    use super::*;

    fn profile() -> AgentProfile {
        AgentProfile {
            agent: "cook".to_owned(),
            prompt: "Cook.".to_owned(),
            tools: vec!["http.get".to_owned()],
            session: Some(SessionBounds { tokens: u64::MAX, seconds: 5, ..SessionBounds::default() }),
            submodules: vec![
                Submodule { name: "a".to_owned(), wants_decisions: true, ..Submodule::default() },
                Submodule { name: "b".to_owned(), ..Submodule::default() },
            ],
            environment: vec![Perception { tool: "tools.now".to_owned(), arguments: r#"{"zone":"UTC"}"#.to_owned() }],
            ..AgentProfile::default()
        }
    }

    #[test]
    fn fields_have_the_form_in_which_clients_give_them() {
        let expected = json!({
            "prompt": "Cook.",
            "tools": ["http.get"],
            "session": { "tokens": u64::MAX, "seconds": 5 },
            "submodules": [{ "name": "a" }, { "name": "b", "wants_decisions": false }],
            "environment": [{ "tool": "tools.now", "arguments": { "zone": "UTC" } }],
        });
        assert_eq!(Value::from(fields(&profile())), expected);
    }

    #[test]
    fn a_difference_names_each_field_with_both_values() {
        let after = AgentProfile { tools: Vec::new(), description: "cooks".to_owned(), ..profile() };
        let changes: Vec<_> = changes(Some(&profile()), &after)
            .into_iter()
            .map(|change| (change.field, change.before.map(|it| it.value()), change.after.map(|it| it.value())))
            .collect();
        let expected = [
            ("description".to_owned(), None, Some(json!("cooks"))),
            ("tools".to_owned(), Some(json!(["http.get"])), None),
        ];
        assert_eq!(changes, expected);
        assert!(super::changes(Some(&after), &after).is_empty());
        assert_eq!(super::changes(None, &after).len(), fields(&after).len());
    }
}
