//! A cache of recent user messages, which detects a repeated message without a query.
//!
//! It is filled from the tail of the log, and once from the log itself when the gateway starts. Older messages, and
//! those beyond its capacity, are forgotten; the cache knows that, and the read model has to be asked about them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kairo_core::{bus::Bus, record::RawMessage, subjects::USER_MESSAGE};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::log_follower::LogFollower;

/// The largest clock skew allowed between servers and gateways.
const CLOCKS: Duration = Duration::from_secs(60);

/// The result of a lookup in [`RecentMessages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageLookup {
    /// The message is in the log at this sequence.
    At(u64),
    Never,
    /// The message may be older than the cache reaches.
    Unknown,
}

#[derive(Clone)]
pub struct RecentMessages {
    bus: Bus,
    /// The least time that a message is remembered, as long as there is room.
    span: SignedDuration,
    remembered: Arc<Mutex<MessageGenerations>>,
}

impl RecentMessages {
    /// Remembers messages for `span`, up to `capacity` of them.
    pub fn new(bus: &Bus, span: Duration, capacity: usize) -> Self {
        let span = SignedDuration::try_from(span + 2 * CLOCKS).unwrap_or(SignedDuration::MAX);
        let remembered = MessageGenerations::new(span, capacity);
        Self { bus: bus.clone(), span, remembered: Arc::new(Mutex::new(remembered)) }
    }

    fn lock_cache(&self) -> MutexGuard<'_, MessageGenerations> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up the message of this event id, which cannot have been sent before `since`; none if it may have been sent
    /// at any time.
    pub fn find(&self, event_id: Uuid, since: Option<Timestamp>) -> MessageLookup {
        let since = since.and_then(|since| since.checked_sub(CLOCKS).ok());
        self.lock_cache().find(event_id, since)
    }

    /// Remembers a message of the log if it is a user's message.
    pub fn witness(&self, message: &RawMessage) {
        if USER_MESSAGE.matches(&message.subject)
            && let Some((event_id, _)) = message.ids()
        {
            self.lock_cache().insert_message(event_id, message.sequence, message.stored);
        }
    }

    /// Reads the messages from before the tail, in a task of its own. Until that is done, no lookup returns
    /// [`MessageLookup::Never`].
    pub fn look_back(&self, buffer: usize, shutdown: CancellationToken) {
        let recent = self.clone();
        let since = Timestamp::now().checked_sub(self.span).unwrap_or(Timestamp::MIN);
        let looking_back = async move {
            let mut said = LogFollower::headers_since(&recent.bus, USER_MESSAGE.stored_filter(), since, buffer);
            while let Some(message) = said.next_pending().await {
                recent.witness(&message);
            }
            recent.lock_cache().mark_complete(since);
        };
        tokio::spawn(async move { shutdown.run_until_cancelled(looking_back).await });
    }
}

/// Two generations: when the younger one is long or full enough, the older one is forgotten.
#[derive(Debug)]
struct MessageGenerations {
    span: SignedDuration,
    /// The most messages of one generation.
    capacity: usize,
    young: MessageGeneration,
    old: MessageGeneration,
    /// The time since which all messages were recorded; none until the log was read back.
    complete_since: Option<Timestamp>,
    /// The time of the newest forgotten message.
    forgotten: Timestamp,
}

#[derive(Debug, Default)]
struct MessageGeneration {
    sequences: HashMap<Uuid, u64>,
    begun: Option<Timestamp>,
    newest: Timestamp,
}

impl MessageGenerations {
    fn new(span: SignedDuration, capacity: usize) -> Self {
        let young = MessageGeneration::default();
        let old = MessageGeneration::default();
        let forgotten = Timestamp::MIN;
        Self { span, capacity: (capacity / 2).max(1), young, old, complete_since: None, forgotten }
    }

