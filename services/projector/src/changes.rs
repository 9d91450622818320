//! The rows that a stretch of the log changes: plain data, to be written in one transaction.
//!
//! The result must not depend on how often an event is delivered or how the log is cut into batches. So the first of
//! several deliveries counts, in here as in the database, except for fields where the newest wins.

mod chains;
mod consent;
mod inner_state;
mod memories;
mod tasks;
mod teams;
mod usage;

use std::collections::BTreeMap;

use bytes::Bytes;
use kairo_proto::words::{MessageRole, ThreadStatus};
use kairo_read_model::stored::{Json, Key, Text, Time};
use uuid::Uuid;

pub use chains::{Chain, ChainEnd, Step, StepAsked, StepBegun, StepEnd};
pub use consent::{Approval, Choice, Offer, Settled, Withdrawal};
pub use inner_state::StateChange;
pub use memories::{Memory, MemoryVersion};
pub use tasks::{Firing, Task, TaskState};
pub use teams::{Briefing, TeamState};
pub use usage::ModelCall;

/// Changes of all tables. Maps hold what may be told twice within a batch.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// The log's own messages.
    pub log: Vec<Logged>,
    pub events: Vec<Event>,
    /// By type.
    pub unknown: BTreeMap<Key, Unknown>,
    /// Newest wins.
    pub agents: BTreeMap<Key, Agent>,
    /// By agent; newest wins.
    pub teams: BTreeMap<Key, TeamState>,
    /// By the event that says so.
    pub briefings: BTreeMap<Uuid, Briefing>,
    pub threads: BTreeMap<(Key, Key), Thread>,
    /// The last event in each thread, by agent and thread; newest wins.
    pub touched: BTreeMap<(Key, Key), Touch>,
    /// Descriptions of threads, by agent and thread; the newest wins, here and in `thread_states`.
    pub described: BTreeMap<(Key, Key), Description>,
    pub thread_states: BTreeMap<(Key, Key), ThreadState>,
    /// By the sequence of the last message that tells of it.
    pub compacted: BTreeMap<(Key, Key), i64>,
    /// By event, as in the next two.
    pub messages: BTreeMap<Uuid, Message>,
    pub deliveries: BTreeMap<Uuid, Delivery>,
    /// The threads that messages were put into.
    pub placed: BTreeMap<Uuid, Placed>,
    pub actions: BTreeMap<Uuid, Action>,
    pub begun: BTreeMap<Uuid, Begun>,
    pub ended: BTreeMap<Uuid, Ended>,
    /// Answers to actions that were in doubt.
    pub late_answers: BTreeMap<Uuid, Ended>,
    /// Newest by its own clock wins, so that an old one told again is nothing new.
    pub progressed: BTreeMap<Uuid, Progress>,
    /// Actions that were asked to end.
    pub cancels: BTreeMap<Uuid, Cancel>,
    /// All of them: which one counts depends on when its action was in doubt.
    pub verdicts: Vec<Verdict>,
    pub spawned: BTreeMap<Uuid, Spawned>,
    /// Newest by its own clock wins, as above.
    pub advanced: BTreeMap<Uuid, Advance>,
    pub canceled: BTreeMap<Uuid, Canceled>,
    pub exited: BTreeMap<Uuid, Exited>,
    pub chains: BTreeMap<Uuid, Chain>,
    /// By chain and step, as in the next three.
    pub steps: BTreeMap<(Uuid, i32), Step>,
    pub steps_asked: BTreeMap<(Uuid, i32), StepAsked>,
    pub steps_begun: BTreeMap<(Uuid, i32), StepBegun>,
    pub steps_ended: BTreeMap<(Uuid, i32), StepEnd>,
    /// The ends of the tools of steps, by action; most actions are no steps.
    pub step_results: BTreeMap<Uuid, StepEnd>,
    pub chains_ended: BTreeMap<Uuid, ChainEnd>,
    pub tasks: BTreeMap<Uuid, Task>,
    /// By the event that says so.
    pub firings: BTreeMap<Uuid, Firing>,
    /// Newest wins.
    pub task_states: BTreeMap<Uuid, TaskState>,
    /// By agent and memory; newest wins.
    pub memories: BTreeMap<(Key, Uuid), Memory>,
    /// By the event that says so.
    pub memory_versions: BTreeMap<Uuid, MemoryVersion>,
    /// By the event that says so.
    pub inner_state_changes: BTreeMap<Uuid, StateChange>,
    /// By agent, user and key; newest wins.
    pub inner_state: BTreeMap<(Key, Key, Key), StateChange>,
    /// By decision, and which of its calls.
    pub model_calls: BTreeMap<(Uuid, i32), ModelCall>,
    /// With which API key something was sent, by its correlation.
    pub entries: BTreeMap<Uuid, Text>,
    pub approvals: BTreeMap<Uuid, Approval>,
    /// All of them, as with verdicts: which one counts depends on when it was asked for.
    pub consents: Vec<Verdict>,
    pub withdrawals: Vec<Withdrawal>,
    pub offers: BTreeMap<Uuid, Offer>,
    pub choices: Vec<Choice>,
    /// By the turn.
    pub settled: BTreeMap<Uuid, Settled>,
}

