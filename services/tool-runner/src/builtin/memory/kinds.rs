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
pub fn all_names() -> Vec<&'static str> {
    let named = KINDS.iter().flat_map(|(kind, others)| std::iter::once(*kind).chain(others.iter().copied()));
    named.chain([ANY]).collect()
}

/// The kind of this name, or none for any.
pub fn by_name(name: &str) -> Result<Vec<String>, ToolError> {
    if name == ANY {
        return Ok(Vec::new());
    }
    let kind = KINDS.iter().find(|(kind, others)| *kind == name || others.contains(&name));
    let kind = kind.map(|(kind, _)| vec![(*kind).to_owned()]);
    kind.ok_or_else(|| ToolError::invalid_arguments(format!("/type: expected one of {}", all_names().join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_goes_by_several_names() {
        assert_eq!(by_name("people").unwrap(), ["person"]);
        assert_eq!(by_name("journal").unwrap(), ["journal"]);
        assert!(by_name(ANY).unwrap().is_empty());
        assert!(by_name("rumour").unwrap_err().message.contains("people"));
        assert!(all_names().iter().all(|name| by_name(name).is_ok()));
    }
}
