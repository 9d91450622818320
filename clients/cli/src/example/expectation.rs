//! Compares the result of a scene with the expected one. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_proto::words::{StepState, SubmoduleFailure};
use serde_json::Value;

use super::{
    conversation::{Group, SceneExpectation},
    player::event_agent,
    scene_chains::{SceneChain, chains},
};

/// Returns the differences, a line each.
pub fn unmet(expected: &SceneExpectation, events: &[EventJson], reply: Option<&str>) -> Vec<String> {
    let mut unmet = Vec::new();
    let mut check = |what: &str, wanted: Option<&String>, found: Option<String>| {
        if let Some(wanted) = wanted.filter(|wanted| Some(wanted.as_str()) != found.as_deref()) {
            unmet.push(format!("{what}: expected {wanted}, found {}", found.as_deref().unwrap_or("none")));
        }
    };
    check("thread", expected.thread.as_ref(), last_field(events, v1::ThreadMatched::TYPE, "action"));
    check("goal", expected.goal.as_ref(), last_field(events, v1::AgentGoal::TYPE, "text"));
    check("offer", expected.offer.as_ref(), last_field(events, v1::ThreadSuggested::TYPE, "action"));
    let chains = chains(events);
    if let Some(steps) = &expected.steps {
        unmet.extend(unmet_steps(steps, chains.last()));
    }
    for (tool, wanted) in &expected.calls {
        let found = count_tool_calls(events).get(tool.as_str()).copied().unwrap_or_default();
        if found != *wanted {
            unmet.push(format!("{tool}: expected to be called {wanted} times, was called {found} times"));
        }
    }
    unmet.extend(missing_texts("reply", &expected.reply, reply.unwrap_or_default()));
    if !expected.notified.is_empty() {
        let told: Vec<&str> = events.iter().filter(|event| is_say(event)).map(EventJson::text).collect();
        unmet.extend(missing_texts("notification", &expected.notified, &told.join("\n")));
    }
    if let Some(wanted) = &expected.delegated {
        let asked: Vec<&str> = events_of_type(events, v1::AgentRequest::TYPE).map(event_agent).collect();
        if asked != wanted.iter().map(String::as_str).collect::<Vec<_>>() {
            unmet.push(format!("delegated: expected {}, found {}", wanted.join(", "), asked.join(", ")));
        }
    }
    let told = events_of_type(events, v1::AgentBriefed::TYPE)
        .last()
        .map(|event| event.payload.get("told") == Some(&true.into()));
    if expected.briefed.is_some() && told != expected.briefed {
        unmet.push(format!("briefed: expected {:?}, found {told:?}", expected.briefed));
    }
    if let Some(wanted) = &expected.reviews {
        let verdicts =
            events_of_type(events, v1::AgentReflected::TYPE).filter_map(|event| event.payload.get("verdict"));
        let found: Vec<&str> = verdicts.filter_map(Value::as_str).collect();
        if found != wanted.iter().map(String::as_str).collect::<Vec<_>>() {
            unmet.push(format!("reviews: expected {}, found {}", wanted.join(", "), found.join(", ")));
        }
    }
    unmet.extend(unmet_submodules(expected, events));
    let is_compacted = events_of_type(events, v1::ThreadCompacted::TYPE).next().is_some();
    if expected.compacted.is_some_and(|wanted| wanted != is_compacted) {
        unmet.push(format!("compacted: expected {}, found {is_compacted}", !is_compacted));
    }
    unmet
}

/// Returns what submodules did that was not expected of them, a line each.
fn unmet_submodules(expected: &SceneExpectation, events: &[EventJson]) -> Vec<String> {
    let is_late =
        |event: &&EventJson| event.payload.get("kind").and_then(Value::as_str) == Some(SubmoduleFailure::Late.as_str());
    let module = |event: &EventJson| event.payload.get("module").and_then(Value::as_str).map(str::to_owned);
    let named = |found: Vec<&EventJson>| -> BTreeSet<String> {
        found.into_iter().filter_map(module).filter(|module| !module.is_empty()).collect()
    };
    let of = |type_name| events_of_type(events, type_name).collect::<Vec<_>>();
    let found = [
        ("thinks", &expected.thinks, named(of(v1::AgentThought::TYPE))),
        ("asked", &expected.asked, named(of(v1::SubmoduleAsked::TYPE))),
        ("late", &expected.late, named(events_of_type(events, v1::SubmoduleFailed::TYPE).filter(is_late).collect())),
    ];
    let differs = |(what, wanted, found): (&str, &Option<Vec<String>>, BTreeSet<String>)| {
        let wanted: BTreeSet<String> = wanted.as_ref()?.iter().cloned().collect();
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        (wanted != found).then(|| format!("{what}: expected {}, found {}", list(&wanted), list(&found)))
    };
    found.into_iter().filter_map(differs).collect()
}

