//! Messages that come while the agent is deciding.

use kairo_events::subjects::TOOL_INVOKE;
use kairo_proto::v1::ToolInvoke;

use super::*;

fn with_policy(interjection: &str) -> Agent {
    Agent::with(AgentProfile { interjection: interjection.into(), ..Default::default() })
}

/// The messages that a decision says are answered by another.
fn joined(record: &Record) -> Vec<(String, String)> {
    let joined = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::Joined(joined)) = &event.event else { return None };
        Some((joined.message_id.clone(), joined.into_message_id.clone()))
    };
    decision(record).events.iter().filter_map(joined).collect()
}

fn pair(message: &str, into: &str) -> (String, String) {
    (message.to_owned(), into.to_owned())
}

/// Returns the number of user messages in the last request to the model.
fn heard(agent: &Agent) -> usize {
    let texts = agent.asked.last().unwrap().messages.iter().map(|message| match message {
        // What stands between two messages is a block.
        PromptMessage::User { text, .. } => {
            text.split("\n\n").filter(|words| !words.starts_with("<kairo:context>")).count()
        }
        PromptMessage::System { .. } | PromptMessage::Assistant { .. } | PromptMessage::Tool { .. } => 0,
    });
    texts.sum()
}

#[test]
fn in_order_each_message_is_answered_for_itself() {
    for policy in ["", "order", "anything"] {
        let mut agent = with_policy(policy);
        agent.hears("m1", "one");
        agent.hears("m2", "two");
        assert_eq!(acts(&agent.decides(&[says("1")]).unwrap()), ["1"]);
        assert_eq!(heard(&agent), 1, "the second was not known yet");
        assert_eq!(acts(&agent.decides(&[says("2")]).unwrap()), ["2"]);
        assert!(agent.decides(&[]).is_none());
    }
}

#[test]
fn joined_messages_are_answered_together_by_the_last() {
    for policy in ["join", "restart"] {
        let mut agent = with_policy(policy);
        agent.hears("m1", "one");
        agent.write(&TOOL_INVOKE, None, ToolInvoke::default());
        agent.hears("m2", "two");
        let last = agent.hears("m3", "three");
        let decided = agent.decides(&[says("all three")]).unwrap();
        assert_eq!(heard(&agent), 3);
        assert_eq!(decision(&decided).cursor, last.sequence);
        assert_eq!(joined(&decided), [pair("m1", "m3"), pair("m2", "m3")]);
        assert!(agent.mind.state.turns.is_empty());
        assert!(agent.decides(&[]).is_none());
    }
}

#[test]
fn a_message_that_comes_again_joins_nothing() {
    let mut agent = with_policy("join");
    agent.hears("m0", "zero");
    agent.decides(&[says("0")]).unwrap();
    agent.hears("m1", "one");
    agent.hears("m0", "zero");
    agent.hears("m2", "two");
    agent.hears("m2", "two");
    let decided = agent.decides(&[says("both")]).unwrap();
    assert_eq!(joined(&decided), [pair("m1", "m2")]);
    assert!(agent.decides(&[]).is_none());
    agent.hears("m3", "three");
    agent.hears("m0", "zero");
    assert_eq!(acts(&agent.decides(&[says("3")]).unwrap()), ["3"]);
    assert!(agent.decides(&[]).is_none() && agent.mind.state.turns.is_empty());
}

#[test]
fn what_else_wants_a_decision_and_other_threads_are_not_joined() {
    let mut agent = with_policy("join");
    agent.hears("m1", "what time is it?");
    let decided = agent.decides(&[calls(&["tools.now"])]).unwrap();
    agent.hears("m2", "two");
    agent.learns(&decided, &actions(&decided)[0], "{}");
    agent.hears("m3", "three");
    let second = agent.decides(&[says("2")]).unwrap();
    assert_eq!(joined(&second), []);
    assert_eq!(acts(&agent.decides(&[says("noon")]).unwrap()), ["noon"]);
    let message = AgentMessage { message_id: "b".into(), user: "bob".into(), text: "hi".into(), ..Default::default() };
    agent.write(&AGENT_MESSAGE, None, message);
    agent.hears("m4", "four");
    assert_eq!(joined(&agent.decides(&[says("3")]).unwrap()), []);
    assert_eq!(joined(&agent.decides(&[says("hi bob")]).unwrap()), []);
    assert_eq!(joined(&agent.decides(&[says("4")]).unwrap()), []);
}

#[test]
fn a_decision_begun_again_takes_in_what_came_meanwhile() {
    let mut agent = with_policy("restart");
    agent.hears("m1", "one");
    // The model is being asked about it when the second comes.
    let first = agent.next_input().unwrap();
    let second = agent.hears("m2", "no, two");
    assert_eq!(agent.next_input().unwrap(), second.clone().into());
    assert_ne!(first, second.into());
    assert_eq!(joined(&agent.decides(&[says("two")]).unwrap()), [pair("m1", "m2")]);
}

