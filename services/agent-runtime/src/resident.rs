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

/// How long it may take until a conflict is explained by what the tail brings; then the log is asked.
const EXPLAINED_WITHIN: Duration = Duration::from_secs(2);
/// What an agent takes of memory before it was ever saved, in bytes: with the room of what it just dealt with.
const UNSAVED_BYTES: usize = 16_384;

/// An agent, or one on its way into memory.
pub struct Resident {
    pub name: Name,
    /// None while it is being loaded.
    pub log: Option<Log>,
    /// Whether nobody has tried yet to load it.
    pub is_new: bool,
    /// Whether what is being loaded was known here already, so that no snapshot may say all of it.
    pub reloading: bool,
    /// What came while it was being loaded.
    held_back: Vec<Raw>,
    /// Where its log goes on with what this build does not understand: nothing is decided, and nothing behind it read.
    pub parked: Option<Parked>,
    /// Where its snapshot stands.
    pub revision: u64,
    /// Whether its snapshot says less than is known.
    pub dirty: bool,
    /// The decision being made.
    running: Option<Running>,
    /// Whether something that lies ahead is being read.
    pub fetching: bool,
    /// Whether the guard moved under the decision being made, by something that decided nothing.
    moved: bool,
    /// Since when a conflict is unexplained.
    puzzled: Option<Instant>,
    pub paid: Paid,
    /// The input that a decision was begun on last.
    deciding: u64,
    /// Times the decision on the next input was begun again because something came.
    restarts: u32,
    restarts_allowed: u32,
    work: Work,
    pub touched: Instant,
    /// What it takes of memory, about, in bytes.
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
    /// Where it ends what this build understands.
    pub sequence: u64,
    pub newer: Newer,
    /// What came since, for whoever goes on with it; that message included.
    pub waiting: usize,
}

/// What the tail brought for an agent.
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

    /// Whether nothing is left to do for it here, and its snapshot says all.
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

    /// Takes no more memory than it needs: for one that rests.
    pub fn shrink(&mut self) {
        if let Some(log) = &mut self.log {
            log.shrink();
        }
    }

    /// Whether the next owner has something to go on with.
    pub fn is_busy(&self) -> bool {
        self.parked.is_some() || self.log.as_ref().is_none_or(|log| log.waiting() > 0)
    }

    pub fn waiting(&self) -> usize {
        let parked = self.parked.as_ref().map_or(0, |parked| parked.waiting);
        self.log.as_ref().map_or(self.held_back.len(), Log::waiting) + parked
    }

    /// The first of what no snapshot can hold yet, since it was not taken in.
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

    /// What was paid for elsewhere, where nothing is here that was.
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

    /// What the owner before left, now that all is read that was there: where something was decided since, that says it, and it is
    /// of no use.
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

    /// Whether nothing can be begun for now.
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

    /// What was paid for in a lane.
    pub fn paid_in(&self, lane: Lane) -> &Paid {
        match lane {
            Lane::Foreground => &self.paid,
            Lane::Work => &self.work.paid,
        }
    }

    /// Gives up decisions under way whose turn has not come yet; others may end what they began.
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

    /// What a copy or something unreadable on the decision subject does: what is being decided is not at stake, but it
    /// has to be written under another guard.
    fn guard_moved(&mut self) {
        self.moved = true;
        self.puzzled = None;
    }

    /// The task that had this turn has ended; false if it is not the one that is waited for.
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

    /// What joins the input later would be another question, and the answers of no use.
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

    /// What was committed here, with this content, is taken in at once.
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

    /// What was asked for the sake of an input is of no use behind it. An order that overtook it leaves it to be decided on.
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

    /// A decision that may say what became of calls that were paid for here.
    fn settling(&self, record: &Record) -> Option<AgentDecision> {
        AgentDecision::of(&record.body).filter(|_| !self.paid_in(lane_of(record)).is_nothing()).cloned()
    }

    /// The guard did not hold: somebody wrote on the decision subject, which the tail has brought or will bring.
    pub fn overtaken(&mut self) {
        let explained = std::mem::take(&mut self.moved);
        self.puzzled = (!explained).then(Instant::now);
    }

    /// Whether a conflict was not explained in time.
    pub fn is_puzzled(&self) -> bool {
        self.puzzled.is_some_and(|since| since.elapsed() > EXPLAINED_WITHIN)
    }

    /// It is to be read again.
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

    /// What the next owner is left; none where there is nothing.
    pub fn left(&self) -> Option<HandedOver> {
        let (decided, answered) = (self.log.as_ref()?.state.decided, self.answers());
        (!answered.is_nothing()).then_some(HandedOver { decided, answered })
    }

    /// What models have answered for decisions that do not stand yet.
    fn answers(&self) -> Answered {
        Answered { answers: self.paid.save(self.deciding), work_answers: self.work.save() }
    }

    /// What is to be saved; none of what may rest on more than was understood.
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
