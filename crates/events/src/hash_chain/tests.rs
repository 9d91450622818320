//! Logs as replicas write them that see each other late, and what whoever reads them from the beginning makes of them.

use proptest::prelude::*;

use super::*;

/// The message at the sequence of its place, counted from 1.
#[derive(Clone, Debug)]
enum Message {
    Another(ContentDigest),
    Decision(ContentDigest, Option<HashLink>),
    Unreadable(ContentDigest),
}

/// A replica: what it has read, and the decision that it thinks about.
#[derive(Default)]
struct Replica {
    chain: HashChain,
    read: usize,
    thinks: Option<(u64, Option<HashLink>)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrives,
    Unreadable,
    Copy(usize),
    Reads(usize, usize),
    Thinks(usize),
    Commits(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Arrives),
        1 => Just(Step::Unreadable),
        1 => (0..100_usize).prop_map(Step::Copy),
        6 => (0..2_usize, 1..5_usize).prop_map(|(who, many)| Step::Reads(who, many)),
        4 => (0..2_usize).prop_map(Step::Thinks),
        4 => (0..2_usize).prop_map(Step::Commits),
    ]
}

fn content(number: usize) -> ContentDigest {
    let number = number.to_string();
    ContentDigest::of_message(
        "kairo.agent.ann.message",
        [("ce-id", &*number)].into_iter(),
        number.as_bytes(),
        Timestamp::UNIX_EPOCH,
    )
}

fn take(chain: &mut HashChain, sequence: usize, message: &Message) {
    let sequence = sequence as u64;
    match message {
        Message::Another(content) => chain.apply_message(sequence, *content, ChainRole::Other),
        Message::Decision(content, link) => chain.apply_message(sequence, *content, ChainRole::Decision(link.as_ref())),
        Message::Unreadable(content) => chain.apply_message(sequence, *content, ChainRole::UnreadableDecision),
    }
}

/// The log that comes of it, and where decisions were committed with a link. Links are written behind the step `epoch`.
fn written(steps: &[Step], epoch: usize) -> (Vec<Message>, Vec<u64>) {
    let mut log = Vec::<Message>::new();
    let mut replicas = [Replica::default(), Replica::default()];
    let mut links = Vec::new();
    let last_decision = |log: &[Message]| {
        let last = log.iter().rposition(|message| !matches!(message, Message::Another(_)));
        last.map_or(0, |at| at as u64 + 1)
    };
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Arrives => log.push(Message::Another(content(number))),
            Step::Unreadable => log.push(Message::Unreadable(content(number))),
            Step::Copy(of) => {
                let decisions: Vec<_> = log.iter().filter(|it| matches!(it, Message::Decision(..))).cloned().collect();
                log.extend(decisions.get(of % decisions.len().max(1)).cloned());
            }
            Step::Reads(who, many) => {
                let Replica { chain, read, thinks } = &mut replicas[who];
                for message in log.iter().skip(*read).take(many) {
                    *read += 1;
                    take(chain, *read, message);
                    // Whoever reads somebody else's decision begins anew.
                    if thinks.as_ref().is_some_and(|(guard, _)| *guard != chain.last_decision()) {
                        *thinks = None;
                    }
                }
            }
            Step::Thinks(who) => {
                let Replica { chain, thinks, .. } = &mut replicas[who];
                let link = (number >= epoch || chain.has_begun()).then(|| chain.next_link());
                *thinks = Some((chain.last_decision(), link));
            }
            Step::Commits(who) => {
                let Some((guard, link)) = replicas[who].thinks.take() else { continue };
                if guard != last_decision(&log) {
                    continue;
                }
                let content = content(number);
                log.push(Message::Decision(content, link.clone()));
                let sequence = log.len() as u64;
                replicas[who].chain.apply_decision(sequence, content, link.as_ref());
                links.extend(link.map(|_| sequence));
            }
        }
    }
    (log, links)
}

/// Returns the sequences of the links at which a reader comes to the same digest.
fn fitting(log: &[Message]) -> Vec<u64> {
    let mut chain = HashChain::default();
    let mut fitting = Vec::new();
    for (at, message) in (1..).zip(log) {
        let sequence = at as u64;
        if let Message::Decision(_, Some(link)) = message
            && chain.is_next(sequence, link)
            && chain.expected_link(link.previous, link.through) == *link
        {
            fitting.push(sequence);
        }
        take(&mut chain, at, message);
    }
    fitting
}

proptest! {
    #[test]
    fn whoever_reads_the_log_comes_to_the_digests_that_were_written(
        steps in proptest::collection::vec(step(), 0..120),
        epoch in 0..60_usize,
    ) {
        let (log, links) = written(&steps, epoch);
        prop_assert_eq!(fitting(&log), links);
    }

    #[test]
    fn whatever_is_changed_makes_the_digest_another_that_covers_it(
        steps in proptest::collection::vec(step(), 20..120),
        at in 0..1_000_usize,
    ) {
        let (mut log, links) = written(&steps, 0);
        let Some(last) = links.last() else { return Ok(()) };
        let Some(Message::Decision(_, Some(link))) = log.get(*last as usize - 1) else { unreachable!() };
        let through = link.through as usize;
        let Some(at) = at.checked_rem(through) else { return Ok(()) };
        let other = content(10_000);
        match &mut log[at] {
            Message::Another(content) | Message::Decision(content, _) | Message::Unreadable(content) => *content = other,
        }
        prop_assert_ne!(fitting(&log), links);
    }
}

#[test]
fn a_chain_that_was_saved_goes_on_as_it_would_have() {
    let mut chain = HashChain::default();
    chain.apply_message(1, content(1), ChainRole::Other);
    let link = chain.next_link();
    chain.apply_decision(3, content(3), Some(&link));
    let saved: HashChain = serde_json::from_str(&serde_json::to_string(&chain).unwrap()).unwrap();
    assert_eq!(saved, chain);
    let told = |mut chain: HashChain| {
        [(2, content(2)), (4, content(4))]
            .into_iter()
            .for_each(|(at, content)| chain.apply_message(at, content, ChainRole::Other));
        chain.next_link()
    };
    assert_eq!(told(saved), told(chain.clone()));
    assert_eq!((chain.uncovered_count(), link.messages, link.previous), (1, 1, 0));
}

#[test]
fn what_is_part_of_a_messages_content_and_what_is_not() {
    let base = [("ce-id", "1"), ("ce-type", "a")];
    let of = |subject: &str, headers: &[(&str, &str)], payload: &[u8], at: i64| {
        let at = Timestamp::from_second(at).unwrap();
        ContentDigest::of_message(subject, headers.iter().copied(), payload, at)
    };
    let subject = "kairo.agent.ann.message";
    let plain = of(subject, &base, b"body", 7);
    assert_eq!(plain, of(subject, &[base[1], ("Nats-Expected-Last-Sequence", "9"), base[0]], b"body", 7));
    let others = [
        of("kairo.agent.bob.message", &base, b"body", 7),
        of(subject, &[base[0]], b"body", 7),
        of(subject, &[base[0], ("ce-type", "b")], b"body", 7),
        of(subject, &base, b"Body", 7),
        of(subject, &base, b"body", 8),
        // What moves from one part to the next is not the same.
        of(subject, &[("ce-id", "1c"), ("e-type", "a")], b"body", 7),
    ];
    assert!(!others.contains(&plain));
    let decision = "kairo.agent.ann.decision";
    assert_eq!(of(decision, &base, b"body", 7), of(decision, &base, b"body", 8));
}
