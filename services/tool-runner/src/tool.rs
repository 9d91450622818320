//! A tool: a description for a model, and one call that ends in a value or a [`ToolError`]. Built-in tools and MCP
//! tools differ only behind this trait.

pub use kairo_proto::words::ToolErrorKind;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kairo_core::sharing::QuotaHolder;
use kairo_proto::v1::{self, ToolArgument};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::outcome::Exchange;
use crate::person_wait::PersonWait;

/// The service that executes a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// This service.
    ToolRunner,
    /// The process supervisor; this service only records how it ended.
    ProcessSupervisor,
}

impl Executor {
    /// The name used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolRunner => "tool-runner",
            Self::ProcessSupervisor => "process-supervisor",
        }
    }
}

/// Everything that is said about a tool before it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Dotted name such as `tools.now`; see [`crate::tool_name`] for the grammar.
    pub name: String,
    /// For the model that chooses the tool.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// True if calling twice with the same action id has the effect of calling once.
    pub idempotent: bool,
    /// Time limit of one call.
    pub timeout: Duration,
    /// The service that executes its calls.
    pub executor: Executor,
    /// True if a human must consent to each call.
    pub needs_approval: bool,
    /// If `needs_approval` is false: a human must consent to calls with any of these arguments.
    pub needs_approval_with: Vec<ToolArgument>,
    /// True if it has effects that others see, such as sending or running something: a human must consent to it in a
    /// turn that has seen content from outside.
    pub acts_outside: bool,
    /// Definition by an MCP server or a worker; none for tools built into this service.
    pub definition: Option<Definition>,
}

impl ToolSpec {
    /// A tool as messages tell of it. None where its schema cannot be read.
    pub fn from_message(tool: v1::ToolSpec, executor: Executor) -> Option<Self> {
        Some(Self {
            schema: serde_json::from_str(&tool.schema).ok()?,
            name: tool.name,
            description: tool.description,
            idempotent: tool.idempotent,
            timeout: Duration::from_millis(tool.timeout_ms),
            executor,
            needs_approval: tool.needs_approval,
            needs_approval_with: tool.needs_approval_with,
            acts_outside: tool.acts_outside,
            definition: None,
        })
    }
}

/// A tool as somebody else defines it, who may define it otherwise later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Of all that is said of it.
    pub digest: String,
    /// True if the operator accepted the definition in its present form.
    pub is_accepted: bool,
    pub definer: Definer,
}

/// The kind of source that defines a tool not built into this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definer {
    McpServer,
    Worker,
}

/// The context of a call beyond its arguments.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Id of the action; the idempotency key of the call.
    pub action_id: String,
    /// The recorded time of the decision that asked for the call, so that a repeated call
    /// computes the same answer.
    pub now: Timestamp,
    /// When this call begins, by the clock; only for what is to differ when the call is repeated.
    pub begun: Timestamp,
    /// The agent that asked.
    pub agent: String,
    /// The thread it asked in; empty where that is not known.
    pub thread_id: String,
    /// On whose behalf it asked; none where the decision does not say, empty for nobody's.
    pub user: Option<String>,
    /// Position in the log of the decision that asked for the call.
    pub decision_sequence: u64,
    /// The agent's action that the call is about, where it is about one.
    pub target: Option<Uuid>,
    /// Position in the log up to which nothing concerns the target.
    pub target_after: u64,
    /// Canceled when the agent, a time limit or the shutdown wants the call to stop.
    pub cancel: CancellationToken,
    /// Receives the progress reports of the call.
    pub progress: ProgressReporter,
    /// Records what was sent and answered, and signals that the time limit passed.
    pub exchange: Exchange,
}

impl CallContext {
    /// Returns the holder whose share of the concurrent calls this call takes.
    pub fn holder(&self) -> QuotaHolder {
        QuotaHolder::on_behalf(self.user.as_deref(), &self.agent)
    }
}

/// A progress report of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressReport {
    /// 0.0 to 1.0, when the tool knows.
    pub fraction: Option<f64>,
    /// Status message from the tool.
    pub message: Option<String>,
}

/// Keeps the newest report for whoever looks: progress is never worth slowing a tool down.
#[derive(Debug, Clone, Default)]
pub struct ProgressReporter {
    newest: Option<Arc<watch::Sender<Option<ProgressReport>>>>,
    questions: Option<mpsc::Sender<QuestionChange>>,
    waiting: PersonWait,
}