#[test]
fn a_later_step_begun_again_is_thought_about_with_the_message() {
    let whole = |tools: &[&str]| Completion { ending: "complete".into(), ..calls(tools) };
    for (asked_first, results) in [(whole(&["tools.now"]), 1), (whole(&["tools.now", "http.get", "tools.now"]), 3)] {
        let mut agent = with_policy("restart");
        agent.hears("m1", "what time is it?");
        let mut decided = agent.decides(&[asked_first]).unwrap();
        let mut actions_left = actions(&decided);
        for number in 0..results {
            if actions_left.is_empty() {
                decided = agent.decides(&[]).unwrap();
                actions_left = actions(&decided);
            }
            agent.learns(&decided, &actions_left.remove(0), &format!("result {number}"));
        }
        // The model is being asked what to make of it when the user goes on.
        let step = agent.next_input().unwrap();
        let message = agent.hears("m2", "in Tokyo, I mean");
        assert!(agent.mind.would_join(message.sequence));
        agent.mind.stop_joining(step.record.sequence);
        agent.mind.restart_joining();
        assert_eq!(agent.next_input().unwrap(), message.clone().into());
        let answered = agent.decides(&[says("nine in Tokyo")]).unwrap();
        assert_eq!(heard(&agent), 2);
        assert_eq!(joined(&answered), [pair("m1", "m2")]);
        let shown = format!("{:?}", agent.asked.last().unwrap().messages);
        assert!(shown.contains("in Tokyo") && shown.contains(&format!("result {}", results - 1)), "{shown}");
        assert!(agent.decides(&[]).is_none() && agent.mind.state.turns.is_empty());
        agent.is_replayed();
    }
}

#[test]
fn nothing_is_begun_again_for_a_message_that_it_would_not_be_decided_on_with() {
    let would_join = |policy: &str, user: &str| {
        let mut agent = with_policy(policy);
        agent.hears("m1", "what time is it?");
        let decided = agent.decides(&[calls(&["tools.now", "http.get"])]).unwrap();
        for action in actions(&decided) {
            agent.learns(&decided, &action, "{}");
        }
        agent.next_input().unwrap();
        let message_id = "m2".to_owned();
        let user = user.to_owned();
        let text = "hello".to_owned();
        let message = AgentMessage { message_id, user, text, ..Default::default() };
        let message = agent.write(&AGENT_MESSAGE, None, message);
        agent.mind.would_join(message.sequence)
    };
    for (policy, user, expected) in
        [("restart", "ann", true), ("restart", "bob", false), ("join", "ann", false), ("", "ann", false)]
    {
        assert_eq!(would_join(policy, user), expected, "{policy} {user}");
    }
    // While a tool still runs, the message has a turn of its own.
    let mut agent = with_policy("restart");
    agent.hears("m1", "what time is it?");
    let decided = agent.decides(&[calls(&["tools.now", "http.get"])]).unwrap();
    agent.learns(&decided, &actions(&decided)[0], "{}");
    agent.hears("m2", "hello");
    assert_eq!(joined(&agent.decides(&[says("hi")]).unwrap()), []);
    agent.is_replayed();
}

#[test]
fn whoever_observed_more_than_was_decided_on_goes_back_to_what_stands() {
    let mut agent = with_policy("join");
    let first = agent.hears("m1", "one");
    let second = agent.hears("m2", "two");
    let mut other = agent.mind.clone();
    assert_eq!(other.next_input(), Some(NextInput::Input(second.clone().into())));
    // Somebody read only the first before deciding.
    let decision = AgentDecision { cursor: first.sequence, ..Default::default() };
    let envelope = first.envelope.clone();
    let subject = AGENT_DECISION.of_owner(&Name::parse("a").unwrap());
    let record = Record { sequence: 9, subject, envelope, body: decision.into() };
    other.push(record.clone()).unwrap();
    let mut cold = Log::default();
    agent.log.push(record);
    agent.log.iter().for_each(|record| _ = cold.push(record.clone()).unwrap());
    assert_eq!((&other.state, other.observed), (&cold.state, first.sequence));
    assert_eq!(other.next_input(), Some(NextInput::Input(second.into())));
}

#[test]
fn a_snapshot_holds_what_stands_and_not_what_is_being_decided_on() {
    for policy in ["order", "join"] {
        let mut agent = with_policy(policy);
        agent.hears("m0", "zero");
        agent.decides(&[says("0")]).unwrap();
        let before = agent.mind.state.clone();
        agent.hears("m1", "one");
        agent.write(&TOOL_INVOKE, None, ToolInvoke::default());
        agent.hears("m2", "two");
        let input = agent.next_input().unwrap();
        assert_ne!(before, agent.mind.state);
        let snapshot = agent.mind.snapshot(LOG);
        assert_eq!((&snapshot.state, snapshot.ahead.len(), snapshot.through), (&before, 3, agent.log.len() as u64));
        assert!(Log::from_snapshot(snapshot.clone(), Uuid::nil()).is_none(), "another log");
        agent.mind = Log::from_snapshot(snapshot, LOG).unwrap();
        assert_eq!(agent.next_input(), Some(input));
    }
}

#[test]
fn a_decision_of_somebody_else_may_pass_what_lay_ahead_when_the_snapshot_was_taken() {
    let mut agent = with_policy("order");
    agent.hears("m1", "one");
    agent.next_input().unwrap();
    let snapshot = agent.mind.snapshot(LOG);
    let decided = agent.decides(&[says("1")]).unwrap();
    let mut resumed = Log::from_snapshot(snapshot, LOG).unwrap();
    for sequence in resumed.missing_sequences() {
        resumed.supply_record(sequence, Some(agent.log[usize::try_from(sequence).unwrap() - 1].clone()));
    }
    resumed.push(decided).unwrap();
    assert_eq!((&resumed.state, resumed.pending_count()), (&agent.mind.state, 0));
}

#[test]
fn what_lies_far_ahead_is_read_when_its_turn_comes() {
    let mut agent = with_policy("order");
    agent.mind.limit_held_records(HELD);
    for number in 0..2 * HELD {
        agent.hears(&format!("m{number}"), "hello");
    }
    assert_eq!(agent.mind.pending_count(), 1 + 2 * HELD, "and its definition");
    let mut answered = 0;
    while agent.decides(&[says("hi")]).is_some() {
        answered += 1;
    }
    assert_eq!((answered, agent.mind.pending_count()), (2 * HELD, 0));
}