/// A message as it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    pub sequence: i64,
    pub subject: Text,
    pub headers: Text,
    pub payload: Bytes,
    pub stored: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub sequence: i64,
    pub position: i32,
    pub event_id: Uuid,
    pub ts: Time,
    pub agent: Option<Key>,
    pub thread_id: Option<Key>,
    pub correlation_id: Uuid,
    pub type_name: Key,
}

/// Messages of a type that this version does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    pub messages: i64,
    pub first: i64,
    pub last: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub profile: Json,
    pub sequence: i64,
    pub defined_at: Time,
}

/// A thread at its creation.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub sequence: i64,
    pub user: Key,
    pub kind: Key,
    pub title: Text,
    /// Of one that was had elsewhere.
    pub summary: Text,
    pub created_at: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Touch {
    pub sequence: i64,
    pub at: Time,
}

/// The current description of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub sequence: i64,
    pub title: Text,
    pub summary: Text,
}

/// A thread was put away or taken out again, or is over.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadState {
    pub sequence: i64,
    pub status: ThreadStatus,
    /// When it was last over; none where that stays as it was.
    pub completed_at: Option<Time>,
}

/// The speaker in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
    /// Nobody: a message that no agent could receive.
    Failure,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => MessageRole::User,
            Role::Agent => MessageRole::Agent,
            Role::Failure => MessageRole::Failure,
        }
        .known_word()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub sequence: i64,
    pub position: i32,
    pub ts: Time,
    pub correlation_id: Uuid,
    pub role: Role,
    pub agent: Option<Key>,
    pub user: Option<Key>,
    pub thread_id: Option<Key>,
    pub message_id: Option<Key>,
    pub text: Text,
    /// Images and audio; none for none.
    pub parts: Option<Json>,
    /// True if it ends the turn.
    pub last: bool,
    /// The way the model's answer ended; none for a complete one.
    pub ending: Option<Key>,
    /// The reason why the turn failed, if the message reports a failure.
    pub failure: Option<Key>,
}

/// A user's message reached an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub sequence: i64,
    pub agent: Key,
    pub thread_id: Option<Key>,
}

/// An agent put a message into a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub sequence: i64,
    pub thread: Key,
}

/// A tool call that was decided on.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub sequence: i64,
    pub agent: Key,
    pub thread_id: Option<Key>,
    pub correlation_id: Uuid,
    pub tool: Key,
    pub arguments: Json,
    pub decided_at: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    pub invoked_at: Time,
    pub runner: Key,
    pub executor: Key,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub sequence: i64,
    pub ended_at: Time,
    pub ok: bool,
    pub result: Option<Json>,
    pub error_kind: Option<Key>,
    pub error_message: Option<Text>,
    pub duration_ms: i64,
}

/// The progress that an action or a process reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub at: Time,
    pub fraction: Option<f64>,
    pub message: Text,
}

impl Progress {
    /// Returns true if this is not newer than `there`.
    pub fn is_older_than(&self, there: &Self) -> bool {
        self.at <= there.at
    }
}

/// An action was asked to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancel {
    pub at: Time,
    pub by: Option<Uuid>,
}

/// A human's finding on an action in doubt.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub sequence: i64,
    pub action_id: Uuid,
    pub agent: Key,
    pub verdict: Key,
    pub user: Key,
    pub note: Text,
    /// The user or key that entered it.
    pub entered_by: Option<Text>,
    pub at: Time,
}

/// The fields that all events about a process share.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessEvent {
    pub sequence: i64,
    pub action_id: Option<Uuid>,
    pub agent: Key,
    pub supervisor: Key,
    pub at: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Spawned {
    pub event: ProcessEvent,
    pub tool: Option<Key>,
    pub background: bool,
    pub pid: i64,
    pub program: Text,
    pub arguments: Json,
}

/// A process says how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Advance {
    pub progress: Progress,
    pub tail: Text,
}

/// A process was asked to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Canceled {
    pub event: ProcessEvent,
    pub by: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Exited {
    pub event: ProcessEvent,
    pub tool: Option<Key>,
    pub background: bool,
    pub program: Option<Text>,
    pub outcome: Key,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Text,
    pub usage: Option<Usage>,
    pub stdout_tail: Text,
    pub stderr_tail: Text,
    pub stdout_bytes: i64,
    pub stderr_bytes: i64,
}

/// Resources used by a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub wall_ms: i64,
    pub user_ms: i64,
    pub system_ms: i64,
    pub max_rss_bytes: i64,
}
