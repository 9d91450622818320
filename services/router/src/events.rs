//! Telling agents what happened in other systems, if a task of theirs waits for it.

use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus, BusError,
        append::Outgoing,
        consume::{Failure, RawDelivery, RawHandler, Settled, backoff},
    },
    envelope::{Envelope, Modality, Origin},
    ids::{self, Name},
    record::Raw,
    subjects::{self, Consumer, EVENTS_STREAM, Service, TASK_TRIGGERED},
};
use kairo_proto::v1::TaskTriggered;

use crate::{
    hooks::Hooks,
    outside::{self, Outside},
};

/// The handler of [`Consumer::RouterEvents`].
pub struct Events {
    bus: Bus,
    hooks: Hooks,
}

impl Events {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), hooks: Hooks::new(bus) }
    }

    /// Whether all that was decided before this sequence is registered, so that no task misses what happened after it
    /// began to wait.
    async fn all_registered_before(&self, sequence: u64) -> Result<bool, BusError> {
        let info = async {
            let stream = self.bus.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
            Ok::<_, async_nats::Error>(stream.consumer_info(Consumer::AgentRuntimeEffects.name()).await?)
        };
        let info = info.await.map_err(|source| BusError::Unavailable { doing: "asking what is registered", source })?;
        let idle = info.num_pending == 0 && info.num_ack_pending == 0;
        Ok(idle || info.ack_floor.stream_sequence >= sequence)
    }

    async fn tell(&self, raw: &Raw, trigger: &str, happened: &Outside) -> Result<(), Failure> {
        for agent in self.hooks.waiting_for(trigger).await? {
            self.bus.publish(&triggered(raw, trigger, happened, &agent)).await?;
        }
        Ok(())
    }
}

impl RawHandler for Events {
    async fn handle(&self, delivery: &RawDelivery) -> Result<Settled, Failure> {
        let (raw, limits) = (&delivery.raw, &self.bus.limits);
        if subjects::is_announcement(&raw.subject) {
            return Ok(Settled::Done);
        }
        let Some(trigger) = subjects::outside(&raw.subject) else {
            let expected = "subject: expected kairo.system.<source>.<verb>, both of 1 to 64 of a-z 0-9 _ -";
            return Err(Failure::Permanent(expected.to_owned()));
        };
        let (size, limit) = (raw.payload.len(), limits.max_body_bytes);
        if size > limit {
            return Err(Failure::Permanent(format!("body of {size} bytes is larger than the limit of {limit}")));
        }
        let happened = outside::read(|name| header(raw, name), &raw.payload, &trigger, raw.sequence);
        let happened = happened.map_err(Failure::Permanent)?;
        if !self.all_registered_before(raw.sequence).await? {
            if delivery.attempt >= limits.max_attempts {
                return Err(Failure::Transient("the decisions before it are not dealt with".to_owned()));
            }
            return Ok(Settled::Later(backoff(limits, delivery.attempt)));
        }
        self.tell(raw, &trigger, &happened).await?;
        Ok(Settled::Done)
    }
}

/// A header, whatever the case of its name: other systems' clients differ.
fn header<'r>(raw: &'r Raw, name: &str) -> Option<&'r str> {
    let mut headers = raw.headers.iter();
    let (_, values) = headers.find(|(key, _)| AsRef::<str>::as_ref(*key).eq_ignore_ascii_case(name))?;
    values.first().map(|value| value.as_str())
}

/// What the agent is told: the same id however often the event is delivered.
fn triggered(raw: &Raw, trigger: &str, happened: &Outside, agent: &Name) -> Outgoing {
    let id = ids::derived(happened.id, &format!("task.triggered/{agent}"));
    let envelope = Envelope {
        correlation_id: happened.id,
        causation_id: Some(happened.id),
        modality: Modality::State,
        traceparent: header(raw, "traceparent").map(str::to_owned),
        ..Envelope::entering(id, Service::Router, Origin::System, Timestamp::now())
    };
    let body = TaskTriggered {
        trigger: trigger.to_owned(),
        event_id: happened.id.to_string(),
        r#type: happened.type_name.clone(),
        data: happened.data.to_string(),
    };
    Outgoing::new(&TASK_TRIGGERED, agent, envelope, body)
}
