//! `{tools.now.result}` in parameters.
//!
//! * `{tools.now.result}` is the result of the last step of that event, `{tools.now.result.date}` or `{tools.now.date}`
//!   a field of it, `{team.members[0].result}` the result of the first step, `{calendar.check.events[0].title}` a field
//!   of an entry
//! * `{thread.analysis}` and `{thread.summary}` are of the thread, which may be named: `{thread.<id>.analysis}`
//! * `{event.sender}` is a field of the event that triggered the chain
//!
//! Values filled in are data: braces in them refer to nothing. The steps of a task, `action`, are a chain of their own,
//! filled when it runs: their references to each other and to their trigger are left as they are.

mod later_steps;
mod target;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::later_steps::LaterSteps;
use self::target::{DanglingReference, NO_PART, NO_STEP, OTHER_THREAD, ReferenceTarget, find_target, list_names};
use self::text::{BracedPath, TextPiece, escape_braces, split_pieces};
use super::format::is_deeper_than;

/// References that the parameters of one step may have.
const REFERENCES: usize = 256;
/// Most that the parameters of a step take when they are filled, in bytes.
const FILLED_BYTES: usize = 256 * 1024;
/// Deepest nesting of parameters that are filled: less than JSON parsers read.
const FILLED_DEPTH: usize = 100;

/// The outcome of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepOutcome<'a> {
    pub event: &'a str,
    /// `None` while the step has no result.
    pub result: Option<&'a Value>,
}

/// All that references of a step may reach.
pub struct ReferenceScope<'a> {
    /// Of the steps of the chain, in their order.
    pub outcomes: &'a [StepOutcome<'a>],
    pub thread_id: &'a str,
    /// The text of the thread's last analysis.
    pub analysis: &'a str,
    pub summary: &'a str,
    /// The event that triggered the chain.
    pub event: &'a Value,
}

/// A reference as far as it can be known before its chain runs.
#[derive(Debug, PartialEq)]
pub struct ParamReference {
    /// The reference as written, with its braces.
    pub written: String,
    pub of: ReferenceKind,
}

/// The kind of thing a reference is to.
#[derive(Debug, PartialEq)]
pub enum ReferenceKind {
    /// The step of this event with this number, else the last that has a result.
    Step { event: String, nth: Option<usize> },
    /// A text of a thread; of the own one when it is not named.
    Thread(Option<String>),
    /// The event that triggered the chain.
    Event,
    /// No step of the chain.
    NoStep,
    /// Nothing that a thread has.
    NoPart,
}

/// Fills every reference in. One that is a whole string keeps the type of what it refers to.
pub fn fill(params: &Map<String, Value>, scope: &ReferenceScope<'_>) -> Result<Map<String, Value>, String> {
    let mut filling = ReferenceFiller { scope, references: 0, bytes: 0 };
    let filled = filling.fill_fields(params, &LaterSteps::default(), FILLED_DEPTH)?;
    let too_deep = filled.values().any(|value| is_deeper_than(value, FILLED_DEPTH - 1));
    if too_deep { Err(too_nested()) } else { Ok(filled) }
}

/// Returns the references of a step; `known` says whether the chain has steps of an event. Fails if there are too many.
pub fn find_all(params: &Map<String, Value>, known: &dyn Fn(&str) -> bool) -> Result<Vec<ParamReference>, String> {
    let mut looking = ReferenceCollector { known, uses: Vec::new() };
    looking.collect_fields(params, &LaterSteps::default(), FILLED_DEPTH);
    if looking.uses.len() > REFERENCES { Err(too_many_references()) } else { Ok(looking.uses) }
}

/// Returns the mistake in a reference, if any, not considering its place in the chain; `thread_id` names the chain's
/// own thread.
pub fn target_mistake(of: &ReferenceKind, thread_id: &str) -> Option<&'static str> {
    match of {
        ReferenceKind::NoStep => Some(NO_STEP),
        ReferenceKind::NoPart => Some(NO_PART),
        ReferenceKind::Thread(Some(id)) if id != thread_id => Some(OTHER_THREAD),
        ReferenceKind::Thread(_) | ReferenceKind::Event | ReferenceKind::Step { .. } => None,
    }
}

/// References on the way to being found.
struct ReferenceCollector<'k> {
    known: &'k dyn Fn(&str) -> bool,
    uses: Vec<ParamReference>,
}

