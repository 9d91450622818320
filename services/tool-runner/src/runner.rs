//! Carrying out what a decision asks for.
//!
//! The decision stays unacknowledged until its actions have results. An action is entered in the ledger
//! (`tool.invoke`) before it begins, and its result is guarded in the same way; so whoever is given the decision
//! again knows what was begun, and what it may do about it.
//!
//! First of all it takes the room it needs to begin ([`Toolbox::admit`]): what waits for room stands in no ledger, so that
//! a crash leaves in doubt only what ran. Decisions that wait are in hand, as many as the server gives out
//! (`bus.max_ack_pending`), and not counted by `bus.concurrency`: how many calls *run* is limited by
//! `tool_runner.parallel`, so that limits nothing here but what is read. An order to stop something may stand behind any
//! number of waiting calls, and is read and carried out at once, as control tools have room of their own.

mod doubt;
mod known_actions;

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{join, join_all, try_join_all},
};
use kairo_core::{
    bus::{
        Bus, BusConfig,
        append::OutgoingEvent,
        canceled_calls::CanceledCalls,
        consume::{Delivery, DeliveryOutcome, Handler, HandlerFailure},
        ledger::{Ledger, LedgerOutcome, NOBODY},
        liveness::{ActionHold, ActionLiveness},
    },
    decider::Decider,
    envelope::Origin,
    ids::{self, Name},
    keyed_locks::KeyedLocks,
    record::Record,
    sharing::QuotaHolder,
    subjects::{self, Service, TOOL_INVOKE},
};
use kairo_proto::{Body, v1::ToolInvoke};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, field::Empty};
use uuid::Uuid;

use crate::{
    approval_check::ApprovalChecker,
    outcome::Exchange,
    plan::{
        ActionRequest, Actions, Disposition, KnownActions, NOT_BEGUN, NOT_REPEATED, ResolvedCall, USED_UP,
        action_requests,
    },
    progress::ProgressPublisher,
    results::{ActionEnd, Results},
    tool::{CallContext, Executor, ProgressReporter, ToolError},
    toolbox::{Admission, CallOutcome, Toolbox},
};

pub struct Runner {
    bus: Bus,
    toolbox: Arc<Toolbox>,
    invocations: Arc<Ledger>,
    results: Arc<Results>,
    liveness: ActionLiveness,
    consents: ApprovalChecker,
    cancels: CanceledCalls,
    /// A decision delivered again while it is being worked on here waits until that is done.
    at_work: KeyedLocks<Uuid, ()>,
    /// Cancelled when nothing more shall be begun.
    shutdown: CancellationToken,
}

/// Decisions in hand at once that are told apart, as long as `bus.max_ack_pending` is not raised beyond it.
const AT_WORK: usize = 16_384;
/// Oldest decision taken for the original, in milliseconds: an older one may be a copy.
const FRESH_MS: i64 = 1_000;
/// Lost races for the ledger before the decision is left for redelivery.
const RACES: u32 = 8;

/// A decision and what is needed to follow from it.
struct Job<'a> {
    agent: Name,
    decision: &'a Record,
    /// Nothing about its actions stands in the log up to here. Not the decision's own sequence: the one delivered may
    /// be a copy that somebody published again.
    since: u64,
    /// Somebody, perhaps this replica, was given it before, and may have begun its actions.
    redelivered: bool,
    /// It was made just now, and is no copy that somebody published again.
    is_original: bool,
    calls: Vec<ResolvedCall>,
}

/// A call, and what it needs to begin, if it may have to.
struct CallTurn<'a> {
    call: &'a ResolvedCall,
    /// An error is what the call fails with.
    room: Option<Result<Admission, ToolError>>,
}

