//! `process.cancel`: ends a process, and answers when it is over.

use std::sync::Arc;

use kairo_core::{bus::consume::backoff, ids};
use kairo_proto::words::ProcessOutcome;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Control, Target, control_tool, describe, process_schema, supervisors::Answer, watched::Process};
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
        let spec = control.spec("process.cancel", description, process_schema(json!({}), &[]));
        Self { control, spec }
    }

    async fn run(&self, _args: Value, ctx: CallContext) -> CallResult {
        let target = Target::of(&ctx, "process")?;
        if let Process::Ended(exited) = self.control.process(&target).await? {
            return Ok(describe::ended(&exited));
        }
        let over = async {
            tokio::select! {
                biased;
                exited = self.control.end(&target) => Ok(describe::ended(&exited)),
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
    async fn stop(&self, target: &Target) -> CallResult {
        let mut attempt = 0;
        loop {
            match self.control.stop_process(target).await {
                Answer::Done(_) => std::future::pending().await,
                Answer::Refused(reason) => return Err(ToolError::failed(reason)),
                Answer::NotBegun => {
                    let process_id = ids::process_id(target.action);
                    let note = "it had not begun, and will not";
                    return Ok(
                        json!({ "process_id": process_id, "status": ProcessOutcome::Canceled.as_str(), "note": note }),
                    );
                }
                Answer::NotHere | Answer::Nobody | Answer::Silence => {
                    attempt += 1;
                    sleep(backoff(&self.control.bus.limits, attempt)).await;
                }
            }
        }
    }
}
