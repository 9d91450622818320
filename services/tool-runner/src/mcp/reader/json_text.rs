//! JSON as servers write it: bytes that are no UTF-8, halves of surrogates, `NaN`, text before a message or between two.

use serde_json::{Deserializer, Value};

use super::wording::shorten_text;

/// Longest text that is kept of what is no JSON, in characters.
const MAX_REST_CHARS: usize = 2_000;

/// The JSON values and other text in a piece of a server's output.
#[derive(Debug, Default, PartialEq)]
pub struct JsonPieces {
    pub values: Vec<Value>,
    /// Text that is not JSON, shortened; empty if there is none.
    pub rest: String,
    /// The `id` of an answer in `rest` that was cut off or nests too deep.
    pub broken: Option<Value>,
}

/// Reads all JSON of a piece.
pub fn find_json(bytes: &[u8]) -> JsonPieces {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\0');
    if text.is_empty() {
        return JsonPieces::default();
    }
    let whole = serde_json::from_str(text).ok();
    if let Some(value) = whole.or_else(|| serde_json::from_str(&repair_json(text)).ok()) {
        return JsonPieces { values: vec![value], ..JsonPieces::default() };
    }
    find_messages(text)
}

/// Messages with other text around them.
fn find_messages(text: &str) -> JsonPieces {
    let begin = text.find("{\"jsonrpc\"").or_else(|| text.find("{ \"jsonrpc\""));
    let (before, rest) = begin.and_then(|begin| text.split_at_checked(begin)).unwrap_or(("", text));
    let repaired = repair_json(rest);
    let mut stream = Deserializer::from_str(&repaired).into_iter::<Value>();
    let values: Vec<Value> = stream.by_ref().map_while(Result::ok).filter(Value::is_object).collect();
    let after = match values.is_empty() {
        true => rest,
        false => repaired.get(stream.byte_offset()..).unwrap_or_default(),
    };
    let is_answer = after.contains("\"result\"") || after.contains("\"error\"");
    let broken = find_id(after).filter(|_| is_answer);
    let rest = format!("{}{}", shorten_text(before, MAX_REST_CHARS), shorten_text(after, MAX_REST_CHARS));
    JsonPieces { values, rest: rest.trim().to_owned(), broken }
}

/// The `id` of a message that is no JSON: where it was cut off, or where it is deeper than is read.
fn find_id(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = end_of_string(bytes, at + 1);
                let is_key = depth == 1 && text.get(at..end) == Some("\"id\"");
                if let Some(value) =
                    text.get(end..).filter(|_| is_key).and_then(|rest| rest.trim_start().strip_prefix(':'))
                {
                    return Deserializer::from_str(value).into_iter::<Value>().next()?.ok();
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Just behind the quote that closes a string which begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'\\' => 2,
            b'"' => return at + 1,
            _ => 1,
        };
    }
    bytes.len()
}

