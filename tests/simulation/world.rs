//! Everything outside of the services: the server, the replicas and their connections, the clocks, the tools' effects
//! and the processes.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use kairo_core::{
    bus::{
        LogIdentity,
        append::OutgoingEvent,
        port::{Headers, OutgoingMessage, ReadSource, StoreAck, StoreError},
    },
    config::Secret,
    ids::Name,
    partition::Partitions,
    privacy::PrivacyConfig,
    record::{RawMessage, Record},
    sealing::SealingKey,
    subjects::{EVENTS_STREAM, HOOKS_STREAM, OWNERS_BUCKET, SNAPSHOTS_BUCKET, Service, TIMERS_STREAM},
    vocabulary::{FIRST, READER},
};
use kairo_in_memory::server::{Parcel, Server, Stream, View};
use kairo_proto::v1::{ProcessSpawned, ToolInvoke};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    chance::Chance,
    faults::Faults,
    flaw::{self, Flaw},
    replica::Replica,
};

pub type Shared = Arc<Mutex<World>>;

pub struct World {
    pub seed: u64,
    pub server: Server,
    /// The privacy settings: whether services seal, and under which key.
    pub privacy: PrivacyConfig,
    pub replicas: Vec<Replica>,
    pub log: Uuid,
    pub partitions: Partitions,
    /// The epoch that the log begins in, and is never raised from.
    pub epoch: u32,
    /// Every value there ever was in the bucket of snapshots.
    pub snapshots_ever: Vec<(String, Bytes)>,
    /// The requests that models were asked: how often each, by its digest.
    pub asked: BTreeMap<String, u32>,
    /// Requests made to models, over all.
    pub tries: u32,
    /// Events that may have cost an answer that was paid for: deaths, changes of owners, interruptions.
    pub disruptions: u32,
    /// True if somebody was cut off from the server and went on.
    pub was_cut: bool,
    /// Effects of tools, by action: how often the tool was called.
    pub called: BTreeMap<Uuid, u32>,
    pub processes: Vec<Process>,
    /// Sequences of what was put into the log a second time, past every guard.
    pub copies: Vec<u64>,
    pub faults: Faults,
    /// A service of which nobody is there, and until when.
    pub deserted: Option<(Service, Instant)>,
    pub flaw: Option<Flaw>,
    /// Violations that were seen and must never be.
    pub violations: Vec<String>,
    chance: RefCell<Chance>,
    /// Of which this is the content.
    pub me: Weak<Mutex<World>>,
    pub started: Instant,
    /// Seconds that have passed without anything being done.
    pub ahead: u64,
    pub trace: bool,
    /// Makes every look at a clock another one.
    looks: u64,
    inboxes: u64,
    ticks: u64,
    /// The longest that a message is on its way, in milliseconds.
    pub distance: u64,
    /// Held by whatever is at work outside of the services: a model that thinks, a tool.
    pub busy: Arc<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It exists, and its program does not run.
    AtTheGate,
    Running,
    /// It ended by itself.
    Ended,
    /// It was asked to end.
    Stopped,
    /// Killed by its guard: its supervisor is gone, or let go of it.
    Killed,
}

pub struct Process {
    /// Invented, and each another one: by it the log names the process.
    pub pid: u32,
    /// The action that asked for it, once the log holds it.
    pub action: Option<Uuid>,
    pub state: ProcessState,
    /// True if its program ever ran.
    pub ran: bool,
    /// The end of the log when it was over, as a sequence.
    pub over_at: u64,
}

/// Ticks after which the server removes what has lived long enough.
const EXPIRY: u64 = 20;
/// When a run begins, by the server's clock.
const EPOCH: i64 = 1_800_000_000;

/// Every other log is sealed.
fn privacy(seed: u64) -> PrivacyConfig {
    let master_key = if seed % 2 == 1 { "07".repeat(32) } else { String::new() };
    PrivacyConfig { master_key: Secret::new(master_key), ..PrivacyConfig::default() }
}

