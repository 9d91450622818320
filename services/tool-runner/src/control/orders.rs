//! Orders about calls and processes: written into the log, where whoever has the call or the process in hand reads them.

use std::time::Duration;

use kairo_core::{
    bus::{
        BusError,
        append::OutgoingEvent,
        ledger::{LedgerEntry, LedgerOutcome},
    },
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids,
    subjects::{PROCESS_REPLY, Service, TOOL_ORDER},
    vocabulary::ANSWERS,
};
use kairo_proto::v1::{ProcessReply, ProcessStop, ToolOrder, tool_order::Order};
use uuid::Uuid;

use super::{Control, ControlTarget, supervisors::SupervisorAnswer};

/// Time limit for a supervisor to reply to an order.
pub const REPLY: Duration = Duration::from_secs(5);

impl Control {
    /// Returns true if all readers of the log know orders. Otherwise replicas are asked one by one
    /// ([`super::supervisors`]).
    pub(super) async fn orders_are_known(&self) -> Result<bool, BusError> {
        Ok(self.bus.current_epoch().await? >= ANSWERS)
    }

    /// Returns the log entry of the order that this call gave before, if it did.
    pub(super) async fn find_order(&self, target: &ControlTarget) -> Result<Option<LedgerEntry>, BusError> {
        let mut given = self.orders.entries_about(&target.agent, target.after, &[target.by]).await?;
        Ok(given.remove(&target.by))
    }

    /// Writes an order to `holder`, unless this call gave one before.
    pub(super) async fn write_order(
        &self,
        target: &ControlTarget,
        holder: &str,
        order: Order,
    ) -> Result<LedgerEntry, BusError> {
        let event = self.order_event(target, holder, order).await?;
        match self.orders.record_once(&target.agent, target.after, &event).await? {
            LedgerOutcome::Written { sequence } => Ok(LedgerEntry { sequence, by: holder.to_owned() }),
            LedgerOutcome::Already(_) => {
                let vanished = || BusError::Unavailable { doing: "looking for an order", source: "it vanished".into() };
                self.find_order(target).await?.ok_or_else(vanished)
            }
        }
    }

    async fn order_event(&self, target: &ControlTarget, holder: &str, order: Order) -> Result<OutgoingEvent, BusError> {
        let decision = self.bus.record_at(target.decision).await?;
        let id = ids::derive(target.by, "order");
        let envelope = Envelope {
            causation_id: Some(invocation_id(target.by)),
            ..decision.envelope.follow_up(id, Service::ToolRunner, Origin::Tool, self.bus.now())
        };
        let body = ToolOrder {
            action_id: target.action.to_string(),
            by_action_id: target.by.to_string(),
            holder: holder.to_owned(),
            user: target.user.clone(),
            target_after: target.after,
            order: Some(order),
        };
        Ok(OutgoingEvent::new(&TOOL_ORDER, &target.agent, envelope, body))
    }

    /// Waits for the supervisor's reply to the order at `sequence`.
    pub(super) async fn wait_for_reply(&self, target: &ControlTarget, sequence: u64) -> ProcessReply {
        let subject = PROCESS_REPLY.of_owner(&target.agent);
        self.bus
            .wait_for_record(&subject, sequence, |record| {
                let reply = ProcessReply::of(&record.body);
                reply.filter(|reply| Uuid::parse_str(&reply.by_action_id) == Ok(target.by)).cloned()
            })
            .await
    }

    /// Has the process end, or never begin. That it has ended is for the log to say. [`SupervisorAnswer::Silence`] means to try again.
    pub(super) async fn stop_process(&self, target: &ControlTarget) -> SupervisorAnswer {
        match self.orders_are_known().await {
            Ok(true) => self.order_to_stop(target).await.unwrap_or(SupervisorAnswer::Silence),
            Ok(false) => self.ask_to_stop(target).await,
            Err(_) => SupervisorAnswer::Silence,
        }
    }

    /// Orders the process to stop. A supervisor that begins it from here on finds the decision that asks for its end,
    /// and does not run it. One that began it before stands in the ledger, and reads the order.
    async fn order_to_stop(&self, target: &ControlTarget) -> Result<SupervisorAnswer, BusError> {
        let begun = self.spawned.entries_as_of_leader(&target.agent, target.after, &[target.action]).await?;
        let Some(begun) = begun.get(&target.action) else { return Ok(SupervisorAnswer::NotBegun) };
        self.write_order(target, &begun.by, Order::Stop(ProcessStop::default())).await?;
        Ok(SupervisorAnswer::Done(Box::default()))
    }
}
