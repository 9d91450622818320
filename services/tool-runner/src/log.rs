//! Reading what an invoke says, and waiting for what is yet to come.

use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use futures::StreamExt as _;
use kairo_core::{
    bus::{Bus, consume::backoff},
    record::{Raw, Record},
    subjects::EVENTS_STREAM,
};
use kairo_proto::{Body, v1::ToolInvocation};
use uuid::Uuid;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What an invoke says of one of its actions.
pub fn invocation(record: &Record, action: Uuid) -> Option<&ToolInvocation> {
    let Body::ToolInvoke(invoke) = &record.body else { return None };
    invoke.actions.iter().find(|invocation| Uuid::parse_str(&invocation.action_id) == Ok(action))
}

/// The first record of `subject` above sequence `after` that `pick` wants, once there is one.
pub async fn wait_for<T>(bus: &Bus, subject: &str, mut after: u64, mut pick: impl FnMut(&Record) -> Option<T>) -> T {
    let mut failures = 0;
    loop {
        let mut found = None;
        let broke = follow(bus, subject, &mut after, |record| {
            found = pick(record);
            found.is_some()
        });
        if let Err(error) = broke.await {
            tracing::debug!(subject, %error, "following broke off");
        }
        if let Some(found) = found {
            return found;
        }
        failures += 1;
        tokio::time::sleep(backoff(&bus.limits, failures)).await;
    }
}

/// Hands records over until one is `wanted`. Only what is stored is handed over: what was refused a place in the log
/// may be heard on its subject all the same.
async fn follow(
    bus: &Bus,
    subject: &str,
    after: &mut u64,
    mut wanted: impl FnMut(&Record) -> bool,
) -> Result<(), Cause> {
    let stream = bus.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
    let config = OrderedConfig {
        filter_subject: subject.to_owned(),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *after + 1 },
        ..Default::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while let Some(message) = messages.next().await {
        let (raw, _) = Raw::delivered(&mut message?)?;
        *after = raw.sequence;
        if raw.read(bus.limits.max_body_bytes).is_ok_and(|record| wanted(&record)) {
            return Ok(());
        }
    }
    Err("the server ended it".into())
}
