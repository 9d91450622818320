//! The fields of a question: pure.

use serde_json::{Map, Value};

/// Checks a person's answer against the schema, and fills in the defaults of fields left out.
///
/// # Errors
/// Names the field that does not fit, with the reason.
pub fn complete_answer(schema: &Value, content: Value) -> Result<Value, String> {
    let mut fields = match content {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        _ => return Err("content: must be an object with the fields of the question".to_owned()),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default")
            && !fields.contains_key(name)
        {
            fields.insert(name.clone(), default.clone());
        }
    }
    if let Some(unknown) = fields.keys().find(|name| !properties.is_some_and(|known| known.contains_key(*name))) {
        return Err(format!("{unknown}: the question has no such field"));
    }
    let content = Value::Object(fields);
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| format!("the question cannot be checked: {error}"))?;
    match validator.validate(&content) {
        Ok(()) => Ok(content),
        Err(error) => {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "/".to_owned() } else { place };
            Err(format!("{place}: {}", error.masked()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_checked_and_filled() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "default": 30},
                "plan": {"type": "string", "enum": ["free", "paid"], "default": "free"},
            },
            "required": ["name"],
        });
        for (content, wanted) in [
            (json!({"name": "Ann"}), Ok(json!({"name": "Ann", "age": 30, "plan": "free"}))),
            (json!({"name": "Ann", "age": 7, "plan": "paid"}), Ok(json!({"name": "Ann", "age": 7, "plan": "paid"}))),
            (json!({"name": "Ann", "age": -1}), Err("/age")),
            (json!({"name": "Ann", "plan": "gold"}), Err("/plan")),
            (json!({}), Err("/")),
            (json!({"name": "Ann", "iban": "x"}), Err("iban")),
            (json!("Ann"), Err("content")),
        ] {
            let outcome = complete_answer(&schema, content.clone());
            match wanted {
                Ok(wanted) => assert_eq!(outcome, Ok(wanted), "{content}"),
                Err(place) => {
                    assert!(outcome.clone().is_err_and(|why| why.starts_with(place)), "{content}: {outcome:?}")
                }
            }
        }
    }

    #[test]
    fn what_a_person_said_is_not_repeated() {
        let schema = json!({"type": "object", "properties": {"pin": {"type": "integer"}}});
        let why = complete_answer(&schema, json!({"pin": "s3cret"})).unwrap_err();
        assert!(!why.contains("s3cret"), "{why}");
    }
}
