//! Memories that an agent has written lately, for digests. All of them are in the read model, found by `memory.search`.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use jiff::civil::Date;
use kairo_proto::v1::MemoryAppended;
use kairo_proto::words::MemoryKind;
use serde::{Deserialize, Serialize};

use super::{provenance::Provenance, state::AgentState, thread::cut_to};

/// Memories at hand, their texts in bytes, the text of one in bytes, and the days they reach back from the newest.
const RECENT: usize = 200;
const RECENT_BYTES: usize = 64 * 1024;
const CONTENT_BYTES: usize = 8 * 1024;
const DAYS: i32 = 8;
/// Memories that are recalled for a task, and the text of all of them, in bytes.
const RECALLED: usize = 20;
const RECALLED_BYTES: usize = 4 * 1024;
/// Minimum percentage of words in common for two memories to be nearly the same.
const ALIKE: usize = 80;
/// Of one memory, so many of the events it came from.
const SOURCES: usize = 100;

/// Lately written memories, the oldest forgotten first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memories {
    pub recent: VecDeque<KnownMemory>,
    /// Insights and facts of any age, the oldest forgotten first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub learned: VecDeque<KnownMemory>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownMemory {
    pub kind: String,
    pub subject: String,
    pub content: String,
    pub day: String,
    /// Events it came from.
    pub sources: Vec<String>,
    pub memory_id: String,
    /// The user it was written for; empty for all.
    pub user: String,
    /// Content from outside that it was made from.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub outside: Provenance,
}

impl Memories {
    /// Takes in `memory.appended`.
    pub(super) fn append(&mut self, appended: &MemoryAppended) {
        self.recent.retain(|known| known.memory_id != appended.memory_id);
        let mut outside = Provenance::default();
        outside.add_marks(&appended.outside);
        let memory = KnownMemory {
            kind: appended.kind.clone(),
            subject: cut_to(&appended.subject, CONTENT_BYTES),
            content: cut_to(&appended.content, CONTENT_BYTES),
            day: appended.day.clone(),
            sources: appended.source_event_ids.iter().take(SOURCES).cloned().collect(),
            memory_id: appended.memory_id.clone(),
            user: appended.user.clone(),
            outside,
        };
        self.learned.retain(|known| known.memory_id != memory.memory_id);
        if matches!(appended.kind_word(), MemoryKind::Insight | MemoryKind::Fact) {
            self.learned.push_back(memory.clone());
            drop_fairly(&mut self.learned);
        }
        self.recent.push_back(memory);
        self.forget_old();
    }

    /// Returns the memories of this user, or of all users, that may matter for a text: those that share most words with
    /// it first, then the newest.
    pub fn recall_for(&self, user: &str, text: &str) -> Vec<&KnownMemory> {
        let wanted = word_set(text);
        let his = self.learned.iter().filter(|known| known.user == user || known.user.is_empty());
        let rank = |(at, known): (usize, _)| (shared_words(&wanted, known), at, known);
        let mut ranked: Vec<(usize, usize, &KnownMemory)> = his.enumerate().map(rank).collect();
        ranked.sort_by_key(|(shared, at, _)| Reverse((*shared, *at)));
        let mut bytes = 0;
        let fits = |(.., known): &(usize, usize, &KnownMemory)| {
            bytes += known.content.len();
            bytes <= RECALLED_BYTES
        };
        ranked.into_iter().take(RECALLED).take_while(fits).map(|(.., known)| known).collect()
    }

    /// Returns the oldest memory of the same kind and user that says nearly the same. It may be written again, so it is
    /// one that is known whole: its text was not cut, and none of it is a secret that is sealed elsewhere.
    pub fn find_alike(&self, kind: &str, user: &str, content: &str) -> Option<&KnownMemory> {
        let said = word_set(content);
        let is_alike = |known: &&KnownMemory| {
            let both = shared_words(&said, known);
            let all = word_set(&known.content).union(&said).count();
            let is_whole = known.content.len() < CONTENT_BYTES && !known.content.contains("[secret ");
            is_whole && known.kind == kind && known.user == user && all > 0 && both * 100 >= all * ALIKE
        };
        self.learned.iter().find(is_alike)
    }

    /// Returns a memory of the same kind and user with the very same text, whatever the case and the punctuation at the
    /// end. Any other difference may matter: a number, a name, a date, a negation.
    pub fn find_identical(&self, kind: &str, user: &str, content: &str) -> Option<&KnownMemory> {
        let said = normalize_text(content);
        let is_same = |known: &&KnownMemory| {
            let is_whole = known.content.len() < CONTENT_BYTES && !known.content.contains("[secret ");
            is_whole && known.kind == kind && known.user == user && normalize_text(&known.content) == said
        };
        self.learned.iter().find(is_same)
    }

