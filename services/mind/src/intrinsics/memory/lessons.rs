//! Lessons of a session of work: insights and facts, of the user whose tasks they were. No model calls this; it runs
//! when nothing is left to do in a thread of work.

mod correcting;

use kairo_events::ids;
use kairo_proto::{v1::MemoryAppended, words::MemoryKind};
use serde_json::{Map, Value};

use super::{CONTENT_BYTES, Kept, SUBJECT_BYTES, day, keywords, listed, sources, text};
use crate::{
    answer::json_in,
    answer_forms,
    intrinsics::{Context, threads},
    memories::{self, Recent},
    prompts,
    request::ModelRequest,
    secrets::{self, Cleaned},
    state::AgentState,
    thread::cut_to,
};

/// Of a thread, so much is shown to the model, in bytes: its end.
const SHOWN_BYTES: usize = 48 * 1024;
/// Longest briefing, in bytes.
const BRIEFING_BYTES: usize = 16 * 1024;
/// Memories that one session makes.
const MOST: usize = 20;

/// Builds the model request for the lessons, by these rules of memories; `None` if nothing was done in the thread.
pub fn request(state: &AgentState, thread_id: &str, memory_rules: u32) -> Option<ModelRequest> {
    let (told, known) = recall(state, thread_id)?;
    if told.is_empty() {
        return None;
    }
    let known = match known {
        known if known.is_empty() => String::new(),
        known if memory_rules == 0 => format!("\n\nKnown already:\n{}", memories::in_lines(&known)),
        known => format!("\n\nKnown already:\n{}", memories::in_numbered_lines(&known)),
    };
    let (prompt, form) = match is_briefed_on(state, thread_id) {
        true => (prompts::BRIEF, answer_forms::briefing(memory_rules)),
        false => (prompts::LEARN, answer_forms::lessons(memory_rules)),
    };
    let prompt = match memory_rules {
        0 => prompt.to_owned(),
        _ => format!("{prompt} {}", prompts::REPLACES),
    };
    Some(ModelRequest::of("fast", &prompt, format!("The session:\n{told}{known}")).answered_as(form))
}

/// Returns the transcript of a thread for a model, and the known memories of its subjects.
fn recall<'s>(state: &'s AgentState, thread_id: &str) -> Option<(String, Vec<&'s Recent>)> {
    let thread = state.threads.get(thread_id)?;
    let told = secrets::take_out(&threads::transcript(thread, SHOWN_BYTES)).text;
    let known = state.memories.recalled(&thread.user, &told);
    Some((told, known))
}

/// A memory as a model says it.
struct Item {
    kind: String,
    subject: String,
    content: Cleaned,
}

/// # Errors
/// The field that is missing or wrong, and what was expected.
fn read_item(item: &Map<String, Value>) -> Result<Item, String> {
    let kind = match MemoryKind::from(text(item, "kind").map(str::to_lowercase).unwrap_or_default().as_str()) {
        kind @ (MemoryKind::Insight | MemoryKind::Fact) => kind.text(),
        _ => return Err("kind: expected insight or fact".to_owned()),
    };
    let content = text(item, "content").ok_or("content: expected a text")?;
    let subject = cut_to(&secrets::take_out(text(item, "subject").unwrap_or_default()).text, SUBJECT_BYTES);
    Ok(Item { kind, subject, content: secrets::take_out(&cut_to(content, CONTENT_BYTES)) })
}

/// Returns true if the agent decides whether to brief its owner on the thread: one of a lead's work for its mission.
pub fn is_briefed_on(state: &AgentState, thread_id: &str) -> bool {
    let owner = state.profile.as_ref().filter(|profile| profile.is_lead()).map(|profile| &profile.owner);
    state.threads.get(thread_id).is_some_and(|thread| Some(&thread.user) == owner)
}

/// The decision on briefing the owner on the outcome of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Briefing {
    pub told: bool,
    pub reason: String,
    pub summary: String,
    pub text: String,
}

/// Reads the briefing from an answer.
pub fn briefing(answer: &str) -> Result<Briefing, String> {
    let said = json_in(answer)?;
    let briefing = said.get("briefing").and_then(Value::as_object).ok_or("briefing: expected an object")?;
    let told = briefing.get("worth").and_then(Value::as_bool).ok_or("briefing.worth: expected true or false")?;
    let of = |name: &str, most: usize| cut_to(&secrets::take_out(text(briefing, name).unwrap_or_default()).text, most);
    let briefing = Briefing {
        told,
        reason: of("reason", CONTENT_BYTES),
        summary: if told { of("summary", CONTENT_BYTES) } else { String::new() },
        text: if told { of("text", BRIEFING_BYTES) } else { String::new() },
    };
    match told && (briefing.summary.is_empty() || briefing.text.is_empty()) {
        true => Err("briefing: expected a summary and a text of what is worth telling".to_owned()),
        false => Ok(briefing),
    }
}

/// Reads the memories from the model's answer. One that names a known memory to replace takes its place.
pub fn read(context: &Context<'_>, thread_id: &str, answer: &str) -> Result<Vec<MemoryAppended>, String> {
    let items = match json_in(answer) {
        Ok(Value::Object(said)) => said.get("memories").and_then(Value::as_array).cloned().unwrap_or_default(),
        _ => listed(answer, MOST)?,
    };
    if context.memory_rules > 0 {
        return correcting::read(context, thread_id, &items);
    }
    let memory = |(at, item): (usize, &Value)| {
        memory(context, thread_id, at, item).map_err(|flaw| format!("memory {}: {flaw}", at + 1))
    };
    items.iter().take(MOST).enumerate().map(memory).collect()
}

/// As builds before epoch 10 read it: what is nearly the same as something that is known becomes part of that, with both sources.
fn memory(context: &Context<'_>, thread_id: &str, at: usize, item: &Value) -> Result<MemoryAppended, String> {
    let item = item.as_object().ok_or("expected an object")?;
    let Item { kind, subject, content } = read_item(item)?;
    let user = &context.turn.user;
    let known = context.state.memories.like(&kind, user, &content.text);
    let id = ids::derived(context.id, &format!("memory/{at}"));
    let kept = Kept::of(context.secret_key, id, content)?;
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
        lacks_keywords: false,
    })
}
