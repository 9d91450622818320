//! The condition to look for in a state, in the Common Expression Language: `size(in_flight) > 1`,
//! `profile.sequence == 7`, `threads.exists(id, threads[id].title.contains("invoice"))`. Its variables are the fields
//! of [`state`](crate::timeline::Timeline::state).

use cel::{Context, Program, Value as Cel};
use kairo_mind::conditions::{
    DEEPEST,
    cel::{converted, on_a_stack_of_its_own},
};
use serde_json::Value;

/// So deep a state is looked at: all of it.
const WHOLE: usize = usize::MAX;

/// Longest expression, in characters.
pub const LONGEST: usize = 4_096;

/// The reason for which an expression cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("expected an expression of at most {LONGEST} characters")]
    Long,
    #[error("expected parentheses at most {DEEPEST} deep")]
    Deep,
    #[error("expected an expression in CEL, such as size(in_flight) > 1: {0}")]
    Syntax(String),
}

/// An expression that was read.
pub struct Expression {
    program: Program,
    /// The fields that it names.
    fields: Vec<String>,
}

/// The result of an expression on a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Holds,
    DoesNot,
    /// It asks for what the state has not, or says something else than true or false.
    Unclear(String),
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// If the text is no expression; the error says what was expected.
    pub fn read(text: &str) -> Result<Self, Unusable> {
        if text.chars().count() > LONGEST {
            return Err(Unusable::Long);
        }
        let deepest = text.chars().scan(0_usize, |depth, sign| {
            *depth = match sign {
                '(' | '[' | '{' => *depth + 1,
                ')' | ']' | '}' => depth.saturating_sub(1),
                _ => *depth,
            };
            Some(*depth)
        });
        if deepest.max().is_some_and(|deepest| deepest > DEEPEST) {
            return Err(Unusable::Deep);
        }
        let read = || Program::compile(text).map_err(|error| Unusable::Syntax(error.to_string()));
        let program =
            on_a_stack_of_its_own(read).unwrap_or_else(|| Err(Unusable::Syntax("it cannot be read".into())))?;
        let fields = program.references().variables().into_iter().map(str::to_owned).collect();
        Ok(Self { program, fields })
    }

    /// Evaluates the expression on this state.
    pub fn of(&self, state: &Value) -> Said {
        on_a_stack_of_its_own(|| self.evaluate(state)).unwrap_or_else(|| Said::Unclear("it cannot be evaluated".into()))
    }

    fn evaluate(&self, state: &Value) -> Said {
        let mut context = Context::default();
        // Of a large state, what is not asked for need not be converted.
        for name in &self.fields {
            if let Some(value) = state.get(name) {
                context.add_variable_from_value(name.as_str(), converted(value, WHOLE));
            }
        }
        match self.program.execute(&context) {
            Ok(Cel::Bool(true)) => Said::Holds,
            Ok(Cel::Bool(false)) => Said::DoesNot,
            Ok(_) => Said::Unclear("it is neither true nor false".to_owned()),
            Err(error) => Said::Unclear(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(expression: &str) -> Said {
        let state = json!({
            "cursor": 9,
            "in_flight": { "a": { "tool": "tools.now" } },
            "threads": { "t": { "title": "the invoice" } },
        });
        Expression::read(expression).unwrap().of(&state)
    }

    #[test]
    fn fields_of_the_state_are_its_variables() {
        for holds in [
            "cursor == 9",
            "size(in_flight) == 1 && in_flight.a.tool == 'tools.now'",
            "threads.exists(id, threads[id].title.contains('invoice'))",
        ] {
            assert_eq!(said(holds), Said::Holds, "{holds}");
        }
        assert_eq!(said("cursor > 9"), Said::DoesNot);
        for unclear in ["turns.a.due == 1", "in_flight.b.tool == 'x'", "cursor + 1", "cursr == 9"] {
            assert!(matches!(said(unclear), Said::Unclear(_)), "{unclear}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_what_was_expected() {
        assert!(matches!(Expression::read("cursor =="), Err(Unusable::Syntax(_))));
        assert_eq!(Expression::read(&"x".repeat(LONGEST + 1)).err(), Some(Unusable::Long));
        assert_eq!(Expression::read(&"(".repeat(DEEPEST + 1)).err(), Some(Unusable::Deep));
    }
}
