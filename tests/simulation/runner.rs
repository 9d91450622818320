//! tool-runner: the real `plan`, and the protocol of `runner.rs`. Its tools are counting oracles.

use std::time::Duration;

use kairo_core::{
    bus::{
        BusError,
        append::Outgoing,
        consume::{Delivery, Failure, Settled},
    },
    decider::Decider,
    envelope::Origin,
    ids::{self, Name},
    record::Record,
    slots::Slots,
    subjects::{self, Service, TOOL_INVOKE},
};
use kairo_proto::{Body, v1::ToolInvoke};
use kairo_tool_runner::plan::{Actions, Asked, Call, Fact, Known, NOBODY, Step, asked};
use uuid::Uuid;

use crate::{
    flaw::Flaw,
    ledger::{Entered, Ledger},
    model,
    replica::{Held, Own},
    results::{Ended, Results},
    steps::{step, together},
};

const RACES: u32 = 8;

pub struct Runner {
    pub replica: Own,
    pub invocations: Ledger,
    pub results: Results,
    at_work: Slots<Uuid, ()>,
}

struct Job<'a> {
    agent: Name,
    decision: &'a Record,
    since: u64,
    calls: Vec<Call>,
}

impl Runner {
    pub fn new(replica: &Own) -> Self {
        Self {
            replica: replica.clone(),
            invocations: Ledger::new(replica, &TOOL_INVOKE),
            results: Results::new(replica),
            at_work: Slots::new(1_024),
        }
    }

    pub async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Body::AgentDecision(decision) = &delivery.record.body else {
            return Err(Failure::Permanent("not a decision".to_owned()));
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
        let calls = asked.into_iter().map(|asked| self.call(asked)).collect();
        let job = Job { agent, decision: &delivery.record, since: decision.cursor, calls };
        let begun = self.begin(&job, delivery.redelivered()).await?;
        if begun.iter().any(|(step, _)| *step == Step::Wait) {
            return Ok(Settled::Later(Duration::ZERO));
        }
        let work = job.calls.iter().zip(begun);
        let work = work.map(|(call, (step, held))| Box::pin(self.carry_out(&job, call, step, held)) as _);
        let chance = self.replica.world.borrow().chance.clone();
        together(chance, work.collect()).await?;
        Ok(Settled::Done)
    }

    fn call(&self, asked: Asked) -> Call {
        let idempotent = model::is_keyed(&asked.tool) || self.replica.has(Flaw::EverythingRepeats);
        let needs_approval = model::needs_consent(&asked.tool) && !self.replica.has(Flaw::ConsentIgnored);
        Call { idempotent, handed_over: model::is_process(&asked.tool), needs_approval, asked }
    }

    async fn begin(&self, job: &Job<'_>, redelivered: bool) -> Result<Vec<(Step, Option<Held<'_>>)>, Failure> {
        let mut known = if redelivered { self.known(job).await? } else { Known::default() };
        for _ in 0..RACES {
            let now = job.decision.envelope.time;
            let steps: Vec<Step> = job.calls.iter().map(|call| Actions::decide(&known, call, now)).collect();
            let begin: Vec<&Call> =
                job.calls.iter().zip(&steps).filter(|(_, step)| **step == Step::Begin).map(|(call, _)| call).collect();
            let nothing_new = begin.is_empty();
            let entry = self.invoke(job, &begin);
            if self.replica.has(Flaw::EffectFirst) {
                begin.iter().filter(|call| !call.handed_over).for_each(|call| self.effect(call.asked.action));
            }
            let begun: Vec<_> = job.calls.iter().zip(steps).map(|(call, step)| (step, self.hold(call, step))).collect();
            if nothing_new {
                return Ok(begun);
            }
            if self.replica.has(Flaw::LedgerIgnored) {
                self.replica.write_unguarded(&entry).await?;
                return Ok(begun);
            }
            match self.invocations.enter(&job.agent, job.since, &entry).await? {
                Entered::Written => return Ok(begun),
                // Not held while it is looked at who does: it would be taken for begun.
                Entered::Already => drop(begun),
            }
            known = self.known(job).await?;
        }
        Err(Failure::Transient("the ledger moved on again and again".to_owned()))
    }

