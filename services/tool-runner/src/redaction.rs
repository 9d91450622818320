//! Keeps secrets of a server's configuration out of what the server says and the status shows.

use crate::config::McpServerConfig;

/// Stands in the place of a secret.
const REDACTED: &str = "<redacted>";
/// Shorter values are no secrets, and would be found everywhere.
const SHORTEST: usize = 6;

/// The secrets of one server's configuration: values of its environment and of its headers.
#[derive(Clone, Default)]
pub struct Redaction {
    /// The longest first, which contain others.
    secrets: Vec<String>,
}

impl Redaction {
    pub fn of(server: &McpServerConfig) -> Self {
        let values = server.env.values().chain(server.headers.values()).map(|value| value.expose());
        // Of `Bearer abc`, the second word is the secret. A text of several lines is told line by line.
        let parts = values.flat_map(|value| value.split([' ', '\n', '\r']).chain([value]));
        let mut secrets: Vec<String> =
            parts.filter(|part| part.len() >= SHORTEST && *part != "Bearer").map(str::to_owned).collect();
        secrets.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        secrets.dedup();
        Self { secrets }
    }

    /// The text without secrets.
    pub fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| match text.contains(secret) {
            true => text.replace(secret, REDACTED),
            false => text,
        })
    }

    /// The end of a text without secrets. If the text is cut, the end may begin with a part of a secret, which is
    /// redacted, too.
    pub fn redact_end(&self, end: &str, is_cut: bool) -> String {
        let is_partial = |secret: &String| {
            let mut parts = secret.char_indices().skip(1).filter_map(|(at, _)| secret.get(at..));
            parts.find(|part| end.starts_with(part)).map(str::len)
        };
        let partial = self.secrets.iter().filter(|_| is_cut).filter_map(is_partial).max();
        match partial {
            Some(bytes) => format!("{REDACTED}{}", self.redact(end.get(bytes..).unwrap_or_default())),
            None => self.redact(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_redacted_also_where_their_beginning_is_cut_off() {
        let server: McpServerConfig = serde_json::from_value(json!({
            "name": "s",
            "env": {"TOKEN": "sesame-1234", "MODE": "on"},
            "headers": {"Authorization": "Bearer open-5678"},
        }))
        .unwrap();
        let redaction = Redaction::of(&server);
        for (text, is_cut, expected) in [
            ("token sesame-1234 is on", false, "token <redacted> is on"),
            ("Bearer open-5678", false, "<redacted>"),
            ("open-5678!", false, "<redacted>!"),
            ("me-1234 is wrong", true, "<redacted> is wrong"),
            ("me-1234 is wrong", false, "me-1234 is wrong"),
            ("4", true, "<redacted>"),
            ("nothing", true, "nothing"),
        ] {
            assert_eq!(redaction.redact_end(text, is_cut), expected, "{text}");
        }
    }
}
