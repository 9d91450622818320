use serde_json::{Value, json};

use super::*;

const TURN: Uuid = Uuid::from_u128(7);
const CALL: Uuid = Uuid::from_u128(8);

fn event(sequence: u64, id: Uuid, subject: &str, type_name: &str, payload: Value) -> EventJson {
    serde_json::from_value(json!({
        "event_id": id, "ts": "2026-11-21T10:00:00Z", "source": "user", "modality": "text", "payload": payload,
        "meta": { "tags": [] }, "type": type_name, "sequence": sequence, "position": 0, "subject": subject,
        "correlation_id": TURN, "causation_id": null, "thread_id": (subject.contains(".agent.")).then_some("t"),
    }))
    .unwrap()
}

fn decided(sequence: u64, id: Uuid, payload: Value) -> EventJson {
    event(sequence, id, "kairo.agent.bob.decision", v1::AgentAction::TYPE, payload)
}

/// A turn with one call: a message, delivered; the call, its result, and the reply.
fn turn() -> Vec<EventJson> {
    let nil = Uuid::nil();
    let result = json!({ "action_id": CALL, "ok": true, "text": "" });
    let reply = json!({ "type": "say", "text": "noon", "user": "ann", "message_id": "m", "final": true });
    vec![
        event(1, TURN, "kairo.user.ann.message", v1::UserMessage::TYPE, json!({ "text": "the time" })),
        event(2, nil, "kairo.agent.bob.message", v1::AgentMessage::TYPE, json!({ "user": "ann" })),
        event(3, nil, "kairo.agent.bob.decision", v1::AgentThought::TYPE, json!({ "text": "a clock" })),
        decided(3, CALL, json!({ "type": "tool_call", "tool": "tools.now" })),
        event(4, nil, "kairo.tool.bob.invoke", v1::ToolInvoke::TYPE, json!({})),
        event(5, nil, "kairo.tool.bob.result", v1::ToolResult::TYPE, result),
        decided(6, nil, reply),
        // Such as what it remembers of it.
        event(7, nil, "kairo.agent.bob.decision", v1::AgentThought::TYPE, json!({ "text": "done" })),
    ]
}

/// Sequence, the status before, and the new one.
type Change = (u64, Option<String>, String);

fn changes(known: &mut KnownTurns, events: &[EventJson], of_agent: bool) -> Vec<Change> {
    let changes = events.iter().filter_map(|event| known.apply_event(event, of_agent));
    changes.map(|change| (change.sequence, change.previous, change.status)).collect()
}

fn change(sequence: u64, previous: &str, status: &str) -> Change {
    (sequence, (!previous.is_empty()).then(|| previous.to_owned()), status.to_owned())
}

#[test]
fn each_change_of_a_turns_status_is_told_once_with_what_it_was_before() {
    let expected = [
        change(1, "", "started"),
        change(2, "started", "planning"),
        change(3, "planning", "executing"),
        change(5, "executing", "reflecting"),
        change(6, "reflecting", "completed"),
    ];
    assert_eq!(changes(&mut KnownTurns::default(), &turn(), false), expected);
    // To who watches the agent, it begins where it comes to the agent.
    let of_agent = changes(&mut KnownTurns::default(), &turn()[1..], true);
    assert_eq!((of_agent[0].clone(), &of_agent[1..]), (change(2, "", "planning"), &expected[2..]));
}

#[test]
fn a_change_says_whose_turn_it_is_and_what_changed_it() {
    let mut known = KnownTurns::default();
    let said: Vec<_> = turn().iter().filter_map(|event| known.apply_event(event, false)).collect();
    assert_eq!((said[0].user.as_str(), said[0].agent.as_deref(), said[0].thread_id.as_deref()), ("ann", None, None));
    let called = &said[2];
    assert_eq!(
        (called.user.as_str(), called.agent.as_deref(), called.thread_id.as_deref()),
        ("ann", Some("bob"), Some("t"))
    );
    assert_eq!((called.event_id.clone(), called.turn_id.clone()), (CALL.to_string(), TURN.to_string()));
}

#[test]
fn who_comes_back_in_the_midst_of_a_turn_is_told_the_rest_as_before() {
    let events = turn();
    let whole = changes(&mut KnownTurns::default(), &events, false);
    for at in 1..events.len() {
        let (seen, rest) = events.split_at(at);
        let mut known = KnownTurns::default();
        assert!(known.needs_lookup(&rest[0], false), "{at}");
        let mut progress = TurnProgress::default();
        seen.iter().for_each(|event| progress.apply_event(event));
        known.record_turn(TURN, Some(TurnState { user: "ann".into(), progress }));
        let told = changes(&mut known, rest, false);
        assert_eq!(told, whole[whole.len() - told.len()..], "{at}");
    }
}

#[test]
fn what_no_users_message_began_is_no_turn_and_nobody_is_asked_about_it() {
    let mut known = KnownTurns::default();
    let due = event(1, TURN, "kairo.task.bob.due", v1::TaskDue::TYPE, json!({}));
    let catalogue = event(1, TURN, "kairo.system.tool-runner.catalogue", v1::ToolCatalogue::TYPE, json!({}));
    assert!(!known.needs_lookup(&due, false) && !known.needs_lookup(&catalogue, false));
    let then = &turn()[3..];
    assert_eq!(changes(&mut known, &[vec![due], then.to_vec()].concat(), false), []);
    assert!(!known.needs_lookup(&then[0], false));
}

#[test]
fn a_message_for_nobody_fails_and_a_failure_that_was_told_fails_the_turn() {
    let nobody = event(2, Uuid::nil(), "kairo.user.ann.undelivered", v1::UserMessageUndelivered::TYPE, json!({}));
    let told = changes(&mut KnownTurns::default(), &[turn().remove(0), nobody], false);
    assert_eq!(told, [change(1, "", "started"), change(2, "started", "failed")]);
    let failed = event(3, Uuid::nil(), "kairo.agent.bob.decision", v1::AgentFailed::TYPE, json!({ "text": "" }));
    let mut reply = turn().remove(6);
    reply.payload["failure"] = json!("model_timeout");
    let told = changes(&mut KnownTurns::default(), &[turn().remove(0), failed, reply], false);
    assert_eq!(told.last(), Some(&change(6, "planning", "failed")));
}
