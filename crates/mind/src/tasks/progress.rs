//! Progress and usage of a queued task: a task that is put back resumes where it stopped and never begins anew.

use jiff::{SignedDuration, Timestamp};
use kairo_proto::v1::AgentDecision;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    provenance::Provenance,
    shared::Shared,
    thread::{ThreadCall, ThreadEntry, cut_to},
    work_session::{WorkBounds, WorkSession},
};

/// Maximum size of the history kept for one task, in bytes.
const TASK_BYTES: usize = 48 * 1024;
/// Maximum size of the histories kept for all tasks of an agent, in bytes, so that a snapshot fits one message.
pub(super) const ALL_BYTES: usize = 192 * 1024;
/// Entries that are kept for one task, the newest.
const ENTRIES: usize = 128;
/// Of each result but the newest, so much is kept, in bytes.
const RESULT_BYTES: usize = 2 * 1024;
/// Tools that are named of the calls that are left out.
const NAMED: usize = 16;

/// Tells a model that it resumes a task, behind the history of the task.
const GOES_ON: &str = "You worked on this task before. What stands above, behind the task, was done then, and its effects stand. \
Go on from there: do nothing again that was done. Work on it stopped because:";
/// Tells a model that it resumes a task on which no call was made.
const NOTHING_DONE: &str = "You worked on this task before, and no call was made. Work on it stopped because:";
/// Result of a call that had none when work resumed.
const NO_RESULT: &str = r#"{"status":"work on the task stopped before this ended"}"#;

/// The progress of a queued task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskProgress {
    /// Since when it is being worked on; none while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// Seconds for which it was worked on before that.
    #[serde(default)]
    seconds: i64,
    /// Model usage in all sessions.
    #[serde(default)]
    taken: WorkSession,
    /// Work done before the task was put back; none while it is being worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<TaskHistory>,
}

/// The history of a turn on a task that was put back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskHistory {
    /// The turn.
    pub(crate) turn: Uuid,
    /// The reason the task was put back.
    reason: String,
    /// Entries of the turn, oldest first, as they stand in a thread.
    entries: Vec<Shared<ThreadEntry>>,
    /// Content from outside that it saw.
    pub(crate) outside: Provenance,
}

impl TaskProgress {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn begin(&mut self, now: Timestamp) {
        self.since = Some(now);
    }

    /// It is put back.
    pub(super) fn pause(&mut self, now: Timestamp, before: TaskHistory) {
        self.seconds = self.seconds_at(now);
        (self.since, self.before) = (None, Some(before));
    }

    pub(super) fn spend_on(&mut self, decision: &AgentDecision) {
        self.taken.spend_on(decision);
    }

    /// Keeps no text.
    pub(super) fn forget_history(&mut self) {
        self.before = None;
    }

    /// Returns the bound that is reached, in words, with the usage of a decision in progress included.
    pub(crate) fn reached_bound(
        &self,
        bounds: &WorkBounds,
        now: Timestamp,
        of_decision: impl FnOnce(&WorkSession) -> WorkSession,
    ) -> Option<String> {
        let since = now.checked_sub(SignedDuration::from_secs(self.seconds_at(now))).unwrap_or(now);
        bounds.reached_bound(&WorkSession { since: Some(since), ..of_decision(&self.taken) }, now)
    }

    fn seconds_at(&self, now: Timestamp) -> i64 {
        let this_time = self.since.map_or(0, |since| now.duration_since(since).as_secs().max(0));
        self.seconds.saturating_add(this_time)
    }

    /// Text it takes, in bytes.
    pub(super) fn history_bytes(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.entries.iter().map(|entry| entry.bytes()).sum())
    }

    /// Notes how a call ended that had no result when the task was put back. Whether it was one of its calls.
    pub(super) fn end_call(&mut self, action: Uuid, result: &str) -> bool {
        let is_it = |entry: &&mut Shared<ThreadEntry>| matches!(&***entry, ThreadEntry::Called { calls, .. } if calls.iter().any(|it| it.action == action));
        let entries = self.before.iter_mut().flat_map(|before| &mut before.entries);
        let Some(entry) = entries.into_iter().find(is_it) else { return false };
        if let ThreadEntry::Called { calls, .. } = &mut **entry {
            for call in calls.iter_mut().filter(|call| call.action == action && call.result.is_none()) {
                call.result = Some(cut_to(result, RESULT_BYTES));
            }
        }
        true
    }

    pub(super) fn has_open_call(&self, action: Uuid) -> bool {
        let is_open = |call: &ThreadCall| call.action == action && call.result.is_none();
        let mut entries = self.before.iter().flat_map(|before| &before.entries);
        entries.any(|entry| matches!(&**entry, ThreadEntry::Called { calls, .. } if calls.iter().any(is_open)))
    }
}