    fn insert_message(&mut self, event_id: Uuid, sequence: u64, stored: Timestamp) {
        let is_long = self.young.begun.is_some_and(|begun| stored.duration_since(begun) > self.span);
        if is_long || self.young.sequences.len() >= self.capacity {
            let forgotten = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            if !forgotten.sequences.is_empty() {
                self.forgotten = self.forgotten.max(forgotten.newest);
            }
        }
        // Written twice after the stream's duplicate window: the first time counts.
        if self.old.sequences.contains_key(&event_id) {
            return;
        }
        self.young.begun.get_or_insert(stored);
        self.young.newest = self.young.newest.max(stored);
        self.young.sequences.entry(event_id).and_modify(|known| *known = sequence.min(*known)).or_insert(sequence);
    }

    fn mark_complete(&mut self, since: Timestamp) {
        self.complete_since = Some(since);
    }

    fn find(&self, event_id: Uuid, since: Option<Timestamp>) -> MessageLookup {
        let known = self.young.sequences.get(&event_id).or_else(|| self.old.sequences.get(&event_id));
        match (known, since, self.complete_since) {
            (Some(sequence), ..) => MessageLookup::At(*sequence),
            (None, Some(since), Some(complete)) if complete <= since && self.forgotten < since => MessageLookup::Never,
            _ => MessageLookup::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn remembered(capacity: usize) -> MessageGenerations {
        MessageGenerations::new(SignedDuration::from_secs(100), capacity)
    }

    fn find(remembered: &MessageGenerations, id: u128, since: i64) -> MessageLookup {
        remembered.find(Uuid::from_u128(id), Some(at(since)))
    }

    #[test]
    fn what_is_not_remembered_was_never_said_only_where_everything_is() {
        let mut remembered = remembered(100);
        remembered.insert_message(Uuid::from_u128(1), 7, at(1_000));
        assert_eq!(
            (find(&remembered, 1, 999), find(&remembered, 2, 999)),
            (MessageLookup::At(7), MessageLookup::Unknown)
        );
        remembered.mark_complete(at(900));
        assert_eq!(
            (find(&remembered, 2, 999), find(&remembered, 2, 899)),
            (MessageLookup::Never, MessageLookup::Unknown)
        );
        assert_eq!(remembered.find(Uuid::from_u128(2), None), MessageLookup::Unknown);
    }

    #[test]
    fn a_message_is_remembered_for_its_span_and_forgotten_after_twice_as_long() {
        let mut remembered = remembered(1_000);
        remembered.mark_complete(at(0));
        for second in 0..=250 {
            remembered.insert_message(Uuid::from_u128(1 + second), second as u64, at(second as i64));
        }
        for second in 150..=250 {
            assert_eq!(find(&remembered, 1 + second as u128, 150), MessageLookup::At(second));
        }
        assert_eq!(
            (find(&remembered, 9_999, 150), find(&remembered, 1, 0)),
            (MessageLookup::Never, MessageLookup::Unknown)
        );
        assert!(remembered.young.sequences.len() + remembered.old.sequences.len() <= 202);
    }

    #[test]
    fn what_does_not_fit_is_known_to_be_forgotten() {
        let mut remembered = remembered(10);
        remembered.mark_complete(at(0));
        for second in 0..100 {
            remembered.insert_message(Uuid::from_u128(1 + second), second as u64, at(second as i64));
        }
        assert!(remembered.young.sequences.len() + remembered.old.sequences.len() <= 10);
        assert_eq!(
            (find(&remembered, 99, 50), find(&remembered, 1, 50)),
            (MessageLookup::At(98), MessageLookup::Unknown)
        );
        assert_eq!(find(&remembered, 9_999, 95), MessageLookup::Never);
    }

    #[test]
    fn what_is_written_twice_stands_where_it_was_written_first() {
        let mut remembered = remembered(4);
        remembered.insert_message(Uuid::from_u128(1), 7, at(1));
        remembered.insert_message(Uuid::from_u128(1), 9, at(2));
        // Looking back comes later than the tail.
        remembered.insert_message(Uuid::from_u128(1), 3, at(0));
        assert_eq!(find(&remembered, 1, 0), MessageLookup::At(3));
        remembered.insert_message(Uuid::from_u128(2), 10, at(3));
        remembered.insert_message(Uuid::from_u128(3), 11, at(4));
        remembered.insert_message(Uuid::from_u128(1), 12, at(5));
        assert_eq!(find(&remembered, 1, 0), MessageLookup::At(3));
    }
}
