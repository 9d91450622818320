//! One partition of users: what each says to an agent is handed on in the order in which it stands in the log, which is the
//! order in which the gateway acknowledged it; what different users say, or one says to different agents, at once.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    address::Addressee,
    bus::{
        Bus,
        congestion::{self, backpressure::BackpressureTracker},
        consume::{self, backoff_delay},
    },
    ids::Name,
    ownership::{
        checkpoint::CheckpointStore,
        lease::Lease,
        member::{PartitionLease, PartitionWork},
        replica_progress::OwnedPartitionProgress,
        tail::{self, TailItem},
    },
    record::{RawMessage, Record},
    subjects::{self, Consumer},
    vocabulary::{NewerReaderNeeded, NotUnderstood},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use tracing::Instrument;

use crate::{
    addressing::{self, AddressingQueue},
    current_agent::CurrentAgent,
    keyed_queues::{KeyedQueues, PendingMessage, QueueKey, QueuedMessage},
    routing::{RouteOutcome, Router},
};

/// Interval between checks for messages that have waited too long.
const LOOK: Duration = Duration::from_millis(250);

/// State shared by all partitions of this replica.
pub struct RouterContext {
    pub bus: Bus,
    pub router: Router,
    /// Users whose agent each partition keeps in memory.
    pub known_users: usize,
    /// Messages of a user to an agent that may wait.
    pub pending_messages: usize,
}

impl PartitionWork for RouterContext {
    async fn run(self: Arc<Self>, mut tenure: PartitionLease) {
        let checkpoints = CheckpointStore::open_with_retry(&self.bus, tenure.partition, None).await;
        let filter = format!("kairo.user.*.*.{}", tenure.partition);
        let mut tail = tail::follow(&self.bus, vec![filter], checkpoints.last.through);
        let (sender, mut told) = mpsc::unbounded_channel();
        let mut shard = RouterShard::new(self.clone(), &tenure, checkpoints, sender);
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = tenure.wait_until_released(), if !shard.releasing => shard.begin_release(),
                _ = looks.tick() => shard.check_progress(),
                Some(told) = told.recv() => shard.apply_event(told),
                Some(tailed) = tail.recv(), if shard.has_room() => shard.apply_tail_item(tailed),
            }
            if shard.is_handed_over() {
                return;
            }
        }
    }
}

enum RouterShardEvent {
    /// It is found out whom the first message of a user is for, and whom the user speaks with from there on.
    Addressed {
        user: Name,
        current: Box<CurrentAgent>,
        to: Option<Name>,
    },
    /// The first message of a line was dealt with.
    Done(QueueKey),
    Saved(Box<CheckpointStore>, bool),
}

/// A partition at work.
struct RouterShard {
    shards: Arc<RouterContext>,
    tenure: PartitionLease,
    unaddressed: AddressingQueue,
    lines: KeyedQueues,
    /// Messages that take a newer reader: the first, before which the checkpoint stays, and how many.
    left: Option<(u64, u64)>,
    pressure: BackpressureTracker,
    told: mpsc::UnboundedSender<RouterShardEvent>,
    /// Ends with it.
    tasks: JoinSet<()>,
    /// The last message that was read.
    read: u64,
    behind: bool,
    releasing: bool,
    checkpoints: Option<CheckpointStore>,
    saved: Instant,
    all_saved: bool,
}