/// Replaces what JSON does not allow, wherever it is clear what was meant.
fn repair_json(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(next) = rest.chars().next() {
        let (piece, length) = match in_string {
            true => repair_in_string(rest, next),
            false => repair_structure(rest, next),
        };
        in_string ^= next == '"';
        match piece {
            Some(piece) => written.push_str(&piece),
            None => written.push_str(rest.get(..length).unwrap_or_default()),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    written
}

/// Returns the replacement for the beginning of `rest`, none to keep it, and the length of that beginning in bytes.
fn repair_in_string(rest: &str, next: char) -> (Option<String>, usize) {
    match next {
        '\\' => repair_escape(rest),
        control if control < ' ' => (Some(format!("\\u{:04x}", u32::from(control))), 1),
        other => (None, other.len_utf8()),
    }
}

fn repair_escape(rest: &str) -> (Option<String>, usize) {
    let backslash = || (Some("\\\\".to_owned()), 1);
    match rest.as_bytes().get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => (None, 2),
        Some(b'u') => match utf16_unit_at(rest, 0) {
            Some(0xd800..=0xdbff) if matches!(utf16_unit_at(rest, 6), Some(0xdc00..=0xdfff)) => (None, 12),
            Some(0xd800..=0xdfff) => (Some("\\ufffd".to_owned()), 6),
            Some(_) => (None, 6),
            None => backslash(),
        },
        _ => backslash(),
    }
}

/// The unit of UTF-16 that is escaped at `at`.
fn utf16_unit_at(rest: &str, at: usize) -> Option<u16> {
    let digits = rest.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

fn repair_structure(rest: &str, next: char) -> (Option<String>, usize) {
    let null = |length| (Some("null".to_owned()), length);
    for word in ["NaN", "-NaN", "Infinity", "-Infinity", "undefined"] {
        if rest.starts_with(word) {
            return null(word.len());
        }
    }
    if !(next.is_ascii_digit() || next == '-') {
        return (None, next.len_utf8());
    }
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    let length = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
    let number = rest.get(..length).and_then(|number| number.parse::<f64>().ok());
    match number.is_some_and(f64::is_infinite) {
        true => null(length),
        false => (None, length),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(text: impl AsRef<[u8]>) -> Vec<Value> {
        find_json(text.as_ref()).values
    }

    #[test]
    fn what_json_does_not_allow_is_replaced() {
        for (written, read) in [
            (&b"\xef\xbb\xbf{\"a\": 1}\r\n"[..], json!({"a": 1})),
            (b"{\"a\": \"caf\xe9 \xff\xfe\"}", json!({"a": "caf\u{fffd} \u{fffd}\u{fffd}"})),
            (br#"{"a": "half \ud83d emoji"}"#, json!({"a": "half \u{fffd} emoji"})),
            (br#"{"a": "\ude00\ud83d\ude00"}"#, json!({"a": "\u{fffd}\u{1f600}"})),
            (br#"{"a": "\ud83d\u0041"}"#, json!({"a": "\u{fffd}A"})),
            (br#"{"a": "\ud83"}"#, json!({"a": "\\ud83"})),
            (br#"{"a": "\u+041"}"#, json!({"a": "\\u+041"})),
            (b"{\"a\": \"tab\t\x1b[0m\"}", json!({"a": "tab\t\u{1b}[0m"})),
            (br#"{"a": "C:\dir \' \\ \" end"}"#, json!({"a": "C:\\dir \\' \\ \" end"})),
            (
                br#"{"a": [NaN, -Infinity, Infinity, 1e999, -1.5, "NaN"]}"#,
                json!({"a": [null, null, null, null, -1.5, "NaN"]}),
            ),
        ] {
            assert_eq!(values(written), [read], "{}", String::from_utf8_lossy(written));
        }
    }

    #[test]
    fn messages_are_found_among_other_text() {
        let one = r#"{"jsonrpc":"2.0","id":1}"#;
        let found = find_json(format!("INFO {one}{one} done").as_bytes());
        assert_eq!(found.values.len(), 2);
        assert_eq!(found.rest, "INFO done");
        let stray = JsonPieces { rest: "Server {running}".to_owned(), ..JsonPieces::default() };
        assert_eq!(find_json(b"Server {running}"), stray);
        let cut = find_json(format!(r#"{one}{{"jsonrpc":"2.0","id":3,"result":{{"content":"#).as_bytes());
        assert_eq!((cut.values.len(), cut.broken), (1, Some(json!(3))));
        let late = format!(r#"{{"result":{}{},"id":4}}"#, "[".repeat(2000), "]".repeat(2000));
        assert_eq!(find_json(late.as_bytes()).broken, Some(json!(4)));
        assert_eq!(find_json(b" \r\n"), JsonPieces::default());
        assert_eq!(find_json(&[0xff; 10_000]).rest.chars().count(), MAX_REST_CHARS + 1);
    }

    #[test]
    fn the_id_of_what_cannot_be_read_is_found() {
        let deep = "[".repeat(500);
        for (text, id) in [
            (format!(r#"{{"result":{{"id":9,"a":{deep}"#), None),
            (format!(r#"{{"id":7,"result":{deep}"#), Some(json!(7))),
            (format!(r#"{{"result":{deep}{}, "id" : "7"}}"#, "]".repeat(500)), Some(json!("7"))),
            (r#"{"x":"\"id\":3","id":null"#.to_owned(), Some(json!(null))),
            ("no message".to_owned(), None),
        ] {
            assert_eq!(find_id(&text), id, "{text}");
        }
    }
}
