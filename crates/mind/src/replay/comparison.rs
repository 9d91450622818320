//! In what two decisions differ. Ids that are derived from what a decision was made of are compared by where they occur
//! first: another build may derive others. Ids that stood in the log before are what is meant: another one is a difference.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use kairo_proto::v1::{AgentAction, AgentDecision, agent_action::Action, decided_event::Event};
use regex::{Captures, Regex};
use serde_json::Value;

/// A place at which two decisions differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Path of the value, such as `events.0.action.arguments`.
    pub at: String,
    pub recorded: String,
    pub made: String,
    /// True if the two differ only in text that a user or a model reads.
    pub is_wording: bool,
}

/// Maximum length shown of a value that differs, in characters.
const SHOWN: usize = 200;
/// Maximum number of places reported for two decisions.
pub const PLACES: usize = 64;
/// Fields that a model server gives each answer anew, and that say nothing of what is decided.
const OF_SERVERS: [&str; 3] = ["call_id", "passed_back", "answer_passed_back"];
/// Fields of events that hold words.
const WORDS: [&str; 6] = ["text", "summary", "title", "message", "reason", "note"];

static UUID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok());

/// The places at which they differ, at most [`PLACES`] of them; none if they are the same. What it does counts more than how it
/// says it, and both more than what follows from it, so they stand in this order.
pub fn differences(recorded: &AgentDecision, made: &AgentDecision) -> Vec<Difference> {
    differences_beside(recorded, made, HashSet::new)
}

/// The places at which two decisions differ, where the ids in `known` existed before either was made, so that another
/// one is a difference. `known` is called only if needed.
pub fn differences_beside(
    recorded: &AgentDecision,
    made: &AgentDecision,
    known: impl FnOnce() -> HashSet<String>,
) -> Vec<Difference> {
    if recorded == made {
        return Vec::new();
    }
    let known = known();
    let (recorded, made) =
        (with_numbered_ids(recorded, &known), with_numbered_ids(&without_new_fields(recorded, made), &known));
    let mut differences = Vec::new();
    collect_differences(&recorded, &made, "", &mut differences);
    let is_word = |it: &Difference| it.at.rsplit('.').next().is_some_and(|field| WORDS.contains(&field));
    let is_wording = differences.iter().all(is_word);
    differences.sort_by_key(|it| (is_word(it), !it.at.starts_with("events")));
    differences.truncate(PLACES);
    differences.into_iter().map(|it| Difference { is_wording, ..it }).collect()
}

/// Without what calls say today and did not where they were recorded: on whose behalf, and where consent was asked for.
fn without_new_fields(recorded: &AgentDecision, made: &AgentDecision) -> AgentDecision {
    let mut made = made.clone();
    for (recorded, made) in recorded.events.iter().zip(&mut made.events) {
        let did_not_say = recorded.tool_call().is_some_and(|call| call.user.is_none());
        if let Some(Event::Action(AgentAction { action: Some(Action::ToolCall(call)) })) = &mut made.event
            && did_not_say
        {
            (call.user, call.asked_at) = (None, 0);
        }
    }
    made
}

/// Every id in a text.
pub(super) fn ids_in(text: &str) -> HashSet<String> {
    UUID.iter().flat_map(|uuid| uuid.find_iter(text)).map(|id| id.as_str().to_owned()).collect()
}

/// As JSON, with a number in the place of each id that was not there before: the first id that occurs is 1.
fn with_numbered_ids(decision: &AgentDecision, known: &HashSet<String>) -> Value {
    let json = serde_json::to_string(decision).unwrap_or_default();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let number = |found: &Captures<'_>| {
        let next = numbers.len() + 1;
        let id = found.get(0).map_or("", |id| id.as_str()).to_owned();
        if known.contains(&id) {
            return id;
        }
        format!("#{}", numbers.entry(id).or_insert(next))
    };
    let json = match &*UUID {
        Some(uuid) => uuid.replace_all(&json, number).into_owned(),
        None => json,
    };
    serde_json::from_str(&json).unwrap_or_default()
}

