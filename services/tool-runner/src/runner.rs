//! Carrying out what a decision asks for.
//!
//! The decision stays unacknowledged until its actions have results. An action is entered in the ledger
//! (`tool.invoke`) before it begins, and its result is guarded in the same way; so whoever is given the decision
//! again knows what was begun, and what it may do about it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus, BusError,
        append::Outgoing,
        consume::{Delivery, Failure, Handler, Settled},
        holding::{Held, Holding},
        ledger::{Entered, Ledger},
    },
    decider::Decider,
    envelope::Origin,
    ids::{self, Name},
    record::Record,
    slots::Slots,
    subjects::{self, Service, TOOL_INVOKE},
};
use kairo_proto::{Body, v1::ToolInvoke};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    log,
    offer::Offer,
    plan::{Actions, Asked, Call, Fact, Known, NOBODY, Step, asked},
    progress::Telling,
    results::{Ended, Results},
    tool::{CallContext, CallResult, Executor, ProgressReporter, ToolError},
    toolbox::Toolbox,
};

pub struct Runner {
    bus: Bus,
    toolbox: Arc<Toolbox>,
    offer: Arc<Offer>,
    invocations: Arc<Ledger>,
    results: Arc<Results>,
    holding: Holding,
    /// A decision delivered again while it is being worked on here waits until that is done.
    at_work: Slots<Uuid, ()>,
}

/// Decisions worked on at once that are told apart; far above the bus's concurrency.
const AT_WORK: usize = 16_384;
/// Times the ledger may have moved on before the decision is left to be delivered again.
const RACES: u32 = 8;

/// A decision and what is needed to follow from it.
struct Job<'a> {
    agent: Name,
    decision: &'a Record,
    /// Nothing about its actions stands in the log up to here. Not the decision's own sequence: the one delivered may
    /// be a copy that somebody published again.
    since: u64,
    calls: Vec<Call>,
}

impl Handler for Runner {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Body::AgentDecision(decision) = &delivery.record.body else {
            return Err(Failure::Permanent(format!("nothing to do for a {}", delivery.record.body.type_name())));
        };
        let asked = asked(decision);
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        if asked.is_empty() {
            return Ok(Settled::Done);
        }
        let slot = self.at_work.get(&delivery.record.envelope.id);
        let _only_one = slot.lock().await;
        let calls = try_join_all(asked.into_iter().map(|asked| self.call(asked))).await?;
        let job = Job { agent, decision: &delivery.record, since: decision.cursor, calls };
        let begun = self.begin(&job, delivery.redelivered()).await?;
        if begun.iter().any(|(step, _)| *step == Step::Wait) {
            return Ok(Settled::Later(Duration::from_millis(self.bus.limits.ack_wait_ms)));
        }
        let work = job.calls.iter().zip(begun).map(|(call, (step, held))| self.carry_out(&job, call, step, held));
        try_join_all(work).await?;
        Ok(Settled::Done)
    }
}

impl Runner {
    pub fn new(
        bus: &Bus,
        toolbox: Arc<Toolbox>,
        offer: Arc<Offer>,
        invocations: Arc<Ledger>,
        results: Arc<Results>,
        holding: Holding,
    ) -> Self {
        Self { bus: bus.clone(), toolbox, offer, invocations, results, holding, at_work: Slots::new(AT_WORK) }
    }

    async fn call(&self, asked: Asked) -> Result<Call, BusError> {
        let known = self.offer.find(&asked.tool).await?;
        Ok(Call {
            idempotent: known.as_ref().is_some_and(|tool| tool.idempotent),
            needs_approval: known.as_ref().is_some_and(|tool| tool.needs_approval),
            handed_over: known.is_some_and(|tool| tool.executor == Executor::ProcessSupervisor),
            asked,
        })
    }

    /// Enters what is to begin in the ledger, and says what to do about each call. What is done here is held before
    /// it stands there, so that whoever reads of it there can have it stopped.
    async fn begin(&self, job: &Job<'_>, redelivered: bool) -> Result<Vec<(Step, Option<Held>)>, Failure> {
        // Only a decision that was delivered before can have been begun.
        let mut known = if redelivered { self.known(job).await? } else { Known::default() };
        for _ in 0..RACES {
            let steps: Vec<Step> =
                job.calls.iter().map(|call| Actions::decide(&known, call, job.decision.envelope.time)).collect();
            let begin: Vec<&Call> =
                job.calls.iter().zip(&steps).filter(|(_, step)| **step == Step::Begin).map(|(call, _)| call).collect();
            let entry = (!begin.is_empty()).then(|| self.invoke(job, &begin));
            let begun: Vec<_> = job.calls.iter().zip(steps).map(|(call, step)| (step, self.hold(call, step))).collect();
            let Some(entry) = entry else { return Ok(begun) };
            match self.invocations.enter(&job.agent, job.since, &entry).await? {
                Entered::Written { .. } => return Ok(begun),
                // Not held while it is looked at who does: it would be taken for begun.
                Entered::Already(_) => drop(begun),
            }
            known = self.known(job).await?;
        }
        Err(Failure::Transient("the ledger moved on again and again".to_owned()))
    }

