//! Definitions of tools that MCP servers and workers gave, as they were when agents were first offered them.
//!
//! One that later says something else of a tool, to have agents do something else, is not believed: the tool is
//! withheld until the operator accepts what it says now. The catalogue in the log remembers.

use std::collections::BTreeMap;

use kairo_proto::v1::{ToolCatalogue, ToolPin};

use crate::tool::{Definer, ToolSpec};

/// Definitions that are remembered. Tools beyond that are withheld.
const MOST: usize = 4_096;

/// By the tool's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins(BTreeMap<String, String>);

impl Pins {
    pub fn of(catalogue: &ToolCatalogue) -> Self {
        Self(catalogue.pins.iter().map(|pin| (pin.tool.clone(), pin.digest.clone())).collect())
    }

    /// As the catalogue says them.
    pub fn to_messages(&self) -> Vec<ToolPin> {
        let told = |(tool, digest): (&String, &String)| ToolPin { tool: tool.clone(), digest: digest.clone() };
        self.0.iter().map(told).collect()
    }

    /// Takes the tool in as it is, the first time and where the operator accepted it; otherwise says why it is withheld.
    pub fn admit(&mut self, spec: &ToolSpec) -> Result<(), String> {
        let Some(definition) = &spec.definition else { return Ok(()) };
        match self.0.get(&spec.name) {
            Some(pinned) if *pinned == definition.digest => return Ok(()),
            Some(_) if !definition.is_accepted => {
                let (who, there) = match definition.definer {
                    Definer::McpServer => ("MCP server", "that server in tool_runner.mcp"),
                    Definer::Worker => ("worker", "that worker in tool_runner.tools.workers"),
                };
                return Err(format!(
                    "{} is not offered: its {who} describes it otherwise than before; to offer it as it is now, list \
                     {} under accept of {there}",
                    spec.name, definition.digest
                ));
            }
            None if self.0.len() >= MOST => {
                return Err(format!(
                    "{} is not offered: {MOST} tools of MCP servers and workers are known already",
                    spec.name
                ));
            }
            Some(_) | None => {}
        }
        self.0.insert(spec.name.clone(), definition.digest.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::tool::{Definition, Executor};

    fn tool(name: &str, digest: &str, is_accepted: bool) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({"type": "object"}),
            idempotent: false,
            timeout: Duration::from_secs(1),
            executor: Executor::ToolRunner,
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: true,
            definition: Some(Definition { digest: digest.to_owned(), is_accepted, definer: Definer::McpServer }),
        }
    }

    #[test]
    fn what_changed_is_withheld_until_it_is_accepted() {
        let mut pins = Pins::default();
        assert_eq!(pins.admit(&tool("s.a", "1", false)), Ok(()));
        let again = ToolCatalogue { pins: pins.to_messages(), ..Default::default() };
        let mut pins = Pins::of(&again);
        assert_eq!(pins.admit(&tool("s.a", "1", false)), Ok(()));
        let why = pins.admit(&tool("s.a", "2", false)).unwrap_err();
        assert!(why.contains("s.a") && why.contains(" 2 "), "{why}");
        assert_eq!(pins, Pins::of(&again), "what was withheld is not remembered");
        assert_eq!(pins.admit(&tool("s.a", "2", true)), Ok(()));
        assert!(pins.admit(&tool("s.a", "1", false)).is_err(), "nor does it go back by itself");
        assert_eq!(pins.admit(&ToolSpec { definition: None, ..tool("tools.now", "", false) }), Ok(()));
    }

    #[test]
    fn so_many_are_remembered_and_no_more_offered() {
        let mut pins = Pins::default();
        (0..MOST).for_each(|at| pins.admit(&tool(&format!("s.{at}"), "1", false)).unwrap());
        assert!(pins.admit(&tool("s.more", "1", false)).is_err());
        assert_eq!(pins.admit(&tool("s.0", "1", false)), Ok(()));
    }
}
