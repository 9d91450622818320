//! Summing up what is oldest of a thread in parts, so that whoever sums it up is shown all of it. What they were not shown stays in
//! the thread, and so does what nobody could sum up.

use kairo_proto::v1::{ThreadCompacted, decided_event::Event};
use uuid::Uuid;

use super::{Deliberation, Purpose, compaction::PendingCompaction};
use crate::{intrinsics::threads, model_health::TOO_MUCH, prompts, request::ModelRequest, secrets, tokens};

/// Parts of one summary, at most; what they have no room for is summed up the next time.
const PARTS: usize = 16;
/// Bytes that a token is at least, in the languages that have most of them.
const TOKEN_BYTES: usize = 2;
/// Of a part, at least so much is shown, in bytes, however little the model takes.
const LEAST_BYTES: usize = 512;
/// Most bytes that a part repeats of the one before where a text spans both: a sentence that is cut is whole in one of
/// them.
const REPEATED_BYTES: usize = 512;
/// Summaries above this are summed up once more, in bytes; and above that, none takes the place of anything.
const SUMMARY_BYTES: usize = 16 * 1024;
const MOST_BYTES: usize = 28 * 1024;
/// Most rounds in which summaries are summed up again.
const ROUNDS: u32 = 3;
/// Most times that the parts are halved for a model that says they are too long.
const HALVINGS: u32 = 4;

/// A summary on its way.
#[derive(Clone, Debug)]
pub(super) struct SummaryInParts {
    of: PendingCompaction,
    thread_id: String,
    /// Bytes of one part.
    room: usize,
    /// Bytes above which the summary is summed up again.
    most: usize,
    rounds: u32,
    halvings: u32,
    parts: Vec<SummaryPart>,
    missing: usize,
    /// The summary of the rounds before, and how many entries it stands for.
    before: Option<(String, usize)>,
    /// The model that wrote the last summary.
    model: String,
}

/// A stretch of what is summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SummaryPart {
    text: String,
    /// Texts of which the end is in this part or before it.
    ends: usize,
    /// The summary of the part; none where nobody could write one.
    summary: Option<String>,
}

impl Deliberation<'_> {
    /// Has the oldest entries of a thread summed up in parts. The model of the conversation takes `most` tokens, the
    /// one that sums up takes `light`. Returns true if anything is asked.
    pub(super) fn sum_up_in_parts(&mut self, turn_id: Uuid, of: PendingCompaction, most: usize, light: usize) -> bool {
        let Some(thread_id) = self.turn(turn_id).map(|turn| turn.thread_id.clone()) else { return false };
        let prompt = tokens::of_text(prompts::COMPACT);
        let room = (light / 4 * 3).saturating_sub(prompt) * TOKEN_BYTES;
        let summing = SummaryInParts {
            of,
            thread_id,
            room: room.max(LEAST_BYTES),
            most: SUMMARY_BYTES.min(most / 4 * TOKEN_BYTES),
            rounds: 0,
            halvings: 0,
            parts: Vec::new(),
            missing: 0,
            before: None,
            model: String::new(),
        };
        self.sum_up_entries(turn_id, summing)
    }

    fn sum_up_entries(&mut self, turn_id: Uuid, mut summing: SummaryInParts) -> bool {
        let Some(thread) = self.mind.threads.get(&summing.thread_id) else { return false };
        let texts: Vec<String> = thread
            .entries()
            .take(summing.of.entries)
            .map(|entry| secrets::redact(&threads::entry_text_whole(entry)).text)
            .collect();
        summing.parts = split_into_parts(&texts, summing.room);
        if summing.parts.last().is_none_or(|part| part.ends < 2) {
            return false;
        }
        self.ask_for_parts(turn_id, summing);
        true
    }

    fn ask_for_parts(&mut self, turn_id: Uuid, summing: SummaryInParts) {
        let summing = SummaryInParts { missing: summing.parts.len(), ..summing };
        for (at, part) in summing.parts.iter().enumerate() {
            let request = ModelRequest::from_prompt("light", prompts::COMPACT, part.text.clone());
            self.ask_model(turn_id, Purpose::Compact(PendingCompaction { part: Some(at), ..summing.of }), request);
        }
        self.summing.insert(turn_id, summing);
    }

    /// A part is summed up, or nobody could, for a reason of this kind. Behind the last one it is thought on.
    pub(super) fn receive_part_summary(&mut self, turn_id: Uuid, at: usize, said: Result<(&str, &str), &str>) {
        let Some(mut summing) = self.summing.remove(&turn_id) else { return };
        summing.missing = summing.missing.saturating_sub(1);
        match (said, summing.parts.get_mut(at)) {
            (Ok((text, model)), Some(part)) => {
                part.summary = Some(secrets::redact(text.trim()).text);
                model.clone_into(&mut summing.model);
            }
            (Err(TOO_MUCH), _) if summing.before.is_none() => summing.halvings += 1,
            (Ok(_) | Err(_), _) => {}
        }
        if summing.missing > 0 {
            self.summing.insert(turn_id, summing);
            return;
        }
        self.apply_decided();
        self.finish_parts(turn_id, summing);
    }

    fn finish_parts(&mut self, turn_id: Uuid, mut summing: SummaryInParts) {
        let of = summing.of;
        let is_too_long = summing.before.is_none() && summing.halvings > 0 && summing.halvings <= HALVINGS;
        if is_too_long && summing.room / 2 >= LEAST_BYTES && summing.parts.iter().any(|part| part.summary.is_none()) {
            let again = SummaryInParts { room: summing.room / 2, ..summing };
            if self.sum_up_entries(turn_id, again) {
                return;
            }
            return self.continue_without_summary(turn_id, of);
        }
        let Some((summary, entries)) = summing.joined_summary() else {
            return self.continue_without_summary(turn_id, of);
        };
        let was = summing.parts.iter().map(|part| part.text.len()).sum::<usize>();
        let is_shorter = summing.rounds == 0 || summary.len() * 10 < was * 9;
        if summary.len() > summing.most && is_shorter && summing.rounds < ROUNDS {
            summing.parts = split_into_parts(std::slice::from_ref(&summary), summing.room);
            if summing.parts.last().is_some_and(|part| part.ends == 1) {
                summing.before = Some((summary, entries));
                summing.rounds += 1;
                return self.ask_for_parts(turn_id, summing);
            }
        }
        if summary.len() > MOST_BYTES {
            return self.continue_without_summary(turn_id, of);
        }
        let compacted = ThreadCompacted {
            thread_id: summing.thread_id,
            entries: u32::try_from(entries).unwrap_or(u32::MAX),
            summary,
            model: summing.model,
            tokens: u64::try_from(of.tokens).unwrap_or_default(),
        };
        self.add_event(turn_id, Event::ThreadCompacted(compacted));
        self.apply_decided();
        self.think(turn_id, of.step);
    }
}

