//! A decision under way, as the shard that waits for it and the task that makes it both see it; and what it has cost so far.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use kairo_core::{hash_chain::HashChain, record::Record};
use kairo_mind::{log::CollectedCompletions, request::ModelRequest};
use kairo_proto::v1::{AgentDecision, Completion, GivenUpCall, HashLink};
use tokio_util::sync::CancellationToken;

use crate::{
    abandoned_calls::{self, AbandonedCalls},
    agent_metrics::WaitingInput,
};

/// Beside its conversations, an agent may work on something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentLane {
    #[default]
    Foreground,
    Background,
}

/// The extent to which a decision is made. Work takes long and must not keep users waiting: first models are asked, on
/// the state at the start; then the decision is made from their answers on the current state, while the foreground
/// decides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// All of it.
    #[default]
    Whole,
    /// Until all answers are there.
    Prepare,
    /// Of the answers that are there.
    Commit,
}

/// A decision under way: tells whether it has begun and whether it may go on.
#[derive(Clone, Debug, Default)]
pub struct TurnHandle {
    pub stage: Stage,
    /// The hash link to the preceding part of the log that the decision is made on.
    pub link: HashLink,
    /// True if the preceding decision carries a link.
    pub is_chained: bool,
    /// The input that the decision is made on.
    pub waiting: WaitingInput,
    begun: Arc<AtomicBool>,
    stopping: CancellationToken,
}

impl TurnHandle {
    /// On an input, and what stands in a log that this is the chain of.
    pub fn for_input(stage: Stage, input: &Record, chain: &HashChain) -> Self {
        let waiting = WaitingInput::from_input(input);
        Self { stage, link: chain.next_link(), is_chained: chain.has_begun(), waiting, ..Self::default() }
    }

    pub fn lane(&self) -> AgentLane {
        match self.stage {
            Stage::Whole => AgentLane::Foreground,
            Stage::Prepare | Stage::Commit => AgentLane::Background,
        }
    }

    /// Its turn has come: from here on something may have been spent on it.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns true if this is the same turn, not another one on the same input.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.begun, &other.begun)
    }

    /// Stops the turn, to be made elsewhere: calls under way may still be answered, no new ones are made.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Awaits a future; none if the turn is stopped first.
    pub async fn unless_stopping<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        self.stopping.run_until_cancelled(what).await
    }
}

/// Models' answers to requests made for one input, by the digest of the request. A decision that must be made again, here or
/// by another replica, asks for none of them twice.
#[derive(Clone, Debug, Default)]
pub struct CompletionCache {
    purse: Arc<Mutex<CachedCompletions>>,
    /// Those of no use any more, for whatever input.
    pub abandoned_calls: AbandonedCalls,
}

#[derive(Debug, Default)]
struct CachedCompletions {
    answers: HashMap<String, Completion>,
    /// Calls that failed, by the request and the try: a decision that is made of the answers that are there makes them again.
    failed: HashMap<(String, u32), Completion>,
    /// Number of answers that a snapshot holds.
    saved: usize,
}

impl CompletionCache {
    /// Those of a snapshot.
    pub fn from_answers(answers: CollectedCompletions) -> Self {
        let given_up = AbandonedCalls::from_snapshot(answers.given_up);
        let answers: HashMap<_, _> =
            answers.completions.into_iter().map(|answer| (answer.request_digest.clone(), answer)).collect();
        let purse = CachedCompletions { saved: answers.len(), answers, ..CachedCompletions::default() };
        Self { purse: Arc::new(Mutex::new(purse)), abandoned_calls: given_up }
    }

    /// Those of the work lane, beside those of the foreground.
    pub fn for_background(answers: Option<CollectedCompletions>, foreground: &Self) -> Self {
        let own = answers.map(Self::from_answers).unwrap_or_default();
        Self { abandoned_calls: foreground.abandoned_calls.for_background_lane(), ..own }
    }

    /// Gives up the answers to an input that is no longer decided on.
    pub fn abandon(&mut self) {
        self.abandoned_calls.add(self.unused_calls(&AgentDecision::default()));
        self.purse = Arc::default();
    }

    /// Clears the answers for the next input once a decision is committed; answers that it does not use are given up.
    pub fn settle(&mut self, decision: Option<&AgentDecision>) {
        if let Some(decision) = decision {
            self.abandoned_calls.remove_recorded(&decision.given_up);
            // What it says itself was not used is said.
            let said = |call: &GivenUpCall| decision.given_up.contains(call);
            self.abandoned_calls.add(self.unused_calls(decision).into_iter().filter(|call| !said(call)).collect());
        }
        self.purse = Arc::default();
    }

