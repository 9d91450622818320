//! The condition to look for in a state, in the Common Expression Language: `size(in_flight) > 1`,
//! `profile.sequence == 7`, `threads.exists(id, threads[id].title.contains("invoice"))`. Its variables are the fields
//! of [`state`](crate::timeline::Timeline::state).

use cel::{Context, Program, Value as Cel};
use kairo_mind::conditions::{
    DEEPEST,
    cel::{to_cel, with_large_stack},
};
use serde_json::Value;

/// So deep a state is looked at: all of it.
const WHOLE: usize = usize::MAX;

/// Longest expression, in characters.
pub const LONGEST: usize = 4_096;

/// The reason for which an expression cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
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
pub enum ExpressionOutcome {
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
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.chars().count() > LONGEST {
            return Err(ExpressionError::Long);
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
            return Err(ExpressionError::Deep);
        }
        let read = || Program::compile(text).map_err(|error| ExpressionError::Syntax(error.to_string()));
        let program =
            with_large_stack(read).unwrap_or_else(|| Err(ExpressionError::Syntax("it cannot be read".into())))?;
        let fields = program.references().variables().into_iter().map(str::to_owned).collect();
        Ok(Self { program, fields })
    }

    /// Evaluates the expression on this state.
    pub fn evaluate_on(&self, state: &Value) -> ExpressionOutcome {
        with_large_stack(|| self.run_program(state))
            .unwrap_or_else(|| ExpressionOutcome::Unclear("it cannot be evaluated".into()))
    }

    fn run_program(&self, state: &Value) -> ExpressionOutcome {
        let mut context = Context::default();
        // Of a large state, what is not asked for need not be converted.
        for name in &self.fields {
            if let Some(value) = state.get(name) {
                context.add_variable_from_value(name.as_str(), to_cel(value, WHOLE));
            }
        }
        match self.program.execute(&context) {
            Ok(Cel::Bool(true)) => ExpressionOutcome::Holds,
            Ok(Cel::Bool(false)) => ExpressionOutcome::DoesNot,
            Ok(_) => ExpressionOutcome::Unclear("it is neither true nor false".to_owned()),
            Err(error) => ExpressionOutcome::Unclear(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate_expression(expression: &str) -> ExpressionOutcome {
        let state = json!({
            "cursor": 9,
            "in_flight": { "a": { "tool": "tools.now" } },
            "threads": { "t": { "title": "the invoice" } },
        });
        Expression::parse(expression).unwrap().evaluate_on(&state)
    }

    #[test]
    fn fields_of_the_state_are_its_variables() {
        for holds in [
            "cursor == 9",
            "size(in_flight) == 1 && in_flight.a.tool == 'tools.now'",
            "threads.exists(id, threads[id].title.contains('invoice'))",
        ] {
            assert_eq!(evaluate_expression(holds), ExpressionOutcome::Holds, "{holds}");
        }
        assert_eq!(evaluate_expression("cursor > 9"), ExpressionOutcome::DoesNot);
        for unclear in ["turns.a.due == 1", "in_flight.b.tool == 'x'", "cursor + 1", "cursr == 9"] {
            assert!(matches!(evaluate_expression(unclear), ExpressionOutcome::Unclear(_)), "{unclear}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_what_was_expected() {
        assert!(matches!(Expression::parse("cursor =="), Err(ExpressionError::Syntax(_))));
        assert_eq!(Expression::parse(&"x".repeat(LONGEST + 1)).err(), Some(ExpressionError::Long));
        assert_eq!(Expression::parse(&"(".repeat(DEEPEST + 1)).err(), Some(ExpressionError::Deep));
    }
}
