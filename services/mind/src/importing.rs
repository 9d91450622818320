//! Taking in a conversation that was had elsewhere: history that nobody answers, and that anybody may have written.

use jiff::Timestamp;
use kairo_events::{media, record::Record};
use kairo_proto::{
    v1::{AgentImported, ImportedMessage, ImportedThread},
    words::MessageRole,
};
use uuid::Uuid;

use super::{
    state::AgentState,
    thread::{Entry, Keeping, Thread, cut},
    words::Words,
};

/// Placeholder for the position last heard of an imported thread, until its user speaks in it here.
const HEARD_ELSEWHERE: u64 = 1;

impl AgentState {
    /// Takes in a part of it, once: also whoever has forgotten that passes over what a thread has already.
    pub(super) fn imported(&mut self, record: &Record, imported: &AgentImported) {
        if !self.seen.see(&format!("import/{}", record.envelope.id)) {
            return;
        }
        let is_begun = imported.threads.iter().filter(|thread| self.begin_imported(imported, thread));
        let begun: Vec<&str> = is_begun.map(|thread| thread.thread_id.as_str()).collect();
        for message in imported.messages.iter().filter(|message| begun.contains(&message.thread_id.as_str())) {
            self.remember_said(record, message);
        }
        let last = imported.messages.last().filter(|_| imported.part == imported.parts);
        if let Some(last) = last.filter(|last| begun.contains(&last.thread_id.as_str())) {
            self.go_on_with_imported(record, &last.thread_id, &imported.user);
        }
        self.forget_idle_threads();
    }

    /// Makes it a thread of the user's, if this part of it is new there. Until the user speaks in it, it makes room first: what
    /// somebody takes in displaces nobody's conversation.
    fn begin_imported(&mut self, imported: &AgentImported, named: &ImportedThread) -> bool {
        let AgentImported { user, part, outside, .. } = imported;
        let is_known = self.threads.contains_key(&named.thread_id);
        let thread = self.threads.entry(named.thread_id.clone()).or_default();
        if is_known && (thread.user != *user || thread.imported >= *part) {
            return false;
        }
        if !is_known {
            **thread = Thread { user: user.clone(), announced: true, heard: HEARD_ELSEWHERE, ..Thread::default() };
            thread.summarize(&cut(&named.title), &cut(&named.summary));
        }
        thread.imported = *part;
        thread.outside.see(outside);
        true
    }

    fn remember_said(&mut self, record: &Record, message: &ImportedMessage) {
        let turn = Uuid::parse_str(&message.message_id).unwrap_or_default();
        let entry = match message.role_word() {
            MessageRole::User => Entry::User { turn, words: Words::said(&message.text, &message.parts) },
            MessageRole::Agent => Entry::Said { turn, text: cut(&media::in_words(&message.text, &message.parts)) },
            MessageRole::Failure | MessageRole::Unknown(_) => return,
        };
        let Keeping { limit, now, in_steps } = self.keeping();
        let said_at = message.time.parse::<Timestamp>().ok().map(Timestamp::as_second);
        let keeping = Keeping { limit, now: now.map(|now| said_at.unwrap_or(now)), in_steps };
        if let Some(thread) = self.threads.get_mut(&message.thread_id) {
            // It is no news of the day on which it is taken in.
            let (news, touched) = (thread.news, thread.touched);
            thread.push(record.sequence, entry, keeping);
            (thread.news, thread.touched) = (news, touched);
        }
    }

    /// A user who is in no thread of this agent's yet goes on where the conversation ended.
    fn go_on_with_imported(&mut self, record: &Record, thread_id: &str, user: &str) {
        let mut own = self.threads.values().filter(|thread| thread.user == user && !thread.work);
        if own.any(|thread| thread.heard > HEARD_ELSEWHERE) {
            return;
        }
        if let Some(thread) = self.threads.get_mut(thread_id) {
            (thread.heard, thread.touched) = (record.sequence, record.sequence);
        }
    }
}
