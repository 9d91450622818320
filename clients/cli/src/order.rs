//! The outcome of a verdict or an order: the agent refuses it or carries it out. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use kairo_core::event_json::EventJson;
use kairo_proto::{v1, words::StepState};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{durations, question::AgentQuestion, watch};

/// Events that bring an order to the agent.
const TOLD: [&str; 3] = [v1::AgentChoice::TYPE, v1::AgentApproval::TYPE, v1::AgentCommand::TYPE];

/// Events by which an agent carries out an order itself.
const EFFECTS: [&str; 7] = [
    v1::TaskChanged::TYPE,
    v1::TaskFired::TYPE,
    v1::ThreadArchived::TYPE,
    v1::ChainEnded::TYPE,
    v1::ChainStepEnded::TYPE,
    v1::TeamChanged::TYPE,
    v1::SubmoduleChanged::TYPE,
];

/// Failures by which an agent says that it cannot do what it was told; it goes on after all others.
const REFUSALS: [&str; 14] = [
    "unknown_action",
    "unknown_chain",
    "unknown_task",
    "unknown_thread",
    "unknown_offer",
    "not_in_doubt",
    "unknown_verdict",
    "unknown_command",
    "unknown_submodule",
    "unknown_team",
    "team_paused",
    "team_archived",
    "team_over_budget",
    "team_unchanged",
];

/// The event that ends the wait for an [`OrderTracker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedEvent {
    /// The words of the agent, once it has gone on.
    Words,
    /// The result of the tool that the order became, or let be called.
    Result,
    /// The result of the tool that a cancel became, or the end of a call that waited for consent.
    End,
    /// One of `EFFECTS`: the agent carried out the order itself.
    Effect,
    /// Anything that the agent decided on it.
    Decision,
}

/// The outcome of an order, or the question that the agent asks first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OrderOutcome {
    Done {
        text: String,
    },
    Failed {
        reason: String,
    },
    /// The agent asks something, before it says more.
    Asked {
        question: AgentQuestion,
    },
}

/// Watches the events that follow from an order. They may be shown to it more than once.
#[derive(Clone, Debug)]
pub struct OrderTracker {
    correlation_id: Uuid,
    until: AwaitedEvent,
    failure: Option<String>,
    /// The event that told the agent; what it decided on that is caused by it.
    told: Option<Uuid>,
    /// The turn that goes on because of it, by its correlation id: where the order is about a question, the turn is that
    /// of the message.
    turn: Option<Uuid>,
    /// The calls made at once because of it, by action id.
    calls: BTreeSet<String>,
}

impl OrderTracker {
    pub fn new(correlation_id: Uuid, until: AwaitedEvent) -> Self {
        Self { correlation_id, until, failure: None, told: None, turn: None, calls: BTreeSet::new() }
    }

    /// Looks at the next event; `Some` when it ended the order. Events of other orders are passed over.
    pub fn observe(&mut self, event: &EventJson) -> Option<OrderOutcome> {
        let own = event.correlation_id == self.correlation_id;
        let type_name = event.type_name.as_str();
        if own && TOLD.contains(&type_name) {
            self.told = Some(event.event_id);
            return None;
        }
        let decided = self.told.is_some() && event.causation_id == self.told;
        if decided {
            self.turn = Some(event.correlation_id);
        }
        let text = event.text().to_owned();
        match type_name {
            v1::UserMessageUndelivered::TYPE if own => Some(OrderOutcome::Failed { reason: text }),
            v1::AgentFailed::TYPE if own || self.is_its_turn(event) => self.observe_failure(event, text),
            v1::ToolResult::TYPE if flag(event, "late") => None,
            v1::ToolResult::TYPE if self.ends_with_result() && (own || self.is_its_call(event)) => {
                match flag(event, "ok") {
                    true => Some(OrderOutcome::Done { text }),
                    false => Some(OrderOutcome::Failed { reason: text }),
                }
            }
            // What was allowed was not called after all, or is the agent's own to do.
            v1::ChainStepEnded::TYPE if decided && self.until == AwaitedEvent::Result => {
                let done = event.payload.get("outcome").and_then(Value::as_str) == Some(StepState::Done.as_str());
                let told = describe_effect(event);
                Some(if done { OrderOutcome::Done { text: told } } else { OrderOutcome::Failed { reason: told } })
            }
            v1::ChainStepEnded::TYPE if decided && self.until == AwaitedEvent::End => {
                Some(OrderOutcome::Done { text: describe_effect(event) })
            }
            v1::AgentAction::TYPE if decided && self.until == AwaitedEvent::Result && !event.is_final_reply() => {
                self.calls.insert(event.event_id.to_string());
                None
            }
            effect if decided && self.until == AwaitedEvent::Effect && EFFECTS.contains(&effect) => {
                Some(OrderOutcome::Done { text: describe_effect(event) })
            }
            _ if decided && self.until == AwaitedEvent::Decision => {
                Some(OrderOutcome::Done { text: describe_effect(event) })
            }
            _ if self.until == AwaitedEvent::Words && (own || self.is_its_turn(event)) => {
                self.observe_reply(event, text)
            }
            _ => None,
        }
    }

