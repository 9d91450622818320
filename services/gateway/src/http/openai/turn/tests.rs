//! Turns as the log tells them.

use serde_json::json;

use super::*;

const TURN: u128 = 1;
const INPUT: Uuid = Uuid::from_u128(50);

fn event(id: u128, correlation: u128, type_name: &str, payload: Value) -> EventJson {
    serde_json::from_value(json!({
        "event_id": Uuid::from_u128(id), "ts": "2026-11-21T10:00:00Z", "source": "internal", "modality": "text",
        "payload": payload, "meta": { "tags": [] }, "type": type_name, "sequence": 1, "position": 0,
        "subject": "kairo.agent.coach.decision", "correlation_id": Uuid::from_u128(correlation),
        "causation_id": INPUT, "thread_id": null,
    }))
    .unwrap()
}

fn say(correlation: u128, message_id: &str, text: &str, last: bool) -> EventJson {
    let payload = json!({ "type": "say", "text": text, "message_id": message_id, "final": last });
    event(9, correlation, v1::AgentAction::TYPE, payload)
}

fn decision(events: Vec<EventJson>) -> TailMessage {
    let tokens = TokenUsage { input: 10, output: 3, cached: 1 };
    TailMessage { sequence: 1, subject: "kairo.agent.coach.decision".to_owned(), events, tokens }
}

fn turn() -> ChatTurn {
    ChatTurn::new(Uuid::from_u128(TURN), "m".to_owned())
}

#[test]
fn what_is_said_to_the_message_is_the_answer() {
    let mut turn = turn();
    assert_eq!(turn.apply_message(&decision(vec![say(2, "m", "to another turn", true)])), None);
    assert_eq!(turn.apply_message(&decision(vec![say(TURN, "", "a reminder", false)])), Some(INPUT));
    turn.apply_message(&decision(vec![say(TURN, "m", "Let me see.", false)]));
    assert_eq!(turn.outcome(), None);
    turn.apply_message(&decision(vec![say(TURN, "m", "It is 7.", true), say(TURN, "m", "and more", false)]));
    assert_eq!(turn.outcome(), Some(TurnOutcome::Replied));
    assert_eq!(turn.agent_messages(), ["Let me see.", "It is 7."]);
    assert_eq!(turn.tokens(), TokenUsage { input: 30, output: 9, cached: 3 });
}

#[test]
fn the_result_of_the_work_is_the_answer_to_a_client_that_waits_for_it() {
    let task = json!({ "task": { "task_id": "t", "kind": "queued", "source": "user" } });
    let queued = || event(3, TURN, v1::TaskScheduled::TYPE, task.clone());
    let ended = |status: &str| {
        event(4, TURN, v1::TaskEnded::TYPE, json!({ "task_id": "t", "status": status, "result": "It is 7." }))
    };
    for (is_awaited, expected) in [(false, "I will look."), (true, "It is 7.")] {
        let mut turn = turn().awaiting_work(is_awaited);
        turn.apply_message(&decision(vec![queued(), say(TURN, "m", "I will look.", true)]));
        assert_eq!(turn.outcome().is_none(), is_awaited);
        assert_eq!(turn.final_messages().is_empty(), is_awaited, "the acknowledgement is not shown before the results");
        turn.apply_message(&decision(vec![ended("completed"), say(TURN, "", "It is 7.", false)]));
        assert_eq!((turn.outcome(), turn.agent_messages()), (Some(TurnOutcome::Replied), &[expected.to_owned()][..]));
    }
    let mut small_talk = turn().awaiting_work(true);
    small_talk.apply_message(&decision(vec![say(TURN, "m", "Hello.", true)]));
    assert_eq!(small_talk.outcome(), Some(TurnOutcome::Replied));
    let mut failed = turn().awaiting_work(true);
    failed.apply_message(&decision(vec![queued(), say(TURN, "m", "I will look.", true)]));
    failed.apply_message(&decision(vec![ended("failed")]));
    assert!(matches!(failed.outcome(), Some(TurnOutcome::Failed(failure)) if failure.kind == "task_failed"));
}

