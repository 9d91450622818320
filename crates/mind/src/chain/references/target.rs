//! Targets of references.

use std::borrow::Cow;

use serde_json::Value;

use super::ReferenceScope;
use super::text::{PathSegment, ReferencePath};

/// Names that an error lists.
const LISTED: usize = 10;
/// Longest name that an error lists, in characters.
const LISTED_CHARS: usize = 40;

/// The target of a reference, as far as it can be determined without results.
#[derive(Debug)]
pub enum ReferenceTarget<'p> {
    /// Within the result of the step of this event with this number, else of the last one that has a result.
    Step { event: &'p str, nth: Option<usize>, path: &'p [PathSegment<'p>] },
    /// A text of a thread; of the own one when it is not named.
    Thread { id: Option<&'p str>, part: ThreadPart },
    /// Within the event that triggered the chain.
    Event { path: &'p [PathSegment<'p>] },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPart {
    Analysis,
    Summary,
}

/// The reason a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DanglingReference {
    NoStep,
    /// It begins like one to a thread.
    NoPart,
}

/// Returns the target of a path. `known` says whether a step of this event can be referred to; the longest name wins.
pub fn find_target<'p>(
    path: &'p ReferencePath<'p>,
    known: &dyn Fn(&str) -> bool,
) -> Result<ReferenceTarget<'p>, DanglingReference> {
    let numbered = path.segments.iter().position(|segment| segment.index.is_some());
    let longest = numbered.map_or(path.segments.len(), |at| at + 1);
    let names = path.segments.iter().enumerate().take(longest);
    if let Some((at, last)) = names.rev().find(|(_, segment)| known(segment.so_far)) {
        let behind = path.segments.get(at + 1..).unwrap_or_default();
        return Ok(ReferenceTarget::Step { event: last.so_far, nth: last.index, path: behind });
    }
    match path.segments.as_slice() {
        [PathSegment { name: "event", index: None, .. }, path @ ..] => Ok(ReferenceTarget::Event { path }),
        [PathSegment { name: "thread", .. }, named @ ..] => thread_target(named),
        _ => Err(DanglingReference::NoStep),
    }
}

fn thread_target<'p>(named: &[PathSegment<'p>]) -> Result<ReferenceTarget<'p>, DanglingReference> {
    let (id, part) = match named {
        [part] => (None, part),
        [id, part] => (Some(id.name), part),
        _ => return Err(DanglingReference::NoPart),
    };
    let part = match part.name {
        "analysis" => ThreadPart::Analysis,
        "summary" => ThreadPart::Summary,
        _ => return Err(DanglingReference::NoPart),
    };
    let numbered = named.iter().any(|segment| segment.index.is_some());
    if numbered { Err(DanglingReference::NoPart) } else { Ok(ReferenceTarget::Thread { id, part }) }
}

pub const NO_STEP: &str = "refers to no step of the chain";
pub const NO_PART: &str = "refers to nothing of the thread; write {thread.analysis} or {thread.summary}";
pub const OTHER_THREAD: &str = "reaches outside the thread; write {thread.analysis} or {thread.summary}";

impl ReferenceTarget<'_> {
    /// Resolves the target to its value, using the results in `scope`.
    pub fn resolve_value<'s>(&self, scope: &ReferenceScope<'s>) -> Result<Cow<'s, Value>, String> {
        match self {
            Self::Step { event, nth, path } => {
                let result = step_result(scope, event, *nth)?;
                let (result, path) = match path {
                    [PathSegment { name: "result", index, .. }, path @ ..] => (item_of(result, *index)?, path),
                    path => (result, *path),
                };
                Ok(Cow::Borrowed(follow_path(result, path)?))
            }
            Self::Thread { id: Some(id), .. } if *id != scope.thread_id => Err(OTHER_THREAD.to_owned()),
            Self::Thread { part, .. } => match (part, scope.analysis, scope.summary) {
                (ThreadPart::Analysis, "", _) => Err("nothing was analyzed in the thread yet".to_owned()),
                (ThreadPart::Summary, _, "") => Err("the thread has no summary yet".to_owned()),
                (ThreadPart::Analysis, text, _) | (ThreadPart::Summary, _, text) => Ok(Cow::Owned(Value::from(text))),
            },
            Self::Event { .. } if scope.event.is_null() => Err("nothing triggered the chain".to_owned()),
            Self::Event { path } => Ok(Cow::Borrowed(follow_path(scope.event, path)?)),
        }
    }
}

/// The result of a step.
fn step_result<'s>(scope: &ReferenceScope<'s>, event: &str, nth: Option<usize>) -> Result<&'s Value, String> {
    let mut steps = scope.outcomes.iter().filter(|outcome| outcome.event == event);
    match nth {
        None => steps.rev().find_map(|step| step.result).ok_or_else(|| format!("{event} has no result")),
        Some(nth) => {
            let count = steps.clone().count();
            let step = steps.nth(nth).ok_or_else(|| format!("there is no {event}[{nth}], but {count} of them"))?;
            step.result.ok_or_else(|| format!("{event}[{nth}] has no result"))
        }
    }
}

fn follow_path<'v>(value: &'v Value, path: &[PathSegment<'_>]) -> Result<&'v Value, String> {
    path.iter().try_fold(value, |value, segment| item_of(field_of(value, segment.name)?, segment.index))
}

fn field_of<'v>(value: &'v Value, name: &str) -> Result<&'v Value, String> {
    match value {
        Value::Object(fields) => {
            let keys = fields.keys().map(String::as_str);
            fields.get(name).ok_or_else(|| format!("there is no {name:?}, but {}", list_names(keys)))
        }
        Value::Array(items) => Err(format!("there is a list of {} where {name:?} was looked for", items.len())),
        other => Err(format!("there is a {} where {name:?} was looked for", kind_name(other))),
    }
}

fn item_of(value: &Value, index: Option<usize>) -> Result<&Value, String> {
    match (value, index) {
        (value, None) => Ok(value),
        (Value::Array(items), Some(index)) => {
            items.get(index).ok_or_else(|| format!("there is no [{index}] in a list of {}", items.len()))
        }
        (other, Some(index)) => Err(format!("there is a {} where [{index}] was looked for", kind_name(other))),
    }
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "truth value",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// A few of the names there are.
pub fn list_names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names = names.map(|name| name.chars().take(LISTED_CHARS).collect::<String>());
    let shown: Vec<String> = names.by_ref().take(LISTED).collect();
    match (shown.is_empty(), names.count()) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}
