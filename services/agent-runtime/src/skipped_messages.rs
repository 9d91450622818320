//! Refuses retries of messages that an agent passed over because it could not read them.

use kairo_core::bus::consume::{Delivery, DeliveryOutcome, Handler, HandlerFailure};

/// Refuses retries for [`kairo_core::subjects::Consumer::AgentRuntime`]. Even if this build can read the message, the
/// agent passed over it: its later state and decisions rest on that.
pub struct SkippedMessageHandler;

impl Handler for SkippedMessageHandler {
    async fn handle(&self, _: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let reason = "its agent has gone on without it, and what it decided since rests on that: have it said again";
        Err(HandlerFailure::Permanent(reason.to_owned()))
    }
}
