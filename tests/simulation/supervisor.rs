//! process-supervisor: the real `plan`, and the protocol of `supervisor.rs`. Its guards and programs are the world's.

use std::{future::poll_fn, task::Poll, time::Duration};

use kairo_core::{
    bus::{
        BusError,
        append::Outgoing,
        consume::{Delivery, Failure, Settled},
    },
    decider::Decider,
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids::{self, Name},
    record::Record,
    slots::Slots,
    subjects::{self, PROCESS_CANCELED, PROCESS_EXITED, PROCESS_SPAWNED, Service},
};
use kairo_process_supervisor::plan::{Actions, Asked, Fact, Known, Step, asked};
use kairo_proto::{
    Body,
    v1::{ProcessExited, ProcessSpawned, ProcessUsage},
};
use uuid::Uuid;

use crate::{
    flaw::Flaw,
    ledger::{Entered, Entry, Ledger},
    model,
    replica::{Own, Replica},
    steps::{step, together},
    world::ProcessState,
};

const RACES: u32 = 8;

pub struct Supervisor {
    pub replica: Own,
    pub spawned: Ledger,
    pub canceled: Ledger,
    pub exited: Ledger,
    at_work: Slots<Uuid, ()>,
}

struct Job<'a> {
    agent: Name,
    invoke: &'a Record,
    since: u64,
}

/// A process and its guard; to drop it is to kill it.
struct Guarded<'r> {
    replica: &'r Replica,
    process: usize,
}

impl Supervisor {
    pub fn new(replica: &Own) -> Self {
        Self {
            replica: replica.clone(),
            spawned: Ledger::new(replica, &PROCESS_SPAWNED),
            canceled: Ledger::new(replica, &PROCESS_CANCELED),
            exited: Ledger::new(replica, &PROCESS_EXITED),
            at_work: Slots::new(1_024),
        }
    }

