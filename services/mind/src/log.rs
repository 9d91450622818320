//! The order in which the log is folded.
//!
//! A decision at sequence 60 with cursor 40 was made by an agent that knew nothing after 40, although an input may
//! stand at 50. So inputs and facts wait until a decision's cursor passes them, and only then become part of the
//! state; what no cursor has passed is what is left to decide on.
//!
//! An order to stop does not wait behind what was said before it: its decision names it and leaves the cursor where it is
//! ([`overtaking`]). What is worked on in the background is decided on beside all of that ([`working`]).
//!
//! What is observed for the sake of a decision is kept apart from what stands ([`Base`]): as long as the decision is not
//! in the log, another one may take its place, and a snapshot must hold no more than what stands.

mod joining;
mod overtaking;
mod working;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_events::{hash_chain::HashChain, personal::Whose, record::Record};
use kairo_proto::{
    About, Body,
    about::{Process, Tool},
    v1::{AgentDecision, Completion, GivenUpCall},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::overtaking::Order;
pub use self::working::ReadyWork;
use self::working::{is_left_for_work, pass};
use super::state::AgentState;

/// Of what lies ahead of an agent in memory, so much is kept whole; of the rest only where it stands, to be read when its
/// turn comes.
pub const HELD: usize = 256;

/// An agent's state and what lies ahead of it.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// With everything up to `observed`.
    pub state: Arc<AgentState>,
    /// How far the log was read.
    pub read: u64,
    /// The id of what was read last, if that could be read.
    last: Option<Uuid>,
    /// The last sequence that was observed; ahead of the cursor when what came after it needed no decision.
    pub observed: u64,
    ahead: VecDeque<Ahead>,
    /// Of what is ahead, so much is kept whole; none for all of it, which is what folding needs.
    held: Option<usize>,
    /// What stood before the input was observed that is being decided on.
    base: Option<Base>,
    /// Decisions in a row that were on orders that overtook.
    overtaken: u32,
    /// Answers were paid for that are of use if nothing behind this joins the input.
    joined: Option<u64>,
    /// The orders to forget somebody that were known when the log was begun to be read, so that nothing of them was; none where
    /// whatever is read is taken as it is.
    forgotten: Option<BTreeSet<Uuid>>,
    /// What ties the next decision to what stands before it, for whoever writes decisions: folding needs none of it, so whoever
    /// brings messages takes them in here as well.
    pub chain: HashChain,
}

/// Something that no decision has passed.
#[derive(Clone, Debug)]
struct Ahead {
    sequence: u64,
    /// None for what is to be read when it is needed.
    record: Option<Record>,
    /// The user whose it is, where that is known: of what a snapshot says is ahead, it is not.
    user: Option<Arc<str>>,
}

impl Ahead {
    fn order(&self) -> Option<Order<'_>> {
        overtaking::order(&self.record.as_ref()?.body)
    }
}

#[derive(Clone, Debug)]
struct Base {
    state: Arc<AgentState>,
    observed: u64,
    /// The input that is being decided on: the first that wants a decision, the last that joined it, or an order.
    input: u64,
    /// Whether that is an order that overtakes what is ahead.
    overtakes: bool,
}

/// An input to decide on.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub record: Box<Record>,
    /// Everything up to here is known, and this input. It stands further ahead where it overtakes others.
    pub cursor: u64,
    /// Whether it is the work lane's, whatever of the foreground stands before it.
    pub is_work: bool,
}

impl From<Record> for Input {
    fn from(record: Record) -> Self {
        Self { cursor: record.sequence, record: Box::new(record), is_work: false }
    }
}

/// What became of a record that was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It lies ahead now, or was known.
    Ahead,
    /// It decides on the input at this sequence.
    Decided(u64),
    /// It decides nothing but counts for the guard.
    Guarded,
}

/// What is next.
#[derive(Clone, Debug, PartialEq)]
pub enum Ready {
    /// This wants a decision.
    Input(Input),
    /// What stands at these sequences is to be read first: see [`Log::supply`].
    Missing(Vec<u64>),
}

/// What stands of an agent, from which the log is read on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub version: u32,
    /// The log it is of.
    pub log: Uuid,
    /// Everything up to here was read: it is part of the state, or among what is ahead.
    pub through: u64,
    /// The id of what stands there; another one there, and the log was restored to what it was before.
    pub last: Option<Uuid>,
    pub observed: u64,
    pub state: Arc<AgentState>,
    /// Sequences of what no decision has passed.
    pub ahead: Vec<u64>,
    /// Empty where nobody wrote decisions.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub chain: HashChain,
    /// What models have answered for the next decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// The same, for the next one of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_answers: Option<Answers>,
    /// The orders to forget somebody of whom nothing is in it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forgotten: BTreeSet<Uuid>,
}

