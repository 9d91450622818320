//! Secrets that are known by what is said before them: "the password is …", `API_KEY=…`, "密码是…".

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::SecretSpan;

/// A way to announce a secret.
struct SecretLabel {
    kind: &'static str,
    /// The group `colon` stands where it is announced by a sign, `is` where by a word; what follows is the value.
    expression: Regex,
    accepts: fn(LabelValue<'_>) -> bool,
}

/// The text after a label.
#[derive(Clone, Copy)]
struct LabelValue<'t> {
    text: &'t str,
    quoted: bool,
    /// By a sign such as a colon, not merely by a word such as "is".
    by_sign: bool,
    /// True if the clause ends after the value.
    ends: bool,
}

/// Longest value, in bytes; what is longer is prose or data.
const LONGEST: usize = 512;
/// Maximum distance searched after a label, in bytes.
const WINDOW: usize = LONGEST + 64;

/// Text allowed between the label and the sign: the thing that the secret belongs to, or the quote of a key in JSON.
const BETWEEN: &str =
    r#"(?:["'`]|\s+(?:for|of|to|on|at|in|für|vom|von|der|des|zum|zur|im|am|de|del|du|pour)\s[^\n.:=：;"]{1,48}?)?"#;
const ANNOUNCED: &str = r"(?:\s*(?P<colon>:=|=>|[:=：])\s*|\s+(?P<is>is|was|are|ist|war|lautet|est|es|é)\s+:?\s*|\s*(?P<word>是|為|为|は)\s*)";

const PASSWORD: &str = r"(?:\b|_)(?:pass(?:word|wort|phrase|wd)|kennwort|pwd|contraseña|mot de passe|senha|пароль)s?|密码|密碼|口令|パスワード";
const SECRET: &str = r"(?:\b|_)(?:secret|geheimnis)";
const PIN: &str = r"(?:\b|_)(?:pin(?:[ -]?(?:code|number|nummer))?|passcode|cvv2?|cvc2?|otp|tan|(?:verification|security|one-time|access|entry|door|alarm|unlock)[ -]code)|验证码|暗証番号";
const KEY: &str = concat!(
    r"(?:\b|_)(?:(?:api|access|secret|private|auth|encryption|client|license|account|signing|webhook)[ _-]?(?:access[ _-]?)?(?:key|token|secret)|token|key|secret|",
    r"schlüssel|api-?schlüssel)(?:[ _-]?id)?|密钥|令牌"
);
const WORDS: &str = r"(?:\b|_)(?:seed|recovery|mnemonic|backup)[ -](?:phrase|words|seed)";

static LABELS: LazyLock<Vec<SecretLabel>> = LazyLock::new(|| {
    let label = |kind, words: &str, accepts| {
        let expression = Regex::new(&format!("(?i)(?:{words}){BETWEEN}{ANNOUNCED}")).ok()?;
        Some(SecretLabel { kind, expression, accepts })
    };
    [
        label("recovery phrase", WORDS, |_| false),
        label("password", PASSWORD, is_password),
        label("secret", SECRET, |value| is_password(value) && !is_plain_word(value.text)),
        label("pin", PIN, is_pin),
        label("api key", KEY, is_key),
    ]
    .into_iter()
    .flatten()
    .collect()
});

pub(super) fn find(text: &str) -> Vec<SecretSpan> {
    let mut found = Vec::new();
    for label in LABELS.iter() {
        let mut from = 0;
        while let Some(captures) = label.expression.captures_at(text, from) {
            let Some(all) = captures.get(0) else { break };
            let behind = search_window(text.get(all.end()..).unwrap_or_default());
            let length = match label.kind {
                "recovery phrase" => recovery_phrase_length(behind),
                _ => parse_value(behind, &captures).filter(|(_, value)| (label.accepts)(*value)).map(|(at, value)| {
                    found.push(SecretSpan { at: all.end() + at..all.end() + at + value.text.len(), kind: label.kind });
                    at + value.text.len()
                }),
            };
            if let ("recovery phrase", Some(length)) = (label.kind, length) {
                found.push(SecretSpan { at: all.end()..all.end() + length, kind: label.kind });
            }
            from = all.end() + length.unwrap_or(0);
        }
    }
    found.extend(spoken_pins(text));
    found
}

/// As much of a text as may matter.
fn search_window(text: &str) -> &str {
    text.get(..text.floor_char_boundary(WINDOW)).unwrap_or_default()
}

/// "PIN 4711", with nothing in between.
fn spoken_pins(text: &str) -> impl Iterator<Item = SecretSpan> + '_ {
    static SPOKEN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(?:PIN|pin code|PIN code|passcode|CVV|CVC)\s+([0-9]{3,8})\b").ok());
    let captures = SPOKEN.iter().flat_map(|spoken| spoken.captures_iter(text));
    captures.filter_map(|captures| Some(SecretSpan { at: captures.get(1)?.range(), kind: "pin" }))
}

