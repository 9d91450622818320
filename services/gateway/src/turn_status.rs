//! Changes of turn status for watchers: `turn.status`.
//!
//! The status follows from the events that the watcher may see, by the rules of `GET /v1/interactions/{turn_id}`, so
//! the same events always give the same status. The read model supplies the progress of a turn that began before the
//! watch.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kairo_core::{event_json::EventJson, ids::Name, sharing::QuotaHolder};
use kairo_proto::{time, v1};
use kairo_read_model::{TurnEvents, TurnProgress};
use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    http::{query, snapshot_at_least},
    ownership,
    problem::Problem,
    state::Gateway,
    visibility::{GenerationalMap, subject_agent, turn_user},
};

/// Pause before the read model is asked again when it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The state of a turn.
#[derive(Clone, Debug, PartialEq)]
struct TurnState {
    /// The user whose message began the turn.
    user: String,
    progress: TurnProgress,
}

/// The known turns. Pure.
#[derive(Debug, Default)]
struct KnownTurns {
    /// By correlation; `None` marks a correlation that is not a turn, since no user's message began it.
    turns: GenerationalMap<Uuid, Option<TurnState>>,
}

impl KnownTurns {
    /// Returns true if the turn of an event is unknown and the event does not begin one.
    fn needs_lookup(&self, event: &EventJson, of_agent: bool) -> bool {
        may_belong_to_turn(event)
            && beginning_user(event, of_agent).is_none()
            && self.turns.get(&event.correlation_id).is_none()
    }

    fn record_turn(&mut self, turn: Uuid, found: Option<TurnState>) {
        self.turns.insert(turn, found);
    }

    /// Applies the next event and returns the change of its turn's status, if any.
    fn apply_event(&mut self, event: &EventJson, of_agent: bool) -> Option<v1::TurnStatus> {
        if !may_belong_to_turn(event) {
            return None;
        }
        let known = self.turns.remove(&event.correlation_id);
        let (mut turn, previous) = match (known, beginning_user(event, of_agent)) {
            (None, Some(Some(user))) => (TurnState { user, progress: TurnProgress::default() }, None),
            (Some(Some(turn)), _) => {
                let previous = turn.progress.status();
                (turn, Some(previous))
            }
            (None | Some(None), _) => {
                self.turns.insert(event.correlation_id, None);
                return None;
            }
        };
        turn.progress.apply_event(event);
        let status = turn.progress.status();
        let change = (previous.as_ref() != Some(&status)).then(|| v1::TurnStatus {
            turn_id: event.correlation_id.to_string(),
            agent: subject_agent(&event.subject).map(str::to_owned),
            user: turn.user.clone(),
            thread_id: event.thread_id.clone(),
            status: status.text(),
            previous: previous.map(|previous| previous.text()),
            sequence: event.sequence,
            position: event.position,
            event_id: event.event_id.to_string(),
            time: Some(time::message(event.ts)),
        });
        self.turns.insert(event.correlation_id, Some(turn));
        change
    }
}

/// Returns true if an event may be part of a turn; events of services are not.
fn may_belong_to_turn(event: &EventJson) -> bool {
    subject_agent(&event.subject).is_some() || turn_user(&event.subject).is_some()
}

/// Returns `Some(Some(user))` for the event that begins a user's turn, `Some(None)` if it begins something else, and
/// `None` if it begins nothing. To a watcher of one agent, a turn begins when it reaches that agent.
fn beginning_user(event: &EventJson, of_agent: bool) -> Option<Option<String>> {
    if event.type_name == v1::AgentMessage::TYPE && of_agent {
        let user = event.payload.get("user").and_then(|user| user.as_str());
        return Some(user.map(str::to_owned));
    }
    let is_first = event.event_id == event.correlation_id;
    let is_message = event.type_name == v1::UserMessage::TYPE;
    is_first.then(|| turn_user(&event.subject).filter(|_| is_message).map(str::to_owned))
}

/// The turns known to one watch; at most 8,192 are remembered.
pub struct TurnWatcher {
    gateway: Gateway,
    /// The watched agent; none to watch all agents.
    agent: Option<Name>,
    /// The user to whom the key is limited.
    user: Option<String>,
    known: Mutex<KnownTurns>,
}

impl TurnWatcher {
    pub fn new(gateway: &Gateway, agent: Option<Name>, user: Option<&str>) -> Self {
        Self { gateway: gateway.clone(), agent, user: user.map(str::to_owned), known: Mutex::default() }
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownTurns> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the events of a message that the watcher may see and returns the changes of turn status, in order.
    /// Waits for the read model to supply unknown turns for as long as that takes: a change left out now would never be
    /// reported.
    pub async fn apply_events(&self, events: Vec<&EventJson>) -> Vec<v1::TurnStatus> {
        let of_agent = self.agent.is_some();
        for event in &events {
            while self.lock_known().needs_lookup(event, of_agent) {
                match self.look_up_turn(event.correlation_id, event.sequence).await {
                    Ok(found) => self.lock_known().record_turn(event.correlation_id, found),
                    Err(problem) => {
                        tracing::debug!(problem = problem.detail, "waiting to learn how far a turn is");
                        sleep(PAUSE).await;
                    }
                }
            }
        }
        let mut known = self.lock_known();
        events.into_iter().filter_map(|event| known.apply_event(event, of_agent)).collect()
    }

    /// Returns the state of a turn before the message of this sequence; none if the correlation is not a turn.
    async fn look_up_turn(&self, turn: Uuid, sequence: u64) -> Result<Option<TurnState>, Problem> {
        let wait = Duration::from_millis(self.gateway.config.freshness_wait_ms);
        let holder = QuotaHolder::on_behalf(self.user.as_deref(), self.agent.as_ref().map_or("", Name::as_str));
        let snapshot = snapshot_at_least(&self.gateway, &holder, sequence, wait).await?;
        let TurnEvents { mut events, .. } = query::await_answer(&self.gateway, snapshot.turn_events(turn)).await?;
        let Some(user) = events.first().and_then(|first| beginning_user(first, false)).flatten() else {
            return Ok(None);
        };
        events.retain(|event| event.sequence < sequence && self.is_watched(event));
        let events = ownership::filter_events(&self.gateway, &snapshot, self.user.as_deref(), events).await?;
        let mut progress = TurnProgress::default();
        events.iter().for_each(|event| progress.apply_event(event));
        Ok(Some(TurnState { user, progress }))
    }

    fn is_watched(&self, event: &EventJson) -> bool {
        self.agent.as_ref().is_none_or(|watched| subject_agent(&event.subject) == Some(watched.as_str()))
    }
}

#[cfg(test)]
mod tests;
