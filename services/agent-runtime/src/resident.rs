//! One agent in the memory of the replica that owns it; [`background_work`] what it works on beside its conversations,
//! [`input_queue`] its waiting inputs by user.

mod background_work;
mod decision_restart;
mod input_queue;

use std::time::Duration;

use kairo_core::{
    bus::Bus,
    hash_chain::{ChainRole, ContentDigest},
    ids::Name,
    record::{RawMessage, Record},
    subjects::AGENT_DECISION,
    vocabulary::{NewerReaderNeeded, NotUnderstood},
};
use kairo_mind::log::{Divergence, HELD, Log, NextInput, PushOutcome, Snapshot};
use kairo_proto::{Body, v1::AgentDecision};
use tokio::{task::AbortHandle, time::Instant};
use uuid::Uuid;

use self::background_work::BackgroundWork;
use crate::{
    agent_metrics,
    handover_state::{AgentHandover, LaneAnswers},
    snapshots::LoadedAgent,
    turn::{AgentLane, CompletionCache, Stage, TurnHandle},
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
    held_back: Vec<RawMessage>,
    /// The point in its log at which a message needs a newer build: no decisions are made, and nothing behind it is
    /// read.
    pub parked: Option<ParkingPoint>,
    /// The revision of its stored snapshot.
    pub revision: u64,
    /// True if the stored snapshot is behind the state in memory.
    pub dirty: bool,
    /// The decision being made.
    running: Option<RunningDecision>,
    /// True while pending messages are being read from the log.
    pub fetching: bool,
    /// True if the guard moved during the decision, because of a message that decided nothing.
    moved: bool,
    /// The time since which a conflict has been unexplained.
    conflict_since: Option<Instant>,
    pub completions: CompletionCache,
    /// The input that a decision was begun on last.
    deciding: u64,
    /// Times the decision on the next input was begun again because something came.
    restarts: u32,
    restarts_allowed: u32,
    background: BackgroundWork,
    pub touched: Instant,
    /// Approximate memory use, in bytes.
    pub bytes: usize,
}

struct RunningDecision {
    task: AbortHandle,
    input: u64,
    turn: TurnHandle,
}

/// An agent that waits for a replica that reads newer messages.
#[derive(Clone, Debug)]
pub struct ParkingPoint {
    /// The sequence of the first message that this build does not understand.
    pub sequence: u64,
    pub newer: NewerReaderNeeded,
    /// Messages for a newer build to process: the one at `sequence` and those that arrived since.
    pub waiting: usize,
}

