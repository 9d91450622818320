//! Taking in a conversation that was had elsewhere: history that nobody answers, and that anybody may have written.

use jiff::Timestamp;
use kairo_events::{media, record::Record};
use kairo_proto::{
    v1::{AgentImported, ImportedMessage, ImportedThread},
    words::MessageRole,
};
use uuid::Uuid;

use super::{
    message_content::MessageContent,
    state::AgentState,
    thread::{EntryRetention, Thread, ThreadEntry, cut_to_entry},
};

/// Placeholder for the position last heard of an imported thread, until its user speaks in it here.
const HEARD_ELSEWHERE: u64 = 1;

impl AgentState {
    /// Takes in a part of it, once: also whoever has forgotten that passes over what a thread has already.
    pub(super) fn apply_import(&mut self, record: &Record, imported: &AgentImported) {
        if !self.seen.insert(&format!("import/{}", record.envelope.id)) {
            return;
        }
        let is_begun = imported.threads.iter().filter(|thread| self.begin_imported_thread(imported, thread));
        let begun: Vec<&str> = is_begun.map(|thread| thread.thread_id.as_str()).collect();
        for message in imported.messages.iter().filter(|message| begun.contains(&message.thread_id.as_str())) {
            self.import_message(record, message);
        }
        let last = imported.messages.last().filter(|_| imported.part == imported.parts);
        if let Some(last) = last.filter(|last| begun.contains(&last.thread_id.as_str())) {
            self.resume_imported_thread(record, &last.thread_id, &imported.user);
        }
        self.forget_idle_threads();
    }

    /// Makes it a thread of the user's, if this part of it is new there. Until the user speaks in it, it makes room first: what
    /// somebody takes in displaces nobody's conversation.
    fn begin_imported_thread(&mut self, imported: &AgentImported, named: &ImportedThread) -> bool {
        let AgentImported { user, part, outside, .. } = imported;
        let is_known = self.threads.contains_key(&named.thread_id);
        let thread = self.threads.entry(named.thread_id.clone()).or_default();
        if is_known && (thread.user != *user || thread.imported >= *part) {
            return false;
        }
        if !is_known {
            **thread = Thread { user: user.clone(), announced: true, heard: HEARD_ELSEWHERE, ..Thread::default() };
            thread.set_summary(&cut_to_entry(&named.title), &cut_to_entry(&named.summary));
        }
        thread.imported = *part;
        thread.outside.add_marks(outside);
        true
    }

    fn import_message(&mut self, record: &Record, message: &ImportedMessage) {
        let turn = Uuid::parse_str(&message.message_id).unwrap_or_default();
        let entry = match message.role_word() {
            MessageRole::User => {
                ThreadEntry::User { turn, words: MessageContent::from_parts(&message.text, &message.parts) }
            }
            MessageRole::Agent => {
                ThreadEntry::Said { turn, text: cut_to_entry(&media::text_with_parts(&message.text, &message.parts)) }
            }
            MessageRole::Failure | MessageRole::Unknown(_) => return,
        };
        let EntryRetention { limit, now, in_steps } = self.entry_retention();
        let said_at = message.time.parse::<Timestamp>().ok().map(Timestamp::as_second);
        let keeping = EntryRetention { limit, now: now.map(|now| said_at.unwrap_or(now)), in_steps };
        if let Some(thread) = self.threads.get_mut(&message.thread_id) {
            // It is no news of the day on which it is taken in.
            let news = thread.news;
            let touched = thread.touched;
            thread.push(record.sequence, entry, keeping);
            (thread.news, thread.touched) = (news, touched);
        }
    }

    /// A user who is in no thread of this agent's yet goes on where the conversation ended.
    fn resume_imported_thread(&mut self, record: &Record, thread_id: &str, user: &str) {
        let mut own = self.threads.values().filter(|thread| thread.user == user && !thread.work);
        if own.any(|thread| thread.heard > HEARD_ELSEWHERE) {
            return;
        }
        if let Some(thread) = self.threads.get_mut(thread_id) {
            (thread.heard, thread.touched) = (record.sequence, record.sequence);
        }
    }
}
