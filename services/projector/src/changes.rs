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
use kairo_read_model::sql_values::{SqlJson, SqlKey, SqlText, Time};
use uuid::Uuid;

pub use chains::{ChainEnd, ChainStart, PlannedStep, StepApprovalRequest, StepEnd, StepStart};
pub use consent::{ApprovalExpiry, ApprovalRequest, ApprovalWithdrawal, OfferChoice, OfferCreation, OfferSettlement};
pub use inner_state::InnerStateWrite;
pub use memories::{MemoryContent, MemoryVersion};
pub use tasks::{TaskCreation, TaskFiring, TaskState};
pub use teams::{SessionBriefing, TeamState};
pub use usage::ModelCall;

/// Changes of all tables. Maps hold what may be told twice within a batch.
#[derive(Debug, Default, PartialEq)]
pub struct TableChanges {
    /// The log's own messages.
    pub log: Vec<LogEntry>,
    pub events: Vec<EventEntry>,
    /// By type.
    pub unknown: BTreeMap<SqlKey, UnknownTypeCount>,
    /// Newest wins.
    pub agents: BTreeMap<SqlKey, AgentDefinition>,
    /// By agent; newest wins.
    pub teams: BTreeMap<SqlKey, TeamState>,
    /// By the event that says so.
    pub briefings: BTreeMap<Uuid, SessionBriefing>,
    pub threads: BTreeMap<(SqlKey, SqlKey), ThreadCreation>,
    /// The last event in each thread, by agent and thread; newest wins.
    pub touched: BTreeMap<(SqlKey, SqlKey), ThreadTouch>,
    /// Descriptions of threads, by agent and thread; the newest wins, here and in `thread_states`.
    pub described: BTreeMap<(SqlKey, SqlKey), ThreadDescription>,
    pub thread_states: BTreeMap<(SqlKey, SqlKey), ThreadState>,
    /// By the sequence of the last message that tells of it.
    pub compacted: BTreeMap<(SqlKey, SqlKey), i64>,
    /// By event, as in the next two.
    pub messages: BTreeMap<Uuid, ConversationMessage>,
    pub deliveries: BTreeMap<Uuid, MessageDelivery>,
    /// The threads that messages were put into.
    pub placed: BTreeMap<Uuid, ThreadPlacement>,
    pub actions: BTreeMap<Uuid, ActionDecision>,
    pub begun: BTreeMap<Uuid, ActionStart>,
    pub ended: BTreeMap<Uuid, ActionEnding>,
    /// Answers to actions that were in doubt.
    pub late_answers: BTreeMap<Uuid, ActionEnding>,
    /// Newest by its own clock wins, so that an old one told again is nothing new.
    pub progressed: BTreeMap<Uuid, ReportedProgress>,
    /// Actions that were asked to end.
    pub cancels: BTreeMap<Uuid, CancelRequest>,
    /// All of them: which one counts depends on when its action was in doubt.
    pub verdicts: Vec<ActionVerdict>,
    pub spawned: BTreeMap<Uuid, ProcessSpawn>,
    /// Newest by its own clock wins, as above.
    pub advanced: BTreeMap<Uuid, ProcessAdvance>,
    pub canceled: BTreeMap<Uuid, ProcessCancellation>,
    pub exited: BTreeMap<Uuid, ProcessExit>,
    pub chains: BTreeMap<Uuid, ChainStart>,
    /// By chain and step, as in the next three.
    pub steps: BTreeMap<(Uuid, i32), PlannedStep>,
    pub steps_asked: BTreeMap<(Uuid, i32), StepApprovalRequest>,
    pub steps_begun: BTreeMap<(Uuid, i32), StepStart>,
    pub steps_ended: BTreeMap<(Uuid, i32), StepEnd>,
    /// The ends of the tools of steps, by action; most actions are no steps.
    pub step_results: BTreeMap<Uuid, StepEnd>,
    pub chains_ended: BTreeMap<Uuid, ChainEnd>,
    pub tasks: BTreeMap<Uuid, TaskCreation>,
    /// By the event that says so.
    pub firings: BTreeMap<Uuid, TaskFiring>,
    /// Newest wins.
    pub task_states: BTreeMap<Uuid, TaskState>,
    /// By agent and memory; newest wins.
    pub memories: BTreeMap<(SqlKey, Uuid), MemoryContent>,
    /// By the event that says so.
    pub memory_versions: BTreeMap<Uuid, MemoryVersion>,
    /// By the event that says so.
    pub inner_state_changes: BTreeMap<Uuid, InnerStateWrite>,
    /// By agent, user and key; newest wins.
    pub inner_state: BTreeMap<(SqlKey, SqlKey, SqlKey), InnerStateWrite>,
    /// By decision, and which of its calls.
    pub model_calls: BTreeMap<(Uuid, i32), ModelCall>,
    /// With which API key something was sent, by its correlation.
    pub entries: BTreeMap<Uuid, SqlText>,
    pub approvals: BTreeMap<Uuid, ApprovalRequest>,
    /// All of them, as with verdicts: which one counts depends on when it was asked for.
    pub consents: Vec<ActionVerdict>,
    /// Times at which requests for consent were due.
    pub expiries: Vec<ApprovalExpiry>,
    pub withdrawals: Vec<ApprovalWithdrawal>,
    pub offers: BTreeMap<Uuid, OfferCreation>,
    pub choices: Vec<OfferChoice>,
    /// By the turn.
    pub settled: BTreeMap<Uuid, OfferSettlement>,
}

