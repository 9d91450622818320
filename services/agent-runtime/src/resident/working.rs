//! The work of an agent beside its conversations: its next work decision is prepared while the foreground answers
//! users, and committed between their decisions.

use std::sync::Arc;

use kairo_mind::{
    log::{Answers, Input, Log, ReadyWork},
    state::AgentState,
};

use super::{Resident, Running};
use crate::turn::{Paid, Stage};

/// The work lane of an agent.
#[derive(Default)]
pub(super) struct Work {
    pub running: Option<Running>,
    /// The input for whose decision all answers are there.
    pub prepared: Option<u64>,
    pub paid: Paid,
    /// The input that a decision was begun on last.
    pub deciding: u64,
}

impl Work {
    /// Beside a foreground that paid for this.
    pub fn beside(foreground: &Paid) -> Self {
        Self { paid: Paid::of_work(None, foreground), ..Self::default() }
    }

    pub fn is_committing(&self) -> bool {
        self.committing().is_some()
    }

    /// The decision that is being written.
    pub fn committing(&self) -> Option<&Running> {
        self.running.as_ref().filter(|running| running.turn.stage == Stage::Commit)
    }

    /// Nobody waits any more for the decision under way. What it has paid for stays.
    pub fn interrupt(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
            self.paid.given_up.interrupt();
        }
    }

    /// For a snapshot; what was given up the foreground says.
    pub fn save(&self) -> Option<Answers> {
        let answers = self.paid.save(self.deciding)?;
        (!answers.completions.is_empty()).then_some(Answers { given_up: Vec::new(), ..answers })
    }
}

impl Resident {
    /// Returns the prepared decision if it may be committed now. The foreground must be idle, so that no answer to a
    /// user is requested twice.
    pub fn work_to_commit(&mut self) -> Option<(Arc<AgentState>, Input)> {
        let prepared = self.work.prepared?;
        if self.running.is_some() || self.work.running.is_some() || self.must_wait() {
            return None;
        }
        match self.log.as_ref()?.next_work() {
            Some(ReadyWork::Input(state, input)) if input.record.sequence == prepared => Some((state, input)),
            _ => {
                self.work.prepared = None;
                None
            }
        }
    }

    /// Returns the next input of the work lane, unless it already has one.
    pub fn work_to_prepare(&self) -> Option<ReadyWork> {
        let waits = self.work.running.is_some() || self.work.prepared.is_some() || self.must_wait();
        if waits { None } else { self.log.as_ref()?.next_work() }
    }

    /// All answers are there, or they are not enough.
    pub fn prepared(&mut self, enough: bool) {
        self.work.prepared = enough.then_some(self.work.deciding);
    }

    /// Gives up what is thought about in the work lane if that is no longer what it is to decide on.
    pub(super) fn keep_to_work(&mut self) {
        if self.work.running.is_none() && self.work.prepared.is_none() && self.work.paid.is_empty() {
            return;
        }
        let next = match self.log.as_ref().and_then(Log::next_work) {
            Some(ReadyWork::Input(_, input)) => Some(input.record.sequence),
            // Nobody knows yet.
            Some(ReadyWork::Missing(_)) => return,
            None => None,
        };
        if next != Some(self.work.deciding) {
            self.work.interrupt();
            self.work.prepared = None;
            self.work.paid.abandon();
        }
    }
}
