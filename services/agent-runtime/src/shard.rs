//! One partition of agents: what the tail brings is folded into the agents it is for, and whatever is somebody's move is
//! decided on ([`decision_loop`]), one decision at a time per agent and many agents at once.

mod agents;
mod catch_up;
mod checkpoint_save;
mod decision_loop;
mod parked_agents;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kairo_core::{
    bus::{
        Bus, BusError,
        congestion::{self, InputQueue, backpressure::BackpressureTracker},
    },
    ids::Name,
    metrics::table::{AGENTS_MEMORY, AGENTS_PARKED},
    ownership::{
        checkpoint::CheckpointStore,
        member::{PartitionLease, PartitionWork},
        replica_progress::OwnedPartitionProgress,
        tail::{self, TailItem},
    },
    partition::partition_filter,
    record::{RawMessage, UnreadableRecord},
    subjects::{self, Consumer},
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::{AbortHandle, JoinSet},
    time::{Instant, MissedTickBehavior},
};

use self::{agents::Agents, catch_up::CatchUpProgress, checkpoint_save::SaveOutcome};
use crate::{
    config::AgentRuntimeConfig,
    decisions_in_flight::DecisionsInFlight,
    failing_calls::{FailingCalls, PartitionFailures},
    handover_state::{self, AgentHandover},
    resident::{ApplyOutcome, Resident},
    snapshots::{self, AgentHistory, FORMAT, LoadedAgent},
    thinker::{Thinker, ThoughtOutcome},
    turn::TurnHandle,
};

/// Interval between checks for work that has waited too long.
const LOOK: Duration = Duration::from_millis(250);
/// The wait before an agent is checked again whose log is incomplete: an operator has to repair that.
const LOOK_AT_REFUSED: Duration = Duration::from_secs(10);

/// State shared by all partitions of this replica.
pub struct Shards {
    pub bus: Bus,
    pub thinker: Thinker,
    pub config: AgentRuntimeConfig,
    /// Agents that are loaded at once.
    pub loads: Semaphore,
    /// Memory used by agents, in bytes.
    pub bytes: AtomicUsize,
    /// Calls of models that agents do without since they fail.
    pub failing: FailingCalls,
    pub under_way: DecisionsInFlight,
}

impl Shards {
    /// Has metrics say what agents there are.
    pub fn observe(self: &Arc<Self>) {
        let metrics = &self.bus.metrics;
        let standing = self.bus.standing.clone();
        metrics.observe(&AGENTS_PARKED, move |say| say(standing.parked_agents().len() as f64, &[]));
        let bus = self.bus.clone();
        self.under_way.observe(metrics, move || bus.now());
        let shards = Arc::downgrade(self);
        metrics.observe(&AGENTS_MEMORY, move |say| {
            if let Some(shards) = shards.upgrade() {
                say(shards.bytes.load(Ordering::Relaxed) as f64, &[]);
            }
        });
    }
}

impl PartitionWork for Shards {
    async fn run(self: Arc<Self>, mut tenure: PartitionLease) {
        let checkpoints = CheckpointStore::open_with_retry(&self.bus, tenure.partition, Some(FORMAT));
        let (checkpoints, left) = tokio::join!(checkpoints, handover_state::read(&self.bus, tenure.partition));
        let mut tail = tail::follow(&self.bus, vec![partition_filter(tenure.partition)], checkpoints.last.through);
        let (sender, mut told) = mpsc::unbounded_channel();
        let mut shard = Shard::new(self.clone(), &tenure, checkpoints, sender);
        (shard.had_handovers, shard.handovers) = (!left.is_empty(), left);
        shard.wake_busy_agents();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = tenure.wait_until_released(), if !shard.releasing => shard.release(),
                _ = looks.tick() => shard.run_checks(),
                Some(told) = told.recv() => shard.handle_event(told),
                Some(tailed) = tail.recv(), if shard.has_room() => shard.read(tailed),
            }
            if shard.is_handed_over() {
                return;
            }
        }
    }
}

