//! Decisions that begin again for a message that came, where the agent wants that.

use kairo_mind::state::Interjection;

use super::Resident;

impl Resident {
    /// Returns true if the decision under way should restart, so that a message that has just arrived is decided on
    /// with it.
    pub(super) fn should_restart_for(&self, message: u64) -> bool {
        let Some(log) = &self.log else { return false };
        let policy = log.state.profile.as_ref().map(|profile| profile.interjection).unwrap_or_default();
        let may = policy == Interjection::Restart && self.running.is_some() && self.restarts < self.restarts_allowed;
        may && log.would_join(message)
    }

    /// Restarts the decision under way with the new message. The answers to its requests are given up.
    pub(super) fn restart_decision(&mut self) {
        self.restarts += 1;
        self.interrupt();
        self.completions.abandon();
        if let Some(log) = &mut self.log {
            log.restart_joining();
        }
    }
}
