//! What a decision does, apart from how a model came to it: decisions made of other answers are compared by that.

use std::collections::BTreeMap;

use kairo_mind::replay::compare::{self, Difference};
use kairo_proto::v1::{
    AgentAction, AgentDecision, AgentFailed, DecidedEvent, ToolCall, agent_action::Action, decided_event::Event,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call of a decision that models were asked for again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Call {
    pub tool: String,
    /// JSON, as text.
    pub arguments: String,
    /// Whether the log has no such call of this decision, and so no result: it is not executed.
    pub divergent: bool,
}

/// A decision without what models answered, what they thought and what it cost, nor tries that were tried again; arguments of
/// calls in one form.
pub fn of(decision: &AgentDecision) -> AgentDecision {
    let events = decision.events.iter().filter(|event| is_deed(event)).cloned().map(in_one_form).collect();
    let (completions, given_up) = (Vec::new(), Vec::new());
    AgentDecision { events, completions, given_up, cost: 0, reader: 0, ..decision.clone() }
}

/// Where two decisions do something else, or say it in other words; what counts most first.
pub fn differences(recorded: &AgentDecision, made: &AgentDecision) -> Vec<Difference> {
    compare::differences(&of(recorded), &of(made))
}

/// The calls of a decision, each with whether the recorded one makes the same: by tool and arguments, each as often.
pub fn calls(recorded: &AgentDecision, made: &AgentDecision) -> Vec<Call> {
    let mut there: BTreeMap<(String, String), usize> = BTreeMap::new();
    for call in recorded.events.iter().filter_map(DecidedEvent::tool_call) {
        *there.entry(key(call)).or_default() += 1;
    }
    let made = made.events.iter().filter_map(DecidedEvent::tool_call);
    made.map(|call| {
        let left = there.get_mut(&key(call)).filter(|left| **left > 0);
        let divergent = left.map(|left| *left -= 1).is_none();
        Call { tool: call.tool.clone(), arguments: call.arguments.clone(), divergent }
    })
    .collect()
}

/// The events of a decision beside the same ones of another, by their ids: calls by tool and arguments, whatever else by all
/// that it says. What has no counterpart is missing.
pub fn counterparts(recorded: &AgentDecision, made: &AgentDecision) -> BTreeMap<String, String> {
    let mut left: Vec<(&DecidedEvent, String)> = made.events.iter().map(|event| (event, likeness(event))).collect();
    let mut same = BTreeMap::new();
    for event in &recorded.events {
        let like = likeness(event);
        if let Some(at) = left.iter().position(|(_, other)| *other == like) {
            let (made, _) = left.remove(at);
            same.insert(event.event_id.clone(), made.event_id.clone());
        }
    }
    same
}

fn is_deed(event: &DecidedEvent) -> bool {
    !matches!(&event.event, Some(Event::Thought(_) | Event::Failed(AgentFailed { retried: true, .. })))
}

fn in_one_form(mut event: DecidedEvent) -> DecidedEvent {
    if let Some(Event::Action(AgentAction { action: Some(Action::ToolCall(call)) })) = &mut event.event {
        call.arguments = in_order(&call.arguments);
        call.reasoning_details.clear();
    }
    event
}

/// The same JSON, however it was written; text that is none stays.
fn in_order(arguments: &str) -> String {
    // Its maps are sorted.
    serde_json::from_str(arguments).map_or_else(|_| arguments.to_owned(), |value: Value| value.to_string())
}

fn key(call: &ToolCall) -> (String, String) {
    (call.tool.clone(), in_order(&call.arguments))
}

fn likeness(event: &DecidedEvent) -> String {
    match event.tool_call() {
        Some(call) => format!("{:?}", key(call)),
        // Ids within are derived from the input and from what was decided before it.
        None => serde_json::to_string(&DecidedEvent { event_id: String::new(), ..event.clone() }).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id of an event.
    fn id(number: &str) -> String {
        uuid::Uuid::from_u128(number.parse().unwrap()).to_string()
    }

    fn event(number: &str, event: Event) -> DecidedEvent {
        DecidedEvent { event_id: id(number), event: Some(event), ..DecidedEvent::default() }
    }

    fn call(id: &str, tool: &str, arguments: &str) -> DecidedEvent {
        let call = ToolCall { tool: tool.into(), arguments: arguments.into(), ..ToolCall::default() };
        event(id, Event::Action(AgentAction { action: Some(Action::ToolCall(call)) }))
    }

    fn thought(id: &str) -> DecidedEvent {
        event(id, Event::Thought(kairo_proto::v1::AgentThought { text: "hm".into(), ..Default::default() }))
    }

    fn decision(events: Vec<DecidedEvent>) -> AgentDecision {
        AgentDecision { events, ..AgentDecision::default() }
    }

    #[test]
    fn the_same_arguments_in_another_order_are_the_same_call_and_thoughts_are_no_deeds() {
        let recorded = decision(vec![thought("1"), call("2", "a.b", r#"{"x": 1, "y": [2]}"#)]);
        let made = decision(vec![call("3", "a.b", r#"{"y":[2],"x":1}"#)]);
        assert_eq!(differences(&recorded, &made), []);
        assert!(calls(&recorded, &made).iter().all(|call| !call.divergent));
        assert_eq!(counterparts(&recorded, &made), [(id("2"), id("3"))].into());
    }

    #[test]
    fn other_arguments_another_tool_and_one_call_more_have_no_recorded_result() {
        let recorded = decision(vec![call("1", "a.b", r#"{"x":1}"#)]);
        let made = vec![
            call("2", "a.b", r#"{"x":1.5}"#),
            call("3", "a.c", r#"{"x":1}"#),
            call("4", "a.b", r#"{"x":1}"#),
            call("5", "a.b", r#"{"x":1}"#),
        ];
        let divergent: Vec<bool> = calls(&recorded, &decision(made.clone())).iter().map(|it| it.divergent).collect();
        assert_eq!(divergent, [true, true, false, true]);
        assert_eq!(counterparts(&recorded, &decision(made)), [(id("1"), id("4"))].into());
    }
}
