//! A condition's text in words, texts in quotes, and signs.

#[derive(Clone, Debug, PartialEq)]
pub enum ConditionToken {
    Word(String),
    Text(String),
    Sign(&'static str),
}

/// The longer ones first.
const SIGNS: [&str; 16] = ["&&", "||", "==", "!=", "<>", "<=", ">=", "=", "<", ">", "!", "(", ")", "[", "]", ","];

/// Splits a condition into tokens; `None` for a quote left open or a sign that the syntax does not have.
pub fn tokenize(text: &str) -> Option<Vec<ConditionToken>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, behind) = if let Some(end) = closing_quote(first) {
            read_quoted(rest.get(first.len_utf8()..)?, end)?
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (ConditionToken::Sign(sign), rest.get(sign.len()..)?)
        } else {
            read_word(rest)?
        };
        tokens.push(token);
        rest = behind.trim_start();
    }
    Some(tokens)
}

/// The quote that ends what this one begins.
fn closing_quote(quote: char) -> Option<char> {
    match quote {
        '\'' | '"' => Some(quote),
        '‘' => Some('’'),
        '“' => Some('”'),
        _ => None,
    }
}

/// A backslash keeps a quote from ending the text; before anything else it is itself, as regular expressions want it.
fn read_quoted(text: &str, end: char) -> Option<(ConditionToken, &str)> {
    let mut found = String::new();
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' if signs.peek().is_some_and(|(_, next)| *next == end) => {
                found.push(end);
                signs.next();
            }
            sign if sign == end => return Some((ConditionToken::Text(found), text.get(at + sign.len_utf8()..)?)),
            sign => found.push(sign),
        }
    }
    None
}

/// A word goes on over the brackets of a place in a list, as in `to[0].name`.
fn read_word(text: &str) -> Option<(ConditionToken, &str)> {
    let mut end = 0;
    while let Some(sign) = text.get(end..).and_then(|rest| rest.chars().next()) {
        let place = text.get(end..).map_or(0, list_index_length);
        match sign {
            '[' if place > 0 && end > 0 => end += place,
            sign if sign.is_alphanumeric() || "_.-@$+:/%".contains(sign) => end += sign.len_utf8(),
            // Within a word, as in "doesn't".
            '\'' if end > 0 && text.get(end + 1..).is_some_and(|rest| rest.starts_with('t')) => end += 1,
            _ => break,
        }
    }
    let (word, rest) = text.split_at_checked(end)?;
    (!word.is_empty()).then(|| (ConditionToken::Word(word.to_owned()), rest))
}

/// Returns the length of a `[12]` at the beginning, 0 if there is none.
fn list_index_length(text: &str) -> usize {
    let Some((number, _)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else { return 0 };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { number.len() + 2 } else { 0 }
}
