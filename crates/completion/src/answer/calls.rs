//! Puts calls together from their pieces. Endpoints number them, or number all of them alike, or do not; a new id or a new
//! name begins a new call.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use kairo_proto::v1::CompletionToolCall;
use serde_json::Value;

use super::{arguments, call_ids::CallIds, passthrough_fields::PassthroughFields};
use crate::{offered_tools::OfferedTools, wire::surrogate_halves};

/// Calls that one answer may hold; no more are read.
const MOST_CALLS: usize = 1024;
/// Fields of a call that are the format's own.
const KNOWN: [&str; 10] =
    ["index", "id", "call_id", "type", "function", "name", "arguments", "input", "parameters", "args"];

#[derive(Debug)]
struct GrowingCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    passed_back: PassthroughFields,
}

/// The fields of a call in one piece of an answer.
#[derive(Debug, Default)]
struct CallPiece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Arguments,
}

#[derive(Debug, Default)]
enum Arguments {
    #[default]
    None,
    More(String),
    /// Not the standard, but some endpoints send an object.
    Whole(String),
}

impl CallPiece {
    fn from_json(call: &Value) -> Self {
        let function = if call["function"].is_object() { &call["function"] } else { call };
        let fields = ["arguments", "input", "parameters", "args"].map(|name| &function[name]);
        let arguments = match fields.into_iter().find(|value| !value.is_null()) {
            Some(Value::String(more)) => Arguments::More(more.clone()),
            Some(whole @ (Value::Object(_) | Value::Array(_))) => Arguments::Whole(whole.to_string()),
            _ => Arguments::None,
        };
        let id = if call["id"].is_null() { &call["call_id"] } else { &call["id"] };
        Self {
            index: index(&call["index"]),
            id: text_or_number(id),
            name: text_or_number(&function["name"]),
            arguments,
        }
    }

    /// Returns true if it has arguments that begin an object.
    fn begins_object(&self) -> bool {
        matches!(&self.arguments, Arguments::More(text) | Arguments::Whole(text) if text.trim_start().starts_with('{'))
    }
}