/// The value that a text begins with, and where it begins.
fn parse_value<'t>(text: &'t str, captures: &Captures<'_>) -> Option<(usize, LabelValue<'t>)> {
    let by_sign = captures.name("colon").is_some();
    let quote = text.chars().next()?;
    let closing = match quote {
        '"' | '\'' | '`' => Some(quote),
        '“' => Some('”'),
        '„' => Some('“'),
        '«' => Some('»'),
        '「' => Some('」'),
        _ => None,
    };
    if let Some(closing) = closing {
        let inner = text.get(quote.len_utf8()..)?;
        // Not across lines: there the quote is no pair.
        let end = inner.char_indices().take_while(|(_, c)| *c != '\n').find(|(_, c)| *c == closing);
        if let Some((end, _)) = end {
            let text = inner.get(..end)?;
            return Some((quote.len_utf8(), LabelValue { text, quoted: true, by_sign, ends: true }));
        }
    }
    let end = text.find(is_border).unwrap_or(text.len());
    let run = text.get(..end)?;
    let kept = run.trim_end_matches(['.', ',', ';', '?', ')', '}', ']', '"', '\'', '`']);
    let rest = text.get(kept.len()..)?;
    let ends = !rest.trim_start_matches([' ', '\t']).starts_with(char::is_alphanumeric);
    Some((0, LabelValue { text: kept, quoted: false, by_sign, ends }))
}

/// Returns true for a character that ends a password in running text.
fn is_border(c: char) -> bool {
    c.is_whitespace() || matches!(c, '，' | '。' | '；' | '！' | '？' | '、' | '」' | '”' | '»' | '<' | '>')
}

/// The bytes of twelve to twenty-four words, as wallets are recovered with.
fn recovery_phrase_length(text: &str) -> Option<usize> {
    static PHRASE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"^["']?(?:[0-9]{1,2}[.)]\s*)?[a-z]{3,8}(?:[\s,]+(?:[0-9]{1,2}[.)]\s*)?[a-z]{3,8}){11,23}"#).ok()
    });
    PHRASE.as_ref()?.find(text).map(|found| found.end())
}

fn is_password(value: LabelValue<'_>) -> bool {
    let LabelValue { text, quoted, by_sign, ends } = value;
    if !is_value(text) {
        return false;
    }
    // One that is in a tongue written without spaces goes on with prose, not with a password.
    let written = text.chars().all(|c| c.is_ascii_graphic() || c.is_alphabetic() && (c as u32) < 0x0600 || quoted);
    if !written || text.chars().count() < 3 {
        return false;
    }
    match is_plain_word(text) {
        // "password: required", "the password is wrong": words that tell about it.
        true if describes_password(text) => false,
        true => quoted || ends,
        false => quoted || by_sign || !text.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-' | '’')),
    }
}

/// Returns true if the text may be an ordinary word.
fn is_plain_word(text: &str) -> bool {
    text.chars().all(char::is_alphabetic)
}

fn is_pin(value: LabelValue<'_>) -> bool {
    let digits = value.text.chars().filter(char::is_ascii_digit).count();
    (3..=8).contains(&digits) && value.text.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '#' | '*'))
}

/// Returns true if the value is as irregular as keys are.
fn is_key(value: LabelValue<'_>) -> bool {
    let text = value.text;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '.' | '=' | '-' | ':' | '~');
    if !is_value(text) || text.len() < 12 || !text.chars().all(allowed) {
        return false;
    }
    let digits = text.chars().any(|c| c.is_ascii_digit());
    let upper = text.chars().any(|c| c.is_ascii_uppercase());
    let lower = text.chars().any(|c| c.is_ascii_lowercase());
    let mixed = digits && (upper || lower) || upper && lower && text.len() >= 20 || digits && text.len() >= 20;
    mixed && !is_date(text) && entropy(text) >= 3.0
}

/// Dates and versions are irregular too.
fn is_date(text: &str) -> bool {
    text.chars().filter(char::is_ascii_alphabetic).count() <= 2 && text.contains(['-', ':', '.'])
}

/// Returns true if the text can be a value: neither a placeholder nor the label of another one.
fn is_value(text: &str) -> bool {
    let placeholder = ["[secret", "[REDACTED", "<", "${", "$", "{", "***", "env:", "file:", "...", "…", "xxx"];
    !text.is_empty()
        && text.len() <= LONGEST
        && !placeholder.iter().any(|start| text.starts_with(start))
        && !text.ends_with([':', '='])
        && !text.chars().all(|c| matches!(c, '*' | '•' | '.' | '-' | '_'))
}

/// Bits a character, of how often each stands in the text (Shannon).
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 128];
    for byte in text.bytes().filter(u8::is_ascii) {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let all = f64::from(counts.iter().sum::<u32>().max(1));
    counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / all).map(|p| -p * p.log2()).sum()
}

/// Words that tell about a password instead of being one.
fn describes_password(word: &str) -> bool {
    const WORDS: [&str; 78] = [
        "wrong",
        "incorrect",
        "invalid",
        "valid",
        "expired",
        "correct",
        "required",
        "missing",
        "empty",
        "blank",
        "secret",
        "unknown",
        "known",
        "weak",
        "strong",
        "safe",
        "secure",
        "changed",
        "reset",
        "lost",
        "forgotten",
        "needed",
        "set",
        "stored",
        "there",
        "here",
        "different",
        "same",
        "fine",
        "okay",
        "hashed",
        "encrypted",
        "hidden",
        "protected",
        "optional",
        "string",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "long",
        "short",
        "too",
        "not",
        "never",
        "always",
        "important",
        "what",
        "the",
        "this",
        "that",
        "mine",
        "yours",
        "for",
        "and",
        "gone",
        "leaked",
        "below",
        "above",
        "attached",
        "falsch",
        "richtig",
        "abgelaufen",
        "korrekt",
        "ungültig",
        "gültig",
        "bekannt",
        "unbekannt",
        "geheim",
        "sicher",
        "weg",
        "vergessen",
        "nicht",
        "geändert",
        "notwendig",
        "exposed",
    ];
    let word = word.to_lowercase();
    WORDS.contains(&word.as_str())
}
