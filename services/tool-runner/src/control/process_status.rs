//! `process.status`: how a process is doing, or how it ended.

use std::sync::Arc;

use kairo_proto::v1::{ProcessLook, ProcessSpawned, process_request::Ask};
use serde_json::{Value, json};

use super::{Control, Target, control_tool, describe, process_schema, supervisors::Answer, watched::Process};
use crate::tool::{CallContext, CallResult, ToolError, ToolSpec};

pub struct ProcessStatus {
    control: Arc<Control>,
    spec: ToolSpec,
}

control_tool!(ProcessStatus);

impl ProcessStatus {
    pub fn new(control: Arc<Control>) -> Self {
        let description = "Says how a process is doing: whether it runs or how it ended, how far it says it is, and the \
                           end of what it wrote.";
        let spec = control.spec("process.status", description, process_schema(json!({}), &[]));
        Self { control, spec }
    }

    async fn run(&self, _args: Value, ctx: CallContext) -> CallResult {
        let target = Target::of(&ctx, "process")?;
        let spawned = match self.control.process(&target).await? {
            Process::Ended(exited) => return Ok(describe::ended(&exited)),
            Process::NotBegun => return Ok(json!({ "status": "not begun", "note": "no supervisor has begun it yet" })),
            Process::Running(spawned) => spawned,
        };
        match self.control.ask(&spawned.supervisor, &target, Ask::Look(ProcessLook {})).await {
            Answer::Done(state) if state.outcome.is_empty() => Ok(describe::running(&spawned, &state)),
            Answer::Refused(reason) => Err(ToolError::failed(reason)),
            _ => self.as_the_log_says(&target, &spawned).await,
        }
    }

    /// Describes a process without its supervisor, from the log. It may have ended just now.
    async fn as_the_log_says(&self, target: &Target, spawned: &ProcessSpawned) -> CallResult {
        if let Process::Ended(exited) = self.control.process(target).await? {
            return Ok(describe::ended(&exited));
        }
        let mut told = describe::listed(spawned);
        if let Some(told) = told.as_object_mut() {
            let note = format!(
                "it runs as far as the log knows, but its supervisor {} does not answer; if that is gone, so is the \
                 process, and its end will be known soon: ask again",
                spawned.supervisor
            );
            told.insert("note".to_owned(), note.into());
        }
        Ok(told)
    }
}