fn events_of_type<'e>(events: &'e [EventJson], type_name: &'e str) -> impl Iterator<Item = &'e EventJson> {
    events.iter().filter(move |event| event.type_name == type_name)
}

/// Names of the steps, and that each was done.
fn unmet_steps(wanted: &[Group], chain: Option<&SceneChain>) -> Vec<String> {
    let Some(chain) = chain else {
        return if wanted.is_empty() { Vec::new() } else { vec!["steps: there was no chain".to_owned()] };
    };
    let names = |group: &[String]| group.join(" + ");
    let wanted: Vec<String> = wanted.iter().map(|group| names(group.names())).collect();
    let found: Vec<String> = chain
        .groups()
        .iter()
        .map(|group| names(&group.iter().map(|step| step.event.clone()).collect::<Vec<_>>()))
        .collect();
    let mut unmet = Vec::new();
    if wanted != found {
        unmet.push(format!("steps: expected {}, found {}", wanted.join(", "), found.join(", ")));
    }
    let not_done = chain.steps.iter().filter(|step| step.outcome != StepState::Done.as_str());
    unmet.extend(not_done.map(|step| match step.outcome.as_str() {
        "" => format!("{}: it was never run", step.event),
        outcome => format!("{}: {outcome}: {}", step.event, step.reason),
    }));
    unmet
}

/// Tools begun, and how often.
fn count_tool_calls(events: &[EventJson]) -> BTreeMap<&str, usize> {
    let mut calls = BTreeMap::new();
    for event in events.iter().filter(|event| event.type_name == v1::ToolInvoke::TYPE) {
        if let Some(tool) = event.payload.get("tool").and_then(Value::as_str) {
            *calls.entry(tool).or_default() += 1;
        }
    }
    calls
}

/// The texts that are not found, in any case, a line each.
pub(super) fn missing_texts(what: &str, wanted: &[String], found: &str) -> Vec<String> {
    let lower = found.to_lowercase();
    let missing = wanted.iter().filter(|text| !lower.contains(&text.to_lowercase()));
    missing.map(|text| format!("{what}: expected to find {text:?} in {found:?}")).collect()
}

fn last_field(events: &[EventJson], type_name: &str, field: &str) -> Option<String> {
    let event = events.iter().rev().find(|event| event.type_name == type_name)?;
    event.payload.get(field).and_then(Value::as_str).map(str::to_owned)
}

fn is_say(event: &EventJson) -> bool {
    event.payload.get("type").and_then(Value::as_str) == Some("say")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::example::scene_chains::tests::{event, events};

    fn expected(yaml: &str) -> SceneExpectation {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn nothing_expected_is_always_met() {
        assert_eq!(unmet(&SceneExpectation::default(), &[], None), Vec::<String>::new());
        assert_eq!(unmet(&expected("steps: []"), &[], None), Vec::<String>::new());
    }

    #[test]
    fn every_difference_is_named() {
        let mut events = events();
        events.push(event(20, v1::ThreadMatched::TYPE, json!({"action": "new"})));
        events.push(event(21, v1::ToolInvoke::TYPE, json!({"tool": "tools.now"})));
        let wanted = expected(
            "{thread: continue, offer: suggest_new, steps: [tools.now], calls: {tools.now: 1, memory.search: 0},
            reply: [Standup, dentist], notified: [groceries], delegated: [team-reader], briefed: true,
            compacted: true}",
        );
        let found = unmet(&wanted, &events, Some("a STANDUP"));
        assert_eq!(
            found,
            [
                "thread: expected continue, found new",
                "offer: expected suggest_new, found none",
                "steps: expected tools.now, found tools.now, calendar.check + task.list, agent.think",
                "task.list: failed: failed: no",
                "reply: expected to find \"dentist\" in \"a STANDUP\"",
                "notification: expected to find \"groceries\" in \"\"",
                "delegated: expected team-reader, found ",
                "briefed: expected Some(true), found None",
                "compacted: expected true, found false",
            ]
        );
    }
}
