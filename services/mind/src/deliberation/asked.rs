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
    pub(super) course: Course,
}

/// What came of the tries of a question so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    /// Tries that found the endpoint away, overloaded or busy.
    pub(super) outages: u32,
    /// Other tries of which nothing came.
    pub(super) mistakes: u32,
    /// Of those, answers that were empty.
    pub(super) empty_answers: u32,
    /// How often the request was shortened.
    pub(super) shortenings: u32,
    /// Words of an answer that was cut, with which the model was asked to go on.
    pub(super) words: String,
    /// How often it was asked to go on.
    pub(super) continuations: u32,
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
    /// Whether what is about to be said promises work that nothing was queued for.
    Promise {
        words: String,
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
    /// The keywords of these memories.
    Keywords(Vec<String>),
    /// What was oldest of a thread, in short.
    Compact(Compacting),
    /// What is to be learned from a thread of work, which is then over.
    Learn {
        thread_id: String,
    },
    /// What a submodule says.
    Voice(Voice),
}