/// A change in the state of a question to the user of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionChange {
    /// The question is open; `words` describe it.
    Asked {
        words: String,
        question: Box<v1::ToolQuestion>,
    },
    Ended(v1::ToolQuestionEnd),
}

/// Most undelivered question changes kept per call; further ones are dropped.
const MAX_QUESTION_CHANGES: usize = 64;

impl ProgressReporter {
    /// A reporter, and where its newest report is.
    pub fn channel() -> (Self, watch::Receiver<Option<ProgressReport>>) {
        let (sender, newest) = watch::channel(None);
        (Self { newest: Some(Arc::new(sender)), questions: None, waiting: PersonWait::default() }, newest)
    }

    /// A reporter, where its newest report is, and each change of a question to the user.
    pub fn channel_with_questions() -> (Self, watch::Receiver<Option<ProgressReport>>, mpsc::Receiver<QuestionChange>) {
        let (reporter, newest) = Self::channel();
        let (questions, changes) = mpsc::channel(MAX_QUESTION_CHANGES);
        (Self { questions: Some(questions), ..reporter }, newest, changes)
    }

    /// Tells of a question; in a report where questions are told to nobody. Never blocks.
    pub fn report_question(&self, change: QuestionChange) {
        match (&self.questions, change) {
            (Some(questions), change) => drop(questions.try_send(change)),
            (None, QuestionChange::Asked { words, .. }) => {
                self.report(ProgressReport { fraction: None, message: Some(words) })
            }
            (None, QuestionChange::Ended(_)) => {}
        }
    }

    /// For callers that do not want to know.
    pub fn discard() -> Self {
        Self::default()
    }

    /// Returns the handle with which a call marks that it waits for a person, so that its own time does not run.
    pub fn waiting(&self) -> &PersonWait {
        &self.waiting
    }

    /// Never blocks; replaces the report before.
    pub fn report(&self, progress: ProgressReport) {
        if let Some(newest) = &self.newest {
            newest.send_replace(Some(progress));
        }
    }
}

/// The reason a call has no result. The agent sees the message, so it says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", kind.as_str())]
pub struct ToolError {
    pub kind: ToolErrorKind,
    pub message: String,
}

impl ToolError {
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidArguments, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::NotFound, message)
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, message)
    }

    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::TimedOut, message)
    }

    pub fn canceled(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Canceled, message)
    }

    pub fn in_doubt(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InDoubt, message)
    }

    pub fn approval_required(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::ApprovalRequired, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Unavailable, message)
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::TooLarge, message)
    }
}

/// An image or a piece of audio that came with a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// One of [`kairo_core::media::TYPES`], as the bytes say.
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

/// The result of one call: its value, or the error.
pub type CallResult = Result<Value, ToolError>;

/// A capability that agents can call.
pub trait Tool: Send + Sync {
    /// Returns the specification, which does not change while the tool exists.
    fn spec(&self) -> &ToolSpec;

    /// Executes one call. `args` have been checked against the schema. The implementation need not keep the time limit:
    /// the caller cancels `ctx.cancel`, grants a short grace and drops the call.
    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult>;

    /// Waits until a call could begin at once. This wait comes before the call counts as begun. It is no guarantee: the
    /// capacity may be gone again by then.
    ///
    /// # Errors
    /// When the call would fail before it had begun anything.
    fn ready(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns true if an agent may call it again, under another action id, without harm: it only reads, or the same
    /// arguments have no further effect. A tool that is idempotent only by its key is not, as another call has another
    /// key.
    fn is_repeatable(&self) -> bool {
        self.spec().idempotent
    }

    /// Waits for the end of a call that another runner began, without beginning anything; none if the tool cannot do
    /// so. The call ends as `failed` if nobody knows it.
    fn rejoin(self: Arc<Self>, _ctx: CallContext) -> Option<BoxFuture<'static, CallResult>> {
        None
    }

    /// Returns the outside sources of the content in a call's outcome, in the form of [`kairo_core::outside::source_mark`].
    fn outside_sources(&self, _args: &Value, _outcome: &CallResult) -> Vec<String> {
        Vec::new()
    }

    /// Takes the images and audio that came with the result of the call of this action; the result names them in words.
    fn take_attachments(&self, _action_id: &str) -> Vec<Attachment> {
        Vec::new()
    }

    /// Returns true if its calls have a queue of their own: a tool that stops other calls must not wait for them to
    /// end.
    fn is_control(&self) -> bool {
        false
    }
}
