use std::collections::BTreeSet;

use kairo_events::vocabulary::READER;
use kairo_proto::v1::LogMessage;

use super::*;
use crate::testing::{TestAgent, call_completion, name, text_completion, with_changed_decision};

/// A log with three decisions, and where they and the result stand.
fn log() -> (Vec<LogMessage>, [u64; 4]) {
    let mut agent = TestAgent::new("cook");
    agent.hears("", "time please");
    let asks = agent.decide(&[call_completion("tools.now")]);
    let learns = agent.learns(asks, "2");
    let tells = agent.decide(&[text_completion("It is 2.")]);
    agent.hears("", "thanks");
    let last = agent.decide(&[text_completion("You are welcome.")]);
    (agent.messages(), [asks, learns, tells, last])
}

fn proof(messages: &[LogMessage], extent: LogExtent) -> Proof {
    let mut proving = Prover::new(BTreeSet::from([name("cook")]), extent, None);
    messages.iter().for_each(|message| proving.apply(message).unwrap());
    proving.finish()
}

fn misfit(messages: &[LogMessage]) -> Option<(u64, MisfitKind, u64)> {
    let proof = proof(messages, LogExtent::Whole);
    proof.first_misfit().map(|(_, misfit)| (misfit.sequence, misfit.kind, misfit.decision))
}

fn changed(messages: &[LogMessage], at: u64, change: impl Fn(&mut LogMessage)) -> Vec<LogMessage> {
    let mut messages = messages.to_vec();
    messages.iter_mut().filter(|message| message.sequence == at).for_each(change);
    messages
}

fn without(messages: &[LogMessage], at: u64) -> Vec<LogMessage> {
    messages.iter().filter(|message| message.sequence != at).cloned().collect()
}

/// A message that stands behind all others.
fn behind(messages: &[LogMessage], like: u64, sequence: u64) -> LogMessage {
    let like = messages.iter().find(|message| message.sequence == like).unwrap();
    LogMessage { sequence, ..like.clone() }
}

#[test]
fn a_log_as_it_was_written_is_proven_but_for_what_no_decision_covers_yet() {
    let (messages, _) = log();
    let proof = proof(&messages, LogExtent::Whole);
    let [proven] = &proof.agents[..] else { panic!("{proof:?}") };
    // What the server announced is no agent's.
    let covered = messages.len() as u64 - 2 - 1;
    let told = (proven.decisions, proven.covered, proven.uncovered, proven.before_epoch, proven.copies);
    assert_eq!((told, &proven.misfit, proven.from), ((3, covered, 1, 0, 0), &None, None));
    assert_eq!(proof.read, messages.last().unwrap().sequence);
}

#[test]
fn every_message_that_is_changed_in_any_of_its_parts_is_named() {
    let (messages, [asks, learns, tells, last]) = log();
    let change: [fn(&mut LogMessage); 4] = [
        |message| *message.data.last_mut().unwrap() ^= 1,
        |message| _ = message.headers.insert("ce-more".into(), "x".into()),
        |message| _ = message.headers.remove("ce-origin"),
        |message| message.stored.as_mut().unwrap().nanos += 1,
    ];
    for (number, change) in change.iter().enumerate() {
        for (at, shown_by) in [(3, asks), (4, asks), (learns, tells), (7, last)] {
            let is_decision = at == 7;
            assert_eq!(is_decision, at == tells, "as the log is made");
            // When a decision was stored is not known to whoever writes it.
            let expected = (!(is_decision && number == 3)).then_some((at, MisfitKind::Changed, shown_by));
            let found = misfit(&changed(&messages, at, change));
            match (is_decision, number) {
                // It may be one that cannot be read any more.
                (true, 0) => assert_eq!(found.map(|it| it.0), Some(at)),
                _ => assert_eq!(found, expected, "change {number} of {at}"),
            }
        }
    }
}

