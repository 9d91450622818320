//! Queues with more waiting than is taken on: whoever works on one announces it, and whoever lets messages in holds back.
//! An agent's queue is what it has to decide on, of which each user has a share; a user's line to an agent is what is still to be
//! handed on to it.
//!
//! Hints, not facts: they stand in a bucket in memory, hold for [`LIFETIME`] and are refreshed while it lasts. A hint
//! that is lost lets messages through, which are decided on like all that is stored.

pub mod backpressure;
pub mod shares;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures::StreamExt;
use kairo_events::copies::COPY_OF;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{
    Bus, BusError,
    kv::{DELETED, OPERATION},
    port::{Headers, LiveSubscription, OutgoingMessage},
};
use crate::{ids::Name, subjects::CONGESTION_BUCKET};

/// The lifetime of an announcement. It is to be repeated several times within it.
pub const LIFETIME: Duration = Duration::from_secs(30);
/// The interval between reads of the whole bucket, which make up for announcements missed on the subscription.
const READ_EVERY: Duration = Duration::from_secs(10);
/// Queues that count as congested at once. Of more, some messages come in that could have been refused.
const MAX_QUEUES: usize = 10_000;

/// A queue of inputs in front of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputQueue {
    pub agent: Name,
    pub of: QueueScope,
}

/// The inputs that a queue counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueScope {
    /// To be decided on, whoever said it.
    Everybody,
    /// To be handed on, of a user.
    Line(Name),
    /// To be decided on, of a user.
    Share(Name),
}

/// The token after the user, in the subject of their share.
const SHARE: &str = "share";

/// The number of messages that wait in a queue, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Congestion {
    pub pending: u64,
    /// The number that may wait.
    pub limit: u64,
}

/// Says how congested a queue is, which holds for [`LIFETIME`], or that it no longer is.
pub async fn announce(bus: &Bus, queue: &InputQueue, congestion: Option<Congestion>) {
    let mut headers = Headers::new();
    if congestion.is_none() {
        headers.insert(OPERATION, DELETED);
    }
    let value = congestion.and_then(|congestion| serde_json::to_vec(&congestion).ok()).unwrap_or_default();
    // Straight to the bucket's subject, without asking for the bucket first.
    let subject = queue.kv_subject();
    if let Err(error) = bus.store_message(OutgoingMessage::new(subject, headers, value)).await {
        tracing::debug!(%error, ?queue, "whether it is congested could not be said");
    }
}

impl InputQueue {
    pub fn for_agent(agent: &Name) -> Self {
        Self { agent: agent.clone(), of: QueueScope::Everybody }
    }

    /// Returns the line of a user to an agent: inputs still to be handed on.
    pub fn for_user_line(agent: &Name, user: &Name) -> Self {
        Self { agent: agent.clone(), of: QueueScope::Line(user.clone()) }
    }

    /// Returns a user's share of the inputs an agent has to decide on.
    pub fn for_user_share(agent: &Name, user: &Name) -> Self {
        Self { agent: agent.clone(), of: QueueScope::Share(user.clone()) }
    }

    fn kv_subject(&self) -> String {
        let Self { agent, of } = self;
        match of {
            QueueScope::Everybody => format!("$KV.{CONGESTION_BUCKET}.{agent}"),
            QueueScope::Line(user) => format!("$KV.{CONGESTION_BUCKET}.{agent}.{user}"),
            QueueScope::Share(user) => format!("$KV.{CONGESTION_BUCKET}.{agent}.{user}.{SHARE}"),
        }
    }

    fn parse_subject(subject: &str) -> Option<Self> {
        let parts = subject.strip_prefix("$KV.")?.strip_prefix(CONGESTION_BUCKET)?.strip_prefix('.')?;
        let parts: Vec<&str> = parts.split('.').collect();
        let (agent, of) = match *parts.as_slice() {
            [agent] => (agent, QueueScope::Everybody),
            [agent, user] => (agent, QueueScope::Line(Name::parse(user).ok()?)),
            [agent, user, SHARE] => (agent, QueueScope::Share(Name::parse(user).ok()?)),
            _ => return None,
        };
        Some(Self { agent: Name::parse(agent).ok()?, of })
    }
}