impl World {
    pub fn new(seed: u64, faults: Faults, flaw: Option<Flaw>, trace: bool) -> Self {
        let mut chance = Chance::new(seed);
        let log = Uuid::from_u64_pair(chance.next(), chance.next());
        let privacy = privacy(seed);
        Self {
            seed,
            server: Server::with_records(privacy.clone()),
            privacy,
            replicas: Vec::new(),
            log,
            partitions: Partitions::new(1 + (seed % 3) as u32).expect("some"),
            epoch: if seed.is_multiple_of(4) { FIRST } else { READER },
            snapshots_ever: Vec::new(),
            asked: BTreeMap::new(),
            tries: 0,
            disruptions: 0,
            was_cut: false,
            called: BTreeMap::new(),
            processes: Vec::new(),
            copies: Vec::new(),
            faults,
            deserted: None,
            flaw,
            violations: Vec::new(),
            busy: Arc::new(()),
            distance: 1 + chance.below(20) as u64,
            chance: RefCell::new(chance),
            me: Weak::new(),
            started: Instant::now(),
            ahead: 0,
            trace,
            looks: 0,
            inboxes: 0,
            ticks: 0,
        }
    }

    /// The server's clock.
    pub fn now(&self) -> Timestamp {
        let passed = self.started.elapsed().as_millis() as i64;
        Timestamp::from_millisecond((EPOCH + self.ahead as i64) * 1_000 + passed).expect("a time")
    }

    /// The clock of a replica's machine, which says something else each time.
    pub fn now_of(&mut self, replica: usize) -> Timestamp {
        self.looks += 1;
        self.now() + self.replicas[replica].skew + SignedDuration::from_nanos((self.looks % 1_000_000) as i64)
    }

    pub fn new_key(&mut self) -> SealingKey {
        let mut chance = self.chance.borrow_mut();
        let halves = [(); 4].map(|()| chance.next().to_le_bytes());
        SealingKey::try_from(halves.concat()).expect("four times eight bytes")
    }

    pub fn new_id(&mut self) -> Uuid {
        {
            let mut chance = self.chance.borrow_mut();
            Uuid::from_u64_pair(chance.next(), chance.next())
        }
    }

    pub fn inbox(&mut self) -> String {
        self.inboxes += 1;
        format!("_INBOX.{}", self.inboxes)
    }

    /// True so many times in a thousand.
    pub fn permille(&self, rate: u64) -> bool {
        self.chance.borrow_mut().permille(rate)
    }

    /// One of 0 to `count` - 1.
    pub fn below(&self, count: usize) -> usize {
        self.chance.borrow_mut().below(count)
    }

