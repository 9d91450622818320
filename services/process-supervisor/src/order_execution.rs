//! Carrying out what the log orders about the processes that run here.
//!
//! Every supervisor reads all orders, and carries out those about its own processes. Whoever an order names replies to a signal or a
//! text in any case: that it does not run the process any more, too. An end is replied to by the process's end.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{BusError, append::OutgoingEvent, orders::AgentToolOrder},
    envelope::{Envelope, Origin},
    ids,
    personal::ContentOwners,
    subjects::{PROCESS_CANCELED, PROCESS_REPLY, Service},
};
use kairo_proto::v1::{ProcessAnswer, ProcessReply, ToolOrder, tool_order};
use uuid::Uuid;

use crate::{
    events::{self, canceled_id},
    ledgers::LedgerTarget,
    request_handler::{self, MalformedRequest, RequestHandler, not_here_answer, refused_answer},
    running_process::RunningProcess,
};

impl RequestHandler {
    /// Returns true if this supervisor has to act on an order.
    pub fn concerns(&self, order: &AgentToolOrder) -> bool {
        order.body.holder == self.bus.instance.as_str() || self.find_process(order).is_some()
    }

    /// Carries out an order, if the process runs here.
    pub async fn carry_out(&self, order: &AgentToolOrder) {
        let carried_out = match &order.body.order {
            Some(tool_order::Order::Stop(stop)) => self.stop_by_order(order, stop.grace_ms).await,
            Some(tool_order::Order::Signal(_) | tool_order::Order::Write(_)) => self.signal_or_write(order).await,
            // A later build knows more of them.
            None => Ok(()),
        };
        if let Err(error) = carried_out {
            tracing::warn!(agent = %order.agent, action = order.body.action_id, %error, "what came of an order is not in the log");
        }
    }

    fn find_process(&self, order: &AgentToolOrder) -> Option<Arc<RunningProcess>> {
        self.registry.find(&order.agent, Uuid::parse_str(&order.body.action_id).ok()?)
    }

    /// Says that the process is to end, and has it end, also where that could not be said.
    async fn stop_by_order(&self, order: &AgentToolOrder, grace_ms: u64) -> Result<(), BusError> {
        let Some(process) = self.find_process(order) else { return Ok(()) };
        let grace = self.grace_within(grace_ms);
        let target = LedgerTarget { agent: &order.agent, action: process.action, after: order.body.target_after };
        let said = self.ledgers.record_cancel(target, &self.order_canceled_event(order, &process, grace)).await;
        process.cancel(grace).await;
        said
    }

    fn order_canceled_event(&self, order: &AgentToolOrder, process: &RunningProcess, grace: Duration) -> OutgoingEvent {
        let by = Uuid::parse_str(&order.body.by_action_id).unwrap_or_default();
        let id = canceled_id(process.action);
        let now = self.bus.now();
        let envelope = Envelope {
            causation_id: Some(order.record.envelope.id),
            ..process.cause.follow_up(id, Service::ProcessSupervisor, Origin::System, now)
        };
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let body = events::canceled_body(process.action, self.bus.instance.as_str(), by, grace_ms);
        OutgoingEvent::new(&PROCESS_CANCELED, &order.agent, envelope, body)
    }

    /// Signals the process or writes to it, and replies.
    async fn signal_or_write(&self, order: &AgentToolOrder) -> Result<(), BusError> {
        let answer = match self.find_process(order) {
            Some(process) => apply_order(&order.body, &process)
                .await
                .unwrap_or_else(|malformed| refused_answer(&malformed.to_string())),
            None => not_here_answer("this supervisor does not run it any more; its end is in the log"),
        };
        self.ledgers
            .replied
            .record_once(&order.agent, order.record.sequence, &self.reply(order, answer))
            .await
            .map(drop)
    }

    fn reply(&self, order: &AgentToolOrder, answer: ProcessAnswer) -> OutgoingEvent {
        let cause = &order.record.envelope;
        let body = &order.body;
        let id = ids::derive(cause.id, "reply");
        let envelope = cause.follow_up(id, Service::ProcessSupervisor, Origin::System, self.bus.now());
        let process = Uuid::parse_str(&body.action_id).map(ids::process_id).unwrap_or_default();
        let reply = ProcessReply {
            process_id: process.to_string(),
            action_id: body.action_id.clone(),
            by_action_id: body.by_action_id.clone(),
            supervisor: self.bus.instance.to_string(),
            outcome: answer.outcome,
            reason: answer.reason,
        };
        let whose = ContentOwners::of_user(body.user.as_deref().unwrap_or_default());
        OutgoingEvent::new(&PROCESS_REPLY, &order.agent, envelope, reply).with_data_subject(whose)
    }
}

async fn apply_order(order: &ToolOrder, process: &RunningProcess) -> Result<ProcessAnswer, MalformedRequest> {
    let by = request_handler::parse_uuid("by_action_id", &order.by_action_id)?;
    let outcome = match &order.order {
        Some(tool_order::Order::Signal(signal)) => {
            process.signal(by, request_handler::parse_signal(&signal.name)?).await
        }
        Some(tool_order::Order::Write(write)) => process.write(by, write.text.clone(), write.close).await,
        Some(tool_order::Order::Stop(_)) | None => Ok(()),
    };
    Ok(request_handler::answer_outcome(outcome, process))
}
