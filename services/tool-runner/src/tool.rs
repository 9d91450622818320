//! What a tool is: a description that a model can read, and one call that ends in a value or a
//! [`ToolError`]. Built-in tools and MCP tools differ only behind this trait.

pub use kairo_proto::words::ToolErrorKind;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kairo_core::sharing::Holder;
use kairo_proto::v1::{self, ToolArgument};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::outcome::Exchange;
use crate::waiting::Waiting;

/// Who carries a tool's calls out.
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
    /// Whether calling twice with the same action id has the effect of calling once.
    pub idempotent: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// Who carries its calls out.
    pub executor: Executor,
    /// Whether a human must consent to each call.
    pub needs_approval: bool,
    /// Where not to each: a human must consent to the calls with one of these arguments.
    pub needs_approval_with: Vec<ToolArgument>,
    /// Whether it does something that others see, such as sending or running something: a human must consent to it in a
    /// turn that has seen content from outside.
    pub acts_outside: bool,
    /// What an MCP server or a worker said it is; none for tools that come with this service.
    pub definition: Option<Definition>,
}

impl ToolSpec {
    /// A tool as messages tell of it. None where its schema cannot be read.
    pub fn told(tool: v1::ToolSpec, executor: Executor) -> Option<Self> {
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
    /// Whether the operator said that it may be offered as it is now.
    pub is_accepted: bool,
    pub definer: Definer,
}

/// Who defines tools that do not come with this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definer {
    McpServer,
    Worker,
}

/// What a call knows besides its arguments.
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
    /// Where in the log the decision stands that asked for the call.
    pub decision_sequence: u64,
    /// The agent's action that the call is about, where it is about one.
    pub target: Option<Uuid>,
    /// Nothing about that stands in the log up to here.
    pub target_after: u64,
    /// Canceled when the agent, a time limit or the shutdown wants the call to stop.
    pub cancel: CancellationToken,
    /// Where the call says how far it is.
    pub progress: ProgressReporter,
    /// Where the tool says what has left and what was answered, and hears that its time limit passed.
    pub exchange: Exchange,
}

impl CallContext {
    /// Who has a share of the calls that run at once.
    pub fn holder(&self) -> Holder {
        Holder::on_behalf(self.user.as_deref(), &self.agent)
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// 0.0 to 1.0, when the tool knows.
    pub fraction: Option<f64>,
    /// What the tool says about it.
    pub message: Option<String>,
}

/// Keeps the newest report for whoever looks: progress is never worth slowing a tool down.
#[derive(Debug, Clone, Default)]
pub struct ProgressReporter {
    newest: Option<Arc<watch::Sender<Option<Progress>>>>,
    questions: Option<mpsc::Sender<QuestionChange>>,
    waiting: Waiting,
}

/// What becomes of a question to the user of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionChange {
    /// It is open, and told in these words.
    Asked {
        words: String,
        question: Box<v1::ToolQuestion>,
    },
    Ended(v1::ToolQuestionEnd),
}

/// What becomes of questions that is kept until it is told, of one call; more is let go.
const MAX_QUESTION_CHANGES: usize = 64;

impl ProgressReporter {
    /// A reporter, and where its newest report is.
    pub fn watched() -> (Self, watch::Receiver<Option<Progress>>) {
        let (sender, newest) = watch::channel(None);
        (Self { newest: Some(Arc::new(sender)), questions: None, waiting: Waiting::default() }, newest)
    }

    /// The same, and where questions to the user are told, each of them.
    pub fn watched_with_questions() -> (Self, watch::Receiver<Option<Progress>>, mpsc::Receiver<QuestionChange>) {
        let (reporter, newest) = Self::watched();
        let (questions, changes) = mpsc::channel(MAX_QUESTION_CHANGES);
        (Self { questions: Some(questions), ..reporter }, newest, changes)
    }

    /// Tells of a question; in a report where questions are told to nobody. Never blocks.
    pub fn tell_question(&self, change: QuestionChange) {
        match (&self.questions, change) {
            (Some(questions), change) => drop(questions.try_send(change)),
            (None, QuestionChange::Asked { words, .. }) => {
                self.report(Progress { fraction: None, message: Some(words) })
            }
            (None, QuestionChange::Ended(_)) => {}
        }
    }

    /// For callers that do not want to know.
    pub fn discard() -> Self {
        Self::default()
    }

    /// Where the call says that it waits for a person, so that its own time does not run.
    pub fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Never blocks; replaces the report before.
    pub fn report(&self, progress: Progress) {
        if let Some(newest) = &self.newest {
            newest.send_replace(Some(progress));
        }
    }
}

/// Why a call has no result. The message is shown to the agent, so it says what to do next.
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

/// How one call ended.
pub type CallResult = Result<Value, ToolError>;

/// Something an agent can have done.
pub trait Tool: Send + Sync {
    /// What the tool is; does not change while the tool exists.
    fn spec(&self) -> &ToolSpec;

    /// Does it once. `args` have been checked against the schema. The implementation need not
    /// keep the time limit: the caller cancels `ctx.cancel`, grants a short grace and drops it.
    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult>;

    /// Waits until a call could begin at once. What is waited for here is waited for before the call counts as begun; it
    /// is no promise, as what there was may be gone again by then.
    ///
    /// # Errors
    /// When the call would fail before it had begun anything.
    fn ready(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether an agent that calls it again, under another action id, does no harm: it only reads, or the same arguments have
    /// no further effect. A tool that is idempotent by its key alone is not, as another call has another key.
    fn is_repeatable(&self) -> bool {
        self.spec().idempotent
    }

    /// Hears how a call ends that another runner began, without beginning anything; none where that cannot be heard.
    /// `failed` where nobody knows the call.
    fn rejoin(self: Arc<Self>, _ctx: CallContext) -> Option<BoxFuture<'static, CallResult>> {
        None
    }

    /// Where content in what came of a call comes from that nobody here wrote, as [`kairo_core::outside::mark`] says it.
    fn outside(&self, _args: &Value, _outcome: &CallResult) -> Vec<String> {
        Vec::new()
    }

    /// Takes the images and audio that came with the result of the call of this action; the result names them in words.
    fn take_attachments(&self, _action_id: &str) -> Vec<Attachment> {
        Vec::new()
    }

    /// Whether its calls stand in a queue of their own: what stops other calls must not wait for them to end.
    fn is_control(&self) -> bool {
        false
    }
}
