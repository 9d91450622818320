//! Agents with more inputs waiting than they take on: whoever decides for them announces it, and whoever lets messages in
//! holds back.
//!
//! Hints, not facts: they stand in a bucket in memory, hold for [`LIFETIME`] and are refreshed while it lasts. A hint
//! that is lost lets messages through, which are decided on like all that is stored.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{
    Bus, BusError,
    port::{Headers, Message, Subscription},
};
use crate::{ids::Name, subjects::CONGESTION_BUCKET};

/// How long an announcement holds. It is to be repeated several times within.
pub const LIFETIME: Duration = Duration::from_secs(30);
/// How often the whole bucket is read, beside what is heard: it makes up for what was said while nobody could hear it.
const READ_EVERY: Duration = Duration::from_secs(10);
/// Agents that count as congested at once. Of more, some messages come in that could have been refused.
const MAX_AGENTS: usize = 10_000;

/// What marks the end of an entry of a bucket.
const OPERATION: &str = "KV-Operation";
const DELETED: &str = "DEL";

/// How many inputs of an agent wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Congestion {
    pub pending: u64,
    /// As many may.
    pub limit: u64,
}

/// Says that this many inputs of the agent wait, of `limit` that may. Holds for [`LIFETIME`].
pub async fn announce(bus: &Bus, agent: &Name, pending: u64, limit: u64) {
    let value = serde_json::to_vec(&Congestion { pending, limit }).unwrap_or_default();
    put(bus, agent, Headers::new(), value).await;
}

/// Says that the agent takes messages again.
pub async fn withdraw(bus: &Bus, agent: &Name) {
    let mut headers = Headers::new();
    headers.insert(OPERATION, DELETED);
    put(bus, agent, headers, Vec::new()).await;
}

/// Writes straight to the bucket's subject, without asking for the bucket first.
async fn put(bus: &Bus, agent: &Name, headers: Headers, value: Vec<u8>) {
    let subject = format!("$KV.{CONGESTION_BUCKET}.{agent}");
    if let Err(error) = bus.store(Message::new(subject, headers, value)).await {
        tracing::debug!(%error, %agent, "whether it is congested could not be said");
    }
}

/// Which agents are congested right now.
#[derive(Clone)]
pub struct Congested {
    bus: Bus,
    known: Arc<RwLock<Known>>,
}

#[derive(Debug, Default)]
struct Known(HashMap<Name, Announced>);

#[derive(Debug)]
struct Announced {
    said: Congestion,
    /// When it was said last, by the clock here.
    at: Instant,
    /// The sequence it was read at, which tells whether it was said again; none where it was only heard so far.
    sequence: Option<u64>,
}

impl Congested {
    /// Follows the bucket until `shutdown`.
    pub async fn follow(bus: &Bus, shutdown: CancellationToken) -> Result<Self, BusError> {
        // An entry of a bucket is a message like any other: who subscribes to its subject hears it at once, also from a
        // bucket that was lost with a restart of the server and made again, where a consumer's place means nothing.
        let heard = bus.subscribe(format!("$KV.{CONGESTION_BUCKET}.>")).await?;
        let congested = Self { bus: bus.clone(), known: Arc::default() };
        let following = congested.clone();
        bus.spawn(async move { _ = shutdown.run_until_cancelled(following.listen(heard)).await });
        Ok(congested)
    }

    /// How congested the agent is; none where it takes messages.
    pub fn of(&self, agent: &Name) -> Option<Congestion> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).of(agent, Instant::now())
    }

    async fn listen(self, mut heard: Subscription) {
        let mut readings = interval(READ_EVERY);
        readings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                // What is heard meanwhile is newer, and waits until the bucket was read.
                _ = readings.tick() => self.read().await,
                entry = heard.next() => match entry {
                    Some(entry) => self.take(&entry.subject, &entry.headers, &entry.payload, None),
                    None => return,
                },
            }
        }
    }

    async fn read(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).forget_lapsed(Instant::now());
        if let Err(error) = self.read_all().await {
            tracing::debug!(%error, "congestion could not be read");
            // A restart of the server may have lost the bucket.
            if let Err(error) = self.bus.provision().await {
                tracing::debug!(%error, "nor made again");
            }
        }
    }

    async fn read_all(&self) -> Result<(), BusError> {
        let (stream, filter) = (format!("KV_{CONGESTION_BUCKET}"), format!("$KV.{CONGESTION_BUCKET}.>"));
        let mut after = 0;
        loop {
            let page = self.bus.read_in(&stream, &filter, after).await?;
            for entry in &page.messages {
                self.take(&entry.subject, &entry.headers, &entry.payload, Some(entry.sequence));
                after = entry.sequence;
            }
            if !page.more {
                return Ok(());
            }
        }
    }

    fn take(&self, subject: &str, headers: &Headers, value: &[u8], sequence: Option<u64>) {
        let Some(Ok(agent)) = subject.rsplit('.').next().map(Name::parse) else { return };
        let ended = headers.get(OPERATION).is_some();
        // Who writes what cannot be read has something else to say than that the agent is congested.
        let said = serde_json::from_slice(value).ok().filter(|_| !ended);
        self.known.write().unwrap_or_else(PoisonError::into_inner).note(agent, said, sequence, Instant::now());
    }
}