/// What models have answered for a decision that does not stand yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// The input it is on.
    pub input: u64,
    pub completions: Vec<Completion>,
    /// Calls that were given up and stand in no decision yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUpCall>,
}

/// Folding changed: snapshots of other versions are passed over and the log is read from its beginning.
pub const SNAPSHOT_VERSION: u32 = 13;

fn is_empty(chain: &HashChain) -> bool {
    *chain == HashChain::default()
}

/// What was read does not fit what was observed: somebody decided otherwise, so the state must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diverged;

impl Log {
    /// Goes on from a snapshot; `None` when it is of another version or another log.
    pub fn resume(snapshot: Snapshot, log: Uuid) -> Option<Self> {
        (snapshot.version == SNAPSHOT_VERSION && snapshot.log == log).then(|| Self {
            state: snapshot.state,
            read: snapshot.through,
            last: snapshot.last,
            observed: snapshot.observed,
            ahead: snapshot.ahead.into_iter().map(|sequence| Ahead { sequence, record: None, user: None }).collect(),
            held: None,
            base: None,
            overtaken: 0,
            joined: snapshot.answers.filter(|it| !it.completions.is_empty()).map(|answers| answers.input),
            forgotten: Some(snapshot.forgotten),
            chain: snapshot.chain,
        })
    }

    /// One that is read from its beginning by somebody for whom what is forgotten by these orders is not there any more. Where
    /// another one comes, it does not fit: what was read before may be of somebody who is forgotten.
    pub fn without(forgotten: BTreeSet<Uuid>) -> Self {
        Self { forgotten: Some(forgotten), ..Self::default() }
    }

    /// Whether somebody is forgotten of whom something may be known here.
    pub fn forgets(&self, record: &Record) -> bool {
        let is_new = || self.forgotten.as_ref().is_some_and(|known| !known.contains(&record.envelope.id));
        matches!(record.body, Body::AgentForgotten(_)) && record.sequence > self.observed && is_new()
    }

    /// What stands, whatever is being decided on.
    pub fn snapshot(&self, log: Uuid) -> Snapshot {
        let (state, observed) = match &self.base {
            Some(base) => (base.state.clone(), base.observed),
            None => (self.state.clone(), self.observed),
        };
        let ahead = self.ahead.iter().map(|ahead| ahead.sequence).collect();
        let (through, last) = (self.read, self.last);
        let (version, answers, work_answers) = (SNAPSHOT_VERSION, None, None);
        let forgotten = self.forgotten.clone().unwrap_or_default();
        let chain = self.chain.clone();
        Snapshot { version, log, through, last, observed, state, ahead, chain, answers, work_answers, forgotten }
    }

    /// Takes in the next record of the agent's subjects.
    pub fn push(&mut self, record: Record) -> Result<Pushed, Diverged> {
        if self.forgets(&record) {
            return Err(Diverged);
        }
        let known = record.sequence <= self.read;
        if !known {
            (self.read, self.last) = (record.sequence, Some(record.envelope.id));
        }
        let Body::AgentDecision(decision) = &record.body else {
            if !known && record.sequence > self.observed {
                self.keep(record);
            }
            return Ok(Pushed::Ahead);
        };
        if record.sequence <= self.state.decided {
            return Ok(Pushed::Ahead);
        }
        // Every decision goes beyond the one before it or takes an order out of what is ahead, so this is a copy of one. It
        // decides nothing, but the guard counts it.
        let overtakes = decision.overtaking != 0;
        if !self.is_new(record.sequence, decision) {
            self.guarded_by(record.sequence);
            return Ok(Pushed::Guarded);
        }
        if decision.cursor < self.observed || self.base.as_ref().is_some_and(|base| base.overtakes) {
            self.go_back(decision.cursor)?;
        }
        let observed = (self.standing(), self.observed);
        let passed = pass(&mut self.state, &self.ahead, observed, decision)?;
        self.remove(&passed);
        if overtakes {
            let order = self.at(decision.overtaking).and_then(|at| self.ahead.remove(at)).ok_or(Diverged)?;
            Arc::make_mut(&mut self.state).observe(order.record.as_ref().ok_or(Diverged)?);
        }
        if decision.work_input == 0 {
            self.overtaken = if overtakes { self.overtaken.saturating_add(1) } else { 0 };
        }
        self.base = None;
        self.observed = decision.cursor;
        self.joined = self.joined.filter(|input| *input > decision.cursor);
        Arc::make_mut(&mut self.state).commit(&record, decision);
        let decided_on = decision.decided_on();
        self.leave_to_work(record)?;
        Ok(Pushed::Decided(decided_on))
    }

