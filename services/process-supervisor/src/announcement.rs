//! Telling agents what there is to run, when that changes.

use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    ids::Name,
    record::Record,
    subjects::{CAPABILITIES, Service},
};
use kairo_proto::v1::ProcessCapabilities;

/// Replicas may publish at the same time; whoever comes later looks again.
const RACES: u32 = 16;

/// Publishes `capabilities`, unless they are in force already or there was and is nothing to run.
pub async fn publish(bus: &Bus, capabilities: &ProcessCapabilities) -> Result<(), BusError> {
    let Ok(owner) = Name::parse(Service::ProcessSupervisor.name()) else { return Ok(()) };
    for _ in 0..RACES {
        let last = bus.last_message(&CAPABILITIES.of_owner(&owner)).await?;
        let sequence = last.as_ref().map_or(0, |last| last.sequence);
        let published = last.and_then(|raw| raw.read(bus.limits.max_body_bytes).ok());
        match current_capabilities(published.as_ref()) {
            Some(published) if published.version == capabilities.version => return Ok(()),
            None if capabilities.tools.is_empty() => return Ok(()),
            _ => {}
        }
        let envelope = Envelope::from_outside(bus.new_id(), Service::ProcessSupervisor, Origin::System, bus.now());
        let event = OutgoingEvent::new(&CAPABILITIES, &owner, envelope, capabilities.clone());
        match bus.append(&event, sequence).await {
            Ok(_) => {
                let ProcessCapabilities { version, tools } = capabilities;
                tracing::info!(version, tools = tools.len(), "capabilities published");
                return Ok(());
            }
            Err(BusError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn current_capabilities(published: Option<&Record>) -> Option<&ProcessCapabilities> {
    ProcessCapabilities::of(&published?.body)
}
