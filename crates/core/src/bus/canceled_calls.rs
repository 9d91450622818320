//! The calls an agent's decisions cancel, and where in the log: a call must be checked before it begins.
//!
//! A decision that cancels a call follows the one that asked for it, and may be read before it, or long after, when no
//! replica was there to read either. So before a call begins, its agent's decisions are read up to the end of the log.

use std::collections::BTreeMap;

use kairo_proto::v1::AgentDecision;
use uuid::Uuid;

use super::{Bus, BusError, retry_deadline::RetryDeadline};
use crate::{ids::Name, keyed_locks::KeyedLocks, record::RawMessage, subjects::AGENT_DECISION};

/// Tools that stop the call that they name.
pub const STOPPING: [&str; 2] = ["action.cancel", "process.cancel"];

/// Agents whose decisions are remembered.
const AGENTS: usize = 50_000;
/// Calls remembered of each agent; with more it is looked anew.
const REMEMBERED: usize = 1_024;

pub struct CanceledCalls {
    bus: Bus,
    windows: KeyedLocks<Name, Option<CancellationWindow>>,
}

/// The calls canceled by an agent's decisions with a sequence in (`from`, `last`], and the first such decision of each.
struct CancellationWindow {
    from: u64,
    last: u64,
    stopped: BTreeMap<Uuid, u64>,
}

impl CanceledCalls {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), windows: KeyedLocks::new(AGENTS) }
    }

    /// Returns those of these calls that decisions above `since` cancel, with the sequence of the first such decision,
    /// as the stream's leader has the log now. `newest` is a decision known to cancel none of them: often it is the
    /// last one, and nothing is read. While the server is away it retries for as long as `hold_ms` says.
    pub async fn canceled_among(
        &self,
        agent: &Name,
        since: u64,
        newest: u64,
        calls: &[Uuid],
    ) -> Result<BTreeMap<Uuid, u64>, BusError> {
        let mut patience = RetryDeadline::new(&self.bus.limits);
        loop {
            match self.read_canceled(agent, since, newest, calls).await {
                Ok(found) => return Ok(found),
                Err(error) => patience.backoff_after(error).await?,
            }
        }
    }

    async fn read_canceled(
        &self,
        agent: &Name,
        since: u64,
        newest: u64,
        calls: &[Uuid],
    ) -> Result<BTreeMap<Uuid, u64>, BusError> {
        let subject = AGENT_DECISION.of_owner(agent);
        // Mostly there is none, and the answer is short.
        if !self.bus.has_message_after(&subject, newest).await? {
            return Ok(BTreeMap::new());
        }
        let last = self.bus.last_at_leader(&subject).await?;
        let slot = self.windows.get(agent);
        let mut slot = slot.lock().await;
        let covers = |window: &CancellationWindow| {
            window.from <= since && since <= window.last && window.stopped.len() <= REMEMBERED
        };
        let mut window = slot.take().filter(covers).unwrap_or_else(|| CancellationWindow::starting_after(since));
        let most = self.bus.limits.max_body_bytes;
        if window.last < last {
            let after = window.last;
            self.bus.read_all(&subject, after, |raw| window.apply_decision(&raw, most)).await?;
        }
        // The server that answered is behind the others.
        if window.last < last {
            let after = window.last;
            self.bus.read_all_at_leader(&subject, after, |raw| window.apply_decision(&raw, most)).await?;
        }
        let found = calls.iter().filter_map(|call| Some((*call, *window.stopped.get(call)?))).collect();
        *slot = Some(window);
        Ok(found)
    }
}

impl CancellationWindow {
    fn starting_after(sequence: u64) -> Self {
        Self { from: sequence, last: sequence, stopped: BTreeMap::new() }
    }

    /// Adds the calls this decision cancels. An unreadable message cancels nothing.
    fn apply_decision(&mut self, raw: &RawMessage, max_body_bytes: usize) {
        self.last = self.last.max(raw.sequence);
        let record = raw.read(max_body_bytes).ok();
        let decision = record.as_ref().and_then(|record| AgentDecision::of(&record.body));
        for call in decision.into_iter().flat_map(calls_stopped_by) {
            self.stopped.entry(call).or_insert(raw.sequence);
        }
    }
}

/// The calls that a decision wants stopped. One that it asks for itself may be among them: a model can ask at once for a call and
/// for an end of what that belongs to.
pub fn calls_stopped_by(decision: &AgentDecision) -> impl Iterator<Item = Uuid> {
    let calls = decision.events.iter().filter_map(|event| event.tool_call());
    let stopping = calls.filter(|call| STOPPING.contains(&call.tool.as_str()));
    stopping.filter_map(|call| Uuid::parse_str(&call.target_action_id).ok())
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{AgentAction, DecidedEvent, ToolCall, agent_action::Action, decided_event::Event};

    use super::*;

    fn event(tool: &str, target: &str) -> DecidedEvent {
        let call = ToolCall { tool: tool.into(), target_action_id: target.into(), ..Default::default() };
        let action = AgentAction { action: Some(Action::ToolCall(call)) };
        DecidedEvent { event: Some(Event::Action(action)), ..Default::default() }
    }

    #[test]
    fn a_decision_stops_what_its_cancels_name() {
        let one = Uuid::from_u128(1);
        let two = Uuid::from_u128(2);
        let events = vec![
            event("action.cancel", &one.to_string()),
            event("process.cancel", &two.to_string()),
            event("action.status", &Uuid::from_u128(3).to_string()),
            event("action.cancel", ""),
            event("tools.now", ""),
            DecidedEvent::default(),
        ];
        let decision = AgentDecision { events, ..Default::default() };
        assert_eq!(calls_stopped_by(&decision).collect::<Vec<_>>(), [one, two]);
    }
}
