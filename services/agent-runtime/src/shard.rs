//! One partition of agents: what the tail brings is folded into the agents it is for, and whatever is somebody's move is
//! decided on ([`deciding`]), one decision at a time per agent and many agents at once.

mod agents;
mod catching_up;
mod deciding;
mod parking;
mod saving;

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
        congestion::{self, Queue, pressure::Pressure},
    },
    ids::Name,
    metrics::table::{AGENTS_MEMORY, AGENTS_PARKED},
    ownership::{
        checkpoint::Checkpoints,
        member::{Tenure, Work},
        standing::PartitionStanding,
        tail::{self, Tailed},
    },
    partition::everything_in,
    record::{Raw, Unreadable},
    subjects::{self, Consumer},
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::{AbortHandle, JoinSet},
    time::{Instant, MissedTickBehavior},
};

use self::{agents::Agents, catching_up::CatchingUp, saving::Saved};
use crate::{
    config::AgentRuntimeConfig,
    failing_calls::{FailingCalls, OfPartition},
    handed_over::{self, HandedOver},
    resident::{Resident, Taken},
    snapshots::{self, Absent, FORMAT, Loaded},
    thinking::{Thinker, Thought},
    turn::Turn,
    under_way::DecisionsUnderWay,
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
    pub under_way: DecisionsUnderWay,
}

impl Shards {
    /// Has metrics say what agents there are.
    pub fn observe(self: &Arc<Self>) {
        let metrics = &self.bus.metrics;
        let standing = self.bus.standing.clone();
        metrics.observe(&AGENTS_PARKED, move |say| say(standing.parked().len() as f64, &[]));
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

impl Work for Shards {
    async fn run(self: Arc<Self>, mut tenure: Tenure) {
        let checkpoints = Checkpoints::open_in_time(&self.bus, tenure.partition, Some(FORMAT));
        let (checkpoints, left) = tokio::join!(checkpoints, handed_over::read(&self.bus, tenure.partition));
        let mut tail = tail::follow(&self.bus, vec![everything_in(tenure.partition)], checkpoints.last.through);
        let (sender, mut told) = mpsc::unbounded_channel();
        let mut shard = Shard::new(self.clone(), &tenure, checkpoints, sender);
        (shard.is_left, shard.left) = (!left.is_empty(), left);
        shard.wake_the_busy();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = tenure.released(), if !shard.releasing => shard.release(),
                _ = looks.tick() => shard.look(),
                Some(told) = told.recv() => shard.hear(told),
                Some(tailed) = tail.recv(), if shard.has_room() => shard.read(tailed),
            }
            if shard.is_handed_over() {
                return;
            }
        }
    }
}

/// Messages from tasks to the shard that started them.
enum Told {
    Loaded(Name, Result<Box<Loaded>, BusError>),
    Fetched(Name, Result<Vec<(u64, Option<Raw>)>, BusError>),
    Thought(Name, Turn, Thought),
    /// A dead letter about the message at this sequence was written.
    SetAside(u64),
    Saved(Box<Saved>),
}

/// A partition at work.
struct Shard {
    shards: Arc<Shards>,
    partition: u32,
    tenure: Tenure,
    agents: Agents,
    /// Agents that are being loaded for the first time: what comes for them is held back.
    loading: usize,
    told: mpsc::UnboundedSender<Told>,
    /// Ends with it.
    tasks: JoinSet<()>,
    /// The last message that was read.
    read: u64,
    catching_up: CatchingUp,
    pressure: Pressure,
    /// Messages whose dead letters are not written yet.
    letters: BTreeSet<u64>,
    /// Answers from the previous owner, for agents that have not resumed yet, and whether it left any.
    left: BTreeMap<Name, HandedOver>,
    is_left: bool,
    releasing: bool,
    checkpoints: Option<Checkpoints>,
    saved: Instant,
    /// Messages read since.
    since_saved: usize,
    /// True once the last save before the handover is complete.
    all_saved: bool,
    failing: OfPartition,
}

impl Shard {
    fn new(shards: Arc<Shards>, tenure: &Tenure, checkpoints: Checkpoints, told: mpsc::UnboundedSender<Told>) -> Self {
        let pressure = Pressure::new(shards.config.pending_inputs);
        let failing = shards.failing.of(tenure.partition);
        Self {
            shards,
            failing,
            partition: tenure.partition,
            tenure: tenure.clone(),
            agents: Agents::default(),
            loading: 0,
            told,
            tasks: JoinSet::new(),
            read: checkpoints.last.through,
            catching_up: CatchingUp::Opening,
            pressure,
            letters: BTreeSet::new(),
            left: BTreeMap::new(),
            is_left: false,
            releasing: false,
            checkpoints: Some(checkpoints),
            saved: Instant::now(),
            since_saved: 0,
            all_saved: false,
        }
    }

