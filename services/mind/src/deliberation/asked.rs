//! What a deliberation has asked, and what the answers are for.

use uuid::Uuid;

use super::{
    Question, compacting::Compacting, deciding::Deciding, firing, planning::Planning, stepping::Completing,
    thinking_along::Voice,
};

/// A question whose answer is awaited.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) turn: Uuid,
    /// The chain that the turn was in.
    pub(super) chain: Option<Uuid>,
    pub(super) purpose: Purpose,
    pub(super) question: Question,
}

/// What an answer is for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// Where the message belongs.
    Match,
    /// What to do; the step of the chain that asks, if one does.
    Think {
        step: Option<usize>,
    },
    Plan(Planning),
    /// What the message is after.
    Goal,
    /// Whether what is about to be said answers it.
    Reflect {
        draft: String,
    },
    /// What a step lacks.
    Decide(Deciding),
    /// Whether the condition of a hook holds.
    Judge(firing::Judging),
    /// What an intrinsic asked.
    Complete(Completing),
    /// What the thread is about by now.
    Summarize {
        thread_id: String,
    },
    /// What was oldest of a thread, in short.
    Compact(Compacting),
    /// What is to be learned from a thread of work, which is then over.
    Learn {
        thread_id: String,
    },
    /// What a submodule says.
    Voice(Voice),
}

/// Why an answer cannot be used.
pub(super) struct Failure {
    /// As in `AgentFailed.kind`.
    pub(super) kind: String,
    pub(super) message: String,
    /// Whether the same question may have a better answer.
    pub(super) mendable: bool,
}

impl Failure {
    /// An answer that is not what was asked for.
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self { kind: "malformed_answer".to_owned(), message: message.into(), mendable: true }
    }
}
