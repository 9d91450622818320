//! Turning the end of a process into the result of the action that asked for it.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::consume::{Delivery, Failure, Handler, Settled},
    subjects,
};
use kairo_proto::{Body, v1::ProcessExited};
use serde_json::json;
use uuid::Uuid;

use crate::{
    results::{Ended, Results},
    tool::{CallResult, ToolError},
};

/// The tool whose calls the process supervisor carries out.
pub const PROCESS_RUN: &str = "process.run";

pub struct Processes {
    pub results: Arc<Results>,
}

impl Handler for Processes {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Body::ProcessExited(exited) = &delivery.record.body else {
            return Err(Failure::Permanent(format!("nothing to do for a {}", delivery.record.body.type_name())));
        };
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        let action = Uuid::parse_str(&exited.action_id)
            .map_err(|_| Failure::Permanent("action_id: expected a UUID".to_owned()))?;
        let took = Duration::from_millis(exited.usage.as_ref().map_or(0, |usage| usage.wall_ms));
        let ended = Ended { action, tool: PROCESS_RUN, outcome: outcome(exited), took };
        self.results.report(&agent, exited.decision_sequence, &delivery.record.envelope, ended).await?;
        Ok(Settled::Done)
    }
}

/// A process that ran is a result, whatever its code; one that did not run to its own end is a failure.
fn outcome(exited: &ProcessExited) -> CallResult {
    let tail = || format!("stdout: {:?}, stderr: {:?}", exited.stdout_tail, exited.stderr_tail);
    match exited.outcome.as_str() {
        "exited" | "signaled" => Ok(json!({
            "outcome": exited.outcome,
            "code": exited.code,
            "signal": exited.signal,
            "stdout": exited.stdout_tail,
            "stderr": exited.stderr_tail,
            "stdout_bytes": exited.stdout_bytes,
            "stderr_bytes": exited.stderr_bytes,
        })),
        "timed_out" => Err(ToolError::timed_out(format!("{}; {}", exited.reason, tail()))),
        "supervisor_lost" => Err(ToolError::in_doubt(exited.reason.clone())),
        "refused" => Err(ToolError::invalid_arguments(exited.reason.clone())),
        _ => Err(ToolError::failed(format!("{}: {}", exited.outcome, exited.reason))),
    }
}
