//! Schemas of OpenAPI documents as JSON Schemas that stand for themselves: references resolved, what OpenAPI 3.0 writes its
//! own way written as JSON Schema does.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

/// Deepest nesting of schemas, references followed.
const DEEPEST: usize = 32;
/// Schemas that one tool's schema may consist of.
const MOST: usize = 2_000;
/// References that lead to references.
const HOPS: usize = 8;

/// Keywords that say nothing to whoever calls a tool, or stand for something only where they were written.
const DROPPED: [&str; 12] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "definitions",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "nullable",
    "xml",
];
/// Keywords with one schema.
const ONE: [&str; 11] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords with a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords with schemas by name.
const NAMED: [&str; 3] = ["dependentSchemas", "patternProperties", "properties"];

/// Follows `$ref`s within the document to the value they lead to.
///
/// # Errors
/// When it leads nowhere, or out of the document.
pub fn follow_references<'d>(document: &'d Value, mut value: &'d Value) -> Result<&'d Value, String> {
    for _ in 0..HOPS {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => value = target(document, reference)?,
            None => return Ok(value),
        }
    }
    Err(format!("a reference leads to more than {HOPS} others"))
}

fn target<'d>(document: &'d Value, reference: &str) -> Result<&'d Value, String> {
    let pointer = reference.strip_prefix('#').ok_or_else(|| format!("{reference} is in another document"))?;
    let pointer = percent_decode_str(pointer).decode_utf8_lossy();
    document.pointer(&pointer).ok_or_else(|| format!("{reference} is not in the document"))
}

/// Resolves the schemas of one tool.
pub struct Schemas<'d> {
    document: &'d Value,
    left: usize,
    /// The references that are being resolved.
    trail: Vec<&'d str>,
}

impl<'d> Schemas<'d> {
    pub fn new(document: &'d Value) -> Self {
        Self { document, left: MOST, trail: Vec::new() }
    }

    /// A schema without references. Where it contains itself, anything may stand inside: the server checks what it is sent.
    ///
    /// # Errors
    /// When it is too large or deep, or refers to what is not there.
    pub fn resolved(&mut self, schema: &'d Value) -> Result<Value, String> {
        self.resolve_at(schema, 0)
    }

    fn resolve_at(&mut self, schema: &'d Value, depth: usize) -> Result<Value, String> {
        let Value::Object(keywords) = schema else {
            return if schema.is_boolean() { Ok(schema.clone()) } else { Err("a schema is no object".to_owned()) };
        };
        self.left =
            self.left.checked_sub(1).ok_or_else(|| format!("its schema consists of more than {MOST} others"))?;
        if depth > DEEPEST {
            return Err(format!("its schema is nested deeper than {DEEPEST} levels"));
        }
        if keywords.contains_key("$dynamicRef") {
            return Err("its schema has a $dynamicRef".to_owned());
        }
        let own = self.resolve_keywords(keywords, depth)?;
        match keywords.get("$ref").and_then(Value::as_str) {
            Some(reference) => Ok(merge_siblings(self.resolve_reference(reference, depth)?, own)),
            None => Ok(Value::Object(own)),
        }
    }

    fn resolve_reference(&mut self, reference: &'d str, depth: usize) -> Result<Value, String> {
        if self.trail.contains(&reference) {
            return Ok(json!({}));
        }
        let schema = target(self.document, reference)?;
        self.trail.push(reference);
        let resolved = self.resolve_at(schema, depth + 1);
        self.trail.pop();
        resolved
    }

    fn resolve_keywords(
        &mut self,
        keywords: &'d Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, String> {
        let mut own = Map::new();
        for (keyword, value) in keywords {
            let name = keyword.as_str();
            if name == "$ref" || DROPPED.contains(&name) || name.starts_with("x-") {
                continue;
            }
            let value = match value {
                // Lists of items are how drafts before 2020-12 wrote prefixItems.
                Value::Array(values) if LIST.contains(&name) || name == "items" => {
                    values.iter().map(|value| self.resolve_at(value, depth + 1)).collect::<Result<_, _>>()?
                }
                Value::Object(named) if NAMED.contains(&name) => Value::Object(self.resolve_named(named, depth)?),
                value if ONE.contains(&name) => self.resolve_at(value, depth + 1)?,
                value => value.clone(),
            };
            own.insert(keyword.clone(), value);
        }
        drop_read_only(keywords, &mut own);
        bounds_as_numbers(&mut own);
        if keywords.get("nullable") == Some(&Value::Bool(true)) {
            allow_null(&mut own);
        }
        Ok(own)
    }

