//! The order in which the log is applied.
//!
//! A decision at sequence 60 with cursor 40 was made by an agent that knew nothing after 40, although an input may
//! stand at 50. So inputs and facts wait until a decision's cursor passes them, and only then become part of the
//! state. Records that no cursor has passed are pending.
//!
//! An order to stop does not wait behind earlier messages: its decision names it and leaves the cursor where it is
//! ([`order_overtaking`]). Background work is decided on independently of the foreground ([`background_lane`]).
//!
//! State observed while a decision is being made is kept apart from the committed state ([`CommittedState`]): until the decision
//! is in the log, another one may take its place, and a snapshot must hold committed state only.

mod background_lane;
mod message_joining;
mod order_overtaking;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_events::{hash_chain::HashChain, personal::ContentOwners, record::Record};
use kairo_proto::{
    About, Body,
    about::{Process, Tool},
    v1::{AgentDecision, Completion, GivenUpCall},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::background_lane::NextBackgroundInput;
use self::background_lane::{apply_passed, is_left_for_background};
use self::order_overtaking::IncomingOrder;
use super::state::AgentState;

/// Pending records per agent that are kept whole in memory. Of the rest only the sequence is kept; they are read when
/// their turn comes.
pub const HELD: usize = 256;

/// An agent's state and its pending records.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The state with everything up to `observed` applied.
    pub state: Arc<AgentState>,
    /// Sequence of the last record read from the log.
    pub read: u64,
    /// The id of the last record read, if it could be read.
    last: Option<Uuid>,
    /// The last sequence observed; beyond the cursor when the records after the cursor needed no decision.
    pub observed: u64,
    pending: VecDeque<PendingRecord>,
    /// Most pending records kept whole; `None` keeps all of them, which applying the log needs.
    held: Option<usize>,
    /// The committed state from before the input being decided on was observed.
    base: Option<CommittedState>,
    /// Consecutive decisions on orders that overtook other inputs.
    overtaken: u32,
    /// The input whose model answers are already paid for; they are usable only if no later message joins it.
    joined: Option<u64>,
    /// Orders to forget a user that were known before reading of the log began, so that none of those users' data was
    /// read; `None` where records are taken as they are.
    forgotten: Option<BTreeSet<Uuid>>,
    /// Ties the next decision to the records before it, for replicas that write decisions. Applying the log does not
    /// need it, so callers that deliver messages must add them here as well.
    pub chain: HashChain,
}

/// A pending record: no decision has passed it.
#[derive(Clone, Debug)]
struct PendingRecord {
    sequence: u64,
    /// `None` for a record that is read when it is needed.
    record: Option<Record>,
    /// The user the record belongs to, if known; unknown for records that a snapshot lists as pending.
    user: Option<Arc<str>>,
}

impl PendingRecord {
    fn as_order(&self) -> Option<IncomingOrder<'_>> {
        order_overtaking::order_in(&self.record.as_ref()?.body)
    }
}

#[derive(Clone, Debug)]
struct CommittedState {
    state: Arc<AgentState>,
    observed: u64,
    /// The input being decided on: the first that needs a decision, the last that joined it, or an order.
    input: u64,
    /// True if the input is an order that overtakes pending records.
    overtakes: bool,
}

/// An input to decide on.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionInput {
    pub record: Box<Record>,
    /// Everything up to this sequence is known, and the input itself, which lies beyond it when it overtakes others.
    pub cursor: u64,
    /// True if the input belongs to the work lane, regardless of foreground inputs before it.
    pub is_work: bool,
}

impl From<Record> for DecisionInput {
    fn from(record: Record) -> Self {
        Self { cursor: record.sequence, record: Box::new(record), is_work: false }
    }
}

/// The outcome of [`Log::push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushOutcome {
    /// The record is pending now, or was known already.
    Pending,
    /// The record is a decision on the input at this sequence.
    Decided(u64),
    /// The record is a copy of a decision: it decides nothing but counts for the guard.
    Guarded,
}

/// The next thing to do with the log.
#[derive(Clone, Debug, PartialEq)]
pub enum NextInput {
    /// This input needs a decision.
    Input(DecisionInput),
    /// The records at these sequences must be read first: see [`Log::supply_record`].
    Missing(Vec<u64>),
}

