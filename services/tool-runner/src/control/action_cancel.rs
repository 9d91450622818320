//! `action.cancel`: stops any tool call of the agent that is in flight, wherever it is carried out.
//!
//! Whichever way it goes, the call ends with exactly one result: whoever carries it out says how it ended or, where
//! nobody does, this tool.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{
        BusError,
        append::OutgoingEvent,
        consume::backoff_delay,
        ledger::{LedgerOutcome, NOBODY},
    },
    envelope::Origin,
    ids::{self, Name},
    record::Record,
    subjects::{AGENT_DECISION, CATALOGUE, Service, TOOL_INVOKE, TOOL_RESULT},
};
use kairo_proto::{
    Body,
    v1::{ProcessStop, ToolCatalogue, ToolInvoke, ToolResult, tool_order::Order},
};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    CANCELING, Control, ControlTarget, control_tool, describe, supervisors::SupervisorAnswer, unavailable_error,
};
use crate::{
    invoke_record,
    outcome::{MissingAnswer, missing_answer_error},
    plan::{ActionRequest, NOT_BEGUN, NOT_REPEATED, action_requests},
    results::ActionEnd,
    tool::{CallContext, CallResult, Executor, ToolError, ToolSpec},
};

/// Most pages of the log searched for the decision that asked for an action.
const PAGES: usize = 64;
/// Time that a canceled call may take to end, beyond its grace, before it is checked again: its executor may be gone.
const RECORDING: Duration = Duration::from_secs(5);

pub struct ActionCancel {
    control: Arc<Control>,
    spec: ToolSpec,
}

control_tool!(ActionCancel);

/// The call to be stopped, and what is needed to end it.
struct CancelTarget<'c> {
    target: &'c ControlTarget,
    /// The decision that asked for it.
    decision: Record,
    /// Nothing about it stands in the log up to here.
    since: u64,
    asked: ActionRequest,
}

/// The executor that holds the call.
enum CallHolder {
    /// Nobody, and nobody will.
    Nobody,
    /// That replica of this service.
    Runner(String),
    Supervisors,
}

/// The outcome of one attempt to cancel.
enum CancelAttempt {
    /// It has ended, or is about to: wait for its result for so long.
    AwaitResult(Duration),
    Retry,
}

impl ActionCancel {
    pub fn new(control: Arc<Control>) -> Self {
        let description = "Stops a tool call of yours that is in progress, whatever tool it is. Answers when it has \
                           ended, with how: it may have been faster.";
        let schema = json!({
            "type": "object",
            "properties": {
                "action_id": { "type": "string", "description": "The action_id of the call, as in the facts." },
            },
            "required": ["action_id"],
            "additionalProperties": false,
        });
        let spec = control.build_spec(CANCELING, description, schema);
        Self { control, spec }
    }

    async fn run(&self, _args: Value, ctx: CallContext) -> CallResult {
        let target = ControlTarget::from_context(&ctx, "action in progress")?;
        if target.action == target.by {
            return Err(ToolError::not_found("a call cannot cancel itself; name another one"));
        }
        let Some(aim) = self.control.find_target(&target).await.map_err(unavailable_error)? else {
            return Err(ToolError::not_found("there is no such tool call of this agent; name one that is in progress"));
        };
        if let Some(result) = self.control.find_result(&aim).await.map_err(unavailable_error)? {
            // Whoever was to begin it, or to repeat it, knew of this order, or of one like it.
            let why = result.error.as_ref().map(|error| error.message.as_str());
            let is_of_this = why.is_some_and(|why| [NOT_BEGUN, NOT_REPEATED].contains(&why));
            return Ok(describe::action(target.action, &result, !is_of_this));
        }
        let ended = timeout(self.control.patience, self.control.stop_and_wait(&aim)).await;
        let result = ended.unwrap_or_else(|_| {
            Err(ToolError::timed_out(format!(
                "it has not ended within {} ms: whoever carries it out does not answer or takes its time; wait for its \
                 result, or try again",
                self.control.patience.as_millis()
            )))
        })?;
        Ok(describe::action(target.action, &result, false))
    }
}

