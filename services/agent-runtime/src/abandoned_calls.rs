//! Calls to models that were given up: they may have to be paid for, so the agent's next decision says them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kairo_mind::request::ModelRequest;
use kairo_proto::v1::{Completion, GivenUpCall};
use tokio::time::Instant;

use crate::{
    answer_progress::{AnswerProgress, ProgressHandle},
    estimate,
    turn::AgentLane,
};

/// Calls that are kept for the next decision; of more, the first are forgotten.
const KEPT: usize = 64;
/// As in `GivenUpCall.reason`.
const UNUSED: &str = "unused";
const INTERRUPTED: &str = "interrupted";

/// Those of an agent that stand in no decision yet, as one of its lanes sees them.
#[derive(Clone, Debug, Default)]
pub struct AbandonedCalls {
    calls: Arc<Mutex<CallRegister>>,
    lane: AgentLane,
}

#[derive(Debug, Default)]
struct CallRegister {
    calls: Vec<GivenUpCall>,
    /// True if the last snapshot does not hold the current list.
    changed: bool,
    /// Calls that somebody still waits for, by number.
    in_flight: BTreeMap<u64, InFlightCall>,
    begun: u64,
}

#[derive(Debug)]
struct InFlightCall {
    lane: AgentLane,
    request: Arc<ModelRequest>,
    begun: Instant,
    received: ProgressHandle,
}

impl CallRegister {
    fn add(&mut self, more: impl IntoIterator<Item = GivenUpCall>) {
        let before = self.calls.len();
        self.calls.extend(more);
        self.changed |= self.calls.len() > before;
        let beyond = self.calls.len().saturating_sub(KEPT);
        self.calls.drain(..beyond);
    }
}

impl AbandonedCalls {
    /// Those of a snapshot.
    pub fn from_snapshot(calls: Vec<GivenUpCall>) -> Self {
        Self {
            calls: Arc::new(Mutex::new(CallRegister { calls, ..CallRegister::default() })),
            lane: AgentLane::default(),
        }
    }

    /// Returns a handle to the same calls for the work lane.
    #[must_use]
    pub fn for_background_lane(&self) -> Self {
        Self { calls: self.calls.clone(), lane: AgentLane::Background }
    }

    /// A call begins; unless it is answered, it counts as given up.
    pub fn begin_call(&self, request: &Arc<ModelRequest>) -> CallGuard {
        let received = ProgressHandle::default();
        let mut calls = self.lock();
        calls.begun += 1;
        let request = request.clone();
        let begun = Instant::now();
        let under_way = InFlightCall { lane: self.lane, request, begun, received: received.clone() };
        let number = calls.begun;
        calls.in_flight.insert(number, under_way);
        CallGuard { given_up: self.clone(), number, received }
    }

    /// Nobody waits any more for what is under way in this lane. It counts from now on: a task that is aborted may be dropped
    /// only after the next decision was made.
    pub fn interrupt(&self) {
        let mut calls = self.lock();
        let under_way = calls.in_flight.extract_if(.., |_, call| call.lane == self.lane).map(|(_, call)| call);
        let given_up: Vec<GivenUpCall> = under_way.map(from_interrupted).collect();
        calls.add(given_up);
    }

    pub fn all(&self) -> Vec<GivenUpCall> {
        self.lock().calls.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().calls.is_empty()
    }

    pub fn is_unsaved(&self) -> bool {
        self.lock().changed
    }

    /// For a snapshot.
    pub fn save(&self) -> Vec<GivenUpCall> {
        let mut calls = self.lock();
        calls.changed = false;
        calls.calls.clone()
    }

    pub fn add(&self, more: Vec<GivenUpCall>) {
        self.lock().add(more);
    }

