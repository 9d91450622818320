//! Counts of requests: every request costs, also one that its client abandons.
//!
//! A request is counted when it has arrived whole, and again when it ends: answered, or abandoned by a client that left
//! before all of the answer was handed over.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::form::WireForm;

/// Callers that are counted one by one. Those that come later are counted as [`OTHERS`].
const CALLERS: usize = 1_024;
const OTHERS: &str = "others";
/// Texts that are counted one by one; beyond that the oldest is forgotten.
const TEXTS: usize = 10_000;
/// Characters kept of a text.
const TEXT_CHARS: usize = 200;

/// The number of requests, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    pub requests: u64,
    pub open: u64,
    pub answered: u64,
    pub abandoned: u64,
}

/// The body of `GET /v1/counts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CountsPage {
    #[serde(flatten)]
    pub all: Count,
    /// Those that came over `/as/<caller>/v1`.
    pub callers: BTreeMap<String, Count>,
    /// Number of requests for each last user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<BTreeMap<String, u64>>,
    /// Number of requests that each rule answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<BTreeMap<String, u64>>,
}

/// A request, as far as it is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedRequest {
    /// Counts from 1.
    pub number: u64,
    /// The caller, if the request names one.
    pub caller: Option<String>,
    /// The rule that answers it.
    pub rule: Option<String>,
    /// The last user message.
    pub text: String,
    /// In which form it is answered, where that was drawn.
    pub form: Option<WireForm>,
}

/// A line of the journal. Times are microseconds since 1970.
#[derive(Serialize)]
struct JournalLine<'a> {
    number: u64,
    caller: Option<&'a str>,
    rule: Option<&'a str>,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    /// True if no answer comes of that form.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    begun_us: u64,
    ended_us: u64,
    outcome: &'static str,
}

/// Counts requests, and writes them down if there is a journal.
#[derive(Default)]
pub struct Tally {
    counted: Mutex<TallyCounts>,
    journal: Option<Mutex<File>>,
}

#[derive(Default)]
struct TallyCounts {
    all: Count,
    callers: BTreeMap<String, Count>,
    texts: HashMap<String, u64>,
    /// As many as the scenario has.
    rules: BTreeMap<String, u64>,
    /// The keys of `texts`, oldest first.
    order: VecDeque<String>,
}

/// A request that was not answered yet. Whoever drops it without saying so has lost its client.
pub struct OpenRequest {
    tally: Arc<Tally>,
    asked: CountedRequest,
    begun_us: u64,
    answered: bool,
}

impl Tally {
    /// With a line in this file for each request that ended.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn with_journal(file: &Path) -> io::Result<Self> {
        Ok(Self { journal: Some(Mutex::new(File::create(file)?)), ..Self::default() })
    }

    /// Counts a request that has come.
    pub fn open(self: &Arc<Self>, mut asked: CountedRequest) -> OpenRequest {
        asked.text = asked.text.chars().take(TEXT_CHARS).collect();
        lock(&self.counted).count_opening(&mut asked);
        OpenRequest { tally: self.clone(), asked, begun_us: now_us(), answered: false }
    }

    /// Returns the counts until now; by text and by rule only if asked for, as there may be many.
    pub fn page(&self, texts: bool, rules: bool) -> CountsPage {
        let counted = lock(&self.counted);
        let by_text = || counted.texts.iter().map(|(text, count)| (text.clone(), *count)).collect();
        CountsPage {
            all: counted.all,
            callers: counted.callers.clone(),
            texts: texts.then(by_text),
            rules: rules.then(|| counted.rules.clone()),
        }
    }

    fn end(&self, open: &OpenRequest) {
        lock(&self.counted).count_end(open.asked.caller.as_deref(), open.answered);
        let Some(journal) = &self.journal else { return };
        let CountedRequest { number, caller, rule, text, form } = &open.asked;
        let line = JournalLine {
            number: *number,
            caller: caller.as_deref(),
            rule: rule.as_deref(),
            text,
            form: form.map(WireForm::name),
            failed: form.is_some_and(WireForm::fails),
            begun_us: open.begun_us,
            ended_us: now_us(),
            outcome: if open.answered { "answered" } else { "abandoned" },
        };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        // A full disk must not end the conversation.
        let _ = lock(journal).write_all(&bytes);
    }
}

