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
        connection_monitor::ConnectionMonitor,
        consume::{Delivery, DeliveryOutcome, Handler, HandlerFailure, backoff_delay},
        ledger::LedgerOutcome,
        liveness::ActionLiveness,
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
    action_plan::{ActionDecider, ActionHistory, Disposition, ProcessFact, RequestedProcess, requested_processes},
    config::SupervisorConfig,
    events::{ProcessEnding, spawned_id},
    guarded_process::{GuardFleet, GuardedProcess},
    job::Job,
    lease::lease_ms,
    ledgers::Ledgers,
    live_output::LivePublisher,
    policy::{Policy, ProgramRequest},
    process_room::Room,
    process_run,
    protocol::Spec,
    registry::{Registry, RegistryEntry},
    request_handler::RequestHandler,
    running_process::RunningProcess,
};

/// Invokes worked on at once that are told apart; far above the bus's concurrency.
const AT_WORK: usize = 16_384;
/// Times the ledger may have moved on before the invoke is left to be delivered again.
const RACES: u32 = 8;

pub struct Supervisor {
    bus: Bus,
    config: SupervisorConfig,
    policy: Policy,
    guards: Arc<GuardFleet>,
    contact: ConnectionMonitor,
    liveness: ActionLiveness,
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
    async fn handle(&self, delivery: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let Body::ToolInvoke(invoke) = &delivery.record.body else {
            return Err(HandlerFailure::Permanent(format!("nothing to do for a {}", delivery.record.body.type_name())));
        };
        let asked = requested_processes(invoke);
        if asked.is_empty() {
            return Ok(DeliveryOutcome::Done);
        }
        let Some((_, agent)) = subjects::find_route(&delivery.record.subject) else {
            return Err(HandlerFailure::Permanent("subject names no agent".to_owned()));
        };
        let _handling = self.handling.token();
        let slot = self.at_work.get(&delivery.record.envelope.id);
        let _only_one = slot.lock().await;
        let mut job = Job::new(agent, &delivery.record, invoke.decision_sequence, &self.bus);
        let actions: Vec<Uuid> = asked.iter().map(|asked| asked.action).collect();
        // Only an invoke that was delivered before can have been begun.
        let known = if delivery.is_redelivered() {
            self.load_action_history(&job, &actions).await?
        } else {
            ActionHistory::default()
        };
        let begins =
            |action: Uuid| ActionDecider::decide(&known, &action, job.invoke.envelope.time) == Disposition::Begin;
        if let Some(first) = asked.iter().find(|asked| begins(asked.action)) {
            let Some(room) = self.room.wait_for_first(&job.holder(first)).await else {
                return Ok(DeliveryOutcome::Later(Duration::ZERO));
            };
            job.give_permit(room);
        }
        // All to their end, whatever becomes of one: to drop a process is to kill it.
        let settled = join_all(asked.iter().map(|asked| self.settle_action(&job, asked, known.clone()))).await;
        settled.into_iter().try_fold(DeliveryOutcome::Done, |all, one| Ok(all.combine(one?)))
    }
}

