//! The decisions that a replica is making, for status and metrics.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kairo_core::{
    ids::Name,
    metrics::{Metrics, table::OLDEST_WAIT},
    record::Record,
};
use kairo_proto::{time, v1::WaitRow, words::WaitReason};
use uuid::Uuid;

/// The decisions under way. Clones are the same ones.
#[derive(Clone, Debug, Default)]
pub struct DecisionsInFlight(Arc<Mutex<Register>>);

#[derive(Debug, Default)]
struct Register {
    /// The number of the next entry.
    next: u64,
    /// At most two for each agent: one in the foreground, one in the background.
    decisions: BTreeMap<u64, DecisionInFlight>,
}

#[derive(Debug)]
struct DecisionInFlight {
    agent: Name,
    turn: Uuid,
    /// The time from which somebody waits for it.
    since: Timestamp,
}

/// An entry, which is removed when it is dropped.
#[derive(Debug)]
pub struct DecisionEntry {
    number: u64,
    decisions: DecisionsInFlight,
}

impl DecisionsInFlight {
    /// Enters a decision on an input for which somebody has waited since this time.
    pub fn enter(&self, agent: &Name, input: &Record, since: Timestamp) -> DecisionEntry {
        let mut register = self.lock();
        let number = register.next;
        register.next += 1;
        let decision = DecisionInFlight { agent: agent.clone(), turn: input.envelope.correlation_id, since };
        register.decisions.insert(number, decision);
        drop(register);
        DecisionEntry { number, decisions: self.clone() }
    }

    /// Returns one row if any decision is under way.
    pub fn row(&self) -> Option<WaitRow> {
        let register = self.lock();
        let oldest = register.decisions.values().min_by_key(|decision| decision.since)?;
        Some(WaitRow {
            waits_for: WaitReason::Decision.text(),
            count: register.decisions.len() as u64,
            since: Some(time::message(oldest.since)),
            agent: oldest.agent.to_string(),
            turn_id: oldest.turn.to_string(),
            ..WaitRow::default()
        })
    }

    /// Has metrics say how long the oldest decision takes; 0 seconds if none is under way.
    pub fn observe(&self, metrics: &Metrics, now: impl Fn() -> Timestamp + Send + Sync + 'static) {
        let decisions = self.clone();
        metrics.observe(&OLDEST_WAIT, move |say| {
            let oldest = decisions.lock().decisions.values().map(|decision| decision.since).min();
            let seconds = oldest.map_or(0.0, |since| now().duration_since(since).as_secs_f64().max(0.0));
            say(seconds, &[WaitReason::Decision.known_word()]);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Register> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DecisionEntry {
    fn drop(&mut self) {
        self.decisions.lock().decisions.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::envelope::{Envelope, Origin};
    use kairo_core::subjects::Service;
    use kairo_proto::{Body, v1::UserMessage};

    use super::*;

    fn input(second: i64) -> Record {
        let time = Timestamp::from_second(second).unwrap();
        let envelope = Envelope::from_outside(Uuid::from_u128(second as u128), Service::Gateway, Origin::User, time);
        Record { sequence: 1, subject: String::new(), envelope, body: Body::from(UserMessage::default()) }
    }

    #[test]
    fn the_row_tells_of_the_oldest_decision_until_it_has_ended() {
        let decisions = DecisionsInFlight::default();
        assert_eq!(decisions.row(), None);
        let enter = |agent: &str, second| {
            let input = input(second);
            decisions.enter(&Name::parse(agent).unwrap(), &input, input.envelope.time)
        };
        let later = enter("ops", 20);
        let older = enter("aide", 10);
        let row = decisions.row().unwrap();
        assert_eq!((row.count, row.agent.as_str(), row.since.unwrap().seconds), (2, "aide", 10));
        assert_eq!(row.turn_id, Uuid::from_u128(10).to_string());
        drop(older);
        let row = decisions.row().unwrap();
        assert_eq!((row.count, row.agent.as_str()), (1, "ops"));
        drop(later);
        assert_eq!(decisions.row(), None);
    }
}
