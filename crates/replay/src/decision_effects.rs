//! The effects of a decision, apart from how a model came to them; decisions made from other answers are compared by
//! these.

use std::collections::{BTreeMap, HashSet};

use kairo_mind::replay::comparison::{self, Difference};
use kairo_proto::v1::{
    AgentAction, AgentDecision, AgentFailed, Ask, DecidedEvent, agent_action::Action, decided_event::Event,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// A tool call of a decision that models were asked for again, or what it asks of another agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecisionCall {
    pub tool: String,
    /// JSON, as text.
    pub arguments: String,
    /// True if the recorded decision has no such call, so that the log has no result of it: it is not executed.
    pub divergent: bool,
}

/// A decision without what models answered, what they thought and what it cost, nor tries that were tried again; arguments of
/// calls in one form.
pub fn effects_of(decision: &AgentDecision) -> AgentDecision {
    let events = decision.events.iter().filter(|event| is_effect(event)).cloned().map(normalize_call).collect();
    let completions = Vec::new();
    let given_up = Vec::new();
    AgentDecision {
        events,
        completions,
        given_up,
        cost: 0,
        unpriced_tokens: 0,
        reader: 0,
        link: None,
        ..decision.clone()
    }
}

/// Returns the differences in effect or wording between two decisions, the most important first. `known` are the ids
/// that existed before either.
pub fn compare_effects(
    recorded: &AgentDecision,
    made: &AgentDecision,
    known: impl FnOnce() -> HashSet<String>,
) -> Vec<Difference> {
    comparison::differences_beside(&effects_of(recorded), &effects_of(made), known)
}

/// The calls of a decision, each with whether the recorded one makes the same: by tool and arguments, each as often.
pub fn mark_divergent_calls(recorded: &AgentDecision, made: &AgentDecision) -> Vec<DecisionCall> {
    let mut there: BTreeMap<Act, usize> = BTreeMap::new();
    for act in recorded.events.iter().filter_map(Act::from_event) {
        *there.entry(act).or_default() += 1;
    }
    let made = made.events.iter().filter_map(Act::from_event);
    made.map(|act| {
        let left = there.get_mut(&act).filter(|left| **left > 0);
        let divergent = left.map(|left| *left -= 1).is_none();
        DecisionCall { tool: act.tool, arguments: act.arguments, divergent }
    })
    .collect()
}

/// Returns the error with which a decision ended for want of an answer, if the recorded one did not: an agent whose
/// model is away shows nothing of what the model would have answered.
pub fn missing_answer_error(recorded: &AgentDecision, made: &AgentDecision) -> Option<String> {
    let ended_with = |decision: &AgentDecision, why: &str| {
        let is_why = |event: &DecidedEvent| matches!(&event.event, Some(Event::Failed(AgentFailed { retried: false, message, .. })) if message == why);
        decision.events.iter().any(is_why)
    };
    let mut errors = made.completions.iter().filter_map(|completion| Some(&completion.error.as_ref()?.message));
    errors.find(|why| ended_with(made, why) && !ended_with(recorded, why)).cloned()
}

/// The decision with the ids of the recorded events that its own are the same as: calls by tool and arguments, whatever else by all
/// that it says. So what the log has of those is about these. No other event of it has an id of the recorded ones.
pub fn with_recorded_ids(recorded: &AgentDecision, made: AgentDecision) -> AgentDecision {
    let same = match_recorded_events(recorded, &made);
    let is_recorded = |id: &str| recorded.events.iter().any(|event| event.event_id == id);
    let other = |id: &str| Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("asked again {id}").as_bytes()).to_string();
    let ids = made.events.iter().map(|event| event.event_id.as_str());
    let renamed = ids.filter_map(|id| match same.get(id) {
        Some(recorded) => Some((id.to_owned(), recorded.clone())),
        None => is_recorded(id).then(|| (id.to_owned(), other(id))),
    });
    let renamed: Vec<(String, String)> = renamed.filter(|(id, new)| id != new).collect();
    let Ok(mut text) = serde_json::to_string(&made) else { return made };
    // By way of what is no id, since the new id of one may be the old one of another.
    let between = |at: usize| format!("\u{1}{at}\u{1}");
    for (at, (id, _)) in renamed.iter().enumerate() {
        text = text.replace(id, &between(at));
    }
    for (at, (_, new)) in renamed.iter().enumerate() {
        text = text.replace(&between(at), new);
    }
    serde_json::from_str(&text).unwrap_or(made)
}

