//! Lessons of a session of work: insights and facts, of the user whose tasks they were. No model calls this; it runs
//! when nothing is left to do in a thread of work.

mod correction;

use kairo_events::ids;
use kairo_proto::{v1::MemoryAppended, words::MemoryKind};
use serde_json::{Map, Value};

use super::{
    CONTENT_BYTES, SUBJECT_BYTES, SealedText, distinct_sources, memory_day, normalize_keywords, read_memory_list,
    text_param,
};
use crate::{
    answer_schemas,
    intrinsics::{IntrinsicContext, threads},
    memories::{self, KnownMemory},
    model_answer::extract_json,
    prompts,
    request::ModelRequest,
    secrets::{self, RedactedText},
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
    let (told, known) = recall_known(state, thread_id)?;
    if told.is_empty() {
        return None;
    }
    let known = match known {
        known if known.is_empty() => String::new(),
        known if memory_rules == 0 => format!("\n\nKnown already:\n{}", memories::in_lines(&known)),
        known => format!("\n\nKnown already:\n{}", memories::in_numbered_lines(&known)),
    };
    let (prompt, form) = match may_brief_on(state, thread_id) {
        true => (prompts::BRIEF, answer_schemas::briefing(memory_rules)),
        false => (prompts::LEARN, answer_schemas::lessons(memory_rules)),
    };
    let prompt = match memory_rules {
        0 => prompt.to_owned(),
        _ => format!("{prompt} {}", prompts::REPLACES),
    };
    Some(ModelRequest::from_prompt("fast", &prompt, format!("The session:\n{told}{known}")).with_answer_schema(form))
}

/// Returns the transcript of a thread for a model, and the known memories of its subjects.
fn recall_known<'s>(state: &'s AgentState, thread_id: &str) -> Option<(String, Vec<&'s KnownMemory>)> {
    let thread = state.threads.get(thread_id)?;
    let told = secrets::redact(&threads::transcript(thread, SHOWN_BYTES)).text;
    let known = state.memories.recall_for(&thread.user, &told);
    Some((told, known))
}

/// A memory as a model says it.
struct LessonItem {
    kind: String,
    subject: String,
    content: RedactedText,
}

/// # Errors
/// The field that is missing or wrong, and what was expected.
fn read_item(item: &Map<String, Value>) -> Result<LessonItem, String> {
    let kind = match MemoryKind::from(text_param(item, "kind").map(str::to_lowercase).unwrap_or_default().as_str()) {
        kind @ (MemoryKind::Insight | MemoryKind::Fact) => kind.text(),
        _ => return Err("kind: expected insight or fact".to_owned()),
    };
    let content = text_param(item, "content").ok_or("content: expected a text")?;
    let subject = cut_to(&secrets::redact(text_param(item, "subject").unwrap_or_default()).text, SUBJECT_BYTES);
    Ok(LessonItem { kind, subject, content: secrets::redact(&cut_to(content, CONTENT_BYTES)) })
}

/// Returns true if the agent decides whether to brief its owner on the thread: one of a lead's work for its mission.
pub fn may_brief_on(state: &AgentState, thread_id: &str) -> bool {
    let owner = state.profile.as_ref().filter(|profile| profile.is_lead()).map(|profile| &profile.owner);
    state.threads.get(thread_id).is_some_and(|thread| Some(&thread.user) == owner)
}

/// The decision on briefing the owner on the outcome of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BriefingAnswer {
    pub told: bool,
    pub reason: String,
    pub summary: String,
    pub text: String,
}

/// Reads the briefing from an answer.
pub fn read_briefing(answer: &str) -> Result<BriefingAnswer, String> {
    let said = extract_json(answer)?;
    let briefing = said.get("briefing").and_then(Value::as_object).ok_or("briefing: expected an object")?;
    let told = briefing.get("worth").and_then(Value::as_bool).ok_or("briefing.worth: expected true or false")?;
    let of =
        |name: &str, most: usize| cut_to(&secrets::redact(text_param(briefing, name).unwrap_or_default()).text, most);
    let briefing = BriefingAnswer {
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
pub fn read(context: &IntrinsicContext<'_>, thread_id: &str, answer: &str) -> Result<Vec<MemoryAppended>, String> {
    let items = match extract_json(answer) {
        Ok(Value::Object(said)) => said.get("memories").and_then(Value::as_array).cloned().unwrap_or_default(),
        _ => read_memory_list(answer, MOST)?,
    };
    if context.memory_rules > 0 {
        return correction::read(context, thread_id, &items);
    }
    let memory = |(at, item): (usize, &Value)| {
        read_merged_memory(context, thread_id, at, item).map_err(|flaw| format!("memory {}: {flaw}", at + 1))
    };
    items.iter().take(MOST).enumerate().map(memory).collect()
}

/// As builds before epoch 10 read it: what is nearly the same as something that is known becomes part of that, with both sources.
fn read_merged_memory(
    context: &IntrinsicContext<'_>,
    thread_id: &str,
    at: usize,
    item: &Value,
) -> Result<MemoryAppended, String> {
    let item = item.as_object().ok_or("expected an object")?;
    let LessonItem { kind, subject, content } = read_item(item)?;
    let user = &context.turn.user;
    let known = context.state.memories.find_alike(&kind, user, &content.text);
    let id = ids::derive(context.id, &format!("memory/{at}"));
    let kept = SealedText::seal(context.secret_key, id, content)?;
    let (memory_id, content) = match known {
        Some(known) => (known.memory_id.clone(), known.content.clone()),
        None => (id.to_string(), kept.text),
    };
    let known_sources = known.into_iter().flat_map(|known| &known.sources).map(String::as_str);
    let fresh = context.state.threads.get(thread_id).into_iter().flat_map(|thread| &thread.fresh);
    let source_event_ids = distinct_sources(known_sources.chain(fresh.map(|event| &**event)));
    let mut outside = context.state.provenance_of(context.turn);
    outside.add_marks(known.into_iter().flat_map(|known| known.outside.marks()));
    Ok(MemoryAppended {
        memory_id,
        keywords: normalize_keywords(subject.split_whitespace().chain([subject.as_str(), kind.as_str()])),
        kind,
        subject,
        content,
        day: memory_day(context, &Map::new())?.to_string(),
        source_event_ids,
        secrets: if known.is_some() { Vec::new() } else { kept.sealed },
        user: user.clone(),
        outside: outside.marks(),
        lacks_keywords: false,
    })
}