#[test]
fn a_failure_is_no_answer() {
    let failed = |kind: &str| {
        let payload = json!({ "kind": kind, "message": "busy", "retried": false, "retry_after_ms": "4000" });
        event(8, TURN, v1::AgentFailed::TYPE, payload)
    };
    let mut told = say(TURN, "m", "The endpoint is busy.", true);
    told.payload["failure"] = json!("model_rate_limited");
    let old = say(TURN, "m", "I could not finish this: busy (model_unavailable). Please try again later.", true);
    let late = failed("summary");
    for (events, expected) in [
        (vec![failed("model_rate_limited"), told.clone()], Some(("model_rate_limited", 4_000))),
        (vec![failed("other"), told], Some(("model_rate_limited", 0))),
        (vec![failed("model_unavailable"), old.clone()], Some(("model_unavailable", 4_000))),
        (vec![old], None),
        (vec![late, say(TURN, "m", "It is 7.", true)], None),
    ] {
        let mut turn = turn();
        turn.apply_message(&decision(events));
        let found = match turn.outcome().unwrap() {
            TurnOutcome::Failed(failed) => Some((failed.kind, failed.retry_after_ms)),
            _ => None,
        };
        assert_eq!(found, expected.map(|(kind, ms)| (kind.to_owned(), ms)));
    }
}

#[test]
fn calls_of_the_clients_tools_and_how_the_answer_ended_are_heard() {
    let mut turn = turn();
    let mut called = say(TURN, "m", "", true);
    called.payload["client_calls"] = json!([{ "call_id": "c", "tool": "f", "args": { "a": 1 } }]);
    turn.apply_message(&decision(vec![called]));
    let call = ChatToolCall { call_id: "c".into(), tool: "f".into(), arguments: r#"{"a":1}"#.into() };
    assert_eq!((turn.outcome(), turn.agent_messages().len()), (Some(TurnOutcome::Replied), 0));
    assert_eq!(turn.reply_ending(), (AnswerEnding::Complete, [call].as_slice()));
}

#[test]
fn a_message_that_is_answered_with_another_is_answered() {
    let mut turn = turn();
    let into = json!({ "message_id": "m", "into_correlation_id": Uuid::from_u128(7), "into_message_id": "n" });
    let joined = event(3, TURN, v1::AgentJoined::TYPE, into);
    turn.apply_message(&decision(vec![joined, say(7, "n", "both", true)]));
    assert_eq!((turn.outcome(), turn.agent_messages().len()), (Some(TurnOutcome::Replied), 1));
}

#[test]
fn a_question_is_put_until_it_is_answered() {
    let mut turn = turn();
    let asked = json!({ "user": "ann", "tool": "email.send", "arguments": "{\"to\":\"x\"}" });
    turn.apply_message(&decision(vec![event(4, TURN, v1::ApprovalRequested::TYPE, asked)]));
    let Some(TurnOutcome::Question(text)) = turn.outcome() else { panic!("{turn:?}") };
    let id = Uuid::from_u128(4);
    assert!(text.contains("consent to call email.send with {\"to\":\"x\"}"), "{text}");
    assert!(text.contains(&format!("kairo approve {id} --agent coach --user ann")), "{text}");
    turn.apply_message(&decision(vec![event(5, 99, v1::AgentApproval::TYPE, json!({ "action_id": id }))]));
    assert_eq!(turn.outcome(), None);
    turn.apply_message(&decision(vec![say(TURN, "m", "Sent.", true)]));
    assert_eq!(turn.outcome(), Some(TurnOutcome::Replied));
}

#[test]
fn many_questions_make_a_bounded_answer() {
    let mut turn = turn();
    let asked = json!({ "user": "ann", "action": "suggest_switch", "summary": "shoes", "reason": "the shoe shop." });
    turn.apply_message(&decision(
        (0..500).map(|id| event(id, TURN, v1::ThreadSuggested::TYPE, asked.clone())).collect(),
    ));
    let Some(TurnOutcome::Question(text)) = turn.outcome() else { panic!("{turn:?}") };
    assert!(text.contains("another thread, shoes (the shoe shop). Go on there?"), "{text}");
    assert!(text.contains("490 more questions wait") && text.len() < 10_000, "{text}");
}

#[test]
fn what_nobody_receives_is_told() {
    let mut turn = turn();
    let mut said = decision(vec![event(3, TURN, v1::UserMessageUndelivered::TYPE, json!({ "text": "no agent" }))]);
    said.subject = "kairo.user.ann.undelivered".to_owned();
    assert_eq!(turn.apply_message(&said), None);
    assert_eq!(turn.outcome(), Some(TurnOutcome::Undelivered("no agent".to_owned())));
}