impl Handler for Runner {
    async fn handle(&self, delivery: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let Body::AgentDecision(decision) = &delivery.record.body else {
            return Err(HandlerFailure::Permanent(format!("nothing to do for a {}", delivery.record.body.type_name())));
        };
        let asked = action_requests(decision);
        let Some((_, agent)) = subjects::find_route(&delivery.record.subject) else {
            return Err(HandlerFailure::Permanent("subject names no agent".to_owned()));
        };
        if asked.is_empty() {
            return Ok(DeliveryOutcome::Done);
        }
        let slot = self.at_work.get(&delivery.record.envelope.id);
        let _only_one = slot.lock().await;
        let cursor = decision.cursor;
        let calls = try_join_all(asked.into_iter().map(|asked| self.consents.resolve_call(&agent, asked))).await?;
        let decision = &delivery.record;
        let redelivered = delivery.is_redelivered();
        let age = self.bus.now().as_millisecond().saturating_sub(decision.envelope.time.as_millisecond());
        let is_original = !redelivered && age <= FRESH_MS;
        let job = Job { agent, decision, since: cursor, redelivered, is_original, calls };
        let known = self.known_on_delivery(&job).await?;
        let mut first = Vec::new();
        let mut waiting = Vec::new();
        for call in &job.calls {
            let needs_room = needs_room(call, Actions::decide(&known, call, decision.envelope.time));
            match needs_room.then(|| self.wait_for_room(&job.agent, &call.request).now_or_never()) {
                Some(None) => waiting.push(call),
                room => first.push(CallTurn { call, room: room.flatten() }),
            }
        }
        // What has room is begun together, in one entry of the ledger; each of the others when it has.
        let first = self.take_turn(&job, first, known);
        let waiting = waiting.into_iter().map(|call| self.take_turn_when_admitted(&job, call));
        let (first, waiting) = join(first, join_all(waiting)).await;
        waiting.into_iter().try_fold(first?, |all, one| Ok(all.combine(one?)))
    }

    fn max_in_flight(&self, limits: &BusConfig) -> usize {
        usize::try_from(limits.max_ack_pending).unwrap_or(usize::MAX)
    }
}

