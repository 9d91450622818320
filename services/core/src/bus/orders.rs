//! Following orders about calls and processes that are under way. They stand in the log, written by whoever carries out the call
//! that gives one. Every replica that may have what an order is about in hand reads it there.

use kairo_proto::v1::ToolOrder;

use super::{
    Bus, BusError,
    consume::backoff,
    port::{Cause, Start},
};
use crate::{
    ids::Name,
    record::{Raw, Record},
    subjects::{self, TOOL_ORDER},
};

/// An order, and whose it is.
#[derive(Clone, Debug)]
pub struct Order {
    pub agent: Name,
    pub record: Record,
    pub body: ToolOrder,
}

/// The orders of all agents, from a place in the log on.
pub struct Orders {
    bus: Bus,
    after: u64,
}

impl Orders {
    /// From where the log ends: a replica that begins has nothing in hand.
    pub async fn from_now_on(bus: &Bus) -> Result<Self, BusError> {
        Ok(Self { bus: bus.clone(), after: bus.end().await? })
    }

    /// Hands each order over, as they stand in the log, until it is dropped. `take` must not block.
    pub async fn follow(mut self, mut take: impl FnMut(Order)) {
        let mut failures = 0;
        loop {
            if let Err(error) = self.read(&mut take, &mut failures).await {
                tracing::debug!(%error, "following orders broke off");
            }
            failures += 1;
            tokio::time::sleep(backoff(&self.bus.limits, failures)).await;
        }
    }

    async fn read(&mut self, take: &mut impl FnMut(Order), failures: &mut u64) -> Result<(), Cause> {
        let mut tail = self.bus.tail_from(&TOOL_ORDER.stored_filter(), Start::After(self.after)).await?;
        loop {
            for raw in tail.next().await? {
                *failures = 0;
                self.after = raw.sequence;
                order(&raw, self.bus.limits.max_body_bytes).into_iter().for_each(&mut *take);
            }
        }
    }
}

/// What cannot be read orders nothing: whoever gave it waits in vain, and says so.
fn order(raw: &Raw, max_body_bytes: usize) -> Option<Order> {
    let record = raw.read(max_body_bytes).ok()?;
    let (_, agent) = subjects::route(&record.subject)?;
    let body = ToolOrder::of(&record.body)?.clone();
    Some(Order { agent, record, body })
}
