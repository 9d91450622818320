//! Tests of `vocabulary`.

use jiff::Timestamp;
use kairo_proto::v1::{AgentAction, AgentImported, GivenUpCall, HashLink, Say, agent_action::Action};

use super::*;
use crate::{
    envelope::{Envelope, Origin},
    record::StoredMessageRef,
    subjects::Service,
};

const DECISION: &str = "kairo.agent.ann.decision";
const DEFINED: &str = "kairo.agent.ann.defined";

/// Reads a message with these headers changed; an empty value removes one.
fn read(subject: &str, body: &Body, changed: &[(&'static str, &str)]) -> Option<NewerReaderNeeded> {
    let id = uuid::Uuid::from_u128(1);
    let entering = Envelope::from_outside(id, Service::AgentRuntime, Origin::Internal, Timestamp::UNIX_EPOCH);
    let envelope = Envelope { type_name: body.type_name().to_owned(), ..entering };
    let mut headers = envelope.to_headers();
    for (name, value) in changed {
        headers.retain(|(known, _)| known != name);
        headers.push((name, (*value).to_owned()));
    }
    let header = |name: &'static str| {
        let found = headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    };
    let payload = body.encode();
    let stored = StoredMessageRef { sequence: 7, subject, payload: &payload, at: Timestamp::UNIX_EPOCH };
    newer_reader_needed(subject, header, &Record::read(stored, header, 1_000))
}

fn deciding(events: Vec<Option<Event>>, reader: u32) -> Body {
    let events = events.into_iter().map(|event| DecidedEvent { event, ..Default::default() }).collect();
    AgentDecision { events, reader, ..Default::default() }.into()
}

fn act(action: Option<Action>) -> Option<Event> {
    Some(Event::Action(AgentAction { action }))
}

#[test]
fn what_is_known_takes_no_newer_reader() {
    let said = deciding(vec![act(Some(Action::Say(Say::default())))], READER);
    assert_eq!(read(DECISION, &said, &[]), None);
    assert_eq!(read(DECISION, &said, &[(READER_HEADER, "2")]), None);
    assert_eq!(read("kairo.agent.ann.message", &AgentMessage::default().into(), &[]), None);
}

#[test]
fn whatever_asks_for_more_or_has_something_unknown_takes_a_newer_one() {
    let reader = |found: Option<NewerReaderNeeded>| found.map(|newer| newer.reader);
    assert_eq!(reader(read(DECISION, &deciding(Vec::new(), READER + 3), &[])), Some(READER + 3));
    assert_eq!(
        reader(read(DECISION, &deciding(Vec::new(), 0), &[(READER_HEADER, &(READER + 2).to_string())])),
        Some(READER + 2)
    );
    for unknown in [None, act(None)] {
        assert_eq!(reader(read(DECISION, &deciding(vec![unknown], 1), &[])), Some(READER + 1));
    }
    let newer_type = [("ce-type", "kairo.agent.defined.v9")];
    let message = AgentMessage::default().into();
    assert_eq!(reader(read(DEFINED, &message, &newer_type)), Some(READER + 1));
    let new_type = [("ce-type", "kairo.agent.dreamt.v1")];
    assert_eq!(reader(read("kairo.agent.ann.dreamt", &message, &new_type)), Some(READER + 1));
}

#[test]
fn what_nobody_will_ever_know_is_none_of_it() {
    let message = AgentMessage::default().into();
    for bad in [
        [("ce-type", "kairo.nothing.known.v1"), (READER_HEADER, "")],
        [("ce-type", AgentMessage::TYPE), (READER_HEADER, "many")],
        [("ce-type", "kairo.agent.defined.v"), (READER_HEADER, "")],
        [("ce-type", "kairo.agent.defined.v9"), ("ce-source", "https://example.com/outsider")],
        [("ce-type", "kairo.agent.defined.v9"), ("ce-id", "7")],
        [(READER_HEADER, "99"), ("ce-source", "https://example.com/outsider")],
    ] {
        assert_eq!(read(DEFINED, &message, &bad), None, "{bad:?}");
    }
    assert_eq!(read("kairo.agent.NOBODY.message", &message, &[]), None);
    assert_eq!(read("kairo.agent.NOBODY.dreamt", &message, &[("ce-type", "kairo.agent.dreamt.v1")]), None);
}

#[test]
fn a_decision_says_what_it_takes_and_who_reads_less_is_named() {
    let given_up = vec![GivenUpCall::default()];
    assert_eq!(required_reader(&AgentDecision { given_up, ..Default::default() }.into()), 2);
    assert_eq!(
        required_reader(&AgentDecision { link: Some(HashLink::default()), ..Default::default() }.into()),
        HASH_CHAINS
    );
    assert_eq!(required_reader(&AgentImported::default().into()), IMPORTS);
    assert_eq!(required_reader(&deciding(Vec::new(), 0)), FIRST);
    let replicas = [("new", 2), ("old", 1), ("older", 0)];
    assert_eq!(replicas_behind(2, replicas), ["old", "older"]);
    assert!(replicas_behind(1, replicas).is_empty());
}

#[test]
fn every_epoch_says_what_it_enables() {
    assert_eq!(features_after(FIRST).map(|(epoch, _)| epoch).collect::<Vec<_>>(), (2..=READER).collect::<Vec<_>>());
    assert_eq!(features_after(READER).next(), None);
}
