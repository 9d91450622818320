//! Questions that a deliberation has asked, and the purposes of their answers.

use uuid::Uuid;

use super::{
    ModelQuestion, chain_steps::PendingIntrinsic, compaction::PendingCompaction, planning::PendingPlan,
    step_decisions::UndecidedStep, submodule_thoughts::SubmoduleCall, task_firing,
};

/// A question whose answer is awaited.
#[derive(Clone, Debug)]
pub(super) struct AwaitedAnswer {
    pub(super) turn: Uuid,
    /// The chain that the turn was in.
    pub(super) chain: Option<Uuid>,
    pub(super) purpose: Purpose,
    pub(super) question: ModelQuestion,
    pub(super) history: QuestionHistory,
}

/// The tries of a question so far.
#[derive(Clone, Debug, Default)]
pub(super) struct QuestionHistory {
    /// Tries that found the endpoint away, overloaded or busy.
    pub(super) outages: u32,
    /// Other tries that failed.
    pub(super) mistakes: u32,
    /// Of those, answers that were empty.
    pub(super) empty_answers: u32,
    /// Times that the request was shortened.
    pub(super) shortenings: u32,
    /// Words of an answer that was cut, with which the model was asked to go on.
    pub(super) words: String,
    /// Times that the model was asked to go on.
    pub(super) continuations: u32,
}

/// The purpose of an answer.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// The thread that the message belongs to.
    Match,
    /// The turn's next move; `step` is the step of the chain that asks, if one does.
    Think {
        step: Option<usize>,
    },
    Plan(PendingPlan),
    /// The goal of the message.
    Goal,
    /// A review of the draft: whether it answers the message.
    Reflect {
        draft: String,
    },
    /// A check of the words that are about to be said: whether they promise work that nothing was queued for.
    Promise {
        words: String,
    },
    /// A decision on a step that lacks something, with the missing parameters.
    Decide(UndecidedStep),
    /// A verdict on whether the condition of a hook holds.
    Judge(task_firing::HookJudgement),
    /// The answer to a question of an intrinsic.
    Complete(PendingIntrinsic),
    /// The thread's current title and summary.
    Summarize {
        thread_id: String,
    },
    /// The keywords of these memories.
    Keywords(Vec<String>),
    /// A summary of the oldest entries of a thread.
    Compact(PendingCompaction),
    /// The lessons of a thread of work, which is then over.
    Learn {
        thread_id: String,
    },
    /// The words of a submodule.
    Submodule(SubmoduleCall),
}
