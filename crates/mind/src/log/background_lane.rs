//! The work lane: its inputs wait among what lies ahead, whatever of the foreground stands before or behind them.
//!
//! A decision of the foreground passes everything up to its cursor but what is the work lane's to decide on. A decision of
//! the work lane leaves the cursor where it is, names its input, and passes what concerns work up to there. Which is which
//! follows from the state that stands when the decision is folded, so whoever folds it passes the same. What the foreground
//! left is the work lane's for good, should it by then concern a conversation: cursors do not go back.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_events::record::Record;
use kairo_proto::v1::AgentDecision;

use super::{DecisionInput, Divergence, Log, NextInput, PendingRecord};
use crate::state::AgentState;

/// The next thing to do for the work lane.
#[derive(Clone, Debug, PartialEq)]
pub enum NextBackgroundInput {
    /// This input needs a decision, in this state.
    Input(Arc<AgentState>, DecisionInput),
    /// The records at these sequences must be read first: see [`Log::supply_record`].
    Missing(Vec<u64>),
}

/// Returns true if the work lane has to decide on the record.
pub(super) fn is_left_for_background(state: &Arc<AgentState>, record: &Record) -> bool {
    state.concerns_background(record) && !apply_unless_background(&mut state.clone(), record, false)
}

/// Observes a record, unless the work lane has to decide on it: then it stays pending. Returns true if it was observed.
/// `was_left`: the record was left for the work lane before.
fn apply_unless_background(state: &mut Arc<AgentState>, record: &Record, was_left: bool) -> bool {
    if !was_left && !state.concerns_background(record) {
        Arc::make_mut(state).apply_record(record);
        return true;
    }
    let input = record.sequence;
    apply_if(state, record, |with| !(with.is_background_input(input) || was_left && with.needs_decision(input)))
}

/// Observes what concerns work, for a decision of the work lane. `is_its_own`: it is the work lane's whatever it comes to. What is
/// then the foreground's to decide on, such as the verdict of somebody who was not asked, stays ahead for it. Whether it was observed.
fn apply_for_background(state: &mut Arc<AgentState>, record: &Record, is_its_own: bool) -> bool {
    if is_its_own {
        Arc::make_mut(state).apply_record(record);
        return true;
    }
    let input = record.sequence;
    apply_if(state, record, |with| with.is_background_input(input) || !with.needs_decision(input))
}

/// Observes a record if the state is then as wanted. Whether it was observed.
fn apply_if(state: &mut Arc<AgentState>, record: &Record, is_wanted: impl FnOnce(&AgentState) -> bool) -> bool {
    let mut with = state.clone();
    Arc::make_mut(&mut with).apply_record(record);
    let observed = is_wanted(&with);
    if observed {
        *state = with;
    }
    observed
}

/// Observes what a decision passes; which sequences these are. `standing` is how far everything but work was observed
/// before the input of a decision on the way, `observed` how far with it.
pub(super) fn apply_passed(
    state: &mut Arc<AgentState>,
    ahead: &VecDeque<PendingRecord>,
    (standing, observed): (u64, u64),
    decision: &AgentDecision,
) -> Result<BTreeSet<u64>, Divergence> {
    let mut passed = BTreeSet::new();
    // What was left for the work lane stays: whether it still is of use is looked at behind each decision, and nowhere else.
    let of_foreground = ahead.iter().take_while(|next| next.sequence <= decision.cursor);
    for next in of_foreground.filter(|next| next.sequence > standing && next.sequence != decision.work_input) {
        // What cannot be observed any more was not read in time: whoever decided knew it.
        let mut observe = || Ok(apply_unless_background(state, next.record.as_ref().ok_or(Divergence)?, false));
        if next.sequence <= observed || observe()? {
            passed.insert(next.sequence);
        }
    }
    for next in ahead.iter().take_while(|next| next.sequence <= decision.work_input) {
        if passed.contains(&next.sequence) {
            continue;
        }
        let record = next.record.as_ref().ok_or(Divergence)?;
        let was_left = next.sequence <= standing;
        let is_input = next.sequence == decision.work_input;
        if (is_input || was_left || state.concerns_background(record))
            && apply_for_background(state, record, is_input || was_left)
        {
            passed.insert(next.sequence);
        }
    }
    Ok(passed)
}

