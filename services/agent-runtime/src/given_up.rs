//! Calls to models that were given up: they may have to be paid for, so the agent's next decision says them.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kairo_proto::v1::{Completion, GivenUpCall};
use tokio::time::Instant;

/// Calls that are kept for the next decision; of more, the first are forgotten.
const KEPT: usize = 64;
/// As in `GivenUpCall.reason`.
const UNUSED: &str = "unused";
const INTERRUPTED: &str = "interrupted";

/// Those of an agent that stand in no decision yet.
#[derive(Clone, Debug, Default)]
pub struct GivenUp(Arc<Mutex<Calls>>);

#[derive(Debug, Default)]
struct Calls {
    calls: Vec<GivenUpCall>,
    /// Whether a snapshot says otherwise.
    changed: bool,
}

impl GivenUp {
    /// Those of a snapshot.
    pub fn of(calls: Vec<GivenUpCall>) -> Self {
        Self(Arc::new(Mutex::new(Calls { calls, changed: false })))
    }

    /// A call begins; unless it is answered, it counts as given up.
    pub fn asking(&self, tier: &str) -> Asking {
        Asking { given_up: self.clone(), tier: tier.to_owned(), begun: Instant::now(), answered: false }
    }

    pub fn all(&self) -> Vec<GivenUpCall> {
        self.calls().calls.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.calls().calls.is_empty()
    }

    pub fn is_unsaved(&self) -> bool {
        self.calls().changed
    }

    /// For a snapshot.
    pub fn save(&self) -> Vec<GivenUpCall> {
        let mut calls = self.calls();
        calls.changed = false;
        calls.calls.clone()
    }

    pub fn add(&self, more: Vec<GivenUpCall>) {
        let mut calls = self.calls();
        calls.changed |= !more.is_empty();
        calls.calls.extend(more);
        let beyond = calls.calls.len().saturating_sub(KEPT);
        calls.calls.drain(..beyond);
    }

    /// These stand in a decision by now.
    pub fn recorded(&self, recorded: &[GivenUpCall]) {
        let mut calls = self.calls();
        for call in recorded {
            if let Some(at) = calls.calls.iter().position(|known| known == call) {
                calls.calls.remove(at);
                calls.changed = true;
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way.
pub struct Asking {
    given_up: GivenUp,
    tier: String,
    begun: Instant,
    answered: bool,
}

impl Asking {
    pub fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if !self.answered {
            let latency_ms = u32::try_from(self.begun.elapsed().as_millis()).unwrap_or(u32::MAX);
            let (tier, reason) = (mem::take(&mut self.tier), INTERRUPTED.to_owned());
            self.given_up.add(vec![GivenUpCall { tier, latency_ms, reason, ..Default::default() }]);
        }
    }
}

/// An answer that became part of no decision.
pub fn unused(answer: &Completion) -> GivenUpCall {
    GivenUpCall {
        tier: answer.tier.clone(),
        model: answer.model.clone(),
        request_digest: answer.request_digest.clone(),
        input_tokens: answer.input_tokens,
        output_tokens: answer.output_tokens,
        latency_ms: answer.latency_ms,
        reason: UNUSED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_is_given_up_unless_it_is_answered_and_forgotten_once_it_stands_in_a_decision() {
        let given_up = GivenUp::default();
        given_up.asking("heavy").answered();
        assert!(given_up.is_empty());
        let asking = given_up.asking("light");
        tokio::time::advance(std::time::Duration::from_millis(40)).await;
        drop(asking);
        let all = given_up.all();
        assert_eq!((all[0].tier.as_str(), all[0].latency_ms, all[0].reason.as_str()), ("light", 40, INTERRUPTED));
        given_up.add(all.clone());
        given_up.recorded(&all);
        assert_eq!(given_up.save(), all, "the other one");
        assert!(!given_up.is_unsaved());
        given_up.recorded(&all);
        assert!(given_up.is_empty() && given_up.is_unsaved());
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let given_up = GivenUp::default();
        let call = |latency_ms| GivenUpCall { latency_ms, ..Default::default() };
        given_up.add((0..100).map(call).collect());
        let all = given_up.all();
        assert_eq!((all.len(), all.first().unwrap().latency_ms, all.last().unwrap().latency_ms), (KEPT, 36, 99));
    }
}