impl Runner {
    pub fn new(
        bus: &Bus,
        toolbox: Arc<Toolbox>,
        invocations: Arc<Ledger>,
        results: Arc<Results>,
        liveness: ActionLiveness,
        consents: ApprovalChecker,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            bus: bus.clone(),
            toolbox,
            invocations,
            results,
            liveness,
            consents,
            cancels: CanceledCalls::new(bus),
            at_work: KeyedLocks::new(AT_WORK),
            shutdown,
        }
    }

    /// Waits until a call could begin.
    async fn wait_for_room(&self, agent: &Name, asked: &ActionRequest) -> Result<Admission, ToolError> {
        let arguments = serde_json::from_str(&asked.arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("the arguments are not JSON: {error}")))?;
        let holder = QuotaHolder::on_behalf(asked.user.as_deref(), agent.as_str());
        self.toolbox.admit(&holder, &asked.tool, arguments).await
    }

    /// Begins a call when there is room for it. Until then nobody has begun it, and anybody may: another replica, or
    /// whoever cancels it.
    async fn take_turn_when_admitted(
        &self,
        job: &Job<'_>,
        call: &ResolvedCall,
    ) -> Result<DeliveryOutcome, HandlerFailure> {
        let room = tokio::select! {
            biased;
            () = self.shutdown.cancelled() => return Ok(DeliveryOutcome::Later(Duration::ZERO)),
            room = self.wait_for_room(&job.agent, &call.request) => room,
        };
        let known = self.known_after_waiting(job).await?;
        self.take_turn(job, vec![CallTurn { call, room: Some(room) }], known).await
    }

    /// Does what is to be done about these calls, each to its end, whatever becomes of the others.
    async fn take_turn(
        &self,
        job: &Job<'_>,
        turns: Vec<CallTurn<'_>>,
        known: KnownActions,
    ) -> Result<DeliveryOutcome, HandlerFailure> {
        let begun = self.begin_calls(job, &turns, known).await?;
        let waits = begun.iter().any(|(disposition, _)| *disposition == Disposition::Wait);
        let work = turns
            .into_iter()
            .zip(begun)
            .map(|(turn, (disposition, held))| self.carry_out(job, turn, disposition, held));
        join_all(work).await.into_iter().collect::<Result<(), HandlerFailure>>()?;
        Ok(if waits {
            DeliveryOutcome::Later(Duration::from_millis(self.bus.limits.ack_wait_ms))
        } else {
            DeliveryOutcome::Done
        })
    }

    /// Enters what is to begin in the ledger, and what was canceled before as begun by nobody; says what to do about each
    /// call. What is done here is held before it stands there, so that whoever reads of it there can have it stopped.
    async fn begin_calls(
        &self,
        job: &Job<'_>,
        turns: &[CallTurn<'_>],
        mut known: KnownActions,
    ) -> Result<Vec<(Disposition, Option<ActionHold>)>, HandlerFailure> {
        // All that uses their consents stands behind where those were asked for.
        let since = turns.iter().map(|turn| turn.call.request.ledger_start(job.since)).min().unwrap_or(job.since);
        for _ in 0..RACES {
            let mut dispositions: Vec<Disposition> = turns.iter().map(|turn| disposition(job, turn, &known)).collect();
            refuse_used_twice(turns, &mut dispositions);
            let entered: Vec<(&ResolvedCall, Disposition)> = turns
                .iter()
                .zip(&dispositions)
                .filter(|(_, disposition)| matches!(disposition, Disposition::Begin | Disposition::Prevent))
                .map(|(turn, disposition)| (turn.call, *disposition))
                .collect();
            let entry = (!entered.is_empty()).then(|| self.invoke(job, &entered));
            let begun: Vec<_> = turns
                .iter()
                .zip(dispositions)
                .map(|(turn, disposition)| (disposition, self.hold_action(turn.call, disposition)))
                .collect();
            let Some(entry) = entry else { return Ok(begun) };
            match self.invocations.record_once(&job.agent, since, &entry).await? {
                LedgerOutcome::Written { sequence } => {
                    return Ok(self.withdraw_canceled(job, turns, begun, sequence).await?);
                }
                // Not held while it is looked at who does: it would be taken for begun.
                LedgerOutcome::Already(_) => drop(begun),
            }
            known = self.read_known(job).await?;
        }
        Err(HandlerFailure::Transient("the ledger moved on again and again".to_owned()))
    }

    fn hold_action(&self, call: &ResolvedCall, disposition: Disposition) -> Option<ActionHold> {
        needs_room(call, disposition).then(|| self.liveness.hold(call.request.action))
    }

    fn invoke(&self, job: &Job<'_>, calls: &[(&ResolvedCall, Disposition)]) -> OutgoingEvent {
        let body = ToolInvoke {
            runner: self.bus.instance.to_string(),
            decision_sequence: job.decision.sequence,
            actions: calls.iter().map(|(call, what)| call.request.invocation(executor(call, *what))).collect(),
        };
        let cause = &job.decision.envelope;
        let first = calls.first().map(|(call, _)| call.request.action).unwrap_or_default();
        let id = ids::derive(cause.id, &format!("invoke/{}/{first}", self.bus.instance));
        let envelope = cause.follow_up(id, Service::ToolRunner, Origin::Tool, self.bus.now());
        OutgoingEvent::new(&TOOL_INVOKE, &job.agent, envelope, body)
    }

    async fn carry_out(
        &self,
        job: &Job<'_>,
        turn: CallTurn<'_>,
        disposition: Disposition,
        held: Option<ActionHold>,
    ) -> Result<(), HandlerFailure> {
        let CallTurn { call, room } = turn;
        let stop = held.as_ref().map(ActionHold::stop_token).unwrap_or_default();
        let started = Instant::now();
        let mut outcome: CallOutcome = match (disposition, room) {
            (Disposition::Leave | Disposition::Wait, _) => return Ok(()),
            (Disposition::Begin | Disposition::Repeat, None) => return Ok(()),
            (Disposition::Begin | Disposition::Repeat, Some(Ok(room))) => {
                self.run_call(job, &call.request, room, stop).await
            }
            (Disposition::Begin | Disposition::Repeat, Some(Err(error))) => Err(error).into(),
            (Disposition::Refuse, _) => {
                let why = call.missing_approval.as_deref().unwrap_or(USED_UP);
                Err(ToolError::approval_required(format!(
                    "a human must consent to this call: {why}; nothing was begun"
                )))
                .into()
            }
            (Disposition::Withdraw | Disposition::Prevent, _) => Err(ToolError::canceled(NOT_BEGUN)).into(),
            (Disposition::Stop, _) if self.toolbox.is_repeatable(&call.request.tool) => {
                Err(ToolError::canceled(NOT_REPEATED)).into()
            }
            (Disposition::Stop | Disposition::Doubt, _) => self.leave_in_doubt(job, &call.request),
        };
        let ActionRequest { action, tool, user, .. } = &call.request;
        let user = user.as_deref().unwrap_or_default();
        let late = outcome.late.take();
        let ran = matches!(disposition, Disposition::Begin | Disposition::Repeat);
        let answer = ran.then(|| outcome.result.clone());
        let is_repeatable = call.idempotent;
        let took = started.elapsed();
        let ended = ActionEnd { action: *action, tool, user, outcome, is_repeatable, took };
        let is_written = self.results.record_result(&job.agent, job.since, &job.decision.envelope, ended).await?;
        if let (false, Some(result)) = (is_written, answer) {
            self.settle_doubt_of_others(job, call, result, took).await?;
        }
        if let Some(late) = late {
            self.wait_for_late_answer(job, &call.request, late, started);
        }
        Ok(())
    }

    fn context(
        &self,
        job: &Job<'_>,
        asked: &ActionRequest,
        cancel: CancellationToken,
        progress: ProgressReporter,
    ) -> CallContext {
        CallContext {
            action_id: asked.action.to_string(),
            now: job.decision.envelope.time,
            begun: self.bus.now(),
            agent: job.agent.to_string(),
            thread_id: asked.thread_id.clone(),
            user: asked.user.clone(),
            decision_sequence: job.decision.sequence,
            target: asked.target,
            target_after: asked.target_after,
            cancel,
            progress,
            exchange: Exchange::default(),
        }
    }

    async fn run_call(
        &self,
        job: &Job<'_>,
        asked: &ActionRequest,
        room: Admission,
        stop: CancellationToken,
    ) -> CallOutcome {
        let (progress, reports, mut questions) = ProgressReporter::channel_with_questions();
        let context = self.context(job, asked, stop, progress);
        let telling = ProgressPublisher {
            bus: &self.bus,
            agent: &job.agent,
            cause: &job.decision.envelope,
            action: asked.action,
            tool: &asked.tool,
            user: asked.user.as_deref().unwrap_or_default(),
            outside: room.outside_sources(),
            number: AtomicU64::new(0),
        };
        let span = span(&job.agent, asked);
        let calling = self.toolbox.carry_out(room, context).instrument(span.clone());
        // What is told of it ends with it: nothing comes after the result.
        let outcome = tokio::select! {
            biased;
            outcome = calling => outcome,
            never = telling.publish_reports(reports, &mut questions) => match never {},
        };
        telling.publish_remaining(&mut questions).await;
        if let Err(error) = &outcome.result {
            span.record("error.type", error.kind.as_str());
        }
        outcome
    }
}