    /// Wakes the agents that had something to do at the last checkpoint.
    fn wake_the_busy(&mut self) {
        let busy = self.checkpoints.as_ref().map(|checkpoints| checkpoints.last.busy.clone()).unwrap_or_default();
        for agent in busy {
            self.bring(&agent, Absent::Folded);
        }
    }

    /// Runs a task that ends with the shard, if not before.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.tasks.spawn(self.shards.bus.host(task))
    }

    /// Returns true if more may be read: messages held back for agents that are still loading would fill the memory,
    /// and so would agents that arrive faster than they are saved.
    fn has_room(&self) -> bool {
        self.loading < self.shards.config.loads_waiting && !(self.is_saving() && self.shards.is_over())
    }

    /// Begins to load an agent into memory.
    fn bring(&mut self, agent: &Name, absent: Absent) {
        self.loading += 1;
        self.agents.insert(Resident::loading(agent.clone(), self.shards.config.restarts));
        self.load(agent, absent, false);
    }

    /// It was loaded, or cannot be for now: others do not wait for that.
    fn brought(&mut self, agent: &Name) {
        let first = self.agents.get_mut(agent).is_some_and(|resident| std::mem::take(&mut resident.is_new));
        self.loading -= usize::from(first);
    }

    fn read(&mut self, tailed: Tailed) {
        match tailed {
            Tailed::Began { pending } => self.catching_up.begins(pending),
            Tailed::Messages(messages) => {
                self.catching_up.read(messages.len());
                self.since_saved += messages.len();
                let touched: BTreeSet<Name> = messages.into_iter().filter_map(|raw| self.take(raw)).collect();
                touched.iter().for_each(|agent| self.go_on(agent));
            }
        }
        if self.catching_up.ends() {
            let all: Vec<Name> = self.agents.awake().map(|resident| resident.name.clone()).collect();
            all.iter().for_each(|agent| self.go_on(agent));
        }
        if self.since_saved >= self.worth_saving() {
            self.save();
        }
    }

    /// Hands a message to the agent it is about, which may have to be loaded first.
    fn take(&mut self, raw: Raw) -> Option<Name> {
        if raw.sequence <= self.read {
            return None;
        }
        self.read = raw.sequence;
        let agent = self.agent_of(&raw).filter(|_| self.shards.bus.misplaced(&raw).is_none())?;
        if !self.agents.has(&agent) {
            self.bring(&agent, Absent::New(raw.sequence));
        }
        let taken = self.agents.get_mut(&agent)?.take(&self.shards.bus, &raw);
        self.after(&agent, raw, taken);
        Some(agent)
    }

    /// Acts on the result of taking in a message.
    fn after(&mut self, agent: &Name, raw: Raw, taken: Taken) {
        match taken {
            Taken::Well => {}
            Taken::Diverged => self.load_again(agent),
            Taken::Unreadable => self.set_aside(raw),
            Taken::Parked => self.park(agent),
        }
    }

    fn set_aside(&mut self, raw: Raw) {
        let is_ours =
            subjects::route(&raw.subject).is_some_and(|(it, _)| it.consumers.contains(&Consumer::AgentRuntime));
        let Err(reason) = raw.read(self.shards.bus.limits.max_body_bytes) else { return };
        // What was carried forward is for nobody.
        if !is_ours || matches!(reason, Unreadable::Carried { .. }) || !self.letters.insert(raw.sequence) {
            return;
        }
        let (bus, told) = (self.shards.bus.clone(), self.told.clone());
        self.spawn(async move {
            bus.unreadable_in_time(Consumer::AgentRuntime.name(), &raw, &reason.to_string()).await;
            let _ = told.send(Told::SetAside(raw.sequence));
        });
    }

    fn load_again(&mut self, agent: &Name) {
        // While it is being read it is not begun again: what was read first would miss what the tail brought since.
        let is_here = |resident: &&mut Resident| resident.log.is_some() && resident.parked.is_none();
        if let Some(resident) = self.agents.get_mut(agent).filter(is_here) {
            tracing::info!(%agent, "reading an agent's log again");
            self.shards.bytes.fetch_sub(resident.bytes, Ordering::Relaxed);
            resident.reload();
            self.load(agent, Absent::Folded, true);
        }
    }

    fn load(&mut self, agent: &Name, absent: Absent, again: bool) {
        let (shards, told, agent) = (self.shards.clone(), self.told.clone(), agent.clone());
        // What is being read wakes it, and comes by itself.
        let known = match absent {
            Absent::New(first) => first - 1,
            Absent::Folded => self.read,
        };
        self.spawn(async move {
            let Ok(room) = shards.loads.acquire().await else { return };
            let loaded = match again {
                true => snapshots::load_again(&shards.bus, &agent).await,
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
            let _ = told.send(Told::Loaded(agent, loaded.map(Box::new)));
        });
    }

    fn hear(&mut self, told: Told) {
        if let Told::Loaded(agent, _) = &told {
            self.brought(agent);
        }
        match told {
            Told::Loaded(agent, Ok(loaded)) => self.arrived(&agent, *loaded),
            Told::Loaded(agent, Err(error)) => {
                tracing::debug!(%agent, %error, "an agent could not be loaded yet");
                // What cannot be read for now is certainly there.
                self.load(&agent, Absent::Folded, true);
            }
            Told::Fetched(agent, fetched) => self.fetched(&agent, fetched),
            Told::Thought(agent, turn, thought) => self.thought(&agent, &turn, thought),
            Told::SetAside(sequence) => _ = self.letters.remove(&sequence),
            Told::Saved(saved) => self.saved(*saved),
        }
        // Those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    fn arrived(&mut self, agent: &Name, loaded: Loaded) {
        let Some(resident) = self.agents.get_mut(agent).filter(|resident| resident.log.is_none()) else { return };
        self.shards.bytes.fetch_add(resident.bytes, Ordering::Relaxed);
        let held_back = resident.arrive(&self.shards.bus, loaded);
        if resident.parked.is_some() {
            self.park(agent);
        }
        for (raw, taken) in held_back {
            self.after(agent, raw, taken);
        }
        self.go_on(agent);
    }

    fn fetched(&mut self, agent: &Name, fetched: Result<Vec<(u64, Option<Raw>)>, BusError>) {
        let Some(resident) = self.agents.get_mut(agent) else { return };
        match fetched {
            Ok(messages) => resident.supplied(&self.shards.bus, messages),
            Err(error) => {
                tracing::debug!(%agent, %error, "what lies ahead could not be read yet");
                resident.fetching = false;
            }
        }
        self.go_on(agent);
    }

    fn fetch(&mut self, agent: &Name, sequences: Vec<u64>) {
        let (bus, told, agent) = (self.shards.bus.clone(), self.told.clone(), agent.clone());
        self.spawn(async move {
            let mut fetched = Vec::with_capacity(sequences.len());
            for sequence in sequences {
                match bus.message_at(sequence).await {
                    Ok(raw) => fetched.push((sequence, raw)),
                    Err(error) => {
                        tokio::time::sleep(LOOK).await;
                        let _ = told.send(Told::Fetched(agent, Err(error)));
                        return;
                    }
                }
            }
            let _ = told.send(Told::Fetched(agent, Ok(fetched)));
        });
    }

    /// Runs the periodic checks.
    fn look(&mut self) {
        let puzzled = self.agents.awake().filter(|resident| resident.is_puzzled());
        let puzzled: Vec<Name> = puzzled.map(|resident| resident.name.clone()).collect();
        puzzled.iter().for_each(|agent| self.load_again(agent));
        let due = self.saved.elapsed() >= Duration::from_millis(self.shards.bus.limits.checkpoint_ms);
        if due || self.releasing {
            self.save();
        }
        self.tell_of_pressure();
        let waiting = self.agents.awake().map(|resident| resident.waiting() as u64).sum();
        let waiting = if self.catching_up.is_done() { waiting } else { u64::max(waiting, 1) };
        self.shards.bus.standing.set(self.partition, PartitionStanding { read: self.read, waiting });
        self.tell_of_parked();
    }

    /// Says which users, or which agents, have more waiting than is taken on, so that the boundary takes no more messages. What is
    /// stored is decided on all the same.
    fn tell_of_pressure(&mut self) {
        let waiting = |queue: &Queue| self.agents.get_awake(&queue.agent).map_or(0, |it| it.waiting_in(queue));
        let limit = self.pressure.limit();
        let over: Vec<_> = self.agents.awake().flat_map(|resident| resident.over(limit)).collect();
        for (queue, congestion) in self.pressure.look(over, waiting, Instant::now()) {
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