    /// A memory that was written for this user lately, or learned.
    pub fn find_by_id(&self, memory_id: &str, user: &str) -> Option<&KnownMemory> {
        let mut known = self.learned.iter().chain(&self.recent);
        known.find(|known| known.memory_id == memory_id && known.user == user)
    }

    /// Drops the memories written for a user who is forgotten.
    pub(super) fn forget_user(&mut self, user: &str) {
        self.recent.retain(|known| known.user != user);
        self.learned.retain(|known| known.user != user);
    }

    fn forget_old(&mut self) {
        let newest = self.recent.iter().filter_map(|known| parse_day(&known.day)).max();
        if let Some(newest) = newest {
            let is_old = |known: &KnownMemory| parse_day(&known.day).is_none_or(|day| (newest - day).get_days() > DAYS);
            self.recent.retain(|known| !is_old(known));
        }
        drop_oldest(&mut self.recent);
    }
}

/// The oldest make room.
fn drop_oldest(memories: &mut VecDeque<KnownMemory>) {
    let mut bytes: usize = memories.iter().map(KnownMemory::bytes).sum();
    while memories.len() > RECENT || bytes > RECENT_BYTES {
        let Some(oldest) = memories.pop_front() else { break };
        bytes -= oldest.bytes();
    }
}

/// The oldest of whoever has most makes room, so that nobody's work displaces what was learned for another.
fn drop_fairly(memories: &mut VecDeque<KnownMemory>) {
    let bytes = |memories: &VecDeque<KnownMemory>| memories.iter().map(KnownMemory::bytes).sum::<usize>();
    while memories.len() > RECENT || bytes(memories) > RECENT_BYTES {
        let mut of_user: BTreeMap<&str, usize> = BTreeMap::new();
        memories.iter().for_each(|known| *of_user.entry(&known.user).or_default() += known.bytes());
        let most = of_user.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(user, _)| user.to_owned());
        let oldest = memories.iter().position(|known| Some(&known.user) == most.as_ref());
        if oldest.and_then(|oldest| memories.remove(oldest)).is_none() {
            break;
        }
    }
}

/// Memories as models are shown them, a line for each.
pub fn in_lines(memories: &[&KnownMemory]) -> String {
    let lines = memories.iter().map(|known| format!("- {}: {}", known.kind, known.content));
    lines.collect::<Vec<_>>().join("\n")
}

/// Memories in numbered lines, with the day of each: of two that contradict each other, the newer one holds.
pub fn in_numbered_lines(memories: &[&KnownMemory]) -> String {
    let line = |(number, known): (usize, &&KnownMemory)| {
        format!("{number}. {} ({}): {}", known.kind, known.day, known.content)
    };
    (1..).zip(memories).map(line).collect::<Vec<_>>().join("\n")
}

/// The words of a text, in small letters. What is written without spaces is taken letter by letter.
fn word_set(text: &str) -> BTreeSet<String> {
    let small = text.to_lowercase();
    let parts = small.split(|sign: char| !sign.is_alphanumeric()).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| match part.is_ascii() {
            true => vec![part.to_owned()],
            false => part.chars().map(String::from).collect(),
        })
        .collect()
}

/// A text in small letters, with single spaces and without the punctuation at its end.
fn normalize_text(text: &str) -> String {
    let small = text.to_lowercase();
    let words: Vec<&str> = small.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', '!', '。', '！', ' ']).to_owned()
}

fn shared_words(wanted: &BTreeSet<String>, known: &KnownMemory) -> usize {
    word_set(&known.content).intersection(wanted).count()
}

impl KnownMemory {
    fn bytes(&self) -> usize {
        self.subject.len() + self.content.len() + self.sources.iter().map(String::len).sum::<usize>()
    }
}

impl AgentState {
    /// Takes in `memory.appended`: events that a journal entry came from wait no longer to be written down.
    pub(super) fn apply_memory_appended(&mut self, appended: &MemoryAppended) {
        self.memories.append(appended);
        if appended.kind_word() != MemoryKind::Journal {
            return;
        }
        let sources: BTreeSet<&str> = appended.source_event_ids.iter().map(String::as_str).collect();
        for thread in self.threads.values_mut().filter(|thread| !thread.fresh.is_empty()) {
            thread.fresh.retain(|event| !sources.contains(&**event));
            if thread.fresh.is_empty() {
                thread.news = 0;
            }
        }
    }
}

