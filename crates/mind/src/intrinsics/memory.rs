//! `memory.append` and `memory.digest`: writing to memory. Searching it is a tool of tool-runner, where the read model is.
//!
//! Whatever is written or shown to a model goes through [`crate::secrets`] first.

mod day_end;
mod digest;
pub(crate) mod journal;
pub mod keyword_naming;
pub mod lessons;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::{civil::Date, tz::TimeZone};
use kairo_events::sealing;
use kairo_proto::{v1::SealedSecret, words::MemoryKind};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Intrinsic, IntrinsicContext};
use crate::{
    model_answer::extract_json,
    secrets::{self, RedactedText, marker_for},
    state::{AgentState, TurnCause},
    tasks::Task,
};

/// The kinds of memories.
const KINDS: &[&str] = MemoryKind::WORDS;
/// Longest content and subject of a memory, in bytes.
const CONTENT_BYTES: usize = 16 * 1024;
const SUBJECT_BYTES: usize = 200;
/// Events that a memory says it came from.
const SOURCES: usize = 100;
/// Keywords of a memory, and the bytes of one.
const KEYWORDS: usize = 32;
const KEYWORD_BYTES: usize = 64;

pub fn all() -> Vec<Intrinsic> {
    vec![journal::intrinsic(), digest::intrinsic()]
}

/// The day that is being written about: the one that is given, or the agent's own now. At the end of the day, which may
/// be dealt with after midnight, or ordered before its hour, the one that ends.
fn memory_day(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<Date, String> {
    let zone = context.state.profile.as_ref().and_then(|profile| TimeZone::get(&profile.time_zone).ok());
    let zone = zone.unwrap_or(TimeZone::UTC);
    let today = context.now.to_zoned(zone.clone()).date();
    match text_param(params, "day") {
        Some(given) => match given.parse::<Date>() {
            Ok(day) if day <= today && today.year() - day.year() <= 1_000 => Ok(day),
            Ok(_) => Err(format!("day: expected one that is not in the future, found {given}")),
            Err(_) => Err(format!("day: expected YYYY-MM-DD, found {given:?}")),
        },
        None if ends_the_day(context.state, &context.turn.cause) => {
            let at = context.state.profile.as_ref().and_then(|profile| profile.day_ends_at.parse().ok());
            let at = at.filter(|_| context.memory_rules > 0);
            let end = at.map_or(context.now, |at| day_end::nearest(context.now, at, &zone));
            day_end::date_of(end, &zone)
        }
        None => Ok(today),
    }
}

/// Returns true if the cause is the task that ends the agent's day.
fn ends_the_day(state: &AgentState, cause: &TurnCause) -> bool {
    let TurnCause::Task(task) = cause else { return false };
    state.tasks.open.get(task).is_some_and(Task::is_of_system)
}

/// The memories that a model lists, `most` of them: as a list, or as one within an object.
fn read_memory_list(answer: &str, most: usize) -> Result<Vec<Value>, String> {
    let items = match extract_json(answer)? {
        Value::Array(items) => items,
        Value::Object(mut object) => match object.remove("memories") {
            Some(Value::Array(items)) => items,
            _ => return Err("expected a JSON list of memories".to_owned()),
        },
        _ => return Err("expected a JSON list of memories".to_owned()),
    };
    if items.len() > most {
        return Err(format!("expected at most {most} memories, found {}", items.len()));
    }
    Ok(items)
}

/// The events that a memory says it came from: each once, the first ones.
fn distinct_sources<'s>(events: impl IntoIterator<Item = &'s str>) -> Vec<String> {
    let mut sources: Vec<String> = Vec::new();
    for event in events {
        if sources.len() < SOURCES && !sources.iter().any(|known| known == event) {
            sources.push(event.to_owned());
        }
    }
    sources
}

/// A parameter that is a text and not blank.
fn text_param<'p>(params: &'p Map<String, Value>, name: &str) -> Option<&'p str> {
    params.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// A text as it is remembered: its secrets sealed, or, without a key, lost.
pub(crate) struct SealedText {
    pub(crate) text: String,
    pub(crate) sealed: Vec<SealedSecret>,
}

impl SealedText {
    /// The secrets are those that were taken out of what the text was made from; `id` says what they are sealed for.
    pub(crate) fn seal(
        secret_key: Option<&sealing::SealingKey>,
        id: Uuid,
        content: RedactedText,
    ) -> Result<Self, String> {
        let RedactedText { mut text, secrets } = secrets::redact_further(content);
        let forgotten: Vec<String> =
            secrets.iter().map(|(name, _)| marker_for(name)).filter(|marker| !text.contains(marker.as_str())).collect();
        if !forgotten.is_empty() {
            text = format!("{text}\nAlso told: {}", forgotten.join(", "));
        }
        let mut sealed = Vec::new();
        for (name, secret) in secrets {
            let Some(key) = secret_key else {
                let lost = format!("[secret {name} not kept: no key is configured]");
                text = text.replace(&marker_for(&name), &lost);
                continue;
            };
            let bytes = sealing::seal_secret(key, id, &name, &secret).map_err(|error| error.to_string())?;
            sealed.push(SealedSecret { name, sealed: bytes });
        }
        Ok(Self { text, sealed })
    }
}

/// Keywords as they are kept: in small letters, each once, none that is or names a secret.
fn normalize_keywords<'w>(words: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = words.into_iter().map(|word| word.trim().to_lowercase());
    let fits = |word: &String| {
        (1..=KEYWORD_BYTES).contains(&word.len())
            && !word.contains("[secret")
            && secrets::redact(word).secrets.is_empty()
    };
    words.filter(fits).filter(|word| seen.insert(word.clone())).take(KEYWORDS).collect()
}

/// The texts of a list, or the one text that stands in its place.
fn text_list<'v>(object: &'v Map<String, Value>, field: &str) -> Result<Vec<&'v str>, String> {
    let wrong = || format!("{field}: expected a list of texts");
    match object.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(list)) => list.iter().map(|item| item.as_str().ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}
