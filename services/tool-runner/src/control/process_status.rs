//! `process.status`: how a process is doing, or how it ended.

use std::sync::Arc;

use kairo_proto::v1::{ProcessLook, ProcessSpawned, process_request::Ask};
use serde_json::{Value, json};

use super::{
    Control, ControlTarget, control_tool, describe, logged_process::LoggedProcess, process_schema,
    supervisors::SupervisorAnswer,
};
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
        let spec = control.build_spec("process.status", description, process_schema(json!({}), &[]));
        Self { control, spec }
    }

    async fn run(&self, _args: Value, ctx: CallContext) -> CallResult {
        let target = ControlTarget::from_context(&ctx, "process")?;
        let spawned = match self.control.read_process(&target).await? {
            LoggedProcess::Ended(exited) => return Ok(describe::ended(&exited)),
            LoggedProcess::NotBegun => {
                return Ok(json!({ "status": "not begun", "note": "no supervisor has begun it yet" }));
            }
            LoggedProcess::Running(spawned) => spawned,
        };
        match self.control.ask_supervisor(&spawned.supervisor, &target, Ask::Look(ProcessLook {})).await {
            SupervisorAnswer::Done(state) if state.outcome.is_empty() => Ok(describe::running(&spawned, &state)),
            SupervisorAnswer::Refused(reason) => Err(ToolError::failed(reason)),
            _ => self.describe_from_log(&target, &spawned).await,
        }
    }

    /// Describes a process without its supervisor, from the log. It may have ended just now.
    async fn describe_from_log(&self, target: &ControlTarget, spawned: &ProcessSpawned) -> CallResult {
        if let LoggedProcess::Ended(exited) = self.control.read_process(target).await? {
            return Ok(describe::ended(&exited));
        }
        let mut told = describe::running_summary(spawned);
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
