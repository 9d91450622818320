//! Running what invokes ask for.
//!
//! An invoke stays unacknowledged until each of its processes has an end in the log. A process is entered in the
//! ledger (`process.spawned`) before its program runs, and its end (`process.exited`) is entered in the same way; so
//! whoever is given the invoke again knows what exists, runs nothing twice, and says of what was lost that it was.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use kairo_core::{
    bus::{
        Bus, BusError,
        consume::{Delivery, Failure, Handler, Settled, backoff},
        contact::Contact,
        ledger::Entered,
        liveness::Liveness,
    },
    decider::Decider,
    envelope::Envelope,
    event_json::invocation_id,
    keyed_locks::KeyedLocks,
    metrics::table::{PROCESSES_ENDED, PROCESSES_LIMIT, PROCESSES_RUNNING},
    subjects,
};
use kairo_proto::{Body, v1::ProcessExited};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    config::SupervisorConfig,
    events::{End, spawned_id},
    guarded::{Guarded, Guards},
    job::Job,
    lease::lease_ms,
    ledgers::Ledgers,
    live::Live,
    plan::{Actions, Asked, Disposition, Fact, Known, asked},
    policy::{Policy, Request},
    process::Process,
    protocol::Spec,
    registry::{Registered, Registry},
    requests::Requests,
    room::Room,
    running,
};

/// Invokes worked on at once that are told apart; far above the bus's concurrency.
const AT_WORK: usize = 16_384;
/// Times the ledger may have moved on before the invoke is left to be delivered again.
const RACES: u32 = 8;

pub struct Supervisor {
    bus: Bus,
    config: SupervisorConfig,
    policy: Policy,
    guards: Arc<Guards>,
    contact: Contact,
    liveness: Liveness,
    ledgers: Arc<Ledgers>,
    registry: Arc<Registry>,
    room: Room,
    /// An invoke delivered again while it is being worked on here waits until that is done.
    at_work: KeyedLocks<Uuid, ()>,
    /// Cancelled when nothing more shall be begun.
    shutdown: CancellationToken,
    /// Cancelled when what runs shall end.
    ending: CancellationToken,
    handling: TaskTracker,
}

impl Handler for Supervisor {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Body::ToolInvoke(invoke) = &delivery.record.body else {
            return Err(Failure::Permanent(format!("nothing to do for a {}", delivery.record.body.type_name())));
        };
        let asked = asked(invoke);
        if asked.is_empty() {
            return Ok(Settled::Done);
        }
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        let _handling = self.handling.token();
        let slot = self.at_work.get(&delivery.record.envelope.id);
        let _only_one = slot.lock().await;
        let mut job = Job::new(agent, &delivery.record, invoke.decision_sequence, &self.bus);
        let actions: Vec<Uuid> = asked.iter().map(|asked| asked.action).collect();
        // Only an invoke that was delivered before can have been begun.
        let known = if delivery.redelivered() { self.known(&job, &actions).await? } else { Known::default() };
        let begins = |action: Uuid| Actions::decide(&known, &action, job.invoke.envelope.time) == Disposition::Begin;
        if let Some(first) = asked.iter().find(|asked| begins(asked.action)) {
            let Some(room) = self.room.for_first(&job.holder(first)).await else {
                return Ok(Settled::Later(Duration::ZERO));
            };
            job.give_room(room);
        }
        // All to their end, whatever becomes of one: to drop a process is to kill it.
        let settled = join_all(asked.iter().map(|asked| self.carry_out(&job, asked, known.clone()))).await;
        settled.into_iter().try_fold(Settled::Done, |all, one| Ok(all.and(one?)))
    }
}

impl Supervisor {
    pub fn new(
        bus: &Bus,
        config: SupervisorConfig,
        policy: Policy,
        guards: Arc<Guards>,
        contact: Contact,
        liveness: Liveness,
        shutdown: CancellationToken,
    ) -> Self {
        // As long as anything that is tried again waits at most.
        let patience = Duration::from_millis(bus.limits.retry_longest_ms);
        Self {
            bus: bus.clone(),
            policy,
            room: Room::new(config.limits.concurrent, patience, shutdown.clone()),
            config,
            guards,
            contact,
            liveness,
            ledgers: Arc::new(Ledgers::new(bus)),
            registry: Arc::default(),
            at_work: KeyedLocks::new(AT_WORK),
            shutdown,
            ending: CancellationToken::new(),
            handling: TaskTracker::new(),
        }
    }

    /// Has metrics say how many processes run here, and may.
    pub fn observe(&self) {
        let registry = self.registry.clone();
        self.bus.metrics.observe(&PROCESSES_RUNNING, move |say| say(registry.count() as f64, &[]));
        let concurrent = self.config.limits.concurrent;
        self.bus.metrics.observe(&PROCESSES_LIMIT, move |say| say(concurrent as f64, &[]));
    }

