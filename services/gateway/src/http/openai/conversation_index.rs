//! Finds the thread of a conversation whose history a chat client keeps itself.
//!
//! A client sends the history; its digest finds the thread that holds exactly these messages. A gateway remembers the
//! conversations that any gateway answered while it ran, and those at the end of the log that it reads when it starts.
//! For any other, and where two threads hold the same messages, a new thread begins with the history that the client
//! sends. So no thread is ever shown to anybody who does not bring its messages.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kairo_core::{
    bus::{Bus, BusError},
    ids,
    vocabulary::ANSWERS,
};
use kairo_core::{
    record::RawMessage,
    subjects::{AGENT_DECISION, USER_MESSAGE},
};
use kairo_proto::v1::UserMessage;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    request::history::HistoryEntry,
    streamed_answer::BETWEEN,
    turn::{ChatTurn, TurnOutcome},
};
use crate::{
    log_follower::{LogFollower, end_of_log},
    tail::TailMessage,
};

/// The longest time that a request waits until the end of the log is read.
const LOOKING_BACK: Duration = Duration::from_secs(10);

/// Returns the digest of a conversation after these entries. `whose` separates conversations that must never be one,
/// whatever their entries are.
pub fn history_digest(whose: &[&str], entries: &[HistoryEntry]) -> Uuid {
    entries.iter().fold(ids::from_parts("openai-conversation", whose), extend_digest)
}

/// The digest of a conversation that goes on with this entry.
pub fn extend_digest(digest: Uuid, entry: &HistoryEntry) -> Uuid {
    let digest = digest.to_string();
    let calls: Vec<&str> =
        entry.message.calls.iter().flat_map(|call| [call.call_id.as_str(), call.tool.as_str()]).collect();
    let parts = [digest.as_str(), &entry.message.role, entry.mark.trim(), &entry.message.call_id];
    ids::from_parts("openai-entry", &parts.into_iter().chain(calls).collect::<Vec<_>>())
}

/// The thread of a conversation, and the user's last message in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationPosition {
    /// The thread, as the user calls it.
    pub thread: String,
    /// The event of the user's last message in it.
    pub last: Uuid,
}

#[derive(Clone)]
pub struct ConversationIndex {
    capacity: usize,
    remembered: Arc<Mutex<IndexTables>>,
    /// Cancelled when the end of the log was read.
    is_restored: CancellationToken,
    /// True once the epoch was seen to allow what chat clients bring; the epoch never falls.
    is_new_enough: Arc<AtomicBool>,
}

/// Digests and names: some 200 bytes for each conversation.
struct IndexTables {
    /// By digest; none where several threads hold the same.
    positions: TwoGenerationMap<Uuid, Option<ConversationPosition>>,
    /// The last message of a thread, as far as this gateway knows.
    last: TwoGenerationMap<String, Uuid>,
    /// Turns of chat clients that are not answered yet.
    open: TwoGenerationMap<Uuid, OpenTurn>,
    /// Messages whose client went away before it got anything of the answer.
    unanswered: TwoGenerationMap<Uuid, ()>,
}

/// A turn that is not answered yet.
struct OpenTurn {
    conversation: Uuid,
    thread: String,
    turn: ChatTurn,
}

impl ConversationIndex {
    /// Remembers up to `capacity` conversations.
    pub fn new(capacity: usize) -> Self {
        let remembered = IndexTables {
            positions: TwoGenerationMap::new(capacity),
            last: TwoGenerationMap::new(capacity),
            open: TwoGenerationMap::new(capacity),
            unanswered: TwoGenerationMap::new(capacity),
        };
        let remembered = Arc::new(Mutex::new(remembered));
        Self { capacity, remembered, is_restored: CancellationToken::new(), is_new_enough: Arc::default() }
    }

    fn lock_tables(&self) -> MutexGuard<'_, IndexTables> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place of the one conversation with this digest, and true if nothing was said there since. For an
    /// unknown digest, waits until the end of the log is read.
    pub async fn find(&self, digest: Uuid) -> Option<(ConversationPosition, bool)> {
        let known = self.find_indexed(digest);
        if known.is_some() || self.is_restored.is_cancelled() {
            return known;
        }
        // A log that cannot be read now costs the conversation its thread, and the client no more than that.
        let _ = timeout(LOOKING_BACK, self.is_restored.cancelled()).await;
        self.find_indexed(digest)
    }

