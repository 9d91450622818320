//! Reads the state of a process from the log.

use futures::try_join;
use kairo_core::subjects::PROCESS_EXITED;
use kairo_proto::v1::{ProcessExited, ProcessSpawned};
use uuid::Uuid;

use super::{Control, ControlTarget, describe, unavailable_error};
use crate::tool::ToolError;

/// The state of a process according to the log.
#[derive(Clone, Debug, PartialEq)]
pub enum LoggedProcess {
    /// No supervisor has begun it.
    NotBegun,
    Running(Box<ProcessSpawned>),
    Ended(Box<ProcessExited>),
}

impl Control {
    pub(super) async fn read_process(&self, target: &ControlTarget) -> Result<LoggedProcess, ToolError> {
        let ControlTarget { agent, action, after, .. } = target;
        let spawned = self.spawned.entry_record(agent, *after, *action);
        let exited = self.exited.entry_record(agent, *after, *action);
        let (spawned, exited) = try_join!(spawned, exited).map_err(unavailable_error)?;
        let exited = exited.and_then(|record| ProcessExited::try_from(record.body).ok());
        let spawned = spawned.and_then(|record| ProcessSpawned::try_from(record.body).ok());
        Ok(match (spawned, exited) {
            (_, Some(exited)) => LoggedProcess::Ended(Box::new(exited)),
            (Some(spawned), None) => LoggedProcess::Running(Box::new(spawned)),
            (None, None) => LoggedProcess::NotBegun,
        })
    }

    /// A process that can be acted on. One that has not begun or has ended cannot, and is told apart.
    pub(super) async fn require_running(&self, target: &ControlTarget) -> Result<ProcessSpawned, ToolError> {
        match self.read_process(target).await? {
            LoggedProcess::Running(spawned) => Ok(*spawned),
            LoggedProcess::NotBegun => Err(ToolError::failed("the process has not begun yet; try again when it has")),
            LoggedProcess::Ended(exited) => Err(process_ended_error(&exited)),
        }
    }

    /// Waits until the log holds the end of the process, and returns it.
    pub(super) async fn wait_for_end(&self, target: &ControlTarget) -> ProcessExited {
        let subject = PROCESS_EXITED.of_owner(&target.agent);
        self.bus
            .wait_for_record(&subject, target.after, |record| {
                let exited = ProcessExited::of(&record.body);
                exited.filter(|exited| Uuid::parse_str(&exited.action_id) == Ok(target.action)).cloned()
            })
            .await
    }
}

/// It is too late for what was asked.
pub fn process_ended_error(exited: &ProcessExited) -> ToolError {
    ToolError::failed(format!("the process has ended: {}; nothing was done", describe::end_in_words(exited)))
}
