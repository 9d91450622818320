//! What is said of a change, beside what happens to an agent that lives with it: the same request has the same answer.

use std::collections::BTreeMap;

use kairo_mind::{replay::compare::differences, request::ModelRequest};
use kairo_proto::v1::Completion;

use super::*;
use crate::testing::{Agent, calls, says};

/// How far messages are apart: what comes of a call stands in the next block, where nothing else can.
const BLOCK: u64 = 1_000_000;

fn answer(request: &ModelRequest) -> Completion {
    let digest = request.digest();
    match digest.as_bytes()[0] % 3 {
        0 => calls("tools.now"),
        _ => says(&digest),
    }
}

/// A life in which each message is heard at a place of its own, but for one, and calls end when the next message is heard.
fn life(threads: &[&str], without: Option<usize>) -> Vec<LogMessage> {
    let mut agent = Agent::new("cook");
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    for (at, thread) in threads.iter().enumerate() {
        let begins = BLOCK * (at as u64 + 1);
        agent.goes_on_at(begins);
        if without != Some(at) {
            agent.hears(thread, &format!("message {at}"));
        }
        let decide = |agent: &mut Agent, waiting: &mut Vec<(u64, u64)>| {
            while let Some(decided) = agent.decides_with(answer) {
                if agent.waits(decided) {
                    waiting.push((decided / BLOCK * BLOCK + BLOCK + 10 + decided % BLOCK * 3, decided));
                }
            }
        };
        let mut due = std::mem::take(&mut waiting);
        due.sort_unstable();
        decide(&mut agent, &mut waiting);
        for (place, decided) in due {
            agent.goes_on_at(place);
            agent.learns(decided, "2");
            decide(&mut agent, &mut waiting);
        }
    }
    agent.messages()
}

fn decisions(messages: &[LogMessage]) -> BTreeMap<String, AgentDecision> {
    let read = |message: &LogMessage| {
        let body = Body::decode(&message.headers["ce-type"], ContentType::Protobuf, &message.data).unwrap();
        AgentDecision::of(&body).map(|decision| (decision.input_id.clone(), decision.clone()))
    };
    messages.iter().filter_map(read).collect()
}

#[test]
fn what_is_said_to_stay_to_change_or_to_vanish_does() {
    let lives = [
        &["one", "two", "one", "three", "two", "one"][..],
        &["one", "one", "one", "one"],
        &["one", "two", "three", "four", "five", "six", "seven"],
        &["a", "b", "a", "b", "a", "b", "c", "d", "c"],
    ];
    let (mut kept, mut presumed, mut unknown, mut vanished) = (0, 0, 0, 0);
    for threads in lives {
        let lived = life(threads, None);
        for without in 0..threads.len() {
            let truth = decisions(&life(threads, Some(without)));
            let at = BLOCK * (without as u64 + 1);
            let mut whatif = WhatIf::new(at, Change::Drop, None);
            lived.iter().for_each(|message| whatif.take(message).unwrap());
            let cone = whatif.cone().unwrap();
            for message in lived.iter().filter(|it| it.sequence > at) {
                let decided = decisions(std::slice::from_ref(message));
                let Some((input, recorded)) = decided.into_iter().next() else { continue };
                let reached = cone.reached.iter().find(|it| it.sequence == message.sequence);
                let told = format!("{threads:?} without {without}, decision {}: {reached:?}", message.sequence);
                match reached.map(|it| it.fate) {
                    // What is presumed may be another one: nobody knows what is done before it.
                    None if cone
                        .reached
                        .iter()
                        .any(|it| it.fate == Fate::Unknown && it.sequence < message.sequence) =>
                    {
                        presumed += 1;
                    }
                    None => {
                        kept += 1;
                        let really = truth.get(&input).unwrap_or_else(|| panic!("it is not made: {told}"));
                        assert_eq!(differences(&recorded, really), [], "{told}");
                    }
                    Some(Fate::Vanished) => {
                        vanished += 1;
                        assert!(!truth.contains_key(&input), "it is made: {told}");
                    }
                    Some(Fate::Unknown) => unknown += 1,
                    Some(Fate::Changed | Fate::Dropped | Fate::Edited) => panic!("nothing is another one: {told}"),
                }
            }
        }
    }
    let told = format!("{kept} kept, {presumed} presumed, {unknown} unknown, {vanished} vanished");
    assert!([kept, presumed, unknown, vanished].iter().all(|count| *count > 20), "{told}");
}
