//! `history.query`: what was said and done before in the conversations of a turn's user, as far as the agent has it at hand.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Intrinsic, IntrinsicContext, IntrinsicStart, tasks::intrinsic, threads::entry_text};
use crate::{
    provenance::Provenance,
    thread::{Thread, cut_to},
};

pub const QUERY: &str = "history.query";

/// Entries that are shown where it is not said how many, and at most.
const LIMIT: usize = 20;
const MOST: usize = 50;
/// Longest part shown of each entry, and of all of them, in bytes.
const ENTRY_BYTES: usize = 1_024;
const ALL_BYTES: usize = 16 * 1024;
/// Longest words that are looked for, in characters.
const WORDS_CHARS: usize = 200;

pub fn all() -> Vec<Intrinsic> {
    let properties = json!({
        "limit": { "type": "integer", "minimum": 1, "maximum": MOST, "description": "How many, the newest: 20 if left out" },
        "since": { "type": "string", "description": "Nothing older than this, as RFC 3339" },
        "words": { "type": "string", "maxLength": WORDS_CHARS, "description": "Only what has all of these words in it" },
    });
    let described = "What was said and done before in the conversations with this user, the newest first, also where it is no longer shown to you.";
    vec![intrinsic(QUERY, described, properties, json!([]), query)]
}

fn query(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let limit = params.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.unwrap_or(LIMIT).clamp(1, MOST);
    let since = match params.get("since").and_then(Value::as_str).map(str::trim) {
        None | Some("") => None,
        Some(text) => Some(text.parse::<Timestamp>().map_err(|_| "since: expected a time as RFC 3339".to_owned())?),
    };
    let words = params.get("words").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut found: Vec<(u64, usize, Value, usize)> = Vec::new();
    for (id, thread) in context.state.threads.iter().filter(|(id, thread)| is_readable(context, id, thread)) {
        let timed = thread
            .timed_entries()
            .enumerate()
            .filter(|(_, (at, _))| since.is_none_or(|since| at.is_some_and(|at| at >= since.as_second())));
        let matching = timed.filter_map(|(position, (at, entry))| {
            let text = entry_text(entry);
            let lower = text.to_lowercase();
            words.iter().all(|word| lower.contains(word)).then_some((position, at, text))
        });
        for (position, at, text) in matching.collect::<Vec<_>>().into_iter().rev().take(limit) {
            let text = cut_to(&text, ENTRY_BYTES);
            let at = at.and_then(|at| Timestamp::from_second(at).ok()).map(|at| at.to_string());
            let size = text.len();
            found.push((thread.touched, position, json!({ "thread": id, "at": at, "text": text }), size));
        }
    }
    // The thread that was touched last comes first, and in each the newest.
    found.sort_by_key(|found| Reverse((found.0, found.1)));
    let mut bytes = 0;
    let within = found.into_iter().take(limit).take_while(|(_, _, _, size)| {
        bytes += size;
        bytes <= ALL_BYTES
    });
    let entries: Vec<Value> = within.map(|(_, _, entry, _)| entry).collect();
    // Which entry a mark of a thread is of is not known: all of those that are shown have it.
    let shown = |id: &str| entries.iter().any(|entry| entry.get("thread").and_then(Value::as_str) == Some(id));
    let threads = context.state.threads.iter().filter(|(id, _)| shown(id));
    let outside = threads.fold(Provenance::default(), |marks, (_, thread)| marks.merge(&thread.outside));
    Ok(IntrinsicStart::Read { result: json!({ "entries": entries }), outside })
}

/// Returns true if a turn may read the thread: it belongs to the turn's user. Background work sees its own thread only,
/// so that messages said meanwhile do not affect it.
fn is_readable(context: &IntrinsicContext<'_>, id: &str, thread: &Thread) -> bool {
    let own = id == context.turn.thread_id;
    let is_work = context.state.is_background_turn(context.turn);
    own || !is_work && !thread.work && !context.turn.user.is_empty() && thread.user == context.turn.user
}
