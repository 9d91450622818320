//! Whatever a tool's schema is, what is sent keeps to the rules of the strictest providers.

use proptest::prelude::*;

use super::*;
use crate::intrinsics;

/// Returns the rule of a provider that a schema breaks, and the place.
fn broken(schema: &Value, at: &str) -> Option<String> {
    let flaw = |what: &str| Some(format!("{at}: {what}"));
    let Some(fields) = schema.as_object() else { return flaw("no object") };
    if let Some(several) = fields.get("anyOf") {
        let Some(several) = several.as_array().filter(|several| several.len() > 1) else { return flaw("anyOf of one") };
        if fields.len() > 1 {
            return flaw("something beside anyOf");
        }
        return several.iter().enumerate().find_map(|(number, one)| match one.get("anyOf") {
            Some(_) => flaw("anyOf in anyOf"),
            None => broken(one, &format!("{at}/anyOf/{number}")),
        });
    }
    let own: &[&str] = match fields.get("type").and_then(Value::as_str) {
        Some("object") => &["properties", "required"],
        Some("array") => &["items", "minItems", "maxItems"],
        Some("string") => &["enum"],
        Some("integer" | "number") => &["minimum", "maximum"],
        Some("boolean") => &[],
        _ => return flaw("no type"),
    };
    if let Some(other) =
        fields.keys().find(|key| !own.contains(&key.as_str()) && !["type", "description"].contains(&key.as_str()))
    {
        return flaw(&format!("the keyword {other}"));
    }
    if fields.get("enum").is_some_and(|words| {
        !words.as_array().is_some_and(|words| {
            !words.is_empty() && words.iter().all(|word| word.as_str().is_some_and(|word| !word.is_empty()))
        })
    }) {
        return flaw("an enum that is no list of words");
    }
    if let Some(items) = fields.get("items") {
        return broken(items, &format!("{at}/items"));
    }
    if fields["type"] == "array" {
        return flaw("no items");
    }
    if fields["type"] != "object" {
        return None;
    }
    let Some(properties) = fields.get("properties").and_then(Value::as_object) else { return flaw("no properties") };
    let required = fields.get("required").map(|required| required.as_array().cloned().unwrap_or_default());
    if required.is_some_and(|names| {
        names.is_empty() || !names.iter().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
    }) {
        return flaw("required names that are none");
    }
    properties.iter().find_map(|(name, one)| broken(one, &format!("{at}/{name}")))
}

fn wire_schema(schema: Value) -> Value {
    let sent = to_wire_schema(&schema.to_string());
    assert_eq!(broken(&sent, ""), None, "{schema} became {sent}");
    assert_eq!(sent["type"], "object");
    sent
}

/// Returns a property as it is sent.
fn property(schema: Value) -> Value {
    wire_schema(json!({ "properties": { "a": schema } }))["properties"]["a"].clone()
}

#[test]
fn properties_are_put_as_all_endpoints_take_them() {
    let free = json!({ "type": "object", "properties": {} });
    let anything = json!([{ "type": "string" }, { "type": "number" }, { "type": "boolean" }, free]);
    for (schema, expected) in [
        (
            json!({ "type": "string", "description": "words", "title": "A" }),
            json!({ "type": "string", "description": "words" }),
        ),
        (json!({ "type": ["string", "null"] }), json!({ "type": "string", "description": "(or null)" })),
        (
            json!({ "type": ["string", "integer"], "description": "x" }),
            json!({ "anyOf": [{ "type": "string", "description": "x" }, { "type": "integer" }] }),
        ),
        (json!({ "enum": ["a", "b"] }), json!({ "type": "string", "enum": ["a", "b"] })),
        (json!({ "enum": [1, 2, null] }), json!({ "type": "integer", "description": "(one of 1, 2, null)" })),
        (json!({ "enum": ["a", ""] }), json!({ "type": "string", "description": "(one of \"a\", an empty text)" })),
        (json!({ "const": "a" }), json!({ "type": "string", "enum": ["a"] })),
        (json!({ "type": "array" }), json!({ "type": "array", "items": { "anyOf": anything } })),
        (
            json!({ "items": [{ "type": "string" }, { "type": "integer" }] }),
            json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] } }),
        ),
        (
            json!({ "prefixItems": [{ "type": "string" }], "items": false, "maxItems": 1 }),
            json!({ "type": "array", "maxItems": 1, "items": { "type": "string" } }),
        ),
        (json!(true), json!({ "anyOf": anything })),
        (json!({}), json!({ "anyOf": anything })),
        (
            json!({ "type": "string", "format": "date", "pattern": "^2", "default": "2" }),
            json!({ "type": "string", "description": "(format date; pattern ^2; default \"2\")" }),
        ),
        (
            json!({ "type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2 }),
            json!({ "type": "integer", "minimum": 1, "description": "(less than 9)" }),
        ),
        (json!({ "type": "object", "additionalProperties": {} }), free.clone()),
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "null" }], "description": "x" }),
            json!({ "type": "string", "description": "x (or null)" }),
        ),
        (
            json!({ "anyOf": [{ "const": "a" }, { "anyOf": [{ "type": "integer" }, { "type": "boolean" }] }] }),
            json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "integer" }, { "type": "boolean" }] }),
        ),
        (
            json!({ "allOf": [{ "type": "object", "properties": { "b": { "type": "string" } } }, { "required": ["b"] }] }),
            json!({ "type": "object", "properties": { "b": { "type": "string" } }, "required": ["b"] }),
        ),
        (json!({ "not": {}, "if": {}, "then": {}, "type": "boolean" }), json!({ "type": "boolean" })),
    ] {
        assert_eq!(property(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn the_root_is_an_object_whatever_it_was() {
    let nothing = json!({ "type": "object", "properties": {} });
    for schema in [
        json!({}),
        json!(null),
        json!([]),
        json!(false),
        json!({ "type": "array" }),
        json!({ "type": "string" }),
        json!({ "$ref": "#" }),
        json!({ "$ref": "elsewhere" }),
    ] {
        assert_eq!(wire_schema(schema.clone()), nothing, "{schema}");
    }
    for text in ["", "no JSON", &format!("{{\"description\":\"{}\"}}", "x".repeat(SCHEMA_BYTES))] {
        assert_eq!(to_wire_schema(text), nothing);
    }
    let forms = json!({ "oneOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }, { "properties": { "b": { "type": "string" } } }] });
    assert_eq!(
        wire_schema(forms),
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } })
    );
    let odd = json!({ "properties": { "a": { "type": "string" }, "$b": { "type": "string" }, "c": false }, "required": ["a", "c", "none", 1], "type": ["object", "null"] });
    assert_eq!(
        wire_schema(odd),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] })
    );
    assert!(
        wire_schema(json!({ "properties": { "a": { "type": "string" } }, "required": true })).get("required").is_none()
    );
}

