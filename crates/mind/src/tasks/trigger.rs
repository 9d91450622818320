//! Events that tasks wait for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{provenance::Provenance, thread::cut_to};

/// Maximum size of an event kept for waiting tasks, and of one of its fields, in bytes.
const BYTES: usize = 32 * 1024;
const FIELD_BYTES: usize = 8 * 1024;

/// Something happened that a task waits for, at an input that was observed and is not decided on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    pub task: Uuid,
    /// Sequence of the input.
    pub input: u64,
    /// The event that did it.
    pub event: Uuid,
    /// Number of the scheduled time; 0 for a hook.
    pub occurrence: u64,
    /// Data of the event, a JSON object.
    pub data: Value,
    /// The user concerned: an empty name if the agent acted by itself, none if the event came from outside.
    pub user: Option<String>,
    /// Hooks on whose behalf it happened, so that none triggers itself.
    pub lineage: Vec<Uuid>,
    pub correlation: Uuid,
    /// Sources of content in it that nobody here wrote.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub outside: Provenance,
}

/// As much of an event's data as tasks are given: all of it unless it is large, else its fields as far as there is room,
/// long texts cut.
pub fn bound_event_data(data: Value) -> Value {
    if data.to_string().len() <= BYTES {
        return data;
    }
    let Value::Object(fields) = data else { return json!({}) };
    let mut kept = Map::new();
    let mut bytes = 0;
    for (name, value) in fields {
        let value = match value {
            Value::String(text) => Value::String(cut_to(&text, FIELD_BYTES)),
            value if value.to_string().len() > FIELD_BYTES => json!({ "left_out": "it is too large" }),
            value => value,
        };
        // Braces, quotes and commas included.
        let size = name.len() + value.to_string().len() + 4;
        if bytes + size <= BYTES {
            bytes += size;
            kept.insert(name, value);
        }
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_data_is_kept_to_the_letter_and_large_data_in_part() {
        let small = json!({ "sender": "bob", "body": "x".repeat(20_000) });
        assert_eq!(bound_event_data(small.clone()), small);
        let list: Vec<u32> = (0..10_000).collect();
        let large =
            bound_event_data(json!({ "body": "ä".repeat(100_000), "sender": "bob", "result": { "list": list } }));
        assert_eq!(large["sender"], "bob");
        assert_eq!(large["result"], json!({ "left_out": "it is too large" }));
        assert!(large["body"].as_str().unwrap().ends_with("bytes left out)"));
        let many: Map<String, Value> = (0..10_000).map(|at| (format!("field-{at}"), json!("x".repeat(100)))).collect();
        assert!(bound_event_data(Value::Object(many)).to_string().len() <= BYTES + 2);
        assert_eq!(bound_event_data(json!(["x".repeat(100_000)])), json!({}));
    }
}