    pub fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub fn note(&self, who: &str, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>8} {who:<24} {}", self.started.elapsed().as_millis(), what());
        }
    }

    pub fn violation(&mut self, what: String) {
        self.note("VIOLATION", || what.clone());
        self.violations.push(what);
    }

    /// Makes what is missing at the server.
    pub fn provision(&mut self) {
        let log = LogIdentity { id: self.log, partitions: self.partitions, epoch: self.epoch };
        self.server.provision(log, crate::cluster::ACK_WAIT, self.now());
    }

    /// Does the server's own work as time passes.
    pub fn tick(&mut self) {
        let (now, again, lost) = (self.now(), self.faults.repeated_timer, self.has(Flaw::LostTimer));
        if self.ticks.is_multiple_of(EXPIRY) {
            self.server.streams.values_mut().for_each(Stream::expire);
        }
        self.ticks += 1;
        self.server.fire_timers(now, lost, again, &mut *self.chance.borrow_mut());
        self.flush();
    }

    /// The log is made again: it begins anew, and only what is beside it is still of the old one.
    pub fn make_again(&mut self) {
        self.log = self.new_id();
        for stream in [EVENTS_STREAM, TIMERS_STREAM, HOOKS_STREAM] {
            self.server.streams.remove(stream);
        }
        self.server.durables.clear();
        self.server.forget_records();
        self.called.clear();
        self.asked.clear();
        // Their guards see to their end; they are of no log any more.
        self.processes.iter_mut().for_each(|process| (process.action, process.ran) = (None, false));
        self.copies.clear();
        self.provision();
        self.note("server", || "the log is made again".to_owned());
    }

    /// Of a request: whether it is lost, and whether its answer is.
    pub fn losses(&mut self) -> (bool, bool) {
        (self.permille(self.faults.lost_request), self.permille(self.faults.lost_answer))
    }

    pub fn loses_ack(&mut self) -> bool {
        self.permille(self.faults.lost_ack)
    }

    /// Returns the view of the server that is asked: the leader sees everything, another one may lack the last of it.
    pub fn view(&mut self, asked: ReadSource) -> View {
        let now = Instant::now();
        let lags = asked == ReadSource::Any || self.has(Flaw::LaggingLeader);
        let lag = if lags && self.permille(self.faults.lag) { 1 + self.below(400) as u64 } else { 0 };
        now.checked_sub(Duration::from_millis(lag)).unwrap_or(now)
    }

    fn travel(&mut self) -> Instant {
        let far = if self.permille(20) { 10 * self.distance } else { self.distance };
        Instant::now() + Duration::from_micros(50 + self.below(1_000 * far as usize) as u64)
    }

    /// Sends something to the server, which is lost where there is no connection.
    pub fn send_up(&mut self, replica: usize, job: impl FnOnce() + Send + 'static) {
        if self.replicas[replica].is_connected() {
            self.send_up_surely(replica, job);
        }
    }

    pub fn send_up_surely(&mut self, replica: usize, job: impl FnOnce() + Send + 'static) {
        let at = self.travel();
        self.replicas[replica].up.send(at, Box::new(job));
    }

    /// Sends something to a replica, which is lost where there is no connection.
    pub fn send_down(&mut self, replica: usize, job: impl FnOnce(&mut World) + Send + 'static) {
        let at = self.travel();
        let there = &mut self.replicas[replica];
        if let (true, Some(world)) = (there.is_connected() && !there.life.is_dead(), self.me.upgrade()) {
            there.down.send(
                at,
                Box::new(move || {
                    let mut world = world.lock().unwrap();
                    if world.replicas[replica].is_connected() {
                        job(&mut world);
                    }
                }),
            );
        }
    }

    fn post(&mut self, parcels: Vec<(usize, Parcel)>) {
        for (replica, parcel) in parcels {
            self.send_down(replica, move |world| match parcel {
                Parcel::Read(reader, raw) => {
                    // One that was cut off gets nothing more, so that nothing is missing in between.
                    if let Some(reader) = world.server.readers.get(&reader) {
                        let _ = reader.messages.send(raw);
                    }
                }
                Parcel::Delivery(to, delivered) => _ = to.send(delivered),
                Parcel::Heard(to, heard) => _ = to.send(heard),
            });
        }
    }

    /// Sends out what there is to be sent.
    pub fn flush(&mut self) {
        let mut parcels = self.server.outgoing();
        if self.has(Flaw::AckFirst) || self.has(Flaw::EffectsAckFirst) {
            flaw::ack_first(self, &parcels);
        }
        if self.has(Flaw::TailOutOfOrder) && self.permille(300) {
            parcels.reverse();
        }
        if self.has(Flaw::TailLoses) {
            parcels.retain(|(_, parcel)| !matches!(parcel, Parcel::Read(..)) || !self.permille(5));
        }
        self.post(parcels);
    }

    /// Says something to whoever listens; how many those are.
    pub fn say(&mut self, subject: &str, reply: Option<&str>, headers: &Headers, payload: &Bytes) -> usize {
        let parcels = self.server.route_live(subject, reply, headers, payload, &mut *self.chance.borrow_mut());
        let count = parcels.len();
        self.post(parcels);
        count
    }

    /// Stores what a replica writes.
    pub fn publish(&mut self, replica: usize, message: OutgoingMessage) -> Result<StoreAck, StoreError> {
        let message = flaw::written(self, replica, message);
        if message.subject.starts_with(&format!("$KV.{SNAPSHOTS_BUCKET}.")) {
            self.snapshots_ever.push((message.subject.clone(), message.payload.clone()));
        }
        self.note(&self.replicas[replica].instance, || format!("writes {} {:?}", message.subject, message.guard));
        let now = self.now();
        let in_process = self.faults.in_process;
        let changes_owner = message.subject.starts_with(&format!("$KV.{OWNERS_BUCKET}.agent-runtime."));
        let written = self.server.store(message, now, in_process, &mut *self.chance.borrow_mut());
        self.disruptions += u32::from(changes_owner && written.is_ok() && !self.faults.is_fair());
        written
    }

    /// Returns the messages that a replica reads as its flaw changes them.
    pub fn visible_messages(&mut self, replica: usize, raws: Vec<RawMessage>) -> Vec<RawMessage> {
        flaw::filter_messages(self, replica, raws)
    }

    /// Stores a message from outside, whatever goes wrong elsewhere: its sender repeats it until it is stored.
    pub fn enter(&mut self, event: &OutgoingEvent) -> u64 {
        let message =
            OutgoingMessage::new(self.partitions.stored_subject(&event.subject), event.headers(), event.body.encode());
        self.enter_as(message.with_id(event.envelope.id.to_string()))
    }

    pub fn enter_as(&mut self, message: OutgoingMessage) -> u64 {
        let now = self.now();
        let stream = self.server.streams.get_mut(EVENTS_STREAM).expect("a log");
        let before = std::mem::take(&mut stream.full);
        let leaderless = stream.leaderless.take();
        let written = self.server.store(message, now, 0, &mut *self.chance.borrow_mut());
        let stream = self.server.streams.get_mut(EVENTS_STREAM).expect("a log");
        (stream.full, stream.leaderless) = (before, leaderless);
        self.flush();
        written.map_or(0, |written| written.sequence)
    }

    /// Writes a copy of a message.
    pub fn copy(&mut self, sequence: u64) -> u64 {
        let stored = self.server.streams[EVENTS_STREAM].entry_at(sequence).expect("one of the log").clone();
        let now = self.now();
        let copy = self.server.write(OutgoingMessage::new(stored.subject, stored.headers, stored.payload), now);
        self.copies.push(copy);
        self.flush();
        copy
    }

    /// Returns the records of the log about an owner.
    pub fn concerning<'a>(&'a self, owner: &'a Name) -> impl Iterator<Item = &'a Record> + 'a {
        self.records().iter().filter(|record| record.subject.split('.').nth(2) == Some(owner.as_str()))
    }

    pub fn records(&self) -> &[Record] {
        self.server.records()
    }

    /// A tool does what it is there for.
    pub fn effect(&mut self, who: &str, action: Uuid) {
        self.note(who, || format!("EFFECT of {action}"));
        let begun = |invoke: &ToolInvoke| invoke.actions.iter().any(|begun| begun.action_id == action.to_string());
        if !self.records().iter().any(|record| ToolInvoke::of(&record.body).is_some_and(begun)) {
            self.violation(format!("an effect of {action}, which the ledger does not know as begun"));
        }
        *self.called.entry(action).or_default() += 1;
    }

    /// A process at its gate: its place, and its id.
    pub fn prepare(&mut self) -> (usize, u32) {
        let pid = 100_000 + self.processes.len() as u32;
        self.processes.push(Process { pid, action: None, state: ProcessState::AtTheGate, ran: false, over_at: 0 });
        (self.processes.len() - 1, pid)
    }

    /// Lets the program run.
    pub fn open(&mut self, process: usize) {
        let pid = self.processes[process].pid;
        let action = self.records().iter().find_map(|record| {
            let spawned = ProcessSpawned::of(&record.body).filter(|spawned| spawned.pid == pid)?;
            Uuid::parse_str(&spawned.action_id).ok()
        });
        self.note("guard", || format!("RUNS the process {pid} of {action:?}"));
        if action.is_none() {
            self.violation(format!("the process {pid} runs and the log does not know it"));
        }
        let process = &mut self.processes[process];
        (process.state, process.ran, process.action) = (ProcessState::Running, true, action);
    }

    /// A process is over.
    pub fn over(&mut self, process: usize, state: ProcessState) {
        let end = self.server.streams[EVENTS_STREAM].last_sequence();
        let process = &mut self.processes[process];
        (process.state, process.over_at) = (state, end);
        let pid = process.pid;
        self.note("guard", || format!("the process {pid} is over: {state:?}"));
    }
}
