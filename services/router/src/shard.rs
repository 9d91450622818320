//! One partition of users: what each says to an agent is handed on in the order in which it stands in the log, which is the
//! order in which the gateway acknowledged it; what different users say, or one says to different agents, at once.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use kairo_core::{
    bus::{
        Bus,
        consume::{self, backoff},
    },
    ids::Name,
    ownership::{
        checkpoint::Checkpoints,
        lease::Lease,
        member::{Tenure, Work},
        standing::PartitionStanding,
        tail::{self, Tailed},
    },
    record::{Raw, Record, Unreadable},
    subjects::{self, Consumer},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use tracing::Instrument;

use crate::routing::{Routed, Router};

/// How often it is looked whether something waits for longer than it should.
const LOOK: Duration = Duration::from_millis(250);
/// Messages in hand at which no more are read.
const IN_HAND: usize = 4_096;

/// What all partitions of this replica share.
pub struct Shards {
    pub bus: Bus,
    pub router: Router,
}

impl Work for Shards {
    async fn run(self: Arc<Self>, mut tenure: Tenure) {
        let checkpoints = Checkpoints::open_in_time(&self.bus, tenure.partition).await;
        let filter = format!("kairo.user.*.*.{}", tenure.partition);
        let mut tail = tail::follow(&self.bus, vec![filter], checkpoints.last.through);
        let (sender, mut told) = mpsc::unbounded_channel();
        let mut shard = Shard::new(self.clone(), &tenure, checkpoints, sender);
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

/// What is handed on one after the other: what a user says to an agent, or to none that can be read.
type Line = (Name, Option<Name>);

/// A message that is to be handed on, and what it says.
struct Said {
    raw: Raw,
    read: Result<Record, Unreadable>,
}

enum Told {
    /// The message at this sequence was dealt with.
    Done(Line, u64),
    Saved(Box<Checkpoints>, bool),
}

/// A partition at work.
struct Shard {
    shards: Arc<Shards>,
    partition: u32,
    lease: Lease,
    /// What was said and is still to be handed on; the first of each line is on its way.
    lines: BTreeMap<Line, VecDeque<Arc<Said>>>,
    /// Sequences of all of that.
    in_hand: BTreeSet<u64>,
    told: mpsc::UnboundedSender<Told>,
    /// Ends with it.
    tasks: JoinSet<()>,
    /// The last message that was read.
    read: u64,
    behind: bool,
    releasing: bool,
    checkpoints: Option<Checkpoints>,
    saved: Instant,
    all_saved: bool,
}

impl Shard {
    fn new(shards: Arc<Shards>, tenure: &Tenure, checkpoints: Checkpoints, told: mpsc::UnboundedSender<Told>) -> Self {
        Self {
            shards,
            partition: tenure.partition,
            lease: tenure.lease.clone(),
            lines: BTreeMap::new(),
            in_hand: BTreeSet::new(),
            told,
            tasks: JoinSet::new(),
            read: checkpoints.last.through,
            behind: true,
            releasing: false,
            checkpoints: Some(checkpoints),
            saved: Instant::now(),
            all_saved: false,
        }
    }

    /// Runs a task that ends with the shard, if not before.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.shards.bus.host(task));
    }

    fn has_room(&self) -> bool {
        self.in_hand.len() < IN_HAND && !self.releasing
    }

    fn read(&mut self, tailed: Tailed) {
        match tailed {
            Tailed::Began { pending } => self.behind = pending > 0,
            Tailed::Messages(messages) => {
                self.behind = false;
                messages.into_iter().for_each(|raw| self.take(raw));
            }
        }
    }

    fn take(&mut self, raw: Raw) {
        if raw.sequence <= self.read {
            return;
        }
        self.read = raw.sequence;
        let Some((route, user)) = subjects::route(&raw.subject) else { return };
        if !route.consumers.contains(&Consumer::Router) || self.shards.bus.misplaced(&raw).is_some() {
            return;
        }
        self.in_hand.insert(raw.sequence);
        let Shards { bus, router } = &*self.shards;
        let read = raw.read(bus.limits.max_body_bytes);
        let line = (user, read.as_ref().ok().and_then(|record| router.address(record)));
        let waiting = self.lines.entry(line.clone()).or_default();
        waiting.push_back(Arc::new(Said { raw, read }));
        if waiting.len() == 1 {
            self.hand_on(line);
        }
    }

    /// Hands on the first of a line.
    fn hand_on(&mut self, line: Line) {
        let Some(said) = self.lines.get(&line).and_then(VecDeque::front).cloned() else {
            self.lines.remove(&line);
            return;
        };
        let (shards, lease, told) = (self.shards.clone(), self.lease.clone(), self.told.clone());
        self.spawn(async move {
            deal_with(&shards, &lease, &said).await;
            let _ = told.send(Told::Done(line, said.raw.sequence));
        });
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Done(line, sequence) => {
                self.in_hand.remove(&sequence);
                if let Some(waiting) = self.lines.get_mut(&line) {
                    waiting.pop_front();
                }
                match self.releasing {
                    true => _ = self.lines.remove(&line),
                    false => self.hand_on(line),
                }
            }
            Told::Saved(checkpoints, last) => {
                self.checkpoints = Some(*checkpoints);
                self.all_saved = last;
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    fn look(&mut self) {
        let due = self.saved.elapsed() >= Duration::from_millis(self.shards.bus.limits.checkpoint_ms);
        if due || self.releasing {
            self.save();
        }
        let waiting = self.in_hand.len() as u64 + u64::from(self.behind);
        self.shards.bus.standing.set(self.partition, PartitionStanding { read: self.read, waiting });
    }

    /// Writes down how far everything was dealt with.
    fn save(&mut self) {
        let through = self.in_hand.first().map_or(self.read, |first| first - 1);
        let last = self.releasing && self.lines.is_empty();
        let Some(mut checkpoints) = self.checkpoints.take() else { return };
        self.saved = Instant::now();
        if checkpoints.last.through == through {
            self.checkpoints = Some(checkpoints);
            self.all_saved = last;
            return;
        }
        let told = self.told.clone();
        self.spawn(async move {
            let written = checkpoints.write(through, Vec::new()).await;
            if let Err(error) = &written {
                tracing::debug!(%error, "a checkpoint was not written");
            }
            let _ = told.send(Told::Saved(Box::new(checkpoints), last && written.is_ok()));
        });
    }

    /// From here on nothing is begun; what is on its way may arrive.
    fn release(&mut self) {
        self.releasing = true;
        self.lines.values_mut().for_each(|waiting| waiting.truncate(1));
        self.save();
    }

    fn is_handed_over(&self) -> bool {
        self.releasing && self.all_saved && self.lines.is_empty()
    }
}

/// Hands a message on, or sets it aside; it waits for as long as the server is away.
async fn deal_with(shards: &Shards, lease: &Lease, Said { raw, read }: &Said) {
    let Shards { bus, router } = shards;
    match read {
        Ok(record) => {
            let span = consume::span(Consumer::Router, record);
            hand_on(router, bus, lease, raw, record).instrument(span).await;
        }
        Err(reason) => bus.unreadable_in_time(Consumer::Router.name(), raw, &reason.to_string()).await,
    }
}

async fn hand_on(router: &Router, bus: &Bus, lease: &Lease, raw: &Raw, record: &Record) {
    let mut attempt = 0;
    loop {
        // A replica that may have lost its users would say something late that another has said in order.
        lease.young().await;
        match router.route(record).await {
            Routed::Done => return,
            Routed::Refused(reason) => return bus.dead_letter_in_time(Consumer::Router.name(), raw, &reason).await,
            Routed::Later(error) => tracing::warn!(%error, attempt, sequence = raw.sequence, "not handed on yet"),
        }
        attempt += 1;
        tokio::time::sleep(backoff(&bus.limits, attempt)).await;
    }
}
