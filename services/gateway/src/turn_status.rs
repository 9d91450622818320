//! Changes of turn status for watchers: `turn.status`.
//!
//! The status follows from the events that the watcher may see, by the rules of `GET /v1/interactions/{turn_id}`, so
//! the same events always give the same status. The read model supplies the progress of a turn that began before the
//! watch.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kairo_core::{event_json::EventJson, ids::Name, sharing::Holder};
use kairo_proto::{time, v1};
use kairo_read_model::{TurnEvents, TurnProgress};
use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    http::{at_least, query},
    ownership,
    problem::Problem,
    state::Gateway,
    visibility::{Remembered, agent, began},
};

/// Pause before the read model is asked again when it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The state of a turn.
#[derive(Clone, Debug, PartialEq)]
struct Turn {
    /// The user whose message began the turn.
    user: String,
    progress: TurnProgress,
}

/// The known turns. Pure.
#[derive(Debug, Default)]
struct Known {
    /// By correlation; `None` marks a correlation that is not a turn, since no user's message began it.
    turns: Remembered<Uuid, Option<Turn>>,
}

impl Known {
    /// Returns true if the turn of an event is unknown and the event does not begin one.
    fn lacks(&self, event: &EventJson, of_agent: bool) -> bool {
        concerns_turns(event) && beginning(event, of_agent).is_none() && self.turns.get(&event.correlation_id).is_none()
    }

    fn note(&mut self, turn: Uuid, found: Option<Turn>) {
        self.turns.put(turn, found);
    }

    /// Applies the next event and returns the change of its turn's status, if any.
    fn take_in(&mut self, event: &EventJson, of_agent: bool) -> Option<v1::TurnStatus> {
        if !concerns_turns(event) {
            return None;
        }
        let known = self.turns.take(&event.correlation_id);
        let (mut turn, previous) = match (known, beginning(event, of_agent)) {
            (None, Some(Some(user))) => (Turn { user, progress: TurnProgress::default() }, None),
            (Some(Some(turn)), _) => {
                let previous = turn.progress.status();
                (turn, Some(previous))
            }
            (None | Some(None), _) => {
                self.turns.put(event.correlation_id, None);
                return None;
            }
        };
        turn.progress.take_in(event);
        let status = turn.progress.status();
        let change = (previous.as_ref() != Some(&status)).then(|| v1::TurnStatus {
            turn_id: event.correlation_id.to_string(),
            agent: agent(&event.subject).map(str::to_owned),
            user: turn.user.clone(),
            thread_id: event.thread_id.clone(),
            status: status.text(),
            previous: previous.map(|previous| previous.text()),
            sequence: event.sequence,
            position: event.position,
            event_id: event.event_id.to_string(),
            time: Some(time::message(event.ts)),
        });
        self.turns.put(event.correlation_id, Some(turn));
        change
    }
}

/// Returns true if an event may be part of a turn; events of services are not.
fn concerns_turns(event: &EventJson) -> bool {
    agent(&event.subject).is_some() || began(&event.subject).is_some()
}

/// Returns `Some(Some(user))` for the event that begins a user's turn, `Some(None)` if it begins something else, and
/// `None` if it begins nothing. To a watcher of one agent, a turn begins when it reaches that agent.
fn beginning(event: &EventJson, of_agent: bool) -> Option<Option<String>> {
    if event.type_name == v1::AgentMessage::TYPE && of_agent {
        let user = event.payload.get("user").and_then(|user| user.as_str());
        return Some(user.map(str::to_owned));
    }
    let is_first = event.event_id == event.correlation_id;
    let is_message = event.type_name == v1::UserMessage::TYPE;
    is_first.then(|| began(&event.subject).filter(|_| is_message).map(str::to_owned))
}

/// The turns known to one watch; at most 8,192 are remembered.
pub struct Turns {
    gateway: Gateway,
    /// The watched agent; none to watch all agents.
    agent: Option<Name>,
    /// The user to whom the key is limited.
    user: Option<String>,
    known: Mutex<Known>,
}

impl Turns {
    pub fn new(gateway: &Gateway, agent: Option<Name>, user: Option<&str>) -> Self {
        Self { gateway: gateway.clone(), agent, user: user.map(str::to_owned), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the events of a message that the watcher may see and returns the changes of turn status, in order.
    /// Waits for the read model to supply unknown turns for as long as that takes: a change left out now would never be
    /// reported.
    pub async fn take_in(&self, events: Vec<&EventJson>) -> Vec<v1::TurnStatus> {
        let of_agent = self.agent.is_some();
        for event in &events {
            while self.known().lacks(event, of_agent) {
                match self.find_out(event.correlation_id, event.sequence).await {
                    Ok(found) => self.known().note(event.correlation_id, found),
                    Err(problem) => {
                        tracing::debug!(problem = problem.detail, "waiting to learn how far a turn is");
                        sleep(PAUSE).await;
                    }
                }
            }
        }
        let mut known = self.known();
        events.into_iter().filter_map(|event| known.take_in(event, of_agent)).collect()
    }

    /// Returns the state of a turn before the message of this sequence; none if the correlation is not a turn.
    async fn find_out(&self, turn: Uuid, sequence: u64) -> Result<Option<Turn>, Problem> {
        let wait = Duration::from_millis(self.gateway.config.freshness_wait_ms);
        let holder = Holder::on_behalf(self.user.as_deref(), self.agent.as_ref().map_or("", Name::as_str));
        let snapshot = at_least(&self.gateway, &holder, sequence, wait).await?;
        let TurnEvents { mut events, .. } = query::answered(&self.gateway, snapshot.turn(turn)).await?;
        let Some(user) = events.first().and_then(|first| beginning(first, false)).flatten() else { return Ok(None) };
        events.retain(|event| event.sequence < sequence && self.watches(event));
        let events = ownership::events(&self.gateway, &snapshot, self.user.as_deref(), events).await?;
        let mut progress = TurnProgress::default();
        events.iter().for_each(|event| progress.take_in(event));
        Ok(Some(Turn { user, progress }))
    }

    fn watches(&self, event: &EventJson) -> bool {
        self.agent.as_ref().is_none_or(|watched| agent(&event.subject) == Some(watched.as_str()))
    }
}

#[cfg(test)]
mod tests;
