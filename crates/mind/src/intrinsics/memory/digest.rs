//! `memory.digest`: a day's or a week's journal, organised by what it is about.

use jiff::{Span, civil::Date};
use kairo_events::ids;
use kairo_proto::v1::{MemoryAppended, decided_event::Event};
use kairo_proto::words::MemoryKind;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    CONTENT_BYTES, KINDS, SUBJECT_BYTES, SealedText, distinct_sources, memory_day, normalize_keywords,
    read_memory_list, text_param,
};
use crate::{
    answer_schemas,
    intrinsics::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart},
    memories::KnownMemory,
    request::{ModelRequest, Tool},
    secrets::{self, RedactedText},
    thread::cut_to,
};

/// Memories that one digest makes.
const MOST: usize = 100;
/// Memories the model is told that it may take up, the newest, and the bytes of each.
const KNOWN: usize = 50;
const KNOWN_BYTES: usize = 500;
/// Kinds of which there is one memory for each subject, which the next digest replaces.
const ONE_EACH: [&str; 4] = ["person", "project", "preference", "state"];

/// The fast model that organises.
const DIGEST: &str = "You are memory.digest. Organise what the journal says into memories: who the people are, how the \
projects stand, what the user prefers, what was decided, what was learnt, how things are, where secrets such as passwords \
are kept. What is known already is given too: a person, project, preference or state that you write again replaces what is \
known of it, so take up what still holds. What stands as [secret ...] is kept elsewhere: repeat it as it is. Answer with a \
JSON list and nothing else: [{\"kind\": \"person|project|preference|decision|insight|fact|state|secret\", \"subject\": \
\"whom or what it is about\", \"content\": \"what to remember\", \"entries\": [1]}], where entries are the numbers of the \
journal's entries it comes from. An empty list if nothing is worth it.";

pub(super) fn intrinsic() -> Intrinsic {
    let description = "Organises what the journal says of a day or of a week into memories about people, projects, \
                       preferences, decisions and facts.";
    let schema = json!({
        "type": "object",
        "required": ["period"],
        "properties": {
            "period": { "enum": ["daily", "weekly"] },
            "day": { "type": "string", "description": "YYYY-MM-DD, the last day of the period; today if left out" },
        },
        "additionalProperties": false,
    });
    let name = "memory.digest".to_owned();
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

/// The journal entries to digest.
struct JournalPeriod<'c> {
    from: Date,
    to: Date,
    entries: Vec<&'c KnownMemory>,
}

impl<'c> JournalPeriod<'c> {
    fn from_params(context: &IntrinsicContext<'c>, params: &Map<String, Value>) -> Result<Self, String> {
        let to = memory_day(context, params)?;
        let days = match text_param(params, "period") {
            Some("daily") => 0,
            Some("weekly") => 6,
            _ => return Err("period: expected daily or weekly".to_owned()),
        };
        let from = to.checked_sub(Span::new().days(days)).map_err(|error| format!("day: {error}"))?;
        let within = |entry: &&KnownMemory| {
            entry.kind == MemoryKind::Journal.as_str()
                && entry.day.parse::<Date>().is_ok_and(|day| (from..=to).contains(&day))
        };
        let entries =
            context.state.memories.recent.iter().filter(within).filter(|entry| is_readable(context, entry)).collect();
        Ok(Self { from, to, entries })
    }

    fn to_prompt(&self) -> String {
        let line = |(number, entry): (usize, &&KnownMemory)| {
            format!("{}. {} {}: {}", number + 1, entry.day, entry.user, with_secret_references(entry))
        };
        self.entries.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The entries that something comes from, as the model numbers them; all if it does not say.
    fn entries_for(&self, item: &Map<String, Value>) -> Vec<&'c KnownMemory> {
        let numbers = item.get("entries").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let numbered = numbers.iter().filter_map(|number| usize::try_from(number.as_u64()?.checked_sub(1)?).ok());
        let mut entries: Vec<&KnownMemory> = numbered.filter_map(|at| self.entries.get(at).copied()).collect();
        entries.dedup_by(|a, b| a.memory_id == b.memory_id);
        if entries.is_empty() { self.entries.clone() } else { entries }
    }

    fn to_outcome(&self, events: Vec<Event>, memories: &[Value]) -> IntrinsicOutcome {
        let from = self.from.to_string();
        let to = self.to.to_string();
        IntrinsicOutcome {
            events,
            result: json!({ "digested": memories.len(), "from": from, "to": to, "memories": memories }),
        }
    }
}

/// Returns true if this turn may read the memory: it has no user, or the memory has none or the same.
fn is_readable(context: &IntrinsicContext<'_>, memory: &KnownMemory) -> bool {
    context.turn.user.is_empty() || memory.user.is_empty() || memory.user == context.turn.user
}

