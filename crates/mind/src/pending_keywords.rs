//! Memories whose keywords are still to be found. They are written first, and found by their own words from then on; a model
//! names the keywords of several of them in one call, in the work lane, when nothing else is to be done. Folded from the log.

use std::collections::VecDeque;

use kairo_proto::v1::{AgentDecision, MemoryAppended};
use serde::{Deserialize, Serialize};

use super::{background_lane::NextWork, state::AgentState};

/// Memories that wait for keywords, and the bytes of all of them; the oldest make room and stay without.
const WAITING: usize = 64;
const WAITING_BYTES: usize = 64 * 1024;
/// Memories of one call, and the bytes of their contents. A memory of which an attempt failed is asked about alone.
const BATCH: usize = 16;
const BATCH_BYTES: usize = 24 * 1024;
/// Attempts for one memory; after the last of them it stays without keywords.
const ATTEMPTS: u32 = 5;

/// Memories that wait for keywords, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeywordQueue {
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub waiting: VecDeque<PendingKeywords>,
    /// Decisions that have to pass before the next attempt.
    #[serde(default)]
    pub pause: u32,
}

/// A memory that waits for keywords.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingKeywords {
    pub memory: MemoryAppended,
    /// The thread in which it was written, and the chain that it belongs to.
    pub thread_id: String,
    pub correlation: String,
    /// Attempts that failed.
    #[serde(default)]
    pub attempts: u32,
}

impl KeywordQueue {
    pub fn is_nothing(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn find(&self, memory_id: &str) -> Option<&PendingKeywords> {
        self.waiting.iter().find(|waiting| waiting.memory.memory_id == memory_id)
    }

    /// Takes in `memory.appended`: one that lacks keywords waits for them, and any other has them.
    fn apply_appended(&mut self, memory: &MemoryAppended, thread_id: &str, correlation: &str) {
        self.waiting.retain(|waiting| waiting.memory.memory_id != memory.memory_id);
        if memory.lacks_keywords {
            let thread_id = thread_id.to_owned();
            let correlation = correlation.to_owned();
            self.waiting.push_back(PendingKeywords { memory: memory.clone(), thread_id, correlation, attempts: 0 });
        }
    }

    /// The oldest make room, but for those that are being asked about.
    fn make_room(&mut self, asked: &[String]) {
        let bytes = |waiting: &VecDeque<PendingKeywords>| waiting.iter().map(PendingKeywords::bytes).sum::<usize>();
        while self.waiting.len() > WAITING || bytes(&self.waiting) > WAITING_BYTES {
            let is_free = |waiting: &PendingKeywords| !asked.contains(&waiting.memory.memory_id);
            let Some(oldest) = self.waiting.iter().position(is_free) else { break };
            self.waiting.remove(oldest);
        }
    }

    /// The memories that the next call is about: the oldest ones of one user or, if an attempt failed for the oldest or it was made
    /// from what nobody here wrote, that one alone.
    fn next_batch(&self) -> Option<Vec<String>> {
        if self.pause > 0 {
            return None;
        }
        let first = self.waiting.front()?;
        let mut bytes = 0;
        let fits = |waiting: &&PendingKeywords| {
            bytes += waiting.memory.content.len();
            bytes <= BATCH_BYTES
        };
        let is_free = |waiting: &&PendingKeywords| waiting.attempts == 0 && waiting.memory.outside.is_empty();
        if !is_free(&first) {
            return Some(vec![first.memory.memory_id.clone()]);
        }
        let of_user = self.waiting.iter().filter(|waiting| waiting.memory.user == first.memory.user);
        let batch = of_user.filter(is_free).take(BATCH).take_while(fits);
        Some(batch.map(|waiting| waiting.memory.memory_id.clone()).collect())
    }

    /// An attempt is over: what of it still waits has to wait longer each time, behind what was not tried yet.
    fn end_attempt(&mut self, batch: &[String]) {
        let (mut failed, mut waiting): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|waiting| batch.contains(&waiting.memory.memory_id));
        failed.iter_mut().for_each(|waiting| waiting.attempts += 1);
        if let Some(most) = failed.iter().map(|waiting| waiting.attempts).max() {
            self.pause = 1 << most;
        }
        failed.retain(|waiting| waiting.attempts < ATTEMPTS);
        waiting.append(&mut failed);
        self.waiting = waiting;
    }

    pub(super) fn forget_user(&mut self, user: &str) {
        self.waiting.retain(|waiting| waiting.memory.user != user);
    }
}

