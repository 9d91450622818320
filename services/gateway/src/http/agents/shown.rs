//! Profiles as clients are shown them, which can be put back as they are: the answer is the same profile.

use serde::{Serialize, Serializer, ser::Error};
use serde_json::Value;

/// An answer with profiles in it. What a profile in the log does not say is left out, and means the same where it is put; but for
/// what is true where nothing is said, which is told in any case.
#[derive(Debug)]
pub struct Shown<T>(pub T);

impl<T: Serialize> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut answer = serde_json::to_value(&self.0).map_err(S::Error::custom)?;
        let rows = answer
            .as_object_mut()
            .into_iter()
            .flatten()
            .filter(|(field, _)| matches!(field.as_str(), "agent" | "agents"));
        for row in rows.flat_map(|(_, rows)| listed(rows)) {
            row.get_mut("profile").into_iter().for_each(told);
        }
        answer.serialize(out)
    }
}

/// A list's rows, or the only one.
fn listed(rows: &mut Value) -> &mut [Value] {
    match rows {
        Value::Array(rows) => rows,
        row => std::slice::from_mut(row),
    }
}

fn told(profile: &mut Value) {
    let submodules = profile.get_mut("submodules").and_then(Value::as_array_mut).into_iter().flatten();
    for submodule in submodules.filter_map(Value::as_object_mut) {
        submodule.entry("wants_decisions").or_insert(Value::Bool(false));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kairo_proto::v1::{AgentRow, DefineAgentRequest, GetAgentResponse, ListAgentsResponse};
    use proptest::{
        option,
        prelude::*,
        test_runner::{Config, TestRunner},
    };
    use serde_json::{Map, json};

    use super::*;
    use crate::{config::GatewayConfig, http::agents::read};

    /// Fields that say something else of the agent, or take others to be there, and so are drawn together.
    fn background() -> impl Strategy<Value = Value> {
        let bounds = || {
            (0..9_u32, 0..9_000_000_000_u64, option::of(Just("2.50")), 0..604_801_u32).prop_map(
                |(calls, tokens, cost, seconds)| {
                    with(
                        json!({ "model_calls": calls, "tokens": tokens, "seconds": seconds }),
                        "cost",
                        cost.map(Value::from),
                    )
                },
            )
        };
        let mission =
            (".{1,40}", "[a-z0-9_-]{1,64}").prop_map(|(mission, owner)| json!({ "mission": mission, "owner": owner }));
        let work =
            (option::of(bounds()), option::of(bounds()), option::of(mission)).prop_map(|(session, task, mission)| {
                let fields = with(with(json!({ "conduct": "background" }), "session", session), "task", task);
                merged([fields, mission.unwrap_or_else(|| json!({}))])
            });
        prop_oneof![Just(json!({})), Just(json!({ "conduct": "direct" })), work]
    }

    fn with(mut fields: Value, field: &str, value: Option<Value>) -> Value {
        value.into_iter().for_each(|value| fields[field] = value);
        fields
    }

    fn merged(parts: impl IntoIterator<Item = Value>) -> Value {
        parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten().collect::<Map<_, _>>().into()
    }

    /// A field that may be left out, and may be given although it says no more than if it were.
    fn maybe<S: Strategy>(field: &'static str, values: S) -> BoxedStrategy<Value>
    where
        S::Value: Into<Value>,
    {
        option::of(values).prop_map(move |value| with(json!({}), field, value.map(Into::into))).boxed()
    }

    fn words(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
        prop::sample::select(words)
    }

    fn list(
        field: &'static str,
        items: BoxedStrategy<Value>,
        named_by: &'static str,
        most: usize,
    ) -> BoxedStrategy<Value> {
        let unlike = move |items: Vec<Value>| {
            let mut names = BTreeSet::new();
            items.into_iter().filter(|item| names.insert(item[named_by].to_string())).collect::<Vec<Value>>()
        };
        maybe(field, prop::collection::vec(items, 0..most).prop_map(unlike))
    }

    fn object(parts: Vec<BoxedStrategy<Value>>) -> BoxedStrategy<Value> {
        parts.prop_map(merged).boxed()
    }

    fn required<S: Strategy>(field: &'static str, values: S) -> BoxedStrategy<Value>
    where
        S::Value: Into<Value>,
    {
        values.prop_map(move |value| with(json!({}), field, Some(value.into()))).boxed()
    }

    fn lists() -> Vec<BoxedStrategy<Value>> {
        let tool = "!?[A-Za-z0-9._-]{1,20}[*]?";
        let submodule = object(vec![
            required("name", "[a-z0-9_-]{1,32}"),
            required("prompt", ".{1,40}"),
            maybe("tier", words(&["heavy", "fast", "light"])),
            maybe("hears", prop::collection::vec(words(&["message", "result", "process"]), 0..3)),
            maybe("deadline_ms", prop_oneof![Just(0_u32), 100..120_000_u32]),
            maybe("wants_decisions", any::<bool>()),
        ]);
        let member = object(vec![
            required("agent", "b[a-z0-9_-]{1,9}"),
            maybe("description", ".{0,40}"),
            maybe("tools", prop::collection::vec(tool, 0..4)),
        ]);
        let perception = object(vec![
            required("tool", "[a-z.]{1,20}"),
            maybe(
                "arguments",
                "[a-z]{1,9}".prop_map(|text| json!({ "zone": text, "n": 1.50, "deep": { "list": [null, true] } })),
            ),
        ]);
        let command = object(vec![
            required("value", "[a-z0-9_-]{1,32}"),
            required("label", "[a-zA-Z ]{1,20}x"),
            maybe("help", "[ -~]{0,20}"),
        ]);
        vec![
            maybe("tools", prop::collection::vec(tool, 0..5)),
            list("submodules", submodule, "name", 8),
            list("members", member, "agent", 5),
            list("environment", perception, "tool", 5),
            list("commands", command, "value", 5),
        ]
    }

    /// A profile as a client puts it, with any of its fields.
    fn profile() -> BoxedStrategy<Value> {
        let caps = (option::of(0..1_000_000_000_000_000_u64), option::of(0..9_u64), option::of(Just("50"))).prop_map(
            |(day, total, cost)| {
                let caps = with(json!({}), "tokens_per_day", day.map(Value::from));
                with(with(caps, "tokens_in_total", total.map(Value::from)), "cost_in_total", cost.map(Value::from))
            },
        );
        let mut parts = lists();
        parts.extend([
            required("agent", "a[a-z0-9_-]{0,63}"),
            required("prompt", ".{1,60}"),
            maybe("description", ".{0,60}"),
            maybe("max_steps", 0..1_001_u32),
            maybe("history_limit", 0..10_001_u32),
            maybe("interjection", words(&["order", "join", "restart"])),
            maybe("planning", words(&["tools", "chain"])),
            maybe("threads", words(&["single", "topics"])),
            maybe("time_zone", words(&["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"])),
            maybe("day_ends_at", "([01][0-9]|2[0-3]):[0-5][0-9]"),
            maybe("outside_content", words(&["consent", "trusted"])),
            maybe("session_pause", 0..86_401_u32),
            maybe("next_run_after", 0..604_801_u32),
            maybe("guesses_goal", any::<bool>()),
            maybe("max_reflections", 0..9_u32),
            maybe("max_submodules", 8..33_u32),
            maybe("history_cutoff", 0..10_001_u32),
            maybe("history_window", 0..31_622_401_u32),
            maybe("inner_state", any::<bool>()),
            maybe("summary_after", 0..1_001_u32),
            maybe("request_deadline", 0..86_401_u32),
            maybe("message_model_calls", 0..100_001_u32),
            maybe("caps", caps),
            background().boxed(),
        ]);
        object(parts)
    }

    /// What a client is shown once it has put this.
    fn put(profile: &Value) -> Value {
        let body = profile.to_string();
        let (_, read) =
            read(body.as_bytes(), &GatewayConfig::default()).unwrap_or_else(|problem| panic!("{problem:?}: {body}"));
        let agent = Some(AgentRow { profile: Some(read), ..Default::default() });
        let shown = serde_json::to_value(Shown(GetAgentResponse { agent, ..Default::default() })).unwrap();
        shown["agent"]["profile"].clone()
    }

    /// Whether what was put is what is shown, field by field: what is left out says what nothing says, numbers of 64 bits and what
    /// tools are called with are shown as texts.
    fn is_shown(put: &Value, shown: Option<&Value>) -> bool {
        match (put, shown) {
            (Value::Object(fields), Some(Value::Object(shown))) => {
                fields.iter().all(|(field, value)| is_shown(value, shown.get(field)))
            }
            (Value::Array(items), Some(Value::Array(shown))) => {
                items.len() == shown.len() && items.iter().zip(shown).all(|(item, shown)| is_shown(item, Some(shown)))
            }
            (Value::Object(_) | Value::Number(_), Some(Value::String(shown))) => put.to_string() == *shown,
            (put, None) => {
                [json!(""), json!(0), json!(false), json!([]), json!({})].contains(put) || is_without_bounds(put)
            }
            (put, Some(shown)) => put == shown,
        }
    }

    /// Bounds that bound nothing.
    fn is_without_bounds(bounds: &Value) -> bool {
        bounds.as_object().is_some_and(|bounds| bounds.values().all(|bound| *bound == json!(0)))
    }

    #[test]
    fn a_profile_that_is_read_is_the_one_that_was_put_and_can_be_put_again() {
        let cases = Config { cases: 500, failure_persistence: None, ..Config::default() };
        let same = |given: Value| {
            let shown = put(&given);
            prop_assert!(is_shown(&given, Some(&shown)), "put {given}, shown {shown}");
            prop_assert_eq!(put(&shown), shown);
            Ok(())
        };
        TestRunner::new(cases).run(&profile(), same).unwrap();
    }

    #[test]
    fn every_field_of_a_profile_is_drawn() {
        let mut drawn = BTreeSet::new();
        let mut runner = TestRunner::deterministic();
        for _ in 0..100 {
            let profile = profile().new_tree(&mut runner).unwrap().current();
            drawn.extend(profile.as_object().unwrap().keys().cloned());
        }
        // Those that a request leaves out where they say nothing are not told here.
        let asked = serde_json::to_value(DefineAgentRequest::default()).unwrap();
        let missing: Vec<&String> = asked.as_object().unwrap().keys().filter(|field| !drawn.contains(*field)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn when_caps_began_to_count_is_passed_over() {
        let put = |since: &str| {
            let profile = json!({ "agent": "a", "prompt": "x", "caps": { "tokens_per_day": "7", "since": since } });
            read(profile.to_string().as_bytes(), &GatewayConfig::default()).map(|(_, profile)| profile.caps.unwrap())
        };
        let caps = put("2026-11-28T12:00:00Z").unwrap();
        assert_eq!((caps.tokens_per_day, caps.since.as_str()), (7, ""));
        assert_eq!(put("yesterday").unwrap_err().errors[0].field, "caps.since");
    }

    #[test]
    fn what_is_true_where_nothing_is_said_is_told_in_lists_too() {
        let profile = json!({ "agent": "a", "prompt": "x", "submodules": [{ "name": "m", "prompt": "y", "wants_decisions": false }] });
        let (_, profile) = read(profile.to_string().as_bytes(), &GatewayConfig::default()).unwrap();
        let agents = vec![AgentRow { profile: Some(profile), ..Default::default() }, AgentRow::default()];
        let shown = serde_json::to_value(Shown(ListAgentsResponse { agents, ..Default::default() })).unwrap();
        assert_eq!(shown["agents"][0]["profile"]["submodules"][0]["wants_decisions"], json!(false));
    }
}
