//! A decision under way, as the shard that waits for it and the task that makes it both see it; and what it has cost so far.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use kairo_mind::{log::Answers, request::ModelRequest};
use kairo_proto::v1::Completion;
use tokio_util::sync::CancellationToken;

/// Whether a decision has begun, and whether it may go on.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    begun: Arc<AtomicBool>,
    stopping: CancellationToken,
}

impl Turn {
    /// Its turn has come: from here on something may have been spent on it.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// It is to be made elsewhere: what was asked may still be answered, nothing more is asked.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// What comes of it; none if it is to stop before that.
    pub async fn unless_stopping<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        self.stopping.run_until_cancelled(what).await
    }
}

/// Models' answers to requests made for one input, by the digest of the request. A decision that must be made again, here or
/// by another replica, asks for none of them twice.
#[derive(Clone, Debug, Default)]
pub struct Paid(Arc<Mutex<Purse>>);

#[derive(Debug, Default)]
struct Purse {
    answers: HashMap<String, Completion>,
    /// How many of them a snapshot says.
    saved: usize,
}

impl Paid {
    /// Those of a snapshot.
    pub fn of(answers: Answers) -> Self {
        let answers: HashMap<_, _> =
            answers.completions.into_iter().map(|answer| (answer.request_digest.clone(), answer)).collect();
        Self(Arc::new(Mutex::new(Purse { saved: answers.len(), answers })))
    }

    /// The digest costs a look at the whole request, so it is made only where there is something to find.
    pub fn answer(&self, request: &ModelRequest) -> Option<Completion> {
        let purse = self.purse();
        (!purse.answers.is_empty()).then(|| purse.answers.get(&request.digest()).cloned()).flatten()
    }

    pub fn keep(&self, completion: &Completion) {
        if completion.error.is_none() {
            self.purse().answers.insert(completion.request_digest.clone(), completion.clone());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.purse().answers.is_empty()
    }

    /// Whether a snapshot has yet to say some of them.
    pub fn is_unsaved(&self) -> bool {
        let purse = self.purse();
        purse.answers.len() > purse.saved
    }

    /// For a snapshot of an agent that is deciding on this input.
    pub fn save(&self, input: u64) -> Option<Answers> {
        let mut purse = self.purse();
        purse.saved = purse.answers.len();
        let mut completions: Vec<Completion> = purse.answers.values().cloned().collect();
        completions.sort_by(|one, other| one.request_digest.cmp(&other.request_digest));
        (!completions.is_empty()).then_some(Answers { input, completions })
    }

    fn purse(&self) -> MutexGuard<'_, Purse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