/// The committed state of an agent, from which reading of the log resumes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub version: u32,
    /// The id of the log that the snapshot was taken of.
    pub log: Uuid,
    /// Everything up to this sequence was read: it is part of the state, or pending.
    pub through: u64,
    /// The id of the record at `through`; a different id there means that the log was restored to an earlier point.
    pub last: Option<Uuid>,
    pub observed: u64,
    pub state: Arc<AgentState>,
    /// Sequences of the pending records.
    pub ahead: Vec<u64>,
    /// Empty if no decisions were written.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub chain: HashChain,
    /// Model answers collected so far for the next decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<CollectedCompletions>,
    /// Model answers collected so far for the next decision of the work lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_answers: Option<CollectedCompletions>,
    /// Orders to forget a user that the snapshot already honors: it holds nothing of those users.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forgotten: BTreeSet<Uuid>,
}

/// Model answers collected for a decision that is not in the log yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectedCompletions {
    /// Sequence of the input that the decision is on.
    pub input: u64,
    pub completions: Vec<Completion>,
    /// Calls that were given up and are recorded in no decision yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUpCall>,
}

/// Version of the state's format: snapshots of other versions are ignored and the log is read from its beginning.
pub const SNAPSHOT_VERSION: u32 = 13;

fn is_empty(chain: &HashChain) -> bool {
    *chain == HashChain::default()
}

/// A record that was read contradicts what was observed: another replica decided differently, so the state must be
/// rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divergence;

impl Log {
    /// Resumes from a snapshot; `None` if it is of another version or another log.
    pub fn from_snapshot(snapshot: Snapshot, log: Uuid) -> Option<Self> {
        (snapshot.version == SNAPSHOT_VERSION && snapshot.log == log).then(|| Self {
            state: snapshot.state,
            read: snapshot.through,
            last: snapshot.last,
            observed: snapshot.observed,
            pending: snapshot
                .ahead
                .into_iter()
                .map(|sequence| PendingRecord { sequence, record: None, user: None })
                .collect(),
            held: None,
            base: None,
            overtaken: 0,
            joined: snapshot.answers.filter(|it| !it.completions.is_empty()).map(|answers| answers.input),
            forgotten: Some(snapshot.forgotten),
            chain: snapshot.chain,
        })
    }

    /// Builds a log that is read from its beginning by a reader who no longer sees the data that these orders forget.
    /// Any other such order diverges, since records read before it may be of a forgotten user.
    pub fn without_forgotten(forgotten: BTreeSet<Uuid>) -> Self {
        Self { forgotten: Some(forgotten), ..Self::default() }
    }

    /// Returns true if the record orders to forget a user whose data may be in the state.
    pub fn requires_forgetting(&self, record: &Record) -> bool {
        let is_new = || self.forgotten.as_ref().is_some_and(|known| !known.contains(&record.envelope.id));
        matches!(record.body, Body::AgentForgotten(_)) && record.sequence > self.observed && is_new()
    }

    /// Takes a snapshot of the committed state, leaving out the decision in progress.
    pub fn snapshot(&self, log: Uuid) -> Snapshot {
        let (state, observed) = match &self.base {
            Some(base) => (base.state.clone(), base.observed),
            None => (self.state.clone(), self.observed),
        };
        let ahead = self.pending.iter().map(|ahead| ahead.sequence).collect();
        let through = self.read;
        let last = self.last;
        let version = SNAPSHOT_VERSION;
        let answers = None;
        let work_answers = None;
        let forgotten = self.forgotten.clone().unwrap_or_default();
        let chain = self.chain.clone();
        Snapshot { version, log, through, last, observed, state, ahead, chain, answers, work_answers, forgotten }
    }

    /// Takes in the next record of the agent's subjects.
    pub fn push(&mut self, record: Record) -> Result<PushOutcome, Divergence> {
        if self.requires_forgetting(&record) {
            return Err(Divergence);
        }
        let known = record.sequence <= self.read;
        if !known {
            (self.read, self.last) = (record.sequence, Some(record.envelope.id));
        }
        let Body::AgentDecision(decision) = &record.body else {
            if !known && record.sequence > self.observed {
                self.push_pending(record);
            }
            return Ok(PushOutcome::Pending);
        };
        if record.sequence <= self.state.decided {
            return Ok(PushOutcome::Pending);
        }
        // Every decision goes beyond the one before it or takes an order out of what is ahead, so this is a copy of one. It
        // decides nothing, but the guard counts it.
        let overtakes = decision.overtaking != 0;
        if !self.is_new(record.sequence, decision) {
            self.advance_guard(record.sequence);
            return Ok(PushOutcome::Guarded);
        }
        if decision.cursor < self.observed || self.base.as_ref().is_some_and(|base| base.overtakes) {
            self.restore_committed(decision.cursor)?;
        }
        let observed = (self.committed_position(), self.observed);
        let passed = apply_passed(&mut self.state, &self.pending, observed, decision)?;
        self.remove_pending(&passed);
        if overtakes {
            let order =
                self.pending_index(decision.overtaking).and_then(|at| self.pending.remove(at)).ok_or(Divergence)?;
            Arc::make_mut(&mut self.state).apply_record(order.record.as_ref().ok_or(Divergence)?);
        }
        if decision.work_input == 0 {
            self.overtaken = if overtakes { self.overtaken.saturating_add(1) } else { 0 };
        }
        self.base = None;
        self.observed = decision.cursor;
        self.joined = self.joined.filter(|input| *input > decision.cursor);
        Arc::make_mut(&mut self.state).apply_decision(&record, decision);
        let decided_on = decision.decided_on();
        self.settle_background(record)?;
        Ok(PushOutcome::Decided(decided_on))
    }

