//! `memory.append`: what is given, or what happened in a thread, as a memory.

use kairo_events::ids;
use kairo_proto::v1::{MemoryAppended, decided_event::Event};
use serde_json::{Map, Value, json};

use super::{
    CONTENT_BYTES, KEYWORD_BYTES, KEYWORDS, KINDS, SUBJECT_BYTES, SealedText, memory_day, normalize_keywords,
    text_list, text_param,
};
use crate::{
    answer_schemas, chat_client,
    intrinsics::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart},
    memories::KnownMemory,
    model_answer::extract_json,
    request::{ModelRequest, Tool},
    secrets::{self, RedactedText},
    thread::{Thread, ThreadEntry, cut_to},
};

/// Of a thread, so much is shown to the model, in bytes: its end. And of one entry.
const SHOWN_BYTES: usize = 48 * 1024;
const ENTRY_BYTES: usize = 2 * 1024;
/// Events that a memory says it came from.
const SOURCES: usize = 100;

/// The light model that finds keywords for what is given.
const FIND_KEYWORDS: &str = "You are memory.append. Name the keywords by which the text should be found again: people, \
projects, topics, things. Answer with one JSON object and nothing else: {\"keywords\": [\"...\"]}, at most twelve, in small \
letters.";

/// The fast model that writes a thread's entry.
const WRITE_ENTRY: &str = "You are memory.append. Write the journal entry about what happened in this conversation, for \
the agent to find later. Keep what will matter: decisions made, people mentioned, projects discussed, tasks created, key \
information shared. What stands as [secret ...] is kept elsewhere: repeat it as it is where it belongs. Answer with one \
JSON object and nothing else: {\"content\": \"what happened, in a few sentences\", \"keywords\": [\"...\"], \"people\": \
[\"...\"], \"projects\": [\"...\"], \"decisions\": [\"...\"], \"tasks\": [\"...\"], \"facts\": [\"...\"]}. Lists may be empty.";

/// Lists of an entry, and how each is introduced in its text.
const LISTS: [(&str, &str); 5] = [
    ("people", "People"),
    ("projects", "Projects"),
    ("decisions", "Decisions"),
    ("tasks", "Tasks"),
    ("facts", "Key information"),
];

pub(super) fn intrinsic() -> Intrinsic {
    let description = "Writes to the agent's memory: the content that is given, or, without one, what happened in a \
                       thread since it was last written down. Keywords are found if none are given. What corrects \
                       a memory replaces it: name its memory_id, which memory.search tells, in replaces.";
    let schema = json!({
        "type": "object",
        "properties": {
            "content": { "type": "string", "minLength": 1, "maxLength": CONTENT_BYTES },
            "thread_id": { "type": "string", "maxLength": 64, "description": "The current thread if left out" },
            "keywords": {
                "type": "array",
                "maxItems": KEYWORDS,
                "items": { "type": "string", "minLength": 1, "maxLength": KEYWORD_BYTES },
            },
            "kind": { "enum": KINDS, "description": "journal if left out" },
            "subject": { "type": "string", "maxLength": SUBJECT_BYTES, "description": "Whom or what it is about" },
            "day": { "type": "string", "description": "YYYY-MM-DD; today if left out" },
            "replaces": { "type": "string", "maxLength": 64, "description": "The memory_id of the memory that this corrects" },
        },
        "additionalProperties": false,
    });
    let name = "memory.append".to_owned();
    let schema = schema.to_string();
    let tool = Tool {
        name: name.into(),
        description: description.into(),
        schema: schema.into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    };
    Intrinsic { tool, begin, finish }
}

fn begin(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    kind_param(params)?;
    memory_day(context, params)?;
    replaced_memory(context, params)?;
    let given = text_list(params, "keywords")?;
    let (tier, prompt, shown, form) = match content_param(params)? {
        Some(content) if !given.is_empty() || context.memory_rules > 0 => {
            return Ok(write_given(context, params, content, &given)?.into());
        }
        Some(content) => {
            ("light", FIND_KEYWORDS, secrets::redact(content).text, answer_schemas::single_memory_keywords())
        }
        None => match thread_news(thread_param(context, params)?) {
            Some(told) => ("fast", WRITE_ENTRY, shown_end(&told.text), answer_schemas::journal_entry()),
            None => return Ok(nothing_new().into()),
        },
    };
    Ok(IntrinsicStart::Ask(ModelRequest::from_prompt(tier, prompt, shown).with_answer_schema(form)))
}

