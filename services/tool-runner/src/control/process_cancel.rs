//! `process.cancel`: ends a process, and answers when it is over.

use std::sync::Arc;

use kairo_core::{bus::consume::backoff_delay, ids};
use kairo_proto::words::ProcessOutcome;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    Control, ControlTarget, control_tool, describe, logged_process::LoggedProcess, process_schema,
    supervisors::SupervisorAnswer,
};
use crate::tool::{CallContext, CallResult, ToolError, ToolSpec};

pub struct ProcessCancel {
    control: Arc<Control>,
    spec: ToolSpec,
}

control_tool!(ProcessCancel);

impl ProcessCancel {
    pub fn new(control: Arc<Control>) -> Self {
        let description = "Ends a process and all that it started: asks it to end and, after a grace period, kills it. \
                           Answers when it is over, with how it ended.";
        let spec = control.build_spec("process.cancel", description, process_schema(json!({}), &[]));
        Self { control, spec }
    }

    async fn run(&self, _args: Value, ctx: CallContext) -> CallResult {
        let target = ControlTarget::from_context(&ctx, "process")?;
        if let LoggedProcess::Ended(exited) = self.control.read_process(&target).await? {
            return Ok(describe::ended(&exited));
        }
        let over = async {
            tokio::select! {
                biased;
                exited = self.control.wait_for_end(&target) => Ok(describe::ended(&exited)),
                outcome = self.stop(&target) => outcome,
            }
        };
        timeout(self.control.patience, over).await.unwrap_or_else(|_| {
            Err(ToolError::timed_out(format!(
                "it was asked to end, and no end of it was recorded within {} ms; look at process.status",
                self.control.patience.as_millis()
            )))
        })
    }

    /// Tries until whoever runs it is told. That it has ended is for the log to say.
    async fn stop(&self, target: &ControlTarget) -> CallResult {
        let mut attempt = 0;
        loop {
            match self.control.stop_process(target).await {
                SupervisorAnswer::Done(_) => std::future::pending().await,
                SupervisorAnswer::Refused(reason) => return Err(ToolError::failed(reason)),
                SupervisorAnswer::NotBegun => {
                    let process_id = ids::process_id(target.action);
                    let note = "it had not begun, and will not";
                    return Ok(
                        json!({ "process_id": process_id, "status": ProcessOutcome::Canceled.as_str(), "note": note }),
                    );
                }
                SupervisorAnswer::NotHere | SupervisorAnswer::Nobody | SupervisorAnswer::Silence => {
                    attempt += 1;
                    sleep(backoff_delay(&self.control.bus.limits, attempt)).await;
                }
            }
        }
    }
}
