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
        holding::Holding,
        ledger::{Entered, Ledger},
    },
    decider::Decider,
    envelope::Origin,
    ids::{self, Name},
    record::Record,
    slots::Slots,
    subjects::{self, Service, TOOL_INVOKE},
};
use kairo_proto::{
    Body,
    v1::{ToolInvocation, ToolInvoke},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    offer::Offer,
    plan::{Actions, Asked, Call, Fact, Known, Step, asked},
    results::{Ended, Results},
    tool::{CallContext, CallResult, Executor, ProgressReporter, ToolError},
    toolbox::Toolbox,
};

pub struct Runner {
    bus: Bus,
    toolbox: Arc<Toolbox>,
    offer: Arc<Offer>,
    invocations: Ledger,
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
        let steps = self.begin(&job, delivery.redelivered()).await?;
        if steps.contains(&Step::Wait) {
            return Ok(Settled::Later(Duration::from_millis(self.bus.limits.ack_wait_ms)));
        }
        let work = job.calls.iter().zip(steps).map(|(call, step)| self.carry_out(&job, call, step));
        try_join_all(work).await?;
        Ok(Settled::Done)
    }
}

impl Runner {
    pub fn new(bus: &Bus, toolbox: Arc<Toolbox>, offer: Arc<Offer>, results: Arc<Results>, holding: Holding) -> Self {
        Self {
            bus: bus.clone(),
            toolbox,
            offer,
            invocations: Ledger::new(bus, &TOOL_INVOKE),
            results,
            holding,
            at_work: Slots::new(AT_WORK),
        }
    }

    async fn call(&self, asked: Asked) -> Result<Call, BusError> {
        let known = self.offer.find(&asked.tool).await?;
        Ok(Call {
            idempotent: known.as_ref().is_some_and(|tool| tool.idempotent),
            handed_over: known.is_some_and(|tool| tool.executor == Executor::ProcessSupervisor),
            asked,
        })
    }

    /// Enters what is to begin in the ledger, and says what to do about each call.
    async fn begin(&self, job: &Job<'_>, redelivered: bool) -> Result<Vec<Step>, Failure> {
        // Only a decision that was delivered before can have been begun.
        let mut known = if redelivered { self.known(job).await? } else { Known::default() };
        for _ in 0..RACES {
            let steps: Vec<Step> =
                job.calls.iter().map(|call| Actions::decide(&known, call, job.decision.envelope.time)).collect();
            let begin: Vec<&Call> =
                job.calls.iter().zip(&steps).filter(|(_, step)| **step == Step::Begin).map(|(call, _)| call).collect();
            if begin.is_empty() {
                return Ok(steps);
            }
            match self.invocations.enter(&job.agent, job.since, &self.invoke(job, &begin)).await? {
                Entered::Written { .. } => return Ok(steps),
                Entered::Already(_) => known = self.known(job).await?,
            }
        }
        Err(Failure::Transient("the ledger moved on again and again".to_owned()))
    }

    /// What the log says of the job's actions now.
    async fn known(&self, job: &Job<'_>) -> Result<Known, BusError> {
        let actions: Vec<Uuid> = job.calls.iter().map(|call| call.asked.action).collect();
        let invoked = self.invocations.entries(&job.agent, job.since, &actions).await?;
        let ended = self.results.ended(&job.agent, job.since, &actions).await?;
        let mut known = Known::default();
        for (action, entry) in invoked {
            Actions::apply(&mut known, &Fact::Invoked(action));
            if self.holding.is_held(&self.bus, &entry.by, action).await {
                Actions::apply(&mut known, &Fact::Held(action));
            }
        }
        ended.into_iter().for_each(|action| Actions::apply(&mut known, &Fact::Ended(action)));
        Ok(known)
    }

    fn invoke(&self, job: &Job<'_>, calls: &[&Call]) -> Outgoing {
        let invocation = |call: &&Call| ToolInvocation {
            action_id: call.asked.action.to_string(),
            tool: call.asked.tool.clone(),
            arguments: call.asked.arguments.clone(),
            executor: executor(call).as_str().to_owned(),
            thread_id: call.asked.thread_id.clone(),
        };
        let body = ToolInvoke {
            runner: self.bus.instance.to_string(),
            decision_sequence: job.decision.sequence,
            actions: calls.iter().map(invocation).collect(),
        };
        let cause = &job.decision.envelope;
        let first = calls.first().map(|call| call.asked.action).unwrap_or_default();
        let id = ids::derived(cause.id, &format!("invoke/{}/{first}", self.bus.instance));
        let envelope = cause.follow(id, Service::ToolRunner, Origin::Tool, Timestamp::now());
        Outgoing::new(&TOOL_INVOKE, &job.agent, envelope, body)
    }

    async fn carry_out(&self, job: &Job<'_>, call: &Call, step: Step) -> Result<(), Failure> {
        let _held = self.holding.hold(call.asked.action);
        let started = Instant::now();
        let outcome = match step {
            Step::Leave | Step::Wait => return Ok(()),
            Step::Begin | Step::Repeat if call.handed_over => return Ok(()),
            Step::Begin | Step::Repeat => self.run(job, &call.asked).await,
            Step::Doubt => Err(ToolError::in_doubt(
                "the runner that began this was lost before it could say how it ended; the effect may have happened or not: find out before doing it again",
            )),
        };
        let ended = Ended { action: call.asked.action, tool: &call.asked.tool, outcome, took: started.elapsed() };
        Ok(self.results.report(&job.agent, job.since, &job.decision.envelope, ended).await?)
    }

    async fn run(&self, job: &Job<'_>, asked: &Asked) -> CallResult {
        let arguments = serde_json::from_str(&asked.arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("the arguments are not JSON: {error}")))?;
        let context = CallContext {
            action_id: asked.action.to_string(),
            now: job.decision.envelope.time,
            agent: job.agent.to_string(),
            cancel: CancellationToken::new(),
            progress: ProgressReporter::discard(),
        };
        self.toolbox.call(&asked.tool, arguments, context).await
    }
}

fn executor(call: &Call) -> Executor {
    if call.handed_over { Executor::ProcessSupervisor } else { Executor::ToolRunner }
}
