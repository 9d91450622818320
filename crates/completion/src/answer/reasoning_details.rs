//! Reasoning that a model server wants back: `reasoning_details`, of which some can be read by it alone, and some is signed by
//! it. Pure.
//!
//! It is passed through as it came. What is plain text only is reasoning like any other: nobody is told of it again.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use serde_json::Value;

/// Fields that come in pieces.
const GROWING: [&str; 4] = ["text", "summary", "data", "signature"];

/// The items of one answer as they come.
#[derive(Debug)]
pub struct ReasoningDetails {
    items: Vec<Value>,
    bytes: usize,
    max_bytes: usize,
}

impl ReasoningDetails {
    /// None of more than `max_bytes` are kept: with a part of them the model server can do nothing.
    pub fn new(max_bytes: usize) -> Self {
        Self { items: Vec::new(), bytes: 0, max_bytes }
    }

    /// Takes in the items of a chunk, or of a whole answer. Pieces of one item have its index.
    pub fn add(&mut self, items: &Value) {
        for item in items.as_array().into_iter().flatten().filter(|item| item.is_object()) {
            self.bytes = self.bytes.saturating_add(item.to_string().len());
            if self.bytes > self.max_bytes {
                self.items.clear();
                continue;
            }
            let same = |known: &&mut Value| item["index"].is_number() && known["index"] == item["index"];
            match self.items.iter_mut().rev().find(same) {
                Some(known) => grow(known, item),
                None => self.items.push(item.clone()),
            }
        }
    }

    /// Returns the details to pass back; empty if nothing must be.
    pub fn finish(self) -> String {
        let is_filled = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        let is_opaque = |item: &Value| is_filled(&item["data"]) || is_filled(&item["signature"]);
        match self.items.iter().any(is_opaque) {
            true => Value::Array(self.items).to_string(),
            false => String::new(),
        }
    }
}

fn grow(known: &mut Value, piece: &Value) {
    let (Some(known), Some(piece)) = (known.as_object_mut(), piece.as_object()) else { return };
    for (field, value) in piece.iter().filter(|(_, value)| !value.is_null()) {
        match (known.get_mut(field), value) {
            (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&field.as_str()) => {
                text.push_str(more)
            }
            (Some(Value::Null) | None, _) => _ = known.insert(field.clone(), value.clone()),
            (Some(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finished(chunks: &[Value], max_bytes: usize) -> Value {
        let mut details = ReasoningDetails::new(max_bytes);
        chunks.iter().for_each(|chunk| details.add(chunk));
        let text = details.finish();
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }

    #[test]
    fn what_is_encrypted_or_signed_is_kept_as_it_came_however_it_is_cut() {
        let whole = json!([
            { "type": "reasoning.text", "index": 0, "text": "A clock.", "signature": "c2ln", "id": null },
            { "type": "reasoning.encrypted", "index": 1, "data": "ZW5j", "format": "f" },
        ]);
        assert_eq!(finished(std::slice::from_ref(&whole), 1_000), whole);
        let chunks = [
            json!([{ "type": "reasoning.text", "index": 0, "text": "A cl", "signature": null, "id": null }]),
            json!([{ "type": "reasoning.text", "index": 0, "text": "ock." }]),
            Value::Null,
            json!([{ "type": "reasoning.text", "index": 0, "text": "", "signature": "c2ln" },
                   { "type": "reasoning.encrypted", "index": 1, "data": "ZW", "format": "f" }]),
            json!([{ "type": "reasoning.encrypted", "index": 1, "data": "5j" }]),
        ];
        assert_eq!(finished(&chunks, 1_000), whole);
    }

    #[test]
    fn plain_reasoning_and_what_is_too_long_is_not_passed_back() {
        let plain = json!([{ "type": "reasoning.text", "text": "A clock.", "signature": "" }]);
        assert_eq!(finished(&[plain, json!("x"), json!([7])], 1_000), Value::Null);
        let encrypted = json!([{ "type": "reasoning.encrypted", "data": "ZW5j" }]);
        assert_eq!(finished(&[encrypted.clone(), encrypted], 60), Value::Null);
    }
}
