//! Hearing what users say: which turn their words begin, and putting them into a thread.

use kairo_events::{record::Record, threads};
use kairo_proto::v1::AgentMessage;
use uuid::Uuid;

use super::{
    message_content::MessageContent,
    state::{AgentState, TurnCause},
    thread::ThreadEntry,
};

impl AgentState {
    /// The thread a message is of: the one it names, or its user's own with this agent.
    pub fn thread_id_of(&self, record: &Record, message: &AgentMessage) -> String {
        let agent = record.subject.split('.').nth(2).unwrap_or_default();
        let user = message.user.as_str();
        let named = message.thread_id.as_str();
        if named.is_empty() {
            return threads::single_thread_id(agent, user);
        }
        // Ids of threads that the agent began do not show whose they are; it knows.
        let is_his = |id: &&str| self.threads.get(*id).is_some_and(|thread| thread.user == user);
        let called = threads::name_from_id(agent, user, named).filter(|_| !self.threads.contains_key(named));
        called.filter(is_his).unwrap_or(named).to_owned()
    }

    /// Returns true if the message is a duplicate.
    pub fn has_seen_message(&self, message: &AgentMessage) -> bool {
        self.seen.contains(&message_key(message))
    }

    pub(super) fn apply_message(&mut self, record: &Record, message: &AgentMessage) {
        if !self.seen.insert(&message_key(message)) {
            return;
        }
        let correlation = record.envelope.correlation_id;
        let topics = self.profile.as_ref().is_some_and(|profile| profile.topics);
        // Where the user does not say which thread it belongs to, the decision will.
        let thread_id = match topics && message.thread_id.is_empty() {
            true => String::new(),
            false => self.thread_id_of(record, message),
        };
        let of = self.threads.get(&thread_id).map(|thread| thread.user.as_str()).unwrap_or_default();
        if !of.is_empty() && of != message.user || self.is_background_thread(&thread_id) {
            return self.refuse_thread(record, message, &thread_id);
        }
        if let Some(reason) = self.moved_on_reason(message, &thread_id) {
            return self.refuse_message(record, message, super::chat_client::MOVED_ON, reason);
        }
        self.begin_turn(correlation, record, TurnCause::Message, &thread_id, &message.user);
        if let Some(turn) = self.turns.get_mut(&correlation) {
            turn.message_id.clone_from(&message.message_id);
            turn.unplaced = Some(MessageContent::from_message(message));
        }
        self.apply_environment(correlation, message);
        self.apply_chat(record, message, correlation, &thread_id);
        if !thread_id.is_empty() {
            self.place_in_thread(record.sequence, correlation, &thread_id);
        }
    }

    /// Puts a turn's words into a thread.
    pub(super) fn place_in_thread(&mut self, sequence: u64, turn_id: Uuid, thread_id: &str) {
        let Some(turn) = self.turns.get_mut(&turn_id) else { return };
        turn.thread_id = thread_id.to_owned();
        let words = turn.unplaced.take().unwrap_or_default();
        let user = turn.user.clone();
        let outside = turn.outside.clone();
        let is_silent = turn.chat.as_ref().is_some_and(|chat| chat.has_results);
        let thread = self.threads.entry(thread_id.to_owned()).or_default();
        thread.outside = std::mem::take(&mut thread.outside).merge(&outside);
        if thread.user.is_empty() {
            thread.user = user;
        }
        thread.heard = sequence;
        thread.head = turn_id;
        thread.remember_event(&turn_id.to_string());
        // What only brings results says nothing.
        if !(is_silent && words == MessageContent::default()) {
            self.add_entry(sequence, thread_id, ThreadEntry::User { turn: turn_id, words });
        }
    }

    /// Threads are their users' own: who names another's is told that there is none.
    fn refuse_thread(&mut self, record: &Record, message: &AgentMessage, thread_id: &str) {
        let reason = format!("there is no thread {thread_id:?} of {}", message.user);
        self.refuse_message(record, message, "unknown_thread", reason);
    }

    fn refuse_message(&mut self, record: &Record, message: &AgentMessage, kind: &str, reason: String) {
        let turn_id = record.envelope.correlation_id;
        let cause = TurnCause::Refused { kind: kind.to_owned(), message: reason };
        self.begin_turn(turn_id, record, cause, "", &message.user);
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.message_id.clone_from(&message.message_id);
        }
    }
}

/// Users choose message ids for themselves.
fn message_key(message: &AgentMessage) -> String {
    format!("{}/{}", message.user, message.message_id)
}
