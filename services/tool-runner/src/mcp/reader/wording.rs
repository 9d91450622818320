//! Putting into words what was read of a message that has another form than it should have.

use serde_json::Value;

/// Longest text of a value inside of another, in characters: what is longer is data.
const MAX_DATA_CHARS: usize = 500;
/// Longest text that stands for a value, in characters.
const MAX_VALUE_CHARS: usize = 4_000;

/// The first characters of a text, with a mark where any are missing.
pub fn shorten_text(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A value as a text: a string as it is, anything else as JSON whose long strings are shortened.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => shorten_text(&shorten_strings(other).to_string(), MAX_VALUE_CHARS),
    }
}

/// Returns the value with long strings shortened.
fn shorten_strings(value: &Value) -> Value {
    match value {
        Value::String(text) => shorten_text(text, MAX_DATA_CHARS).into(),
        Value::Array(values) => values.iter().map(shorten_strings).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shorten_strings(value))).collect(),
        other => other.clone(),
    }
}

/// Names the JSON type of a value, for a note.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The words of a page, without its markup and its scripts.
pub fn page_text(text: &str) -> String {
    let collapsed = |words: &str| words.split_whitespace().collect::<Vec<_>>().join(" ");
    if !text.contains("</") && !text.trim_start().starts_with("<!") {
        return collapsed(text);
    }
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        words.push_str(before);
        words.push(' ');
        let name = tag.get(..6).unwrap_or_default().to_ascii_lowercase();
        let end = match () {
            () if name.starts_with("script") => "</script",
            () if name.starts_with("style") => "</style",
            () => "",
        };
        let behind = tag.find(end).and_then(|end| tag.get(end..)).unwrap_or_default();
        rest = behind.split_once('>').map_or("", |(_, rest)| rest);
    }
    words.push_str(rest);
    collapsed(&words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_in_words() {
        assert_eq!(text_of(&json!("as it is")), "as it is");
        assert_eq!(text_of(&json!(null)), "");
        assert_eq!(text_of(&json!({"number": 7})), r#"{"number":7}"#);
        let long = text_of(&json!({"data": "A".repeat(100_000), "n": [7]}));
        assert!(long.chars().count() < 600 && long.ends_with(r#""n":[7]}"#), "{long}");
        assert_eq!(shorten_text("é".repeat(9).as_str(), 3), "ééé…");
    }

    #[test]
    fn pages_in_words() {
        let page =
            "<html><head><style>a { b }</style><title>502</title></head><body>bad\n<b>gateway</b> <script>x<y</script>";
        assert_eq!(page_text(page), "502 bad gateway");
        assert_eq!(page_text("plain"), "plain");
        assert_eq!(page_text("<b>cut</b> <i"), "cut");
        assert_eq!(page_text("{\"detail\": \"1 < 2\"}"), "{\"detail\": \"1 < 2\"}");
    }
}