impl SummaryInParts {
    /// Returns the summaries of the parts, up to the first that nobody could sum up, and the number of entries they
    /// stand for. If summaries could not be summed up again, returns those of the round before.
    fn joined_summary(&self) -> Option<(String, usize)> {
        let summed: Vec<&SummaryPart> = self.parts.iter().take_while(|part| part.summary.is_some()).collect();
        let summary = || {
            let mut summaries: Vec<&str> = summed.iter().filter_map(|part| part.summary.as_deref()).collect();
            // Parts repeat some of the part before them: of both the same may be said.
            summaries.dedup();
            summaries.join("\n")
        };
        match &self.before {
            Some((_, entries)) if summed.len() == self.parts.len() => Some((summary(), *entries)),
            Some(before) => Some(before.clone()),
            None => {
                let entries = summed.last().map_or(0, |part| part.ends);
                (entries > 1).then(|| (summary(), entries))
            }
        }
    }
}

/// Texts in parts of at most so many bytes. A text that is longer than a part is in several.
fn split_into_parts(texts: &[String], room: usize) -> Vec<SummaryPart> {
    let mut parts: Vec<SummaryPart> = Vec::new();
    let mut part = SummaryPart::default();
    for text in texts {
        if !part.text.is_empty() && part.text.len() + 1 + text.len() > room {
            let ends = part.ends;
            parts.push(std::mem::replace(&mut part, SummaryPart { ends, ..SummaryPart::default() }));
        }
        if !part.text.is_empty() {
            part.text.push('\n');
        }
        let mut rest = text.as_str();
        while rest.len() > room {
            let end = rest.floor_char_boundary(room).max(1);
            let ends = part.ends;
            parts.push(SummaryPart { text: rest.get(..end).unwrap_or_default().to_owned(), ends, summary: None });
            let next = rest.floor_char_boundary(end - REPEATED_BYTES.min(end / 4));
            rest = rest.get(next..).unwrap_or_default();
        }
        part.text.push_str(rest);
        part.ends += 1;
    }
    parts.extend((!part.text.is_empty()).then_some(part));
    parts.truncate(PARTS);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the sizes, every sentence is whole in a part, and a text counts only where its end was shown.
        #[test]
        fn every_sentence_is_whole_in_a_part(sizes in prop::collection::vec(0..6_000usize, 1..12), room in 600..4_000usize) {
            let text = |(at, size): (usize, &usize)| {
                format!("{}The berth of ship {at} is number {}.{}", "ä".repeat(size / 4), at * 7, " x".repeat(size / 4))
            };
            let texts: Vec<String> = sizes.iter().enumerate().map(text).collect();
            let parts = split_into_parts(&texts, room);
            prop_assert!(parts.len() <= PARTS && parts.iter().all(|part| part.text.len() <= room));
            let shown = parts.last().map_or(0, |part| part.ends);
            for at in 0..shown {
                let sentence = format!("The berth of ship {at} is number {}.", at * 7);
                prop_assert!(parts.iter().any(|part| part.text.contains(&sentence)), "{}", sentence);
            }
            prop_assert!(parts.len() == PARTS || shown == texts.len());
        }
    }
}
