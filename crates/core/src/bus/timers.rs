//! Timers that outlive every service: schedules of JetStream.
//!
//! A timer is a message on `kairo.timer.set.<task>.<occurrence>` in `KAIRO_TIMERS`. At its time the server removes it and
//! writes its body and headers to `kairo.task.<agent>.due`, which `KAIRO_EVENTS` sources. One that is overdue when the
//! server comes back goes off at once. Decisions are dealt with in any order and more than once: each timer says where it
//! was decided on, and what was decided later stands.

use std::time::Duration;

use jiff::Timestamp;
use kairo_proto::v1::TaskDue;
use uuid::Uuid;

use super::{
    Bus, BusError,
    append::OutgoingEvent,
    port::{OutgoingMessage, ReadSource, StoreError},
};
use crate::{
    envelope::{Envelope, Modality, Origin},
    ids::{self, Name},
    record::{DecisionPosition, RawMessage},
    subjects::{Service, TASK_DUE, TIMERS_STREAM, timer_of, timers_of},
};

/// A time at which a task of an agent is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTimer {
    pub agent: Name,
    pub task: Uuid,
    /// The occurrence of the task, counted from 1.
    pub occurrence: u64,
    pub at: Timestamp,
    /// The place in the log of the decision that sets the timer.
    pub decided: DecisionPosition,
}

/// The server counts nanoseconds in 64 bits and takes a later time for one that has passed: 2262-01-01T00:00:00Z.
const LATEST: Timestamp = Timestamp::constant(9_214_646_400, 0);
/// The time a due message stays in `KAIRO_TIMERS` after the log has sourced it, which takes milliseconds unless the log
/// has no leader. The log copies the header with this time but does not heed it, as its stream does not allow messages
/// to expire.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Times a timer that somebody else is setting, too, is tried before the decision is dealt with again.
const TRIES: usize = 8;
/// The headers that tell the server when to publish the due message, to which subject, and how long to keep it.
const SCHEDULE: &str = "Nats-Schedule";
const SCHEDULE_TARGET: &str = "Nats-Schedule-Target";
const SCHEDULE_TTL: &str = "Nats-Schedule-TTL";
/// The header with the place of the decision that set a timer, `<sequence>.<position>`.
const DECIDED: &str = "Kairo-Decided";

impl Bus {
    /// Sets a timer, unless the same occurrence of the task was set by a later decision.
    pub async fn arm_timer(&self, timer: &TaskTimer) -> Result<(), BusError> {
        let subject = timer_of(timer.task, timer.occurrence);
        let event = due_event(timer, self.now());
        let mut headers = event.headers();
        headers.insert(SCHEDULE, format!("@at {}", timer.at.min(LATEST)));
        headers.insert(SCHEDULE_TARGET, self.stored_subject(&event.subject));
        headers.insert(SCHEDULE_TTL, format!("{}s", KEPT.as_secs()));
        headers.insert(DECIDED, format!("{}.{}", timer.decided.sequence, timer.decided.position));
        let message = OutgoingMessage::new(subject.clone(), headers, event.body.encode());
        let mut expected = 0;
        for _ in 0..TRIES {
            match self.store_message(message.clone().with_guard(expected)).await {
                Ok(_) => return Ok(()),
                Err(StoreError::WrongLastSequence) => {}
                Err(error) => return Err(BusError::unavailable("setting a timer")(error)),
            }
            match self.timer_at_leader(&subject).await? {
                Some((_, decided)) if decided >= timer.decided => return Ok(()),
                Some((sequence, _)) => expected = sequence,
                // It has just gone off.
                None => expected = 0,
            }
        }
        Err(BusError::Conflict { expected })
    }

    /// Takes back the timers of a task that were decided on before this. One that is overlooked does no harm: whoever
    /// hears of it knows that it is over.
    pub async fn disarm_timers(&self, task: Uuid, decided: DecisionPosition) -> Result<(), BusError> {
        let filter = timers_of(task);
        let mut after = 0;
        loop {
            let page = self.read_page_in(TIMERS_STREAM, &filter, after).await?;
            let Some(last) = page.messages.last() else { return Ok(()) };
            after = last.sequence;
            for timer in page.messages.iter().filter(|timer| decision_position(timer) < decided) {
                self.remove_timer(timer.sequence).await?;
            }
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Removes exactly this message: one that took its place stays.
    async fn remove_timer(&self, sequence: u64) -> Result<(), BusError> {
        let removed = self.port.delete_message(TIMERS_STREAM, sequence).await;
        if !removed.map_err(BusError::unavailable("taking back a timer"))? {
            tracing::debug!(sequence, "the timer has gone off or was replaced");
        }
        Ok(())
    }

    /// The timer that is set on a subject: its sequence, and where it was decided.
    async fn timer_at_leader(&self, subject: &str) -> Result<Option<(u64, DecisionPosition)>, BusError> {
        let last = self.port.last_message(TIMERS_STREAM, subject, ReadSource::Leader).await;
        let last = last.map_err(BusError::unavailable("reading a timer"))?;
        Ok(last.map(|last| (last.sequence, decision_position(&last))))
    }
}

/// Builds the event the log receives when the timer fires. It begins a chain of its own, and is the same however often
/// the timer is set.
fn due_event(timer: &TaskTimer, now: Timestamp) -> OutgoingEvent {
    let id = ids::derive(timer.task, &format!("due/{}", timer.occurrence));
    let envelope = Envelope {
        modality: Modality::State,
        ..Envelope::from_outside(id, Service::AgentRuntime, Origin::System, now)
    };
    let body = TaskDue { task_id: timer.task.to_string(), occurrence: timer.occurrence, due_at: timer.at.to_string() };
    OutgoingEvent::new(&TASK_DUE, &timer.agent, envelope, body)
}

fn decision_position(timer: &RawMessage) -> DecisionPosition {
    timer.header(DECIDED).and_then(parse_position).unwrap_or_default()
}

fn parse_position(text: &str) -> Option<DecisionPosition> {
    let (sequence, position) = text.split_once('.')?;
    Some(DecisionPosition { sequence: sequence.parse().ok()?, position: position.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_time_is_the_one_it_is_said_to_be() {
        assert_eq!(LATEST.to_string(), "2262-01-01T00:00:00Z");
        assert!(i64::try_from(LATEST.as_nanosecond()).is_ok());
    }
}
