//! What a session of work taught: insights and facts, of the user whose tasks they were. No model calls this; it is done
//! when nothing is left to do in a thread of work.

use kairo_events::ids;
use kairo_proto::{v1::MemoryAppended, words::MemoryKind};
use serde_json::{Map, Value};

use super::{CONTENT_BYTES, Kept, SUBJECT_BYTES, day, keywords, listed, sources, text};
use crate::{
    intrinsics::{Context, threads},
    memories, prompts,
    request::ModelRequest,
    secrets,
    state::AgentState,
    thread::cut_to,
};

/// Of a thread, so much is shown to the model, in bytes: its end.
const SHOWN_BYTES: usize = 48 * 1024;
/// Memories that one session makes.
const MOST: usize = 20;

/// What a model is asked; none where nothing was done in the thread.
pub fn request(state: &AgentState, thread_id: &str) -> Option<ModelRequest> {
    let thread = state.threads.get(thread_id)?;
    let told = secrets::take_out(&threads::transcript(thread, SHOWN_BYTES)).text;
    if told.is_empty() {
        return None;
    }
    let known = match state.memories.recalled(&thread.user, &told) {
        known if known.is_empty() => String::new(),
        known => format!("\n\nKnown already:\n{}", memories::in_lines(&known)),
    };
    Some(ModelRequest::of("fast", prompts::LEARN, format!("The session:\n{told}{known}")))
}

/// What the model found out. What is nearly the same as something that is known becomes part of that, with both sources.
pub fn read(context: &Context<'_>, thread_id: &str, answer: &str) -> Result<Vec<MemoryAppended>, String> {
    let items = listed(answer, MOST)?;
    let memory = |(at, item): (usize, &Value)| {
        memory(context, thread_id, at, item).map_err(|flaw| format!("memory {}: {flaw}", at + 1))
    };
    items.iter().enumerate().map(memory).collect()
}

fn memory(context: &Context<'_>, thread_id: &str, at: usize, item: &Value) -> Result<MemoryAppended, String> {
    let item = item.as_object().ok_or("expected an object")?;
    let kind = match MemoryKind::from(text(item, "kind").map(str::to_lowercase).unwrap_or_default().as_str()) {
        kind @ (MemoryKind::Insight | MemoryKind::Fact) => kind.text(),
        _ => return Err("kind: expected insight or fact".to_owned()),
    };
    let content = text(item, "content").ok_or("content: expected a text")?;
    let subject = cut_to(&secrets::take_out(text(item, "subject").unwrap_or_default()).text, SUBJECT_BYTES);
    let content = secrets::take_out(&cut_to(content, CONTENT_BYTES));
    let user = &context.turn.user;
    let known = context.state.memories.like(&kind, user, &content.text);
    let id = ids::derived(context.id, &format!("memory/{at}"));
    let kept = Kept::of(context, id, content)?;
    let (memory_id, content) = match known {
        Some(known) => (known.memory_id.clone(), known.content.clone()),
        None => (id.to_string(), kept.text),
    };
    let known_sources = known.into_iter().flat_map(|known| &known.sources).map(String::as_str);
    let fresh = context.state.threads.get(thread_id).into_iter().flat_map(|thread| &thread.fresh);
    let source_event_ids = sources(known_sources.chain(fresh.map(|event| &**event)));
    let mut outside = context.state.outside_of(context.turn);
    outside.see(known.into_iter().flat_map(|known| known.outside.marks()));
    Ok(MemoryAppended {
        memory_id,
        keywords: keywords(subject.split_whitespace().chain([subject.as_str(), kind.as_str()])),
        kind,
        subject,
        content,
        day: day(context, &Map::new())?.to_string(),
        source_event_ids,
        secrets: if known.is_some() { Vec::new() } else { kept.sealed },
        user: user.clone(),
        outside: outside.marks(),
    })
}