    fn hold(&self, call: &Call, step: Step) -> Option<Held> {
        let done_here = matches!(step, Step::Begin | Step::Repeat) && !call.handed_over;
        done_here.then(|| self.holding.hold(call.asked.action))
    }

    /// What the log says of the job's actions now.
    async fn known(&self, job: &Job<'_>) -> Result<Known, BusError> {
        let actions: Vec<Uuid> = job.calls.iter().map(|call| call.asked.action).collect();
        let invoked = self.invocations.entries(&job.agent, job.since, &actions).await?;
        let ended = self.results.ended(&job.agent, job.since, &actions).await?;
        let mut known = Known::default();
        ended.iter().for_each(|action| Actions::apply(&mut known, &Fact::Ended(*action)));
        for (action, entry) in invoked {
            Actions::apply(&mut known, &Fact::Invoked(action));
            if self.holding.is_held(&self.bus, &entry.by, action).await {
                Actions::apply(&mut known, &Fact::Held(action));
            } else if !ended.contains(&action) && self.is_withdrawn(entry.sequence, action).await? {
                Actions::apply(&mut known, &Fact::Withdrawn(action));
            }
        }
        Ok(known)
    }

    /// Whether the entry at `sequence` says that nobody shall begin the action.
    async fn is_withdrawn(&self, sequence: u64, action: Uuid) -> Result<bool, BusError> {
        let record = self.bus.at(sequence).await?;
        Ok(log::invocation(&record, action).is_some_and(|invocation| invocation.executor == NOBODY))
    }

    fn invoke(&self, job: &Job<'_>, calls: &[&Call]) -> Outgoing {
        let body = ToolInvoke {
            runner: self.bus.instance.to_string(),
            decision_sequence: job.decision.sequence,
            actions: calls.iter().map(|call| call.asked.invocation(executor(call).as_str())).collect(),
        };
        let cause = &job.decision.envelope;
        let first = calls.first().map(|call| call.asked.action).unwrap_or_default();
        let id = ids::derived(cause.id, &format!("invoke/{}/{first}", self.bus.instance));
        let envelope = cause.follow(id, Service::ToolRunner, Origin::Tool, Timestamp::now());
        Outgoing::new(&TOOL_INVOKE, &job.agent, envelope, body)
    }

    async fn carry_out(&self, job: &Job<'_>, call: &Call, step: Step, held: Option<Held>) -> Result<(), Failure> {
        let stop = held.as_ref().map(Held::stop).unwrap_or_default();
        let started = Instant::now();
        let outcome = match step {
            Step::Leave | Step::Wait => return Ok(()),
            Step::Begin | Step::Repeat if call.handed_over => return Ok(()),
            Step::Begin | Step::Repeat => self.run(job, &call.asked, stop).await,
            Step::Refuse => Err(ToolError::approval_required(
                "a human must consent to a call of this tool, and this one carries no consent; nothing was begun",
            )),
            Step::Withdraw => Err(ToolError::canceled("it was canceled before it began")),
            Step::Doubt => Err(ToolError::in_doubt(
                "the runner that began this was lost before it could say how it ended; the effect may have happened or not: find out before doing it again",
            )),
        };
        let ended = Ended { action: call.asked.action, tool: &call.asked.tool, outcome, took: started.elapsed() };
        Ok(self.results.report(&job.agent, job.since, &job.decision.envelope, ended).await?)
    }

    async fn run(&self, job: &Job<'_>, asked: &Asked, stop: CancellationToken) -> CallResult {
        let arguments = serde_json::from_str(&asked.arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("the arguments are not JSON: {error}")))?;
        let (progress, reports) = ProgressReporter::watched();
        let context = CallContext {
            action_id: asked.action.to_string(),
            now: job.decision.envelope.time,
            agent: job.agent.to_string(),
            thread_id: asked.thread_id.clone(),
            decision_sequence: job.decision.sequence,
            target: asked.target,
            target_after: asked.target_after,
            cancel: stop,
            progress,
        };
        let telling = Telling {
            bus: &self.bus,
            agent: &job.agent,
            cause: &job.decision.envelope,
            action: asked.action,
            tool: &asked.tool,
        };
        // What is told of it ends with it: nothing comes after the result.
        tokio::select! {
            biased;
            outcome = self.toolbox.call(&asked.tool, arguments, context) => outcome,
            never = telling.tell(reports) => match never {},
        }
    }
}

fn executor(call: &Call) -> Executor {
    if call.handed_over { Executor::ProcessSupervisor } else { Executor::ToolRunner }
}
