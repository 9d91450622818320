//! A rule that names a preset becomes the rules of that preset, each under the conditions of both. Pure.

use serde_json::{Map, Value};

use crate::presets;

/// The rules that a rule stands for: itself, unless it names a preset.
pub(super) fn expand_rule(rule: Value) -> Result<Vec<Value>, String> {
    let Some(named) = rule.get("misbehave") else { return Ok(vec![rule]) };
    let named = named.as_str().unwrap_or_default();
    let preset = presets::all().iter().find(|preset| preset.name == named);
    let Some(preset) = preset else { return Err(format!("misbehave: there is no preset named '{named}'")) };
    let name = rule.get("name").and_then(Value::as_str).unwrap_or(named);
    let known = ["name", "when", "misbehave"];
    if let Some(other) = rule.as_object().into_iter().flat_map(Map::keys).find(|key| !known.contains(&key.as_str())) {
        return Err(format!("{other}: stands beside misbehave, which says it all"));
    }
    let when = rule.get("when").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(preset
        .rules
        .iter()
        .zip(1..)
        .map(|(given, number)| join_conditions(given, &when, format!("{name}/{number}")))
        .collect())
}

fn join_conditions(given: &Value, when: &Map<String, Value>, name: String) -> Value {
    let mut rule = given.clone();
    let mut conditions = when.clone();
    conditions.extend(given.get("when").and_then(Value::as_object).cloned().unwrap_or_default());
    if let Some(fields) = rule.as_object_mut() {
        fields.insert("name".to_owned(), Value::from(name));
        fields.insert("when".to_owned(), Value::from(conditions));
    }
    rule
}