    fn ends_with_result(&self) -> bool {
        matches!(self.until, AwaitedEvent::Result | AwaitedEvent::End)
    }

    fn is_its_turn(&self, event: &EventJson) -> bool {
        self.turn == Some(event.correlation_id)
    }

    fn is_its_call(&self, event: &EventJson) -> bool {
        event.payload.get("action_id").and_then(Value::as_str).is_some_and(|action| self.calls.contains(action))
    }

    fn observe_reply(&mut self, event: &EventJson, text: String) -> Option<OrderOutcome> {
        if let Some(question) = AgentQuestion::from_event(event) {
            return Some(OrderOutcome::Asked { question });
        }
        event.is_final_reply().then(|| {
            let failure = self.failure.take();
            match event.tells_of_failure(failure.is_some()) {
                true => OrderOutcome::Failed { reason: failure.unwrap_or(text) },
                false => OrderOutcome::Done { text },
            }
        })
    }

    fn observe_failure(&mut self, event: &EventJson, text: String) -> Option<OrderOutcome> {
        let kind = event.payload.get("kind").and_then(Value::as_str).unwrap_or_default();
        if REFUSALS.contains(&kind) {
            return Some(OrderOutcome::Failed { reason: text });
        }
        self.failure = (!flag(event, "retried")).then_some(text);
        None
    }
}

/// Describes the agent's own reaction to an order, in words.
fn describe_effect(event: &EventJson) -> String {
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let next = match text("next_at") {
        "" => String::new(),
        at => format!("; it is due next at {at}"),
    };
    let why = match text("reason") {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    match event.type_name.as_str() {
        v1::TaskChanged::TYPE => format!("the task is {}{why}{next}", text("status")),
        v1::TaskFired::TYPE => format!("the task runs{next}"),
        v1::SubmoduleChanged::TYPE => event.text().to_owned(),
        v1::TeamChanged::TYPE => format!("the team is {}{why}", text("status")),
        v1::ThreadArchived::TYPE if flag(event, "archived") => {
            format!("the thread {} is archived", text("thread_id"))
        }
        v1::ThreadArchived::TYPE => format!("the thread {} is no longer archived", text("thread_id")),
        v1::ChainEnded::TYPE => format!("the chain ended: {}{why}", text("outcome")),
        v1::ChainStepEnded::TYPE => format!("the step ended: {}{why}", text("outcome")),
        _ => "the agent was told, and goes on".to_owned(),
    }
}

/// The result of an order in words: how the process or the action ended that was to be stopped.
pub fn describe_result(result: &str) -> String {
    let Ok(told) = serde_json::from_str::<Value>(result) else { return result.to_owned() };
    let text = |name: &str| told.get(name).and_then(Value::as_str);
    let number = |name: &str| told.get(name).and_then(Value::as_i64);
    if let (Some(process), Some(outcome)) = (text("process_id"), text("outcome")) {
        let program = watch::program_name(text("program").unwrap_or("process"));
        let how = watch::describe_end(outcome, number("code"), number("signal"), text("reason").unwrap_or_default());
        let ran = number("ran_ms").and_then(|ran| u64::try_from(ran / 1_000).ok()).map(durations::format_seconds);
        let ran = ran.map(|ran| format!(" after {ran}")).unwrap_or_default();
        return format!("{program} ({}){ran}: {how}", watch::short_id(process));
    }
    if let (Some(action), Some(tool), Some(status)) = (text("action_id"), text("tool"), text("status")) {
        let why = told.pointer("/error/message").and_then(Value::as_str);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        return format!("{tool} ({}) {status}{why}", watch::short_id(action));
    }
    result.to_owned()
}

fn flag(event: &EventJson, name: &str) -> bool {
    event.payload.get(name).and_then(Value::as_bool).unwrap_or_default()
}
