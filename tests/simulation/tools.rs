//! The tools there are: they count what they do.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kairo_tool_runner::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    audit::{decision, tool_calls},
    flaw::Flaw,
    model::{self, KEYED, MAIL, UNKEYED},
    world::Shared,
};

struct Counting {
    spec: ToolSpec,
    world: Shared,
    runner: String,
}

/// The tools of one runner.
pub fn all(world: &Shared, runner: &str) -> Vec<Arc<dyn Tool>> {
    let flaw = world.lock().unwrap().flaw;
    let tool = |name: &str| -> Arc<dyn Tool> {
        let schema = match name {
            KEYED => json!({"type":"object","required":["n"],"properties":{"n":{"type":["integer","boolean"]}}}),
            _ => json!({"type":"object"}),
        };
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema,
            idempotent: model::is_keyed(name) || flaw == Some(Flaw::EverythingRepeats),
            timeout: Duration::from_secs(20),
            executor: Executor::ToolRunner,
            needs_approval: model::needs_consent(name) && flaw != Some(Flaw::ConsentIgnored),
            needs_approval_with: Vec::new(),
            acts_outside: false,
            definition: None,
        };
        Arc::new(Counting { spec, world: world.clone(), runner: runner.to_owned() })
    };
    [KEYED, UNKEYED, MAIL].into_iter().map(tool).collect()
}

impl Tool for Counting {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// With that flaw, here already: before the call is entered in the ledger as begun.
    fn ready(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async {
            let mut world = self.world.lock().unwrap();
            if world.has(Flaw::EffectFirst) {
                let begun = world.records().iter().filter_map(decision).flat_map(tool_calls);
                let mine = begun.filter(|(_, call)| call.tool == self.spec.name);
                let last = mine.last().and_then(|(action, _)| Uuid::parse_str(&action).ok());
                last.into_iter().for_each(|action| world.effect(&self.runner, action));
            }
            Ok(())
        })
    }

    fn call(&self, _args: Value, context: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let action: Uuid = context.action_id.parse().map_err(|_| ToolError::failed("no action"))?;
            let _busy = self.world.lock().unwrap().busy.clone();
            self.takes_a_while().await;
            if context.cancel.is_cancelled() {
                return Err(ToolError::canceled("it was stopped"));
            }
            self.world.lock().unwrap().effect(&self.runner, action);
            self.takes_a_while().await;
            match model::fails(action) {
                true => Err(ToolError::failed("failed")),
                false => Ok(json!({ "done": true })),
            }
        })
    }
}

impl Counting {
    async fn takes_a_while(&self) {
        let while_ = {
            let world = self.world.lock().unwrap();
            let long = if world.permille(200) { 3_000 } else { 60 };
            Duration::from_millis(world.below(long) as u64)
        };
        tokio::time::sleep(while_).await;
    }
}
