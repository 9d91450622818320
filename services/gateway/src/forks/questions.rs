//! Calls that neither the log nor anybody has an answer to: a person is asked what they come to.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use kairo_fork::tools::{CallAnswerer, CallResult};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::fork_history::ForkHistory;

/// Calls that may wait for an answer at once; more are locked.
const QUESTIONS: usize = 16;

#[derive(Clone)]
pub struct ForkQuestions(Arc<SharedQuestions>);

struct SharedQuestions {
    telling: ForkHistory,
    waiting: Mutex<PendingAnswers>,
}

#[derive(Default)]
struct PendingAnswers {
    last: u64,
    answers: BTreeMap<u64, oneshot::Sender<Option<CallResult>>>,
}

/// A question that is taken back when nobody waits for it any more.
struct QuestionGuard<'q>(&'q ForkQuestions, u64);

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.0.lock_pending().answers.remove(&self.1);
    }
}

impl ForkQuestions {
    pub fn new(telling: ForkHistory) -> Self {
        Self(Arc::new(SharedQuestions { telling, waiting: Mutex::default() }))
    }

    fn lock_pending(&self) -> MutexGuard<'_, PendingAnswers> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what a call comes to; nothing where it is to be locked. False where the question does not wait.
    pub fn answer(&self, question: u64, result: Option<CallResult>) -> bool {
        let answer = self.lock_pending().answers.remove(&question);
        answer.is_some_and(|answer| answer.send(result).is_ok())
    }

    fn register_question(&self) -> Option<(QuestionGuard<'_>, oneshot::Receiver<Option<CallResult>>)> {
        let mut waiting = self.lock_pending();
        if waiting.answers.len() >= QUESTIONS {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        waiting.last += 1;
        let question = waiting.last;
        waiting.answers.insert(question, answer);
        Some((QuestionGuard(self, question), answered))
    }
}

impl CallAnswerer for ForkQuestions {
    fn answer_call<'a>(&'a self, tool: &'a str, arguments: &'a Value) -> BoxFuture<'a, Option<CallResult>> {
        Box::pin(async move {
            let (put, answered) = self.register_question()?;
            let asked = json!({ "question": put.1, "tool": tool, "arguments": arguments });
            self.0.telling.append("fork.asked", &asked);
            answered.await.ok().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::join_all};

    use super::*;

    #[tokio::test]
    async fn a_call_comes_to_what_a_person_says_once() {
        let questions = ForkQuestions::new(ForkHistory::new(1_000));
        let mut call = questions.answer_call("book", &Value::Null);
        assert!(call.as_mut().now_or_never().is_none());
        assert!(questions.answer(1, Some(Ok(json!("booked")))));
        assert_eq!(call.await, Some(Ok(json!("booked"))));
        assert!(!questions.answer(1, None), "it waits no more");
    }

    #[tokio::test]
    async fn more_than_may_wait_are_locked_and_what_is_given_up_is_forgotten() {
        let questions = ForkQuestions::new(ForkHistory::new(10_000));
        let mut calls = join_all((0..QUESTIONS).map(|_| questions.answer_call("book", &Value::Null)));
        assert!((&mut calls).now_or_never().is_none());
        assert_eq!(questions.answer_call("book", &Value::Null).now_or_never(), Some(None));
        drop(calls);
        assert!(!questions.answer(1, None));
        assert!(questions.answer_call("book", &Value::Null).now_or_never().is_none());
    }
}
