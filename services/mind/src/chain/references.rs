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

mod later;
mod target;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::later::Later;
use self::target::{NO_PART, NO_STEP, OTHER_THREAD, Stray, Target, listed, target};
use self::text::{Braced, Piece, escape, pieces};
use super::format::deeper_than;

/// References that the parameters of one step may have.
const REFERENCES: usize = 256;
/// Most that the parameters of a step take when they are filled, in bytes.
const FILLED_BYTES: usize = 256 * 1024;
/// Deepest nesting of parameters that are filled: less than JSON parsers read.
const FILLED_DEPTH: usize = 100;

/// The outcome of a step.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    pub event: &'a str,
    /// `None` while the step has no result.
    pub result: Option<&'a Value>,
}

/// All that references of a step may reach.
pub struct Scope<'a> {
    /// Of the steps of the chain, in their order.
    pub outcomes: &'a [Outcome<'a>],
    pub thread_id: &'a str,
    /// The text of the thread's last analysis.
    pub analysis: &'a str,
    pub summary: &'a str,
    /// The event that triggered the chain.
    pub event: &'a Value,
}

/// A reference as far as it can be known before its chain runs.
#[derive(Debug, PartialEq)]
pub struct Use {
    /// The reference as written, with its braces.
    pub written: String,
    pub of: Of,
}

/// The kind of thing a reference is to.
#[derive(Debug, PartialEq)]
pub enum Of {
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
pub fn fill(params: &Map<String, Value>, scope: &Scope<'_>) -> Result<Map<String, Value>, String> {
    let mut filling = Filling { scope, references: 0, bytes: 0 };
    let filled = filling.fields(params, &Later::default(), FILLED_DEPTH)?;
    let too_deep = filled.values().any(|value| deeper_than(value, FILLED_DEPTH - 1));
    if too_deep { Err(too_nested()) } else { Ok(filled) }
}

/// Returns the references of a step; `known` says whether the chain has steps of an event. Fails if there are too many.
pub fn uses(params: &Map<String, Value>, known: &dyn Fn(&str) -> bool) -> Result<Vec<Use>, String> {
    let mut looking = Looking { known, uses: Vec::new() };
    looking.fields(params, &Later::default(), FILLED_DEPTH);
    if looking.uses.len() > REFERENCES { Err(too_many()) } else { Ok(looking.uses) }
}

/// Returns the mistake in a reference, if any, not considering its place in the chain; `thread_id` names the chain's
/// own thread.
pub fn mistake(of: &Of, thread_id: &str) -> Option<&'static str> {
    match of {
        Of::NoStep => Some(NO_STEP),
        Of::NoPart => Some(NO_PART),
        Of::Thread(Some(id)) if id != thread_id => Some(OTHER_THREAD),
        Of::Thread(_) | Of::Event | Of::Step { .. } => None,
    }
}

/// References on the way to being found.
struct Looking<'k> {
    known: &'k dyn Fn(&str) -> bool,
    uses: Vec<Use>,
}

impl Looking<'_> {
    fn fields(&mut self, fields: &Map<String, Value>, later: &Later<'_>, levels: usize) {
        for (key, value) in fields {
            self.value(value, &later.within(fields, key), levels.saturating_sub(1));
        }
    }

    fn value(&mut self, value: &Value, later: &Later<'_>, levels: usize) {
        if levels == 0 || self.uses.len() > REFERENCES {
            return;
        }
        match value {
            Value::String(text) => self.text(text, later),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, later, levels - 1)),
            Value::Object(fields) => self.fields(fields, later, levels),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, later: &Later<'_>) {
        for piece in pieces(text) {
            let Piece::Braced(braced) = piece else { continue };
            let known = |event: &str| later.runs(event) || (self.known)(event);
            let of = match target(&braced.path, &known) {
                _ if !braced.is_reference() => continue,
                Ok(Target::Step { event, .. }) if later.runs(event) => continue,
                Ok(Target::Step { event, nth, .. }) => Of::Step { event: event.to_owned(), nth },
                Ok(Target::Thread { id, .. }) => Of::Thread(id.map(str::to_owned)),
                Ok(Target::Event { .. }) => Of::Event,
                Err(Stray::NoStep) => Of::NoStep,
                Err(Stray::NoPart) => Of::NoPart,
            };
            self.uses.push(Use { written: format!("{{{}}}", braced.path.text), of });
        }
    }
}

