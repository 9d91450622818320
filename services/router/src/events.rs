//! Telling agents what happened in other systems, if a task of theirs is known to wait for it; those of which that becomes
//! known later are told by [`crate::missed_events`].

use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus,
        append::OutgoingEvent,
        consume::{DeliveryOutcome, HandlerFailure, RawDelivery, RawHandler},
    },
    copies::COPY_OF,
    envelope::{Envelope, Modality, Origin},
    ids::{self, Name},
    outside as marks,
    record::{RawMessage, UnreadableRecord},
    subjects::{self, Service, TASK_TRIGGERED},
};
use kairo_proto::v1::TaskTriggered;

use crate::{
    hooks::HookRegistry,
    outside_event::{self, OutsideEvent},
};

/// The handler of [`kairo_core::subjects::Consumer::RouterEvents`].
pub struct OutsideEventHandler {
    bus: Bus,
    hooks: HookRegistry,
}

impl OutsideEventHandler {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), hooks: HookRegistry::new(bus) }
    }

    async fn trigger_waiting_agents(
        &self,
        raw: &RawMessage,
        trigger: &str,
        happened: &OutsideEvent,
    ) -> Result<(), HandlerFailure> {
        for agent in self.hooks.agents_waiting_for(trigger).await? {
            self.bus.publish(&triggered_event(raw, trigger, happened, &agent, self.bus.now())).await?;
        }
        Ok(())
    }
}

impl RawHandler for OutsideEventHandler {
    async fn handle(&self, delivery: &RawDelivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let raw = &delivery.raw;
        if subjects::is_announcement(&raw.subject) {
            return Ok(DeliveryOutcome::Done);
        }
        let Some(trigger) = subjects::trigger_of(&raw.subject) else {
            let expected = "subject: expected kairo.system.<source>.<verb>, both of 1 to 64 of a-z 0-9 _ -";
            return Err(HandlerFailure::Permanent(expected.to_owned()));
        };
        let happened = read_event(raw, &trigger, self.bus.limits.max_body_bytes).map_err(HandlerFailure::Permanent)?;
        self.trigger_waiting_agents(raw, &trigger, &happened).await?;
        Ok(DeliveryOutcome::Done)
    }
}

/// Reads the event that a message describes.
///
/// # Errors
/// A description of the fault in the message, for the dead letter.
pub fn read_event(raw: &RawMessage, trigger: &str, limit: usize) -> Result<OutsideEvent, String> {
    if let Some(from) = raw.header(COPY_OF) {
        return Err(UnreadableRecord::Copy { from: from.to_owned() }.to_string());
    }
    let size = raw.payload.len();
    if size > limit {
        return Err(format!("body of {size} bytes is larger than the limit of {limit}"));
    }
    outside_event::parse_event(|name| header_ignoring_case(raw, name), &raw.payload, trigger, raw.sequence)
}

/// A header, whatever the case of its name: other systems' clients differ.
fn header_ignoring_case<'r>(raw: &'r RawMessage, name: &str) -> Option<&'r str> {
    let mut headers = raw.headers.iter();
    let (_, values) = headers.find(|(key, _)| AsRef::<str>::as_ref(*key).eq_ignore_ascii_case(name))?;
    values.first().map(|value| value.as_str())
}

/// Builds the message to the agent: its id is the same however often the event is delivered.
pub fn triggered_event(
    raw: &RawMessage,
    trigger: &str,
    happened: &OutsideEvent,
    agent: &Name,
    now: Timestamp,
) -> OutgoingEvent {
    let id = ids::derive(happened.id, &format!("task.triggered/{agent}"));
    let envelope = Envelope {
        correlation_id: happened.id,
        causation_id: Some(happened.id),
        modality: Modality::State,
        traceparent: header_ignoring_case(raw, "traceparent").map(str::to_owned),
        ..Envelope::from_outside(id, Service::Router, Origin::System, now)
    };
    let body = TaskTriggered {
        trigger: trigger.to_owned(),
        event_id: happened.id.to_string(),
        r#type: happened.type_name.clone(),
        data: happened.data.to_string(),
        outside: vec![marks::source_mark(marks::OutsideSource::System, trigger.split('.').next().unwrap_or_default())],
    };
    OutgoingEvent::new(&TASK_TRIGGERED, agent, envelope, body)
}
