//! One agent in the memory of the replica that owns it; [`working`] what it works on beside its conversations,
//! [`queueing`] its waiting inputs by user.

mod queueing;
mod restarting;
mod working;

use std::time::Duration;

use kairo_core::{
    bus::Bus,
    hash_chain::{Content, On},
    ids::Name,
    record::{Raw, Record},
    subjects::AGENT_DECISION,
    vocabulary::{Newer, NotUnderstood},
};
use kairo_mind::log::{Diverged, HELD, Log, Pushed, Ready, Snapshot};
use kairo_proto::{Body, v1::AgentDecision};
use tokio::{task::AbortHandle, time::Instant};
use uuid::Uuid;

use self::working::Work;
use crate::{
    handed_over::{Answered, HandedOver},
    measures,
    snapshots::Loaded,
    turn::{Lane, Paid, Stage, Turn},
};

/// The longest wait for the tail of the log to explain a conflict; after that the log is read again.
const EXPLAINED_WITHIN: Duration = Duration::from_secs(2);
/// Estimated memory of an agent that was never saved, in bytes, including the input it has just handled.
const UNSAVED_BYTES: usize = 16_384;

/// An agent, or one on its way into memory.
pub struct Resident {
    pub name: Name,
    /// None while it is being loaded.
    pub log: Option<Log>,
    /// True until the first attempt to load it has ended.
    pub is_new: bool,
    /// True while an agent that was in memory is loaded again, so that no snapshot may cover everything read for it.
    pub reloading: bool,
    /// Messages that arrived while it was being loaded.
    held_back: Vec<Raw>,
    /// The point in its log at which a message needs a newer build: no decisions are made, and nothing behind it is
    /// read.
    pub parked: Option<Parked>,
    /// The revision of its stored snapshot.
    pub revision: u64,
    /// True if the stored snapshot is behind the state in memory.
    pub dirty: bool,
    /// The decision being made.
    running: Option<Running>,
    /// True while pending messages are being read from the log.
    pub fetching: bool,
    /// True if the guard moved during the decision, because of a message that decided nothing.
    moved: bool,
    /// The time since which a conflict has been unexplained.
    puzzled: Option<Instant>,
    pub paid: Paid,
    /// The input that a decision was begun on last.
    deciding: u64,
    /// Times the decision on the next input was begun again because something came.
    restarts: u32,
    restarts_allowed: u32,
    work: Work,
    pub touched: Instant,
    /// Approximate memory use, in bytes.
    pub bytes: usize,
}

struct Running {
    task: AbortHandle,
    input: u64,
    turn: Turn,
}

/// An agent that waits for a replica that reads newer messages.
#[derive(Clone, Debug)]
pub struct Parked {
    /// The sequence of the first message that this build does not understand.
    pub sequence: u64,
    pub newer: Newer,
    /// Messages for a newer build to process: the one at `sequence` and those that arrived since.
    pub waiting: usize,
}

/// The result of taking in a message from the tail of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing to be said about it.
    Well,
    /// It cannot be read, and is this service's to report.
    Unreadable,
    /// It takes a newer reader, for which the agent waits from now on.
    Parked,
    /// The log must be read again.
    Diverged,
}

impl Resident {
    /// `restarts` is how often a decision may begin again because another message came.
    pub fn loading(name: Name, restarts: u32) -> Self {
        let paid = Paid::default();
        Self {
            name,
            log: None,
            is_new: true,
            reloading: false,
            held_back: Vec::new(),
            parked: None,
            revision: 0,
            dirty: false,
            running: None,
            fetching: false,
            moved: false,
            puzzled: None,
            work: Work::beside(&paid),
            paid,
            deciding: 0,
            restarts: 0,
            restarts_allowed: restarts,
            touched: Instant::now(),
            bytes: UNSAVED_BYTES,
        }
    }

    /// Returns true if no work is left for the agent here and its snapshot is complete.
    pub fn is_idle(&self) -> bool {
        let nothing_ahead = self.log.as_ref().is_some_and(|log| log.waiting() == 0);
        nothing_ahead
            && self.parked.is_none()
            && !self.dirty
            && !self.paid.is_unsaved()
            && !self.work.paid.is_unsaved()
            && !self.is_running()
            && !self.fetching
    }