fn begin(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let journal = JournalPeriod::from_params(context, params)?;
    if journal.entries.is_empty() {
        return Ok(journal.to_outcome(Vec::new(), &[]).into());
    }
    let memories = context.state.memories.recent.iter().rev();
    let known =
        memories.filter(|known| ONE_EACH.contains(&known.kind.as_str()) && is_readable(context, known)).take(KNOWN);
    let known: Vec<String> = known
        .map(|known| {
            format!("{} {}: {}", known.kind, known.subject, cut_to(&with_secret_references(known), KNOWN_BYTES))
        })
        .collect();
    let known = if known.is_empty() { String::new() } else { format!("\n\nKnown already:\n{}", known.join("\n")) };
    let user = format!("The journal:\n{}{known}", journal.to_prompt());
    let kinds: Vec<&str> = KINDS.iter().copied().filter(|kind| *kind != MemoryKind::Journal.as_str()).collect();
    Ok(IntrinsicStart::Ask(
        ModelRequest::from_prompt("fast", DIGEST, user).with_answer_schema(answer_schemas::digest(&kinds)),
    ))
}

fn finish(
    context: &IntrinsicContext<'_>,
    params: &Map<String, Value>,
    answer: &str,
) -> Result<IntrinsicOutcome, String> {
    let journal = JournalPeriod::from_params(context, params)?;
    let items = read_memory_list(answer, MOST)?;
    let mut events = Vec::new();
    let mut shown = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let memory = read_memory(context, &journal, at, item).map_err(|flaw| format!("memory {}: {flaw}", at + 1))?;
        shown.push(json!({ "memory_id": memory.memory_id, "kind": memory.kind, "subject": memory.subject }));
        events.push(Event::MemoryAppended(memory));
    }
    Ok(journal.to_outcome(events, &shown))
}

/// A memory that the model made.
fn read_memory(
    context: &IntrinsicContext<'_>,
    journal: &JournalPeriod<'_>,
    at: usize,
    item: &Value,
) -> Result<MemoryAppended, String> {
    let item = item.as_object().ok_or("expected an object")?;
    let kind = text_param(item, "kind").map(str::to_lowercase).unwrap_or_default();
    let kinds = KINDS.iter().copied().filter(|kind| *kind != MemoryKind::Journal.as_str());
    let kind = kinds.clone().find(|known| *known == kind).ok_or_else(|| {
        let kinds: Vec<_> = kinds.collect();
        format!("kind: expected one of {}", kinds.join(", "))
    })?;
    let content = text_param(item, "content").ok_or("content: expected a text")?;
    let subject = cut_to(&secrets::redact(text_param(item, "subject").unwrap_or_default()).text, SUBJECT_BYTES);
    if subject.is_empty() && ONE_EACH.contains(&kind) {
        return Err("subject: expected whom or what it is about".to_owned());
    }
    let entries = journal.entries_for(item);
    let user = match entries.first() {
        Some(first) if entries.iter().all(|entry| entry.user == first.user) => first.user.clone(),
        _ => context.turn.user.clone(),
    };
    let id = memory_id_for(context, at, kind, &subject, &user);
    let kept = SealedText::seal(
        context.secret_key,
        id,
        RedactedText { text: cut_to(content, CONTENT_BYTES), secrets: Vec::new() },
    )?;
    let source_event_ids = distinct_sources(entries.iter().flat_map(|entry| &entry.sources).map(String::as_str));
    // The model was shown the whole journal, whichever entries it names, and what is known already.
    let shown = context.state.memories.recent.iter().filter(|known| is_readable(context, known));
    let mut outside = context.state.provenance_of(context.turn);
    outside.add_marks(shown.flat_map(|known| known.outside.marks()));
    Ok(MemoryAppended {
        memory_id: id.to_string(),
        kind: kind.to_owned(),
        keywords: normalize_keywords(subject.split_whitespace().chain([subject.as_str(), kind])),
        subject,
        content: kept.text,
        day: journal.to.to_string(),
        source_event_ids,
        secrets: kept.sealed,
        user,
        outside: outside.marks(),
        lacks_keywords: false,
    })
}

/// Returns the id of a memory; of a kind in `ONE_EACH`, it is derived from user, kind and subject alone.
fn memory_id_for(context: &IntrinsicContext<'_>, at: usize, kind: &str, subject: &str, user: &str) -> Uuid {
    match ONE_EACH.contains(&kind) {
        true => ids::from_parts("memory", &[user, kind, &subject.to_lowercase()]),
        false => ids::derive(context.id, &format!("memory/{at}")),
    }
}

/// Returns a memory's content, its secrets named so that they are found: they stay sealed where they are.
fn with_secret_references(memory: &KnownMemory) -> String {
    let short: String = memory.memory_id.chars().filter(|c| *c != '-').take(8).collect();
    let mut told = String::new();
    let mut rest = memory.content.as_str();
    while let Some((before, behind)) = rest.split_once("[secret ") {
        told.push_str(before);
        told.push_str("[secret ");
        let Some((name, behind)) = behind.split_once(']') else {
            rest = behind;
            break;
        };
        let elsewhere = name.contains(" of ") || name.contains("not kept");
        told.push_str(name);
        if !elsewhere {
            told.push_str(&format!(" of {short}"));
        }
        told.push(']');
        rest = behind;
    }
    told.push_str(rest);
    told
}