/// Parameters on the way to being filled.
struct Filling<'s, 'a> {
    scope: &'s Scope<'a>,
    references: usize,
    bytes: usize,
}

impl<'a> Filling<'_, 'a> {
    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        later: &Later<'_>,
        levels: usize,
    ) -> Result<Map<String, Value>, String> {
        let mut filled = Map::new();
        for (key, value) in fields {
            let value = self.value(value, &later.within(fields, key), levels.checked_sub(1).ok_or_else(too_nested)?)?;
            filled.insert(key.clone(), value);
        }
        Ok(filled)
    }

    fn value(&mut self, value: &Value, later: &Later<'_>, levels: usize) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => self.text(text, later)?,
            Value::Array(items) => {
                let levels = levels.checked_sub(1).ok_or_else(too_nested)?;
                items.iter().map(|item| self.value(item, later, levels)).collect::<Result<_, _>>()?
            }
            Value::Object(fields) => Value::Object(self.fields(fields, later, levels)?),
            value => value.clone(),
        })
    }

    fn text(&mut self, text: &str, later: &Later<'_>) -> Result<Value, String> {
        let pieces = pieces(text);
        if let [Piece::Braced(braced)] = pieces.as_slice()
            && braced.is_bare()
        {
            let Some(value) = self.refer(braced, later)? else { return Ok(Value::from(text)) };
            self.count(value.to_string().len())?;
            return Ok(if later.is_empty() { value.into_owned() } else { escaped(&value) });
        }
        let mut filled = String::new();
        for piece in &pieces {
            let before = filled.len();
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Braced(braced) => match self.referred(braced, later)? {
                    // It is read again when the steps it is in are run.
                    None if !later.is_empty() => filled.push_str(braced.raw),
                    None => filled.push_str(&braced.show(braced.path.text)),
                    Some(value) => filled.push_str(&braced.show(&value)),
                },
            }
            self.count(filled.len() - before)?;
        }
        Ok(Value::String(filled))
    }

    /// Returns the text that replaces a reference within a text; `None` if it is left as it is.
    fn referred(&mut self, braced: &Braced<'_>, later: &Later<'_>) -> Result<Option<String>, String> {
        if !braced.is_reference() {
            return Ok(None);
        }
        let Some(value) = self.refer(braced, later)? else { return Ok(None) };
        let text = match value.as_ref() {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        Ok(Some(if later.is_empty() { text } else { escape(&text).into_owned() }))
    }

    /// Resolves a reference; `None` for one that is left for later.
    fn refer(&mut self, braced: &Braced<'_>, later: &Later<'_>) -> Result<Option<Cow<'a, Value>>, String> {
        self.references += 1;
        if self.references > REFERENCES {
            return Err(too_many());
        }
        let scope = self.scope;
        let has_step = |event: &str| scope.outcomes.iter().any(|outcome| outcome.event == event);
        let to = target(&braced.path, &|event| later.runs(event) || has_step(event));
        let found = match &to {
            Ok(Target::Step { event, .. }) if later.runs(event) => return Ok(None),
            Ok(Target::Event { .. }) if later.is_triggered() => return Ok(None),
            Ok(to @ Target::Event { .. }) => match to.find(scope) {
                Err(_) if !later.is_empty() => return Ok(None),
                found => found,
            },
            Ok(to) => to.find(scope),
            Err(Stray::NoStep) => {
                let events = scope.outcomes.iter().map(|outcome| outcome.event);
                Err(format!("{NO_STEP}; there are {}", listed(events)))
            }
            Err(Stray::NoPart) => Err(NO_PART.to_owned()),
        };
        found.map(Some).map_err(|mistake| format!("{{{}}}: {mistake}", braced.path.text))
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        match self.bytes > FILLED_BYTES {
            true => Err(format!("the filled parameters take more than {FILLED_BYTES} bytes")),
            false => Ok(()),
        }
    }
}

/// With the braces of its texts written so that they refer to nothing.
fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape(text).into_owned()),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), escaped(value))).collect(),
        value => value.clone(),
    }
}

fn too_many() -> String {
    format!("the parameters have more than {REFERENCES} references")
}

fn too_nested() -> String {
    format!("the filled parameters are nested more than {FILLED_DEPTH} levels deep")
}