#[test]
fn references_are_written_out_within_bounds() {
    let tree = json!({
        "$defs": { "node": { "type": "object", "properties": { "name": { "type": "string" }, "inner": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } },
        "properties": { "top": { "$ref": "#/$defs/node", "description": "the tree" } },
    });
    let sent_tree = wire_schema(tree);
    assert_eq!(
        sent_tree["properties"]["top"]["properties"]["inner"]["items"]["properties"]["name"],
        json!({ "type": "string" })
    );
    assert_eq!(sent_tree["properties"]["top"]["description"], "the tree");
    let next = |at: usize| json!({ "$ref": format!("#/$defs/d{at}") });
    let defs = (0..40).map(|at| (format!("d{at}"), json!({ "properties": { "a": next(at + 1), "b": next(at + 1) } })));
    let doubling = json!({ "$defs": defs.collect::<Map<_, _>>(), "properties": { "a": next(0) } });
    assert!(wire_schema(doubling).to_string().len() < 200_000);
    let all = (0..40).map(|at| (format!("d{at}"), json!({ "allOf": [next(at + 1), next(at + 1)] })));
    wire_schema(json!({ "$defs": all.collect::<Map<_, _>>(), "$ref": "#/$defs/d0" }));
}

#[test]
fn every_tool_of_the_mind_is_taken() {
    for intrinsic in intrinsics::all() {
        let whole: Value = serde_json::from_str(&intrinsic.tool.schema).unwrap();
        let sent = wire_schema(whole.clone());
        let names =
            |schema: &Value| schema["properties"].as_object().map(|named| named.keys().cloned().collect::<Vec<_>>());
        assert_eq!(names(&sent), names(&whole).or(Some(Vec::new())), "{}", intrinsic.tool.name);
    }
}

fn schemas() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "string",
        "object",
        "array",
        "integer",
        "number",
        "null",
        "boolean",
        "",
        "#/a",
        "#",
        "#/$defs/a",
        "a",
        "date",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        words.prop_map(Value::from),
        Just(json!(["string", "null"])),
    ];
    let key = prop::sample::select(vec![
        "a",
        "$b",
        "type",
        "properties",
        "required",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "items",
        "prefixItems",
        "enum",
        "const",
        "pattern",
        "format",
        "$defs",
        "additionalProperties",
        "description",
        "minimum",
        "exclusiveMinimum",
        "minItems",
        "default",
    ]);
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner.clone(), 0..6)
                .prop_map(Value::from_iter),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|fields| json!({ "properties": fields, "type": "object" })),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_breaks_a_rule(schema in schemas()) {
        let sent = to_wire_schema(&schema.to_string());
        prop_assert_eq!(broken(&sent, ""), None, "{} became {}", schema, sent);
        prop_assert_eq!(&sent["type"], "object");
        // What is written is taken as it is.
        prop_assert_eq!(to_wire_schema(&sent.to_string()), sent);
    }
}