/// The result of taking in a message from the tail of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// Nothing to be said about it.
    NoAction,
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
        let paid = CompletionCache::default();
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
            conflict_since: None,
            background: BackgroundWork::with_foreground(&paid),
            completions: paid,
            deciding: 0,
            restarts: 0,
            restarts_allowed: restarts,
            touched: Instant::now(),
            bytes: UNSAVED_BYTES,
        }
    }

    /// Returns true if no work is left for the agent here and its snapshot is complete.
    pub fn is_idle(&self) -> bool {
        let nothing_ahead = self.log.as_ref().is_some_and(|log| log.pending_count() == 0);
        nothing_ahead
            && self.parked.is_none()
            && !self.dirty
            && !self.completions.is_unsaved()
            && !self.background.completions.is_unsaved()
            && !self.is_running()
            && !self.fetching
    }

    /// Frees memory that an idle agent does not need.
    pub fn shrink(&mut self) {
        if let Some(log) = &mut self.log {
            log.shrink_to_fit();
        }
    }

    /// Returns true if the agent leaves pending work for the next owner.
    pub fn is_busy(&self) -> bool {
        self.parked.is_some() || self.log.as_ref().is_none_or(|log| log.pending_count() > 0)
    }

    pub fn pending_inputs(&self) -> usize {
        let parked = self.parked.as_ref().map_or(0, |parked| parked.waiting);
        self.log.as_ref().map_or(self.held_back.len(), Log::pending_count) + parked
    }

    /// Returns the sequence of the first message that no snapshot can cover yet, because it was not applied.
    pub fn first_held_back(&self) -> Option<u64> {
        let parked = self.parked.as_ref().map(|parked| parked.sequence);
        parked.or(self.held_back.first().map(|raw| raw.sequence))
    }

    /// From here on it waits for a newer reader. What it knew before that stands, and so do answers that were paid for.
    fn park(&mut self, sequence: u64, newer: NewerReaderNeeded) -> ApplyOutcome {
        self.interrupt();
        self.background.interrupt();
        self.parked = Some(ParkingPoint { sequence, newer, waiting: 1 });
        ApplyOutcome::Parked
    }

    /// It was loaded; what came meanwhile is taken in. What [`Resident::apply_message`] says of each.
    pub fn finish_loading(&mut self, bus: &Bus, loaded: LoadedAgent) -> Vec<(RawMessage, ApplyOutcome)> {
        let mut log = loaded.log;
        log.limit_held_records(HELD);
        self.adopt_answers(loaded.answers, &mut log);
        self.log = Some(log);
        self.reloading = false;
        self.revision = loaded.revision;
        self.conflict_since = None;
        // One that was folded from the log is worth a snapshot.
        self.dirty = true;
        if let Some((sequence, newer)) = loaded.newer {
            self.park(sequence, newer);
        }
        let held_back = std::mem::take(&mut self.held_back);
        let take = |raw| {
            let taken = self.apply_message(bus, &raw);
            (raw, taken)
        };
        let taken = held_back.into_iter().map(take).collect();
        self.drop_stale_background();
        taken
    }

    /// Takes answers paid for elsewhere, in each lane that has none of its own.
    fn adopt_answers(&mut self, LaneAnswers { answers, work_answers }: LaneAnswers, log: &mut Log) {
        if self.completions.is_nothing()
            && let Some(answers) = answers
        {
            (self.deciding, self.completions) = (answers.input, CompletionCache::from_answers(answers));
            self.background.completions.abandoned_calls = self.completions.abandoned_calls.for_background_lane();
        }
        if self.background.completions.is_empty()
            && let Some(answers) = work_answers
        {
            (self.background.deciding, self.background.completions) =
                (answers.input, CompletionCache::for_background(Some(answers), &self.completions));
        }
        match self.deciding > log.state.cursor {
            true => self.freeze_input(log),
            false => self.completions.settle(None),
        }
    }

    /// Takes the previous owner's answers once the log is caught up. They are dropped if the agent has decided
    /// something since.
    pub fn adopt_handover(&mut self, left: AgentHandover) {
        if let Some(mut log) = self.log.take_if(|log| log.state.decided == left.decided) {
            self.adopt_answers(left.answers, &mut log);
            self.log = Some(log);
            self.drop_stale_background();
        }
    }

    /// Takes in a message of the log.
    pub fn apply_message(&mut self, bus: &Bus, raw: &RawMessage) -> ApplyOutcome {
        self.touched = Instant::now();
        if let Some(parked) = &mut self.parked {
            parked.waiting += usize::from(raw.sequence > parked.sequence);
            return ApplyOutcome::NoAction;
        }
        let Some(log) = &mut self.log else {
            self.held_back.push(raw.clone());
            return ApplyOutcome::NoAction;
        };
        let known = raw.sequence <= log.read;
        let record = match raw.read_or_reject_newer(bus.limits.max_body_bytes) {
            Ok(_) if known => return ApplyOutcome::NoAction,
            Ok(record) => record,
            Err(NotUnderstood::Newer(newer)) => return self.park(raw.sequence, newer),
            // Reported even if the log was folded beyond it: folding reports nothing.
            Err(NotUnderstood::Unreadable(_)) if known => return ApplyOutcome::Unreadable,
            Err(NotUnderstood::Unreadable(_)) => {
                self.dirty = true;
                log.chain.apply_message(
                    raw.sequence,
                    raw.hash_chain_content(),
                    ChainRole::from_message(&raw.subject, None),
                );
                let on_decisions = raw.subject == AGENT_DECISION.of_owner(&self.name);
                log.skip_unreadable(raw.sequence, on_decisions);
                if on_decisions {
                    self.note_moved_guard();
                }
                return ApplyOutcome::Unreadable;
            }
        };
        log.chain.apply_message(
            raw.sequence,
            raw.hash_chain_content(),
            ChainRole::from_message(&raw.subject, Some(&record.body)),
        );
        self.dirty = true;
        let is_message = matches!(record.body, Body::AgentMessage(_));
        let is_left = log.withdraws_current_request(&record.body);
        let lane = lane_of(&record);
        let decision = self.settling_decision(&record);
        let given_up = AgentDecision::of(&record.body).map(|decision| decision.given_up.clone()).unwrap_or_default();
        let Some(log) = &mut self.log else { return ApplyOutcome::NoAction };
        match log.push(record) {
            Ok(PushOutcome::Decided(input)) => {
                // One's own whose acknowledgement is late, or somebody else's: either way this one is over.
                let running = self.running.as_ref().filter(|running| running.input == input);
                if let Some(running) = running.or_else(|| self.background.committing()) {
                    bus.standing.count_decision();
                    agent_metrics::record_decision(bus, &self.name, &running.turn, &given_up);
                }
                self.interrupt();
                if self.background.is_committing() {
                    self.background.interrupt();
                }
                self.settle_decided_input(lane, input, decision.as_ref());
            }
            Ok(PushOutcome::Guarded) => self.note_moved_guard(),
            Ok(PushOutcome::Pending) if is_message && self.should_restart_for(raw.sequence) => self.restart_decision(),
            // Nobody waits for the answer any more.
            Ok(PushOutcome::Pending) if is_left => self.interrupt(),
            Ok(PushOutcome::Pending) => {}
            Err(Divergence) => return ApplyOutcome::Diverged,
        }
        ApplyOutcome::NoAction
    }

    /// The next input that wants a decision, if it may be decided on now.
    pub fn next_input(&mut self) -> Option<NextInput> {
        let waits = self.running.is_some() || self.background.is_committing() || self.must_wait();
        if waits { None } else { self.log.as_mut()?.next_input() }
    }

    /// Returns true if no decision may begin for now.
    fn must_wait(&self) -> bool {
        self.fetching || self.conflict_since.is_some() || self.parked.is_some()
    }

    pub fn track_decision(&mut self, input: u64, task: AbortHandle, turn: TurnHandle) {
        // What is merely prepared is written under a guard that is read later.
        self.moved &= turn.stage == Stage::Prepare;
        let (deciding, running) = match turn.lane() {
            AgentLane::Foreground => (&mut self.deciding, &mut self.running),
            AgentLane::Background => (&mut self.background.deciding, &mut self.background.running),
        };
        *deciding = input;
        *running = Some(RunningDecision { task, input, turn });
    }

    /// Returns the paid answers of a lane.
    pub fn completions_in(&self, lane: AgentLane) -> &CompletionCache {
        match lane {
            AgentLane::Foreground => &self.completions,
            AgentLane::Background => &self.background.completions,
        }
    }

    /// Gives up decisions whose turn has not come yet; those that have begun may finish their calls.
    pub fn stop(&mut self) {
        match &self.running {
            Some(running) if running.turn.has_begun() => running.turn.stop(),
            _ => self.interrupt(),
        }
        match &self.background.running {
            Some(running) if running.turn.has_begun() => running.turn.stop(),
            _ => self.background.interrupt(),
        }
    }

    /// Notes that a copy or an unreadable message moved the guard of the decision subject: the decision under way stays
    /// valid but must be written under another guard.
    fn note_moved_guard(&mut self) {
        self.moved = true;
        self.conflict_since = None;
    }

    /// Notes that the task of this turn has ended; returns false if another task is awaited.
    pub fn end_turn(&mut self, turn: &TurnHandle) -> bool {
        let running = match turn.lane() {
            AgentLane::Foreground => &mut self.running,
            AgentLane::Background => &mut self.background.running,
        };
        let expected = running.take_if(|running| running.turn.is_same(turn)).is_some();
        if expected
            && turn.lane() == AgentLane::Foreground
            && let Some(mut log) = self.log.take()
        {
            self.freeze_input(&mut log);
            self.log = Some(log);
        }
        expected
    }

    /// Keeps later messages from joining the input: they would change the request and make the paid answers useless.
    fn freeze_input(&self, log: &mut Log) {
        if !self.completions.is_empty() {
            log.stop_joining(self.deciding);
        }
    }

    /// Gives up the decision under way, so that it can begin again.
    pub fn interrupt(&mut self) {
        self.conflict_since = None;
        if let Some(running) = self.running.take() {
            running.task.abort();
            self.completions.abandoned_calls.interrupt();
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some() || self.background.running.is_some()
    }

    /// Applies a decision that was committed here, with this content, without waiting for the log to deliver it.
    pub fn apply_decision(&mut self, record: Record, content: ContentDigest) -> ApplyOutcome {
        self.touched = Instant::now();
        self.dirty = true;
        let (lane, decision) = (lane_of(&record), self.settling_decision(&record));
        let link = AgentDecision::of(&record.body).and_then(|decision| decision.link.clone());
        let wrote = |log: &mut Log| {
            log.chain.apply_decision(record.sequence, content, link.as_ref());
            log.push_own_decision(record)
        };
        match self.log.as_mut().map(wrote) {
            Some(Ok(PushOutcome::Decided(input))) => self.settle_decided_input(lane, input, decision.as_ref()),
            Some(Err(Divergence)) => return ApplyOutcome::Diverged,
            Some(Ok(_)) | None => {}
        }
        ApplyOutcome::NoAction
    }

    /// Drops the answers of an input that has been decided on. An order that overtook the input leaves it to be
    /// decided.
    fn settle_decided_input(&mut self, lane: AgentLane, input: u64, decision: Option<&AgentDecision>) {
        if lane == AgentLane::Background {
            self.background.prepared = None;
            self.background.completions.settle(decision);
        } else if self.log.as_ref().is_some_and(|log| input <= log.state.cursor) {
            self.completions.settle(decision);
            self.restarts = 0;
        } else if let Some(decision) = decision {
            self.completions.abandoned_calls.remove_recorded(&decision.given_up);
        }
        self.drop_stale_background();
    }

    /// Returns the decision if it may account for calls that were paid for here.
    fn settling_decision(&self, record: &Record) -> Option<AgentDecision> {
        AgentDecision::of(&record.body).filter(|_| !self.completions_in(lane_of(record)).is_nothing()).cloned()
    }

    /// The guard did not hold: somebody wrote on the decision subject, which the tail has brought or will bring.
    pub fn note_conflict(&mut self) {
        let explained = std::mem::take(&mut self.moved);
        self.conflict_since = (!explained).then(Instant::now);
    }

    /// Returns true if a conflict was not explained in time.
    pub fn is_conflict_overdue(&self) -> bool {
        self.conflict_since.is_some_and(|since| since.elapsed() > EXPLAINED_WITHIN)
    }

    /// Drops the state so that the agent is read again from the log.
    pub fn reload(&mut self) {
        self.interrupt();
        self.background.interrupt();
        self.background.prepared = None;
        self.reloading = true;
        self.log = None;
        self.fetching = false;
    }

    /// Reads ahead are here. It was understood when it was put aside.
    pub fn supply_pending(&mut self, bus: &Bus, messages: Vec<(u64, Option<RawMessage>)>) {
        self.fetching = false;
        let Some(log) = &mut self.log else { return };
        for (sequence, raw) in messages {
            log.supply_record(sequence, raw.and_then(|raw| raw.read(bus.limits.max_body_bytes).ok()));
        }
    }

    /// Returns the answers to hand over to the next owner; none if there are no answers.
    pub fn to_handover(&self) -> Option<AgentHandover> {
        let (decided, answered) = (self.log.as_ref()?.state.decided, self.save_answers());
        (!answered.is_empty()).then_some(AgentHandover { decided, answers: answered })
    }

    /// Returns the model answers for decisions that are not committed yet.
    fn save_answers(&self) -> LaneAnswers {
        LaneAnswers { answers: self.completions.save(self.deciding), work_answers: self.background.save() }
    }

    /// Returns the snapshot to save, if anything changed; none if it might depend on messages that this build does not
    /// understand.
    pub fn snapshot(&mut self, log: Uuid) -> Option<Snapshot> {
        let read = self.log.as_ref().map_or(0, |log| log.read);
        if self.parked.as_ref().is_some_and(|parked| parked.sequence <= read) {
            return None;
        }
        let answered = self.completions.is_unsaved() || self.background.completions.is_unsaved();
        let snapshot = self.log.as_ref().filter(|_| self.dirty || answered)?.snapshot(log);
        self.dirty = false;
        let LaneAnswers { answers, work_answers } = self.save_answers();
        Some(Snapshot { answers, work_answers, ..snapshot })
    }
}

/// The lane that a decision is of.
fn lane_of(record: &Record) -> AgentLane {
    let is_work = AgentDecision::of(&record.body).is_some_and(|decision| decision.work_input != 0);
    if is_work { AgentLane::Background } else { AgentLane::Foreground }
}
