//! Showing submodules what was decided, after it was. It is the work lane's, so that messages overtake it; whatever they answer, or do
//! not, it comes to an end.

use kairo_events::ids;
use kairo_proto::v1::{AgentBroadcast, decided_event::Event};
use uuid::Uuid;

use super::{
    Deliberation, Purpose,
    submodule_thoughts::{SubmoduleCall, SubmodulePurpose, SubmoduleReply},
};
use crate::submodules::{Submodule, model_requests};

impl Deliberation<'_> {
    /// Shows what was decided in a thread to all that want to know.
    pub(super) fn broadcast_decisions(&mut self, thread_id: &str, through: u64) {
        let wants = |voice: &&Submodule| voice.wants_decisions && !self.is_submodule_paused(voice);
        let voices: Vec<Submodule> = self.mind.active_submodules().filter(wants).cloned().collect();
        if voices.is_empty() {
            return self.end_broadcast(thread_id, through, Vec::new());
        }
        let turn_id = self.broadcast_turn_id();
        self.heard_by.insert(turn_id, voices.len());
        for voice in &voices {
            let request = model_requests::broadcast_request(&self.mind, voice, thread_id, through);
            let aim = SubmodulePurpose::Broadcast { thread_id: thread_id.to_owned(), through };
            self.ask_model(turn_id, Purpose::Submodule(SubmoduleCall::for_module(voice, aim)), request);
        }
    }

    /// Records a submodule's thought on the decision, for next time. Its changes to the inner state are made already.
    pub(super) fn receive_broadcast_reply(
        &mut self,
        turn_id: Uuid,
        voice: &SubmoduleCall,
        (thread_id, through): (&str, u64),
        said: SubmoduleReply,
    ) {
        if let Some(event) = voice.to_event(&said, true) {
            self.add_event_to(turn_id, thread_id, self.broadcast_correlation(thread_id, through), event);
        }
        if self.count_submodule_reply(turn_id) {
            let asked =
                self.mind.active_submodules().filter(|voice| voice.wants_decisions && !self.is_submodule_paused(voice));
            let modules = asked.map(|voice| voice.name.clone()).collect();
            self.end_broadcast(thread_id, through, modules);
        }
    }

    /// It was shown.
    pub(super) fn end_broadcast(&mut self, thread_id: &str, through: u64, modules: Vec<String>) {
        let told = AgentBroadcast { thread_id: thread_id.to_owned(), through, modules };
        let turn_id = self.broadcast_turn_id();
        let correlation = self.broadcast_correlation(thread_id, through);
        self.add_event_to(turn_id, thread_id, correlation, Event::Broadcast(told));
        self.apply_decided();
    }

    /// It belongs to the chain of what is shown, whatever decision it begins behind.
    pub(super) fn broadcast_correlation(&self, thread_id: &str, through: u64) -> Uuid {
        self.mind.broadcast_correlation(thread_id, through).unwrap_or(self.input.envelope.correlation_id)
    }

    fn broadcast_turn_id(&self) -> Uuid {
        ids::derive(self.decision_id, "broadcast")
    }
}