    /// Returns true if the decision at this sequence is neither known yet nor a copy of a known one.
    pub fn is_new(&self, sequence: u64, decision: &AgentDecision) -> bool {
        let goes_on = match (decision.work_input, decision.overtaking) {
            (0, 0) => decision.cursor > self.state.cursor,
            (0, order) => self.is_pending(order),
            (input, _) => self.is_pending(input),
        };
        sequence > self.state.decided && goes_on
    }

    /// Returns the state in which a decision was made and its input; `None` if they are not in memory.
    pub fn state_before(&self, decision: &AgentDecision) -> Option<(Arc<AgentState>, DecisionInput)> {
        let (mut state, observed) = match &self.base {
            Some(base) => (base.state.clone(), base.observed),
            None => (self.state.clone(), self.observed),
        };
        let input = self.pending.get(self.pending_index(decision.decided_on())?)?.record.clone()?;
        apply_passed(&mut state, &self.pending, (observed, observed), decision).ok()?;
        if decision.overtaking != 0 {
            Arc::make_mut(&mut state).apply_record(&input);
        }
        let is_work = decision.work_input != 0;
        Some((state, DecisionInput { record: Box::new(input), cursor: decision.cursor, is_work }))
    }

    fn push_pending(&mut self, record: Record) {
        let sequence = record.sequence;
        let is_order = order_overtaking::order_in(&record.body).is_some();
        // Orders may overtake what is before them, so they are at hand wherever they stand.
        let orders = || self.pending.iter().filter(|ahead| ahead.as_order().is_some()).count();
        let has_room = |held| self.pending.len() < held || is_order && orders() < held;
        let user = user_of(&record);
        let record = self.held.is_none_or(has_room).then_some(record);
        self.insert_pending(PendingRecord { sequence, record, user });
    }

    /// Returns the index of the record at this sequence among the pending records.
    fn pending_index(&self, sequence: u64) -> Option<usize> {
        self.pending.binary_search_by_key(&sequence, |ahead| ahead.sequence).ok()
    }

    /// Returns true if the record at this sequence was read and is still pending.
    pub fn is_pending(&self, sequence: u64) -> bool {
        self.pending_index(sequence).is_some()
    }

    /// Takes in the decision that this replica has just committed. Records written before it are still to be read.
    pub fn push_own_decision(&mut self, record: Record) -> Result<PushOutcome, Divergence> {
        let read = self.read;
        let last = self.last;
        let outcome = self.push(record);
        (self.read, self.last) = (read, last);
        outcome
    }

    /// Returns to the committed state after another replica decided on less than was observed here.
    fn restore_committed(&mut self, cursor: u64) -> Result<(), Divergence> {
        let base = self.base.take().filter(|base| cursor >= base.observed).ok_or(Divergence)?;
        (self.state, self.observed) = (base.state, base.observed);
        Ok(())
    }

    /// Something unreadable stood on one of the agent's subjects. On the decision subject it still moves the guard.
    pub fn skip_unreadable(&mut self, sequence: u64, on_decisions: bool) {
        if sequence > self.read {
            (self.read, self.last) = (sequence, None);
        }
        if on_decisions {
            self.advance_guard(sequence);
        }
    }

    fn advance_guard(&mut self, sequence: u64) {
        let states = [Some(&mut self.state), self.base.as_mut().map(|base| &mut base.state)];
        for state in states.into_iter().flatten() {
            if state.decided < sequence {
                Arc::make_mut(state).decided = sequence;
            }
        }
    }