/// Messages from tasks to the shard that started them.
enum ShardEvent {
    Loaded(Name, Result<Box<LoadedAgent>, BusError>),
    Fetched(Name, Result<Vec<(u64, Option<RawMessage>)>, BusError>),
    Thought(Name, TurnHandle, ThoughtOutcome),
    /// A dead letter about the message at this sequence was written.
    SetAside(u64),
    Saved(Box<SaveOutcome>),
}

/// A partition at work.
struct Shard {
    shards: Arc<Shards>,
    partition: u32,
    tenure: PartitionLease,
    agents: Agents,
    /// Agents that are being loaded for the first time: what comes for them is held back.
    loading: usize,
    events: mpsc::UnboundedSender<ShardEvent>,
    /// Ends with it.
    tasks: JoinSet<()>,
    /// The last message that was read.
    read: u64,
    catching_up: CatchUpProgress,
    pressure: BackpressureTracker,
    /// Messages whose dead letters are not written yet.
    dead_letters: BTreeSet<u64>,
    /// Answers from the previous owner, for agents that have not resumed yet, and whether it left any.
    handovers: BTreeMap<Name, AgentHandover>,
    had_handovers: bool,
    releasing: bool,
    checkpoints: Option<CheckpointStore>,
    saved: Instant,
    /// Messages read since.
    since_saved: usize,
    /// True once the last save before the handover is complete.
    all_saved: bool,
    failing: PartitionFailures,
}

impl Shard {
    fn new(
        shards: Arc<Shards>,
        tenure: &PartitionLease,
        checkpoints: CheckpointStore,
        told: mpsc::UnboundedSender<ShardEvent>,
    ) -> Self {
        let pressure = BackpressureTracker::new(shards.config.pending_inputs);
        let failing = shards.failing.for_partition(tenure.partition);
        Self {
            shards,
            failing,
            partition: tenure.partition,
            tenure: tenure.clone(),
            agents: Agents::default(),
            loading: 0,
            events: told,
            tasks: JoinSet::new(),
            read: checkpoints.last.through,
            catching_up: CatchUpProgress::Opening,
            pressure,
            dead_letters: BTreeSet::new(),
            handovers: BTreeMap::new(),
            had_handovers: false,
            releasing: false,
            checkpoints: Some(checkpoints),
            saved: Instant::now(),
            since_saved: 0,
            all_saved: false,
        }
    }

    /// Wakes the agents that had something to do at the last checkpoint.
    fn wake_busy_agents(&mut self) {
        let busy = self.checkpoints.as_ref().map(|checkpoints| checkpoints.last.busy.clone()).unwrap_or_default();
        for agent in busy {
            self.load_new_agent(&agent, AgentHistory::InLog);
        }
    }