fn collect_differences(recorded: &Value, made: &Value, at: &str, differences: &mut Vec<Difference>) {
    let below = |field: &str| if at.is_empty() { field.to_owned() } else { format!("{at}.{field}") };
    match (recorded, made) {
        (Value::Object(one), Value::Object(other)) => {
            let mut fields: Vec<&String> =
                one.keys().chain(other.keys().filter(|field| !one.contains_key(*field))).collect();
            fields.sort();
            for field in fields.into_iter().filter(|field| !OF_SERVERS.contains(&field.as_str())) {
                let of = |object: &serde_json::Map<String, Value>| object.get(field).cloned().unwrap_or_default();
                collect_differences(&of(one), &of(other), &below(field), differences);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for position in 0..one.len().max(other.len()) {
                let of = |array: &[Value]| array.get(position).cloned().unwrap_or_default();
                collect_differences(&of(one), &of(other), &below(&position.to_string()), differences);
            }
        }
        (one, other) if one == other => {}
        (one, other) => differences.push(Difference {
            at: at.to_owned(),
            recorded: shorten_value(one),
            made: shorten_value(other),
            is_wording: false,
        }),
    }
}

fn shorten_value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{DecidedEvent, Say, ToolCall};

    use super::*;

    fn compare(recorded: &AgentDecision, made: &AgentDecision) -> Option<Difference> {
        differences(recorded, made).into_iter().next()
    }

    fn says(id: u128, user: &str, text: &str) -> AgentDecision {
        let say = Say { text: text.into(), user: user.into(), ..Say::default() };
        let action = AgentAction { action: Some(Action::Say(say)) };
        let event_id = uuid::Uuid::from_u128(id).to_string();
        let event = DecidedEvent { event_id, event: Some(Event::Action(action)), ..Default::default() };
        AgentDecision { cursor: 7, events: vec![event], ..Default::default() }
    }

    #[test]
    fn what_calls_did_not_say_yet_is_no_difference() {
        let calls = |user: Option<&str>, tool: &str| {
            let call =
                ToolCall { tool: tool.into(), user: user.map(str::to_owned), asked_at: 7, ..ToolCall::default() };
            let call = if user.is_none() { ToolCall { asked_at: 0, ..call } } else { call };
            let action = AgentAction { action: Some(Action::ToolCall(call)) };
            let event = DecidedEvent { event: Some(Event::Action(action)), ..Default::default() };
            AgentDecision { events: vec![event], ..Default::default() }
        };
        assert_eq!(compare(&calls(None, "tools.now"), &calls(Some("ann"), "tools.now")), None);
        assert!(compare(&calls(Some("joe"), "tools.now"), &calls(Some("ann"), "tools.now")).is_some());
        assert!(compare(&calls(None, "tools.now"), &calls(Some("ann"), "email.send")).is_some());
    }

    #[test]
    fn another_of_what_was_there_before_is_a_difference() {
        let of = |thread: u128| {
            let thread_id = uuid::Uuid::from_u128(thread).to_string();
            let mut decision = says(9, "ann", "hello");
            decision.events[0].thread_id = thread_id;
            decision
        };
        let known = || [uuid::Uuid::from_u128(1).to_string(), uuid::Uuid::from_u128(2).to_string()].into();
        assert_eq!(compare(&of(1), &of(2)), None, "both may be new");
        let other = differences_beside(&of(1), &of(2), known);
        assert!(other[0].at.ends_with("thread_id") && !other[0].is_wording, "{other:?}");
        assert!(!differences_beside(&of(1), &of(3), known).is_empty(), "a new one where one was meant that is there");
        assert_eq!(differences_beside(&of(3), &of(4), known), [], "both are new");
    }

    #[test]
    fn other_ids_are_the_same_and_other_words_are_told_from_other_deeds() {
        assert_eq!(compare(&says(1, "ann", "hello"), &says(2, "ann", "hello")), None);
        let worded = compare(&says(1, "ann", "hello"), &says(1, "ann", "hi")).unwrap();
        assert!(worded.is_wording && worded.at.ends_with(".text"), "{worded:?}");
        assert_eq!((worded.recorded.as_str(), worded.made.as_str()), ("\"hello\"", "\"hi\""));
        let differs = compare(&says(1, "ann", "hello"), &says(1, "bob", "hi")).unwrap();
        assert!(!differs.is_wording && differs.at.ends_with(".user"), "{differs:?}");
        let fewer = compare(&says(1, "ann", "hello"), &AgentDecision { cursor: 7, ..Default::default() }).unwrap();
        assert!(!fewer.is_wording, "{fewer:?}");
    }
}