    /// These stand in a decision by now.
    pub fn remove_recorded(&self, recorded: &[GivenUpCall]) {
        let mut calls = self.lock();
        for call in recorded {
            if let Some(at) = calls.calls.iter().position(|known| known == call) {
                calls.calls.remove(at);
                calls.changed = true;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallRegister> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way.
pub struct CallGuard {
    given_up: AbandonedCalls,
    number: u64,
    received: ProgressHandle,
}

impl CallGuard {
    /// To be told what arrives of the answer.
    pub fn progress(&self) -> &ProgressHandle {
        &self.received
    }

    /// Ends the call. Returns true if its answer is still of use, false if the call was given up before.
    pub fn finish(self) -> bool {
        self.given_up.lock().in_flight.remove(&self.number).is_some()
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut calls = self.given_up.lock();
        let given_up = calls.in_flight.remove(&self.number);
        calls.add(given_up.map(from_interrupted));
    }
}

/// Records a call that was dropped before its answer was complete.
fn from_interrupted(call: InFlightCall) -> GivenUpCall {
    let InFlightCall { request, begun, received, .. } = call;
    let received = received.get();
    let (output_tokens, is_guess) = received.output_estimate();
    // Whoever has begun to answer has read the request.
    let input_tokens = match received.input_tokens {
        0 if received.bytes > 0 => estimate::request_tokens(&request, 1.0),
        said => said,
    };
    let estimated = is_guess || input_tokens != received.input_tokens;
    let AnswerProgress { model, bytes, pieces, .. } = received;
    GivenUpCall {
        tier: request.tier.to_owned(),
        model,
        input_tokens,
        output_tokens,
        latency_ms: u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX),
        reason: INTERRUPTED.to_owned(),
        received_bytes: bytes,
        received_pieces: pieces,
        estimated,
        ..Default::default()
    }
}

/// An answer that became part of no decision.
pub fn from_unused_answer(answer: &Completion) -> GivenUpCall {
    GivenUpCall {
        tier: answer.tier.clone(),
        model: answer.model.clone(),
        request_digest: answer.request_digest.clone(),
        input_tokens: answer.input_tokens,
        output_tokens: answer.output_tokens,
        latency_ms: answer.latency_ms,
        reason: UNUSED.to_owned(),
        cached_tokens: answer.cached_tokens,
        estimated: answer.is_estimate,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(given_up: &AbandonedCalls, tier: &'static str) -> CallGuard {
        given_up.begin_call(&Arc::new(ModelRequest::from_messages(tier, Vec::new())))
    }

    #[test]
    fn a_call_that_is_interrupted_counts_at_once_and_once() {
        let given_up = AbandonedCalls::default();
        let (asking, late) = (asking(&given_up, "heavy"), asking(&given_up, "light"));
        given_up.interrupt();
        // Their tasks notice only now; one was just being answered.
        assert_eq!(given_up.all().len(), 2);
        drop(asking);
        assert!(!late.finish());
        assert_eq!(given_up.all().len(), 2);
        given_up.interrupt();
        assert_eq!(given_up.all().len(), 2);
    }

    #[test]
    fn what_is_given_up_in_one_lane_goes_on_in_the_other() {
        let foreground = AbandonedCalls::default();
        let work = foreground.for_background_lane();
        let acknowledging = asking(&foreground, "fast");
        let working = asking(&work, "heavy");
        foreground.interrupt();
        assert_eq!(work.all().iter().map(|call| call.tier.as_str()).collect::<Vec<_>>(), ["fast"]);
        assert!(working.finish() && !acknowledging.finish());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_given_up_unless_it_is_answered_and_forgotten_once_it_stands_in_a_decision() {
        let given_up = AbandonedCalls::default();
        assert!(asking(&given_up, "heavy").finish());
        assert!(given_up.is_empty());
        let asking = asking(&given_up, "light");
        tokio::time::advance(std::time::Duration::from_millis(40)).await;
        drop(asking);
        let all = given_up.all();
        assert_eq!((all[0].tier.as_str(), all[0].latency_ms, all[0].reason.as_str()), ("light", 40, INTERRUPTED));
        given_up.add(all.clone());
        given_up.remove_recorded(&all);
        assert_eq!(given_up.save(), all, "the other one");
        assert!(!given_up.is_unsaved());
        given_up.remove_recorded(&all);
        assert!(given_up.is_empty() && given_up.is_unsaved());
    }

    #[test]
    fn a_call_that_is_cut_short_says_what_had_arrived_and_what_is_a_guess() {
        let given_up = AbandonedCalls::default();
        let drop_after = |so_far: AnswerProgress| asking(&given_up, "heavy").progress().set(&so_far);
        drop_after(AnswerProgress { model: "m".into(), bytes: 10, pieces: 3, ..AnswerProgress::default() });
        drop_after(AnswerProgress { input_tokens: 70, ..AnswerProgress::default() });
        drop_after(AnswerProgress {
            bytes: 10,
            pieces: 3,
            input_tokens: 70,
            output_tokens: 5,
            ..AnswerProgress::default()
        });
        let told = |call: &GivenUpCall| {
            let received = (call.received_bytes, call.received_pieces);
            (call.model.clone(), call.input_tokens, call.output_tokens, call.estimated, received)
        };
        let said: Vec<_> = given_up.all().iter().map(told).collect();
        assert_eq!(
            said,
            [
                ("m".to_owned(), 0, 3, true, (10, 3)),
                (String::new(), 70, 0, false, (0, 0)),
                (String::new(), 70, 5, false, (10, 3)),
            ]
        );
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let given_up = AbandonedCalls::default();
        let call = |latency_ms| GivenUpCall { latency_ms, ..Default::default() };
        given_up.add((0..100).map(call).collect());
        let all = given_up.all();
        assert_eq!((all.len(), all.first().unwrap().latency_ms, all.last().unwrap().latency_ms), (KEPT, 36, 99));
    }
}