impl PendingKeywords {
    fn bytes(&self) -> usize {
        let MemoryAppended { content, subject, source_event_ids, secrets, outside, .. } = &self.memory;
        let secrets = secrets.iter().map(|secret| secret.name.len() + secret.sealed.len()).sum::<usize>();
        let texts = source_event_ids.iter().chain(outside).map(String::len).sum::<usize>();
        content.len() + subject.len() + secrets + texts
    }
}

impl AgentState {
    /// Takes in what `memory.appended` says of keywords.
    pub(super) fn note_keywords(&mut self, memory: &MemoryAppended, thread_id: &str, correlation: &str) {
        let asked = match &self.work.next {
            Some((NextWork::Keywords(batch), _)) => batch.clone(),
            _ => Vec::new(),
        };
        self.work.keywords.apply_appended(memory, thread_id, correlation);
        self.work.keywords.make_room(&asked);
    }

    /// The memories whose keywords a decision was to find, before that is taken in.
    pub(super) fn keyword_batch_of(&self, decision: &AgentDecision) -> Option<&[String]> {
        match &self.work.next {
            Some((NextWork::Keywords(batch), begins)) if *begins == decision.work_input => Some(batch),
            _ => None,
        }
    }

    /// After each decision: an attempt that it was is over, and a pause is one decision shorter.
    pub(super) fn end_keyword_attempt(&mut self, decision: &AgentDecision) {
        self.work.keywords.pause = self.work.keywords.pause.saturating_sub(1);
        if let Some(batch) = self.keyword_batch_of(decision).map(<[String]>::to_vec) {
            self.work.keywords.end_attempt(&batch);
        }
        if self.work.keywords.is_nothing() {
            self.work.keywords.pause = 0;
        }
    }

    /// Returns the next batch that the work lane finds keywords for.
    pub(super) fn next_keywords(&self) -> Option<NextWork> {
        self.work.keywords.next_batch().map(NextWork::Keywords)
    }

    /// Returns true for a decision of the agent's own upkeep, which no user caused and nobody is shown.
    pub(super) fn is_upkeep(&self, decision: &AgentDecision) -> bool {
        self.summarized_thread(decision).is_some() || self.keyword_batch_of(decision).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacking(id: usize, content: &str) -> MemoryAppended {
        let memory_id = format!("m{id}");
        let content = content.to_owned();
        MemoryAppended { memory_id, content, lacks_keywords: true, ..Default::default() }
    }

    #[test]
    fn what_waits_and_what_is_asked_at_once_is_bounded() {
        let mut keywords = KeywordQueue::default();
        for id in 0..100 {
            keywords.apply_appended(&lacking(id, "x"), "t", "");
            keywords.make_room(&["m0".to_owned()]);
        }
        assert_eq!((keywords.waiting.len(), keywords.find("m0").is_some(), keywords.find("m1")), (WAITING, true, None));
        assert_eq!(keywords.next_batch().unwrap().len(), BATCH);
        let mut long = KeywordQueue::default();
        (0..3).for_each(|id| long.apply_appended(&lacking(id, &"x".repeat(16 * 1024)), "t", ""));
        assert_eq!(long.next_batch().unwrap(), ["m0"]);
        let mut mixed = KeywordQueue::default();
        let users = ["ann", "bob", "ann", "ann"];
        for (id, user) in users.into_iter().enumerate() {
            let outside = if id == 2 { vec!["web:https://example.org".to_owned()] } else { Vec::new() };
            mixed.apply_appended(&MemoryAppended { user: user.into(), outside, ..lacking(id, "x") }, "t", "");
        }
        assert_eq!(mixed.next_batch().unwrap(), ["m0", "m3"], "of one user, and of nothing from outside");
    }

    #[test]
    fn attempts_that_fail_are_made_again_later_each_time_and_end() {
        let mut keywords = KeywordQueue::default();
        (0..3).for_each(|id| keywords.apply_appended(&lacking(id, "x"), "t", ""));
        let all = keywords.next_batch().unwrap();
        keywords.apply_appended(&MemoryAppended { memory_id: "m1".into(), ..Default::default() }, "t", "");
        let mut pauses = Vec::new();
        let mut sizes = vec![all.len()];
        keywords.end_attempt(&all);
        while !keywords.is_nothing() {
            pauses.push(keywords.pause);
            assert_eq!(keywords.next_batch(), None);
            keywords.pause = 0;
            let batch = keywords.next_batch().unwrap();
            sizes.push(batch.len());
            keywords.end_attempt(&batch);
        }
        assert_eq!(pauses, [2, 4, 4, 8, 8, 16, 16, 32]);
        assert_eq!(sizes, [3, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}
