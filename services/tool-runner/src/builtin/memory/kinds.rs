//! The kinds of memories, by the names that a call may use.

use crate::tool::ToolError;

/// Stands for all of them.
pub const ANY: &str = "any";

/// Each kind, and its other names.
const KINDS: [(&str, &[&str]); 9] = [
    ("journal", &["journals"]),
    ("person", &["people", "persons"]),
    ("project", &["projects"]),
    ("preference", &["preferences"]),
    ("decision", &["decisions"]),
    ("insight", &["insights"]),
    ("fact", &["facts"]),
    ("state", &["states"]),
    ("secret", &["secrets", "passwords"]),
];

/// Every name that may be used.
pub fn names() -> Vec<&'static str> {
    let named = KINDS.iter().flat_map(|(kind, others)| std::iter::once(*kind).chain(others.iter().copied()));
    named.chain([ANY]).collect()
}

/// The kind of this name, or none for any.
pub fn named(name: &str) -> Result<Vec<String>, ToolError> {
    if name == ANY {
        return Ok(Vec::new());
    }
    let kind = KINDS.iter().find(|(kind, others)| *kind == name || others.contains(&name));
    let kind = kind.map(|(kind, _)| vec![(*kind).to_owned()]);
    kind.ok_or_else(|| ToolError::invalid_arguments(format!("/type: expected one of {}", names().join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_goes_by_several_names() {
        assert_eq!(named("people").unwrap(), ["person"]);
        assert_eq!(named("journal").unwrap(), ["journal"]);
        assert!(named(ANY).unwrap().is_empty());
        assert!(named("rumour").unwrap_err().message.contains("people"));
        assert!(names().iter().all(|name| named(name).is_ok()));
    }
}
