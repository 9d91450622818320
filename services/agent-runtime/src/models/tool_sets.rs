//! Tools as requests offer them, written once. An agent's requests offer the same tools again and again, with descriptions
//! and schemas that are most of a request: of the wire as of the digest.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use kairo_mind::{
    chat_completions,
    request::{Tool, short_digest},
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Sets of tools that are remembered, those offered last. Agents differ in what they are offered, but seldom in many ways.
const REMEMBERED: usize = 32;

/// Tools that are offered together.
#[derive(Debug)]
pub struct ToolSet {
    tools: Vec<Tool>,
    /// As they stand in what the digest of a request is of, and the digest of that.
    pub canonical: Box<RawValue>,
    pub digest: u64,
    /// As the endpoint is told.
    pub wire: Box<RawValue>,
}

/// Those offered lately, the latest first.
#[derive(Debug, Default)]
pub struct ToolSetCache(Mutex<VecDeque<Arc<ToolSet>>>);

impl ToolSetCache {
    /// These tools, as they were written before if they were.
    pub fn get_or_encode(&self, tools: &[Tool]) -> Arc<ToolSet> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = known.iter().position(|tool_set| tool_set.tools == tools)
            && let Some(tool_set) = known.remove(at)
        {
            known.push_front(tool_set.clone());
            return tool_set;
        }
        let canonical = to_raw_json(tools);
        let digest = short_digest(canonical.get().as_bytes());
        let tool_set = Arc::new(ToolSet {
            tools: tools.to_vec(),
            canonical,
            digest,
            wire: to_raw_json(&chat_completions::wire_tools(tools)),
        });
        known.push_front(tool_set.clone());
        known.truncate(REMEMBERED);
        tool_set
    }
}

/// Strings and lists of them are always JSON.
fn to_raw_json(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: String, schema: &str) -> Tool {
        Tool {
            name: name.into(),
            description: "what it does".into(),
            schema: schema.into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        }
    }

    #[test]
    fn tools_are_written_once_and_told_apart_by_all_they_say() {
        let sets = ToolSetCache::default();
        let one = [tool("a.b".into(), "{}")];
        let first = sets.get_or_encode(&one);
        assert_eq!(
            first.wire.get(),
            r#"[{"type":"function","function":{"name":"a__b","description":"what it does","parameters":{"properties":{},"type":"object"}}}]"#
        );
        assert_eq!(first.canonical.get(), serde_json::to_string(&one).unwrap());
        let other =
            sets.get_or_encode(&[tool("a.b".into(), r#"{"type":"object","properties":{"c":{"type":"string"}}}"#)]);
        assert_ne!(first.wire.get(), other.wire.get());
        assert!(Arc::ptr_eq(&first, &sets.get_or_encode(&one)));
        (0..REMEMBERED).for_each(|number| drop(sets.get_or_encode(&[tool(number.to_string(), "{}")])));
        assert!(!Arc::ptr_eq(&first, &sets.get_or_encode(&one)));
        assert_eq!(sets.0.lock().unwrap().len(), REMEMBERED);
    }
}
