//! Summing a conversation up in which the agent answered. It is the work lane's, so that messages overtake it, and nobody waits for it.

use kairo_events::ids;
use kairo_proto::v1::{ThreadSummarized, decided_event::Event};
use uuid::Uuid;

use super::{AnswerFailure, Deliberation, Purpose};
use crate::{intrinsics::threads, request::ModelRequest};

impl Deliberation<'_> {
    /// The light model is asked once what a conversation is about by now.
    pub(super) fn ask_for_summary(&mut self, thread_id: &str) {
        let Some(due) = self.mind.due_summary(thread_id) else { return };
        // An older build began it, and kept nothing.
        let as_it_is = || threads::summary_question(&self.mind, thread_id, Some(due.until));
        let Some(question) = due.question.as_deref().map(str::to_owned).or_else(as_it_is) else { return };
        let turn_id = ids::derive(self.decision_id, "summary");
        let request = ModelRequest { tier: "light", ..threads::request_from_question(question) };
        self.ask_model(turn_id, Purpose::Summarize { thread_id: thread_id.to_owned() }, request);
    }

    /// Records the title and summary that a model gave a thread.
    pub(super) fn record_summary(&mut self, turn_id: Uuid, thread_id: &str, text: &str) -> Result<(), AnswerFailure> {
        let (title, summary) = threads::read_summary(text).map_err(AnswerFailure::malformed_answer)?;
        let summarized = ThreadSummarized { thread_id: thread_id.to_owned(), title, summary };
        let event = Event::ThreadSummarized(summarized);
        // By itself it belongs to the chain of the last answer, whatever decision it begins behind.
        let of_its_own = self.mind.due_summary(thread_id).filter(|_| self.turn(turn_id).is_none());
        match of_its_own.map(|due| due.correlation) {
            Some(correlation) => self.add_event_to(turn_id, thread_id, correlation, event),
            None => self.add_event(turn_id, event),
        };
        self.work.push_back(turn_id);
        Ok(())
    }
}