    fn hold(&self, call: &Call, step: Step) -> Option<Held<'_>> {
        let done_here = matches!(step, Step::Begin | Step::Repeat) && !call.handed_over;
        done_here.then(|| self.replica.hold(call.asked.action))
    }

    async fn known(&self, job: &Job<'_>) -> Result<Known, BusError> {
        if self.replica.has(Flaw::LedgerIgnored) {
            return Ok(Known::default());
        }
        let actions: Vec<Uuid> = job.calls.iter().map(|call| call.asked.action).collect();
        let invoked = self.invocations.entries(&job.agent, job.since, &actions).await?;
        let ended = self.results.ended(&job.agent, job.since, &actions).await?;
        let mut known = Known::default();
        ended.iter().for_each(|action| Actions::apply(&mut known, &Fact::Ended(*action)));
        for (action, entry) in invoked {
            Actions::apply(&mut known, &Fact::Invoked(action));
            if self.replica.is_held(&entry.by, action).await {
                Actions::apply(&mut known, &Fact::Held(action));
            } else if !ended.contains(&action) && self.is_withdrawn(entry.sequence, action).await {
                Actions::apply(&mut known, &Fact::Withdrawn(action));
            }
        }
        Ok(known)
    }

    /// Whether the entry at `sequence` says that nobody shall begin the action.
    async fn is_withdrawn(&self, sequence: u64, action: Uuid) -> bool {
        let entry = self.replica.at(sequence).await;
        executor_of(&entry, action).is_some_and(|(executor, _)| executor == NOBODY)
    }

    fn invoke(&self, job: &Job<'_>, calls: &[&Call]) -> Outgoing {
        let body = ToolInvoke {
            runner: self.replica.instance.to_string(),
            decision_sequence: job.decision.sequence,
            actions: calls.iter().map(|call| call.asked.invocation(executor(call))).collect(),
        };
        let cause = &job.decision.envelope;
        let first = calls.first().map(|call| call.asked.action).unwrap_or_default();
        let id = ids::derived(cause.id, &format!("invoke/{}/{first}", self.replica.instance));
        let envelope = cause.follow(id, Service::ToolRunner, Origin::Tool, self.replica.world.borrow().now());
        Outgoing::new(&TOOL_INVOKE, &job.agent, envelope, body)
    }

    async fn carry_out(&self, job: &Job<'_>, call: &Call, step: Step, held: Option<Held<'_>>) -> Result<(), Failure> {
        self.replica.note(|| format!("{step:?} {} {}", call.asked.tool, call.asked.action));
        let outcome = match step {
            Step::Leave | Step::Wait => return Ok(()),
            Step::Begin | Step::Repeat if call.handed_over => return Ok(()),
            Step::Begin | Step::Repeat if call.asked.tool == model::CANCEL => {
                self.effect(call.asked.action);
                self.cancel(&job.agent, &call.asked).await
            }
            Step::Begin | Step::Repeat => self.run(&call.asked, held.as_ref()).await,
            Step::Refuse => Err("approval_required"),
            Step::Withdraw => Err("canceled"),
            Step::Doubt => Err("in_doubt"),
        };
        let ended = Ended { action: call.asked.action, tool: &call.asked.tool, outcome };
        Ok(self.results.report(&job.agent, job.since, &job.decision.envelope, ended).await?)
    }

    /// The call reaches the tool, which does it, and the answer comes back.
    async fn run(&self, asked: &Asked, held: Option<&Held<'_>>) -> Result<String, &'static str> {
        step().await;
        if held.is_some_and(|held| held.stop.get()) {
            return Err("canceled");
        }
        if !self.replica.has(Flaw::EffectFirst) {
            self.effect(asked.action);
        }
        step().await;
        match model::fails(asked.action) {
            true => Err("failed"),
            false => Ok(r#"{"done":true}"#.to_owned()),
        }
    }

    fn effect(&self, action: Uuid) {
        self.replica.world.borrow_mut().effect(self.replica.instance.as_str(), action);
    }
}

fn executor(call: &Call) -> &'static str {
    if call.handed_over { "process-supervisor" } else { "tool-runner" }
}

/// Who is to carry an action out, and which replica entered that, from an entry of the ledger.
pub fn executor_of(entry: &Record, action: Uuid) -> Option<(&str, &str)> {
    let Body::ToolInvoke(invoke) = &entry.body else { return None };
    let invocation = invoke.actions.iter().find(|it| it.action_id == action.to_string())?;
    Some((&invocation.executor, &invoke.runner))
}