impl Known {
    /// Takes in what was heard, or what was read at a sequence: the same entry read again is not said again.
    fn note(&mut self, agent: Name, said: Option<Congestion>, sequence: Option<u64>, now: Instant) {
        let Some(said) = said else {
            self.0.remove(&agent);
            return;
        };
        let full = self.0.len() >= MAX_AGENTS;
        match (self.0.get_mut(&agent), sequence) {
            (None, _) if full => {}
            (Some(known), Some(sequence)) if known.sequence.is_none_or(|before| before == sequence) => {
                known.sequence = Some(sequence);
            }
            _ => _ = self.0.insert(agent, Announced { said, at: now, sequence }),
        }
    }

    /// By the clock of whoever asks: nothing says that an entry of the bucket has expired.
    fn of(&self, agent: &Name, now: Instant) -> Option<Congestion> {
        self.0.get(agent).filter(|known| now.duration_since(known.at) < LIFETIME).map(|known| known.said)
    }

    /// Later than they lapse: an entry that the server forgets a little later must not count as said again.
    fn forget_lapsed(&mut self, now: Instant) {
        self.0.retain(|_, known| now.duration_since(known.at) < 2 * LIFETIME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(number: usize) -> Name {
        Name::parse(&format!("a-{number}")).unwrap()
    }

    const SAID: Congestion = Congestion { pending: 1_234, limit: 1_000 };

    #[test]
    fn an_announcement_holds_until_it_is_withdrawn_or_was_not_repeated() {
        let (mut known, begun) = (Known::default(), Instant::now());
        known.note(agent(1), Some(SAID), None, begun);
        known.note(agent(2), Some(SAID), None, begun);
        known.note(agent(2), None, None, begun);
        let almost = begun + LIFETIME - Duration::from_millis(1);
        assert_eq!((known.of(&agent(1), almost), known.of(&agent(2), begun)), (Some(SAID), None));
        assert_eq!(known.of(&agent(1), begun + LIFETIME), None);
        known.note(agent(1), Some(SAID), None, almost);
        known.forget_lapsed(begun + LIFETIME);
        assert_eq!(known.of(&agent(1), begun + LIFETIME), Some(SAID));
        known.forget_lapsed(almost + 2 * LIFETIME);
        assert!(known.0.is_empty());
    }

    #[test]
    fn what_is_read_again_is_not_said_again() {
        let (mut known, begun) = (Known::default(), Instant::now());
        let later = begun + LIFETIME / 2;
        known.note(agent(1), Some(SAID), None, begun);
        known.note(agent(2), Some(SAID), Some(7), begun);
        for number in [1, 2] {
            known.note(agent(number), Some(SAID), Some(7), later);
            assert_eq!(known.of(&agent(number), begun + LIFETIME), None, "{number}");
            known.forget_lapsed(begun + LIFETIME);
            known.note(agent(number), Some(SAID), Some(7), begun + LIFETIME);
            assert_eq!(known.of(&agent(number), begun + LIFETIME), None, "{number}");
            // Said again while nobody heard it.
            known.note(agent(number), Some(SAID), Some(8), later);
            assert_eq!(known.of(&agent(number), begun + LIFETIME), Some(SAID), "{number}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut known, now) = (Known::default(), Instant::now());
        for number in 0..2 * MAX_AGENTS {
            known.note(agent(number), Some(SAID), None, now);
        }
        assert_eq!(known.0.len(), MAX_AGENTS);
        let more = Congestion { pending: 2_000, ..SAID };
        known.note(agent(0), Some(more), None, now);
        assert_eq!(known.of(&agent(0), now), Some(more));
    }

    #[test]
    fn the_value_is_what_others_read_and_write() {
        assert_eq!(serde_json::to_string(&SAID).unwrap(), r#"{"pending":1234,"limit":1000}"#);
    }
}
