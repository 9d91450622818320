//! Compares the report on a change with an agent that lives with it: the same request has the same answer.

use std::collections::{BTreeMap, HashSet};

use kairo_mind::{
    replay::{as_replayed, comparison::differences},
    request::ModelRequest,
};
use kairo_proto::v1::Completion;

use super::*;
use crate::decision_effects;
use crate::testing::{TestAgent, call_completion, text_completion};

/// The threads of each life's messages.
const LIVES: [&[&str]; 6] = [
    &["one", "two", "one", "three", "two", "one"],
    &["one", "one", "one", "one"],
    &["one", "two", "three", "four", "five", "six", "seven"],
    &["a", "b", "a", "b", "a", "b", "c", "d", "c"],
    &["a", "a", "b", "c", "d", "e", "f", "g"],
    &["b", "c", "b", "d", "e", "f", "g", "h", "i"],
];
/// The distance between messages: the results of a call are in the next block, which holds nothing else.
const BLOCK: u64 = 1_000_000;

/// By all that a request says but for ids, which tell a model nothing.
fn answer(request: &ModelRequest) -> Completion {
    let said = serde_json::to_string(request).unwrap();
    let is_id = |word: &&str| word.len() == 36 && word.matches('-').count() == 4;
    let words = said.split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-').filter(is_id);
    let without_ids = words.fold(said.clone(), |said, id| said.replace(id, "#"));
    let digest = kairo_events::ids::from_parts("answer", &[&without_ids]).to_string();
    match digest.as_bytes()[0] % 3 {
        0 => call_completion("tools.now"),
        _ => text_completion(&digest),
    }
}

/// A life in which each message is heard at a place of its own, but for one, and calls end when the next message is heard.
fn life(threads: &[&str], without: Option<usize>) -> Vec<LogMessage> {
    let mut agent = TestAgent::new("cook");
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    for (at, thread) in threads.iter().enumerate() {
        let begins = BLOCK * (at as u64 + 1);
        agent.continue_at(begins);
        if without != Some(at) {
            agent.hears(thread, &format!("message {at}"));
        }
        let decide = |agent: &mut TestAgent, waiting: &mut Vec<(u64, u64)>| {
            while let Some(decided) = agent.decide_with(answer) {
                if agent.calls_tool(decided) {
                    waiting.push((decided / BLOCK * BLOCK + BLOCK + 10 + decided % BLOCK * 3, decided));
                }
            }
        };
        let mut due = std::mem::take(&mut waiting);
        due.sort_unstable();
        decide(&mut agent, &mut waiting);
        for (place, decided) in due {
            agent.continue_at(place);
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
    let mut kept = 0;
    let mut presumed = 0;
    let mut unknown = 0;
    let mut vanished = 0;
    for threads in LIVES {
        let lived = life(threads, None);
        for without in 0..threads.len() {
            let truth = decisions(&life(threads, Some(without)));
            let at = BLOCK * (without as u64 + 1);
            let mut whatif = WhatIf::new(at, MessageChange::Drop, None);
            lived.iter().for_each(|message| drop(whatif.apply(message).unwrap()));
            let cone = whatif.into_cone().unwrap();
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
                        assert_eq!(differences(&as_replayed(&recorded), &as_replayed(really)), [], "{told}");
                    }
                    Some(Fate::Vanished) => {
                        vanished += 1;
                        assert!(!truth.contains_key(&input), "it is made: {told}");
                    }
                    Some(Fate::Unknown) => unknown += 1,
                    Some(Fate::Kept | Fate::Changed | Fate::Dropped | Fate::Edited) => {
                        panic!("nothing is another one: {told}")
                    }
                }
            }
        }
    }
    let told = format!("{kept} kept, {presumed} presumed, {unknown} unknown, {vanished} vanished");
    assert!([kept, presumed, unknown, vanished].iter().all(|count| *count > 20), "{told}");
}

/// The cone of a life without a message, with models asked that answer as they always do.
fn cone_at(lived: &[LogMessage], at: u64) -> Cone {
    let mut whatif = WhatIf::new(at, MessageChange::Drop, None).with_models();
    for message in lived {
        let mut took = whatif.apply(message).unwrap();
        while let WhatIfStep::Ask(questions) = took {
            let answers = questions.iter().map(|question| Completion {
                tier: question.request.tier.into(),
                request_digest: question.request.digest(),
                ..answer(&question.request)
            });
            took = whatif.answer(answers.collect());
        }
    }
    whatif.into_cone().unwrap()
}

#[test]
fn what_models_are_asked_for_is_what_the_agent_does_that_lives_without_the_message() {
    let mut changed = 0;
    let mut stays = 0;
    let mut vanished = 0;
    let mut behind_open = 0;
    for threads in LIVES {
        let lived = life(threads, None);
        for without in 0..threads.len() {
            let truth = decisions(&life(threads, Some(without)));
            let at = BLOCK * (without as u64 + 1);
            let cone = cone_at(&lived, at);
            assert_eq!(cone.counts.unknown, 0, "{:#?}", cone.reached);
            // From a call on that nobody executes, nobody knows.
            let open = cone.reached.iter().find(|it| !it.lost.is_empty()).map_or(u64::MAX, |it| it.sequence);
            for message in lived.iter().filter(|it| it.sequence > at) {
                let Some((input, recorded)) = decisions(std::slice::from_ref(message)).into_iter().next() else {
                    continue;
                };
                let reached = cone.reached.iter().find(|it| it.sequence == message.sequence);
                let told = format!("{threads:?} without {without}, decision {}: {reached:?}", message.sequence);
                let really = truth.get(&input);
                if message.sequence > open {
                    behind_open += 1;
                    continue;
                }
                match reached.map(|it| it.fate) {
                    Some(Fate::Vanished) => {
                        vanished += 1;
                        assert!(really.is_none(), "it is made: {told}");
                    }
                    Some(Fate::Changed) => {
                        changed += 1;
                        let made: AgentDecision =
                            serde_json::from_value(reached.unwrap().made.clone().unwrap()).unwrap();
                        assert_eq!(
                            decision_effects::compare_effects(&made, really.unwrap(), HashSet::new),
                            [],
                            "{told}"
                        );
                        assert_ne!(
                            decision_effects::compare_effects(&recorded, really.unwrap(), HashSet::new),
                            [],
                            "{told}"
                        );
                    }
                    None | Some(Fate::Kept) => {
                        stays += 1;
                        assert_eq!(
                            decision_effects::compare_effects(&recorded, really.unwrap(), HashSet::new),
                            [],
                            "{told}"
                        );
                    }
                    Some(Fate::Unknown | Fate::Dropped | Fate::Edited) => panic!("{told}"),
                }
            }
        }
    }
    let told = format!("{changed} changed, {stays} stay, {vanished} vanished, {behind_open} behind an open call");
    assert!([changed, stays, vanished, behind_open].iter().all(|count| *count > 10), "{told}");
}