impl Log {
    /// Returns the sequence up to which everything but work is observed for good.
    pub(super) fn committed_position(&self) -> u64 {
        self.base.as_ref().map_or(self.observed, |base| base.observed)
    }

    /// Returns the index of the first pending record that is not left for the work lane.
    pub(super) fn first_foreground_index(&self) -> usize {
        let standing = self.committed_position();
        self.pending.partition_point(|ahead| ahead.sequence <= standing)
    }

    /// Returns the work lane's next input, or the records it lacks; `None` if there is nothing to decide on.
    pub fn next_background_input(&self) -> Option<NextBackgroundInput> {
        let standing = self.committed_position();
        let mut state = self.base.as_ref().map_or(&self.state, |base| &base.state).clone();
        if state.work.is_nothing() && self.first_foreground_index() == 0 {
            return None;
        }
        // What the tail has yet to bring may stand before what this replica wrote itself.
        for next in self.pending.iter().take_while(|next| next.sequence <= self.read) {
            let Some(record) = &next.record else {
                if next.sequence <= standing || state.background_follows(next.sequence) {
                    return Some(NextBackgroundInput::Missing(vec![next.sequence]));
                }
                continue;
            };
            let was_left = next.sequence <= standing;
            let is_seen =
                (was_left || state.concerns_background(record)) && apply_for_background(&mut state, record, was_left);
            if is_seen && (state.is_background_input(next.sequence) || was_left && state.needs_decision(next.sequence))
            {
                let input = DecisionInput { record: Box::new(record.clone()), cursor: standing, is_work: true };
                return Some(NextBackgroundInput::Input(state, input));
            }
        }
        None
    }

    /// Those left for the work lane that are to be read.
    pub(super) fn missing_background(&self) -> Option<NextInput> {
        let left = self.pending.iter().take(self.first_foreground_index());
        let missing: Vec<u64> = left.filter(|next| next.record.is_none()).map(|next| next.sequence).collect();
        (!missing.is_empty()).then_some(NextInput::Missing(missing))
    }

    /// After a decision: what was left for the work lane and is of no use to it any more is observed; and the next task
    /// begins with the decision, if one is to.
    pub(super) fn settle_background(&mut self, decided: Record) -> Result<(), Divergence> {
        let mut observed = BTreeSet::new();
        for next in self.pending.iter().take_while(|next| next.sequence <= self.observed) {
            if apply_unless_background(&mut self.state, next.record.as_ref().ok_or(Divergence)?, true) {
                observed.insert(next.sequence);
            }
        }
        self.remove_pending(&observed);
        if self.state.background_follows(decided.sequence) {
            self.insert_pending(PendingRecord { sequence: decided.sequence, record: Some(decided), user: None });
        }
        Ok(())
    }

    /// Takes these out of what is ahead; only what stands up to the last of them is looked at.
    pub(super) fn remove_pending(&mut self, sequences: &BTreeSet<u64>) {
        let Some(last) = sequences.last() else { return };
        let end = self.pending.partition_point(|ahead| ahead.sequence <= *last);
        let looked_at: Vec<PendingRecord> = self.pending.drain(..end).collect();
        for left in looked_at.into_iter().rev().filter(|ahead| !sequences.contains(&ahead.sequence)) {
            self.pending.push_front(left);
        }
    }

    /// Puts it where it stands: the tail may bring later what stands before it.
    pub(super) fn insert_pending(&mut self, ahead: PendingRecord) {
        let at = self.pending.partition_point(|it| it.sequence < ahead.sequence);
        self.pending.insert(at, ahead);
    }
}