/// The queues that are congested right now.
#[derive(Clone)]
pub struct CongestedQueues {
    bus: Bus,
    known: Arc<RwLock<CongestionHints>>,
}

#[derive(Debug, Default)]
struct CongestionHints(HashMap<InputQueue, CongestionHint>);

#[derive(Debug)]
struct CongestionHint {
    said: Congestion,
    /// When it was said last, by the clock here.
    at: Instant,
    /// The sequence it was read at, which tells whether it was said again; none where it was only heard so far.
    sequence: Option<u64>,
}

impl CongestedQueues {
    /// Follows the bucket until `shutdown`.
    pub async fn follow(bus: &Bus, shutdown: CancellationToken) -> Result<Self, BusError> {
        // An entry of a bucket is a message like any other: who subscribes to its subject hears it at once, also from a
        // bucket that was lost with a restart of the server and made again, where a consumer's place means nothing.
        let heard = bus.subscribe(format!("$KV.{CONGESTION_BUCKET}.>")).await?;
        let congested = Self { bus: bus.clone(), known: Arc::default() };
        let following = congested.clone();
        bus.spawn(async move { _ = shutdown.run_until_cancelled(following.run_listener(heard)).await });
        Ok(congested)
    }

    /// The queue that keeps a message of the user for the agent from being taken, and how congested it is.
    pub fn find_blocking_queue(&self, agent: &Name, user: &Name) -> Option<(InputQueue, Congestion)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.0.is_empty() {
            return None;
        }
        let queues = [
            InputQueue::for_agent(agent),
            InputQueue::for_user_line(agent, user),
            InputQueue::for_user_share(agent, user),
        ];
        queues
            .into_iter()
            .find_map(|queue| known.congestion_of(&queue, Instant::now()).map(|congestion| (queue, congestion)))
    }

    async fn run_listener(self, mut heard: LiveSubscription) {
        let mut readings = interval(READ_EVERY);
        readings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                // What is heard meanwhile is newer, and waits until the bucket was read.
                _ = readings.tick() => self.refresh().await,
                entry = heard.next() => match entry {
                    Some(entry) => self.apply_entry(&entry.subject, &entry.headers, &entry.payload, None),
                    None => return,
                },
            }
        }
    }

    async fn refresh(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).drop_expired(Instant::now());
        if let Err(error) = self.read_bucket().await {
            tracing::debug!(%error, "congestion could not be read");
            // A restart of the server may have lost the bucket.
            if let Err(error) = self.bus.restore_buckets(&[CONGESTION_BUCKET]).await {
                tracing::debug!(%error, "nor made again");
            }
        }
    }

    async fn read_bucket(&self) -> Result<(), BusError> {
        let stream = format!("KV_{CONGESTION_BUCKET}");
        let filter = format!("$KV.{CONGESTION_BUCKET}.>");
        let mut after = 0;
        loop {
            let page = self.bus.read_page_in(&stream, &filter, after).await?;
            for entry in &page.messages {
                self.apply_entry(&entry.subject, &entry.headers, &entry.payload, Some(entry.sequence));
                after = entry.sequence;
            }
            if !page.more {
                return Ok(());
            }
        }
    }

    fn apply_entry(&self, subject: &str, headers: &Headers, value: &[u8], sequence: Option<u64>) {
        let Some(queue) = InputQueue::parse_subject(subject).filter(|_| headers.get(COPY_OF).is_none()) else { return };
        let ended = headers.get(OPERATION).is_some();
        // Who writes what cannot be read has something else to say than that it is congested.
        let said = serde_json::from_slice(value).ok().filter(|_| !ended);
        self.known.write().unwrap_or_else(PoisonError::into_inner).apply_hint(queue, said, sequence, Instant::now());
    }
}

impl CongestionHints {
    /// Takes in what was heard, or what was read at a sequence: the same entry read again is not said again.
    fn apply_hint(&mut self, queue: InputQueue, said: Option<Congestion>, sequence: Option<u64>, now: Instant) {
        let Some(said) = said else {
            self.0.remove(&queue);
            return;
        };
        let full = self.0.len() >= MAX_QUEUES;
        match (self.0.get_mut(&queue), sequence) {
            (None, _) if full => {}
            (Some(known), Some(sequence)) if known.sequence.is_none_or(|before| before == sequence) => {
                known.sequence = Some(sequence);
            }
            _ => _ = self.0.insert(queue, CongestionHint { said, at: now, sequence }),
        }
    }