    /// Whether the decision at this sequence is not known yet, nor a copy of one.
    pub fn is_new(&self, sequence: u64, decision: &AgentDecision) -> bool {
        let goes_on = match (decision.work_input, decision.overtaking) {
            (0, 0) => decision.cursor > self.state.cursor,
            (0, order) => self.is_ahead(order),
            (input, _) => self.is_ahead(input),
        };
        sequence > self.state.decided && goes_on
    }

    /// The state that a decision was made in, and what it was made on; none if that is not at hand.
    pub fn before(&self, decision: &AgentDecision) -> Option<(Arc<AgentState>, Input)> {
        let (mut state, observed) = match &self.base {
            Some(base) => (base.state.clone(), base.observed),
            None => (self.state.clone(), self.observed),
        };
        let input = self.ahead.get(self.at(decision.decided_on())?)?.record.clone()?;
        pass(&mut state, &self.ahead, (observed, observed), decision).ok()?;
        if decision.overtaking != 0 {
            Arc::make_mut(&mut state).observe(&input);
        }
        let is_work = decision.work_input != 0;
        Some((state, Input { record: Box::new(input), cursor: decision.cursor, is_work }))
    }

    fn keep(&mut self, record: Record) {
        let (sequence, is_order) = (record.sequence, overtaking::order(&record.body).is_some());
        // Orders may overtake what is before them, so they are at hand wherever they stand.
        let orders = || self.ahead.iter().filter(|ahead| ahead.order().is_some()).count();
        let has_room = |held| self.ahead.len() < held || is_order && orders() < held;
        let user = user_of(&record);
        let record = self.held.is_none_or(has_room).then_some(record);
        self.put(Ahead { sequence, record, user });
    }

    /// Where what stands at this sequence is among what is ahead.
    fn at(&self, sequence: u64) -> Option<usize> {
        self.ahead.binary_search_by_key(&sequence, |ahead| ahead.sequence).ok()
    }

    /// Whether what stands at this sequence was read and is not dealt with.
    pub fn is_ahead(&self, sequence: u64) -> bool {
        self.at(sequence).is_some()
    }

    /// Takes in the decision that this replica has just committed. What was written before it is still to be read.
    pub fn decided(&mut self, record: Record) -> Result<Pushed, Diverged> {
        let (read, last) = (self.read, self.last);
        let outcome = self.push(record);
        (self.read, self.last) = (read, last);
        outcome
    }

    /// Somebody decided on less than was observed here.
    fn go_back(&mut self, cursor: u64) -> Result<(), Diverged> {
        let base = self.base.take().filter(|base| cursor >= base.observed).ok_or(Diverged)?;
        (self.state, self.observed) = (base.state, base.observed);
        Ok(())
    }

    /// Something unreadable stood on one of the agent's subjects. On the decision subject it still moves the guard.
    pub fn pass_over(&mut self, sequence: u64, on_decisions: bool) {
        if sequence > self.read {
            (self.read, self.last) = (sequence, None);
        }
        if on_decisions {
            self.guarded_by(sequence);
        }
    }

    fn guarded_by(&mut self, sequence: u64) {
        let states = [Some(&mut self.state), self.base.as_mut().map(|base| &mut base.state)];
        for state in states.into_iter().flatten() {
            if state.decided < sequence {
                Arc::make_mut(state).decided = sequence;
            }
        }
    }

