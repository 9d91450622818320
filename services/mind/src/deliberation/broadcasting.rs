//! Showing submodules what was decided, after it was. It is the work lane's, so that messages overtake it; whatever they answer, or do
//! not, it comes to an end.

use kairo_events::ids;
use kairo_proto::v1::{AgentBroadcast, decided_event::Event};
use uuid::Uuid;

use super::{
    Deliberation, Purpose,
    thinking_along::{Aim, Heard, Voice},
};
use crate::submodules::{Submodule, voiced};

impl Deliberation<'_> {
    /// Shows what was decided in a thread to all that want to know.
    pub(super) fn broadcast(&mut self, thread_id: &str, through: u64) {
        let wants = |voice: &&Submodule| voice.wants_decisions && !self.is_at_rest(voice);
        let voices: Vec<Submodule> = self.mind.voices().filter(wants).cloned().collect();
        if voices.is_empty() {
            return self.end_broadcast(thread_id, through, Vec::new());
        }
        let turn_id = self.broadcast_turn();
        self.heard_by.insert(turn_id, voices.len());
        for voice in &voices {
            let request = voiced::told(&self.mind, voice, thread_id, through);
            let aim = Aim::Told { thread_id: thread_id.to_owned(), through };
            self.ask(turn_id, Purpose::Voice(Voice::of(voice, aim)), request);
        }
    }

    /// Records a submodule's thought on the decision, for next time. Its changes to the inner state are made already.
    pub(super) fn heard_of(&mut self, turn_id: Uuid, voice: &Voice, (thread_id, through): (&str, u64), said: Heard) {
        if let Some(event) = voice.event(&said, true) {
            self.add_to(turn_id, thread_id, self.shown_chain(thread_id, through), event);
        }
        if self.have_all_answered(turn_id) {
            let asked = self.mind.voices().filter(|voice| voice.wants_decisions && !self.is_at_rest(voice));
            let modules = asked.map(|voice| voice.name.clone()).collect();
            self.end_broadcast(thread_id, through, modules);
        }
    }

    /// It was shown.
    pub(super) fn end_broadcast(&mut self, thread_id: &str, through: u64, modules: Vec<String>) {
        let told = AgentBroadcast { thread_id: thread_id.to_owned(), through, modules };
        let (turn_id, correlation) = (self.broadcast_turn(), self.shown_chain(thread_id, through));
        self.add_to(turn_id, thread_id, correlation, Event::Broadcast(told));
        self.settle();
    }

    /// It belongs to the chain of what is shown, whatever decision it begins behind.
    pub(super) fn shown_chain(&self, thread_id: &str, through: u64) -> Uuid {
        self.mind.shown_of(thread_id, through).unwrap_or(self.input.envelope.correlation_id)
    }

    fn broadcast_turn(&self) -> Uuid {
        ids::derived(self.decision_id, "broadcast")
    }
}
