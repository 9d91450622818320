//! `thread.summarize`, `.archive` and `.unarchive`.

use kairo_events::threads;
use kairo_proto::v1::{ThreadArchived, ThreadSummarized, decided_event::Event};
use kairo_proto::words::ThreadStatus;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, finish_without_model};
use crate::{
    answer_schemas, chat_client,
    model_answer::extract_json,
    prompts,
    request::{ModelRequest, Tool},
    state::AgentState,
    thread::{Thread, ThreadEntry, cut_to},
};

/// Of a thread, so much is shown to be summed up, in bytes: its end.
const SHOWN_BYTES: usize = 24 * 1024;
/// Of one entry, so much, in bytes.
const ENTRY_BYTES: usize = 2 * 1024;
/// Longest parts kept of a title and of a summary, in bytes.
const TITLE_BYTES: usize = 200;
const SUMMARY_BYTES: usize = 2_000;

pub fn all() -> Vec<Intrinsic> {
    let tool = |name: &str, description: &str| Tool {
        name: name.into(),
        description: format!("{description} thread_id is the current thread if left out.").into(),
        schema: json!({
            "type": "object",
            "properties": { "thread_id": { "type": "string", "maxLength": 64 } },
            "additionalProperties": false,
        })
        .to_string()
        .into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    };
    vec![
        Intrinsic {
            tool: tool("thread.summarize", "Sums a thread up, for people and for finding it again."),
            begin: |context, params| {
                let thread_id = named_thread_id(context, params)?;
                let request = summary_request(context.state, &thread_id).ok_or("there is nothing in it to sum up")?;
                Ok(IntrinsicStart::Ask(request))
            },
            finish: |context, params, text| {
                let thread_id = named_thread_id(context, params)?;
                let (title, summary) = read_summary(text)?;
                let result = json!({ "thread_id": thread_id, "title": title, "summary": summary });
                let event = Event::ThreadSummarized(ThreadSummarized { thread_id, title, summary });
                Ok(IntrinsicOutcome { events: vec![event], result })
            },
        },
        Intrinsic {
            tool: tool("thread.archive", "Puts a thread away: it is no longer suggested."),
            begin: |context, params| set_archived(context, params, true),
            finish: finish_without_model,
        },
        Intrinsic {
            tool: tool("thread.unarchive", "Takes an archived thread out again."),
            begin: |context, params| set_archived(context, params, false),
            finish: finish_without_model,
        },
    ]
}

fn set_archived(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    archived: bool,
) -> Result<IntrinsicStart, String> {
    let thread_id = named_thread_id(context, params)?;
    let status = if archived { ThreadStatus::Archived } else { ThreadStatus::Active };
    let result = json!({ "thread_id": thread_id, "status": status.as_str() });
    let event = Event::ThreadArchived(ThreadArchived { thread_id, archived });
    Ok(IntrinsicOutcome { events: vec![event], result }.into())
}

