//! The ends of actions in flight at the cut: each ends as the log says later, or is lost.

use jiff::Timestamp;
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    ids,
    record::Record,
    subjects::{AGENT_ANSWER, PROCESS_EXITED, Route, Service, TOOL_RESULT},
};
use kairo_proto::{
    Body,
    v1::{ProcessExited, ToolError, ToolResult},
    words::{ProcessOutcome, ToolErrorKind},
};
use kairo_replay::cut::{PendingAction, PendingActionKind};
use uuid::Uuid;

use crate::{PendingFate, absent_agents};

const LOST: &str = "lost: it was in flight where this fork begins, and what came of it is not known here";

/// The messages that end what was in flight.
pub(crate) fn end_events(pending: &[PendingAction], keep: PendingFate, now: Timestamp) -> Vec<OutgoingEvent> {
    let mut ends = Vec::new();
    for it in pending {
        let later = it.later.iter().filter(|_| keep == PendingFate::Recorded);
        ends.extend(later.map(|Record { subject, envelope, body, .. }| OutgoingEvent {
            subject: subject.clone(),
            envelope: envelope.clone(),
            body: body.clone(),
        }));
        if keep == PendingFate::Lost || !it.has_recorded_end() {
            ends.extend(lost_end(it, now));
        }
    }
    ends
}

fn lost_end(pending: &PendingAction, now: Timestamp) -> Option<OutgoingEvent> {
    let action = Uuid::parse_str(&pending.action).ok()?;
    let action_id = pending.action.clone();
    let (route, service, body): (&Route, _, Body) = match &pending.what {
        PendingActionKind::Call { tool } => {
            let error = ToolError { kind: ToolErrorKind::InDoubt.as_str().to_owned(), message: LOST.to_owned() };
            let tool = tool.clone();
            let result = ToolResult { action_id, tool, error: Some(error), ..ToolResult::default() };
            (&TOOL_RESULT, Service::ToolRunner, result.into())
        }
        PendingActionKind::Ask(ask) => {
            let mut answer = absent_agents::failed_answer(ask, "lost");
            answer.request_id = action_id;
            (&AGENT_ANSWER, Service::AgentRuntime, answer.into())
        }
        PendingActionKind::Process(spawned) => {
            let exited = ProcessExited {
                process_id: spawned.process_id.clone(),
                action_id,
                outcome: ProcessOutcome::SupervisorLost.as_str().to_owned(),
                reason: LOST.to_owned(),
                decision_sequence: spawned.decision_sequence,
                background: spawned.background,
                program: spawned.program.clone(),
                tool: spawned.tool.clone(),
                user: spawned.user.clone(),
                ..ProcessExited::default()
            };
            (&PROCESS_EXITED, Service::ProcessSupervisor, exited.into())
        }
    };
    let envelope = Envelope::from_outside(ids::derive(action, "lost"), service, Origin::Tool, now);
    Some(OutgoingEvent::new(route, &pending.agent, Envelope { causation_id: Some(action), ..envelope }, body))
}