    fn find_indexed(&self, digest: Uuid) -> Option<(ConversationPosition, bool)> {
        let remembered = self.lock_tables();
        let place = remembered.positions.get(&digest)?.clone()?;
        let is_last = remembered.last.get(&place.thread).is_none_or(|last| *last == place.last);
        Some((place, is_last))
    }

    /// Takes in a message of the log: what chat clients say by way of any gateway, and what they are answered.
    pub fn apply_message(&self, message: &RawMessage, max_body: usize) {
        let Some((event_id, correlation)) = message.ids() else { return };
        if USER_MESSAGE.matches(&message.subject) {
            let record = message.read(max_body);
            let said = record.as_ref().ok().and_then(|record| UserMessage::of(&record.body));
            let Some((said, chat)) = said.and_then(|said| Some((said, said.chat.as_ref()?))) else { return };
            if let Ok(conversation) = Uuid::parse_str(&chat.conversation) {
                let turn = ChatTurn::new(event_id, said.message_id.clone());
                self.note_message(&said.thread_id, event_id);
                self.lock_tables()
                    .open
                    .insert(event_id, OpenTurn { conversation, thread: said.thread_id.clone(), turn });
            }
        } else if AGENT_DECISION.matches(&message.subject) {
            let Some(mut open) = self.lock_tables().open.remove(&correlation) else { return };
            open.turn.apply_message(&TailMessage::decode(message, max_body));
            match open.turn.outcome() {
                Some(TurnOutcome::Replied) => self.note_reply(correlation, &open),
                Some(TurnOutcome::Failed(_) | TurnOutcome::Undelivered(_)) => {}
                Some(TurnOutcome::Question(_)) | None => self.lock_tables().open.insert(correlation, open),
            }
        }
    }

    fn note_reply(&self, event_id: Uuid, open: &OpenTurn) {
        let (_, calls) = open.turn.reply_ending();
        let answered = HistoryEntry::from_answer(&open.turn.agent_messages().join(BETWEEN), calls.to_vec());
        let place = ConversationPosition { thread: open.thread.clone(), last: event_id };
        self.note_answer(extend_digest(open.conversation, &answered), place);
    }

    /// Something was said in a thread.
    pub fn note_message(&self, thread: &str, event_id: Uuid) {
        self.lock_tables().last.insert(thread.to_owned(), event_id);
    }

    /// A client was answered: the conversation of this digest stands there.
    pub fn note_answer(&self, digest: Uuid, place: ConversationPosition) {
        let mut remembered = self.lock_tables();
        let is_other =
            |known: &Option<ConversationPosition>| known.as_ref().is_none_or(|known| known.thread != place.thread);
        let is_ambiguous = remembered.positions.get(&digest).is_some_and(is_other);
        remembered.positions.insert(digest, (!is_ambiguous).then_some(place));
    }

    /// Reads the last `messages` of the log, of `buffer` at once, in the background: conversations of before a restart go on in their
    /// threads.
    pub fn restore_from_log(&self, bus: &Bus, messages: u64, buffer: usize, shutdown: CancellationToken) {
        let conversations = self.clone();
        let bus = bus.clone();
        let looking_back = async move {
            let end = bus.retry_until_success("the end of the log cannot be read yet", || end_of_log(&bus)).await;
            let earlier = Self::new(conversations.capacity);
            let mut log = LogFollower::new(&bus, String::new(), end.saturating_sub(messages), buffer);
            while let Some(message) = log.next_pending().await {
                earlier.apply_message(&message, bus.limits.max_body_bytes);
            }
            conversations.merge_earlier(&earlier);
            conversations.is_restored.cancel();
        };
        tokio::spawn(async move { shutdown.run_until_cancelled(looking_back).await });
    }

    /// Takes over what `earlier` remembers and nothing later replaced.
    fn merge_earlier(&self, earlier: &Self) {
        let mut earlier = earlier.lock_tables();
        let mut remembered = self.lock_tables();
        for (digest, place) in earlier.positions.drain() {
            match remembered.positions.get(&digest) {
                None => remembered.positions.insert(digest, place),
                Some(later) => {
                    let thread =
                        |place: &Option<ConversationPosition>| place.as_ref().map(|place| place.thread.clone());
                    if thread(later) != thread(&place) {
                        remembered.positions.insert(digest, None);
                    }
                }
            }
        }
        for (thread, last) in earlier.last.drain() {
            if remembered.last.get(&thread).is_none() {
                remembered.last.insert(thread, last);
            }
        }
        for (event_id, open) in earlier.open.drain() {
            remembered.open.insert(event_id, open);
        }
    }