fn parse_day(text: &str) -> Option<Date> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(id: usize, day: &str, content: &str) -> MemoryAppended {
        MemoryAppended {
            memory_id: format!("memory-{id}"),
            kind: "journal".into(),
            content: content.into(),
            day: day.into(),
            source_event_ids: vec![format!("event-{id}")],
            ..Default::default()
        }
    }

    #[test]
    fn what_is_at_hand_is_bounded_in_number_bytes_and_days() {
        let mut memories = Memories::default();
        (0..300).for_each(|id| memories.append(&appended(id, "2026-11-20", "x")));
        assert_eq!((memories.recent.len(), memories.recent[0].memory_id.as_str()), (RECENT, "memory-100"));
        (0..50).for_each(|id| memories.append(&appended(1_000 + id, "2026-11-21", &"x".repeat(100_000))));
        assert!(memories.recent.iter().map(KnownMemory::bytes).sum::<usize>() <= RECENT_BYTES);
        assert!(memories.recent.len() < 10);
        memories.append(&appended(2_000, "2026-11-29", "x"));
        assert!(memories.recent.iter().any(|known| known.day == "2026-11-21"));
        memories.append(&appended(2_001, "2026-11-30", "x"));
        assert!(memories.recent.iter().all(|known| known.day.as_str() >= "2026-11-29"));
        memories.append(&appended(2_002, "no day", "x"));
        assert_eq!(memories.recent.len(), 2);
    }

    #[test]
    fn what_was_learned_is_recalled_by_the_words_of_a_task_then_by_age_for_its_own_user() {
        let learned = |id: usize, user: &str, content: &str| MemoryAppended {
            kind: "insight".into(),
            user: user.into(),
            ..appended(id, "2026-11-20", content)
        };
        let mut memories = Memories::default();
        let told = ["NVIDIA reports in May", "Tokyo is nine hours ahead", "markets close at four"];
        (0..).zip(told).for_each(|(id, content)| memories.append(&learned(id, "ann", content)));
        memories.append(&learned(7, "bob", "NVIDIA is bob's secret"));
        let recalled = |memories: &Memories, text: &str| {
            memories.recall_for("ann", text).iter().map(|known| known.content.clone()).collect::<Vec<_>>()
        };
        assert_eq!(recalled(&memories, "Research NVIDIA"), [told[0], told[2], told[1]]);
        assert_eq!(memories.find_alike("insight", "ann", "nvidia reports in MAY!").unwrap().memory_id, "memory-0");
        assert!(
            memories.find_alike("fact", "ann", told[0]).is_none()
                && memories.find_alike("insight", "bob", told[0]).is_none()
        );
        let secret = learned(8, "ann", "the key is [secret key]");
        memories.append(&secret);
        assert!(memories.find_alike("insight", "ann", &secret.content).is_none(), "its secret would be lost");
        let long = learned(9, "ann", &"long ".repeat(4_000));
        memories.append(&long);
        assert!(memories.find_alike("insight", "ann", "long").is_none(), "its end would be lost");
        (10..400).for_each(|id| memories.append(&learned(id, "ann", &"x ".repeat(1_000))));
        assert!(memories.learned.len() <= RECENT && recalled(&memories, "x").len() <= 2);
    }

    #[test]
    fn the_same_memory_again_replaces_what_it_said() {
        let mut memories = Memories::default();
        memories.append(&appended(1, "2026-11-20", "one"));
        memories.append(&appended(2, "2026-11-20", "two"));
        memories.append(&appended(1, "2026-11-21", "three"));
        let contents: Vec<_> = memories.recent.iter().map(|known| known.content.as_str()).collect();
        assert_eq!(contents, ["two", "three"]);
    }

    #[test]
    fn events_that_were_written_down_wait_no_longer() {
        let mut state = AgentState::default();
        for id in ["t", "u"] {
            let thread = state.threads.entry(id.to_owned()).or_default();
            thread.fresh.extend([format!("{id}-1").into(), format!("{id}-2").into()]);
            thread.news = 2;
        }
        let mut entry = appended(1, "2026-11-20", "x");
        entry.source_event_ids = vec!["t-1".into(), "t-2".into(), "u-1".into()];
        state.apply_memory_appended(&MemoryAppended { kind: "person".into(), ..entry.clone() });
        assert_eq!(state.threads["t"].fresh.len(), 2);
        state.apply_memory_appended(&entry);
        assert_eq!((state.threads["t"].fresh.len(), state.threads["t"].news), (0, 0));
        assert_eq!((state.threads["u"].fresh.len(), state.threads["u"].news), (1, 2));
    }
}
