//! Tools that the operator adds without an MCP server: requests to web APIs, and workers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::config::McpServerConfig;
pub use crate::web_api::config::{HttpToolConfig, OpenApiConfig};
use crate::workers::config as workers;
pub use crate::workers::config::WorkerConfig;

/// The operator's own tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CustomToolsConfig {
    /// Tools that are requests to web APIs. Default none.
    pub http: Vec<HttpToolConfig>,
    /// OpenAPI documents whose operations are tools. Default none.
    pub openapi: Vec<OpenApiConfig>,
    /// Processes that offer tools over NATS. Default none.
    pub workers: Vec<WorkerConfig>,
}

impl CustomToolsConfig {
    /// Every mistake, each after its key.
    pub fn mistakes(&self, mcp: &[McpServerConfig]) -> Vec<String> {
        let mut mistakes = Vec::new();
        for (index, tool) in self.http.iter().enumerate() {
            mistakes.extend(tool.mistakes().iter().map(|mistake| format!("http[{index}].{mistake}")));
        }
        for (index, document) in self.openapi.iter().enumerate() {
            mistakes.extend(document.mistakes().iter().map(|mistake| format!("openapi[{index}].{mistake}")));
        }
        mistakes.extend(workers::mistakes(&self.workers));
        mistakes.extend(self.names_taken(mcp));
        mistakes
    }

    /// Finds names that are taken twice: a source of several tools has their first segment for itself.
    fn names_taken(&self, mcp: &[McpServerConfig]) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut prefixes: BTreeMap<&str, &str> =
            mcp.iter().map(|server| (server.name.as_str(), "an MCP server")).collect();
        for (index, document) in self.openapi.iter().enumerate() {
            if let Some(owner) = prefixes.insert(&document.name, "an OpenAPI document") {
                mistakes.push(format!("openapi[{index}].name: {:?} is taken by {owner} already", document.name));
            }
        }
        for (index, worker) in self.workers.iter().enumerate() {
            if let Some(owner) = prefixes.insert(worker.prefix(), "a worker") {
                mistakes.push(format!("workers[{index}].prefix: {:?} is taken by {owner} already", worker.prefix()));
            }
        }
        let mut names = BTreeSet::new();
        for (index, tool) in self.http.iter().enumerate() {
            let first = tool.name.split('.').next().unwrap_or_default();
            if let Some(owner) = prefixes.get(first) {
                mistakes
                    .push(format!("http[{index}].name: names that begin with {first:?} are taken by {owner} already"));
            }
            if !names.insert(&tool.name) {
                mistakes.push(format!("http[{index}].name: {:?} is taken already", tool.name));
            }
        }
        mistakes
    }
}