impl ReferenceCollector<'_> {
    fn collect_fields(&mut self, fields: &Map<String, Value>, later: &LaterSteps<'_>, levels: usize) {
        for (key, value) in fields {
            self.collect_value(value, &later.within_field(fields, key), levels.saturating_sub(1));
        }
    }

    fn collect_value(&mut self, value: &Value, later: &LaterSteps<'_>, levels: usize) {
        if levels == 0 || self.uses.len() > REFERENCES {
            return;
        }
        match value {
            Value::String(text) => self.collect_text(text, later),
            Value::Array(items) => items.iter().for_each(|item| self.collect_value(item, later, levels - 1)),
            Value::Object(fields) => self.collect_fields(fields, later, levels),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn collect_text(&mut self, text: &str, later: &LaterSteps<'_>) {
        for piece in split_pieces(text) {
            let TextPiece::Braced(braced) = piece else { continue };
            let known = |event: &str| later.runs_event(event) || (self.known)(event);
            let of = match find_target(&braced.path, &known) {
                _ if !braced.is_reference() => continue,
                Ok(ReferenceTarget::Step { event, .. }) if later.runs_event(event) => continue,
                Ok(ReferenceTarget::Step { event, nth, .. }) => ReferenceKind::Step { event: event.to_owned(), nth },
                Ok(ReferenceTarget::Thread { id, .. }) => ReferenceKind::Thread(id.map(str::to_owned)),
                Ok(ReferenceTarget::Event { .. }) => ReferenceKind::Event,
                Err(DanglingReference::NoStep) => ReferenceKind::NoStep,
                Err(DanglingReference::NoPart) => ReferenceKind::NoPart,
            };
            self.uses.push(ParamReference { written: format!("{{{}}}", braced.path.text), of });
        }
    }
}

/// Parameters on the way to being filled.
struct ReferenceFiller<'s, 'a> {
    scope: &'s ReferenceScope<'a>,
    references: usize,
    bytes: usize,
}

impl<'a> ReferenceFiller<'_, 'a> {
    fn fill_fields(
        &mut self,
        fields: &Map<String, Value>,
        later: &LaterSteps<'_>,
        levels: usize,
    ) -> Result<Map<String, Value>, String> {
        let mut filled = Map::new();
        for (key, value) in fields {
            let value = self.fill_value(
                value,
                &later.within_field(fields, key),
                levels.checked_sub(1).ok_or_else(too_nested)?,
            )?;
            filled.insert(key.clone(), value);
        }
        Ok(filled)
    }

    fn fill_value(&mut self, value: &Value, later: &LaterSteps<'_>, levels: usize) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => self.fill_text(text, later)?,
            Value::Array(items) => {
                let levels = levels.checked_sub(1).ok_or_else(too_nested)?;
                items.iter().map(|item| self.fill_value(item, later, levels)).collect::<Result<_, _>>()?
            }
            Value::Object(fields) => Value::Object(self.fill_fields(fields, later, levels)?),
            value => value.clone(),
        })
    }

    fn fill_text(&mut self, text: &str, later: &LaterSteps<'_>) -> Result<Value, String> {
        let pieces = split_pieces(text);
        if let [TextPiece::Braced(braced)] = pieces.as_slice()
            && braced.is_single_braced()
        {
            let Some(value) = self.resolve_reference(braced, later)? else { return Ok(Value::from(text)) };
            self.count_bytes(value.to_string().len())?;
            return Ok(if later.is_empty() { value.into_owned() } else { escape_value(&value) });
        }
        let mut filled = String::new();
        for piece in &pieces {
            let before = filled.len();
            match piece {
                TextPiece::Text(text) => filled.push_str(text),
                TextPiece::Braced(braced) => match self.replacement_text(braced, later)? {
                    // It is read again when the steps it is in are run.
                    None if !later.is_empty() => filled.push_str(braced.raw),
                    None => filled.push_str(&braced.wrap_in_braces(braced.path.text)),
                    Some(value) => filled.push_str(&braced.wrap_in_braces(&value)),
                },
            }
            self.count_bytes(filled.len() - before)?;
        }
        Ok(Value::String(filled))
    }

    /// Returns the text that replaces a reference within a text; `None` if it is left as it is.
    fn replacement_text(&mut self, braced: &BracedPath<'_>, later: &LaterSteps<'_>) -> Result<Option<String>, String> {
        if !braced.is_reference() {
            return Ok(None);
        }
        let Some(value) = self.resolve_reference(braced, later)? else { return Ok(None) };
        let text = match value.as_ref() {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        Ok(Some(if later.is_empty() { text } else { escape_braces(&text).into_owned() }))
    }

    /// Resolves a reference; `None` for one that is left for later.
    fn resolve_reference(
        &mut self,
        braced: &BracedPath<'_>,
        later: &LaterSteps<'_>,
    ) -> Result<Option<Cow<'a, Value>>, String> {
        self.references += 1;
        if self.references > REFERENCES {
            return Err(too_many_references());
        }
        let scope = self.scope;
        let has_step = |event: &str| scope.outcomes.iter().any(|outcome| outcome.event == event);
        let to = find_target(&braced.path, &|event| later.runs_event(event) || has_step(event));
        let found = match &to {
            Ok(ReferenceTarget::Step { event, .. }) if later.runs_event(event) => return Ok(None),
            Ok(ReferenceTarget::Event { .. }) if later.is_triggered() => return Ok(None),
            Ok(to @ ReferenceTarget::Event { .. }) => match to.resolve_value(scope) {
                Err(_) if !later.is_empty() => return Ok(None),
                found => found,
            },
            Ok(to) => to.resolve_value(scope),
            Err(DanglingReference::NoStep) => {
                let events = scope.outcomes.iter().map(|outcome| outcome.event);
                Err(format!("{NO_STEP}; there are {}", list_names(events)))
            }
            Err(DanglingReference::NoPart) => Err(NO_PART.to_owned()),
        };
        found.map(Some).map_err(|mistake| format!("{{{}}}: {mistake}", braced.path.text))
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        match self.bytes > FILLED_BYTES {
            true => Err(format!("the filled parameters take more than {FILLED_BYTES} bytes")),
            false => Ok(()),
        }
    }
}

/// With the braces of its texts written so that they refer to nothing.
fn escape_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape_braces(text).into_owned()),
        Value::Array(items) => items.iter().map(escape_value).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), escape_value(value))).collect(),
        value => value.clone(),
    }
}

fn too_many_references() -> String {
    format!("the parameters have more than {REFERENCES} references")
}

fn too_nested() -> String {
    format!("the filled parameters are nested more than {FILLED_DEPTH} levels deep")
}