impl TaskHistory {
    /// Of a turn that is put back, of which this stands in its thread; as much as fits into so many bytes.
    pub(crate) fn from_entries<'e>(
        turn: Uuid,
        reason: &str,
        entries: impl DoubleEndedIterator<Item = &'e ThreadEntry>,
        outside: Provenance,
        bytes: usize,
    ) -> Self {
        let reason = cut_to(reason, RESULT_BYTES);
        Self { turn, reason, entries: shorten_history(turn, entries, bytes.min(TASK_BYTES)), outside }
    }

    /// Returns the entries to show when the task resumes in another turn.
    pub(crate) fn into_entries(self, turn: Uuid) -> Vec<ThreadEntry> {
        let Self { reason, entries, .. } = self;
        let was_called = entries.iter().any(|entry| matches!(**entry, ThreadEntry::Called { .. }));
        let told = if was_called { GOES_ON } else { NOTHING_DONE };
        let notice = ThreadEntry::Notice { turn, text: format!("{told} {reason}") };
        entries.iter().map(|entry| end_open_calls(entry.with_turn(turn))).chain([notice]).collect()
    }
}

/// Shortens a turn's history to `bytes`: the newest entry stays whole, earlier results are cut, and the oldest calls
/// are only named.
fn shorten_history<'e>(
    turn: Uuid,
    entries: impl DoubleEndedIterator<Item = &'e ThreadEntry>,
    bytes: usize,
) -> Vec<Shared<ThreadEntry>> {
    let mut kept = Vec::new();
    let mut left_out = Vec::new();
    let mut taken = 0;
    for entry in entries.rev().filter(|entry| !is_resume_notice(entry)) {
        let entry = if kept.is_empty() { entry.clone() } else { shorten_results(entry.clone()) };
        let its = entry.bytes();
        if !left_out.is_empty() || kept.len() >= ENTRIES || taken + its > bytes {
            left_out.push(entry);
            continue;
        }
        taken += its;
        kept.push(Shared::from(entry));
    }
    kept.extend(left_out_notice(turn, &left_out).map(Shared::from));
    kept.reverse();
    kept
}

/// Says which calls are left out, given the newest first, and what was known of those before them.
fn left_out_notice(turn: Uuid, left_out: &[ThreadEntry]) -> Option<ThreadEntry> {
    let known = left_out.iter().rev().filter_map(|entry| match entry {
        ThreadEntry::Notice { text, .. } => Some(text.clone()),
        ThreadEntry::User { .. }
        | ThreadEntry::Said { .. }
        | ThreadEntry::Called { .. }
        | ThreadEntry::Client { .. } => None,
    });
    let calls: Vec<&ThreadCall> = left_out.iter().rev().flat_map(|entry| entry.calls()).collect();
    let tools: Vec<&str> = calls.iter().take(NAMED).map(|call| call.tool.as_str()).collect();
    let more = if calls.len() > NAMED { ", …" } else { "" };
    let text = || format!("{} calls before these were made, too: {}{more}", calls.len(), tools.join(", "));
    let lines: Vec<String> = known.chain((!calls.is_empty()).then(text)).collect();
    (!lines.is_empty()).then(|| ThreadEntry::Notice { turn, text: cut_to(&lines.join("\n"), RESULT_BYTES) })
}

/// Returns true for the notice that a task resumes.
fn is_resume_notice(entry: &ThreadEntry) -> bool {
    matches!(entry, ThreadEntry::Notice { text, .. } if text.starts_with(GOES_ON) || text.starts_with(NOTHING_DONE))
}

fn shorten_results(mut entry: ThreadEntry) -> ThreadEntry {
    if let ThreadEntry::Called { calls, .. } = &mut entry {
        for result in calls.iter_mut().filter_map(|call| call.result.as_mut()) {
            *result = cut_to(result, RESULT_BYTES);
        }
    }
    entry
}

