//! Tools that control an agent's processes and actions.
//!
//! The log holds the state of a process or an action ([`logged_process`]); the supervisor knows how a process is doing
//! ([`supervisors`]). Orders to a call or a process are entries in the log ([`orders`]). A call names its target by the
//! id the agent knows, and the agent's mind adds the position in the log to look from: without that, the target is not
//! this agent's.

mod action_cancel;
mod describe;
mod logged_process;
mod orders;
mod process_cancel;
mod process_list;
mod process_send;
mod process_status;
mod supervisors;

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{Bus, BusError, ledger::Ledger, liveness::ActionLiveness},
    ids::Name,
    subjects::{PROCESS_EXITED, PROCESS_SPAWNED, TOOL_ORDER},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    config::ToolsConfig,
    results::Results,
    tool::{CallContext, Executor, Tool, ToolError, ToolSpec},
};

/// The name of the tool that stops calls.
pub const CANCELING: &str = "action.cancel";

/// State shared by the control tools.
pub struct Control {
    bus: Bus,
    spawned: Ledger,
    exited: Ledger,
    orders: Ledger,
    invocations: Arc<Ledger>,
    results: Arc<Results>,
    liveness: ActionLiveness,
    /// Longest wait for an end.
    patience: Duration,
    /// Grace for a canceled call to report its end.
    cancel_grace: Duration,
}

impl Control {
    pub fn new(
        bus: &Bus,
        invocations: Arc<Ledger>,
        results: Arc<Results>,
        liveness: ActionLiveness,
        config: &ToolsConfig,
    ) -> Self {
        Self {
            bus: bus.clone(),
            spawned: Ledger::new(bus, &PROCESS_SPAWNED),
            exited: Ledger::new(bus, &PROCESS_EXITED),
            orders: Ledger::new(bus, &TOOL_ORDER),
            invocations,
            results,
            liveness,
            patience: config.call_timeout(),
            cancel_grace: Duration::from_millis(config.cancel_grace_ms),
        }
    }

    pub fn tools(self) -> Vec<Arc<dyn Tool>> {
        let control = Arc::new(self);
        vec![
            Arc::new(process_status::ProcessStatus::new(control.clone())),
            Arc::new(process_send::ProcessSignal::new(control.clone())),
            Arc::new(process_send::ProcessWrite::new(control.clone())),
            Arc::new(process_cancel::ProcessCancel::new(control.clone())),
            Arc::new(process_list::ProcessList::new(control.clone())),
            Arc::new(action_cancel::ActionCancel::new(control)),
        ]
    }

    /// Of those, the one that stops calls.
    pub fn into_cancel_tool(self) -> Arc<dyn Tool> {
        Arc::new(action_cancel::ActionCancel::new(Arc::new(self)))
    }

    fn build_spec(&self, name: &str, description: &str, schema: Value) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            schema,
            idempotent: true,
            // Whoever waits in vain gets to say what for.
            timeout: self.patience + self.cancel_grace * 2,
            executor: Executor::ToolRunner,
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
            definition: None,
        }
    }
}

/// The target of a control call, and the caller.
#[derive(Clone, Debug)]
struct ControlTarget {
    agent: Name,
    action: Uuid,
    /// Position in the log up to which nothing concerns the action.
    after: u64,
    /// The action of the control call itself.
    by: Uuid,
    /// Position in the log of the decision that asked for the call.
    decision: u64,
    /// The user on whose behalf the call is made.
    user: Option<String>,
}

impl ControlTarget {
    /// `named` is what the call's arguments name it by.
    fn from_context(ctx: &CallContext, named: &str) -> Result<Self, ToolError> {
        let action = ctx.target.ok_or_else(|| {
            ToolError::not_found(format!("there is no {named} of this agent; name one that it has begun"))
        })?;
        let agent = parse_agent(ctx)?;
        let by = parse_action_id(ctx)?;
        let user = ctx.user.clone();
        Ok(Self { agent, action, after: ctx.target_after, by, decision: ctx.decision_sequence, user })
    }
}

fn parse_agent(ctx: &CallContext) -> Result<Name, ToolError> {
    Name::parse(&ctx.agent).map_err(|error| ToolError::failed(format!("the agent's name: {error}")))
}

fn parse_action_id(ctx: &CallContext) -> Result<Uuid, ToolError> {
    Uuid::parse_str(&ctx.action_id).map_err(|_| ToolError::failed("the id of the call is no UUID"))
}

/// The log could not be read or written: nothing was found out.
fn unavailable_error(error: BusError) -> ToolError {
    ToolError::failed(format!("{error}; try again in a moment"))
}

/// The schema of arguments that name a process, and these `more` of which some are required.
fn process_schema(more: Value, required: &[&str]) -> Value {
    let mut properties = json!({
        "process_id": { "type": "string", "description": "The process_id that process.spawn gave." },
    });
    if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
        properties.extend(more);
    }
    let required: Vec<&str> = ["process_id"].iter().chain(required).copied().collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// Implements [`Tool`] by an inherent `spec` field and an async `run`.
macro_rules! control_tool {
    ($tool:ident) => {
        impl $crate::tool::Tool for $tool {
            fn spec(&self) -> &$crate::tool::ToolSpec {
                &self.spec
            }

            fn call(
                &self,
                args: serde_json::Value,
                ctx: $crate::tool::CallContext,
            ) -> futures::future::BoxFuture<'_, $crate::tool::CallResult> {
                Box::pin(self.run(args, ctx))
            }

            fn is_control(&self) -> bool {
                true
            }
        }
    };
}
use control_tool;