    fn resolve_named(&mut self, named: &'d Map<String, Value>, depth: usize) -> Result<Map<String, Value>, String> {
        named.iter().map(|(name, schema)| Ok((name.clone(), self.resolve_at(schema, depth + 1)?))).collect()
    }
}

/// Combines a resolved reference with the keywords beside it: annotations alone replace those of the target, other
/// keywords apply in addition to it.
fn merge_siblings(referred: Value, own: Map<String, Value>) -> Value {
    let is_words = |keyword: &String| matches!(keyword.as_str(), "description" | "title" | "summary");
    match referred {
        Value::Object(mut referred) if own.keys().all(is_words) => {
            referred.extend(own);
            Value::Object(referred)
        }
        referred => {
            let mut all = own;
            all.insert("allOf".to_owned(), json!([referred]));
            Value::Object(all)
        }
    }
}

/// Removes properties that occur only in responses, so that agents are not asked for them.
fn drop_read_only(written: &Map<String, Value>, own: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = written.get("properties") else { return };
    let is_answers = |schema: &Value| schema.get("readOnly") == Some(&Value::Bool(true));
    let answers: Vec<&String> =
        properties.iter().filter(|(_, schema)| is_answers(schema)).map(|(name, _)| name).collect();
    if let Some(Value::Object(kept)) = own.get_mut("properties") {
        kept.retain(|name, _| !answers.contains(&name));
    }
    if let Some(Value::Array(required)) = own.get_mut("required") {
        required.retain(|name| !answers.iter().any(|answer| name.as_str() == Some(answer)));
    }
}

/// OpenAPI 3.0 writes `exclusiveMinimum: true` beside `minimum`.
fn bounds_as_numbers(own: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match own.get(exclusive) {
            Some(Value::Bool(true)) => {
                own.remove(exclusive);
                if let Some(bound) = own.remove(bound) {
                    own.insert(exclusive.to_owned(), bound);
                }
            }
            Some(Value::Bool(false)) => drop(own.remove(exclusive)),
            _ => {}
        }
    }
}

/// OpenAPI 3.0 writes `nullable: true`.
fn allow_null(own: &mut Map<String, Value>) {
    if let Some(Value::String(kind)) = own.get("type") {
        let kinds = json!([kind, "null"]);
        own.insert("type".to_owned(), kinds);
    }
    if let Some(Value::Array(values)) = own.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(document: &Value, schema: Value) -> Result<Value, String> {
        Schemas::new(document).resolved(&schema)
    }

    #[test]
    fn references_are_resolved_and_what_contains_itself_ends() {
        let document = json!({"components": {"schemas": {
            "Pet": {"type": "object", "properties": {
                "name": {"type": "string", "nullable": true, "enum": ["a"]},
                "id": {"type": "integer", "readOnly": true},
                "parent": {"$ref": "#/components/schemas/Pet", "description": "of which"},
            }, "required": ["id", "name"], "xml": {"name": "pet"}, "x-table": 1},
        }}});
        let pet = resolved(&document, json!({"$ref": "#/components/schemas/Pet"})).unwrap();
        assert_eq!(
            pet,
            json!({"type": "object", "required": ["name"], "properties": {
                "name": {"type": ["string", "null"], "enum": ["a", null]},
                "parent": {"description": "of which"},
            }})
        );
        let pets =
            resolved(&document, json!({"type": "array", "items": {"$ref": "#/components/schemas/Pet"}})).unwrap();
        assert_eq!(pets["items"], pet);
        let both = resolved(&document, json!({"$ref": "#/components/schemas/Pet", "minProperties": 1})).unwrap();
        assert_eq!((&both["minProperties"], &both["allOf"][0]), (&json!(1), &pet));
    }

    #[test]
    fn bounds_are_numbers() {
        let schema = json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false});
        assert_eq!(resolved(&json!({}), schema).unwrap(), json!({"exclusiveMinimum": 1, "maximum": 9}));
    }

    #[test]
    fn what_leads_nowhere_or_is_endless_is_refused() {
        let document = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}});
        for schema in [json!({"$ref": "other.yaml#/a"}), json!({"$ref": "#/c"}), json!({"items": 3}), json!("x")] {
            assert!(resolved(&document, schema.clone()).is_err(), "{schema}");
        }
        assert!(follow_references(&document, &document["a"]).is_err());
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert!(resolved(&document, deep).unwrap_err().contains("deeper"));
        // Each doubles the one before.
        let mut bomb = json!({});
        for level in 1..13 {
            let below = json!({"$ref": format!("#/l{}", level - 1)});
            bomb[format!("l{level}")] = json!({"allOf": [below, below]});
        }
        bomb["l0"] = json!({"type": "string"});
        assert!(resolved(&bomb, json!({"$ref": "#/l12"})).unwrap_err().contains("more than"));
    }
}
