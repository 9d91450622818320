//! Looking at what is around when a message comes, where the profile wants it.

use uuid::Uuid;

use super::Deliberation;
use crate::{
    chain::Origin,
    environment::Perception,
    state::{AgentTurn, TurnCause},
};

impl Deliberation<'_> {
    /// Looks at what is around before a message is thought about, all at once. Whether that is begun.
    pub(super) fn begin_perception(&mut self, turn_id: Uuid) -> bool {
        let Some(profile) = self.mind.profile.as_ref().filter(|profile| !profile.environment.is_empty()) else {
            return false;
        };
        let steps: Vec<_> = profile.environment.iter().map(Perception::to_step).collect();
        let wants = |turn: &AgentTurn| {
            turn.cause == TurnCause::Message && turn.is_new() && turn.environment.perceived.is_none()
        };
        // A message is answered even if there is no room to look around.
        if !self.turn(turn_id).is_some_and(wants) || self.no_room_for_a_chain(turn_id).is_some() {
            return false;
        }
        self.start_chain(turn_id, Origin::Environment, "", None, &steps);
        true
    }

    /// Returns the reason why a turn that perceives may not call a tool, if there is one: a message waits only for
    /// calls that change nothing and need nobody's consent.
    pub(super) fn perception_refusal(&self, turn_id: Uuid, tool: &str, arguments: &str) -> Option<&'static str> {
        if !self.mind.is_perceiving(turn_id) {
            return None;
        }
        let tool = self.catalogue.tool(tool)?;
        match () {
            () if tool.acts_outside => Some("it does something that others see"),
            () if tool.needs_approval_of(arguments) => Some("it needs a human's consent"),
            () => None,
        }
    }
}
