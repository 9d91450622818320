//! The health of a server: the tools it offers, those left out, and its violations of the protocol.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kairo_proto::words::ToolServerState;
use tokio::sync::watch;

use super::reader::shorten_text;

/// Notes kept of one server; the oldest goes first.
const MAX_NOTES: usize = 20;
/// Longest note, name or reason, in characters, besides the mark of what is missing.
const MAX_NOTE_CHARS: usize = 300;
/// Tools of one server whose names are kept because they were left out.
const MAX_LEFT_OUT: usize = 64;
/// End of the standard error that is kept, in bytes.
const MAX_STDERR_BYTES: usize = 2048;

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthState {
    /// Not connected yet.
    Starting,
    /// Connected, its tools known.
    Up,
    /// Not running; it is started again.
    Down,
    /// Never again.
    Stopped,
}

impl HealthState {
    /// The word for it in messages and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => ToolServerState::Starting.known_word(),
            Self::Up => ToolServerState::Up.known_word(),
            Self::Down => ToolServerState::Down.known_word(),
            Self::Stopped => ToolServerState::Stopped.known_word(),
        }
    }
}

/// The health of one server at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHealth {
    /// State of the server at the time of reading.
    pub state: HealthState,
    /// Negotiated version of the protocol; none unless the server is up.
    pub protocol: Option<String>,
    /// Tools it offers, as it listed them last.
    pub tools: usize,
    /// Tools it listed that cannot be offered: the name, or the place in the list, and the reason. At most 64.
    pub left_out: Vec<(String, String)>,
    /// Violations of the protocol, newest last. At most 20.
    pub notes: Vec<String>,
    /// The reason it was last down; none if it never was.
    pub last_error: Option<String>,
    /// The end of its standard error, at most 2 048 bytes; empty for servers over HTTP.
    pub stderr_end: String,
}

/// Observations shared by everything that talks to one server.
#[derive(Debug, Clone)]
pub struct HealthNotes {
    record: Arc<Mutex<HealthRecord>>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct HealthRecord {
    tools: usize,
    left_out: Vec<(String, String)>,
    notes: VecDeque<String>,
    last_error: Option<String>,
    stderr_end: VecDeque<u8>,
}

impl Default for HealthNotes {
    fn default() -> Self {
        Self { record: Arc::default(), changes: watch::Sender::new(0) }
    }
}

impl HealthNotes {
    /// Notes what the server did; a note that is there already becomes the newest.
    pub fn add_note(&self, text: &str) {
        let text = shorten_text(text, MAX_NOTE_CHARS);
        tracing::debug!(note = text, "MCP server");
        let mut record = self.lock();
        record.notes.retain(|note| *note != text);
        record.notes.push_back(text);
        while record.notes.len() > MAX_NOTES {
            record.notes.pop_front();
        }
        drop(record);
        self.announce_change();
    }

    /// Takes up what was odd about a message, and which tools of it cannot be offered.
    pub fn record_oddities(&self, notes: &[String], left_out: &[(String, String)]) {
        notes.iter().for_each(|note| self.add_note(note));
        left_out.iter().for_each(|(name, reason)| self.leave_out(name, reason));
    }

    /// Begins a new list of tools: what was left out of the list before is forgotten.
    pub fn begin_list(&self) {
        self.lock().left_out.clear();
    }

    /// Notes a tool that cannot be offered.
    pub fn leave_out(&self, name: &str, reason: &str) {
        let entry = (shorten_text(name, MAX_NOTE_CHARS), shorten_text(reason, MAX_NOTE_CHARS));
        let mut record = self.lock();
        if record.left_out.len() < MAX_LEFT_OUT && !record.left_out.contains(&entry) {
            record.left_out.push(entry);
            drop(record);
            self.announce_change();
        }
    }

    /// Notes how many tools are offered.
    pub fn set_tool_count(&self, tools: usize) {
        self.lock().tools = tools;
        self.announce_change();
    }

    /// Notes why the server is down.
    pub fn record_failure(&self, reason: &str) {
        self.lock().last_error = Some(shorten_text(reason, MAX_NOTE_CHARS));
        self.announce_change();
    }

    /// Keeps the end of what the server wrote to its standard error. No change is announced: it may never stop writing.
    pub fn write_stderr(&self, bytes: &[u8]) {
        let mut record = self.lock();
        let bytes = bytes.get(bytes.len().saturating_sub(MAX_STDERR_BYTES)..).unwrap_or_default();
        record.stderr_end.extend(bytes);
        let excess = record.stderr_end.len().saturating_sub(MAX_STDERR_BYTES);
        record.stderr_end.drain(..excess);
    }

    /// Announces that the state of the server changed.
    pub fn announce_change(&self) {
        self.changes.send_modify(|change| *change = change.wrapping_add(1));
    }

    /// Tells when anything changed, except for the standard error.
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// All that was noted, of a server in this state.
    pub fn to_health(&self, state: HealthState, protocol: Option<String>) -> ServerHealth {
        let record = self.lock();
        let stderr: Vec<u8> = record.stderr_end.iter().copied().collect();
        ServerHealth {
            state,
            protocol,
            tools: record.tools,
            left_out: record.left_out.clone(),
            notes: record.notes.iter().cloned().collect(),
            last_error: record.last_error.clone(),
            stderr_end: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    // Nothing panics while it is held, and half a note would be harmless.
    fn lock(&self) -> MutexGuard<'_, HealthRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_bounded_and_the_newest_stay() {
        let notes = HealthNotes::default();
        for number in 0..50 {
            notes.add_note(&format!("note {number}"));
            notes.leave_out(&format!("tool {}", number * 2), "no schema");
            notes.leave_out(&format!("tool {}", number * 2 + 1), &"long".repeat(1000));
        }
        notes.add_note("note 40");
        let health = notes.to_health(HealthState::Up, None);
        assert_eq!(health.notes.len(), MAX_NOTES);
        assert_eq!(health.notes.last().map(String::as_str), Some("note 40"));
        assert_eq!(health.notes.iter().filter(|note| *note == "note 40").count(), 1);
        assert_eq!(health.left_out.len(), MAX_LEFT_OUT);
        assert!(health.left_out.iter().all(|(_, reason)| reason.chars().count() <= MAX_NOTE_CHARS + 1));
        notes.begin_list();
        assert!(notes.to_health(HealthState::Up, None).left_out.is_empty());
    }

    #[test]
    fn the_end_of_the_standard_error_is_kept() {
        let notes = HealthNotes::default();
        notes.write_stderr(&[b'a'; 10_000]);
        notes.write_stderr("the end \u{e9}".as_bytes());
        let health = notes.to_health(HealthState::Down, None);
        assert!(health.stderr_end.ends_with("the end \u{e9}"));
        assert_eq!(health.stderr_end.len(), MAX_STDERR_BYTES);
    }

    #[test]
    fn every_change_is_announced() {
        let notes = HealthNotes::default();
        let mut changes = notes.subscribe_changes();
        for change in [
            Box::new(|notes: &HealthNotes| notes.add_note("odd")) as Box<dyn Fn(&HealthNotes)>,
            Box::new(|notes| notes.leave_out("t", "no schema")),
            Box::new(|notes| notes.set_tool_count(3)),
            Box::new(|notes| notes.record_failure("it exited")),
        ] {
            changes.mark_unchanged();
            change(&notes);
            assert!(changes.has_changed().unwrap());
        }
    }
}
