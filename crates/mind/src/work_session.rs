//! Usage and bounds of a session of work. Built from the log.

use jiff::{SignedDuration, Timestamp};
use kairo_events::prices::parse_budget;
use kairo_proto::v1::{AgentDecision, SessionBounds};
use serde::{Deserialize, Serialize};

use super::team::{Amount, completion_tokens};

/// Bounds of a session, as a profile sets them; none where any amount is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkBounds {
    pub model_calls: Option<u64>,
    /// Input and output together.
    pub tokens: Option<u64>,
    /// As in [`Amount`].
    pub cost: Option<u64>,
    /// From its first task on.
    pub seconds: Option<u32>,
}

/// The usage of a session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSession {
    /// When its first task began.
    pub since: Option<Timestamp>,
    /// Tasks begun.
    pub tasks: u64,
    pub model_calls: u64,
    pub spent: Amount,
}

impl WorkBounds {
    pub(super) fn from_proto(bounds: Option<&SessionBounds>) -> Self {
        let Some(bounds) = bounds else { return Self::default() };
        Self {
            model_calls: (bounds.model_calls > 0).then_some(u64::from(bounds.model_calls)),
            tokens: (bounds.tokens > 0).then_some(bounds.tokens),
            cost: parse_budget(&bounds.cost),
            seconds: (bounds.seconds > 0).then_some(bounds.seconds),
        }
    }

    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the bound that a session has reached at this time, in words.
    pub fn reached_bound(&self, session: &WorkSession, now: Timestamp) -> Option<String> {
        let took = session.since.map_or(SignedDuration::ZERO, |since| now.duration_since(since)).as_secs();
        let WorkSession { model_calls, spent, .. } = session;
        if let Some(most) = self.model_calls.filter(|most| model_calls >= most) {
            return Some(format!("{model_calls} model calls, and it may make {most}"));
        }
        if let Some(most) = self.tokens.filter(|most| spent.tokens >= *most) {
            return Some(format!("{} tokens, and it may take {most}", spent.tokens));
        }
        match self.cost.and_then(|most| spent.reached_cost(most)) {
            Some(unknown) if spent.unpriced > 0 => return Some(format!("money, and {unknown}")),
            Some(_) => return Some("the money that it may cost".to_owned()),
            None => {}
        }
        let most = self.seconds.filter(|most| took >= i64::from(*most))?;
        Some(format!("{took} seconds, and it may take {most}"))
    }
}

impl WorkSession {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if all usage of the session is for the same task.
    pub fn is_of_one_task(&self) -> bool {
        self.tasks == 1
    }

    /// With what a decision that is being made took so far.
    pub fn with_usage(&self, model_calls: usize, spent: Amount) -> Self {
        let model_calls = self.model_calls.saturating_add(u64::try_from(model_calls).unwrap_or(u64::MAX));
        Self { model_calls, spent: self.spent.plus(spent), ..self.clone() }
    }

    pub(super) fn begin_task(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
        self.tasks = self.tasks.saturating_add(1);
    }

    /// Takes in what a decision of the work lane took.
    pub(super) fn spend_on(&mut self, decision: &AgentDecision) {
        if decision.work_input > 0 {
            let tokens = completion_tokens(&decision.completions);
            let spent = Amount { tokens, cost: decision.cost, unpriced: decision.unpriced_tokens };
            *self = self.with_usage(decision.completions.len(), spent);
        }
    }
}