    /// Frees memory that an idle agent does not need.
    pub fn shrink(&mut self) {
        if let Some(log) = &mut self.log {
            log.shrink();
        }
    }

    /// Returns true if the agent leaves pending work for the next owner.
    pub fn is_busy(&self) -> bool {
        self.parked.is_some() || self.log.as_ref().is_none_or(|log| log.waiting() > 0)
    }

    pub fn waiting(&self) -> usize {
        let parked = self.parked.as_ref().map_or(0, |parked| parked.waiting);
        self.log.as_ref().map_or(self.held_back.len(), Log::waiting) + parked
    }

    /// Returns the sequence of the first message that no snapshot can cover yet, because it was not applied.
    pub fn first_held_back(&self) -> Option<u64> {
        let parked = self.parked.as_ref().map(|parked| parked.sequence);
        parked.or(self.held_back.first().map(|raw| raw.sequence))
    }

    /// From here on it waits for a newer reader. What it knew before that stands, and so do answers that were paid for.
    fn park(&mut self, sequence: u64, newer: Newer) -> Taken {
        self.interrupt();
        self.work.interrupt();
        self.parked = Some(Parked { sequence, newer, waiting: 1 });
        Taken::Parked
    }

    /// It was loaded; what came meanwhile is taken in. What [`Resident::take`] says of each.
    pub fn arrive(&mut self, bus: &Bus, loaded: Loaded) -> Vec<(Raw, Taken)> {
        let mut log = loaded.log;
        log.hold_at_most(HELD);
        self.take_answers(loaded.paid, &mut log);
        self.log = Some(log);
        self.reloading = false;
        self.revision = loaded.revision;
        self.puzzled = None;
        // One that was folded from the log is worth a snapshot.
        self.dirty = true;
        if let Some((sequence, newer)) = loaded.newer {
            self.park(sequence, newer);
        }
        let held_back = std::mem::take(&mut self.held_back);
        let take = |raw| {
            let taken = self.take(bus, &raw);
            (raw, taken)
        };
        let taken = held_back.into_iter().map(take).collect();
        self.keep_to_work();
        taken
    }

    /// Takes answers paid for elsewhere, in each lane that has none of its own.
    fn take_answers(&mut self, Answered { answers, work_answers }: Answered, log: &mut Log) {
        if self.paid.is_nothing()
            && let Some(answers) = answers
        {
            (self.deciding, self.paid) = (answers.input, Paid::of(answers));
            self.work.paid.given_up = self.paid.given_up.of_work();
        }
        if self.work.paid.is_empty()
            && let Some(answers) = work_answers
        {
            (self.work.deciding, self.work.paid) = (answers.input, Paid::of_work(Some(answers), &self.paid));
        }
        match self.deciding > log.state.cursor {
            true => self.keep_what_joined(log),
            false => self.paid.spent(None),
        }
    }

    /// Takes the previous owner's answers once the log is caught up. They are dropped if the agent has decided
    /// something since.
    pub fn go_on_with(&mut self, left: HandedOver) {
        if let Some(mut log) = self.log.take_if(|log| log.state.decided == left.decided) {
            self.take_answers(left.answered, &mut log);
            self.log = Some(log);
            self.keep_to_work();
        }
    }