fn end_open_calls(mut entry: ThreadEntry) -> ThreadEntry {
    if let ThreadEntry::Called { calls, .. } = &mut entry {
        calls.iter_mut().for_each(|call| _ = call.result.get_or_insert_with(|| NO_RESULT.to_owned()));
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(turn: Uuid, number: u128, result: Option<&str>) -> ThreadEntry {
        let call = ThreadCall {
            action: Uuid::from_u128(number),
            tool: format!("tool.{number}"),
            arguments: "{}".into(),
            since: Timestamp::UNIX_EPOCH,
            after: 0,
            result: result.map(str::to_owned),
            call_id: String::new(),
            passed_back: String::new(),
            parts: Vec::new(),
        };
        ThreadEntry::Called {
            turn,
            text: String::new(),
            calls: vec![call],
            reasoning_details: String::new(),
            passed_back: String::new(),
        }
    }

    fn results(entries: &[ThreadEntry]) -> Vec<&str> {
        entries.iter().flat_map(ThreadEntry::calls).filter_map(|call| call.result.as_deref()).collect()
    }

    #[test]
    fn the_newest_result_is_whole_earlier_ones_are_shortened_and_the_oldest_calls_are_named() {
        let before = Uuid::from_u128(1);
        let next = Uuid::from_u128(2);
        let long = "x".repeat(20_000);
        let entries: Vec<ThreadEntry> = (0..40).map(|at| called(before, at, Some(&long))).collect();
        let done = TaskHistory::from_entries(
            before,
            "the session was over",
            entries.iter(),
            Provenance::default(),
            usize::MAX,
        );
        let shown = done.into_entries(next);
        assert!(shown.iter().all(|entry| entry.turn() == next));
        let results = results(&shown);
        assert_eq!(results.last(), Some(&long.as_str()));
        assert!(results[..results.len() - 1].iter().all(|result| result.len() < RESULT_BYTES + 40));
        assert!(results.iter().map(|result| result.len()).sum::<usize>() <= TASK_BYTES, "bounded");
        let ThreadEntry::Notice { text, .. } = &shown[0] else { panic!("{:?}", shown[0]) };
        let left_out = 40 - results.len();
        assert!(text.starts_with(&format!("{left_out} calls before these were made, too: tool.0, tool.1")), "{text}");
        let Some(ThreadEntry::Notice { text, .. }) = shown.last() else { panic!("a notice is last") };
        assert!(text.ends_with("the session was over"));
    }

    #[test]
    fn a_call_that_ends_while_the_task_waits_has_its_result_and_one_that_does_not_says_so() {
        let before = Uuid::from_u128(1);
        let next = Uuid::from_u128(2);
        let entries = [called(before, 7, None), called(before, 8, None)];
        let mut worked = TaskProgress::default();
        let done = TaskHistory::from_entries(before, "why", entries.iter(), Provenance::default(), usize::MAX);
        worked.pause(Timestamp::UNIX_EPOCH, done);
        assert!(worked.has_open_call(Uuid::from_u128(7)));
        assert!(worked.end_call(Uuid::from_u128(7), "seven") && !worked.end_call(Uuid::from_u128(9), "nine"));
        assert!(!worked.has_open_call(Uuid::from_u128(7)));
        assert_eq!(results(&worked.before.unwrap().into_entries(next)), ["seven", NO_RESULT]);
    }

    #[test]
    fn only_the_time_counts_for_which_it_is_worked_on() {
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        let bounds = WorkBounds { seconds: Some(30), ..WorkBounds::default() };
        let reached = |worked: &TaskProgress, now: i64| worked.reached_bound(&bounds, at(now), Clone::clone);
        let mut worked = TaskProgress::default();
        worked.begin(at(100));
        assert_eq!(reached(&worked, 120), None);
        let nothing = std::iter::empty::<&ThreadEntry>();
        worked.pause(at(120), TaskHistory::from_entries(Uuid::nil(), "why", nothing, Provenance::default(), 0));
        assert_eq!(reached(&worked, 9_000), None);
        worked.begin(at(9_000));
        assert_eq!(reached(&worked, 9_009), None);
        assert!(reached(&worked, 9_010).is_some());
    }
}