fn finish(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    answer: &str,
) -> Result<IntrinsicOutcome, String> {
    // Whatever a model says of what happened is better kept than lost.
    if context.memory_rules > 0 && content_param(params)?.is_none() && !answer.trim().is_empty() && !has_object(answer)
    {
        return write_entry(context, params, &Map::from_iter([("content".to_owned(), json!(answer.trim()))]));
    }
    let Value::Object(answer) = extract_json(answer)? else { return Err("expected a JSON object".to_owned()) };
    match content_param(params)? {
        Some(content) => {
            let found = text_list(&answer, "keywords")?;
            write_given(context, params, content, &found)
        }
        None => write_entry(context, params, &answer),
    }
}

fn has_object(answer: &str) -> bool {
    matches!(extract_json(answer), Ok(Value::Object(_)))
}

/// Writes the news of a thread as they were said, for an entry that no model could write.
pub fn write_as_said(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicOutcome, String> {
    let said = thread_news(thread_param(context, params)?).ok_or("there is nothing to write down")?;
    let from = said.text.ceil_char_boundary(said.text.len().saturating_sub(CONTENT_BYTES));
    let content = said.text.get(from..).unwrap_or_default().to_owned();
    write_entry(context, params, &Map::from_iter([("content".to_owned(), json!(content))]))
}

/// Writes what is given.
fn write_given(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    content: &str,
    words: &[&str],
) -> Result<IntrinsicOutcome, String> {
    let sources = vec![context.turn.correlation.to_string()];
    append_memory(context, params, RedactedText { text: content.to_owned(), secrets: Vec::new() }, words, sources)
}

/// Writes what a model said of a thread.
fn write_entry(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    entry: &Map<String, Value>,
) -> Result<IntrinsicOutcome, String> {
    let thread = thread_param(context, params)?;
    let taken = thread_news(thread).map(|told| told.secrets).unwrap_or_default();
    let content = entry.get("content").and_then(Value::as_str).map(str::trim).filter(|content| !content.is_empty());
    let mut content = content.ok_or("content: expected a text")?.to_owned();
    let mut words = text_list(entry, "keywords")?;
    for (field, head) in LISTS {
        let items = text_list(entry, field)?;
        if !items.is_empty() {
            content.push_str(&format!("\n{head}: {}", items.join("; ")));
        }
        if matches!(field, "people" | "projects") {
            words.extend(items);
        }
    }
    let sources = thread.fresh.iter().take(SOURCES).map(|event| event.to_string()).collect();
    append_memory(
        context,
        params,
        RedactedText { text: cut_to(&content, CONTENT_BYTES), secrets: taken },
        &words,
        sources,
    )
}

fn append_memory(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    content: RedactedText,
    words: &[&str],
    source_event_ids: Vec<String>,
) -> Result<IntrinsicOutcome, String> {
    let replaced = replaced_memory(context, params)?;
    let memory = match replaced {
        Some(known) => known.memory_id.parse().map_err(|error| format!("replaces: {error}"))?,
        None => ids::derive(context.id, "memory"),
    };
    let kept = SealedText::seal(context.secret_key, memory, content)?;
    let subject = text_param(params, "subject").or(replaced.map(|known| known.subject.as_str())).unwrap_or_default();
    let subject = cut_to(&secrets::redact(subject).text, SUBJECT_BYTES);
    let thread = thread_param(context, params);
    let user = thread.as_ref().map_or(&context.turn.user, |thread| &thread.user);
    let mut outside = context.state.provenance_of(context.turn);
    outside.add_marks(thread.iter().flat_map(|thread| thread.outside.marks()));
    outside.add_marks(replaced.into_iter().flat_map(|known| known.outside.marks()));
    let keywords = normalize_keywords(words.iter().copied());
    let is_without_words = keywords.is_empty();
    let event = MemoryAppended {
        memory_id: memory.to_string(),
        kind: replaced
            .filter(|_| text_param(params, "kind").is_none())
            .map_or(kind_param(params)?, |known| &known.kind)
            .to_owned(),
        subject,
        content: kept.text,
        keywords,
        day: memory_day(context, params)?.to_string(),
        source_event_ids,
        secrets: kept.sealed,
        user: user.clone(),
        outside: outside.marks(),
        lacks_keywords: context.memory_rules > 0 && is_without_words,
    };
    let mut result = json!({
        "memory_id": event.memory_id,
        "kind": event.kind,
        "day": event.day,
        "content": event.content,
        "keywords": event.keywords,
    });
    if let (Some(known), Some(fields)) = (replaced, result.as_object_mut()) {
        fields.insert("before".to_owned(), json!(known.content));
    }
    Ok(IntrinsicOutcome { events: vec![Event::MemoryAppended(event)], result })
}

/// Nothing happened that is not written down.
fn nothing_new() -> IntrinsicOutcome {
    let reason = "nothing happened in the thread since it was last written down";
    IntrinsicOutcome { events: Vec::new(), result: json!({ "memory_id": null, "reason": reason }) }
}

fn content_param(params: &Map<String, Value>) -> Result<Option<&str>, String> {
    match params.get("content") {
        None | Some(Value::Null) => Ok(None),
        Some(_) => match text_param(params, "content") {
            Some(content) if content.len() <= CONTENT_BYTES => Ok(Some(content)),
            Some(_) => Err(format!("content: expected at most {CONTENT_BYTES} bytes")),
            None => Err("content: expected a text that is not empty".to_owned()),
        },
    }
}

fn kind_param(params: &Map<String, Value>) -> Result<&'static str, String> {
    let given = text_param(params, "kind").unwrap_or("journal");
    let known = KINDS.iter().copied().find(|kind| *kind == given);
    known.ok_or_else(|| format!("kind: expected one of {}, found {given:?}", KINDS.join(", ")))
}