    /// Builds the handler of requests and orders for the processes that run here.
    pub fn requests(&self) -> Requests {
        Requests {
            bus: self.bus.clone(),
            registry: self.registry.clone(),
            ledgers: self.ledgers.clone(),
            grace: self.config.limits.grace(),
        }
    }

    /// After shutdown, leaves processes half of the drain to end by themselves, then ends them: an orderly end is
    /// recorded by whoever brings it about, and not left for others to find out.
    pub async fn end_in_time(&self) {
        self.shutdown.cancelled().await;
        self.handling.close();
        let patience = self.drain() / 2;
        let _or_not = tokio::time::timeout(patience, self.handling.wait()).await;
        self.ending.cancel();
    }

    fn drain(&self) -> Duration {
        Duration::from_millis(self.bus.limits.drain_ms)
    }

    /// Collects the facts that the log and other supervisors have on these actions now.
    async fn known(&self, job: &Job<'_>, actions: &[Uuid]) -> Result<Known, BusError> {
        let Ledgers { canceled, spawned, exited, .. } = &*self.ledgers;
        // First, so that what was canceled and is not spawned will never run: whoever spawns it now will find it so.
        let canceled = canceled.entries(&job.agent, job.since, actions).await?;
        let decided = self.ledgers.decided(&job.agent, job.since, actions).await?;
        let spawned = spawned.entries(&job.agent, job.since, actions).await?;
        let exited = exited.entries(&job.agent, job.since, actions).await?;
        let mut known = Known::default();
        let canceled = canceled.into_keys().chain(decided);
        canceled.for_each(|action| Actions::apply(&mut known, &Fact::Canceled(action)));
        for (action, entry) in spawned {
            // Ours are not at work: whoever asks is the only one to work on this invoke here.
            let ours = entry.by == self.bus.instance.as_str();
            let held = !ours && self.liveness.is_held(&self.bus, &entry.by, action).await;
            Actions::apply(&mut known, &Fact::Spawned { action, supervisor: entry.by });
            if held {
                Actions::apply(&mut known, &Fact::Held(action));
            }
        }
        exited.into_keys().for_each(|action| Actions::apply(&mut known, &Fact::Exited(action)));
        Ok(known)
    }

    fn ack_wait(&self) -> Duration {
        Duration::from_millis(self.bus.limits.ack_wait_ms)
    }

