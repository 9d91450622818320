//! Turning what becomes of a process into the result of the action that asked for it: its end or, where the process goes
//! on by itself, its beginning.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::consume::{Delivery, DeliveryOutcome, Handler, HandlerFailure},
    subjects,
};
use kairo_proto::v1::{ProcessExited, ProcessSpawned};
use kairo_proto::words::ProcessOutcome;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    results::{ActionEnd, Results},
    tool::{CallResult, ToolError},
};

/// The tool that older events mean, which name none.
const PROCESS_RUN: &str = "process.run";

pub struct Processes {
    pub results: Arc<Results>,
}

impl Handler for Processes {
    async fn handle(&self, delivery: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let body = &delivery.record.body;
        let outcome = match (ProcessSpawned::of(body), ProcessExited::of(body)) {
            (Some(spawned), _) => ActionReport::from_spawned(spawned),
            (None, Some(exited)) => Some(ActionReport::from_exited(exited)),
            (None, None) => return Err(HandlerFailure::Permanent(format!("nothing to do for a {}", body.type_name()))),
        };
        // What is waited for goes on.
        let Some(ActionReport { action, tool, user, decision_sequence, outcome, took }) = outcome else {
            return Ok(DeliveryOutcome::Done);
        };
        let Some((_, agent)) = subjects::find_route(&delivery.record.subject) else {
            return Err(HandlerFailure::Permanent("subject names no agent".to_owned()));
        };
        let action =
            Uuid::parse_str(action).map_err(|_| HandlerFailure::Permanent("action_id: expected a UUID".to_owned()))?;
        let tool = if tool.is_empty() { PROCESS_RUN } else { tool };
        let ended = ActionEnd { action, tool, user, outcome: outcome.into(), is_repeatable: false, took };
        self.results.record_result(&agent, decision_sequence, &delivery.record.envelope, ended).await?;
        Ok(DeliveryOutcome::Done)
    }
}

/// The fields of an event that concern the action of its process.
#[derive(Debug, PartialEq)]
struct ActionReport<'e> {
    action: &'e str,
    tool: &'e str,
    user: &'e str,
    decision_sequence: u64,
    outcome: CallResult,
    took: Duration,
}

impl<'e> ActionReport<'e> {
    /// Builds the result of an action that leaves its process in the background; `None` if the action ends with the
    /// process.
    fn from_spawned(spawned: &'e ProcessSpawned) -> Option<Self> {
        spawned.background.then(|| Self {
            action: &spawned.action_id,
            tool: &spawned.tool,
            user: spawned.user.as_deref().unwrap_or_default(),
            decision_sequence: spawned.decision_sequence,
            outcome: Ok(started(&spawned.process_id, &spawned.program)),
            took: Duration::ZERO,
        })
    }

    fn from_exited(exited: &'e ProcessExited) -> Self {
        let ran = Duration::from_millis(exited.usage.as_ref().map_or(0, |usage| usage.wall_ms));
        let never_ran = match exited.outcome_word() {
            ProcessOutcome::Refused | ProcessOutcome::SpawnFailed => true,
            ProcessOutcome::Canceled => ran.is_zero(),
            _ => false,
        };
        // Of one that ran by itself, the beginning was the result; which of the two events comes first does not matter.
        let (outcome, took) = match exited.background && !never_ran {
            true => (Ok(started(&exited.process_id, &exited.program)), Duration::ZERO),
            false => (outcome(exited), ran),
        };
        Self {
            action: &exited.action_id,
            tool: &exited.tool,
            user: exited.user.as_deref().unwrap_or_default(),
            decision_sequence: exited.decision_sequence,
            outcome,
            took,
        }
    }
}

fn started(process_id: &str, program: &str) -> Value {
    json!({ "process_id": process_id, "program": program, "status": "started" })
}

/// A process that ran is a result, whatever its code; one that did not run to its own end is a failure.
fn outcome(exited: &ProcessExited) -> CallResult {
    let tail = || format!("stdout: {:?}, stderr: {:?}", exited.stdout_tail, exited.stderr_tail);
    match exited.outcome_word() {
        ProcessOutcome::Exited | ProcessOutcome::Signaled => Ok(json!({
            "outcome": exited.outcome,
            "code": exited.code,
            "signal": exited.signal,
            "stdout": exited.stdout_tail,
            "stderr": exited.stderr_tail,
            "stdout_bytes": exited.stdout_bytes,
            "stderr_bytes": exited.stderr_bytes,
        })),
        ProcessOutcome::TimedOut => Err(ToolError::timed_out(format!("{}; {}", exited.reason, tail()))),
        ProcessOutcome::Canceled => Err(ToolError::canceled(format!("{}; {}", exited.reason, tail()))),
        ProcessOutcome::SupervisorLost => Err(ToolError::in_doubt(exited.reason.clone())),
        ProcessOutcome::Refused => Err(ToolError::invalid_arguments(exited.reason.clone())),
        ProcessOutcome::SpawnFailed | ProcessOutcome::Unknown(_) => {
            Err(ToolError::failed(format!("{}: {}", exited.outcome, exited.reason)))
        }
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::ProcessUsage;

    use super::*;
    use crate::tool::ToolErrorKind;

    fn exited(outcome: &str, background: bool, wall_ms: u64) -> ProcessExited {
        ProcessExited {
            process_id: "p".to_owned(),
            program: "/bin/sh".to_owned(),
            outcome: outcome.to_owned(),
            background,
            usage: Some(ProcessUsage { wall_ms, ..Default::default() }),
            ..Default::default()
        }
    }

    fn kind(exited: &ProcessExited) -> Option<ToolErrorKind> {
        ActionReport::from_exited(exited).outcome.err().map(|error| error.kind)
    }

    #[test]
    fn beginning_and_end_of_what_goes_on_by_itself_give_the_same_result() {
        let spawned = ProcessSpawned {
            process_id: "p".to_owned(),
            program: "/bin/sh".to_owned(),
            background: true,
            ..Default::default()
        };
        for outcome in ["exited", "signaled", "timed_out", "canceled", "supervisor_lost"] {
            assert_eq!(
                ActionReport::from_spawned(&spawned),
                Some(ActionReport::from_exited(&exited(outcome, true, 7))),
                "{outcome}"
            );
        }
        assert_eq!(ActionReport::from_spawned(&ProcessSpawned::default()), None);
    }

    #[test]
    fn what_never_ran_was_not_started() {
        assert_eq!(kind(&exited("refused", true, 0)), Some(ToolErrorKind::InvalidArguments));
        assert_eq!(kind(&exited("spawn_failed", true, 0)), Some(ToolErrorKind::Failed));
        assert_eq!(kind(&exited("canceled", true, 0)), Some(ToolErrorKind::Canceled));
    }

    #[test]
    fn what_is_waited_for_ends_as_its_process_does() {
        assert_eq!(kind(&exited("exited", false, 7)), None);
        assert_eq!(kind(&exited("canceled", false, 7)), Some(ToolErrorKind::Canceled));
        assert_eq!(kind(&exited("timed_out", false, 7)), Some(ToolErrorKind::TimedOut));
        assert_eq!(kind(&exited("supervisor_lost", false, 0)), Some(ToolErrorKind::InDoubt));
    }
}