    /// Takes in a message of the log.
    pub fn take(&mut self, bus: &Bus, raw: &Raw) -> Taken {
        self.touched = Instant::now();
        if let Some(parked) = &mut self.parked {
            parked.waiting += usize::from(raw.sequence > parked.sequence);
            return Taken::Well;
        }
        let Some(log) = &mut self.log else {
            self.held_back.push(raw.clone());
            return Taken::Well;
        };
        let known = raw.sequence <= log.read;
        let record = match raw.understand(bus.limits.max_body_bytes) {
            Ok(_) if known => return Taken::Well,
            Ok(record) => record,
            Err(NotUnderstood::Newer(newer)) => return self.park(raw.sequence, newer),
            // Reported even if the log was folded beyond it: folding reports nothing.
            Err(NotUnderstood::Unreadable(_)) if known => return Taken::Unreadable,
            Err(NotUnderstood::Unreadable(_)) => {
                self.dirty = true;
                log.chain.take(raw.sequence, raw.content(), On::of(&raw.subject, None));
                let on_decisions = raw.subject == AGENT_DECISION.of(&self.name);
                log.pass_over(raw.sequence, on_decisions);
                if on_decisions {
                    self.guard_moved();
                }
                return Taken::Unreadable;
            }
        };
        log.chain.take(raw.sequence, raw.content(), On::of(&raw.subject, Some(&record.body)));
        self.dirty = true;
        let is_message = matches!(record.body, Body::AgentMessage(_));
        let is_left = log.ends_what_is_decided_on(&record.body);
        let lane = lane_of(&record);
        let decision = self.settling(&record);
        let given_up = AgentDecision::of(&record.body).map(|decision| decision.given_up.clone()).unwrap_or_default();
        let Some(log) = &mut self.log else { return Taken::Well };
        match log.push(record) {
            Ok(Pushed::Decided(input)) => {
                // One's own whose acknowledgement is late, or somebody else's: either way this one is over.
                let running = self.running.as_ref().filter(|running| running.input == input);
                if let Some(running) = running.or_else(|| self.work.committing()) {
                    bus.standing.count_decision();
                    measures::decided(bus, &self.name, &running.turn, &given_up);
                }
                self.interrupt();
                if self.work.is_committing() {
                    self.work.interrupt();
                }
                self.has_decided(lane, input, decision.as_ref());
            }
            Ok(Pushed::Guarded) => self.guard_moved(),
            Ok(Pushed::Ahead) if is_message && self.wants_restart(raw.sequence) => self.begin_again(),
            // Nobody waits for the answer any more.
            Ok(Pushed::Ahead) if is_left => self.interrupt(),
            Ok(Pushed::Ahead) => {}
            Err(Diverged) => return Taken::Diverged,
        }
        Taken::Well
    }

    /// The next input that wants a decision, if it may be decided on now.
    pub fn next(&mut self) -> Option<Ready> {
        let waits = self.running.is_some() || self.work.is_committing() || self.must_wait();
        if waits { None } else { self.log.as_mut()?.next_input() }
    }

    /// Returns true if no decision may begin for now.
    fn must_wait(&self) -> bool {
        self.fetching || self.puzzled.is_some() || self.parked.is_some()
    }

    pub fn run(&mut self, input: u64, task: AbortHandle, turn: Turn) {
        // What is merely prepared is written under a guard that is read later.
        self.moved &= turn.stage == Stage::Prepare;
        let (deciding, running) = match turn.lane() {
            Lane::Foreground => (&mut self.deciding, &mut self.running),
            Lane::Work => (&mut self.work.deciding, &mut self.work.running),
        };
        *deciding = input;
        *running = Some(Running { task, input, turn });
    }

    /// Returns the paid answers of a lane.
    pub fn paid_in(&self, lane: Lane) -> &Paid {
        match lane {
            Lane::Foreground => &self.paid,
            Lane::Work => &self.work.paid,
        }
    }

    /// Gives up decisions whose turn has not come yet; those that have begun may finish their calls.
    pub fn stop(&mut self) {
        match &self.running {
            Some(running) if running.turn.has_begun() => running.turn.stop(),
            _ => self.interrupt(),
        }
        match &self.work.running {
            Some(running) if running.turn.has_begun() => running.turn.stop(),
            _ => self.work.interrupt(),
        }
    }

    /// Notes that a copy or an unreadable message moved the guard of the decision subject: the decision under way stays
    /// valid but must be written under another guard.
    fn guard_moved(&mut self) {
        self.moved = true;
        self.puzzled = None;
    }

    /// Notes that the task of this turn has ended; returns false if another task is awaited.
    pub fn ended(&mut self, turn: &Turn) -> bool {
        let running = match turn.lane() {
            Lane::Foreground => &mut self.running,
            Lane::Work => &mut self.work.running,
        };
        let expected = running.take_if(|running| running.turn.is(turn)).is_some();
        if expected
            && turn.lane() == Lane::Foreground
            && let Some(mut log) = self.log.take()
        {
            self.keep_what_joined(&mut log);
            self.log = Some(log);
        }
        expected
    }

    /// Keeps later messages from joining the input: they would change the request and make the paid answers useless.
    fn keep_what_joined(&self, log: &mut Log) {
        if !self.paid.is_empty() {
            log.join_no_more(self.deciding);
        }
    }