#[test]
fn what_is_missing_swapped_or_added_is_told_apart() {
    let (messages, [asks, learns, tells, last]) = log();
    assert_eq!(misfit(&without(&messages, learns)), Some((learns, MisfitKind::Missing, tells)));
    assert_eq!(misfit(&without(&messages, 4)), Some((4, MisfitKind::Missing, asks)));
    assert_eq!(
        misfit(&without(&messages, 3)),
        Some((4, MisfitKind::Missing, asks)),
        "what stood before is not the agent's"
    );
    assert_eq!(misfit(&without(&messages, asks)), Some((asks, MisfitKind::Missing, tells)));
    assert_eq!(misfit(&without(&messages, tells)), Some((tells, MisfitKind::Missing, last)));

    let swapped = |one: u64, other: u64| {
        let mut messages = messages.clone();
        let place = |at: u64| messages.iter().position(|message| message.sequence == at).unwrap();
        let first = place(one);
        let second = place(other);
        messages.swap(first, second);
        (messages[first].sequence, messages[second].sequence) = (one, other);
        messages
    };
    assert_eq!(misfit(&swapped(3, 4)), Some((3, MisfitKind::Swapped, asks)));
    assert_eq!(misfit(&swapped(asks, learns)), Some((asks, MisfitKind::Swapped, tells)));
    assert_eq!(misfit(&swapped(asks, tells)).map(|it| it.0), Some(asks));

    // Between a message and the decision on it, which knew of nothing else.
    let mut agent = TestAgent::new("cook");
    agent.hears("", "hello");
    agent.continue_at(10);
    let greets = agent.decide(&[text_completion("Hello.")]);
    agent.hears("", "bye");
    agent.decide(&[text_completion("Bye.")]);
    let mut messages = agent.messages();
    let place = messages.iter().position(|message| message.sequence == greets).unwrap();
    messages.insert(place, behind(&messages, 4, 9));
    let (at, kind, by) = misfit(&messages).unwrap();
    assert_eq!((at, kind), (9, MisfitKind::Added), "shown by {by}");
}

#[test]
fn a_forged_decision_is_named_and_those_behind_it_are_still_held_to_it() {
    let (messages, [_, _, tells, last]) = log();
    // Published past the guard, as its forger likes.
    let with = |change: fn(&mut kairo_proto::v1::AgentDecision)| {
        let mut messages = messages.clone();
        messages.push(behind(&messages, last, last + 2));
        misfit(&with_changed_decision(&messages, last + 2, change))
    };
    let forged = Some((last + 2, MisfitKind::Forged, last + 2));
    assert_eq!(with(|decision| decision.input_id.push('x')), forged, "it has the link of another");
    assert_eq!(with(|decision| decision.link = None), forged);
    assert_eq!(with(|decision| decision.link.as_mut().unwrap().previous += 2), forged);
    let unguarded = with_changed_decision(&messages, tells, |decision| decision.link.as_mut().unwrap().digest[7] ^= 1);
    assert_eq!(misfit(&unguarded), Some((tells, MisfitKind::Forged, tells)));
    let proof = proof(&unguarded, LogExtent::Whole);
    assert_eq!(proof.agents[0].decisions, 1, "the first one alone fits: the third covers what the second was");
}

#[test]
fn a_copy_of_a_decision_counts_once_and_the_next_one_covers_it() {
    let mut agent = TestAgent::new("cook");
    agent.hears("", "hello");
    let greets = agent.decide(&[text_completion("Hello.")]);
    let mut messages = agent.messages();
    messages.push(behind(&messages, greets, greets + 1));
    let proof = proof(&messages, LogExtent::Whole);
    let proven = &proof.agents[0];
    assert_eq!((proven.decisions, proven.copies, &proven.misfit), (1, 1, &None));
    assert_eq!(proven.uncovered, 2);
}

