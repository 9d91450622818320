//! Schemas of tools as every endpoint takes them. The log, and whoever checks a call, keep the schema as it is.
//!
//! The strictest providers refuse these, each with an error for the whole request:
//! * OpenAI: a root that is no object, a list without `items`, `required` that is no list; Anthropic: `anyOf` at the root, names of
//!   properties with characters other than letters, digits, `_`, `.` and `-`
//! * Gemini: lists of types, `enum` without the type string or with empty words, `const`, `oneOf`, `allOf`, `not`, `$ref`,
//!   `additionalProperties`, `exclusiveMinimum`, formats, anything beside `anyOf`, a schema without a type
//! * Mistral: `$ref` to places that its grammar does not follow; llama.cpp: patterns and formats that its grammar does not know
//!
//! So one form serves all: objects, lists with items, words with `enum`, numbers with bounds, and `anyOf` alone. What is left out is
//! said in the description where it is short; a call that breaks it is told so by the check of the whole schema.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::schema::resolve_ref;
use serde_json::{Map, Value, json};

use super::SCHEMA_BYTES;

/// Levels of objects and lists that are written; what is deeper is any value.
const LEVELS: usize = 10;
/// Schemas that are written of one tool; optional properties behind them are left out.
const SCHEMAS: usize = 1_000;
/// Parts that are looked at to write them: those that are referred to are looked at again each time.
const LOOKED_AT: usize = 10_000;
/// References and `allOf` that follow on each other.
const HOPS: usize = 16;
/// Longest description of a property, in characters, and longest note in it.
const DESCRIPTION_CHARS: usize = 1_000;
const NOTE_CHARS: usize = 200;
/// Longest name of a property, in characters.
const NAME_CHARS: usize = 64;

/// A tool's schema as every endpoint takes it: an object with `properties`. One that cannot be read is an object without any.
pub fn to_wire_schema(schema: &str) -> Value {
    let parsed =
        Some(schema).filter(|schema| schema.len() <= SCHEMA_BYTES).and_then(|schema| serde_json::from_str(schema).ok());
    let root: Value = parsed.unwrap_or_default();
    let mut writer = WireSchemaWriter { root: &root, left: SCHEMAS, looks: LOOKED_AT };
    let whole = writer.flatten(&root, HOPS).unwrap_or_default();
    Value::Object(writer.write_object(&whole, LEVELS))
}

/// A schema with all that it refers to: the keywords of `allOf` and `$ref` beside its own.
#[derive(Default)]
struct FlatSchema<'s> {
    keywords: BTreeMap<&'s str, &'s Value>,
    properties: Vec<(&'s str, &'s Value)>,
    required: BTreeSet<&'s str>,
}

impl<'s> FlatSchema<'s> {
    fn keyword_list(&self, keyword: &str) -> Option<&'s Vec<Value>> {
        self.keywords.get(keyword)?.as_array()
    }

    fn alternatives(&self) -> impl Iterator<Item = &'s Value> {
        ["anyOf", "oneOf"].into_iter().filter_map(|keyword| self.keyword_list(keyword)).flatten()
    }

    fn has_any_of(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.keywords.contains_key(keyword))
    }

    /// The types that it names or, where it names none, the one that its keywords are about.
    fn type_names(&self) -> Vec<&'s str> {
        let named: Vec<&str> = match self.keywords.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let known = ["string", "integer", "number", "boolean", "object", "array", "null"];
        let mut types: Vec<&str> = known.into_iter().filter(|known| named.contains(known)).collect();
        if types.contains(&"number") {
            types.retain(|one| *one != "integer");
        }
        match types.is_empty() {
            false => types,
            true if !self.properties.is_empty() || self.has_any_of(&["required", "additionalProperties"]) => {
                vec!["object"]
            }
            true if self.has_any_of(&["items", "prefixItems", "minItems", "maxItems"]) => vec!["array"],
            true if self.has_any_of(&["pattern", "format", "minLength", "maxLength"]) => vec!["string"],
            true if self.has_any_of(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) => {
                vec!["number"]
            }
            true => Vec::new(),
        }
    }
}

