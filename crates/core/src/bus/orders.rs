//! Following orders about calls and processes that are under way. They stand in the log, written by whoever carries out the call
//! that gives one. Every replica that may have what an order is about in hand reads it there.

use std::convert::Infallible;

use kairo_proto::v1::ToolOrder;

use super::{Bus, BusError};
use crate::{
    ids::Name,
    record::Record,
    subjects::{self, TOOL_ORDER},
};

/// An order, and the agent whose call gives it.
#[derive(Clone, Debug)]
pub struct AgentToolOrder {
    pub agent: Name,
    pub record: Record,
    pub body: ToolOrder,
}

/// The orders of all agents, from a place in the log on.
pub struct OrderFollower {
    bus: Bus,
    after: u64,
}

impl OrderFollower {
    /// Starts at the end of the log: a replica that starts has no work in progress.
    pub async fn from_now_on(bus: &Bus) -> Result<Self, BusError> {
        Ok(Self { bus: bus.clone(), after: bus.end_sequence().await? })
    }

    /// Hands each order over, as they stand in the log, until it is dropped. `take` must not block. An order that cannot be read is
    /// passed over: whoever gave it waits in vain, and says so.
    pub async fn follow(self, mut take: impl FnMut(AgentToolOrder)) {
        let hand_over = |record: &Record| -> Option<Infallible> {
            parse_order(record).into_iter().for_each(&mut take);
            None
        };
        match self.bus.wait_for_record(&TOOL_ORDER.stored_filter(), self.after, hand_over).await {}
    }
}

fn parse_order(record: &Record) -> Option<AgentToolOrder> {
    let (_, agent) = subjects::find_route(&record.subject)?;
    Some(AgentToolOrder { agent, body: ToolOrder::of(&record.body)?.clone(), record: record.clone() })
}