/// A message as it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    pub sequence: i64,
    pub subject: SqlText,
    pub headers: SqlText,
    pub payload: Bytes,
    pub stored: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EventEntry {
    pub sequence: i64,
    pub position: i32,
    pub event_id: Uuid,
    pub ts: Time,
    pub agent: Option<SqlKey>,
    pub thread_id: Option<SqlKey>,
    pub correlation_id: Uuid,
    pub type_name: SqlKey,
}

/// Messages of a type that this version does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownTypeCount {
    pub messages: i64,
    pub first: i64,
    pub last: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AgentDefinition {
    pub profile: SqlJson,
    pub sequence: i64,
    pub defined_at: Time,
}

/// A thread at its creation.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadCreation {
    pub sequence: i64,
    pub user: SqlKey,
    pub kind: SqlKey,
    pub title: SqlText,
    /// Of one that was had elsewhere.
    pub summary: SqlText,
    pub created_at: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ThreadTouch {
    pub sequence: i64,
    pub at: Time,
}

/// The current description of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadDescription {
    pub sequence: i64,
    pub title: SqlText,
    pub summary: SqlText,
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
pub enum SpeakerRole {
    User,
    Agent,
    /// Nobody: a message that no agent could receive.
    Failure,
}

impl SpeakerRole {
    pub fn as_str(self) -> &'static str {
        match self {
            SpeakerRole::User => MessageRole::User,
            SpeakerRole::Agent => MessageRole::Agent,
            SpeakerRole::Failure => MessageRole::Failure,
        }
        .known_word()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConversationMessage {
    pub sequence: i64,
    pub position: i32,
    pub ts: Time,
    pub correlation_id: Uuid,
    pub role: SpeakerRole,
    pub agent: Option<SqlKey>,
    pub user: Option<SqlKey>,
    pub thread_id: Option<SqlKey>,
    pub message_id: Option<SqlKey>,
    pub text: SqlText,
    /// Images and audio; none for none.
    pub parts: Option<SqlJson>,
    /// True if it ends the turn.
    pub last: bool,
    /// The way the model's answer ended; none for a complete one.
    pub ending: Option<SqlKey>,
    /// The reason why the turn failed, if the message reports a failure.
    pub failure: Option<SqlKey>,
}

/// A user's message reached an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageDelivery {
    pub sequence: i64,
    pub agent: SqlKey,
    pub thread_id: Option<SqlKey>,
}

/// An agent put a message into a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPlacement {
    pub sequence: i64,
    pub thread: SqlKey,
}

/// A tool call that was decided on.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionDecision {
    pub sequence: i64,
    pub agent: SqlKey,
    pub thread_id: Option<SqlKey>,
    pub correlation_id: Uuid,
    pub tool: SqlKey,
    pub arguments: SqlJson,
    pub decided_at: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ActionStart {
    pub invoked_at: Time,
    pub runner: SqlKey,
    pub executor: SqlKey,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ActionEnding {
    pub sequence: i64,
    pub ended_at: Time,
    pub ok: bool,
    pub result: Option<SqlJson>,
    pub error_kind: Option<SqlKey>,
    pub error_message: Option<SqlText>,
    pub duration_ms: i64,
}

/// The progress that an action or a process reports.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedProgress {
    pub at: Time,
    pub fraction: Option<f64>,
    pub message: SqlText,
}

impl ReportedProgress {
    /// Returns true if this is not newer than `there`.
    pub fn is_older_than(&self, there: &Self) -> bool {
        self.at <= there.at
    }
}

/// An action was asked to end.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelRequest {
    pub at: Time,
    pub by: Option<Uuid>,
}

/// A human's finding on an action in doubt.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionVerdict {
    pub sequence: i64,
    /// The arguments approved in place of those that were asked for.
    pub changed_arguments: Option<SqlJson>,
    pub action_id: Uuid,
    pub agent: SqlKey,
    pub verdict: SqlKey,
    pub user: SqlKey,
    pub note: SqlText,
    /// The user or key that entered it.
    pub entered_by: Option<SqlText>,
    pub at: Time,
}

/// The fields that all events about a process share.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessEvent {
    pub sequence: i64,
    pub action_id: Option<Uuid>,
    pub agent: SqlKey,
    pub supervisor: SqlKey,
    pub at: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSpawn {
    pub event: ProcessEvent,
    pub tool: Option<SqlKey>,
    pub background: bool,
    pub pid: i64,
    pub program: SqlText,
    pub arguments: SqlJson,
}

/// A process says how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessAdvance {
    pub progress: ReportedProgress,
    pub tail: SqlText,
}

/// A process was asked to end.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessCancellation {
    pub event: ProcessEvent,
    pub by: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProcessExit {
    pub event: ProcessEvent,
    pub tool: Option<SqlKey>,
    pub background: bool,
    pub program: Option<SqlText>,
    pub outcome: SqlKey,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: SqlText,
    pub usage: Option<ProcessResources>,
    pub stdout_tail: SqlText,
    pub stderr_tail: SqlText,
    pub stdout_bytes: i64,
    pub stderr_bytes: i64,
}

/// Resources used by a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessResources {
    pub wall_ms: i64,
    pub user_ms: i64,
    pub system_ms: i64,
    pub max_rss_bytes: i64,
}