/// The span of a call, by OpenTelemetry's conventions. It has a place in the toolbox, so its name is that of a tool.
fn span(agent: &Name, asked: &ActionRequest) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {}", asked.tool),
        gen_ai.operation.name = "execute_tool",
        gen_ai.agent.id = agent.as_str(),
        gen_ai.conversation.id = Some(asked.thread_id.as_str()).filter(|thread| !thread.is_empty()),
        gen_ai.tool.name = asked.tool,
        "gen_ai.tool.type" = "function",
        gen_ai.tool.call.id = %asked.action,
        "error.type" = Empty,
    )
}

/// Returns true if the call runs in this process, so that it needs a place.
fn needs_room(call: &ResolvedCall, disposition: Disposition) -> bool {
    matches!(disposition, Disposition::Begin | Disposition::Repeat) && !call.handed_over
}

/// Returns the next step for a call. One that may begin only now, but has no place reserved, waits for another
/// delivery.
fn disposition(job: &Job<'_>, turn: &CallTurn<'_>, known: &KnownActions) -> Disposition {
    match Actions::decide(known, turn.call, job.decision.envelope.time) {
        disposition if needs_room(turn.call, disposition) && turn.room.is_none() => Disposition::Wait,
        disposition => disposition,
    }
}

/// Of calls that would begin on the same consent, the first one does.
fn refuse_used_twice(turns: &[CallTurn<'_>], dispositions: &mut [Disposition]) {
    let mut used = BTreeSet::new();
    let willing = turns.iter().zip(dispositions).filter(|(_, disposition)| **disposition == Disposition::Begin);
    for (turn, disposition) in willing {
        if turn.call.request.approval_key().is_some_and(|consent| !used.insert(consent)) {
            *disposition = Disposition::Refuse;
        }
    }
}

/// Returns the executor to record in the ledger.
fn executor(call: &ResolvedCall, disposition: Disposition) -> &'static str {
    match (disposition, call.handed_over) {
        (Disposition::Prevent, _) => NOBODY,
        (_, true) => Executor::ProcessSupervisor.as_str(),
        (_, false) => Executor::ToolRunner.as_str(),
    }
}