impl TallyCounts {
    fn count_opening(&mut self, asked: &mut CountedRequest) {
        let known = |caller: &String| self.callers.contains_key(caller) || self.callers.len() < CALLERS;
        asked.caller = asked.caller.take().map(|caller| if known(&caller) { caller } else { OTHERS.to_owned() });
        let caller = asked.caller.as_ref().map(|caller| self.callers.entry(caller.clone()).or_default());
        for count in [Some(&mut self.all), caller].into_iter().flatten() {
            count.requests += 1;
            count.open += 1;
        }
        if let Some(rule) = &asked.rule {
            *self.rules.entry(rule.clone()).or_default() += 1;
        }
        if let Some(count) = self.texts.get_mut(&asked.text) {
            *count += 1;
            return;
        }
        if self.order.len() == TEXTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
        self.order.push_back(asked.text.clone());
        self.texts.insert(asked.text.clone(), 1);
    }

    fn count_end(&mut self, caller: Option<&str>, answered: bool) {
        let caller = caller.and_then(|caller| self.callers.get_mut(caller));
        for count in [Some(&mut self.all), caller].into_iter().flatten() {
            count.open -= 1;
            count.answered += u64::from(answered);
            count.abandoned += u64::from(!answered);
        }
    }
}

impl OpenRequest {
    /// All of the answer was handed over.
    pub fn mark_answered(mut self) {
        self.answered = true;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.tally.end(self);
    }
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Locks a mutex, poisoned or not: the data is whole between any two statements, so a panic elsewhere does not spoil
/// it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted_request(caller: &str, text: &str) -> CountedRequest {
        CountedRequest { caller: Some(caller.to_owned()), text: text.to_owned(), ..CountedRequest::default() }
    }

    #[test]
    fn requests_are_counted_when_they_come_and_when_they_end() {
        let tally = Arc::new(Tally::default());
        let one = tally.open(counted_request("a", "hello"));
        let two = tally.open(counted_request("a", "hello"));
        let three = tally.open(CountedRequest { text: "bye".to_owned(), ..CountedRequest::default() });
        one.mark_answered();
        drop(two);
        let page = tally.page(true, false);
        assert_eq!(page.all, Count { requests: 3, open: 1, answered: 1, abandoned: 1 });
        assert_eq!(page.callers, BTreeMap::from([("a".to_owned(), Count { requests: 2, open: 0, ..page.all })]));
        assert_eq!(page.texts, Some(BTreeMap::from([("bye".to_owned(), 1), ("hello".to_owned(), 2)])));
        three.mark_answered();
        assert_eq!(tally.page(false, false).all, Count { requests: 3, open: 0, answered: 2, abandoned: 1 });
    }

    #[test]
    fn callers_and_texts_are_bounded_and_the_sums_are_not() {
        let tally = Arc::new(Tally::default());
        for number in 0..TEXTS + 5 {
            tally
                .open(counted_request(&format!("caller-{number}"), &"ä".repeat(number / TEXTS * TEXT_CHARS + number)))
                .mark_answered();
        }
        let page = tally.page(true, false);
        assert_eq!(page.all.answered, TEXTS as u64 + 5);
        assert_eq!(page.callers.len(), CALLERS + 1);
        assert_eq!(page.callers.get(OTHERS).map(|count| count.requests), Some((TEXTS + 5 - CALLERS) as u64));
        let texts = page.texts.expect("they were asked for");
        assert!(texts.len() <= TEXTS && texts.keys().all(|text| text.chars().count() <= TEXT_CHARS));
    }

    #[test]
    fn the_journal_has_a_line_for_each_request_that_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("journal");
        let tally = Arc::new(Tally::with_journal(&file).expect("a journal"));
        tally
            .open(CountedRequest { number: 1, rule: Some("chat".to_owned()), ..counted_request("a", "hello") })
            .mark_answered();
        drop(tally.open(CountedRequest { number: 2, ..CountedRequest::default() }));
        let text = std::fs::read_to_string(&file).expect("it is written");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        let told = |line: &serde_json::Value| {
            assert!(line["begun_us"].as_u64() <= line["ended_us"].as_u64(), "{line}");
            ["number", "caller", "rule", "text", "outcome"].map(|key| line[key].clone())
        };
        let expected = [
            serde_json::json!([1, "a", "chat", "hello", "answered"]),
            serde_json::json!([2, null, null, "", "abandoned"]),
        ];
        assert_eq!(lines.iter().map(|line| serde_json::json!(told(line))).collect::<Vec<_>>(), expected);
    }
}