fn index(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A text, or a number in the place of one.
fn text_or_number(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The calls of one answer as they come.
#[derive(Debug)]
pub struct CallAssembler {
    calls: Vec<GrowingCall>,
    /// Most bytes kept of the unknown fields of one call.
    max_passed_back: usize,
}

impl CallAssembler {
    pub fn new(max_passed_back: usize) -> Self {
        Self { calls: Vec::new(), max_passed_back }
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes in the calls of a whole answer: each is one.
    pub fn add_whole(&mut self, call: &Value) {
        if call.is_object() {
            self.begin(call, CallPiece::from_json(call));
        }
    }

    /// Takes in the pieces that one chunk brings.
    pub fn add_pieces(&mut self, calls: &Value, offered: &OfferedTools) {
        let pieces = match calls {
            Value::Array(pieces) => pieces.as_slice(),
            Value::Object(_) => std::slice::from_ref(calls),
            _ => &[],
        };
        for (position, value) in pieces.iter().enumerate().filter(|(_, value)| value.is_object()) {
            let piece = CallPiece::from_json(value);
            let position = (pieces.len() > 1).then_some(position);
            match self.target(&piece, position).filter(|at| self.continues_call(*at, &piece, offered)) {
                Some(at) => self.extend(at, value, piece, offered),
                None => self.begin(value, piece),
            }
        }
    }

    /// The call that a piece may belong to.
    fn target(&self, piece: &CallPiece, position: Option<usize>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let is_bare = piece.id.is_empty() && piece.name.is_empty();
        match piece.index {
            Some(index) => {
                let same = self.calls.iter().rposition(|call| call.index == Some(index));
                same.or_else(|| last.filter(|_| is_bare))
            }
            None if !piece.id.is_empty() => self.calls.iter().rposition(|call| call.id == piece.id).or(last),
            None if is_bare => position.filter(|at| *at < self.calls.len()).or(last),
            None => last,
        }
    }

    /// Returns true if a piece continues a call; else it begins another.
    fn continues_call(&self, at: usize, piece: &CallPiece, offered: &OfferedTools) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        let same_id = piece.id.is_empty() || call.id.is_empty() || piece.id == call.id;
        if !same_id || piece.name.is_empty() || call.name.is_empty() {
            return same_id;
        }
        if piece.name == call.name {
            return !is_another(call, piece);
        }
        let grown = format!("{}{}", call.name, piece.name);
        let begun = !call.arguments.trim().is_empty();
        let is_cumulative = piece.name.starts_with(&call.name);
        let are_both_names = offered.has(&call.name) || offered.has(&piece.name);
        !begun && (offered.has_prefix(&grown) || is_cumulative || !are_both_names)
    }

    fn extend(&mut self, at: usize, value: &Value, piece: CallPiece, offered: &OfferedTools) {
        let Some(call) = self.calls.get_mut(at) else { return };
        call.index = call.index.or(piece.index);
        if call.id.is_empty() {
            call.id = piece.id;
        }
        if piece.name.starts_with(&call.name) && !offered.has_prefix(&format!("{}{}", call.name, piece.name)) {
            call.name = piece.name;
        } else if piece.name != call.name {
            call.name.push_str(&piece.name);
        }
        match piece.arguments {
            // Said again with all the rest.
            Arguments::More(more) if more == call.arguments && is_complete_json(&more) => {}
            Arguments::More(more) => call.arguments.push_str(&more),
            Arguments::Whole(whole) => call.arguments = whole,
            Arguments::None => {}
        }
        call.passed_back.add_fields(value, &KNOWN);
    }

    fn begin(&mut self, value: &Value, piece: CallPiece) {
        if self.calls.len() >= MOST_CALLS {
            return;
        }
        let CallPiece { index, id, name, arguments } = piece;
        let arguments = match arguments {
            Arguments::More(text) | Arguments::Whole(text) => text,
            Arguments::None => String::new(),
        };
        let mut passed_back = PassthroughFields::new(self.max_passed_back);
        passed_back.add_fields(value, &KNOWN);
        self.calls.push(GrowingCall { index, id, name, arguments, passed_back });
    }

    /// The calls in their order, when no more comes.
    pub fn finish(mut self, offered: &OfferedTools, ids: &mut CallIds) -> Vec<CompletionToolCall> {
        self.calls.retain(|call| !call.name.trim().is_empty() || !call.arguments.trim().is_empty());
        if self.calls.iter().all(|call| call.index.is_some()) {
            self.calls.sort_by_key(|call| call.index);
        }
        let calls = self.calls.into_iter().enumerate();
        calls
            .map(|(place, call)| CompletionToolCall {
                call_id: ids.assign(&surrogate_halves::whole(&call.id), place),
                tool: offered.resolve_name(&surrogate_halves::whole(&call.name)),
                arguments: arguments::normalize(&call.arguments),
                passed_back: call.passed_back.finish(),
            })
            .collect()
    }
}

/// Returns true if a piece that repeats a call's name is another call of the same tool: that one is whole, and an
/// object begins.
fn is_another(call: &GrowingCall, piece: &CallPiece) -> bool {
    let is_repeated =
        matches!(&piece.arguments, Arguments::More(text) if *text == call.arguments) && !piece.id.is_empty();
    // Some proxies begin with an empty object, and send the arguments behind it.
    let is_placeholder =
        call.arguments.trim() == "{}" && !matches!(&piece.arguments, Arguments::More(text) if text.trim() == "{}");
    piece.begins_object() && !is_repeated && !is_placeholder && is_complete_json(&call.arguments)
}

fn is_complete_json(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<Value>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offered() -> OfferedTools {
        OfferedTools::new(["tools.now", "tools.date_calc"].map(|name| (name, name.replace('.', "__"), "{}")))
    }

    fn read(chunks: &[Value]) -> Vec<(String, String)> {
        let mut calls = CallAssembler::new(1_000);
        chunks.iter().for_each(|chunk| calls.add_pieces(chunk, &offered()));
        let calls = calls.finish(&offered(), &mut CallIds::default());
        calls.into_iter().map(|call| (call.tool, call.arguments)).collect()
    }

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Value {
        let mut call = json!({ "type": "function", "function": { "arguments": arguments } });
        if let Some(index) = index {
            call["index"] = json!(index);
        }
        if !id.is_empty() {
            call["id"] = json!(id);
        }
        if !name.is_empty() {
            call["function"]["name"] = json!(name);
        }
        json!([call])
    }

    #[test]
    fn calls_are_told_apart_however_they_are_numbered() {
        let berlin = r#"{"time_zone":"Europe/Berlin"}"#;
        let tokyo = r#"{"time_zone":"Asia/Tokyo"}"#;
        let both = [("tools.now".to_owned(), berlin.to_owned()), ("tools.now".to_owned(), tokyo.to_owned())];
        let now = "tools__now";
        for chunks in [
            vec![piece(Some(0), "c1", now, berlin), piece(Some(0), "c2", now, tokyo)],
            vec![piece(None, "c1", now, berlin), piece(None, "c2", now, tokyo)],
            vec![piece(Some(0), "", now, berlin), piece(Some(0), "", now, tokyo)],
            vec![piece(None, "", now, berlin), piece(None, "", now, tokyo)],
            vec![
                piece(Some(3), "c1", now, &berlin[..9]),
                piece(Some(7), "c2", now, tokyo),
                piece(Some(3), "", "", &berlin[9..]),
            ],
            vec![
                piece(None, "c1", now, &berlin[..9]),
                piece(None, "c2", now, tokyo),
                piece(None, "c1", "", &berlin[9..]),
            ],
            vec![
                piece(Some(0), "c1", now, ""),
                piece(Some(0), "", "", berlin),
                piece(Some(0), "c2", now, ""),
                piece(Some(0), "", "", tokyo),
            ],
            vec![piece(Some(0), now, now, berlin), piece(Some(1), now, now, tokyo)],
            // Names in pieces, whole again with each piece, and growing.
            vec![
                piece(Some(0), "c1", "tools__", ""),
                piece(Some(0), "", "now", berlin),
                piece(Some(1), "c2", now, tokyo),
            ],
            vec![
                piece(Some(0), "c1", now, &berlin[..9]),
                piece(Some(0), "c1", now, &berlin[9..]),
                piece(Some(1), "c2", now, tokyo),
            ],
            vec![piece(Some(0), "c1", "too", ""), piece(Some(0), "c1", now, berlin), piece(Some(1), "c2", now, tokyo)],
            vec![
                piece(Some(0), "c1", now, berlin),
                piece(Some(0), "c1", now, berlin),
                piece(Some(1), "c2", now, tokyo),
            ],
            // The id comes late.
            vec![piece(Some(0), "", now, ""), piece(Some(0), "c1", "", berlin), piece(Some(1), "c2", now, tokyo)],
            vec![piece(Some(0), "c1", now, "{}"), piece(Some(0), "", "", berlin), piece(Some(1), "c2", now, tokyo)],
        ] {
            assert_eq!(read(&chunks), both, "{chunks:?}");
        }
    }

    #[test]
    fn a_new_name_begins_a_new_call() {
        let chunks = [piece(Some(0), "", "tools__now", "{}"), piece(Some(0), "", "tools__date_calc", "{}")];
        let names: Vec<String> = read(&chunks).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["tools.now", "tools.date_calc"]);
        let unargued = [piece(None, "", "tools__now", ""), piece(None, "", "tools__date_calc", "")];
        assert_eq!(read(&unargued).len(), 2);
        let together =
            json!([{ "function": { "name": "tools__now" } }, { "function": { "name": "tools__date_calc" } }, null, 7]);
        assert_eq!(
            read(&[
                together,
                json!([{ "function": { "arguments": "{\"a\":1}" } }, { "function": { "arguments": "{\"b\":1}" } }])
            ]),
            [("tools.now".to_owned(), "{\"a\":1}".to_owned()), ("tools.date_calc".to_owned(), "{\"b\":1}".to_owned()),]
        );
    }

    #[test]
    fn arguments_may_be_an_object_or_nothing_and_there_are_so_many_calls_at_most() {
        let object = json!({ "id": 7, "function": { "name": "tools__now", "arguments": { "a": 1 } } });
        assert_eq!(read(&[object]), [("tools.now".to_owned(), "{\"a\":1}".to_owned())]);
        let none = json!([{ "id": "a", "function": { "name": "tools__now", "arguments": null } }]);
        assert_eq!(read(&[none]), [("tools.now".to_owned(), "{}".to_owned())]);
        let many: Vec<Value> = (0..5_000).map(|index| piece(Some(index), "", "tools__now", "{}")).collect();
        assert_eq!(read(&many).len(), MOST_CALLS);
    }
}
