//! Refuses retries of messages that an agent passed over because it could not read them.

use kairo_core::bus::consume::{Delivery, Failure, Handler, Settled};

/// Refuses retries for [`kairo_core::subjects::Consumer::AgentRuntime`]. Even if this build can read the message, the
/// agent passed over it: its later state and decisions rest on that.
pub struct PassedOver;

impl Handler for PassedOver {
    async fn handle(&self, _: &Delivery) -> Result<Settled, Failure> {
        let reason = "its agent has gone on without it, and what it decided since rests on that: have it said again";
        Err(Failure::Permanent(reason.to_owned()))
    }
}
