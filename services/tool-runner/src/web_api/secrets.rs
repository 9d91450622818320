//! Headers that go with every request of a tool, and what must not come back of them.

use std::collections::BTreeMap;

use kairo_core::config::Secret;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Stands where a server repeats what it was sent in confidence.
const WITHHELD: &str = "<redacted>";
/// Shorter words are no secrets, and would be found everywhere.
const SHORTEST: usize = 6;
/// Headers whose values anybody may read.
const OPEN: [HeaderName; 5] = [
    reqwest::header::ACCEPT,
    reqwest::header::ACCEPT_LANGUAGE,
    reqwest::header::CONTENT_TYPE,
    reqwest::header::USER_AGENT,
    reqwest::header::CACHE_CONTROL,
];

/// The configured headers of a tool.
#[derive(Clone)]
pub struct Headers {
    pub map: HeaderMap,
    secrets: Vec<String>,
}

impl Headers {
    /// # Errors
    /// Names the header that cannot be sent, without its value.
    pub fn new(configured: &BTreeMap<String, Secret>) -> Result<Self, String> {
        let mut map = HeaderMap::new();
        let mut secrets = Vec::new();
        for (name, value) in configured {
            let parsed = name.parse::<HeaderName>().map_err(|_| format!("headers: {name:?} is no name of a header"))?;
            let unfit = |_| format!("headers.{name}: expected characters that HTTP allows in a header");
            let mut sent: HeaderValue = value.expose().parse().map_err(unfit)?;
            sent.set_sensitive(true);
            if !OPEN.contains(&parsed) {
                // Of `Bearer abc`, the second word is the secret.
                let words = value.expose().split(' ').chain([value.expose()]);
                secrets.extend(words.filter(|word| word.len() >= SHORTEST && *word != "Bearer").map(str::to_owned));
            }
            map.insert(parsed, sent);
        }
        // The longest first, which contain others.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Ok(Self { map, secrets })
    }

    /// A text without what was sent in confidence.
    pub fn redact_text(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| match text.contains(secret) {
            true => text.replace(secret, WITHHELD),
            false => text,
        })
    }

    /// Returns a value without what was sent in confidence, in every text and key.
    pub fn redact_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact_text(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.redact_value(value)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(key, value)| (self.redact_text(&key), self.redact_value(value)));
                Value::Object(fields.collect())
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(name: &str, value: &str) -> Headers {
        Headers::new(&BTreeMap::from([(name.to_owned(), Secret::new(value.to_owned()))])).unwrap()
    }

    #[test]
    fn what_was_sent_in_confidence_does_not_come_back() {
        let bearer = headers("Authorization", "Bearer sesame-1234");
        let echo = json!({"a": ["Bearer sesame-1234"], "sesame-1234": {"b": "the sesame-1234 of Bearer"}, "n": 1});
        let withheld = json!({"a": ["<redacted>"], "<redacted>": {"b": "the <redacted> of Bearer"}, "n": 1});
        assert_eq!(bearer.redact_value(echo), withheld);
        let open = headers("Accept", "application/json");
        assert_eq!(open.redact_value(json!("application/json")), json!("application/json"));
        assert_eq!(headers("X-Version", "2").redact_value(json!("2 of 12")), json!("2 of 12"), "no secret is so short");
    }

    #[test]
    fn what_cannot_be_sent_is_named_without_its_value() {
        for (name, value) in [("a b", "c"), ("X-Key", "line\nsesame")] {
            let configured = BTreeMap::from([(name.to_owned(), Secret::new(value.to_owned()))]);
            let Err(mistake) = Headers::new(&configured) else { panic!("{name} {value}") };
            assert!(mistake.starts_with("headers") && !mistake.contains("sesame"), "{mistake}");
        }
    }
}
