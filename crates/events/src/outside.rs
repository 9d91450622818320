//! Content from outside: words that nobody who uses Kairo wrote, such as a mail, a page or what an MCP server says.
//!
//! The component that brings content in marks its source, `<kind>:<where>`, and the mark follows everything made of it.
//! In a turn that has seen such content, actions outside need a human's consent: the content may have told the agent to
//! take them.

use std::collections::BTreeSet;

/// Marks kept together; more say nothing new about whether a human must be asked.
pub const MOST: usize = 8;
/// Longest mark, in bytes.
const BYTES: usize = 200;

/// The kind of source that brought content in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideSource {
    /// A mail, by its sender.
    Mail,
    /// A page, by its URL.
    Web,
    /// An MCP server, by the name that the operator gave it.
    Mcp,
    /// A tool worker, by the name that the operator gave it.
    Worker,
    /// Another system that publishes events, by its name.
    System,
    /// The user's client, for what it said of where the user is.
    Environment,
    /// A document with a conversation that was had elsewhere, by the agent that it names.
    Import,
}

/// The mark of content that comes from there.
pub fn source_mark(kind: OutsideSource, whence: &str) -> String {
    let kind = match kind {
        OutsideSource::Mail => "mail",
        OutsideSource::Web => "web",
        OutsideSource::Mcp => "mcp",
        OutsideSource::Worker => "worker",
        OutsideSource::System => "system",
        OutsideSource::Environment => "environment",
        OutsideSource::Import => "import",
    };
    let line = whence.split(char::is_control).collect::<Vec<_>>().join(" ");
    let mark = format!("{kind}:{line}");
    mark.get(..mark.floor_char_boundary(BYTES)).unwrap_or_default().to_owned()
}

/// At most [`MOST`] of them, each once, none longer than a mark is.
pub fn limit_marks<'m>(marks: impl IntoIterator<Item = &'m str>) -> Vec<String> {
    let mut kept = BTreeSet::new();
    for mark in marks {
        if kept.len() < MOST {
            kept.insert(mark.get(..mark.floor_char_boundary(BYTES)).unwrap_or_default());
        }
    }
    kept.into_iter().filter(|mark| !mark.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_short_lines() {
        assert_eq!(source_mark(OutsideSource::Mail, "bob@example.org"), "mail:bob@example.org");
        assert_eq!(source_mark(OutsideSource::Web, "https://a/\nmcp:mine"), "web:https://a/ mcp:mine");
        assert!(source_mark(OutsideSource::Mcp, &"ä".repeat(500)).len() <= BYTES);
    }

    #[test]
    fn so_many_are_kept_and_each_once() {
        let many: Vec<String> = (0..50).map(|at| format!("web:{at}")).collect();
        assert_eq!(limit_marks(many.iter().map(String::as_str)).len(), MOST);
        assert_eq!(limit_marks(["b", "a", "b", ""]), ["a", "b"]);
    }
}