impl RouterShard {
    fn new(
        shards: Arc<RouterContext>,
        tenure: &PartitionLease,
        checkpoints: CheckpointStore,
        told: mpsc::UnboundedSender<RouterShardEvent>,
    ) -> Self {
        let pressure = BackpressureTracker::new(shards.pending_messages);
        let unaddressed = AddressingQueue::new(shards.known_users);
        Self {
            shards,
            tenure: tenure.clone(),
            unaddressed,
            lines: KeyedQueues::default(),
            left: None,
            pressure,
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
        self.tasks.spawn(self.shards.bus.host_task(task));
    }

    fn has_room(&self) -> bool {
        self.lines.has_room() && self.unaddressed.has_room() && !self.releasing
    }

    fn apply_tail_item(&mut self, tailed: TailItem) {
        match tailed {
            TailItem::Began { pending } => self.behind = pending > 0,
            TailItem::Messages(messages) => {
                self.behind = false;
                messages.into_iter().for_each(|raw| self.accept_message(raw));
            }
        }
    }

    fn accept_message(&mut self, raw: RawMessage) {
        if raw.sequence <= self.read {
            return;
        }
        self.read = raw.sequence;
        let RouterContext { bus, .. } = &*self.shards;
        let route = subjects::find_route(&raw.subject);
        if route.as_ref().is_some_and(|(route, _)| !route.consumers.contains(&Consumer::Router)) {
            return;
        }
        if bus.misplacement_of(&raw).is_some() {
            return;
        }
        let read = match raw.read_or_reject_newer(bus.limits.max_body_bytes) {
            Ok(record) => Ok(record),
            Err(NotUnderstood::Unreadable(reason)) => Err(reason),
            Err(NotUnderstood::Newer(newer)) => return self.leave_to_newer_replica(&raw, &newer),
        };
        let Some((_, user)) = route else { return };
        let said = PendingMessage { raw, read };
        match self.queue_key_of(&user, &said) {
            Some(line) => self.enqueue_message(line, said),
            None => {
                if let Some((first, known)) = self.unaddressed.enqueue(&user, said) {
                    self.start_addressing(user, first, known);
                }
            }
        }
    }

    /// The line that a message goes on in; none where that is still to be found out.
    fn queue_key_of(&mut self, user: &Name, said: &PendingMessage) -> Option<QueueKey> {
        if self.unaddressed.is_waiting(user) {
            return None;
        }
        let router = &self.shards.router;
        let to = match said.read.as_ref().map(|record| (record, addressing::addressee_of(record))) {
            Err(_) => None,
            Ok((record, Addressee::Named)) => router.addressee(record, &router.default_agent),
            Ok((record, Addressee::Current)) => {
                let current = self.unaddressed.current_agent(user, said.raw.sequence)?;
                router.addressee(record, &current)
            }
            Ok((_, Addressee::Mentioned(_) | Addressee::Command(_))) => return None,
        };
        Some((user.clone(), to))
    }

    /// Finds out whom the first message of a user is for.
    fn start_addressing(&mut self, user: Name, first: Arc<PendingMessage>, known: Option<CurrentAgent>) {
        let shards = self.shards.clone();
        let lease = self.tenure.lease.clone();
        let told = self.told.clone();
        self.spawn(async move {
            let (current, to) = addressing::resolve_addressee(&shards.router, &lease, &user, &first, known).await;
            let _ = told.send(RouterShardEvent::Addressed { user, current: Box::new(current), to });
        });
    }

    /// Puts a message that was addressed in its line, and goes on with the next one of its user.
    fn finish_addressing(&mut self, user: Name, current: CurrentAgent, to: Option<Name>) {
        let (first, next) = self.unaddressed.pop_addressed(&user);
        if let Some(said) = first {
            self.enqueue_message((user.clone(), to), said);
        }
        match next {
            Some(next) => self.start_addressing(user, next, Some(current)),
            None => self.unaddressed.remember_agent(user, current),
        }
    }

    /// Puts a message in its line.
    fn enqueue_message(&mut self, line: QueueKey, said: impl Into<Arc<PendingMessage>>) {
        if let Some(first) = self.lines.enqueue(line.clone(), said) {
            return self.start_delivery(line, first);
        }
        // Told at once: the boundary takes messages faster than they are handed on.
        if self.lines.queue_len(&line) == self.shards.pending_messages + 1 {
            self.announce_congestion();
        }
    }

    /// Whatever it says, a newer replica hands it on: as soon as there is one, the partition is handed over, and the next
    /// owner begins before it.
    fn leave_to_newer_replica(&mut self, raw: &RawMessage, newer: &NewerReaderNeeded) {
        tracing::warn!(sequence = raw.sequence, subject = raw.subject, %newer, "left to newer replicas");
        let (first, count) = self.left.unwrap_or((raw.sequence, 0));
        self.left = Some((first, count + 1));
        self.tenure.require_reader(newer.reader);
    }

    /// Hands on the first of a line.
    fn start_delivery(&mut self, line: QueueKey, first: QueuedMessage) {
        let shards = self.shards.clone();
        let lease = self.tenure.lease.clone();
        let told = self.told.clone();
        self.spawn(async move {
            // What names no agent is in the line to the one that it is for.
            let to = line.1.as_ref().unwrap_or(&shards.router.default_agent);
            match first {
                QueuedMessage::Here(said) => deliver_or_dead_letter(&shards, &lease, &said, to).await,
                QueuedMessage::There(sequence) => {
                    if let Some(said) = read_with_retry(&shards.bus, sequence).await {
                        deliver_or_dead_letter(&shards, &lease, &said, to).await;
                    }
                }
            }
            let _ = told.send(RouterShardEvent::Done(line));
        });
    }

    fn apply_event(&mut self, told: RouterShardEvent) {
        match told {
            RouterShardEvent::Done(line) => {
                if let Some(next) = self.lines.complete_first(&line) {
                    self.start_delivery(line, next);
                }
            }
            RouterShardEvent::Addressed { user, current, to } => self.finish_addressing(user, *current, to),
            RouterShardEvent::Saved(checkpoints, last) => {
                self.checkpoints = Some(*checkpoints);
                self.all_saved = last;
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    fn check_progress(&mut self) {
        let due = self.saved.elapsed() >= Duration::from_millis(self.shards.bus.limits.checkpoint_ms);
        if due || self.releasing {
            self.save_checkpoint();
        }
        self.announce_congestion();
        let waiting = (self.lines.len() + self.unaddressed.len()) as u64
            + self.left.map_or(0, |(_, count)| count)
            + u64::from(self.behind);
        self.shards
            .bus
            .standing
            .set_progress(self.tenure.partition, OwnedPartitionProgress { read: self.read, waiting });
    }

    /// Says who has more waiting for an agent than may, so that the boundary takes no more of it. Whatever is stored is
    /// handed on all the same.
    fn announce_congestion(&mut self) {
        let over = self.lines.queues_longer_than(self.shards.pending_messages);
        for (queue, congestion) in
            self.pressure.due_announcements(over, |queue| self.lines.pending_in(queue), Instant::now())
        {
            let bus = self.shards.bus.clone();
            self.tasks
                .spawn(self.shards.bus.host_task(async move { congestion::announce(&bus, &queue, congestion).await }));
        }
    }

    /// Writes down how far everything was dealt with.
    fn save_checkpoint(&mut self) {
        let open = [self.lines.first_sequence(), self.unaddressed.first_sequence(), self.left.map(|(first, _)| first)];
        let through = open.into_iter().flatten().map(|first| first - 1).fold(self.read, u64::min);
        let last = self.releasing && self.lines.is_empty();
        let Some(mut checkpoints) = self.checkpoints.take() else { return };
        self.saved = Instant::now();
        if checkpoints.already_covers(through, &[]) {
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
            let _ = told.send(RouterShardEvent::Saved(Box::new(checkpoints), last && written.is_ok()));
        });
    }

    /// From here on nothing is begun; what is on its way may arrive.
    fn begin_release(&mut self) {
        self.releasing = true;
        self.unaddressed.clear_waiting();
        self.lines.truncate_to_in_flight();
        self.save_checkpoint();
    }

    fn is_handed_over(&self) -> bool {
        self.releasing && self.all_saved && self.lines.is_empty()
    }
}

/// The message at a sequence, as soon as the server answers; none if it is not there any more.
async fn read_with_retry(bus: &Bus, sequence: u64) -> Option<PendingMessage> {
    let mut attempt = 0;
    loop {
        match bus.message_at(sequence).await {
            Ok(raw) => {
                let raw = raw?;
                let read = raw.read(bus.limits.max_body_bytes);
                return Some(PendingMessage { raw, read });
            }
            Err(error) => tracing::debug!(%error, attempt, sequence, "what is to be handed on cannot be read yet"),
        }
        attempt += 1;
        tokio::time::sleep(backoff_delay(&bus.limits, attempt)).await;
    }
}

/// Hands a message on, or sets it aside; it waits for as long as the server is away.
async fn deliver_or_dead_letter(
    shards: &RouterContext,
    lease: &Lease,
    PendingMessage { raw, read }: &PendingMessage,
    to: &Name,
) {
    match read {
        Ok(record) => {
            let span = consume::processing_span(Consumer::Router, record);
            deliver_with_retry(shards, lease, raw, record, to).instrument(span).await;
        }
        Err(reason) => shards.bus.write_unreadable_with_retry(Consumer::Router.name(), raw, &reason.to_string()).await,
    }
}

async fn deliver_with_retry(shards: &RouterContext, lease: &Lease, raw: &RawMessage, record: &Record, to: &Name) {
    let RouterContext { bus, router, .. } = shards;
    let mut attempt = 0;
    loop {
        // A replica that may have lost its users would say something late that another has said in order.
        lease.wait_until_fresh().await;
        match router.route_message(record, to).await {
            RouteOutcome::Done => return,
            RouteOutcome::Refused(reason) => {
                return bus.write_dead_letter_with_retry(Consumer::Router.name(), raw, &reason).await;
            }
            RouteOutcome::Later(error) => tracing::warn!(%error, attempt, sequence = raw.sequence, "not handed on yet"),
        }
        attempt += 1;
        tokio::time::sleep(backoff_delay(&bus.limits, attempt)).await;
    }
}
