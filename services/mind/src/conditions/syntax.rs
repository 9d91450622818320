//! Conditions as in case 6 of seed 000: `field operator value`, with AND, OR, NOT and parentheses.

mod words;

use self::words::{Token, tokens};
use super::DEEPEST;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    /// A field alone, which is true or false.
    Flag(Path),
    Exists(Path),
    Compare(Path, Operator, Operand),
}

/// Names from the outside in; a number is also a place in a list.
pub type Path = Vec<String>;

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
pub fn read(text: &str) -> Option<Expression> {
    let mut reader = Reader { tokens: tokens(text)?, at: 0, depth: 0 };
    let expression = reader.any()?;
    reader.peek().is_none().then_some(expression)
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Reader {
    fn any(&mut self) -> Option<Expression> {
        let mut parts = vec![self.all()?];
        while self.word("or") || self.sign("||") {
            parts.push(self.all()?);
        }
        Some(one_or(parts, Expression::Any))
    }

    fn all(&mut self) -> Option<Expression> {
        let mut parts = vec![self.not()?];
        while self.word("and") || self.sign("&&") {
            parts.push(self.not()?);
        }
        Some(one_or(parts, Expression::All))
    }

    fn not(&mut self) -> Option<Expression> {
        let mut negated = false;
        while self.word("not") || self.sign("!") {
            negated = !negated;
        }
        let expression = match self.sign("(") {
            true => self.nested()?,
            false => self.comparison()?,
        };
        Some(if negated { Expression::Not(Box::new(expression)) } else { expression })
    }

    fn nested(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let inner = self.any()?;
        self.depth -= 1;
        self.sign(")").then_some(inner)
    }

    fn comparison(&mut self) -> Option<Expression> {
        let Token::Word(name) = self.next()? else { return None };
        let path = path(&name)?;
        if self.words(&["exists"]) || self.words(&["does", "exist"]) {
            return Some(Expression::Exists(path));
        }
        if self.words(&["does", "not", "exist"]) || self.words(&["doesn't", "exist"]) {
            return Some(Expression::Not(Box::new(Expression::Exists(path))));
        }
        let Some((operator, negated)) = self.operator() else { return Some(Expression::Flag(path)) };
        let operand = match operator {
            Operator::In => self.list()?,
            _ => self.operand()?,
        };
        let comparison = Expression::Compare(path, operator, operand);
        Some(if negated { Expression::Not(Box::new(comparison)) } else { comparison })
    }

    /// And whether it is the opposite.
    fn operator(&mut self) -> Option<(Operator, bool)> {
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
            if self.sign(sign) {
                return Some((operator, false));
            }
        }
        if self.words(&["is", "not", "in"]) {
            return Some((Operator::In, true));
        }
        if self.words(&["is", "in"]) {
            return Some((Operator::In, false));
        }
        if self.words(&["is", "not"]) || self.words(&["isn't"]) {
            return Some((Operator::Differs, false));
        }
        let negated = self.words(&["does", "not"]) || self.words(&["doesn't"]) || self.words(&["not"]);
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
            if self.words(words) {
                return Some((operator, negated));
            }
        }
        None
    }

    fn operand(&mut self) -> Option<Operand> {
        Some(match self.next()? {
            Token::Text(text) => Operand::Text(text),
            Token::Word(word) => match word.to_lowercase().as_str() {
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
            Token::Sign(_) => return None,
        })
    }

    fn list(&mut self) -> Option<Operand> {
        let end = match (self.sign("["), self.peek()) {
            (true, _) => "]",
            (false, Some(Token::Sign("("))) => {
                self.at += 1;
                ")"
            }
            (false, _) => return None,
        };
        let mut items = Vec::new();
        while !self.sign(end) {
            items.push(self.operand()?);
            if !self.sign(",") && self.peek() != Some(&Token::Sign(end)) {
                return None;
            }
        }
        Some(Operand::List(items))
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(is);
        is
    }

    fn word(&mut self, word: &str) -> bool {
        self.words(&[word])
    }

    /// Takes these words in a row, whatever their case.
    fn words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(ahead, word)| {
            matches!(self.tokens.get(self.at + ahead), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
        });
        self.at += if found { words.len() } else { 0 };
        found
    }
}

fn one_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.pop().unwrap_or(Expression::Any(Vec::new())),
        _ => many(parts),
    }
}

/// `attachments[0].name` and `attachments.0.name` alike; none for what is no name.
pub fn path(text: &str) -> Option<Path> {
    let reserved = ["and", "or", "not", "in", "is", "contains", "true", "false", "null"];
    if reserved.contains(&text.to_lowercase().as_str()) {
        return None;
    }
    let names: Path = text.replace('[', ".").replace(']', "").split('.').map(str::to_owned).collect();
    let is_name =
        |name: &String| !name.is_empty() && name.chars().all(|sign| sign.is_alphanumeric() || "_-$".contains(sign));
    let begins = names.first()?.starts_with(|sign: char| sign.is_alphabetic() || sign == '_' || sign == '$');
    (begins && names.iter().all(is_name)).then_some(names)
}
