//! Reads the contents of a resource, piece by piece.

use rmcp::model::{ContentBlock, ReadResourceResult, ServerResult};
use serde_json::{Map, Value, json};

use super::call_answer::COMPLETE;
use super::content_block;
use super::wording::json_kind;

/// Reads them, and says what is odd about them. None where it is no end of the reading, or nothing can be read.
pub fn read(result: Value) -> (Option<ServerResult>, Vec<String>) {
    let mut notes = Vec::new();
    let pieces = match result {
        Value::Object(mut fields) => match read_other_kind(&fields) {
            Some(other) => return (Some(other), notes),
            None => fields.remove("contents").unwrap_or_default(),
        },
        other => other,
    };
    let pieces = match pieces {
        Value::Array(pieces) => pieces,
        Value::Null => return (None, notes),
        other => {
            notes.push(format!("the contents of a resource are {}, not a list", json_kind(&other)));
            vec![other]
        }
    };
    let mut contents = Vec::new();
    for piece in pieces {
        let piece = match piece {
            Value::String(text) => json!({ "uri": "", "text": text }),
            piece => piece,
        };
        let (read, note) = content_block::read(json!({ "type": "resource", "resource": piece }));
        notes.extend(note);
        if let Some(ContentBlock::Resource(read)) = read {
            contents.push(read.resource);
        }
    }
    (Some(ServerResult::ReadResourceResult(ReadResourceResult::new(contents))), notes)
}

/// A question that comes before the contents.
fn read_other_kind(fields: &Map<String, Value>) -> Option<ServerResult> {
    fields.get("resultType").filter(|kind| *kind != COMPLETE)?;
    let result = serde_json::from_value(Value::Object(fields.clone())).ok()?;
    matches!(result, ServerResult::InputRequiredResult(_)).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_read_in_whatever_form_they_are() {
        for (result, read_as) in [
            (json!({"contents": [{"uri": "a://b", "text": "x"}]}), json!([{"uri": "a://b", "text": "x"}])),
            (json!({"contents": [{"text": 7}]}), json!([{"uri": "", "text": "7"}])),
            (json!({"contents": {"uri": "a://b", "blob": "AAAA"}}), json!([{"uri": "a://b", "blob": "AAAA"}])),
            (json!({"contents": ["x", null, {"uri": "a://b"}]}), json!([{"uri": "", "text": "x"}])),
            (json!({"contents": "x"}), json!([{"uri": "", "text": "x"}])),
            (json!([{"uri": "a://b", "text": "x"}]), json!([{"uri": "a://b", "text": "x"}])),
        ] {
            let (Some(ServerResult::ReadResourceResult(read)), _) = read(result.clone()) else { panic!("{result}") };
            assert_eq!(serde_json::to_value(read.contents).unwrap(), read_as, "{result}");
        }
        assert!(read(json!({})).0.is_none() && read(json!(null)).0.is_none());
    }
}
