//! Summing up what is oldest of a thread, before it is too long to be shown.

use kairo_proto::v1::{ThreadCompacted, decided_event::Event};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::{AnswerFailure, Deliberation, Purpose};
use crate::{intrinsics::threads, prompts, request::ModelRequest, secrets, thread::cut_to, tokens};

/// Longest summary that is kept, in bytes.
const SUMMARY_BYTES: usize = 16 * 1024;
/// Of an entry, so much is shown to be summed up, in bytes.
const ENTRY_BYTES: usize = 4 * 1024;
/// Bytes that a token is at least, in the languages that have most of them.
const TOKEN_BYTES: usize = 2;

/// A thought that waits until its thread is summed up.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCompaction {
    pub(super) entries: usize,
    pub(super) tokens: usize,
    pub(super) step: Option<usize>,
    /// Index of the part that is summed up; none if there are no parts, as in builds before epoch 10.
    pub(super) part: Option<usize>,
}

impl Deliberation<'_> {
    /// Returns true if the models of a tier failed lately and are not asked for anything that a turn can do without.
    pub(super) fn is_tier_paused(&self, tier: &str) -> bool {
        let failing = self.mind.models.failing().get(tier);
        self.limits.memory_rules > 0 && failing.is_some_and(|failing| failing.pause > 0)
    }

    /// Has what is oldest of a turn's thread summed up first, if a request would be too much for its model, or the thread is
    /// about to drop it. Once in a decision: it may be one message that is too long.
    pub(super) fn compact_if_needed(&mut self, turn_id: Uuid, step: Option<usize>, request: &ModelRequest) -> bool {
        let Some(most) = self.context_tokens_of(request.tier) else { return false };
        // What only an endpoint has said is known of the tier that it said it of.
        let is_told = self.limits.context_tokens.get(request.tier).is_none_or(|most| *most == 0);
        let Some(light) = self.context_tokens_of("light").or(is_told.then_some(most)) else { return false };
        let Some(thread_id) = self.turn(turn_id).map(|turn| turn.thread_id.clone()) else { return false };
        if self.compacted.contains(&thread_id) {
            return false;
        }
        let Some(thread) = self.mind.threads.get(&thread_id) else { return false };
        if self.is_tier_paused("light") {
            return false;
        }
        let tokens = tokens::count_over(request, most / 4 * 3);
        if tokens.is_none() && !thread.is_nearly_full(self.mind.history_limit()) {
            return false;
        }
        let open: BTreeSet<Uuid> = self.mind.turns.keys().copied().collect();
        let Some(entries) = thread.compactable_entries(&open) else { return false };
        let compacting = PendingCompaction { entries, tokens: tokens.unwrap_or_default(), step, part: None };
        if self.limits.memory_rules > 0 {
            self.compacted.insert(thread_id);
            return self.sum_up_in_parts(turn_id, compacting, most, light);
        }
        let told = threads::oldest_entries(thread, entries, ENTRY_BYTES);
        // Its beginning is the summary of what was before it.
        let told = cut_to(&secrets::redact(&told).text, light / 4 * 3 * TOKEN_BYTES);
        let request = ModelRequest::from_prompt("light", prompts::COMPACT, told);
        self.compacted.insert(thread_id);
        self.ask_model(turn_id, Purpose::Compact(compacting), request);
        true
    }

    /// A thread was summed up: it is thought on.
    pub(super) fn receive_summary(
        &mut self,
        turn_id: Uuid,
        of: PendingCompaction,
        text: &str,
        model: &str,
    ) -> Result<(), AnswerFailure> {
        let summary = text.trim();
        if summary.is_empty() {
            return Err(AnswerFailure::malformed_answer("expected a summary"));
        }
        if let Some(part) = of.part {
            self.receive_part_summary(turn_id, part, Ok((summary, model)));
            return Ok(());
        }
        let Some(thread_id) = self.turn(turn_id).map(|turn| turn.thread_id.clone()) else { return Ok(()) };
        let compacted = ThreadCompacted {
            thread_id,
            entries: u32::try_from(of.entries).unwrap_or(u32::MAX),
            summary: cut_to(&secrets::redact(summary).text, SUMMARY_BYTES),
            model: model.to_owned(),
            tokens: u64::try_from(of.tokens).unwrap_or_default(),
        };
        self.add_event(turn_id, Event::ThreadCompacted(compacted));
        self.apply_decided();
        self.think(turn_id, of.step);
        Ok(())
    }

    /// Nobody could sum it up: what is oldest is dropped where there is no room, as it was ever.
    pub(super) fn continue_without_summary(&mut self, turn_id: Uuid, of: PendingCompaction) {
        self.apply_decided();
        self.think(turn_id, of.step);
    }
}
