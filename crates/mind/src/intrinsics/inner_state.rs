//! `state.write`, `.read`, `.search`, `.related` and `.delete`: the agent's inner state, as its turn's user sees it.

use kairo_proto::v1::decided_event::Event;
use serde_json::{Map, Value, json};

use super::{BeginFn, Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, finish_without_model};
use crate::{
    inner_state::{self, CONTENT_BYTES, InnerStateEntry, InnerStateWriter, KEY_BYTES, RELATED_KEYS, Relation},
    provenance::Provenance,
    request::Tool,
    thread::cut_to,
};

/// Entries that a search or a look at what is related brings: where it does not say, and at most.
const FOUND: usize = 10;
const MOST_FOUND: usize = 20;
/// Longest part shown of each entry, in bytes; reading it by its key shows all.
const SHOWN_BYTES: usize = 1_024;
/// Longest search, in bytes.
const WORDS_BYTES: usize = 1_000;

/// Returns true for the tools of inner state, which only agents with an inner state are offered.
pub fn is_of_inner_state(tool: &str) -> bool {
    matches!(tool, "state.write" | "state.read" | "state.search" | "state.related" | "state.delete")
}

pub fn all() -> Vec<Intrinsic> {
    let key = json!({ "type": "string", "minLength": 1, "maxLength": KEY_BYTES });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MOST_FOUND });
    vec![
        state_tool(
            "state.write",
            "Keeps something in your inner state under a key, for later turns; it takes the place of what stood there. \
             Name related keys by which you will find it again.",
            json!({
                "key": key,
                "content": { "type": "string", "maxLength": CONTENT_BYTES },
                "related_keys": { "type": "array", "maxItems": RELATED_KEYS, "items": key },
            }),
            &["key", "content"],
            write,
        ),
        state_tool(
            "state.read",
            "What stands under a key of your inner state, and when it was written.",
            json!({ "key": key }),
            &["key"],
            read,
        ),
        state_tool(
            "state.search",
            "Searches keys and contents of your inner state by words; what fits best comes first.",
            json!({ "words": { "type": "string", "minLength": 1, "maxLength": WORDS_BYTES }, "limit": limit }),
            &["words"],
            search,
        ),
        state_tool(
            "state.related",
            "What of your inner state is related to a key: what it names, and what names it.",
            json!({ "key": key, "limit": limit }),
            &["key"],
            find_related,
        ),
        state_tool("state.delete", "Deletes a key of your inner state.", json!({ "key": key }), &["key"], delete),
    ]
}

fn state_tool(name: &str, description: &str, properties: Value, required: &[&str], begin: BeginFn) -> Intrinsic {
    let schema =
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    let tool = Tool {
        name: name.into(),
        description: description.into(),
        schema: schema.to_string().into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    };
    Intrinsic { tool, begin, finish: finish_without_model }
}

fn writer<'c>(context: &IntrinsicContext<'c>) -> InnerStateWriter<'c> {
    let outside = context.state.provenance_of(context.turn);
    let IntrinsicContext { state, turn, now, id, secret_key, .. } = *context;
    InnerStateWriter::new(&state.inner, &turn.user, now, id, secret_key, outside)
}

fn write(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let written = writer(context).write(params)?;
    let result = json!({ "written": written.key, "content": cut_to(&written.content, SHOWN_BYTES) });
    Ok(IntrinsicOutcome { events: vec![Event::StateWritten(written)], result }.into())
}

fn delete(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let deleted = writer(context).delete(params)?;
    let result = json!({ "deleted": deleted.key });
    Ok(IntrinsicOutcome { events: vec![Event::StateDeleted(deleted)], result }.into())
}

fn read(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let key = inner_state::read_key(params)?;
    let entry = context.state.inner.get(&context.turn.user, key);
    let entry = entry.ok_or_else(|| format!("key: there is nothing under {key:?}"))?;
    Ok(IntrinsicStart::Read { result: entry_json(key, entry, CONTENT_BYTES), outside: entry.outside.clone() })
}

fn search(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let words = params.get("words").and_then(Value::as_str).filter(|words| words.len() <= WORDS_BYTES);
    let words = words.ok_or_else(|| format!("words: expected a text of at most {WORDS_BYTES} bytes"))?;
    let found = context.state.inner.find(&context.turn.user, words);
    let total = found.len();
    let mut outside = Provenance::default();
    let found = found.into_iter().take(read_limit(params)).map(|(key, entry)| {
        outside = std::mem::take(&mut outside).merge(&entry.outside);
        entry_json(key, entry, SHOWN_BYTES)
    });
    let result = json!({ "found": found.collect::<Vec<_>>(), "total": total });
    Ok(IntrinsicStart::Read { result, outside })
}

fn find_related(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let key = inner_state::read_key(params)?;
    let found = context.state.inner.related_entries(&context.turn.user, key);
    let total = found.len();
    let mut outside = Provenance::default();
    let found = found.into_iter().take(read_limit(params)).map(|(other, entry, relation)| {
        outside = std::mem::take(&mut outside).merge(&entry.outside);
        let mut shown = entry_json(other, entry, SHOWN_BYTES);
        if let Value::Object(fields) = &mut shown {
            let relation = match relation {
                Relation::Named => "is named by it",
                Relation::Names => "names it",
                Relation::Both => "both name each other",
            };
            fields.insert("relation".to_owned(), json!(relation));
        }
        shown
    });
    let result = json!({ "key": key, "related": found.collect::<Vec<_>>(), "total": total });
    Ok(IntrinsicStart::Read { result, outside })
}

fn read_limit(params: &Map<String, Value>) -> usize {
    let given = params.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    given.unwrap_or(FOUND).clamp(1, MOST_FOUND)
}

fn entry_json(key: &str, entry: &InnerStateEntry, bytes: usize) -> Value {
    json!({
        "key": key,
        "content": cut_to(&entry.content, bytes),
        "related_keys": entry.related,
        "updated_at": entry.updated_at.to_string(),
    })
}
