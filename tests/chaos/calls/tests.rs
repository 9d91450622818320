use kairo_core::{
    envelope::{Envelope, Origin},
    record::Record,
    subjects::Service,
};
use kairo_proto::v1::{AgentDecision, AgentMessage, Completion};
use uuid::Uuid;

use super::*;

/// Second 0 of all that is told here.
const EPOCH: i64 = 1_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(EPOCH + second).unwrap()
}

fn entry(second: i64, subject: &str, body: Body) -> Entry {
    let stored = at(second);
    let envelope = Envelope::from_outside(Uuid::nil(), Service::Gateway, Origin::User, stored);
    Entry { stored, record: Record { sequence: 1, subject: subject.to_owned(), envelope, body }, again: false }
}

/// A decision made from the answers to these requests.
fn decides(second: i64, requests: &[u64]) -> Entry {
    let completion = |number: &u64| Completion { model: format!("simulator#{number}"), ..Completion::default() };
    let completions = requests.iter().map(completion).collect();
    entry(second, "kairo.agent.a.decision", AgentDecision { completions, ..AgentDecision::default() }.into())
}

fn request(number: u64, replica: &str, seconds: (i64, i64), outcome: &str) -> Request {
    let microsecond = |second: i64| at(second).as_microsecond();
    Request {
        number,
        caller: Some(replica.to_owned()),
        rule: None,
        text: "chat m1 please".to_owned(),
        failed: false,
        begun_us: microsecond(seconds.0),
        ended_us: microsecond(seconds.1),
        outcome: outcome.to_owned(),
    }
}

fn judged(requests: &[Request], struck: &[(&str, i64)], restarting: bool, entries: &[Entry]) -> Calls {
    judged_at(Timestamp::MAX, requests, struck, restarting, entries)
}

fn judged_at(
    over: Timestamp,
    requests: &[Request],
    struck: &[(&str, i64)],
    restarting: bool,
    entries: &[Entry],
) -> Calls {
    let struck: Vec<Struck> =
        struck.iter().map(|(name, second)| Struck { replica: (*name).to_owned(), at: at(*second) }).collect();
    let restarting = if restarting { BTreeSet::from(["a".to_owned()]) } else { BTreeSet::new() };
    let agents = BTreeMap::from([("m1".to_owned(), "a".to_owned())]);
    Bill { requests, struck: &struck, over, restarting: &restarting, agents: &agents }.judge(entries.iter())
}

#[test]
fn a_request_is_needed_if_a_decision_holds_its_answer() {
    let requests = [request(1, "r0", (0, 2), "answered"), request(2, "r0", (2, 4), "answered")];
    let calls = judged(&requests, &[], false, &[decides(5, &[1, 2]), decides(6, &[])]);
    assert_eq!((calls.requests, calls.needed, calls.decisions, calls.extra), (2, 2, 1, 0));
    assert!(calls.too_many.is_empty());
}

#[test]
fn a_request_that_was_made_to_fail_is_excused_once() {
    let failed = Request { failed: true, ..request(1, "r0", (0, 1), "answered") };
    let requests = [failed, request(2, "r0", (1, 2), "answered"), request(3, "r0", (2, 3), "answered")];
    let calls = judged(&requests, &[], false, &[decides(4, &[2])]);
    assert_eq!((calls.failed, calls.needed, calls.extra), (1, 1, 1));
}

#[test]
fn requests_for_nothing_are_too_many() {
    let requests = [
        request(1, "r0", (0, 2), "answered"),
        request(2, "r1", (0, 1), "abandoned"),
        request(3, "r1", (1, 2), "abandoned"),
    ];
    let calls = judged(&requests, &[], false, &[decides(3, &[1])]);
    assert_eq!((calls.extra, calls.in_struck, calls.too_many.len()), (2, 0, 2));
    assert!(calls.too_many[0].starts_with("request 2 by r1 at "), "{:?}", calls.too_many);
}