/// The memory that this one corrects: one of the same user that is at hand, and holds no secret, which would be lost.
fn replaced_memory<'c>(
    context: &IntrinsicContext<'c>,
    params: &Map<String, Value>,
) -> Result<Option<&'c KnownMemory>, String> {
    let Some(id) = text_param(params, "replaces") else { return Ok(None) };
    let known = context.state.memories.find_by_id(id, &context.turn.user);
    let known = known.ok_or(
        "replaces: no such memory of this user was written lately; leave it out: of two memories the newer one holds",
    )?;
    match known.content.contains("[secret ") {
        true => Err("replaces: that memory holds a secret, which would be lost; leave it out".to_owned()),
        false => Ok(Some(known)),
    }
}

/// The thread that is named, or the turn's own. Nobody writes down another user's.
fn thread_param<'c>(context: &IntrinsicContext<'c>, params: &Map<String, Value>) -> Result<&'c Thread, String> {
    let id = text_param(params, "thread_id").unwrap_or(&context.turn.thread_id);
    let user = &context.turn.user;
    let thread = context.state.threads.get(id).filter(|thread| thread.user == *user || user.is_empty());
    thread.map(|thread| &**thread).ok_or_else(|| format!("thread_id: there is no thread {id:?} of this user"))
}

/// Returns the news of a thread since its last journal entry, without secrets; `None` if there are none.
fn thread_news(thread: &Thread) -> Option<RedactedText> {
    let lines: Vec<String> =
        thread.entries().rev().take(thread.news).filter_map(|entry| entry_line(&thread.user, entry)).collect();
    let told = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
    (!thread.fresh.is_empty() && !told.is_empty()).then(|| secrets::redact(&told))
}

fn entry_line(user: &str, entry: &ThreadEntry) -> Option<String> {
    let line = match entry {
        ThreadEntry::User { words, .. } => format!("{user}: {}", words.in_words()),
        ThreadEntry::Said { text, .. } => format!("agent: {text}"),
        ThreadEntry::Notice { text, .. } => text.clone(),
        ThreadEntry::Client { text, calls, .. } => chat_client::client_calls_text(text, calls),
        ThreadEntry::Called { text, calls, .. } => {
            // What was written to memory need not be written down again.
            let calls = calls.iter().filter(|call| !call.tool.starts_with("memory."));
            let ended = calls.map(|call| {
                let result = call.result.as_deref().unwrap_or("still running");
                format!("{} {}: {}", call.tool, cut_to(&call.arguments, ENTRY_BYTES), cut_to(result, ENTRY_BYTES))
            });
            let words = (!text.is_empty()).then(|| format!("agent: {text}"));
            let lines: Vec<String> = words.into_iter().chain(ended).collect();
            return (!lines.is_empty()).then(|| lines.join("\n"));
        }
    };
    Some(cut_to(&line, ENTRY_BYTES))
}

/// The end of a text, as much of it as is shown.
fn shown_end(text: &str) -> String {
    let from = text.ceil_char_boundary(text.len().saturating_sub(SHOWN_BYTES));
    text.get(from..).unwrap_or_default().to_owned()
}
