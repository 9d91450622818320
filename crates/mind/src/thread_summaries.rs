//! Conversations that are due to be summed up, if the profile says after how many answers. Built from the log.
//!
//! The work lane sums up when nothing else is to be done. Whatever the outcome, the same number of answers passes
//! before the next time.

use std::sync::Arc;

use kairo_proto::v1::AgentDecision;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    background_lane::NextWork,
    intrinsics::threads,
    state::{AgentState, AgentTurn},
};

/// Conversations that wait for it; the oldest make room.
const WAITING: usize = 32;

/// A conversation that is to be summed up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueSummary {
    pub thread_id: String,
    /// The turn of its last answer: what is said later is no part of it, so that nobody pays twice for a question that a new
    /// message changed.
    pub until: Uuid,
    /// The chain of that.
    pub correlation: Uuid,
    /// The request's text, as it was at the beginning: a call that ends meanwhile, or an entry that makes room, would
    /// make it another request, which is paid for once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Arc<str>>,
}

impl AgentState {
    /// An answer was given in a thread, to whoever is in conversation there.
    pub(super) fn note_answer(&mut self, thread_id: &str, turn_id: Uuid, correlation: Uuid) {
        let after = self.profile.as_ref().map_or(0, |profile| profile.summary_after);
        let is_conversation =
            |turn: &AgentTurn| !self.is_background_turn(turn) && turn.agent_request().is_none() && !turn.is_aside();
        if after == 0 || !self.turns.get(&turn_id).is_some_and(is_conversation) {
            return;
        }
        let Some(thread) = self.threads.get_mut(thread_id) else { return };
        thread.answers = thread.answers.saturating_add(1);
        let is_under_way = matches!(&self.work.next, Some((NextWork::Summary(under_way), _)) if under_way == thread_id);
        if thread.answers < after || is_under_way {
            return;
        }
        let waiting = &mut self.work.summaries;
        waiting.retain(|due| due.thread_id != thread_id);
        waiting.push_back(DueSummary { thread_id: thread_id.to_owned(), until: turn_id, correlation, question: None });
        // What was begun is ended.
        let first = waiting.iter().position(|due| due.question.is_none());
        if let Some(first) = first.filter(|_| waiting.len() > WAITING) {
            waiting.remove(first);
        }
    }

    /// It was summed up, or nothing came of that.
    pub(super) fn end_summary(&mut self, thread_id: &str) {
        self.work.summaries.retain(|due| due.thread_id != thread_id);
        if let Some(thread) = self.threads.get_mut(thread_id) {
            thread.answers = 0;
        }
    }

    /// The conversation that a decision sums up, before that is taken in.
    pub(super) fn summarized_thread(&self, decision: &AgentDecision) -> Option<&str> {
        match &self.work.next {
            Some((NextWork::Summary(thread_id), begins)) if *begins == decision.work_input => Some(thread_id),
            _ => None,
        }
    }

    pub(super) fn due_summary(&self, thread_id: &str) -> Option<&DueSummary> {
        self.work.summaries.iter().find(|due| due.thread_id == thread_id)
    }

    /// Summing a conversation up begins: what is asked stays as it is now.
    pub(super) fn begin_summary(&mut self, thread_id: &str) {
        let until = self.due_summary(thread_id).map(|due| due.until);
        let question = until.and_then(|until| threads::summary_question(self, thread_id, Some(until)));
        if let Some(due) = self.work.summaries.iter_mut().find(|due| due.thread_id == thread_id) {
            due.question = question.map(Arc::from);
        }
    }

    /// The conversation that has waited longest.
    pub(super) fn next_summary(&self) -> Option<NextWork> {
        self.work.summaries.front().map(|due| NextWork::Summary(due.thread_id.clone()))
    }
}
