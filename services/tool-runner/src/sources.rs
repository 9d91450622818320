//! The sources of tools. An MCP server, a worker or an OpenAPI document owns the first segment of its tools' names.

use std::collections::{BTreeMap, BTreeSet};

use kairo_proto::words::ToolSource;

use crate::{
    config::ToolsConfig,
    tool::{Definer, ToolSpec},
};

/// A source of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSourceRef {
    pub kind: ToolSource,
    /// The MCP server, the worker or the document of OpenAPI, as it is configured; empty of others.
    pub server: String,
}

/// The sources of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Names of workers, by the first segment of their tools' names.
    workers: BTreeMap<String, String>,
    /// Documents of OpenAPI.
    documents: BTreeSet<String>,
    /// Tools that are single requests to web APIs.
    requests: BTreeSet<String>,
}

impl Sources {
    pub fn of(config: &ToolsConfig) -> Self {
        let workers = config.tools.workers.iter().map(|worker| (worker.prefix().to_owned(), worker.name.clone()));
        Self {
            workers: workers.collect(),
            documents: config.tools.openapi.iter().map(|document| document.name.clone()).collect(),
            requests: config.tools.http.iter().map(|tool| tool.name.clone()).collect(),
        }
    }

    /// Returns the source of a tool.
    pub fn source(&self, tool: &ToolSpec) -> ToolSourceRef {
        let first = tool.name.split('.').next().unwrap_or_default();
        let of = |kind, server: &str| ToolSourceRef { kind, server: server.to_owned() };
        match tool.definition.as_ref().map(|definition| definition.definer) {
            Some(Definer::McpServer) => of(ToolSource::Mcp, first),
            Some(Definer::Worker) => of(ToolSource::Worker, self.workers.get(first).map_or(first, String::as_str)),
            None if self.documents.contains(first) => of(ToolSource::WebApi, first),
            None if self.requests.contains(&tool.name) => of(ToolSource::WebApi, ""),
            None => of(ToolSource::BuiltIn, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::tool::{Definition, Executor};

    #[test]
    fn a_tool_comes_from_where_it_is_configured() {
        let config: ToolsConfig = serde_json::from_value(json!({"tools": {
            "workers": [{"name": "bank", "prefix": "billing"}],
            "openapi": [{"name": "shop", "document": "shop.yaml"}],
            "http": [{"name": "weather.now", "description": "d", "url": "https://example.com", "schema": {"type": "object"}}],
        }}))
        .unwrap();
        let sources = Sources::of(&config);
        let source = |name: &str, definer: Option<Definer>| {
            let definition = definer.map(|definer| Definition { digest: String::new(), is_accepted: false, definer });
            let ToolSourceRef { kind, server } = sources.source(&ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                schema: json!({}),
                idempotent: true,
                timeout: Duration::from_secs(1),
                executor: Executor::ToolRunner,
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
                definition,
            });
            (kind, server)
        };
        for (name, definer, kind, server) in [
            ("tools.now", None, ToolSource::BuiltIn, ""),
            ("github.create_issue", Some(Definer::McpServer), ToolSource::Mcp, "github"),
            ("billing.pay", Some(Definer::Worker), ToolSource::Worker, "bank"),
            ("shop.order", None, ToolSource::WebApi, "shop"),
            ("weather.now", None, ToolSource::WebApi, ""),
            ("weather.tomorrow", None, ToolSource::BuiltIn, ""),
        ] {
            assert_eq!(source(name, definer), (kind, server.to_owned()), "{name}");
        }
    }
}
