//! Conditions of hooks: the syntax of seed 000 (`sender contains 'Sarah' AND (subject contains 'budget')`) and CEL.
//!
//! * `syntax`: that of seed 000, read to an [`Expression`](syntax::Expression)
//! * `truth`: what such an expression says of data
//! * `cel`: what is not in that syntax
//!
//! It compares text whatever its case. What is asked of a field that the data has not, does not hold.

pub mod cel;
mod syntax;
#[cfg(test)]
mod tests;
mod truth;

use serde_json::Value;

use self::truth::Truth;

/// Longest condition, in characters.
pub const LONGEST: usize = super::tasks::CONDITION_CHARS;
/// Deepest nesting of parentheses.
pub const DEEPEST: usize = 32;

/// The verdict of a condition on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionVerdict {
    Holds,
    DoesNot,
    /// Neither syntax can read it, or it asks for what the event has not: a model must judge.
    Unclear,
}

/// Judges a condition by the event's data, a JSON object. An empty condition holds.
pub fn judge(condition: &str, data: &Value) -> ConditionVerdict {
    let condition = condition.trim();
    if condition.is_empty() {
        return ConditionVerdict::Holds;
    }
    if condition.chars().count() > LONGEST {
        return ConditionVerdict::Unclear;
    }
    let truth = match syntax::parse(condition) {
        Some(expression) => truth::evaluate(&expression, data),
        None => cel::judge(condition, data),
    };
    match truth {
        Truth::Yes => ConditionVerdict::Holds,
        Truth::No => ConditionVerdict::DoesNot,
        Truth::Unknown => ConditionVerdict::Unclear,
    }
}
