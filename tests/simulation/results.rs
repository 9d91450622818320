//! tool-runner's `results.rs` and `processes.rs`: saying how an action ended, once.

use kairo_core::{
    bus::{
        BusError,
        append::Outgoing,
        consume::{Delivery, Failure, Settled},
    },
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids::{self, Name},
    subjects::{self, Service, TOOL_RESULT},
};
use kairo_proto::{
    Body,
    v1::{ToolError, ToolResult},
};
use uuid::Uuid;

use crate::{flaw::Flaw, ledger::Ledger, model::SPAWN, replica::Own};

pub struct Results {
    replica: Own,
    ledger: Ledger,
}

/// How one action ended; the error by its kind.
pub struct Ended<'a> {
    pub action: Uuid,
    pub tool: &'a str,
    pub outcome: Result<String, &'static str>,
}

impl Results {
    pub fn new(replica: &Own) -> Self {
        Self { replica: replica.clone(), ledger: Ledger::new(replica, &TOOL_RESULT) }
    }

    pub async fn ended(&self, agent: &Name, since: u64, actions: &[Uuid]) -> Result<Vec<Uuid>, BusError> {
        Ok(self.ledger.entries(agent, since, actions).await?.into_keys().collect())
    }

    pub async fn report(&self, agent: &Name, since: u64, cause: &Envelope, ended: Ended<'_>) -> Result<(), BusError> {
        let now = self.replica.world.borrow().now();
        let id = ids::derived(ended.action, "result");
        let envelope = Envelope {
            causation_id: Some(invocation_id(ended.action)),
            ..cause.follow(id, Service::ToolRunner, Origin::Tool, now)
        };
        let (ok, result, error) = match ended.outcome {
            Ok(result) => (true, result, None),
            Err(kind) => (false, String::new(), Some(ToolError { kind: kind.to_owned(), message: kind.to_owned() })),
        };
        let runner = self.replica.instance.to_string();
        let (action_id, tool) = (ended.action.to_string(), ended.tool.to_owned());
        let body = ToolResult { action_id, tool, ok, result, error, duration_ms: 0, runner };
        let event = Outgoing::new(&TOOL_RESULT, agent, envelope, body);
        match self.replica.has(Flaw::UnguardedResult) {
            true => _ = self.replica.write_unguarded(&event).await?,
            false => _ = self.ledger.enter(agent, since, &event).await?,
        }
        Ok(())
    }

    /// What is said of a process becomes the result of the action that asked for it.
    pub async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        let (action, tool, since, outcome) = match &delivery.record.body {
            Body::ProcessSpawned(spawned) if spawned.background => {
                (&spawned.action_id, SPAWN, spawned.decision_sequence, Ok("started"))
            }
            Body::ProcessSpawned(_) => return Ok(Settled::Done),
            Body::ProcessExited(exited) => {
                let outcome = match exited.outcome.as_str() {
                    "refused" => Err("invalid_arguments"),
                    "canceled" if !exited.background || exited.usage.is_none() => Err("canceled"),
                    _ if exited.background => Ok("started"),
                    "exited" => Ok("ended"),
                    "supervisor_lost" => Err("in_doubt"),
                    _ => Err("failed"),
                };
                (&exited.action_id, exited.tool.as_str(), exited.decision_sequence, outcome)
            }
            other => return Err(Failure::Permanent(format!("nothing to do for a {}", other.type_name()))),
        };
        let action = Uuid::parse_str(action).map_err(|error| Failure::Permanent(error.to_string()))?;
        let outcome = outcome.map(|status| format!(r#"{{"status":"{status}"}}"#));
        self.report(&agent, since, &delivery.record.envelope, Ended { action, tool, outcome }).await?;
        Ok(Settled::Done)
    }
}