    /// Runs a task that ends with the shard, if not before.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.tasks.spawn(self.shards.bus.host_task(task))
    }

    /// Returns true if more may be read: messages held back for agents that are still loading would fill the memory,
    /// and so would agents that arrive faster than they are saved.
    fn has_room(&self) -> bool {
        self.loading < self.shards.config.loads_waiting && !(self.is_saving() && self.shards.is_over_memory())
    }

    /// Begins to load an agent into memory.
    fn load_new_agent(&mut self, agent: &Name, absent: AgentHistory) {
        self.loading += 1;
        self.agents.insert(Resident::loading(agent.clone(), self.shards.config.restarts));
        self.load(agent, absent, false);
    }

    /// It was loaded, or cannot be for now: others do not wait for that.
    fn end_first_load(&mut self, agent: &Name) {
        let first = self.agents.get_mut(agent).is_some_and(|resident| std::mem::take(&mut resident.is_new));
        self.loading -= usize::from(first);
    }

    fn read(&mut self, tailed: TailItem) {
        match tailed {
            TailItem::Began { pending } => self.catching_up.begin(pending),
            TailItem::Messages(messages) => {
                self.catching_up.read(messages.len());
                self.since_saved += messages.len();
                let touched: BTreeSet<Name> = messages.into_iter().filter_map(|raw| self.route_message(raw)).collect();
                touched.iter().for_each(|agent| self.decide_next(agent));
            }
        }
        if self.catching_up.end_if_caught_up() {
            let all: Vec<Name> = self.agents.awake().map(|resident| resident.name.clone()).collect();
            all.iter().for_each(|agent| self.decide_next(agent));
        }
        if self.since_saved >= self.early_save_threshold() {
            self.save();
        }
    }

    /// Hands a message to the agent it is about, which may have to be loaded first.
    fn route_message(&mut self, raw: RawMessage) -> Option<Name> {
        if raw.sequence <= self.read {
            return None;
        }
        self.read = raw.sequence;
        let agent = self.agent_of(&raw).filter(|_| self.shards.bus.misplacement_of(&raw).is_none())?;
        if !self.agents.has(&agent) {
            self.load_new_agent(&agent, AgentHistory::New(raw.sequence));
        }
        let taken = self.agents.get_mut(&agent)?.apply_message(&self.shards.bus, &raw);
        self.act_on_outcome(&agent, raw, taken);
        Some(agent)
    }

    /// Acts on the result of taking in a message.
    fn act_on_outcome(&mut self, agent: &Name, raw: RawMessage, taken: ApplyOutcome) {
        match taken {
            ApplyOutcome::NoAction => {}
            ApplyOutcome::Diverged => self.reload_agent(agent),
            ApplyOutcome::Unreadable => self.write_dead_letter(raw),
            ApplyOutcome::Parked => self.park(agent),
        }
    }

    fn write_dead_letter(&mut self, raw: RawMessage) {
        let is_ours =
            subjects::find_route(&raw.subject).is_some_and(|(it, _)| it.consumers.contains(&Consumer::AgentRuntime));
        let Err(reason) = raw.read(self.shards.bus.limits.max_body_bytes) else { return };
        // What was carried forward is for nobody.
        if !is_ours || matches!(reason, UnreadableRecord::Carried { .. }) || !self.dead_letters.insert(raw.sequence) {
            return;
        }
        let bus = self.shards.bus.clone();
        let told = self.events.clone();
        self.spawn(async move {
            bus.write_unreadable_with_retry(Consumer::AgentRuntime.name(), &raw, &reason.to_string()).await;
            let _ = told.send(ShardEvent::SetAside(raw.sequence));
        });
    }

    fn reload_agent(&mut self, agent: &Name) {
        // While it is being read it is not begun again: what was read first would miss what the tail brought since.
        let is_here = |resident: &&mut Resident| resident.log.is_some() && resident.parked.is_none();
        if let Some(resident) = self.agents.get_mut(agent).filter(is_here) {
            tracing::info!(%agent, "reading an agent's log again");
            self.shards.bytes.fetch_sub(resident.bytes, Ordering::Relaxed);
            resident.reload();
            self.load(agent, AgentHistory::InLog, true);
        }
    }

    fn load(&mut self, agent: &Name, absent: AgentHistory, again: bool) {
        let shards = self.shards.clone();
        let told = self.events.clone();
        let agent = agent.clone();
        // What is being read wakes it, and comes by itself.
        let known = match absent {
            AgentHistory::New(first) => first - 1,
            AgentHistory::InLog => self.read,
        };
        self.spawn(async move {
            let Ok(room) = shards.loads.acquire().await else { return };
            let loaded = match again {
                true => snapshots::reload(&shards.bus, &agent).await,
                false => snapshots::load(&shards.bus, &agent, absent, known).await,
            };
            drop(room);
            match &loaded {
                Ok(_) => {}
                Err(error @ BusError::Refused(_)) => {
                    tracing::error!(%agent, %error, "an agent cannot be loaded");
                    tokio::time::sleep(LOOK_AT_REFUSED).await;
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
            let _ = told.send(ShardEvent::Loaded(agent, loaded.map(Box::new)));
        });
    }

    fn handle_event(&mut self, told: ShardEvent) {
        if let ShardEvent::Loaded(agent, _) = &told {
            self.end_first_load(agent);
        }
        match told {
            ShardEvent::Loaded(agent, Ok(loaded)) => self.finish_load(&agent, *loaded),
            ShardEvent::Loaded(agent, Err(error)) => {
                tracing::debug!(%agent, %error, "an agent could not be loaded yet");
                // What cannot be read for now is certainly there.
                self.load(&agent, AgentHistory::InLog, true);
            }
            ShardEvent::Fetched(agent, fetched) => self.supply_fetched(&agent, fetched),
            ShardEvent::Thought(agent, turn, thought) => self.finish_thinking(&agent, &turn, thought),
            ShardEvent::SetAside(sequence) => _ = self.dead_letters.remove(&sequence),
            ShardEvent::Saved(saved) => self.finish_save(*saved),
        }
        // Those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    fn finish_load(&mut self, agent: &Name, loaded: LoadedAgent) {
        let Some(resident) = self.agents.get_mut(agent).filter(|resident| resident.log.is_none()) else { return };
        self.shards.bytes.fetch_add(resident.bytes, Ordering::Relaxed);
        let held_back = resident.finish_loading(&self.shards.bus, loaded);
        if resident.parked.is_some() {
            self.park(agent);
        }
        for (raw, taken) in held_back {
            self.act_on_outcome(agent, raw, taken);
        }
        self.decide_next(agent);
    }

    fn supply_fetched(&mut self, agent: &Name, fetched: Result<Vec<(u64, Option<RawMessage>)>, BusError>) {
        let Some(resident) = self.agents.get_mut(agent) else { return };
        match fetched {
            Ok(messages) => resident.supply_pending(&self.shards.bus, messages),
            Err(error) => {
                tracing::debug!(%agent, %error, "what lies ahead could not be read yet");
                resident.fetching = false;
            }
        }
        self.decide_next(agent);
    }

    fn fetch(&mut self, agent: &Name, sequences: Vec<u64>) {
        let bus = self.shards.bus.clone();
        let told = self.events.clone();
        let agent = agent.clone();
        self.spawn(async move {
            let mut fetched = Vec::with_capacity(sequences.len());
            for sequence in sequences {
                match bus.message_at(sequence).await {
                    Ok(raw) => fetched.push((sequence, raw)),
                    Err(error) => {
                        tokio::time::sleep(LOOK).await;
                        let _ = told.send(ShardEvent::Fetched(agent, Err(error)));
                        return;
                    }
                }
            }
            let _ = told.send(ShardEvent::Fetched(agent, Ok(fetched)));
        });
    }

    /// Runs the periodic checks.
    fn run_checks(&mut self) {
        let puzzled = self.agents.awake().filter(|resident| resident.is_conflict_overdue());
        let puzzled: Vec<Name> = puzzled.map(|resident| resident.name.clone()).collect();
        puzzled.iter().for_each(|agent| self.reload_agent(agent));
        let due = self.saved.elapsed() >= Duration::from_millis(self.shards.bus.limits.checkpoint_ms);
        if due || self.releasing {
            self.save();
        }
        self.report_pressure();
        let waiting = self.agents.awake().map(|resident| resident.pending_inputs() as u64).sum();
        let waiting = if self.catching_up.is_done() { waiting } else { u64::max(waiting, 1) };
        self.shards.bus.standing.set_progress(self.partition, OwnedPartitionProgress { read: self.read, waiting });
        self.report_parked();
    }

    /// Says which users, or which agents, have more waiting than is taken on, so that the boundary takes no more messages. What is
    /// stored is decided on all the same.
    fn report_pressure(&mut self) {
        let waiting = |queue: &InputQueue| self.agents.get_awake(&queue.agent).map_or(0, |it| it.pending_in(queue));
        let limit = self.pressure.limit();
        let over: Vec<_> = self.agents.awake().flat_map(|resident| resident.full_queues(limit)).collect();
        for (queue, congestion) in self.pressure.due_announcements(over, waiting, Instant::now()) {
            let bus = self.shards.bus.clone();
            self.spawn(async move { congestion::announce(&bus, &queue, congestion).await });
        }
    }

    /// From here on nothing is begun and no model is asked; what was asked may be answered, for whoever is next.
    fn release(&mut self) {
        self.releasing = true;
        self.agents.awake_mut().for_each(Resident::stop);
        self.save();
    }

    fn is_running(&self) -> bool {
        self.agents.awake().any(Resident::is_running)
    }

    fn is_handed_over(&self) -> bool {
        self.releasing && self.all_saved && !self.is_running()
    }
}
