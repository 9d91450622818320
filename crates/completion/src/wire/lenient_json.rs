//! JSON as servers and models write it. What is JSON is read as that; else as JSON with control characters within strings,
//! halves of characters, trailing commas, numbers beyond all bounds, single quotes and the literals of Python.

use serde_json::{Map, Number, Value};

use super::surrogate_halves::stand_in;

/// Deepest nesting, as serde_json has it.
const DEEPEST: usize = 128;

/// Reads a text that is one value, blanks around it aside.
pub fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| {
        let (value, end) = parse_lenient(text)?;
        text.get(end..).is_some_and(|rest| rest.trim().is_empty()).then_some(value)
    })
}

/// Reads the value that a text begins with, and how many bytes it takes.
pub fn parse_first(text: &str) -> Option<(Value, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Some((value, values.byte_offset())),
        _ => parse_lenient(text),
    }
}

/// A literal of a call in Python, such as `time_zone="UTC"` has on its right.
pub fn literal(text: &str) -> Option<(Value, usize)> {
    parse_lenient(text)
}

fn parse_lenient(text: &str) -> Option<(Value, usize)> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    Some((value, parser.at))
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn skip(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        self.skip_blanks();
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            '-' | '+' | '.' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut object = Map::new();
        loop {
            self.skip_blanks();
            match self.peek()? {
                '}' => {
                    self.next();
                    return Some(Value::Object(object));
                }
                quote @ ('"' | '\'') => {
                    let key = self.string(quote)?;
                    if !self.skip(':') {
                        return None;
                    }
                    object.insert(key, self.value(depth + 1)?);
                }
                _ => return None,
            }
            if !self.skip(',') && self.peek() != Some('}') {
                return None;
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek()? == ']' {
                self.next();
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if !self.skip(',') && self.peek() != Some(']') {
                return None;
            }
        }
    }

    fn string(&mut self, quote: char) -> Option<String> {
        self.next();
        let mut string = String::new();
        loop {
            match self.next()? {
                '\\' => self.escape(&mut string)?,
                end if end == quote => return Some(string),
                character => string.push(character),
            }
        }
    }

    /// Reads what follows a backslash. An unknown escape is kept, as in `"\d"`: it was meant to the letter.
    fn escape(&mut self, string: &mut String) -> Option<()> {
        match self.next()? {
            'n' => string.push('\n'),
            't' => string.push('\t'),
            'r' => string.push('\r'),
            'b' => string.push('\u{8}'),
            'f' => string.push('\u{c}'),
            same @ ('"' | '\'' | '\\' | '/') => string.push(same),
            'u' => match self.unit() {
                Some(unit) => self.push_code_unit(unit, string),
                None => string.push_str("\\u"),
            },
            other => string.extend(['\\', other]),
        }
        Some(())
    }

    /// The character of a code unit, or what stands for it where it is half of one and the other half does not follow.
    fn push_code_unit(&mut self, unit: u16, string: &mut String) {
        let before = self.at;
        if (0xD800..0xDC00).contains(&unit)
            && self.rest().starts_with("\\u")
            && let Some(second) = {
                self.at += 2;
                self.unit()
            }
            && let Some(Ok(whole)) = char::decode_utf16([unit, second]).next()
        {
            return string.push(whole);
        }
        self.at = before;
        string.push(char::from_u32(u32::from(unit)).unwrap_or_else(|| stand_in(unit)));
    }

    /// The four digits of an escape.
    fn unit(&mut self) -> Option<u16> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        let unit = u16::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    fn number(&mut self) -> Option<Value> {
        let is_part = |character: char| character.is_ascii_digit() || matches!(character, '+' | '-' | '.' | 'e' | 'E');
        let length = self.rest().find(|character| !is_part(character)).unwrap_or(self.rest().len());
        let digits = self.text.get(self.at..self.at + length)?;
        self.at += length;
        let exact = serde_json::from_str(digits).ok();
        exact.or_else(|| {
            digits.parse().ok().map(|number: f64| Number::from_f64(number).map_or(Value::Null, Value::Number))
        })
    }

    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let word = rest.split(|character: char| !character.is_ascii_alphabetic()).next()?;
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" | "NaN" | "Infinity" => Value::Null,
            _ => return None,
        };
        self.at += word.len();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::surrogate_halves::whole;

    #[test]
    fn what_is_nearly_json_is_read_and_what_is_not_is_not() {
        for (text, value) in [
            ("{\"a\":\"line one\nline two\ttab\"}", json!({ "a": "line one\nline two\ttab" })),
            ("{'a': True, 'b': [None, 1,],}", json!({ "a": true, "b": [null, 1] })),
            (r#"{"a": "it's \d", "b": 'say "x"'}"#, json!({ "a": "it's \\d", "b": "say \"x\"" })),
            (
                r#"{"a": "\ud83d\ude00\u00e9", "n": 1e999, "m": 18446744073709551616}"#,
                json!({ "a": "😀é", "n": null, "m": 18446744073709551616.0 }),
            ),
            (" [1] ", json!([1])),
        ] {
            assert_eq!(parse(text), Some(value), "{text}");
        }
        let half = parse(r#""\ud83d""#).unwrap();
        assert_eq!(whole(half.as_str().unwrap()), "\u{fffd}");
        for text in
            ["", "{", "{\"a\":Asia}", "{'a': 'it's'}", "{a: 1}", "[1] x", "{\"a\" 1}", "\"\\u12", &"[".repeat(100_000)]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse_first("{'a': 1} and more"), Some((json!({ "a": 1 }), 8)));
    }
}