impl Control {
    /// Finds the decision that asked for the action.
    async fn find_target<'c>(&self, target: &'c ControlTarget) -> Result<Option<CancelTarget<'c>>, BusError> {
        let subject = AGENT_DECISION.of_owner(&target.agent);
        let mut after = target.after;
        for _ in 0..PAGES {
            let page = self.bus.read_page(&subject, after).await?;
            for raw in &page.messages {
                after = raw.sequence;
                let Ok(decision) = raw.read(self.bus.limits.max_body_bytes) else { continue };
                let Body::AgentDecision(body) = &decision.body else { continue };
                let since = body.cursor;
                if let Some(asked) = action_requests(body).into_iter().find(|asked| asked.action == target.action) {
                    return Ok(Some(CancelTarget { target, decision, since, asked }));
                }
            }
            if !page.more {
                break;
            }
        }
        Ok(None)
    }

    async fn find_result(&self, aim: &CancelTarget<'_>) -> Result<Option<ToolResult>, BusError> {
        self.results.find_result(&aim.target.agent, aim.since, aim.target.action).await
    }

    /// Sees to it that the action ends, and says how it did.
    async fn stop_and_wait(&self, aim: &CancelTarget<'_>) -> Result<ToolResult, ToolError> {
        let mut attempt = 0;
        loop {
            // A server that is away for a moment is no reason to give up: whoever calls this keeps the time limit.
            let tried = match self.try_to_stop(aim).await {
                Err(BusError::Unavailable { .. }) => CancelAttempt::Retry,
                tried => tried.map_err(unavailable_error)?,
            };
            match tried {
                CancelAttempt::AwaitResult(patience) => {
                    if let Ok(result) = timeout(patience, self.wait_for_result(aim)).await {
                        return Ok(result);
                    }
                }
                CancelAttempt::Retry => {
                    attempt += 1;
                    let pause = backoff_delay(&self.bus.limits, attempt);
                    if let Ok(result) = timeout(pause, self.wait_for_result(aim)).await {
                        return Ok(result);
                    }
                }
            }
        }
    }

    async fn try_to_stop(&self, aim: &CancelTarget<'_>) -> Result<CancelAttempt, BusError> {
        match self.find_holder(aim).await? {
            CallHolder::Nobody => {
                self.report_end(aim, ToolError::canceled(NOT_BEGUN)).await?;
                Ok(CancelAttempt::AwaitResult(RECORDING))
            }
            CallHolder::Runner(instance) => self.stop_at(aim, &instance).await,
            CallHolder::Supervisors => Ok(match self.stop_process(aim.target).await {
                SupervisorAnswer::Done(_) | SupervisorAnswer::NotBegun => CancelAttempt::AwaitResult(self.patience),
                SupervisorAnswer::NotHere
                | SupervisorAnswer::Nobody
                | SupervisorAnswer::Silence
                | SupervisorAnswer::Refused(_) => CancelAttempt::Retry,
            }),
        }
    }

    /// Finds out who has begun the action; if nobody has, sees to it that nobody will.
    async fn find_holder(&self, aim: &CancelTarget<'_>) -> Result<CallHolder, BusError> {
        let ControlTarget { agent, action, .. } = aim.target;
        loop {
            if let Some(record) = self.invocations.entry_record(agent, aim.since, *action).await? {
                return Ok(holder_in_record(&record, *action));
            }
            match self.invocations.record_once(agent, aim.since, &self.build_withdrawal(aim)).await? {
                LedgerOutcome::Written { .. } => return Ok(CallHolder::Nobody),
                // Somebody was faster: they are in the log now.
                LedgerOutcome::Already(_) => {}
            }
        }
    }

    fn build_withdrawal(&self, aim: &CancelTarget<'_>) -> OutgoingEvent {
        let body = ToolInvoke {
            runner: self.bus.instance.to_string(),
            decision_sequence: aim.decision.sequence,
            actions: vec![aim.asked.invocation(NOBODY)],
        };
        let id = ids::derive(aim.target.action, &format!("withdrawn/{}", self.bus.instance));
        let envelope = aim.decision.envelope.follow_up(id, Service::ToolRunner, Origin::Tool, self.bus.now());
        OutgoingEvent::new(&TOOL_INVOKE, &aim.target.agent, envelope, body)
    }

    /// Has a replica stop the call. If it does not work on it, it is gone or was faster: then its result is written
    /// here, unless there is one.
    async fn stop_at(&self, aim: &CancelTarget<'_>, instance: &str) -> Result<CancelAttempt, BusError> {
        let action = aim.target.action;
        let tried = match self.orders_are_known().await? {
            true => self.order_stop_at(aim, instance).await?,
            false => self.ask_to_stop_at(action, instance).await,
        };
        if let Some(tried) = tried {
            return Ok(tried);
        }
        let error = match self.is_repeatable(&aim.asked.tool).await? {
            true => ToolError::canceled(NOT_REPEATED),
            false => {
                let how = "it was canceled, but the runner that began it was lost before it could say how it ended";
                missing_answer_error(&MissingAnswer::Lost(how.to_owned()), false, true)
            }
        };
        self.report_end(aim, error).await?;
        Ok(CancelAttempt::AwaitResult(RECORDING))
    }

    /// Orders the replica to stop the call; none if nobody works on it.
    async fn order_stop_at(&self, aim: &CancelTarget<'_>, instance: &str) -> Result<Option<CancelAttempt>, BusError> {
        let action = aim.target.action;
        // This one may have taken over from the one that is gone.
        let is_held = self.liveness.is_held(&self.bus, instance, action).await
            || self.liveness.is_held(&self.bus, self.bus.instance.as_str(), action).await;
        if !is_held {
            return Ok(None);
        }
        self.write_order(aim.target, instance, Order::Stop(ProcessStop::default())).await?;
        // It may have taken over after an order of before.
        self.liveness.stop_here(action);
        Ok(Some(CancelAttempt::AwaitResult(self.cancel_grace + RECORDING)))
    }

    /// Asks an instance to stop a call, in a log whose readers know no orders.
    async fn ask_to_stop_at(&self, action: Uuid, instance: &str) -> Option<CancelAttempt> {
        let told = self.liveness.request_stop(&self.bus, instance, action).await || self.liveness.stop_here(action);
        if told {
            return Some(CancelAttempt::AwaitResult(self.cancel_grace + RECORDING));
        }
        // It may have no connection at this moment, as all have none when the server was away.
        self.liveness.is_held(&self.bus, instance, action).await.then_some(CancelAttempt::Retry)
    }

    /// Returns true if the catalogue guarantees that calling the tool again does no harm.
    async fn is_repeatable(&self, tool: &str) -> Result<bool, BusError> {
        let Ok(owner) = Name::parse(Service::ToolRunner.name()) else { return Ok(false) };
        let last = self.bus.last_message(&CATALOGUE.of_owner(&owner)).await?;
        let offered = last.and_then(|raw| raw.read(self.bus.limits.max_body_bytes).ok()).map(|record| record.body);
        let offered = offered.as_ref().and_then(ToolCatalogue::of);
        let mut specs = offered.into_iter().flat_map(|offered| &offered.tools);
        Ok(specs.any(|spec| spec.name == tool && spec.idempotent && !spec.acts_outside))
    }

    /// Writes how the action ended, unless somebody has.
    async fn report_end(&self, aim: &CancelTarget<'_>, error: ToolError) -> Result<(), BusError> {
        let ended = ActionEnd {
            action: aim.target.action,
            tool: &aim.asked.tool,
            user: aim.asked.user.as_deref().unwrap_or_default(),
            outcome: Err(error).into(),
            is_repeatable: false,
            took: Duration::ZERO,
        };
        self.results.record_result(&aim.target.agent, aim.since, &aim.decision.envelope, ended).await.map(drop)
    }

    /// Waits until the log holds the result of the action, and returns it.
    async fn wait_for_result(&self, aim: &CancelTarget<'_>) -> ToolResult {
        let subject = TOOL_RESULT.of_owner(&aim.target.agent);
        self.bus
            .wait_for_record(&subject, aim.since, |record| {
                let result = ToolResult::of(&record.body);
                result.filter(|result| Uuid::parse_str(&result.action_id) == Ok(aim.target.action)).cloned()
            })
            .await
    }
}

fn holder_in_record(invoke: &Record, action: Uuid) -> CallHolder {
    let runner = ToolInvoke::of(&invoke.body).map(|invoke| invoke.runner.clone()).unwrap_or_default();
    match invoke_record::invocation(invoke, action).map(|invocation| invocation.executor.as_str()) {
        Some(NOBODY) => CallHolder::Nobody,
        Some(executor) if executor == Executor::ProcessSupervisor.as_str() => CallHolder::Supervisors,
        _ => CallHolder::Runner(runner),
    }
}