    /// Observes up to the next input that wants a decision.
    pub fn next_input(&mut self) -> Option<Ready> {
        loop {
            if let Some(order) = self.overtake() {
                return Some(Ready::Input(order));
            }
            if let Some(missing) = self.missing_work() {
                return Some(missing);
            }
            let at = self.first_of_foreground();
            // What the tail has yet to bring may stand before what this replica wrote itself.
            let next = self.ahead.get(at).filter(|next| next.sequence <= self.read)?;
            let Some(record) = &next.record else { return Some(self.missing()) };
            if next.sequence > self.observed && is_left_for_work(&self.state, record) {
                self.observed = next.sequence;
                continue;
            }
            if next.sequence > self.observed {
                // Whatever may want a decision is observed on a state of its own.
                let before = (!is_mere_fact(&record.body)).then(|| (self.state.clone(), self.observed));
                Arc::make_mut(&mut self.state).observe(record);
                self.observed = next.sequence;
                let wanted = before.filter(|_| self.state.wants(next.sequence));
                let base = |(state, observed)| Base { state, observed, input: next.sequence, overtakes: false };
                self.base = wanted.map(base);
                if self.base.is_some() {
                    continue;
                }
            }
            if let Some(base) = &self.base {
                let input = base.input;
                return self.join_messages(input);
            }
            self.ahead.remove(at);
        }
    }

    /// Models have answered for the sake of this input: until it is decided on, nothing more joins it, which would make
    /// the answers useless.
    pub fn join_no_more(&mut self, input: u64) {
        self.joined = Some(input);
    }

    /// From here on, no more than this is kept whole of what lies ahead.
    pub fn hold_at_most(&mut self, held: usize) {
        self.held = Some(held);
    }

    /// The first of what is to be read.
    fn missing(&self) -> Ready {
        let held = self.held.unwrap_or(usize::MAX);
        let ahead = self.ahead.iter().take(held);
        Ready::Missing(ahead.filter(|ahead| ahead.record.is_none()).map(|ahead| ahead.sequence).collect())
    }

    /// Everything that is to be read: a decision of somebody else may pass any of it.
    pub fn all_missing(&self) -> Vec<u64> {
        self.ahead.iter().filter(|ahead| ahead.record.is_none()).map(|ahead| ahead.sequence).collect()
    }

    /// What is to be read and supplied before this can be taken in: a decision may pass what is not here yet.
    pub fn lacking(&self, record: &Record) -> Vec<u64> {
        let Body::AgentDecision(decision) = &record.body else { return Vec::new() };
        if record.sequence <= self.state.decided {
            return Vec::new();
        }
        let is_passed = |at: u64| at <= decision.cursor.max(decision.work_input) || at == decision.overtaking;
        let passed = self.ahead.iter().filter(|ahead| is_passed(ahead.sequence));
        passed.filter(|ahead| ahead.record.is_none()).map(|ahead| ahead.sequence).collect()
    }

    /// Takes in what was read of what was missing; none for what nobody can read.
    pub fn supply(&mut self, sequence: u64, record: Option<Record>) {
        if let Some(at) = self.at(sequence) {
            match (record, self.ahead.get_mut(at)) {
                (Some(record), Some(ahead)) => {
                    ahead.user = user_of(&record);
                    ahead.record = Some(record);
                }
                _ => _ = self.ahead.remove(at),
            }
        }
    }

    /// Gives back the room that is left of what was there before: a copy takes none that is empty, in maps several KiB.
    pub fn shrink(&mut self) {
        self.state = Arc::new((*self.state).clone());
        self.ahead.shrink_to_fit();
    }

    /// How much was read that no decision has passed.
    pub fn waiting(&self) -> usize {
        self.ahead.len()
    }

    /// The same by user, as far as it is known whose it is.
    pub fn waiting_by_user(&self) -> BTreeMap<Arc<str>, usize> {
        let mut waiting = BTreeMap::new();
        for user in self.ahead.iter().filter_map(|ahead| ahead.user.as_ref()) {
            *waiting.entry(user.clone()).or_default() += 1;
        }
        waiting
    }
}

/// The user who says something, or of whom it is.
fn user_of(record: &Record) -> Option<Arc<str>> {
    match Whose::of(&record.body) {
        Whose::Of(user) => Some(user.into()),
        Whose::Nobodys | Whose::Each(_) => None,
    }
}

/// What never makes it anybody's move.
fn is_mere_fact(body: &Body) -> bool {
    match body.about() {
        About::Tool(Tool::Invoke(_) | Tool::Order(_) | Tool::Progress(_)) => true,
        About::Process(Process::Spawned(_) | Process::Progress(_) | Process::Canceled(_) | Process::Reply(_)) => true,
        About::Tool(Tool::Result(_)) | About::Process(Process::Exited(_)) => false,
        About::User(_) | About::Agent(_) | About::Decision(_) | About::Decided(_) | About::Outside(_) => false,
        About::System(_) | About::Live(_) => false,
    }
}