    /// Observes up to the next input that wants a decision.
    pub fn next_input(&mut self) -> Option<NextInput> {
        loop {
            if let Some(order) = self.overtake_with_order() {
                return Some(NextInput::Input(order));
            }
            if let Some(missing) = self.missing_background() {
                return Some(missing);
            }
            let at = self.first_foreground_index();
            // What the tail has yet to bring may stand before what this replica wrote itself.
            let next = self.pending.get(at).filter(|next| next.sequence <= self.read)?;
            let Some(record) = &next.record else { return Some(self.next_missing()) };
            if next.sequence > self.observed && is_left_for_background(&self.state, record) {
                self.observed = next.sequence;
                continue;
            }
            if next.sequence > self.observed {
                // Whatever may want a decision is observed on a state of its own.
                let before = (!is_mere_fact(&record.body)).then(|| (self.state.clone(), self.observed));
                Arc::make_mut(&mut self.state).apply_record(record);
                self.observed = next.sequence;
                let wanted = before.filter(|_| self.state.needs_decision(next.sequence));
                let base =
                    |(state, observed)| CommittedState { state, observed, input: next.sequence, overtakes: false };
                self.base = wanted.map(base);
                if self.base.is_some() {
                    continue;
                }
            }
            if let Some(base) = &self.base {
                let input = base.input;
                return self.join_messages(input);
            }
            self.pending.remove(at);
        }
    }

    /// Models have answered for the sake of this input: until it is decided on, nothing more joins it, which would make
    /// the answers useless.
    pub fn stop_joining(&mut self, input: u64) {
        self.joined = Some(input);
    }

    /// From here on, no more than this is kept whole of what lies ahead.
    pub fn limit_held_records(&mut self, held: usize) {
        self.held = Some(held);
    }

    /// The first of what is to be read.
    fn next_missing(&self) -> NextInput {
        let held = self.held.unwrap_or(usize::MAX);
        let ahead = self.pending.iter().take(held);
        NextInput::Missing(ahead.filter(|ahead| ahead.record.is_none()).map(|ahead| ahead.sequence).collect())
    }

    /// Everything that is to be read: a decision of somebody else may pass any of it.
    pub fn missing_sequences(&self) -> Vec<u64> {
        self.pending.iter().filter(|ahead| ahead.record.is_none()).map(|ahead| ahead.sequence).collect()
    }

    /// Returns the sequences to read and supply before this record can be taken in: a decision may pass records that
    /// are not in memory.
    pub fn missing_for(&self, record: &Record) -> Vec<u64> {
        let Body::AgentDecision(decision) = &record.body else { return Vec::new() };
        if record.sequence <= self.state.decided {
            return Vec::new();
        }
        let is_passed = |at: u64| at <= decision.cursor.max(decision.work_input) || at == decision.overtaking;
        let passed = self.pending.iter().filter(|ahead| is_passed(ahead.sequence));
        passed.filter(|ahead| ahead.record.is_none()).map(|ahead| ahead.sequence).collect()
    }

    /// Takes in what was read of what was missing; none for what nobody can read.
    pub fn supply_record(&mut self, sequence: u64, record: Option<Record>) {
        if let Some(at) = self.pending_index(sequence) {
            match (record, self.pending.get_mut(at)) {
                (Some(record), Some(ahead)) => {
                    ahead.user = user_of(&record);
                    ahead.record = Some(record);
                }
                _ => _ = self.pending.remove(at),
            }
        }
    }

    /// Gives back the room that is left of what was there before: a copy takes none that is empty, in maps several KiB.
    pub fn shrink_to_fit(&mut self) {
        self.state = Arc::new((*self.state).clone());
        self.pending.shrink_to_fit();
    }

    /// Returns the number of pending records.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Returns the number of pending records by user, as far as their user is known.
    pub fn pending_by_user(&self) -> BTreeMap<Arc<str>, usize> {
        let mut waiting = BTreeMap::new();
        for user in self.pending.iter().filter_map(|ahead| ahead.user.as_ref()) {
            *waiting.entry(user.clone()).or_default() += 1;
        }
        waiting
    }
}

/// The user who says something, or of whom it is.
fn user_of(record: &Record) -> Option<Arc<str>> {
    match ContentOwners::from_body(&record.body) {
        ContentOwners::One(user) => Some(user.into()),
        ContentOwners::Nobody | ContentOwners::PerPart(_) => None,
    }
}

/// Returns true for records that never need a decision.
fn is_mere_fact(body: &Body) -> bool {
    match body.about() {
        About::Tool(Tool::Invoke(_) | Tool::Order(_) | Tool::Progress(_)) => true,
        About::Process(Process::Spawned(_) | Process::Progress(_) | Process::Canceled(_) | Process::Reply(_)) => true,
        About::Tool(Tool::Result(_)) | About::Process(Process::Exited(_)) => false,
        About::User(_) | About::Agent(_) | About::Decision(_) | About::Decided(_) | About::Outside(_) => false,
        About::System(_) | About::Live(_) => false,
    }
}
