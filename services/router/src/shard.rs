//! One partition of users: what each says to an agent is handed on in the order in which it stands in the log, which is the
//! order in which the gateway acknowledged it; what different users say, or one says to different agents, at once.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    address::Whom,
    bus::{
        Bus,
        congestion::{self, pressure::Pressure},
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
    record::{Raw, Record},
    subjects::{self, Consumer},
    vocabulary::{Newer, NotUnderstood},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use tracing::Instrument;

use crate::{
    addressing::{self, Unaddressed},
    current::Current,
    lines::{Line, Lines, Said, Waiting},
    routing::{Routed, Router},
};

/// Interval between checks for messages that have waited too long.
const LOOK: Duration = Duration::from_millis(250);

/// State shared by all partitions of this replica.
pub struct Shards {
    pub bus: Bus,
    pub router: Router,
    /// Users whose agent each partition keeps in memory.
    pub known_users: usize,
    /// Messages of a user to an agent that may wait.
    pub pending_messages: usize,
}

impl Work for Shards {
    async fn run(self: Arc<Self>, mut tenure: Tenure) {
        let checkpoints = Checkpoints::open_in_time(&self.bus, tenure.partition, None).await;
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

enum Told {
    /// It is found out whom the first message of a user is for, and whom the user speaks with from there on.
    Addressed {
        user: Name,
        current: Box<Current>,
        to: Option<Name>,
    },
    /// The first message of a line was dealt with.
    Done(Line),
    Saved(Box<Checkpoints>, bool),
}

/// A partition at work.
struct Shard {
    shards: Arc<Shards>,
    tenure: Tenure,
    unaddressed: Unaddressed,
    lines: Lines,
    /// Messages that take a newer reader: the first, before which the checkpoint stays, and how many.
    left: Option<(u64, u64)>,
    pressure: Pressure,
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
        let pressure = Pressure::new(shards.pending_messages);
        let unaddressed = Unaddressed::new(shards.known_users);
        Self {
            shards,
            tenure: tenure.clone(),
            unaddressed,
            lines: Lines::default(),
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
        self.tasks.spawn(self.shards.bus.host(task));
    }

    fn has_room(&self) -> bool {
        self.lines.has_room() && self.unaddressed.has_room() && !self.releasing
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
        let Shards { bus, .. } = &*self.shards;
        let route = subjects::route(&raw.subject);
        if route.as_ref().is_some_and(|(route, _)| !route.consumers.contains(&Consumer::Router)) {
            return;
        }
        if bus.misplaced(&raw).is_some() {
            return;
        }
        let read = match raw.understand(bus.limits.max_body_bytes) {
            Ok(record) => Ok(record),
            Err(NotUnderstood::Unreadable(reason)) => Err(reason),
            Err(NotUnderstood::Newer(newer)) => return self.leave(&raw, &newer),
        };
        let Some((_, user)) = route else { return };
        let said = Said { raw, read };
        match self.line_of(&user, &said) {
            Some(line) => self.line_up(line, said),
            None => {
                if let Some((first, known)) = self.unaddressed.push(&user, said) {
                    self.address(user, first, known);
                }
            }
        }
    }

    /// The line that a message goes on in; none where that is still to be found out.
    fn line_of(&mut self, user: &Name, said: &Said) -> Option<Line> {
        if self.unaddressed.is_waiting(user) {
            return None;
        }
        let router = &self.shards.router;
        let to = match said.read.as_ref().map(|record| (record, addressing::whom(record))) {
            Err(_) => None,
            Ok((record, Whom::Named)) => router.address(record, &router.default_agent),
            Ok((record, Whom::Current)) => {
                let current = self.unaddressed.current(user, said.raw.sequence)?;
                router.address(record, &current)
            }
            Ok((_, Whom::Mentioned(_) | Whom::Command(_))) => return None,
        };
        Some((user.clone(), to))
    }

    /// Finds out whom the first message of a user is for.
    fn address(&mut self, user: Name, first: Arc<Said>, known: Option<Current>) {
        let (shards, lease, told) = (self.shards.clone(), self.tenure.lease.clone(), self.told.clone());
        self.spawn(async move {
            let (current, to) = addressing::address(&shards.router, &lease, &user, &first, known).await;
            let _ = told.send(Told::Addressed { user, current: Box::new(current), to });
        });
    }

    /// Puts a message that was addressed in its line, and goes on with the next one of its user.
    fn go_on(&mut self, user: Name, current: Current, to: Option<Name>) {
        let (first, next) = self.unaddressed.pop(&user);
        if let Some(said) = first {
            self.line_up((user.clone(), to), said);
        }
        match next {
            Some(next) => self.address(user, next, Some(current)),
            None => self.unaddressed.remember(user, current),
        }
    }

    /// Puts a message in its line.
    fn line_up(&mut self, line: Line, said: impl Into<Arc<Said>>) {
        if let Some(first) = self.lines.push(line.clone(), said) {
            return self.hand_on(line, first);
        }
        // Told at once: the boundary takes messages faster than they are handed on.
        if self.lines.length(&line) == self.shards.pending_messages + 1 {
            self.tell_of_pressure();
        }
    }

    /// Whatever it says, a newer replica hands it on: as soon as there is one, the partition is handed over, and the next
    /// owner begins before it.
    fn leave(&mut self, raw: &Raw, newer: &Newer) {
        tracing::warn!(sequence = raw.sequence, subject = raw.subject, %newer, "left to newer replicas");
        let (first, count) = self.left.unwrap_or((raw.sequence, 0));
        self.left = Some((first, count + 1));
        self.tenure.needs(newer.reader);
    }

    /// Hands on the first of a line.
    fn hand_on(&mut self, line: Line, first: Waiting) {
        let (shards, lease, told) = (self.shards.clone(), self.tenure.lease.clone(), self.told.clone());
        self.spawn(async move {
            // What names no agent is in the line to the one that it is for.
            let to = line.1.as_ref().unwrap_or(&shards.router.default_agent);
            match first {
                Waiting::Here(said) => deal_with(&shards, &lease, &said, to).await,
                Waiting::There(sequence) => {
                    if let Some(said) = read_in_time(&shards.bus, sequence).await {
                        deal_with(&shards, &lease, &said, to).await;
                    }
                }
            }
            let _ = told.send(Told::Done(line));
        });
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Done(line) => {
                if let Some(next) = self.lines.pop(&line) {
                    self.hand_on(line, next);
                }
            }
            Told::Addressed { user, current, to } => self.go_on(user, *current, to),
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
        self.tell_of_pressure();
        let waiting = (self.lines.len() + self.unaddressed.len()) as u64
            + self.left.map_or(0, |(_, count)| count)
            + u64::from(self.behind);
        self.shards.bus.standing.set(self.tenure.partition, PartitionStanding { read: self.read, waiting });
    }

    /// Says who has more waiting for an agent than may, so that the boundary takes no more of it. Whatever is stored is
    /// handed on all the same.
    fn tell_of_pressure(&mut self) {
        let over = self.lines.longer_than(self.shards.pending_messages);
        for (queue, congestion) in self.pressure.look(over, |queue| self.lines.waiting(queue), Instant::now()) {
            let bus = self.shards.bus.clone();
            self.tasks.spawn(self.shards.bus.host(async move { congestion::announce(&bus, &queue, congestion).await }));
        }
    }

    /// Writes down how far everything was dealt with.
    fn save(&mut self) {
        let open = [self.lines.first(), self.unaddressed.first(), self.left.map(|(first, _)| first)];
        let through = open.into_iter().flatten().map(|first| first - 1).fold(self.read, u64::min);
        let last = self.releasing && self.lines.is_empty();
        let Some(mut checkpoints) = self.checkpoints.take() else { return };
        self.saved = Instant::now();
        if checkpoints.says(through, &[]) {
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
        self.unaddressed.cut();
        self.lines.cut();
        self.save();
    }

    fn is_handed_over(&self) -> bool {
        self.releasing && self.all_saved && self.lines.is_empty()
    }
}

/// The message at a sequence, as soon as the server answers; none if it is not there any more.
async fn read_in_time(bus: &Bus, sequence: u64) -> Option<Said> {
    let mut attempt = 0;
    loop {
        match bus.message_at(sequence).await {
            Ok(raw) => {
                let raw = raw?;
                let read = raw.read(bus.limits.max_body_bytes);
                return Some(Said { raw, read });
            }
            Err(error) => tracing::debug!(%error, attempt, sequence, "what is to be handed on cannot be read yet"),
        }
        attempt += 1;
        tokio::time::sleep(backoff(&bus.limits, attempt)).await;
    }
}

/// Hands a message on, or sets it aside; it waits for as long as the server is away.
async fn deal_with(shards: &Shards, lease: &Lease, Said { raw, read }: &Said, to: &Name) {
    match read {
        Ok(record) => {
            let span = consume::span(Consumer::Router, record);
            hand_on(shards, lease, raw, record, to).instrument(span).await;
        }
        Err(reason) => shards.bus.unreadable_in_time(Consumer::Router.name(), raw, &reason.to_string()).await,
    }
}

async fn hand_on(shards: &Shards, lease: &Lease, raw: &Raw, record: &Record, to: &Name) {
    let Shards { bus, router, .. } = shards;
    let mut attempt = 0;
    loop {
        // A replica that may have lost its users would say something late that another has said in order.
        lease.young().await;
        match router.route(record, to).await {
            Routed::Done => return,
            Routed::Refused(reason) => return bus.dead_letter_in_time(Consumer::Router.name(), raw, &reason).await,
            Routed::Later(error) => tracing::warn!(%error, attempt, sequence = raw.sequence, "not handed on yet"),
        }
        attempt += 1;
        tokio::time::sleep(backoff(&bus.limits, attempt)).await;
    }
}
