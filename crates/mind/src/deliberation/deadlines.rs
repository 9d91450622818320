//! Deadlines of what other agents and humans are asked for.

use jiff::{SignedDuration, Timestamp};
use kairo_proto::{
    v1::{AgentAction, AgentFailed, Ask, agent_action::Action, decided_event::Event},
    words::RequestKind,
};

use serde_json::Value;
use uuid::Uuid;

use super::Deliberation;
use crate::{
    intrinsics::{members, team},
    late_requests::{LONGEST_DEADLINE, LateRequest},
    state::Profile,
};

/// As `AgentFailed.kind`: another agent did not answer in time.
const REQUEST_LATE: &str = "request_late";

impl Deliberation<'_> {
    /// Agents that did not answer in time are told to stop.
    pub(super) fn end_late_requests(&mut self) {
        let late: Vec<LateRequest> = self.mind.late_at(self.input.sequence).cloned().collect();
        for LateRequest { action, agent, turn, thread_id, correlation, is_canceled, message, .. } in late {
            let failed = AgentFailed { kind: REQUEST_LATE.to_owned(), message, attempt: 1, ..AgentFailed::default() };
            self.add_event_to(turn, &thread_id, correlation, Event::Failed(failed));
            if is_canceled {
                continue;
            }
            let user = self.turn(turn).map(|turn| turn.user.clone()).unwrap_or_default();
            let kind = RequestKind::Cancel.text();
            let request_id = action.to_string();
            let ask = Ask { agent, kind, request_id, user, ..Ask::default() };
            let stop = Event::Action(AgentAction { action: Some(Action::Ask(ask)) });
            self.add_event_to(turn, &thread_id, correlation, stop);
        }
    }

    /// When a request that is made now is late, as RFC 3339; `seconds` where the call says. Empty for builds before epoch 10.
    pub(super) fn request_deadline(&self, seconds: Option<u32>) -> String {
        if self.limits.memory_rules == 0 {
            return String::new();
        }
        let of_profile = || self.mind.profile.as_ref().map_or(LONGEST_DEADLINE, Profile::request_deadline);
        let seconds = seconds.map_or_else(of_profile, |seconds| seconds.clamp(1, LONGEST_DEADLINE));
        self.time_after(seconds)
    }

    /// The time (RFC 3339) at which a call that a human is asked about now counts as rejected; empty if it never does.
    pub(super) fn consent_deadline(&self) -> String {
        let seconds = self.mind.profile.as_ref().map_or(0, |profile| profile.consent_timeout);
        if seconds == 0 { String::new() } else { self.time_after(seconds) }
    }

    fn time_after(&self, seconds: u32) -> String {
        let now = self.now();
        now.checked_add(SignedDuration::from_secs(i64::from(seconds))).unwrap_or(now).to_string()
    }

    /// Returns true if a turn asked other agents, none of them did it, and no tool did anything either: whatever the
    /// turn says, nothing is done.
    pub(super) fn all_requests_failed(&self, turn_id: Uuid) -> bool {
        let thread = self.turn(turn_id).and_then(|turn| self.mind.threads.get(&turn.thread_id));
        let Some(thread) = thread.filter(|_| self.limits.memory_rules > 0) else { return false };
        let mut requests = 0;
        let mut is_done = false;
        for call in thread.calls_of(turn_id) {
            let is_request = is_request(&call.tool);
            requests += u32::from(is_request);
            let counts = is_request || self.catalogue.tool(&call.tool).is_some();
            is_done |= counts && call.result.as_deref().is_some_and(|result| !reports_failure(result));
        }
        requests > 0 && !is_done
    }

    /// The time, as far as the log tells it: when the last answer of a model was there, else when the input came.
    pub(super) fn now(&self) -> Timestamp {
        let input = self.input.envelope.time;
        let answered = self.decision.completions.iter().map(|completion| completion.answered_at_ms).max();
        let answered = answered.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
        answered.map_or(input, |answered| answered.max(input))
    }
}

/// Returns true if a tool has another agent do something.
pub(super) fn is_request(tool: &str) -> bool {
    matches!(tool, team::DELEGATE | members::ASK)
}

/// Returns true if a result, in the form that a model is told, reports a failure.
fn reports_failure(result: &str) -> bool {
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    ["error", "failed", "stopped", "skipped"].into_iter().any(|name| result.get(name).is_some())
}
