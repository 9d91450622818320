//! Conditions as in case 6 of seed 000: `field operator value`, with AND, OR, NOT and parentheses.

mod tokens;

use self::tokens::{ConditionToken, tokenize};
use super::DEEPEST;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    /// A field alone, which is true or false.
    Flag(FieldPath),
    Exists(FieldPath),
    Compare(FieldPath, Operator, Operand),
}

/// Names from the outside in; a number is also a place in a list.
pub type FieldPath = Vec<String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Contains,
    Equals,
    Differs,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    StartsWith,
    EndsWith,
    Matches,
    In,
}

/// The value a field is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Text(String),
    /// Without quotes: a text, or another field.
    Word(String),
    Number(f64),
    Truth(bool),
    Null,
    List(Vec<Operand>),
}

/// Reads a condition; none if it is not of this syntax.
pub fn parse(text: &str) -> Option<Expression> {
    let mut reader = ConditionParser { tokens: tokenize(text)?, at: 0, depth: 0 };
    let expression = reader.parse_any()?;
    reader.peek().is_none().then_some(expression)
}

struct ConditionParser {
    tokens: Vec<ConditionToken>,
    at: usize,
    depth: usize,
}

impl ConditionParser {
    fn parse_any(&mut self) -> Option<Expression> {
        let mut parts = vec![self.parse_all()?];
        while self.take_word("or") || self.take_sign("||") {
            parts.push(self.parse_all()?);
        }
        Some(single_or(parts, Expression::Any))
    }

    fn parse_all(&mut self) -> Option<Expression> {
        let mut parts = vec![self.parse_not()?];
        while self.take_word("and") || self.take_sign("&&") {
            parts.push(self.parse_not()?);
        }
        Some(single_or(parts, Expression::All))
    }

    fn parse_not(&mut self) -> Option<Expression> {
        let mut negated = false;
        while self.take_word("not") || self.take_sign("!") {
            negated = !negated;
        }
        let expression = match self.take_sign("(") {
            true => self.parse_nested()?,
            false => self.parse_comparison()?,
        };
        Some(if negated { Expression::Not(Box::new(expression)) } else { expression })
    }

    fn parse_nested(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let inner = self.parse_any()?;
        self.depth -= 1;
        self.take_sign(")").then_some(inner)
    }

    fn parse_comparison(&mut self) -> Option<Expression> {
        let ConditionToken::Word(name) = self.next_token()? else { return None };
        let path = parse_field_path(&name)?;
        if self.take_words(&["exists"]) || self.take_words(&["does", "exist"]) {
            return Some(Expression::Exists(path));
        }
        if self.take_words(&["does", "not", "exist"]) || self.take_words(&["doesn't", "exist"]) {
            return Some(Expression::Not(Box::new(Expression::Exists(path))));
        }
        let Some((operator, negated)) = self.parse_operator() else { return Some(Expression::Flag(path)) };
        let operand = match operator {
            Operator::In => self.parse_list()?,
            _ => self.parse_operand()?,
        };
        let comparison = Expression::Compare(path, operator, operand);
        Some(if negated { Expression::Not(Box::new(comparison)) } else { comparison })
    }

    /// And whether it is the opposite.
    fn parse_operator(&mut self) -> Option<(Operator, bool)> {
        for (sign, operator) in [
            ("==", Operator::Equals),
            ("=", Operator::Equals),
            ("!=", Operator::Differs),
            ("<>", Operator::Differs),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ] {
            if self.take_sign(sign) {
                return Some((operator, false));
            }
        }
        if self.take_words(&["is", "not", "in"]) {
            return Some((Operator::In, true));
        }
        if self.take_words(&["is", "in"]) {
            return Some((Operator::In, false));
        }
        if self.take_words(&["is", "not"]) || self.take_words(&["isn't"]) {
            return Some((Operator::Differs, false));
        }
        let negated = self.take_words(&["does", "not"]) || self.take_words(&["doesn't"]) || self.take_words(&["not"]);
        for (words, operator) in [
            (&["contains"][..], Operator::Contains),
            (&["contain"], Operator::Contains),
            (&["includes"], Operator::Contains),
            (&["include"], Operator::Contains),
            (&["is"], Operator::Equals),
            (&["equals"], Operator::Equals),
            (&["equal"], Operator::Equals),
            (&["starts", "with"], Operator::StartsWith),
            (&["start", "with"], Operator::StartsWith),
            (&["starts_with"], Operator::StartsWith),
            (&["startswith"], Operator::StartsWith),
            (&["ends", "with"], Operator::EndsWith),
            (&["end", "with"], Operator::EndsWith),
            (&["ends_with"], Operator::EndsWith),
            (&["endswith"], Operator::EndsWith),
            (&["matches"], Operator::Matches),
            (&["match"], Operator::Matches),
            (&["in"], Operator::In),
        ] {
            if self.take_words(words) {
                return Some((operator, negated));
            }
        }
        None
    }

    fn parse_operand(&mut self) -> Option<Operand> {
        Some(match self.next_token()? {
            ConditionToken::Text(text) => Operand::Text(text),
            ConditionToken::Word(word) => match word.to_lowercase().as_str() {
                "true" => Operand::Truth(true),
                "false" => Operand::Truth(false),
                "null" | "none" => Operand::Null,
                // A condition in plain words is not to be taken for one.
                "and" | "or" | "not" | "a" | "an" | "the" => return None,
                lower => match lower.parse::<f64>() {
                    Ok(number) if number.is_finite() => Operand::Number(number),
                    _ => Operand::Word(word),
                },
            },
            ConditionToken::Sign(_) => return None,
        })
    }

    fn parse_list(&mut self) -> Option<Operand> {
        let end = match (self.take_sign("["), self.peek()) {
            (true, _) => "]",
            (false, Some(ConditionToken::Sign("("))) => {
                self.at += 1;
                ")"
            }
            (false, _) => return None,
        };
        let mut items = Vec::new();
        while !self.take_sign(end) {
            items.push(self.parse_operand()?);
            if !self.take_sign(",") && self.peek() != Some(&ConditionToken::Sign(end)) {
                return None;
            }
        }
        Some(Operand::List(items))
    }

    fn peek(&self) -> Option<&ConditionToken> {
        self.tokens.get(self.at)
    }

    fn next_token(&mut self) -> Option<ConditionToken> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(ConditionToken::Sign(found)) if *found == sign);
        self.at += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.take_words(&[word])
    }

    /// Takes these words in a row, whatever their case.
    fn take_words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(ahead, word)| {
            matches!(self.tokens.get(self.at + ahead), Some(ConditionToken::Word(found)) if found.eq_ignore_ascii_case(word))
        });
        self.at += if found { words.len() } else { 0 };
        found
    }
}

fn single_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.pop().unwrap_or(Expression::Any(Vec::new())),
        _ => many(parts),
    }
}

/// `attachments[0].name` and `attachments.0.name` alike; none for what is no name.
pub fn parse_field_path(text: &str) -> Option<FieldPath> {
    let reserved = ["and", "or", "not", "in", "is", "contains", "true", "false", "null"];
    if reserved.contains(&text.to_lowercase().as_str()) {
        return None;
    }
    let names: FieldPath = text.replace('[', ".").replace(']', "").split('.').map(str::to_owned).collect();
    let is_name =
        |name: &String| !name.is_empty() && name.chars().all(|sign| sign.is_alphanumeric() || "_-$".contains(sign));
    let begins = names.first()?.starts_with(|sign: char| sign.is_alphabetic() || sign == '_' || sign == '$');
    (begins && names.iter().all(is_name)).then_some(names)
}