    /// Sees to it that an action's process has an end in the log.
    async fn carry_out<'a>(&'a self, job: &Job<'a>, asked: &Asked, mut known: Known) -> Result<Settled, Failure> {
        for _ in 0..RACES {
            match Actions::decide(&known, &asked.action, job.invoke.envelope.time) {
                Disposition::Leave => return Ok(Settled::Done),
                Disposition::Wait => return Ok(Settled::Later(self.another_look())),
                Disposition::Lost { supervisor } => {
                    let ours = supervisor == self.bus.instance.as_str();
                    let end = if ours { End::unrecorded() } else { End::lost_with(&supervisor) };
                    // Of what cannot be read any more, the end can be told all the same.
                    let begun = self.ledgers.begun(job.target(asked)).await.ok().flatten();
                    let program = begun.map(|begun| begun.spawned.program).unwrap_or_default();
                    self.report(job, asked, spawned_id(asked.action), program, end).await?;
                    return Ok(Settled::Done);
                }
                Disposition::Withdraw => {
                    self.report(job, asked, invocation_id(asked.action), String::new(), End::Withdrawn).await?;
                    return Ok(Settled::Done);
                }
                Disposition::Begin => match self.begin(job, asked).await? {
                    Some(settled) => return Ok(settled),
                    None => known = self.known(job, &[asked.action]).await?,
                },
            }
        }
        Err(Failure::Transient("the ledger moved on again and again".to_owned()))
    }

    /// Returns the time until another look at an action that another supervisor has.
    fn another_look(&self) -> Duration {
        match self.ack_wait().saturating_sub(self.contact.unbroken()) {
            Duration::ZERO => self.ack_wait(),
            young => young,
        }
    }

    /// Runs the process, from admission to its end; `None` when somebody else was faster.
    async fn begin<'a>(&'a self, job: &Job<'a>, asked: &Asked) -> Result<Option<Settled>, Failure> {
        let _held = self.liveness.hold(asked.action);
        let room = match job.take_room() {
            Some(room) => Some(room),
            None => self.room.for_more(&job.holder(asked)).await,
        };
        let Some(_room) = room else {
            // Nothing was begun: for another replica, at once.
            return Ok(Some(Settled::Later(Duration::ZERO)));
        };
        let per_agent = self.config.limits.per_agent;
        let prepared = match self.ledgers.crowded(job.target(asked), asked.others_after, per_agent).await? {
            Some(end) => Err(end),
            None => self.prepare(job, asked).await,
        };
        let (spec, guarded) = match prepared {
            Ok(prepared) => prepared,
            Err(end) => {
                self.report(job, asked, invocation_id(asked.action), String::new(), end).await?;
                return Ok(Some(Settled::Done));
            }
        };
        let spawned = job.spawned(asked, guarded.pid(), &spec);
        // Before it is in the log: whoever reads there that it is here shall find it here.
        let Some(process) = self.register(job, asked, &guarded, spawned.envelope.clone()) else { return Ok(None) };
        let sequence = match self.ledgers.spawned.enter(&job.agent, job.since, &spawned).await? {
            Entered::Written { sequence } => sequence,
            // The process at the gate is dropped, and never runs its program.
            Entered::Already(_) => return Ok(None),
        };
        let end = match self.ledgers.obstacle(job.target(asked), asked.others_after, sequence, per_agent).await? {
            Some(end) => {
                drop(guarded);
                end
            }
            None => running::run(&self.bus, guarded, &process, self.stopping(job, asked)).await,
        };
        let program = spec.program.display().to_string();
        self.report(job, asked, spawned_id(asked.action), program, end).await?;
        Ok(Some(Settled::Done))
    }

    fn register(&self, job: &Job<'_>, asked: &Asked, guarded: &Guarded, cause: Envelope) -> Option<Registered> {
        let tail_bytes = self.config.limits.tail_bytes;
        let live =
            self.config.live_output.then(|| Live::new(&self.bus, &job.agent, asked.action, cause.clone(), tail_bytes));
        let process = Process::new(&job.agent, asked.action, cause, live, guarded.control(), tail_bytes);
        self.registry.register(process)
    }

    /// A process at its gate, or why there is none.
    async fn prepare(&self, job: &Job<'_>, asked: &Asked) -> Result<(Spec, Guarded), End> {
        let refused = |reason| End::Refused { reason };
        if let Some(reason) = asked.unknown_tool() {
            return Err(refused(reason));
        }
        let request: Request = serde_json::from_str(&asked.arguments)
            .map_err(|error| refused(format!("the arguments do not fit the tool's schema: {error}")))?;
        if let Some(reason) = asked.misplaced_stdin(request.stdin) {
            return Err(refused(reason));
        }
        let cwd = self.config.work_dir.join(job.agent.as_str());
        let lease_ms = lease_ms(&self.bus.limits);
        let spec = self
            .policy
            .admit(request, &cwd, &self.config.limits, lease_ms)
            .map_err(|refusal| refused(refusal.to_string()))?;
        let failed = |reason| End::SpawnFailed { reason };
        let workplace = self.guards.workplace(&self.config.work_dir, &job.agent).await;
        workplace.map_err(|error| failed(error.to_string()))?;
        let guarded = self.guards.prepare(spec.clone()).await.map_err(|error| failed(error.to_string()))?;
        Ok((spec, guarded))
    }

    /// Writes how the process ended, unless that is in the log.
    async fn report(
        &self,
        job: &Job<'_>,
        asked: &Asked,
        because: Uuid,
        program: String,
        end: End,
    ) -> Result<(), BusError> {
        let event = job.exited(asked, because, program, end);
        match self.ledgers.exited.enter(&job.agent, job.since, &event).await? {
            Entered::Written { .. } => {
                let outcome = ProcessExited::of(&event.body).map_or("", |exited| exited.outcome.as_str());
                self.bus.metrics.count(&PROCESSES_ENDED, 1.0, &[outcome]);
            }
            Entered::Already(_) => {
                tracing::info!(agent = %job.agent, action = %asked.action, "its end is in the log already");
            }
        }
        Ok(())
    }

    /// Returns when a process that runs here shall end, with the grace it has to do so.
    async fn stopping(&self, job: &Job<'_>, asked: &Asked) -> Duration {
        let grace = self.config.limits.grace();
        tokio::select! {
            biased;
            // The last quarter of the drain is for recording it.
            () = self.ending.cancelled() => grace.min(self.drain() / 4),
            () = self.given_up(job, asked) => grace,
        }
    }

    /// Returns when others have recorded the end of a process that runs here, which they can only while we are cut
    /// off: looked for whenever a connection is made.
    async fn given_up(&self, job: &Job<'_>, asked: &Asked) {
        let mut reconnections = self.contact.reconnections();
        loop {
            reconnections.next().await;
            let mut attempt = 1;
            loop {
                match self.ledgers.exited.entries(&job.agent, job.since, &[asked.action]).await {
                    Ok(ends) if ends.is_empty() => break,
                    Ok(_) => {
                        tracing::warn!(action = %asked.action, "given up for lost while we were cut off; killing it");
                        return;
                    }
                    Err(_) => tokio::time::sleep(backoff(&self.bus.limits, attempt)).await,
                }
                attempt += 1;
            }
        }
    }
}
