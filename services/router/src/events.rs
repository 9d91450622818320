//! Telling agents what happened in other systems, if a task of theirs is known to wait for it; those of which that becomes
//! known later are told by [`crate::missed`].

use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus,
        append::Outgoing,
        consume::{Failure, RawDelivery, RawHandler, Settled},
    },
    copies::COPY_OF,
    envelope::{Envelope, Modality, Origin},
    ids::{self, Name},
    outside as marks,
    record::{Raw, Unreadable},
    subjects::{self, Service, TASK_TRIGGERED},
};
use kairo_proto::v1::TaskTriggered;

use crate::{
    hooks::Hooks,
    outside::{self, Outside},
};

/// The handler of [`kairo_core::subjects::Consumer::RouterEvents`].
pub struct Events {
    bus: Bus,
    hooks: Hooks,
}

impl Events {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), hooks: Hooks::new(bus) }
    }

    async fn tell(&self, raw: &Raw, trigger: &str, happened: &Outside) -> Result<(), Failure> {
        for agent in self.hooks.waiting_for(trigger).await? {
            self.bus.publish(&triggered(raw, trigger, happened, &agent, self.bus.now())).await?;
        }
        Ok(())
    }
}

impl RawHandler for Events {
    async fn handle(&self, delivery: &RawDelivery) -> Result<Settled, Failure> {
        let raw = &delivery.raw;
        if subjects::is_announcement(&raw.subject) {
            return Ok(Settled::Done);
        }
        let Some(trigger) = subjects::outside(&raw.subject) else {
            let expected = "subject: expected kairo.system.<source>.<verb>, both of 1 to 64 of a-z 0-9 _ -";
            return Err(Failure::Permanent(expected.to_owned()));
        };
        let happened = read(raw, &trigger, self.bus.limits.max_body_bytes).map_err(Failure::Permanent)?;
        self.tell(raw, &trigger, &happened).await?;
        Ok(Settled::Done)
    }
}

/// Reads the event that a message describes.
///
/// # Errors
/// A description of the fault in the message, for the dead letter.
pub fn read(raw: &Raw, trigger: &str, limit: usize) -> Result<Outside, String> {
    if let Some(from) = raw.header(COPY_OF) {
        return Err(Unreadable::Copy { from: from.to_owned() }.to_string());
    }
    let size = raw.payload.len();
    if size > limit {
        return Err(format!("body of {size} bytes is larger than the limit of {limit}"));
    }
    outside::read(|name| header(raw, name), &raw.payload, trigger, raw.sequence)
}

/// A header, whatever the case of its name: other systems' clients differ.
fn header<'r>(raw: &'r Raw, name: &str) -> Option<&'r str> {
    let mut headers = raw.headers.iter();
    let (_, values) = headers.find(|(key, _)| AsRef::<str>::as_ref(*key).eq_ignore_ascii_case(name))?;
    values.first().map(|value| value.as_str())
}

/// Builds the message to the agent: its id is the same however often the event is delivered.
pub fn triggered(raw: &Raw, trigger: &str, happened: &Outside, agent: &Name, now: Timestamp) -> Outgoing {
    let id = ids::derived(happened.id, &format!("task.triggered/{agent}"));
    let envelope = Envelope {
        correlation_id: happened.id,
        causation_id: Some(happened.id),
        modality: Modality::State,
        traceparent: header(raw, "traceparent").map(str::to_owned),
        ..Envelope::entering(id, Service::Router, Origin::System, now)
    };
    let body = TaskTriggered {
        trigger: trigger.to_owned(),
        event_id: happened.id.to_string(),
        r#type: happened.type_name.clone(),
        data: happened.data.to_string(),
        outside: vec![marks::mark(marks::Kind::System, trigger.split('.').next().unwrap_or_default())],
    };
    Outgoing::new(&TASK_TRIGGERED, agent, envelope, body)
}