    /// A client is gone that was not answered.
    pub fn note_unanswered(&self, event_id: Uuid) {
        self.lock_tables().unanswered.insert(event_id, ());
    }

    /// Returns true if the client of this message left before it was answered; the caller takes its place.
    pub fn take_unanswered(&self, event_id: Uuid) -> bool {
        self.lock_tables().unanswered.remove(&event_id).is_some()
    }

    /// Returns true if the epoch allows messages to carry what chat clients bring.
    pub async fn allows_chat_requests(&self, bus: &Bus) -> Result<bool, BusError> {
        if !self.is_new_enough.load(Ordering::Relaxed) {
            self.is_new_enough.store(bus.current_epoch().await? >= ANSWERS, Ordering::Relaxed);
        }
        Ok(self.is_new_enough.load(Ordering::Relaxed))
    }
}

/// Two generations: when the younger one is full, the older one is forgotten.
struct TwoGenerationMap<K, V> {
    most: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash, V> TwoGenerationMap<K, V> {
    fn new(capacity: usize) -> Self {
        Self { most: (capacity / 2).max(1), young: HashMap::new(), old: HashMap::new() }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.most && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// All of it, the older generation first.
    fn drain(&mut self) -> impl Iterator<Item = (K, V)> {
        std::mem::take(&mut self.old).into_iter().chain(std::mem::take(&mut self.young))
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let young = self.young.remove(key);
        let old = self.old.remove(key);
        young.or(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(thread: &str, last: u128) -> ConversationPosition {
        ConversationPosition { thread: thread.to_owned(), last: Uuid::from_u128(last) }
    }

    #[test]
    fn a_conversation_is_told_by_whose_it_is_and_by_all_that_was_said() {
        let answers =
            |texts: &[&str]| texts.iter().map(|text| HistoryEntry::from_answer(text, Vec::new())).collect::<Vec<_>>();
        let of = |whose: &str, texts: &[&str]| history_digest(&[whose, "coach"], &answers(texts));
        assert_eq!(
            of("ann", &["a", "b"]),
            extend_digest(of("ann", &["a"]), &HistoryEntry::from_answer(" b\n", Vec::new()))
        );
        assert_ne!(of("ann", &["a", "b"]), of("bob", &["a", "b"]));
        assert_ne!(of("ann", &["a", "b"]), of("ann", &["ab"]));
        assert_ne!(of("ann", &["a", "b"]), of("ann", &["b", "a"]));
    }

    #[test]
    fn where_two_threads_hold_the_same_neither_is_found() {
        let conversations = ConversationIndex::new(10);
        let same = Uuid::from_u128(1);
        conversations.note_answer(same, place("t", 7));
        assert_eq!(conversations.find_indexed(same), Some((place("t", 7), true)));
        conversations.note_message("t", Uuid::from_u128(8));
        assert_eq!(conversations.find_indexed(same), Some((place("t", 7), false)));
        conversations.note_answer(same, place("u", 9));
        conversations.note_answer(same, place("u", 9));
        assert_eq!(conversations.find_indexed(same), None);
    }

    #[test]
    fn what_the_end_of_the_log_tells_replaces_nothing_later() {
        let earlier = ConversationIndex::new(10);
        let conversations = ConversationIndex::new(10);
        let [gone, kept, shared] = [1, 2, 3].map(Uuid::from_u128);
        earlier.note_answer(gone, place("t", 7));
        earlier.note_message("t", Uuid::from_u128(7));
        earlier.note_answer(kept, place("u", 8));
        earlier.note_message("u", Uuid::from_u128(8));
        earlier.note_answer(shared, place("v", 9));
        conversations.note_message("u", Uuid::from_u128(10));
        conversations.note_answer(shared, place("w", 11));
        conversations.merge_earlier(&earlier);
        assert_eq!(conversations.find_indexed(gone), Some((place("t", 7), true)));
        assert_eq!(conversations.find_indexed(kept), Some((place("u", 8), false)), "something was said since");
        assert_eq!(conversations.find_indexed(shared), None, "two threads hold the same");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let conversations = ConversationIndex::new(10);
        for number in 0..100 {
            conversations.note_answer(Uuid::from_u128(number), place("t", number));
            conversations.note_unanswered(Uuid::from_u128(number));
        }
        assert!(
            conversations.find_indexed(Uuid::from_u128(99)).is_some()
                && conversations.find_indexed(Uuid::from_u128(1)).is_none()
        );
        assert!(
            conversations.take_unanswered(Uuid::from_u128(99)) && !conversations.take_unanswered(Uuid::from_u128(99))
        );
    }
}