    pub async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Body::ToolInvoke(invoke) = &delivery.record.body else {
            return Err(Failure::Permanent("not an invoke".to_owned()));
        };
        let asked = asked(invoke);
        if asked.is_empty() {
            return Ok(Settled::Done);
        }
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        let slot = self.at_work.get(&delivery.record.envelope.id);
        let _only_one = slot.lock().await;
        let job = Job { agent, invoke: &delivery.record, since: invoke.decision_sequence };
        let actions: Vec<Uuid> = asked.iter().map(|asked| asked.action).collect();
        let known = if delivery.redelivered() { self.known(&job, &actions).await? } else { Known::default() };
        // All to their end, whatever becomes of one.
        let work = asked.iter().map(|asked| {
            let (known, job) = (known.clone(), &job);
            Box::pin(async move { Ok::<_, Failure>(self.carry_out(job, asked, known).await) }) as _
        });
        let chance = self.replica.world.borrow().chance.clone();
        let settled: Vec<Result<Settled, Failure>> = together(chance, work.collect()).await?;
        settled.into_iter().try_fold(Settled::Done, |all, one| match one? {
            Settled::Done => Ok(all),
            later => Ok(later),
        })
    }

    async fn known(&self, job: &Job<'_>, actions: &[Uuid]) -> Result<Known, BusError> {
        // First, so that what was canceled and is not spawned will never run.
        let canceled = self.canceled.entries(&job.agent, job.since, actions).await?;
        let spawned = self.spawned.entries(&job.agent, job.since, actions).await?;
        let exited = self.exited.entries(&job.agent, job.since, actions).await?;
        let mut known = Known::default();
        canceled.into_keys().for_each(|action| Actions::apply(&mut known, &Fact::Canceled(action)));
        for (action, Entry { by: supervisor, .. }) in spawned {
            let ours = supervisor == self.replica.instance.as_str();
            let held = !ours && self.replica.is_held(&supervisor, action).await;
            Actions::apply(&mut known, &Fact::Spawned { action, supervisor });
            if held {
                Actions::apply(&mut known, &Fact::Held(action));
            }
        }
        exited.into_keys().for_each(|action| Actions::apply(&mut known, &Fact::Exited(action)));
        Ok(known)
    }

    async fn carry_out(&self, job: &Job<'_>, asked: &Asked, mut known: Known) -> Result<Settled, Failure> {
        for _ in 0..RACES {
            let step = Actions::decide(&known, &asked.action, job.invoke.envelope.time);
            self.replica.note(|| format!("{step:?} {} {}", asked.tool, asked.action));
            match step {
                Step::Leave => return Ok(Settled::Done),
                Step::Wait => return Ok(Settled::Later(Duration::ZERO)),
                Step::Withdraw => {
                    self.report(job, asked, invocation_id(asked.action), "canceled").await?;
                    return Ok(Settled::Done);
                }
                Step::Lost { .. } => {
                    self.report(job, asked, spawned_id(asked.action), "supervisor_lost").await?;
                    return Ok(Settled::Done);
                }
                Step::Begin => match self.begin(job, asked).await? {
                    Some(settled) => return Ok(settled),
                    None => known = self.known(job, &[asked.action]).await?,
                },
            }
        }
        Err(Failure::Transient("the ledger moved on again and again".to_owned()))
    }

    async fn begin(&self, job: &Job<'_>, asked: &Asked) -> Result<Option<Settled>, Failure> {
        let _held = self.replica.hold(asked.action);
        step().await;
        if model::is_refused(asked.action) {
            self.report(job, asked, invocation_id(asked.action), "refused").await?;
            return Ok(Some(Settled::Done));
        }
        let guarded = Guarded::prepare(&self.replica, asked.action);
        if self.replica.has(Flaw::GateFirst) {
            guarded.go();
        }
        match self.spawned.enter(&job.agent, job.since, &self.spawned_event(job, asked)).await? {
            Entered::Written => {}
            // The process at the gate is dropped, and never runs its program.
            Entered::Already => return Ok(None),
        }
        if !self.replica.has(Flaw::GateAnyway) && self.is_canceled(job, asked).await? {
            drop(guarded);
            self.report(job, asked, spawned_id(asked.action), "canceled").await?;
            return Ok(Some(Settled::Done));
        }
        guarded.go();
        let end = match guarded.end().await {
            ProcessState::Ended => "exited",
            ProcessState::Stopped => "canceled",
            _ => "supervisor_lost",
        };
        self.report(job, asked, spawned_id(asked.action), end).await?;
        Ok(Some(Settled::Done))
    }

    /// `Ledgers::obstacle`: asked again for as long as there is patience.
    async fn is_canceled(&self, job: &Job<'_>, asked: &Asked) -> Result<bool, BusError> {
        loop {
            match self.canceled.entries(&job.agent, job.since, &[asked.action]).await {
                Ok(entries) => return Ok(!entries.is_empty()),
                Err(error) => self.replica.patience(error)?,
            }
        }
    }

    fn envelope(&self, job: &Job<'_>, asked: &Asked, id: Uuid, because: Uuid) -> Envelope {
        let now = self.replica.world.borrow().now();
        let follows = job.invoke.envelope.follow(id, Service::ProcessSupervisor, Origin::System, now);
        Envelope { causation_id: Some(because), ..follows }.in_thread(&asked.thread_id)
    }

    fn spawned_event(&self, job: &Job<'_>, asked: &Asked) -> Outgoing {
        let body = ProcessSpawned {
            process_id: process_id(asked.action),
            action_id: asked.action.to_string(),
            supervisor: self.replica.instance.to_string(),
            pid: 1,
            program: "program".to_owned(),
            background: asked.tool == model::SPAWN,
            decision_sequence: job.since,
            tool: asked.tool.clone(),
            ..Default::default()
        };
        let envelope = self.envelope(job, asked, spawned_id(asked.action), invocation_id(asked.action));
        Outgoing::new(&PROCESS_SPAWNED, &job.agent, envelope, body)
    }

    /// Whether it ran here.
    fn has_run(&self, action: Uuid) -> bool {
        let world = self.replica.world.borrow();
        world.processes.iter().any(|it| it.ran && it.action == action && it.replica == self.replica.id)
    }

    async fn report(&self, job: &Job<'_>, asked: &Asked, because: Uuid, outcome: &str) -> Result<(), BusError> {
        let body = ProcessExited {
            process_id: process_id(asked.action),
            action_id: asked.action.to_string(),
            supervisor: self.replica.instance.to_string(),
            outcome: outcome.to_owned(),
            code: (outcome == "exited").then_some(0),
            usage: self.has_run(asked.action).then(ProcessUsage::default),
            decision_sequence: job.since,
            background: asked.tool == model::SPAWN,
            program: "program".to_owned(),
            tool: asked.tool.clone(),
            ..Default::default()
        };
        let envelope = self.envelope(job, asked, ids::derived(asked.action, "exited"), because);
        let event = Outgoing::new(&PROCESS_EXITED, &job.agent, envelope, body);
        self.exited.enter(&job.agent, job.since, &event).await?;
        Ok(())
    }
}

impl<'r> Guarded<'r> {
    fn prepare(replica: &'r Replica, action: Uuid) -> Self {
        let process = replica.world.borrow_mut().prepare(action, replica.id);
        Self { replica, process }
    }

    fn go(&self) {
        self.replica.world.borrow_mut().open(self.replica.instance.as_str(), self.process);
    }

    /// Waits until the process is over.
    async fn end(&self) -> ProcessState {
        poll_fn(|context| {
            let process = &mut self.replica.world.borrow_mut().processes[self.process];
            match process.state {
                ProcessState::AtTheGate | ProcessState::Running => {
                    process.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
                over => Poll::Ready(over),
            }
        })
        .await
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        self.replica.world.borrow_mut().over(self.process, ProcessState::Killed);
    }
}

fn spawned_id(action: Uuid) -> Uuid {
    ids::derived(action, "spawned")
}

fn process_id(action: Uuid) -> String {
    ids::derived(action, "process").to_string()
}