    /// The calls that a decision is to say were given up.
    pub fn calls_to_report(&self, decision: &AgentDecision) -> Vec<GivenUpCall> {
        let mut calls = self.abandoned_calls.all();
        // An order that overtakes leaves the answers to the input that they are for.
        if decision.overtaking == 0 {
            calls.extend(self.unused_calls(decision));
        }
        calls
    }

    /// The answers that are none of a decision's.
    fn unused_calls(&self, decision: &AgentDecision) -> Vec<GivenUpCall> {
        let purse = self.lock();
        let unused = purse.answers.values().filter(|answer| !decision.completions.contains(answer));
        let mut unused: Vec<GivenUpCall> = unused.map(abandoned_calls::from_unused_answer).collect();
        unused.sort_by(|one, other| one.request_digest.cmp(&other.request_digest));
        unused
    }

    /// The digest costs a look at the whole request, so it is made only where there is something to find.
    pub fn find_answer(&self, request: &ModelRequest) -> Option<Completion> {
        let purse = self.lock();
        (!purse.answers.is_empty()).then(|| purse.answers.get(&request.digest()).cloned()).flatten()
    }

    /// Returns the failure of this attempt of a call, if it failed.
    pub fn find_failure(&self, request: &ModelRequest, attempt: u32) -> Option<Completion> {
        let purse = self.lock();
        (!purse.failed.is_empty()).then(|| purse.failed.get(&(request.digest(), attempt)).cloned()).flatten()
    }

    pub fn store(&self, completion: &Completion, attempt: u32) {
        let digest = completion.request_digest.clone();
        let completion = completion.clone();
        match completion.error {
            None => _ = self.lock().answers.insert(digest, completion),
            Some(_) => _ = self.lock().failed.insert((digest, attempt), completion),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lock().answers.is_empty()
    }

    /// Returns true if there is nothing for a decision to use or record.
    pub fn is_nothing(&self) -> bool {
        self.is_empty() && self.abandoned_calls.is_empty()
    }

    /// Returns true if some of them are not in a snapshot yet.
    pub fn is_unsaved(&self) -> bool {
        let purse = self.lock();
        purse.answers.len() > purse.saved || self.abandoned_calls.is_unsaved()
    }

    /// Returns the answers for a snapshot of an agent that is deciding on this input.
    pub fn save(&self, input: u64) -> Option<CollectedCompletions> {
        let mut purse = self.lock();
        purse.saved = purse.answers.len();
        let mut completions: Vec<Completion> = purse.answers.values().cloned().collect();
        completions.sort_by(|one, other| one.request_digest.cmp(&other.request_digest));
        let given_up = self.abandoned_calls.save();
        (!completions.is_empty() || !given_up.is_empty()).then_some(CollectedCompletions {
            input,
            completions,
            given_up,
        })
    }

    fn lock(&self) -> MutexGuard<'_, CachedCompletions> {
        self.purse.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(digest: &str, output_tokens: u64) -> Completion {
        Completion { request_digest: digest.into(), output_tokens, tier: "heavy".into(), ..Default::default() }
    }

    fn decision(completions: Vec<Completion>, given_up: Vec<GivenUpCall>) -> AgentDecision {
        AgentDecision { cursor: 9, completions, given_up, ..Default::default() }
    }

    #[test]
    fn what_a_decision_does_not_use_is_said_by_it_or_by_the_next() {
        let mut paid = CompletionCache::default();
        [answer("a", 1), answer("b", 2)].iter().for_each(|answer| paid.store(answer, 1));
        let own = decision(vec![answer("b", 2)], Vec::new());
        let said = paid.calls_to_report(&own);
        assert_eq!(said.iter().map(|call| call.output_tokens).collect::<Vec<_>>(), [1]);
        let order = AgentDecision { overtaking: 12, ..decision(Vec::new(), Vec::new()) };
        assert_eq!(paid.calls_to_report(&order), []);
        // Somebody else decided, and asked for the same himself.
        let mut other = paid.clone();
        other.settle(Some(&decision(vec![answer("b", 3)], Vec::new())));
        assert_eq!(other.abandoned_calls.all().len(), 2);
        // The one here stands.
        other.abandoned_calls.remove_recorded(&other.abandoned_calls.all());
        paid.settle(Some(&AgentDecision { given_up: said, ..own }));
        assert!(paid.is_nothing());
    }
}
