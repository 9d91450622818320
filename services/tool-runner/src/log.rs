//! Reading what an invoke says, and waiting for what is yet to come.

use kairo_core::{
    bus::{
        Bus,
        consume::backoff,
        port::{Cause, Start},
    },
    record::Record,
};
use kairo_proto::{Body, v1::ToolInvocation};
use uuid::Uuid;

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
    let mut tail = bus.tail_from(subject, Start::After(*after)).await?;
    loop {
        for raw in tail.next().await? {
            *after = raw.sequence;
            if raw.read(bus.limits.max_body_bytes).is_ok_and(|record| wanted(&record)) {
                return Ok(());
            }
        }
    }
}
