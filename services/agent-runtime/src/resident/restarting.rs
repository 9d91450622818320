//! Decisions that begin again for a message that came, where the agent wants that.

use kairo_mind::state::Interjection;

use super::Resident;

impl Resident {
    /// Whether a decision on the way is to begin again for a message that has come, which is then decided on with it.
    pub(super) fn wants_restart(&self, message: u64) -> bool {
        let Some(log) = &self.log else { return false };
        let policy = log.state.profile.as_ref().map(|profile| profile.interjection).unwrap_or_default();
        let may = policy == Interjection::Restart && self.running.is_some() && self.restarts < self.restarts_allowed;
        may && log.would_join(message)
    }

    /// The decision on the way begins again, with what came. What was answered for it is of no use.
    pub(super) fn begin_again(&mut self) {
        self.restarts += 1;
        self.interrupt();
        self.paid.abandon();
        if let Some(log) = &mut self.log {
            log.join_anew();
        }
    }
}
