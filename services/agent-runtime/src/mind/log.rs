//! The order in which the log is folded.
//!
//! A decision at sequence 60 with cursor 40 was made by an agent that knew nothing after 40, although an input may
//! stand at 50. So inputs and facts wait until a decision's cursor passes them, and only then become part of the
//! state; what no cursor has passed is what is left to decide on.

use std::collections::VecDeque;

use kairo_core::record::Record;
use kairo_proto::Body;
use serde::{Deserialize, Serialize};

use super::state::{AgentState, Cause, Interjection};

/// An agent's state and what lies ahead of it.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub state: AgentState,
    /// How far the log was read.
    pub read: u64,
    /// The last sequence that was observed; ahead of the cursor when what came after it needed no decision.
    pub observed: u64,
    ahead: VecDeque<Record>,
}

/// A state at rest, from which the log is read on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub version: u32,
    pub state: AgentState,
}

/// Folding changed: snapshots of other versions are passed over and the log is read from its beginning.
pub const SNAPSHOT_VERSION: u32 = 5;

/// What was read does not fit what was observed: somebody decided otherwise, so the state must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diverged;

impl Log {
    /// Goes on from a snapshot; `None` when it is of another version.
    pub fn resume(snapshot: Snapshot) -> Option<Self> {
        let state = (snapshot.version == SNAPSHOT_VERSION).then_some(snapshot.state)?;
        Some(Self { read: state.cursor, observed: state.cursor, state, ahead: VecDeque::new() })
    }

    /// Takes in the next record of the agent's subjects.
    pub fn push(&mut self, record: Record) -> Result<(), Diverged> {
        self.read = self.read.max(record.sequence);
        if record.sequence <= self.observed && !matches!(record.body, Body::AgentDecision(_)) {
            return Ok(());
        }
        let Body::AgentDecision(decision) = &record.body else {
            self.ahead.push_back(record);
            return Ok(());
        };
        if record.sequence <= self.state.decided {
            return Ok(());
        }
        // Every decision goes beyond the one before it, so this is a copy of one. It decides nothing, but the guard
        // counts it.
        if decision.cursor <= self.state.cursor {
            self.state.decided = record.sequence;
            return Ok(());
        }
        if decision.cursor < self.observed {
            return Err(Diverged);
        }
        while let Some(passed) = self.ahead.pop_front_if(|next| next.sequence <= decision.cursor) {
            self.state.observe(&passed);
        }
        self.observed = decision.cursor;
        self.state.commit(&record, decision);
        Ok(())
    }

    /// Takes in the decision this replica has just committed on the input it observed last. What was written in
    /// between is still to be read, if it can be that anything was.
    pub fn decided(&mut self, record: Record) -> Result<(), Diverged> {
        let read = if record.sequence == self.read + 1 { record.sequence } else { self.read };
        let outcome = self.push(record);
        self.read = read;
        outcome
    }

    /// Something unreadable stood on one of the agent's subjects. On the decision subject it still moves the guard.
    pub fn pass_over(&mut self, sequence: u64, on_decisions: bool) {
        self.read = self.read.max(sequence);
        if on_decisions {
            self.state.decided = self.state.decided.max(sequence);
        }
    }

    /// Observes up to the next input that wants a decision, and returns it.
    pub fn next_input(&mut self) -> Option<Record> {
        loop {
            let next = self.ahead.front()?;
            if next.sequence > self.observed {
                self.observed = next.sequence;
                self.state.observe(next);
            }
            if self.state.wants(next.sequence) {
                self.join_messages();
                return self.ahead.front().cloned();
            }
            self.ahead.pop_front();
        }
    }

    /// Where the agent wants that, goes on from the message at the front to the last one of its thread, as long as
    /// nothing else between them wants a decision: they are decided on together.
    fn join_messages(&mut self) {
        let policy = self.state.profile.as_ref().map(|profile| profile.interjection).unwrap_or_default();
        if policy == Interjection::Order {
            return;
        }
        while let Some(distance) = self.next_of_thread() {
            for _ in 0..distance {
                self.ahead.pop_front();
                if let Some(next) = self.ahead.front().filter(|next| next.sequence > self.observed) {
                    self.observed = next.sequence;
                    self.state.observe(next);
                }
            }
        }
    }

    /// How far ahead the next message of the same thread and user is, if only facts stand before it.
    fn next_of_thread(&self) -> Option<usize> {
        let thread_of = |record: &Record| match &record.body {
            Body::AgentMessage(message) => Some((AgentState::thread_of(record, message), message.user.clone())),
            _ => None,
        };
        let front = self.ahead.front()?;
        // One that is refused is answered by itself.
        self.state.due(front.sequence).filter(|(_, turn)| turn.cause == Cause::Message)?;
        let thread = thread_of(front)?;
        let behind = self.ahead.iter().enumerate().skip(1);
        let passed_over = |body: &Body| match body {
            Body::AgentMessage(message) => self.state.has_heard(message),
            body => is_mere_fact(body),
        };
        let (distance, next) = behind.into_iter().find(|(_, record)| !passed_over(&record.body))?;
        (thread_of(next)? == thread).then_some(distance)
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot { version: SNAPSHOT_VERSION, state: self.state.clone() }
    }

    /// Whether the last decision is the last thing that was read, with nothing between it and what was read before.
    pub fn ends_with_decision(&self) -> bool {
        self.read == self.state.decided
    }

    /// Whether the state is exactly that of the last decision, with nothing observed since: what may be snapshotted.
    pub fn at_rest(&self) -> bool {
        self.observed == self.state.cursor
    }
}

/// What never makes it anybody's move.
fn is_mere_fact(body: &Body) -> bool {
    matches!(
        body,
        Body::ToolInvoke(_)
            | Body::ToolProgress(_)
            | Body::ProcessSpawned(_)
            | Body::ProcessProgress(_)
            | Body::ProcessCanceled(_)
    )
}
