//! Fields that an endpoint attaches to an answer or a call and wants back with it: they are kept as they came, whatever they
//! mean.

use serde_json::{Map, Value};

use crate::wire::surrogate_halves;

/// Fields whose text comes in pieces.
const GROWING: [&str; 10] = [
    "reasoning_content",
    "thinking",
    "text",
    "summary",
    "data",
    "signature",
    "thought_signature",
    "thoughtSignature",
    "encrypted_content",
    "content",
];
/// Deepest nesting in which pieces are put together.
const DEEPEST: usize = 16;

/// The unknown fields of one answer or call.
#[derive(Clone, Debug)]
pub struct PassthroughFields {
    fields: Map<String, Value>,
    bytes: usize,
    max_bytes: usize,
}

impl PassthroughFields {
    /// None of more than `max_bytes` are kept: a part of a signature is worth nothing.
    pub fn new(max_bytes: usize) -> Self {
        Self { fields: Map::new(), bytes: 0, max_bytes }
    }

    /// Takes in the fields of a piece but for those that are known.
    pub fn add_fields(&mut self, piece: &Value, known: &[&str]) {
        let Some(piece) = piece.as_object() else { return };
        for (name, value) in piece.iter().filter(|(name, value)| !value.is_null() && !known.contains(&name.as_str())) {
            self.bytes = self.bytes.saturating_add(name.len() + value.to_string().len());
            if self.bytes > self.max_bytes {
                self.fields.clear();
                continue;
            }
            match self.fields.get_mut(name) {
                Some(known) => merge(known, value, name, 0),
                None => _ = self.fields.insert(name.clone(), value.clone()),
            }
        }
    }

    /// A JSON object as text; empty where there are none.
    pub fn finish(mut self) -> String {
        self.fields.retain(|_, value| !is_blank(value));
        if self.fields.is_empty() {
            String::new()
        } else {
            surrogate_halves::whole(&Value::Object(self.fields).to_string())
        }
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn merge(known: &mut Value, piece: &Value, name: &str, depth: usize) {
    match (known, piece) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) if GROWING.contains(&name) => text.push_str(more),
        (Value::Object(fields), Value::Object(more)) if depth < DEEPEST => {
            for (name, value) in more {
                match fields.get_mut(name) {
                    Some(known) => merge(known, value, name, depth + 1),
                    None => _ = fields.insert(name.clone(), value.clone()),
                }
            }
        }
        (Value::Array(items), Value::Array(more)) if depth < DEEPEST => {
            more.iter().for_each(|item| add(items, item, depth))
        }
        // Endpoints send nothing in the place of what they sent before.
        (_, piece) if is_blank(piece) => {}
        (known, piece) => *known = piece.clone(),
    }
}

/// An item of a list goes on with the one before it, or is a further one.
fn add(items: &mut Vec<Value>, item: &Value, depth: usize) {
    let field = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
    let is_signed = |value: &Value| field(value, "signature").as_str().is_some_and(|text| !text.is_empty());
    let goes_on = |last: &Value| {
        last.is_object()
            && item.is_object()
            && field(last, "type") == field(item, "type")
            && field(last, "index") == field(item, "index")
            && !is_signed(last)
    };
    match items.last_mut().filter(|last| goes_on(last)) {
        Some(last) => merge(last, item, "", depth + 1),
        None => items.push(item.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merge_within(pieces: &[Value], max_bytes: usize) -> Value {
        let mut kept = PassthroughFields::new(max_bytes);
        pieces.iter().for_each(|piece| kept.add_fields(piece, &["role", "content"]));
        let text = kept.finish();
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }

    #[test]
    fn what_is_unknown_is_kept_as_it_came_however_it_is_cut() {
        let signature = json!({ "extra_content": { "google": { "thought_signature": "SIG==" } } });
        assert_eq!(merge_within(std::slice::from_ref(&signature), 1_000), signature);
        let pieces = [
            json!({ "role": "assistant", "reasoning_content": "I need ", "thinking_blocks": [{ "type": "thinking", "thinking": "a" }] }),
            json!({ "content": "x", "reasoning_content": "the time.", "extra_content": { "google": { "thought_signature": "SI" } } }),
            json!({ "extra_content": { "google": { "thought_signature": "G" } }, "thinking_blocks": [{ "type": "thinking", "thinking": "b", "signature": "s" }] }),
            json!({ "reasoning_content": null, "extra_content": {}, "tokens": 7, "thinking_blocks": [{ "type": "thinking", "thinking": "c" }] }),
        ];
        let whole = json!({
            "reasoning_content": "I need the time.",
            "extra_content": { "google": { "thought_signature": "SIG" } },
            "tokens": 7,
            "thinking_blocks": [{ "type": "thinking", "thinking": "ab", "signature": "s" }, { "type": "thinking", "thinking": "c" }],
        });
        assert_eq!(merge_within(&pieces, 10_000), whole);
        assert_eq!(merge_within(&pieces, 60), Value::Null);
        assert_eq!(merge_within(&[json!({ "role": "assistant", "a": null, "b": "", "c": [] })], 100), Value::Null);
    }
}