struct WireSchemaWriter<'s> {
    root: &'s Value,
    /// Schemas that may still be written.
    left: usize,
    /// Parts that may still be looked at.
    looks: usize,
}

impl<'s> WireSchemaWriter<'s> {
    /// Takes together what a schema says; none where nothing is allowed.
    fn flatten(&mut self, schema: &'s Value, hops: usize) -> Option<FlatSchema<'s>> {
        let mut flat = FlatSchema::default();
        self.looks = self.looks.saturating_sub(1);
        let fields = match schema {
            Value::Bool(false) => return None,
            Value::Object(fields) if self.looks > 0 => fields,
            _ => return Some(flat),
        };
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(named)) => {
                    flat.properties.extend(named.iter().map(|(name, it)| (name.as_str(), it)))
                }
                ("required", Value::Array(names)) => flat.required.extend(names.iter().filter_map(Value::as_str)),
                ("$ref" | "allOf" | "properties" | "required", _) => {}
                (keyword, value) => _ = flat.keywords.insert(keyword, value),
            }
        }
        let Some(hops) = hops.checked_sub(1) else { return Some(flat) };
        let referred = fields.get("$ref").and_then(Value::as_str).and_then(|place| resolve_ref(self.root, place));
        let all = fields.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in referred.into_iter().chain(all) {
            let part = self.flatten(part, hops)?;
            for (keyword, value) in part.keywords {
                flat.keywords.entry(keyword).or_insert(value);
            }
            let is_new = |known: &FlatSchema<'_>, name: &str| known.properties.iter().all(|(known, _)| *known != name);
            let new = part.properties.into_iter().filter(|(name, _)| is_new(&flat, name)).collect::<Vec<_>>();
            flat.properties.extend(new);
            flat.required.extend(part.required);
        }
        Some(flat)
    }

    /// A schema as it is written; none where nothing is allowed, or there is no more room.
    fn write_schema(&mut self, schema: &'s Value, levels: usize) -> Option<Map<String, Value>> {
        self.left = self.left.checked_sub(1)?;
        let flat = self.flatten(schema, HOPS)?;
        let is_choice = flat.properties.is_empty() && flat.alternatives().next().is_some();
        let (written, mut notes) = match is_choice {
            true => self.write_choice(&flat, levels),
            false => match literal_values(&flat) {
                Some(literals) => write_literals(&literals),
                None => self.write_typed(&flat, levels),
            },
        };
        notes.extend(default_note(&flat));
        let said = flat.keywords.get("description").and_then(|said| said.as_str()).unwrap_or_default();
        Some(with_description(written, said, &notes))
    }

    /// One of several schemas.
    fn write_choice(&mut self, flat: &FlatSchema<'s>, levels: usize) -> (Vec<Map<String, Value>>, Vec<String>) {
        let mut written = Vec::new();
        let mut is_nullable = false;
        for alternative in flat.alternatives() {
            if alternative.get("type").and_then(Value::as_str) == Some("null") {
                is_nullable = true;
                continue;
            }
            let Some(deeper) = levels.checked_sub(1) else { break };
            let Some(alternative) = self.write_schema(alternative, deeper) else { continue };
            add_alternative(&mut written, alternative);
        }
        if written.is_empty() {
            let (typed, mut notes) = self.write_typed(flat, levels);
            notes.extend(is_nullable.then(nullable_note));
            return (typed, notes);
        }
        (written, is_nullable.then(nullable_note).into_iter().collect())
    }

    /// By the types that it names.
    fn write_typed(&mut self, flat: &FlatSchema<'s>, levels: usize) -> (Vec<Map<String, Value>>, Vec<String>) {
        let types = flat.type_names();
        let mut notes: Vec<String> =
            (types.contains(&"null") && types.len() > 1).then(nullable_note).into_iter().collect();
        let mut written = Vec::new();
        for kind in types.iter().filter(|kind| **kind != "null") {
            written.push(match *kind {
                "object" => self.write_object(flat, levels),
                "array" => self.write_array(flat, levels),
                "string" => {
                    notes.extend(["format", "pattern"].into_iter().filter_map(|keyword| keyword_note(flat, keyword)));
                    schema_of_type("string")
                }
                "boolean" => schema_of_type("boolean"),
                number => {
                    notes.extend(
                        ["exclusiveMinimum", "exclusiveMaximum"]
                            .into_iter()
                            .filter_map(|keyword| keyword_note(flat, keyword)),
                    );
                    with_bounds(schema_of_type(number), flat, &["minimum", "maximum"])
                }
            });
        }
        (if written.is_empty() { schemas_of_any_type() } else { written }, notes)
    }

    fn write_object(&mut self, flat: &FlatSchema<'s>, levels: usize) -> Map<String, Value> {
        let mut object = schema_of_type("object");
        let mut properties = Map::new();
        let mut required = Vec::new();
        // Where one of several forms is to be kept to, the properties of all may stand.
        let mut others = Vec::new();
        for alternative in flat.alternatives() {
            others.extend(self.flatten(alternative, HOPS).map(|form| form.properties).unwrap_or_default());
        }
        for (name, schema) in flat.properties.iter().chain(&others) {
            let is_required = flat.required.contains(name);
            let is_taken = properties.contains_key(*name) || !(is_required || is_property_name(name));
            let Some(deeper) = levels.checked_sub(1).filter(|_| !is_taken) else { continue };
            let Some(written) = self.write_schema(schema, deeper) else { continue };
            properties.insert((*name).to_owned(), Value::Object(written));
            if is_required {
                required.push(json!(name));
            }
        }
        object.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            object.insert("required".to_owned(), Value::Array(required));
        }
        object
    }

    fn write_array(&mut self, flat: &FlatSchema<'s>, levels: usize) -> Map<String, Value> {
        let of = |keyword: &str| match flat.keywords.get(keyword) {
            Some(Value::Array(several)) => several.iter().collect::<Vec<_>>(),
            Some(one @ Value::Object(_)) => vec![*one],
            _ => Vec::new(),
        };
        let mut items: Vec<Map<String, Value>> = Vec::new();
        for item in of("prefixItems").into_iter().chain(of("items")) {
            let written = levels.checked_sub(1).and_then(|deeper| self.write_schema(item, deeper));
            written.into_iter().for_each(|one| add_alternative(&mut items, one));
        }
        let items = if items.is_empty() { schemas_of_any_type() } else { items };
        let mut array = with_bounds(schema_of_type("array"), flat, &["minItems", "maxItems"]);
        array.insert("items".to_owned(), Value::Object(with_description(items, "", &[])));
        array
    }
}

