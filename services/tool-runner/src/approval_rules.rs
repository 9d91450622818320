//! Selects the tools that need a human's consent to each call.

use crate::tool::ToolSpec;

/// The operator's word on it, over that of the tools themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Needed besides for those that always need it.
    needed: Vec<String>,
    /// Not needed, whatever else is said.
    waived: Vec<String>,
}

impl ApprovalRules {
    /// Takes patterns: names of tools, or beginnings of such with a `*` behind them.
    pub fn new(needed: &[String], waived: &[String]) -> Self {
        Self { needed: needed.to_vec(), waived: waived.to_vec() }
    }

    /// The tool, needing consent or not.
    pub fn applied_to(&self, spec: ToolSpec) -> ToolSpec {
        let covers = |patterns: &[String]| patterns.iter().any(|pattern| covers(pattern, &spec.name));
        if covers(&self.waived) {
            return ToolSpec { needs_approval: false, needs_approval_with: Vec::new(), ..spec };
        }
        ToolSpec { needs_approval: spec.needs_approval || covers(&self.needed), ..spec }
    }
}

fn covers(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// Returns true if this is a valid pattern: one that covers nothing would leave a tool open that was meant to be
/// closed.
pub fn is_pattern(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    !text.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kairo_proto::v1::ToolArgument;
    use serde_json::json;

    use super::*;
    use crate::tool::Executor;

    fn needs(consent: &ApprovalRules, name: &str, always: bool) -> bool {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({"type": "object"}),
            idempotent: true,
            timeout: Duration::from_secs(1),
            executor: Executor::ToolRunner,
            needs_approval: always,
            needs_approval_with: vec![ToolArgument { name: "a".to_owned(), value: "b".to_owned() }],
            acts_outside: false,
            definition: None,
        };
        let spec = consent.applied_to(spec);
        let waived = !spec.needs_approval && consent.waived.iter().any(|pattern| covers(pattern, name));
        assert_eq!(spec.needs_approval_with.is_empty(), waived, "what is waived is waived for all arguments");
        spec.needs_approval
    }

    #[test]
    fn the_operator_adds_and_waives() {
        let list = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
        let nothing = ApprovalRules::default();
        assert!(needs(&nothing, "email.send", true) && !needs(&nothing, "tools.now", false));
        let some = ApprovalRules::new(&list(&["process.run", "github.*"]), &list(&["email.send"]));
        assert!(needs(&some, "process.run", false) && needs(&some, "github.merge", false));
        assert!(!needs(&some, "process.runner", false) && !needs(&some, "email.send", true));
        let all_but = ApprovalRules::new(&list(&["*"]), &list(&["tools.*"]));
        assert!(needs(&all_but, "http.get", false) && !needs(&all_but, "tools.now", false));
    }

    #[test]
    fn what_is_no_pattern() {
        for good in ["*", "email.send", "mcp-1.*", "a.B_c*"] {
            assert!(is_pattern(good), "{good:?}");
        }
        for bad in ["", "*.send", "email send", "a*b", "email/send"] {
            assert!(!is_pattern(bad), "{bad:?}");
        }
    }
}
