//! What could not be read when its agent came to it.

use kairo_core::bus::consume::{Delivery, Failure, Handler, Settled};

/// Deals again with messages of [`kairo_core::subjects::Consumer::AgentRuntime`]. One that this build can read was passed over when it
/// stood in front: the agent's state behind it, and its decisions, rest on that.
pub struct PassedOver;

impl Handler for PassedOver {
    async fn handle(&self, _: &Delivery) -> Result<Settled, Failure> {
        let reason = "its agent has gone on without it, and what it decided since rests on that: have it said again";
        Err(Failure::Permanent(reason.to_owned()))
    }
}
