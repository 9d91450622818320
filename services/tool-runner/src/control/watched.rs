//! Reads the state of a process from the log.

use futures::try_join;
use kairo_core::subjects::PROCESS_EXITED;
use kairo_proto::v1::{ProcessExited, ProcessSpawned};
use uuid::Uuid;

use super::{Control, Target, describe, unavailable};
use crate::tool::ToolError;

/// The state of a process according to the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// No supervisor has begun it.
    NotBegun,
    Running(Box<ProcessSpawned>),
    Ended(Box<ProcessExited>),
}

impl Control {
    pub(super) async fn process(&self, target: &Target) -> Result<Process, ToolError> {
        let Target { agent, action, after, .. } = target;
        let spawned = self.spawned.record(agent, *after, *action);
        let exited = self.exited.record(agent, *after, *action);
        let (spawned, exited) = try_join!(spawned, exited).map_err(unavailable)?;
        let exited = exited.and_then(|record| ProcessExited::try_from(record.body).ok());
        let spawned = spawned.and_then(|record| ProcessSpawned::try_from(record.body).ok());
        Ok(match (spawned, exited) {
            (_, Some(exited)) => Process::Ended(Box::new(exited)),
            (Some(spawned), None) => Process::Running(Box::new(spawned)),
            (None, None) => Process::NotBegun,
        })
    }

    /// A process that can be acted on. One that has not begun or has ended cannot, and is told apart.
    pub(super) async fn running(&self, target: &Target) -> Result<ProcessSpawned, ToolError> {
        match self.process(target).await? {
            Process::Running(spawned) => Ok(*spawned),
            Process::NotBegun => Err(ToolError::failed("the process has not begun yet; try again when it has")),
            Process::Ended(exited) => Err(over(&exited)),
        }
    }

    /// Waits until the log holds the end of the process, and returns it.
    pub(super) async fn end(&self, target: &Target) -> ProcessExited {
        let subject = PROCESS_EXITED.of(&target.agent);
        self.bus
            .wait_for(&subject, target.after, |record| {
                let exited = ProcessExited::of(&record.body);
                exited.filter(|exited| Uuid::parse_str(&exited.action_id) == Ok(target.action)).cloned()
            })
            .await
    }
}

/// It is too late for what was asked.
pub fn over(exited: &ProcessExited) -> ToolError {
    ToolError::failed(format!("the process has ended: {}; nothing was done", describe::how(exited)))
}