#[test]
fn a_part_of_a_log_is_proven_from_its_first_decision_on_and_a_log_without_its_beginning_is_not_whole() {
    let (messages, [asks, learns, tells, _]) = log();
    let part: Vec<LogMessage> = messages.iter().filter(|message| message.sequence > asks).cloned().collect();
    let of_part = proof(&part, LogExtent::Cut);
    let proven = &of_part.agents[0];
    assert_eq!((proven.from, proven.decisions, &proven.misfit), (Some(tells), 1, &None));
    let changed = changed(&part, tells, |message| _ = message.headers.insert("x".into(), "y".into()));
    assert_eq!(proof(&changed, LogExtent::Cut).first_misfit().map(|(_, it)| it.sequence), Some(tells));
    assert_eq!(misfit(&part), Some((asks, MisfitKind::Missing, tells)), "{learns} is there");
    // One that has its beginning has lost what is not there.
    let holed = without(&messages, asks);
    assert_eq!(proof(&holed, LogExtent::Cut).first_misfit().map(|(_, it)| it.sequence), Some(asks));
}

#[test]
fn decisions_from_before_the_epoch_are_counted_and_a_newer_message_ends_it() {
    let (messages, decisions) = log();
    let [asks, _, tells, last] = decisions;
    let without_links = [asks, tells].iter().fold(messages.clone(), |messages, at| {
        with_changed_decision(&messages, *at, |decision| (decision.link, decision.reader) = (None, 1))
    });
    let only = with_changed_decision(&without_links, last, |decision| (decision.link, decision.reader) = (None, 1));
    let of_all = proof(&only, LogExtent::Whole);
    assert_eq!((of_all.agents[0].before_epoch, of_all.agents[0].decisions, of_all.first_misfit()), (3, 0, None));
    let newer = with_changed_decision(&messages, tells, |decision| decision.reader = READER + 1);
    let stopped = proof(&newer, LogExtent::Whole);
    assert_eq!(stopped.stopped.map(|it| it.sequence), Some(tells));
    assert_eq!(stopped.agents[0].decisions, 1);
}

#[test]
fn where_all_of_a_log_is_looked_at_a_hole_in_it_is_where_a_message_is_missing() {
    let mut agent = TestAgent::new("cook");
    agent.continue_at(10);
    let heard = agent.hears("", "hello");
    agent.continue_at(20);
    let greets = agent.decide(&[text_completion("Hello.")]);
    let mut messages = without(&agent.messages(), heard);
    // What others said in between.
    for sequence in (4..20).filter(|it| *it != heard) {
        let mut other = behind(&messages, 3, sequence);
        other.subject = "kairo.agent.bob.message".into();
        messages.insert(messages.len() - 1, other);
    }
    let of = |agents: BTreeSet<Name>| {
        let mut proving = Prover::new(agents, LogExtent::Whole, None);
        messages.iter().for_each(|message| proving.apply(message).unwrap());
        let proof = proving.finish();
        let (_, misfit) = proof.first_misfit().unwrap();
        (misfit.sequence, misfit.kind, misfit.decision, proof.gaps.clone())
    };
    assert_eq!(of(BTreeSet::new()), (heard, MisfitKind::Missing, greets, vec![heard]));
    assert_eq!(of(BTreeSet::from([name("cook")])), (greets, MisfitKind::Missing, greets, vec![]));
}

#[test]
fn a_long_link_names_the_stretch() {
    let mut agent = TestAgent::new("cook");
    (0..100).for_each(|number| _ = agent.hears(&format!("t{number}"), "hello"));
    let decides = agent.decide(&[text_completion("Hello.")]);
    let messages = agent.messages();
    assert_eq!(misfit(&messages), None);
    let found = misfit(&changed(&messages, 50, |message| _ = message.headers.insert("x".into(), "y".into())));
    assert_eq!(found, Some((3, MisfitKind::Changed, decides)));
    assert_eq!(misfit(&without(&messages, 50)), Some((3, MisfitKind::Missing, decides)));
}
