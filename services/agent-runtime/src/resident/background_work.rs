//! The work of an agent beside its conversations: its next work decision is prepared while the foreground answers
//! users, and committed between their decisions.

use std::sync::Arc;

use kairo_mind::{
    log::{CollectedCompletions, DecisionInput, Log, NextBackgroundInput},
    state::AgentState,
};

use super::{Resident, RunningDecision};
use crate::turn::{CompletionCache, Stage};

/// The work lane of an agent.
#[derive(Default)]
pub(super) struct BackgroundWork {
    pub running: Option<RunningDecision>,
    /// The input for whose decision all answers are there.
    pub prepared: Option<u64>,
    pub completions: CompletionCache,
    /// The input that a decision was begun on last.
    pub deciding: u64,
}

impl BackgroundWork {
    /// Beside a foreground that paid for this.
    pub fn with_foreground(foreground: &CompletionCache) -> Self {
        Self { completions: CompletionCache::for_background(None, foreground), ..Self::default() }
    }

    pub fn is_committing(&self) -> bool {
        self.committing().is_some()
    }

    /// The decision that is being written.
    pub fn committing(&self) -> Option<&RunningDecision> {
        self.running.as_ref().filter(|running| running.turn.stage == Stage::Commit)
    }

    /// Nobody waits any more for the decision under way. What it has paid for stays.
    pub fn interrupt(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
            self.completions.abandoned_calls.interrupt();
        }
    }

    /// For a snapshot; what was given up the foreground says.
    pub fn save(&self) -> Option<CollectedCompletions> {
        let answers = self.completions.save(self.deciding)?;
        (!answers.completions.is_empty()).then_some(CollectedCompletions { given_up: Vec::new(), ..answers })
    }
}

impl Resident {
    /// Returns the prepared decision if it may be committed now. The foreground must be idle, so that no answer to a
    /// user is requested twice.
    pub fn background_to_commit(&mut self) -> Option<(Arc<AgentState>, DecisionInput)> {
        let prepared = self.background.prepared?;
        if self.running.is_some() || self.background.running.is_some() || self.must_wait() {
            return None;
        }
        match self.log.as_ref()?.next_background_input() {
            Some(NextBackgroundInput::Input(state, input)) if input.record.sequence == prepared => Some((state, input)),
            _ => {
                self.background.prepared = None;
                None
            }
        }
    }

    /// Returns the next input of the work lane, unless it already has one.
    pub fn background_to_prepare(&self) -> Option<NextBackgroundInput> {
        let waits = self.background.running.is_some() || self.background.prepared.is_some() || self.must_wait();
        if waits { None } else { self.log.as_ref()?.next_background_input() }
    }

    /// All answers are there, or they are not enough.
    pub fn set_prepared(&mut self, enough: bool) {
        self.background.prepared = enough.then_some(self.background.deciding);
    }

    /// Gives up what is thought about in the work lane if that is no longer what it is to decide on.
    pub(super) fn drop_stale_background(&mut self) {
        if self.background.running.is_none()
            && self.background.prepared.is_none()
            && self.background.completions.is_empty()
        {
            return;
        }
        let next = match self.log.as_ref().and_then(Log::next_background_input) {
            Some(NextBackgroundInput::Input(_, input)) => Some(input.record.sequence),
            // Nobody knows yet.
            Some(NextBackgroundInput::Missing(_)) => return,
            None => None,
        };
        if next != Some(self.background.deciding) {
            self.background.interrupt();
            self.background.prepared = None;
            self.background.completions.abandon();
        }
    }
}
