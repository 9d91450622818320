//! Counting over the whole log: what must be there once is there once.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::{
    event_json,
    record::Record,
    subjects::{DLQ_STREAM, route},
};
use kairo_proto::{
    Body,
    v1::{AgentDecision, agent_action::Action, decided_event::Event},
};

use crate::world::World;

const MAX_BODY: usize = 1_000_000;

/// Waits until nothing is left to do, then sees that every message has one reply, every tool call one result, every
/// process one end and every input no more than one decision, in the order of the log, and that nothing was given up.
pub async fn passes(world: &World) {
    world.settled().await;
    let mut records = Vec::new();
    let read = world.bus.read_all("kairo.>", 0, |raw| records.push(raw.read(MAX_BODY).expect("an event")));
    read.await.unwrap();
    let mut wrong = replies(&records);
    wrong.extend(actions(&records));
    wrong.extend(decisions(&records));
    assert!(wrong.is_empty(), "{}\nthe log holds:\n{}", wrong.join("\n"), world.log.text());
    let mut letters = world.bus.jetstream.get_stream(DLQ_STREAM).await.unwrap();
    assert_eq!(letters.info().await.unwrap().state.messages, 0, "dead letters");
}

/// How often each of `found` is there, as against once for each of `expected`.
fn once<T: Ord + std::fmt::Debug>(
    what: &str,
    expected: impl IntoIterator<Item = T>,
    found: impl IntoIterator<Item = T>,
) -> Vec<String> {
    let mut counts: BTreeMap<T, i32> = BTreeMap::new();
    found.into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
    let expected: BTreeSet<T> = expected.into_iter().collect();
    let missing = expected.iter().filter(|key| !counts.contains_key(key)).map(|key| format!("no {what} for {key:?}"));
    let wrong = counts.iter().filter(|(key, count)| **count != 1 || !expected.contains(key));
    missing.chain(wrong.map(|(key, count)| format!("{count} × {what} for {key:?}"))).collect()
}

/// Every message was delivered to its agent once, and answered once.
fn replies(records: &[Record]) -> Vec<String> {
    let turns = |fits: fn(&Body) -> bool| {
        records.iter().filter(move |record| fits(&record.body)).map(|record| record.envelope.correlation_id)
    };
    let sent = || turns(|body| matches!(body, Body::UserMessage(_)));
    let delivered = turns(|body| matches!(body, Body::AgentMessage(_)));
    let replies = records.iter().flat_map(event_json::events).filter(|event| event.is_final_reply());
    let mut wrong = once("delivery", sent(), delivered);
    wrong.extend(once("reply", sent(), replies.map(|reply| reply.correlation_id)));
    wrong
}

/// Every tool call was begun once and ended once; what was begun as a process ended once as a process.
fn actions(records: &[Record]) -> Vec<String> {
    let asked: Vec<String> = records.iter().filter_map(decision).flat_map(tool_calls).collect();
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    let (mut processes, mut spawned, mut exited) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match &record.body {
            Body::ToolInvoke(invoke) => {
                let processes_of = invoke.actions.iter().filter(|action| action.executor == "process-supervisor");
                processes.extend(processes_of.map(|action| action.action_id.clone()));
                begun.extend(invoke.actions.iter().map(|action| action.action_id.clone()));
            }
            Body::ToolResult(result) => ended.push(result.action_id.clone()),
            Body::ProcessSpawned(process) => spawned.push(process.action_id.clone()),
            Body::ProcessExited(process) => exited.push(process.action_id.clone()),
            _ => {}
        }
    }
    let mut wrong = once("invoke", asked.clone(), begun);
    wrong.extend(once("result", asked, ended));
    wrong.extend(once("process", spawned.clone(), spawned));
    wrong.extend(once("end of a process", processes, exited));
    wrong
}

/// No input was decided on twice or out of order, and every message of a user was decided on.
fn decisions(records: &[Record]) -> Vec<String> {
    let mut wrong = Vec::new();
    let inputs: BTreeMap<u64, String> =
        records.iter().map(|record| (record.sequence, record.envelope.id.to_string())).collect();
    let mut cursors: BTreeMap<String, u64> = BTreeMap::new();
    let mut decided = BTreeSet::new();
    for (record, decision) in records.iter().filter_map(|record| Some((record, decision(record)?))) {
        let agent = route(&record.subject).unwrap().1.to_string();
        let before = cursors.insert(agent, decision.cursor);
        if before.is_some_and(|before| before >= decision.cursor) {
            wrong.push(format!("the decision at {} goes back to {}", record.sequence, decision.cursor));
        }
        if inputs.get(&decision.cursor) != Some(&decision.input_id) {
            wrong.push(format!("the decision at {} is on something else than its cursor", record.sequence));
        }
        decided.insert(decision.input_id.clone());
    }
    let messages = records.iter().filter(|record| matches!(record.body, Body::AgentMessage(_)));
    let undecided = messages.filter(|message| !decided.contains(&message.envelope.id.to_string()));
    wrong.extend(undecided.map(|message| format!("nothing was decided on the message at {}", message.sequence)));
    wrong
}

fn decision(record: &Record) -> Option<&AgentDecision> {
    match &record.body {
        Body::AgentDecision(decision) => Some(decision),
        _ => None,
    }
}

fn tool_calls(decision: &AgentDecision) -> impl Iterator<Item = String> + '_ {
    decision.events.iter().filter_map(|event| match &event.event {
        Some(Event::Action(action)) if matches!(action.action, Some(Action::ToolCall(_))) => {
            Some(event.event_id.clone())
        }
        _ => None,
    })
}
