//! Carrying out what the log orders about the processes that run here.
//!
//! Every supervisor reads all orders, and carries out those about its own processes. Whoever an order names replies to a signal or a
//! text in any case: that it does not run the process any more, too. An end is replied to by the process's end.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{BusError, append::Outgoing, orders::Order},
    envelope::{Envelope, Origin},
    ids,
    personal::Whose,
    subjects::{PROCESS_CANCELED, PROCESS_REPLY, Service},
};
use kairo_proto::v1::{ProcessAnswer, ProcessReply, ToolOrder, tool_order};
use uuid::Uuid;

use crate::{
    events::{self, canceled_id},
    ledgers::Target,
    process::Process,
    requests::{self, Malformed, Requests, not_here, refused},
};

impl Requests {
    /// Returns true if this supervisor has to act on an order.
    pub fn concerns(&self, order: &Order) -> bool {
        order.body.holder == self.bus.instance.as_str() || self.process(order).is_some()
    }

    /// Carries out an order, if the process runs here.
    pub async fn carry_out(&self, order: &Order) {
        let carried_out = match &order.body.order {
            Some(tool_order::Order::Stop(stop)) => self.end(order, stop.grace_ms).await,
            Some(tool_order::Order::Signal(_) | tool_order::Order::Write(_)) => self.pass_on(order).await,
            // A later build knows more of them.
            None => Ok(()),
        };
        if let Err(error) = carried_out {
            tracing::warn!(agent = %order.agent, action = order.body.action_id, %error, "what came of an order is not in the log");
        }
    }

    fn process(&self, order: &Order) -> Option<Arc<Process>> {
        self.registry.find(&order.agent, Uuid::parse_str(&order.body.action_id).ok()?)
    }

    /// Says that the process is to end, and has it end, also where that could not be said.
    async fn end(&self, order: &Order, grace_ms: u64) -> Result<(), BusError> {
        let Some(process) = self.process(order) else { return Ok(()) };
        let grace = self.grace_within(grace_ms);
        let target = Target { agent: &order.agent, action: process.action, after: order.body.target_after };
        let said = self.ledgers.cancel(target, &self.canceled(order, &process, grace)).await;
        process.cancel(grace).await;
        said
    }

    fn canceled(&self, order: &Order, process: &Process, grace: Duration) -> Outgoing {
        let by = Uuid::parse_str(&order.body.by_action_id).unwrap_or_default();
        let (id, now) = (canceled_id(process.action), self.bus.now());
        let envelope = Envelope {
            causation_id: Some(order.record.envelope.id),
            ..process.cause.follow(id, Service::ProcessSupervisor, Origin::System, now)
        };
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let body = events::canceled(process.action, self.bus.instance.as_str(), by, grace_ms);
        Outgoing::new(&PROCESS_CANCELED, &order.agent, envelope, body)
    }

    /// Signals the process or writes to it, and replies.
    async fn pass_on(&self, order: &Order) -> Result<(), BusError> {
        let answer = match self.process(order) {
            Some(process) => {
                reached(&order.body, &process).await.unwrap_or_else(|malformed| refused(&malformed.to_string()))
            }
            None => not_here("this supervisor does not run it any more; its end is in the log"),
        };
        self.ledgers.replied.enter(&order.agent, order.record.sequence, &self.reply(order, answer)).await.map(drop)
    }

    fn reply(&self, order: &Order, answer: ProcessAnswer) -> Outgoing {
        let (cause, body) = (&order.record.envelope, &order.body);
        let id = ids::derived(cause.id, "reply");
        let envelope = cause.follow(id, Service::ProcessSupervisor, Origin::System, self.bus.now());
        let process = Uuid::parse_str(&body.action_id).map(ids::process_id).unwrap_or_default();
        let reply = ProcessReply {
            process_id: process.to_string(),
            action_id: body.action_id.clone(),
            by_action_id: body.by_action_id.clone(),
            supervisor: self.bus.instance.to_string(),
            outcome: answer.outcome,
            reason: answer.reason,
        };
        let whose = Whose::user(body.user.as_deref().unwrap_or_default());
        Outgoing::new(&PROCESS_REPLY, &order.agent, envelope, reply).whose(whose)
    }
}

async fn reached(order: &ToolOrder, process: &Process) -> Result<ProcessAnswer, Malformed> {
    let by = requests::uuid("by_action_id", &order.by_action_id)?;
    let outcome = match &order.order {
        Some(tool_order::Order::Signal(signal)) => process.signal(by, requests::signal(&signal.name)?).await,
        Some(tool_order::Order::Write(write)) => process.write(by, write.text.clone(), write.close).await,
        Some(tool_order::Order::Stop(_)) | None => Ok(()),
    };
    Ok(requests::after(outcome, process))
}
