//! Finding the keywords of memories that were written without, several in one call. It is the work lane's, so nobody waits for it.

use kairo_events::ids;
use kairo_proto::v1::decided_event::Event;
use uuid::Uuid;

use super::{AnswerFailure, Deliberation, Purpose};
use crate::intrinsics::memory::keyword_naming;

impl Deliberation<'_> {
    /// The light model is asked once for the keywords of these memories.
    pub(super) fn find_keywords(&mut self, memories: &[String]) {
        let known = memories.iter().filter_map(|id| self.mind.work.keywords.find(id));
        let contents: Vec<&str> = known.map(|waiting| waiting.memory.content.as_str()).collect();
        if contents.is_empty() {
            return;
        }
        let request = keyword_naming::request(&contents);
        self.ask_model(ids::derive(self.decision_id, "keywords"), Purpose::Keywords(memories.to_vec()), request);
    }

    /// Each memory is written once more, with the keywords that were found.
    pub(super) fn record_keywords(
        &mut self,
        turn_id: Uuid,
        memories: &[String],
        text: &str,
    ) -> Result<(), AnswerFailure> {
        let known = memories.iter().filter_map(|id| self.mind.work.keywords.find(id));
        let waiting: Vec<_> = known.cloned().collect();
        let named = keyword_naming::read(text, waiting.len()).map_err(AnswerFailure::malformed_answer)?;
        for (waiting, named) in waiting.into_iter().zip(named) {
            let Some(memory) = named.map(|named| named.apply_to(waiting.memory)) else { continue };
            let correlation = Uuid::parse_str(&waiting.correlation).unwrap_or_default();
            self.add_event_to(turn_id, &waiting.thread_id, correlation, Event::MemoryAppended(memory));
        }
        Ok(())
    }
}