/// The only values that a schema allows.
fn literal_values<'s>(flat: &FlatSchema<'s>) -> Option<Vec<&'s Value>> {
    let several = flat.keyword_list("enum").map(|values| values.iter().collect());
    several.or_else(|| flat.keywords.get("const").map(|value| vec![*value]))
}

/// Words by `enum`; other values by their types, as endpoints take words alone.
fn write_literals(literals: &[&Value]) -> (Vec<Map<String, Value>>, Vec<String>) {
    let mut words: Vec<Value> = Vec::new();
    let mut types = BTreeSet::new();
    let mut others = Vec::new();
    for literal in literals {
        match literal {
            Value::String(word) if word.is_empty() => others.push("an empty text".to_owned()),
            Value::String(_) if words.contains(literal) => {}
            Value::String(_) => words.push((*literal).clone()),
            other => {
                types.extend(type_of(other));
                others.push(other.to_string());
            }
        }
    }
    let mut written = Vec::new();
    let is_open = others.iter().any(|other| other == "an empty text");
    if !words.is_empty() || is_open {
        let mut of_words = schema_of_type("string");
        match is_open {
            true => others = words.iter().map(Value::to_string).chain(others).collect(),
            false => _ = of_words.insert("enum".to_owned(), Value::Array(words)),
        }
        written.push(of_words);
    }
    written.extend(types.into_iter().map(|kind| {
        let mut typed = schema_of_type(kind);
        if kind == "object" {
            typed.insert("properties".to_owned(), json!({}));
        } else if kind == "array" {
            typed.insert("items".to_owned(), Value::Object(with_description(schemas_of_any_type(), "", &[])));
        }
        typed
    }));
    let note = (!others.is_empty()).then(|| cut_chars(&format!("one of {}", others.join(", ")), NOTE_CHARS));
    (if written.is_empty() { schemas_of_any_type() } else { written }, note.into_iter().collect())
}