/// The events of a decision that are the same as recorded ones, with the ids of these.
fn match_recorded_events(recorded: &AgentDecision, made: &AgentDecision) -> BTreeMap<String, String> {
    let mut left: Vec<(&DecidedEvent, String)> =
        made.events.iter().map(|event| (event, effect_fingerprint(event))).collect();
    let mut same = BTreeMap::new();
    for event in &recorded.events {
        let like = effect_fingerprint(event);
        if let Some(at) = left.iter().position(|(_, other)| *other == like) {
            let (made, _) = left.remove(at);
            same.insert(made.event_id.clone(), event.event_id.clone());
        }
    }
    same
}

/// A request for an action elsewhere, whose result the decision awaits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Act {
    tool: String,
    arguments: String,
}

impl Act {
    fn from_event(event: &DecidedEvent) -> Option<Self> {
        let Some(Event::Action(AgentAction { action: Some(action) })) = &event.event else { return None };
        match action {
            Action::Say(_) => None,
            Action::ToolCall(call) => {
                Some(Self { tool: call.tool.clone(), arguments: canonical_json(&call.arguments) })
            }
            Action::Ask(Ask { agent, kind, tool, arguments, title, text, .. }) => {
                let arguments =
                    if arguments.is_empty() { format!("{title}\n{text}") } else { canonical_json(arguments) };
                Some(Self { tool: format!("{kind} {agent} {tool}").trim_end().to_owned(), arguments })
            }
        }
    }
}

fn is_effect(event: &DecidedEvent) -> bool {
    !matches!(&event.event, Some(Event::Thought(_) | Event::Failed(AgentFailed { retried: true, .. })))
}

fn normalize_call(mut event: DecidedEvent) -> DecidedEvent {
    if let Some(Event::Action(AgentAction { action: Some(Action::ToolCall(call)) })) = &mut event.event {
        call.arguments = canonical_json(&call.arguments);
        call.reasoning_details.clear();
    }
    event
}

/// Returns the JSON in one form, however it was written; text that is not JSON stays.
fn canonical_json(arguments: &str) -> String {
    // Its maps are sorted.
    serde_json::from_str(arguments).map_or_else(|_| arguments.to_owned(), |value: Value| value.to_string())
}

fn effect_fingerprint(event: &DecidedEvent) -> String {
    match Act::from_event(event) {
        Some(act) => format!("{act:?}"),
        // Ids within are derived from the input and from what was decided before it.
        None => serde_json::to_string(&DecidedEvent { event_id: String::new(), ..event.clone() }).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::ToolCall;

    use super::*;

    /// The id of an event.
    fn id(number: &str) -> String {
        Uuid::from_u128(number.parse().unwrap()).to_string()
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
        assert_eq!(compare_effects(&recorded, &made, HashSet::new), []);
        assert!(mark_divergent_calls(&recorded, &made).iter().all(|call| !call.divergent));
        assert_eq!(with_recorded_ids(&recorded, made).events[0].event_id, id("2"));
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
        let divergent: Vec<bool> =
            mark_divergent_calls(&recorded, &decision(made.clone())).iter().map(|it| it.divergent).collect();
        assert_eq!(divergent, [true, true, false, true]);
        let ids: Vec<String> =
            with_recorded_ids(&recorded, decision(made)).events.into_iter().map(|event| event.event_id).collect();
        assert_eq!(ids, [id("2"), id("3"), id("1"), id("5")]);
    }

    #[test]
    fn a_call_that_has_the_id_of_another_one_by_chance_gets_none_of_its_results() {
        let recorded = decision(vec![call("1", "a.b", "{}"), call("2", "a.c", "{}")]);
        let made = decision(vec![thought("1"), call("2", "a.d", "{}"), call("3", "a.b", "{}")]);
        let ids: Vec<String> =
            with_recorded_ids(&recorded, made).events.into_iter().map(|event| event.event_id).collect();
        assert_eq!(ids[2], id("1"), "it is the same call");
        assert!(!ids[..2].contains(&id("1")) && !ids[..2].contains(&id("2")), "{ids:?}");
    }
}