    /// By the clock of whoever asks: nothing says that an entry of the bucket has expired.
    fn congestion_of(&self, queue: &InputQueue, now: Instant) -> Option<Congestion> {
        self.0.get(queue).filter(|known| now.duration_since(known.at) < LIFETIME).map(|known| known.said)
    }

    /// Later than they lapse: an entry that the server forgets a little later must not count as said again.
    fn drop_expired(&mut self, now: Instant) {
        self.0.retain(|_, known| now.duration_since(known.at) < 2 * LIFETIME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(number: usize) -> InputQueue {
        InputQueue::for_agent(&Name::parse(&format!("a-{number}")).unwrap())
    }

    #[test]
    fn a_queue_is_told_by_its_subject() {
        let ann = Name::parse("ann").unwrap();
        let line = InputQueue::for_user_line(&agent(1).agent, &ann);
        let share = InputQueue::for_user_share(&agent(1).agent, &ann);
        for queue in [agent(1), line, share] {
            assert_eq!(InputQueue::parse_subject(&queue.kv_subject()), Some(queue));
        }
        for subject in ["$KV.OTHER.a", "$KV.KAIRO_CONGESTION", "$KV.KAIRO_CONGESTION.a.b.c"] {
            assert_eq!(InputQueue::parse_subject(subject), None, "{subject}");
        }
    }

    const SAID: Congestion = Congestion { pending: 1_234, limit: 1_000 };

    #[test]
    fn an_announcement_holds_until_it_is_withdrawn_or_was_not_repeated() {
        let mut known = CongestionHints::default();
        let begun = Instant::now();
        known.apply_hint(agent(1), Some(SAID), None, begun);
        known.apply_hint(agent(2), Some(SAID), None, begun);
        known.apply_hint(agent(2), None, None, begun);
        let almost = begun + LIFETIME - Duration::from_millis(1);
        assert_eq!((known.congestion_of(&agent(1), almost), known.congestion_of(&agent(2), begun)), (Some(SAID), None));
        assert_eq!(known.congestion_of(&agent(1), begun + LIFETIME), None);
        known.apply_hint(agent(1), Some(SAID), None, almost);
        known.drop_expired(begun + LIFETIME);
        assert_eq!(known.congestion_of(&agent(1), begun + LIFETIME), Some(SAID));
        known.drop_expired(almost + 2 * LIFETIME);
        assert!(known.0.is_empty());
    }

    #[test]
    fn what_is_read_again_is_not_said_again() {
        let mut known = CongestionHints::default();
        let begun = Instant::now();
        let later = begun + LIFETIME / 2;
        known.apply_hint(agent(1), Some(SAID), None, begun);
        known.apply_hint(agent(2), Some(SAID), Some(7), begun);
        for number in [1, 2] {
            known.apply_hint(agent(number), Some(SAID), Some(7), later);
            assert_eq!(known.congestion_of(&agent(number), begun + LIFETIME), None, "{number}");
            known.drop_expired(begun + LIFETIME);
            known.apply_hint(agent(number), Some(SAID), Some(7), begun + LIFETIME);
            assert_eq!(known.congestion_of(&agent(number), begun + LIFETIME), None, "{number}");
            // Said again while nobody heard it.
            known.apply_hint(agent(number), Some(SAID), Some(8), later);
            assert_eq!(known.congestion_of(&agent(number), begun + LIFETIME), Some(SAID), "{number}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = CongestionHints::default();
        let now = Instant::now();
        for number in 0..2 * MAX_QUEUES {
            known.apply_hint(agent(number), Some(SAID), None, now);
        }
        assert_eq!(known.0.len(), MAX_QUEUES);
        let more = Congestion { pending: 2_000, ..SAID };
        known.apply_hint(agent(0), Some(more), None, now);
        assert_eq!(known.congestion_of(&agent(0), now), Some(more));
    }

    #[test]
    fn the_value_is_what_others_read_and_write() {
        assert_eq!(serde_json::to_string(&SAID).unwrap(), r#"{"pending":1234,"limit":1000}"#);
    }
}