#[test]
fn what_is_unsettled_when_the_run_is_over_is_not_extra() {
    let requests = [request(1, "r0", (0, 2), "answered"), request(2, "r0", (3, 5), "answered")];
    let judged_at = |second: i64| {
        let calls = judged_at(at(second), &requests, &[], false, &[decides(3, &[1])]);
        (calls.open, calls.extra, calls.too_many.len())
    };
    assert_eq!((judged_at(6), judged_at(60)), ((1, 0, 0), (0, 1, 1)));
}

#[test]
fn as_many_may_be_extra_as_were_unsettled_in_what_was_struck() {
    // The first is killed with its replica, and the second takes its place.
    let killed = [request(1, "r0", (0, 2), "abandoned"), request(2, "r1", (4, 6), "answered")];
    let calls = judged(&killed, &[("r0", 2)], false, &[decides(7, &[2])]);
    assert_eq!((calls.extra, calls.in_struck, calls.too_many.len()), (1, 1, 0));
    // The replica that was frozen comes back first: what the other asked for meanwhile is for nothing.
    let frozen = [request(1, "r0", (0, 2), "answered"), request(2, "r1", (4, 9), "abandoned")];
    let calls = judged(&frozen, &[("r0", 1)], false, &[decides(8, &[1])]);
    assert_eq!((calls.extra, calls.in_struck, calls.too_many.len()), (1, 1, 0));
    // Another replica's death explains nothing, nor does one long after.
    for struck in [("r1", 2), ("r0", 60)] {
        let calls = judged(&killed, &[struck], false, &[decides(7, &[2])]);
        assert_eq!((calls.extra, calls.in_struck, calls.too_many.len()), (1, 0, 1), "{struck:?}");
    }
}

#[test]
fn an_answer_that_waits_for_its_decision_is_unsettled() {
    let requests = [request(1, "r0", (0, 2), "answered"), request(2, "r0", (2, 6), "abandoned")];
    let again = [request(3, "r1", (9, 10), "answered"), request(4, "r1", (10, 11), "answered")];
    let requests: Vec<Request> = requests.into_iter().chain(again).collect();
    let calls = judged(&requests, &[("r0", 6)], false, &[decides(12, &[3, 4])]);
    assert_eq!((calls.extra, calls.in_struck, calls.too_many.len()), (2, 2, 0));
}

#[test]
fn what_is_given_up_for_a_message_is_not_extra_where_the_agent_wants_that() {
    let requests = [request(1, "r0", (0, 2), "abandoned"), request(2, "r0", (2, 4), "answered")];
    let message = entry(2, "kairo.agent.a.message", AgentMessage::default().into());
    let log = [message, decides(5, &[2])];
    let calls = judged(&requests, &[], true, &log);
    assert_eq!((calls.given_up, calls.extra, calls.too_many.len()), (1, 0, 0));
    let calls = judged(&requests, &[], false, &log);
    assert_eq!((calls.given_up, calls.extra, calls.too_many.len()), (0, 1, 1));
}

#[test]
fn a_message_may_be_read_after_a_request_began_that_it_came_before() {
    let message = entry(2, "kairo.agent.a.message", AgentMessage::default().into());
    let judged_of = |begun: i64| {
        let requests =
            [request(1, "r0", (begun, begun + 1), "abandoned"), request(2, "r0", (begun + 1, begun + 2), "answered")];
        let calls = judged(&requests, &[], true, &[message.clone(), decides(begun + 3, &[2])]);
        (calls.given_up, calls.extra)
    };
    assert_eq!((judged_of(3), judged_of(9)), ((1, 0), (0, 1)));
}

#[test]
fn a_message_that_was_decided_on_before_a_request_began_does_not_excuse_it() {
    let message = entry(2, "kairo.agent.a.message", AgentMessage::default().into());
    let requests = [request(1, "r0", (3, 4), "abandoned"), request(2, "r0", (4, 5), "answered")];
    let extra_of = |cursor: u64| {
        let decision = AgentDecision { cursor, ..AgentDecision::default() };
        let decision = entry(2, "kairo.agent.a.decision", decision.into());
        judged(&requests, &[], true, &[message.clone(), decision, decides(6, &[2])]).extra
    };
    assert_eq!((extra_of(0), extra_of(1)), (0, 1));
}