impl Supervisor {
    pub fn new(
        bus: &Bus,
        config: SupervisorConfig,
        policy: Policy,
        guards: Arc<GuardFleet>,
        contact: ConnectionMonitor,
        liveness: ActionLiveness,
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
    pub fn register_metrics(&self) {
        let registry = self.registry.clone();
        self.bus.metrics.observe(&PROCESSES_RUNNING, move |say| say(registry.count() as f64, &[]));
        let concurrent = self.config.limits.concurrent;
        self.bus.metrics.observe(&PROCESSES_LIMIT, move |say| say(concurrent as f64, &[]));
    }

    /// Builds the handler of requests and orders for the processes that run here.
    pub fn request_handler(&self) -> RequestHandler {
        RequestHandler {
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
    async fn load_action_history(&self, job: &Job<'_>, actions: &[Uuid]) -> Result<ActionHistory, BusError> {
        let Ledgers { canceled, spawned, exited, .. } = &*self.ledgers;
        // First, so that what was canceled and is not spawned will never run: whoever spawns it now will find it so.
        let canceled = canceled.entries_about(&job.agent, job.since, actions).await?;
        let decided = self.ledgers.find_decided_stops(&job.agent, job.since, actions).await?;
        let spawned = spawned.entries_about(&job.agent, job.since, actions).await?;
        let exited = exited.entries_about(&job.agent, job.since, actions).await?;
        let mut known = ActionHistory::default();
        let canceled = canceled.into_keys().chain(decided);
        canceled.for_each(|action| ActionDecider::apply(&mut known, &ProcessFact::Canceled(action)));
        for (action, entry) in spawned {
            // Ours are not at work: whoever asks is the only one to work on this invoke here.
            let ours = entry.by == self.bus.instance.as_str();
            let held = !ours && self.liveness.is_held(&self.bus, &entry.by, action).await;
            ActionDecider::apply(&mut known, &ProcessFact::Spawned { action, supervisor: entry.by });
            if held {
                ActionDecider::apply(&mut known, &ProcessFact::Held(action));
            }
        }
        exited.into_keys().for_each(|action| ActionDecider::apply(&mut known, &ProcessFact::Exited(action)));
        Ok(known)
    }

    fn ack_wait(&self) -> Duration {
        Duration::from_millis(self.bus.limits.ack_wait_ms)
    }

    /// Sees to it that an action's process has an end in the log.
    async fn settle_action<'a>(
        &'a self,
        job: &Job<'a>,
        asked: &RequestedProcess,
        mut known: ActionHistory,
    ) -> Result<DeliveryOutcome, HandlerFailure> {
        for _ in 0..RACES {
            match ActionDecider::decide(&known, &asked.action, job.invoke.envelope.time) {
                Disposition::Leave => return Ok(DeliveryOutcome::Done),
                Disposition::Wait => return Ok(DeliveryOutcome::Later(self.retry_delay())),
                Disposition::Lost { supervisor } => {
                    let ours = supervisor == self.bus.instance.as_str();
                    let end = if ours {
                        ProcessEnding::unrecorded_end()
                    } else {
                        ProcessEnding::lost_with_supervisor(&supervisor)
                    };
                    // Of what cannot be read any more, the end can be told all the same.
                    let begun = self.ledgers.find_spawned(job.target(asked)).await.ok().flatten();
                    let program = begun.map(|begun| begun.spawned.program).unwrap_or_default();
                    self.record_end(job, asked, spawned_id(asked.action), program, end).await?;
                    return Ok(DeliveryOutcome::Done);
                }
                Disposition::Withdraw => {
                    self.record_end(job, asked, invocation_id(asked.action), String::new(), ProcessEnding::Withdrawn)
                        .await?;
                    return Ok(DeliveryOutcome::Done);
                }
                Disposition::Begin => match self.begin(job, asked).await? {
                    Some(settled) => return Ok(settled),
                    None => known = self.load_action_history(job, &[asked.action]).await?,
                },
            }
        }
        Err(HandlerFailure::Transient("the ledger moved on again and again".to_owned()))
    }

    /// Returns the time until another look at an action that another supervisor has.
    fn retry_delay(&self) -> Duration {
        match self.ack_wait().saturating_sub(self.contact.uptime()) {
            Duration::ZERO => self.ack_wait(),
            young => young,
        }
    }

    /// Runs the process, from admission to its end; `None` when somebody else was faster.
    async fn begin<'a>(
        &'a self,
        job: &Job<'a>,
        asked: &RequestedProcess,
    ) -> Result<Option<DeliveryOutcome>, HandlerFailure> {
        let _held = self.liveness.hold(asked.action);
        let room = match job.take_permit() {
            Some(room) => Some(room),
            None => self.room.wait_for_more(&job.holder(asked)).await,
        };
        let Some(_room) = room else {
            // Nothing was begun: for another replica, at once.
            return Ok(Some(DeliveryOutcome::Later(Duration::ZERO)));
        };
        let per_agent = self.config.limits.per_agent;
        let prepared = match self.ledgers.find_crowding(job.target(asked), asked.others_after, per_agent).await? {
            Some(end) => Err(end),
            None => self.prepare(job, asked).await,
        };
        let (spec, guarded) = match prepared {
            Ok(prepared) => prepared,
            Err(end) => {
                self.record_end(job, asked, invocation_id(asked.action), String::new(), end).await?;
                return Ok(Some(DeliveryOutcome::Done));
            }
        };
        let spawned = job.spawned_event(asked, guarded.pid(), &spec);
        // Before it is in the log: whoever reads there that it is here shall find it here.
        let Some(process) = self.register(job, asked, &guarded, spawned.envelope.clone()) else { return Ok(None) };
        let sequence = match self.ledgers.spawned.record_once(&job.agent, job.since, &spawned).await? {
            LedgerOutcome::Written { sequence } => sequence,
            // The process at the gate is dropped, and never runs its program.
            LedgerOutcome::Already(_) => return Ok(None),
        };
        let end = match self.ledgers.obstacle(job.target(asked), asked.others_after, sequence, per_agent).await? {
            Some(end) => {
                drop(guarded);
                end
            }
            None => process_run::run(&self.bus, guarded, &process, self.wait_for_stop(job, asked)).await,
        };
        let program = spec.program.display().to_string();
        self.record_end(job, asked, spawned_id(asked.action), program, end).await?;
        Ok(Some(DeliveryOutcome::Done))
    }

    fn register(
        &self,
        job: &Job<'_>,
        asked: &RequestedProcess,
        guarded: &GuardedProcess,
        cause: Envelope,
    ) -> Option<RegistryEntry> {
        let tail_bytes = self.config.limits.tail_bytes;
        let live = self
            .config
            .live_output
            .then(|| LivePublisher::new(&self.bus, &job.agent, asked.action, cause.clone(), tail_bytes));
        let process = RunningProcess::new(&job.agent, asked.action, cause, live, guarded.control(), tail_bytes);
        self.registry.register(process)
    }

    /// A process at its gate, or why there is none.
    async fn prepare(&self, job: &Job<'_>, asked: &RequestedProcess) -> Result<(Spec, GuardedProcess), ProcessEnding> {
        let refused = |reason| ProcessEnding::Refused { reason };
        if let Some(reason) = asked.unknown_tool() {
            return Err(refused(reason));
        }
        let request: ProgramRequest = serde_json::from_str(&asked.arguments)
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
        let failed = |reason| ProcessEnding::SpawnFailed { reason };
        let workplace = self.guards.ensure_workplace(&self.config.work_dir, &job.agent).await;
        workplace.map_err(|error| failed(error.to_string()))?;
        let guarded = self.guards.prepare(spec.clone()).await.map_err(|error| failed(error.to_string()))?;
        Ok((spec, guarded))
    }

    /// Writes how the process ended, unless that is in the log.
    async fn record_end(
        &self,
        job: &Job<'_>,
        asked: &RequestedProcess,
        because: Uuid,
        program: String,
        end: ProcessEnding,
    ) -> Result<(), BusError> {
        let event = job.exited_event(asked, because, program, end);
        match self.ledgers.exited.record_once(&job.agent, job.since, &event).await? {
            LedgerOutcome::Written { .. } => {
                let outcome = ProcessExited::of(&event.body).map_or("", |exited| exited.outcome.as_str());
                self.bus.metrics.count(&PROCESSES_ENDED, 1.0, &[outcome]);
            }
            LedgerOutcome::Already(_) => {
                tracing::info!(agent = %job.agent, action = %asked.action, "its end is in the log already");
            }
        }
        Ok(())
    }

    /// Returns when a process that runs here shall end, with the grace it has to do so.
    async fn wait_for_stop(&self, job: &Job<'_>, asked: &RequestedProcess) -> Duration {
        let grace = self.config.limits.grace();
        tokio::select! {
            biased;
            // The last quarter of the drain is for recording it.
            () = self.ending.cancelled() => grace.min(self.drain() / 4),
            () = self.wait_until_given_up(job, asked) => grace,
        }
    }

    /// Returns when others have recorded the end of a process that runs here, which they can only while we are cut
    /// off: looked for whenever a connection is made.
    async fn wait_until_given_up(&self, job: &Job<'_>, asked: &RequestedProcess) {
        let mut reconnections = self.contact.reconnections();
        loop {
            reconnections.next_reconnection().await;
            let mut attempt = 1;
            loop {
                match self.ledgers.exited.entries_about(&job.agent, job.since, &[asked.action]).await {
                    Ok(ends) if ends.is_empty() => break,
                    Ok(_) => {
                        tracing::warn!(action = %asked.action, "given up for lost while we were cut off; killing it");
                        return;
                    }
                    Err(_) => tokio::time::sleep(backoff_delay(&self.bus.limits, attempt)).await,
                }
                attempt += 1;
            }
        }
    }
}