/// The thread that is named, if it is one of the user's own.
fn named_thread_id(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<String, String> {
    let own = context.turn.thread_id.as_str();
    let id = params.get("thread_id").and_then(Value::as_str).filter(|id| !id.is_empty()).unwrap_or(own);
    let user = &context.turn.user;
    let is_his = |id: &str| {
        let thread = context.state.threads.get(id);
        thread.is_some_and(|thread| thread.user == *user || user.is_empty())
    };
    // Its id, or what the user calls it.
    let ids = [id.to_owned(), threads::id_for_name(context.agent, user, id)];
    ids.into_iter().find(|id| is_his(id)).ok_or_else(|| format!("there is no thread {id:?} of this user"))
}

/// Builds the model request for the summary of a thread; `None` if the thread is empty.
pub fn summary_request(state: &AgentState, thread_id: &str) -> Option<ModelRequest> {
    summary_question(state, thread_id, None).map(request_from_question)
}

/// Builds the model request for the summary of a thread from the question on it.
pub fn request_from_question(question: String) -> ModelRequest {
    ModelRequest::from_prompt("fast", prompts::SUMMARIZE, question).with_answer_schema(answer_schemas::summary())
}

/// Returns the text of a thread to sum up: up to the end of a turn, if one is named.
pub fn summary_question(state: &AgentState, thread_id: &str, until: Option<Uuid>) -> Option<String> {
    let thread = state.threads.get(thread_id)?;
    let told = transcript_until(thread, SHOWN_BYTES, until);
    if told.is_empty() {
        return None;
    }
    let before = match thread.summary.as_str() {
        "" => String::new(),
        summary => format!("The summary so far: {summary}\n\n"),
    };
    Some(format!("{before}{told}"))
}

/// Title and summary from a model's answer; words that are no JSON are a summary.
pub fn read_summary(text: &str) -> Result<(String, String), String> {
    #[derive(Deserialize)]
    struct SummaryAnswer {
        #[serde(default)]
        title: String,
        summary: String,
    }
    let Ok(value) = extract_json(text) else {
        let text = text.trim();
        let title: String = text.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
        return match text.is_empty() {
            true => Err("expected a title and a summary".to_owned()),
            false => Ok((cut_to(&title, TITLE_BYTES), cut_to(text, SUMMARY_BYTES))),
        };
    };
    let SummaryAnswer { title, summary } =
        serde_json::from_value(value).map_err(|error| format!("expected a title and a summary: {error}"))?;
    Ok((cut_to(title.trim(), TITLE_BYTES), cut_to(summary.trim(), SUMMARY_BYTES)))
}

/// The end of a thread as plain text, at most `bytes` of it.
pub fn transcript(thread: &Thread, bytes: usize) -> String {
    transcript_until(thread, bytes, None)
}

/// Returns the end of a thread up to the last entry of `until`, if one is named, as plain text; empty if the thread has
/// no entry of that turn any more.
fn transcript_until(thread: &Thread, bytes: usize, until: Option<Uuid>) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut size = 0;
    for entry in thread.entries().rev().skip_while(|entry| until.is_some_and(|turn| entry.turn() != turn)) {
        let line = cut_to(&entry_text(entry), ENTRY_BYTES);
        size += line.len() + 1;
        if size > bytes && !lines.is_empty() {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n")
}

/// Returns the oldest `entries` entries of a thread as plain text, at most `bytes` of each.
pub fn oldest_entries(thread: &Thread, entries: usize, bytes: usize) -> String {
    thread.entries().take(entries).map(|entry| cut_to(&entry_text(entry), bytes)).collect::<Vec<_>>().join("\n")
}

/// An entry as plain text, with all that is kept of its calls.
pub fn entry_text_whole(entry: &ThreadEntry) -> String {
    let ThreadEntry::Called { text, calls, .. } = entry else { return entry_text(entry) };
    let call = |call: &crate::thread::ThreadCall| {
        let result = call.result.as_deref().unwrap_or("still running");
        format!("{} {} -> {result}", call.tool, call.arguments)
    };
    let said = (!text.is_empty()).then(|| format!("agent: {text}"));
    said.into_iter().chain(calls.iter().map(call)).collect::<Vec<_>>().join("\n")
}

/// An entry as plain text.
pub fn entry_text(entry: &ThreadEntry) -> String {
    match entry {
        ThreadEntry::User { words, .. } => format!("user: {}", words.in_words()),
        ThreadEntry::Said { text, .. } => format!("agent: {text}"),
        ThreadEntry::Notice { text, .. } => text.clone(),
        ThreadEntry::Client { text, calls, .. } => chat_client::client_calls_text(text, calls),
        ThreadEntry::Called { text, calls, .. } => {
            let call = |call: &crate::thread::ThreadCall| {
                let result = call.result.as_deref().unwrap_or("still running");
                format!("{} {} -> {}", call.tool, cut_to(&call.arguments, 500), cut_to(result, 1_000))
            };
            let calls: Vec<String> = calls.iter().map(call).collect();
            let said = if text.is_empty() { String::new() } else { format!("agent: {text}\n") };
            format!("{said}{}", calls.join("\n"))
        }
    }
}