    /// Gives up the decision under way, so that it can begin again.
    pub fn interrupt(&mut self) {
        self.puzzled = None;
        if let Some(running) = self.running.take() {
            running.task.abort();
            self.paid.given_up.interrupt();
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some() || self.work.running.is_some()
    }

    /// Applies a decision that was committed here, with this content, without waiting for the log to deliver it.
    pub fn decided(&mut self, record: Record, content: Content) -> Taken {
        self.touched = Instant::now();
        self.dirty = true;
        let (lane, decision) = (lane_of(&record), self.settling(&record));
        let link = AgentDecision::of(&record.body).and_then(|decision| decision.link.clone());
        let wrote = |log: &mut Log| {
            log.chain.wrote(record.sequence, content, link.as_ref());
            log.decided(record)
        };
        match self.log.as_mut().map(wrote) {
            Some(Ok(Pushed::Decided(input))) => self.has_decided(lane, input, decision.as_ref()),
            Some(Err(Diverged)) => return Taken::Diverged,
            Some(Ok(_)) | None => {}
        }
        Taken::Well
    }

    /// Drops the answers of an input that has been decided on. An order that overtook the input leaves it to be
    /// decided.
    fn has_decided(&mut self, lane: Lane, input: u64, decision: Option<&AgentDecision>) {
        if lane == Lane::Work {
            self.work.prepared = None;
            self.work.paid.spent(decision);
        } else if self.log.as_ref().is_some_and(|log| input <= log.state.cursor) {
            self.paid.spent(decision);
            self.restarts = 0;
        } else if let Some(decision) = decision {
            self.paid.given_up.recorded(&decision.given_up);
        }
        self.keep_to_work();
    }

    /// Returns the decision if it may account for calls that were paid for here.
    fn settling(&self, record: &Record) -> Option<AgentDecision> {
        AgentDecision::of(&record.body).filter(|_| !self.paid_in(lane_of(record)).is_nothing()).cloned()
    }

    /// The guard did not hold: somebody wrote on the decision subject, which the tail has brought or will bring.
    pub fn overtaken(&mut self) {
        let explained = std::mem::take(&mut self.moved);
        self.puzzled = (!explained).then(Instant::now);
    }

    /// Returns true if a conflict was not explained in time.
    pub fn is_puzzled(&self) -> bool {
        self.puzzled.is_some_and(|since| since.elapsed() > EXPLAINED_WITHIN)
    }

    /// Drops the state so that the agent is read again from the log.
    pub fn reload(&mut self) {
        self.interrupt();
        self.work.interrupt();
        self.work.prepared = None;
        self.reloading = true;
        self.log = None;
        self.fetching = false;
    }

    /// Reads ahead are here. It was understood when it was put aside.
    pub fn supplied(&mut self, bus: &Bus, messages: Vec<(u64, Option<Raw>)>) {
        self.fetching = false;
        let Some(log) = &mut self.log else { return };
        for (sequence, raw) in messages {
            log.supply(sequence, raw.and_then(|raw| raw.read(bus.limits.max_body_bytes).ok()));
        }
    }

    /// Returns the answers to hand over to the next owner; none if there are no answers.
    pub fn left(&self) -> Option<HandedOver> {
        let (decided, answered) = (self.log.as_ref()?.state.decided, self.answers());
        (!answered.is_nothing()).then_some(HandedOver { decided, answered })
    }

    /// Returns the model answers for decisions that are not committed yet.
    fn answers(&self) -> Answered {
        Answered { answers: self.paid.save(self.deciding), work_answers: self.work.save() }
    }

    /// Returns the snapshot to save, if anything changed; none if it might depend on messages that this build does not
    /// understand.
    pub fn snapshot(&mut self, log: Uuid) -> Option<Snapshot> {
        let read = self.log.as_ref().map_or(0, |log| log.read);
        if self.parked.as_ref().is_some_and(|parked| parked.sequence <= read) {
            return None;
        }
        let answered = self.paid.is_unsaved() || self.work.paid.is_unsaved();
        let snapshot = self.log.as_ref().filter(|_| self.dirty || answered)?.snapshot(log);
        self.dirty = false;
        let Answered { answers, work_answers } = self.answers();
        Some(Snapshot { answers, work_answers, ..snapshot })
    }
}

/// The lane that a decision is of.
fn lane_of(record: &Record) -> Lane {
    let is_work = AgentDecision::of(&record.body).is_some_and(|decision| decision.work_input != 0);
    if is_work { Lane::Work } else { Lane::Foreground }
}
