//! Tests of `cut`.

use super::*;
use crate::testing::{TestAgent, call_completion, name, text_completion};

fn cut(agent: &TestAgent, at: u64) -> ForkParts {
    let mut cut = Cut::new(Some(at), [name("ann")].into());
    agent.messages().iter().for_each(|message| cut.apply(message).unwrap());
    cut.into_parts().unwrap()
}

/// An agent that calls a tool twice in the same way.
fn agent() -> (TestAgent, [u64; 2], [u64; 2]) {
    let mut agent = TestAgent::new("ann");
    let once = |agent: &mut TestAgent, result: &str| {
        agent.hears("t", "the time");
        let called = agent.decide(&[call_completion("tools.now")]);
        let learned = agent.learns(called, result);
        agent.decide(&[text_completion("noon")]);
        (called, learned)
    };
    let first = once(&mut agent, "\"12:00\"");
    let second = once(&mut agent, "\"12:01\"");
    (agent, [first.0, second.0], [first.1, second.1])
}

#[test]
fn what_was_in_flight_is_pending_and_has_what_the_log_says_of_it_later() {
    let (agent, [first, second], [learned, _]) = agent();
    let parts = cut(&agent, first);
    assert_eq!(parts.before.last().map(|message| message.sequence), Some(first));
    let [pending] = parts.pending.as_slice() else { panic!("{:?}", parts.pending) };
    assert_eq!(pending.later.iter().map(|record| record.sequence).collect::<Vec<_>>(), [learned]);
    assert_eq!(pending.what, PendingActionKind::Call { tool: "tools.now".to_owned() });
    assert!(pending.has_recorded_end());
    assert!(cut(&agent, learned).pending.is_empty(), "it has ended there");
    // What the log says nothing of has no end.
    let mut short = Cut::new(Some(second), [name("ann")].into());
    let before = agent.messages().into_iter().filter(|message| message.sequence <= second);
    before.for_each(|message| short.apply(&message).unwrap());
    let parts = short.into_parts().unwrap();
    assert!(!parts.pending.first().expect("one in flight").has_recorded_end());
}

#[test]
fn a_recorded_result_is_used_once_and_the_last_one_from_then_on() {
    let (agent, [first, second], learned) = agent();
    let no_arguments = serde_json::json!({});
    let used = |parts: &ForkParts, nth| {
        parts.recorded.find_call("tools.now", &no_arguments, parts.at, nth).map(|call| call.at)
    };
    let parts = cut(&agent, first);
    assert_eq!([0, 1, 2].map(|nth| used(&parts, nth)), [learned[0], learned[1], learned[1]].map(Some));
    // Behind all of them, the last before.
    let parts = cut(&agent, second + 2);
    assert_eq!([0, 1].map(|nth| used(&parts, nth)), [Some(learned[1]); 2]);
    assert_eq!(parts.recorded.find_call("tools.now", &serde_json::json!({ "zone": "UTC" }), 1, 0), None);
    assert_eq!(parts.recorded.find_call("http.get", &no_arguments, 1, 0), None);
}

#[test]
fn who_is_not_there_yet_and_a_hole_are_told() {
    let (agent, [first, _], _) = agent();
    let mut early = Cut::new(Some(2), [name("ann"), name("bob")].into());
    agent.messages().iter().for_each(|message| early.apply(message).unwrap());
    let error = early.into_parts().unwrap_err().to_string();
    assert!(error.contains("ann, bob") && error.contains("message 2"), "{error}");
    let mut holed = Cut::new(Some(first), BTreeSet::new());
    let without_the_message = agent.messages().into_iter().filter(|message| message.sequence != first - 1);
    let broken = without_the_message.map(|message| holed.apply(&message)).find_map(Result::err);
    assert!(matches!(broken, Some(BrokenLog::Hole { sequence }) if sequence == first), "{broken:?}");
}