fn type_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
    }
}

/// One schema, or one of several, with a description. Beside `anyOf` nothing may stand, so the first alternative has it.
fn with_description(mut several: Vec<Map<String, Value>>, said: &str, notes: &[String]) -> Map<String, Value> {
    let said = cut_chars(said.trim(), DESCRIPTION_CHARS);
    let first = several.first().and_then(|first| first.get("description")?.as_str()).unwrap_or_default().to_owned();
    let notes = if notes.is_empty() { String::new() } else { format!("({})", notes.join("; ")) };
    let parts: Vec<String> = [said, first, notes].into_iter().filter(|part| !part.is_empty()).collect();
    if let (Some(first), false) = (several.first_mut(), parts.is_empty()) {
        first.insert("description".to_owned(), json!(parts.join(" ")));
    }
    match <[Map<String, Value>; 1]>::try_from(several) {
        Ok([one]) => one,
        Err(several) => Map::from_iter([("anyOf".to_owned(), several.into_iter().map(Value::Object).collect())]),
    }
}

/// Adds one schema to several of which one is chosen. One that is itself chosen from among several is one of all.
fn add_alternative(several: &mut Vec<Map<String, Value>>, schema: Map<String, Value>) {
    let schemas = match schema.get("anyOf") {
        Some(Value::Array(inner)) => inner.iter().filter_map(|one| one.as_object().cloned()).collect(),
        _ => vec![schema],
    };
    for schema in schemas {
        if !several.contains(&schema) {
            several.push(schema);
        }
    }
}

fn schema_of_type(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(kind))])
}

/// Whatever it is: endpoints want a type.
fn schemas_of_any_type() -> Vec<Map<String, Value>> {
    let mut object = schema_of_type("object");
    object.insert("properties".to_owned(), json!({}));
    vec![schema_of_type("string"), schema_of_type("number"), schema_of_type("boolean"), object]
}

/// With those of the bounds that are numbers.
fn with_bounds(mut written: Map<String, Value>, flat: &FlatSchema<'_>, keywords: &[&str]) -> Map<String, Value> {
    for keyword in keywords {
        if let Some(bound @ Value::Number(_)) = flat.keywords.get(keyword) {
            written.insert((*keyword).to_owned(), (*bound).clone());
        }
    }
    written
}

fn nullable_note() -> String {
    "or null".to_owned()
}

/// Returns the value of a keyword that is left out, if it is short.
fn keyword_note(flat: &FlatSchema<'_>, keyword: &str) -> Option<String> {
    let said = match flat.keywords.get(keyword)? {
        Value::String(said) => said.clone(),
        number @ Value::Number(_) => number.to_string(),
        _ => return None,
    };
    let named = match keyword {
        "exclusiveMinimum" => "more than",
        "exclusiveMaximum" => "less than",
        other => other,
    };
    (said.len() <= NOTE_CHARS).then(|| format!("{named} {said}"))
}

fn default_note(flat: &FlatSchema<'_>) -> Option<String> {
    let said = flat.keywords.get("default").filter(|said| !said.is_null())?.to_string();
    (said.len() <= NOTE_CHARS).then(|| format!("default {said}"))
}

fn is_property_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !name.is_empty() && name.len() <= NAME_CHARS && name.chars().all(is_of_name)
}

fn cut_chars(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.split_at(end).0),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
