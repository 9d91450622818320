//! Tests of `whatif`.

use kairo_mind::replay::RequestPart;

use super::*;
use crate::testing::{TestAgent, call_completion, text_completion};

/// Two conversations that share nothing: a time that is looked up, and a greeting.
struct Lived {
    messages: Vec<LogMessage>,
    asked: u64,
    looks: u64,
    result: u64,
    tells: u64,
    greeted: u64,
    greets: u64,
    thanked: u64,
    welcomes: u64,
}

fn lived() -> Lived {
    let mut agent = TestAgent::new("cook");
    let asked = agent.hears("one", "time please");
    let looks = agent.decide(&[call_completion("tools.now")]);
    let result = agent.learns(looks, "2");
    let tells = agent.decide(&[text_completion("It is 2.")]);
    let greeted = agent.hears("two", "hello");
    let greets = agent.decide(&[text_completion("Hello.")]);
    let thanked = agent.hears("one", "thanks");
    let welcomes = agent.decide(&[text_completion("You are welcome.")]);
    Lived { messages: agent.messages(), asked, looks, result, tells, greeted, greets, thanked, welcomes }
}

fn looked_at(messages: &[LogMessage], at: u64, change: MessageChange) -> Result<Cone, WhatIfError> {
    let mut whatif = WhatIf::new(at, change, None);
    for message in messages {
        whatif.apply(message)?;
    }
    whatif.into_cone()
}

fn fates(cone: &Cone) -> Vec<(u64, Fate, Option<u64>)> {
    cone.reached.iter().map(|it| (it.sequence, it.fate, it.because)).collect()
}

#[test]
fn without_a_message_all_that_follows_from_it_vanishes_and_what_shows_it_is_not_known() {
    let Lived { messages, asked, looks, result, tells, welcomes, .. } = lived();
    let cone = looked_at(&messages, asked, MessageChange::Drop).unwrap();
    let expected = [
        (asked, Fate::Dropped, None),
        (looks, Fate::Vanished, Some(asked)),
        (result, Fate::Vanished, Some(looks)),
        (tells, Fate::Vanished, Some(result)),
        (welcomes, Fate::Unknown, Some(asked)),
    ];
    assert_eq!(fates(&cone), expected);
    assert_eq!(cone.reached[4].drifted[0].parts, [RequestPart::History]);
    assert_eq!(cone.counts, ConeCounts { decisions: 4, kept: 1, unknown: 1, vanished: 2, ..ConeCounts::default() });
}

#[test]
fn behind_a_decision_that_is_not_known_nothing_that_rests_on_it_is_the_same() {
    let Lived { messages, asked, looks, result, tells, greets, welcomes, .. } = lived();
    let message = messages.iter().find(|it| it.sequence == asked).unwrap();
    let body = Body::decode(AgentMessage::TYPE, ContentType::Protobuf, &message.data).unwrap();
    let Body::AgentMessage(said) = body else { panic!("{message:?}") };
    let other = Body::from(AgentMessage { text: "weather please".into(), ..said.clone() }).to_json();
    let edit = MessageChange::Edit(other.to_string().into_bytes());
    let cone = looked_at(&messages, asked, edit).unwrap();
    let expected = [
        (asked, Fate::Edited, None),
        (looks, Fate::Unknown, Some(asked)),
        (result, Fate::Unknown, Some(looks)),
        (tells, Fate::Unknown, Some(result)),
        (welcomes, Fate::Unknown, Some(asked)),
    ];
    assert_eq!(fates(&cone), expected);
    assert!(cone.reached.iter().all(|it| it.sequence != greets), "the other conversation stays as it was");
    assert_eq!((cone.counts.kept, cone.counts.presumed), (0, 1), "what is not known might show in it");

    let same = MessageChange::Edit(Body::from(said).to_json().to_string().into_bytes());
    assert!(matches!(looked_at(&messages, asked, same), Err(WhatIfError::Unchanged(at)) if at == asked));
}

#[test]
fn without_a_result_the_decision_on_it_vanishes_and_what_was_said_later_is_looked_at_again() {
    let Lived { messages, result, tells, welcomes, greeted, thanked, .. } = lived();
    let cone = looked_at(&messages, result, MessageChange::Drop).unwrap();
    let of = |at: u64| cone.reached.iter().find(|it| it.sequence == at).map(|it| it.fate);
    assert_eq!((of(tells), of(welcomes)), (Some(Fate::Vanished), Some(Fate::Unknown)));
    assert_eq!((of(greeted), of(thanked)), (None, None), "what people say is taken as it was");
}

#[test]
fn a_change_that_nothing_shows_reaches_nothing() {
    let mut agent = TestAgent::new("cook");
    agent.hears("one", "hello");
    agent.decide(&[text_completion("Hello.")]);
    let last = agent.hears("one", "bye");
    let cone = looked_at(&agent.messages(), last, MessageChange::Drop).unwrap();
    assert_eq!((fates(&cone), cone.counts), (vec![(last, Fate::Dropped, None)], ConeCounts::default()));
}

#[test]
fn what_cannot_be_changed_is_named() {
    let Lived { messages, asked, looks, result, .. } = lived();
    let refused = |at: u64, change: MessageChange| looked_at(&messages, at, change).unwrap_err().to_string();
    assert!(refused(99, MessageChange::Drop).contains("message 99 is not in the log"));
    let decision = refused(looks, MessageChange::Drop);
    assert!(decision.contains(&format!("drop or edit what it is on, message {asked}")), "{decision}");
    for (json, named) in [("{", "EOF"), (r#"{"txet": "x"}"#, "txet"), (r#"{"text": 7}"#, "7")] {
        let why = refused(asked, MessageChange::Edit(json.as_bytes().to_vec()));
        assert!(why.contains(named) && why.contains(AgentMessage::TYPE), "{why}");
    }
    let hole: Vec<LogMessage> = messages.iter().filter(|it| it.sequence != result).cloned().collect();
    assert!(matches!(looked_at(&hole, asked, MessageChange::Drop), Err(WhatIfError::Broken(BrokenLog::Hole { .. }))));
}
