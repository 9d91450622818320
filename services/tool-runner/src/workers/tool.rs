//! A tool that a worker carries out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kairo_core::{ids, outside};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::config::WorkerConfig;
use super::message::AnnouncedTool;
use super::worker_call::{Caller, WorkerCall};
use crate::canonical_json::canonical_json;
use crate::tool::{CallContext, CallResult, Definer, Definition, Executor, Tool, ToolError, ToolSpec};

/// The tool with the way to its worker.
pub struct WorkerTool {
    spec: ToolSpec,
    /// The worker's own name for it.
    name: String,
    trusts_content: bool,
    caller: Arc<Caller>,
    /// The tools, by their workers' own names, that somebody is there for.
    present: watch::Receiver<BTreeSet<String>>,
}

impl WorkerTool {
    pub fn new(
        config: &WorkerConfig,
        announced: &AnnouncedTool,
        call_timeout: Duration,
        caller: Arc<Caller>,
        present: watch::Receiver<BTreeSet<String>>,
    ) -> Self {
        let spec = spec(config, announced, call_timeout);
        Self { spec, name: announced.name.clone(), trusts_content: config.trust_content, caller, present }
    }

    async fn run(&self, arguments: Value, ctx: CallContext, way: CallMode) -> CallResult {
        let action = Uuid::parse_str(&ctx.action_id).map_err(|_| ToolError::failed("the id of the call is no UUID"))?;
        let calling = WorkerCall {
            tool: &self.name,
            arguments: &arguments,
            is_idempotent: self.spec.idempotent,
            is_repeatable: self.is_repeatable(),
            timeout: self.spec.timeout,
            ctx: &ctx,
            action,
        };
        match way {
            CallMode::Give => self.caller.carry_out(&calling).await,
            CallMode::Rejoin => self.caller.rejoin(&calling).await,
        }
    }

    async fn wait_for_replica(&self) -> Result<(), ToolError> {
        let mut present = self.present.clone();
        let patience = Duration::from_millis(self.caller.lifecycle.wait_ms);
        let came = timeout(patience, present.wait_for(|present| present.contains(&self.name))).await;
        match came {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(ToolError::failed(format!(
                "the worker {} is not there; nothing was begun, try again later",
                self.caller.worker
            ))),
        }
    }
}

/// The way a call reaches a worker.
enum CallMode {
    /// It is given to a replica.
    Give,
    /// A replica may have it: wait for its end.
    Rejoin,
}

/// Builds the catalogue entry of a worker's tool.
pub fn spec(config: &WorkerConfig, tool: &AnnouncedTool, call_timeout: Duration) -> ToolSpec {
    let listed = |names: &[String]| names.contains(&tool.name);
    let is_trusted = config.trust_hints;
    ToolSpec {
        name: format!("{}.{}", config.prefix(), tool.name),
        description: tool.description.clone(),
        schema: tool.schema.clone(),
        idempotent: (is_trusted && (tool.idempotent || tool.read_only)) || listed(&config.idempotent),
        timeout: config.call_timeout_ms.map_or(call_timeout, Duration::from_millis),
        executor: Executor::ToolRunner,
        // A word that asks for more care is believed of everybody.
        needs_approval: tool.needs_approval || listed(&config.needs_approval),
        needs_approval_with: Vec::new(),
        acts_outside: !(is_trusted && tool.read_only),
        definition: Some(definition(config, tool)),
    }
}

/// The digest is of all that models and people are told, and of what the worker says of effects.
fn definition(config: &WorkerConfig, tool: &AnnouncedTool) -> Definition {
    let digest = ids::from_parts("worker-tool", &[&canonical_json(&json!(tool))]).to_string();
    let is_accepted = config.accept.iter().any(|accepted| accepted == "*" || *accepted == digest);
    Definition { digest, is_accepted, definer: Definer::Worker }
}

impl Tool for WorkerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside_sources(&self, _: &Value, _: &CallResult) -> Vec<String> {
        // Its failures and its progress are told in the worker's words, too.
        let mark = || outside::source_mark(outside::OutsideSource::Worker, self.caller.worker.as_str());
        (!self.trusts_content).then(mark).into_iter().collect()
    }

    /// A worker knows a call by its action id, and another one of an agent has another.
    fn is_repeatable(&self) -> bool {
        self.spec.idempotent && !self.spec.acts_outside
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(self.run(args, ctx, CallMode::Give))
    }

    fn rejoin(self: Arc<Self>, ctx: CallContext) -> Option<BoxFuture<'static, CallResult>> {
        Some(Box::pin(async move { self.run(Value::Null, ctx, CallMode::Rejoin).await }))
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.wait_for_replica())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(config: Value, tool: Value) -> ToolSpec {
        let mut tool = tool;
        tool["name"] = json!("t");
        tool["description"] = json!("d");
        tool["schema"] = json!({"type": "object"});
        let config = serde_json::from_value(config).unwrap();
        spec(&config, &serde_json::from_value(tool).unwrap(), Duration::from_secs(60))
    }

    #[test]
    fn what_a_worker_says_of_effects_is_believed_where_it_is_trusted() {
        for (config, tool, idempotent, acts_outside) in [
            (json!({"name": "w"}), json!({}), false, true),
            (json!({"name": "w"}), json!({"idempotent": true}), true, true),
            (json!({"name": "w"}), json!({"read_only": true}), true, false),
            (json!({"name": "w", "trust_hints": false}), json!({"idempotent": true, "read_only": true}), false, true),
            (json!({"name": "w", "trust_hints": false, "idempotent": ["t"]}), json!({}), true, true),
        ] {
            let shown = format!("{config} {tool}");
            let spec = of(config, tool);
            assert_eq!((spec.idempotent, spec.acts_outside), (idempotent, acts_outside), "{shown}");
        }
        assert!(of(json!({"name": "w", "trust_hints": false}), json!({"needs_approval": true})).needs_approval);
        assert!(of(json!({"name": "w", "needs_approval": ["t"]}), json!({})).needs_approval);
    }

    #[test]
    fn names_have_the_prefix_and_definitions_a_digest() {
        let spec = of(json!({"name": "w", "prefix": "billing", "call_timeout_ms": 5}), json!({}));
        assert_eq!((spec.name.as_str(), spec.timeout), ("billing.t", Duration::from_millis(5)));
        let digest = |tool| of(json!({"name": "w"}), tool).definition.unwrap().digest;
        assert_eq!(digest(json!({})), digest(json!({"read_only": false})));
        assert_ne!(digest(json!({})), digest(json!({"read_only": true})));
        assert!(of(json!({"name": "w", "accept": ["*"]}), json!({})).definition.unwrap().is_accepted);
    }
}
