//! Tests of `order`.

use serde_json::json;

use super::*;

fn event(type_name: &str, payload: Value) -> EventJson {
    serde_json::from_value(json!({
        "event_id": Uuid::nil(), "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
        "payload": payload, "meta": {"tags": []}, "type": type_name, "sequence": 1, "position": 0,
        "subject": "kairo.agent.a.decision", "correlation_id": Uuid::from_u128(1), "causation_id": null,
        "thread_id": null,
    }))
    .unwrap()
}

fn outcome(awaited: AwaitedEvent, events: &[EventJson]) -> Option<OrderOutcome> {
    let mut order = OrderTracker::new(Uuid::from_u128(1), awaited);
    events.iter().find_map(|event| order.observe(event))
}

fn failed(kind: &str) -> EventJson {
    event(v1::AgentFailed::TYPE, json!({"kind": kind, "text": format!("{kind}: no")}))
}

fn say() -> EventJson {
    event(v1::AgentAction::TYPE, json!({"type": "say", "text": "going on", "final": true, "message_id": ""}))
}

#[test]
fn a_verdict_ends_with_the_words_of_the_agent_and_an_order_with_its_result() {
    let result = event(v1::ToolResult::TYPE, json!({"ok": true, "text": "{}"}));
    let done = |text: &str| Some(OrderOutcome::Done { text: text.into() });
    assert_eq!(outcome(AwaitedEvent::Words, &[result.clone(), say()]), done("going on"));
    assert_eq!(outcome(AwaitedEvent::Result, &[say(), result]), done("{}"));
    let gone = event(v1::ToolResult::TYPE, json!({"ok": false, "text": "not_found: no such action"}));
    assert_eq!(
        outcome(AwaitedEvent::Result, &[gone]),
        Some(OrderOutcome::Failed { reason: "not_found: no such action".into() })
    );
}

#[test]
fn what_was_stopped_is_told_in_words() {
    let id = "1f0c2ab4-0000-0000-0000-000000000001";
    let told = |value: Value| describe_result(&value.to_string());
    let process = json!({
        "process_id": id, "program": "/bin/sh", "status": "ended", "outcome": "canceled", "reason": "on request",
        "ran_ms": 65_000, "stdout": "x",
    });
    assert_eq!(told(process), "sh (1f0c2ab4) after 1m 5s: canceled: on request");
    let over = json!({"process_id": id, "program": "sh", "outcome": "exited", "code": 3});
    assert_eq!(told(over), "sh (1f0c2ab4): exited with code 3");
    let error = json!({"kind": "canceled", "message": "on request"});
    let action = json!({"action_id": id, "tool": "http.get", "status": "canceled", "ok": false, "error": error});
    assert_eq!(told(action), "http.get (1f0c2ab4) canceled: on request");
    let over = json!({"action_id": id, "tool": "http.get", "status": "ended already", "ok": true});
    assert_eq!(told(over), "http.get (1f0c2ab4) ended already");
    assert_eq!((describe_result("{\"n\":1}"), describe_result("noted")), ("{\"n\":1}".to_owned(), "noted".to_owned()));
}

#[test]
fn a_refusal_ends_it_at_once_and_other_failures_with_the_turn() {
    let refused = Some(OrderOutcome::Failed { reason: "not_in_doubt: no".into() });
    assert_eq!(outcome(AwaitedEvent::Words, &[failed("not_in_doubt")]), refused);
    assert_eq!(outcome(AwaitedEvent::Words, &[failed("model_timeout")]), None);
    let failure = Some(OrderOutcome::Failed { reason: "model_timeout: no".into() });
    let mut told = say();
    told.payload["failure"] = json!("model_timeout");
    assert_eq!(outcome(AwaitedEvent::Words, &[failed("model_timeout"), told]), failure);
}

/// An event of the message's turn that goes on, decided because the agent was told.
fn decided(type_name: &str, payload: Value) -> EventJson {
    let event_id = Uuid::from_u128(9);
    let causation_id = Some(Uuid::from_u128(8));
    EventJson { event_id, causation_id, correlation_id: Uuid::from_u128(2), ..event(type_name, payload) }
}

fn outcome_event() -> EventJson {
    EventJson { event_id: Uuid::from_u128(8), ..event(v1::AgentChoice::TYPE, json!({})) }
}

#[test]
fn an_answer_ends_with_the_words_of_the_turn_that_goes_on() {
    let matched = decided(v1::ThreadMatched::TYPE, json!({"thread_id": "dinner"}));
    let words = EventJson { correlation_id: Uuid::from_u128(2), causation_id: None, ..say() };
    let others = EventJson { correlation_id: Uuid::from_u128(3), ..words.clone() };
    let done = Some(OrderOutcome::Done { text: "going on".into() });
    assert_eq!(outcome(AwaitedEvent::Words, &[words.clone(), outcome_event(), others, matched.clone()]), None);
    assert_eq!(outcome(AwaitedEvent::Words, &[outcome_event(), outcome_event(), matched.clone(), words]), done);
    let asked = decided(v1::ApprovalRequested::TYPE, json!({"tool": "email.send", "arguments": "{}"}));
    assert!(matches!(
        outcome(AwaitedEvent::Words, &[outcome_event(), matched, asked]),
        Some(OrderOutcome::Asked { .. })
    ));
    let refused = event(v1::AgentFailed::TYPE, json!({"kind": "unknown_offer", "text": "unknown_offer: none"}));
    let refusal = Some(OrderOutcome::Failed { reason: "unknown_offer: none".into() });
    assert_eq!(outcome(AwaitedEvent::Words, &[outcome_event(), refused]), refusal);
}

#[test]
fn consent_ends_with_the_result_of_the_call_it_allows() {
    let call = decided(v1::AgentAction::TYPE, json!({"type": "tool_call", "tool": "email.send"}));
    let result = |action: u128| EventJson {
        correlation_id: Uuid::from_u128(2),
        ..event(v1::ToolResult::TYPE, json!({"action_id": Uuid::from_u128(action), "ok": true, "text": "sent"}))
    };
    let done = Some(OrderOutcome::Done { text: "sent".into() });
    assert_eq!(outcome(AwaitedEvent::Result, &[outcome_event(), call.clone(), result(7)]), None);
    assert_eq!(outcome(AwaitedEvent::Result, &[outcome_event(), call, result(9)]), done);
    let failed = decided(v1::ChainStepEnded::TYPE, json!({"outcome": "failed", "reason": "no such tool"}));
    let reason = "the step ended: failed: no such tool".to_owned();
    assert_eq!(outcome(AwaitedEvent::Result, &[outcome_event(), failed]), Some(OrderOutcome::Failed { reason }));
}

#[test]
fn a_cancel_ends_with_its_result_or_with_the_end_of_what_waited_for_consent() {
    let result = event(v1::ToolResult::TYPE, json!({"ok": true, "text": "{}"}));
    assert_eq!(outcome(AwaitedEvent::End, &[outcome_event(), result]), Some(OrderOutcome::Done { text: "{}".into() }));
    let stopped = decided(v1::ChainStepEnded::TYPE, json!({"outcome": "stopped", "reason": "ann canceled it"}));
    let done = Some(OrderOutcome::Done { text: "the step ended: stopped: ann canceled it".into() });
    assert_eq!(outcome(AwaitedEvent::End, &[outcome_event(), stopped]), done);
}

#[test]
fn a_refusal_of_consent_ends_with_whatever_is_decided_on_it() {
    let thought = decided(v1::AgentThought::TYPE, json!({"text": "then not"}));
    let done = Some(OrderOutcome::Done { text: "the agent was told, and goes on".into() });
    assert_eq!(outcome(AwaitedEvent::Decision, &[outcome_event(), thought]), done);
    let ended = decided(v1::ChainEnded::TYPE, json!({"outcome": "failed", "reason": "ann rejected it"}));
    let done = Some(OrderOutcome::Done { text: "the chain ended: failed: ann rejected it".into() });
    assert_eq!(outcome(AwaitedEvent::Decision, &[outcome_event(), ended]), done);
    let reason = "not_in_doubt: no".to_owned();
    assert_eq!(
        outcome(AwaitedEvent::Decision, &[outcome_event(), failed("not_in_doubt")]),
        Some(OrderOutcome::Failed { reason })
    );
}

#[test]
fn what_an_agent_does_by_itself_is_told_in_words() {
    for (type_name, payload, words) in [
        (v1::TaskChanged::TYPE, json!({"status": "paused"}), "the task is paused"),
        (
            v1::TaskChanged::TYPE,
            json!({"status": "pending", "next_at": "2026-11-21T10:00:00Z"}),
            "the task is pending; it is due next at 2026-11-21T10:00:00Z",
        ),
        (v1::TaskFired::TYPE, json!({"task_id": "t"}), "the task runs"),
        (v1::ThreadArchived::TYPE, json!({"thread_id": "dinner", "archived": true}), "the thread dinner is archived"),
        (v1::ThreadArchived::TYPE, json!({"thread_id": "dinner"}), "the thread dinner is no longer archived"),
        (
            v1::ChainEnded::TYPE,
            json!({"outcome": "canceled", "reason": "ann said so"}),
            "the chain ended: canceled: ann said so",
        ),
        (v1::ChainStepEnded::TYPE, json!({"outcome": "stopped"}), "the step ended: stopped"),
        (
            v1::TeamChanged::TYPE,
            json!({"status": "paused", "reason": "ann said so"}),
            "the team is paused: ann said so",
        ),
    ] {
        let effect = decided(type_name, payload);
        let done = Some(OrderOutcome::Done { text: words.to_owned() });
        assert_eq!(outcome(AwaitedEvent::Effect, &[outcome_event(), effect.clone()]), done);
        assert_eq!(outcome(AwaitedEvent::Effect, &[effect]), None, "it may have another cause");
    }
    for kind in
        ["unknown_chain", "unknown_task", "unknown_thread", "unknown_team", "team_over_budget", "team_unchanged"]
    {
        let reason = format!("{kind}: no");
        assert_eq!(
            outcome(AwaitedEvent::Effect, &[outcome_event(), failed(kind)]),
            Some(OrderOutcome::Failed { reason })
        );
    }
}

#[test]
fn other_orders_are_passed_over() {
    assert_eq!(OrderTracker::new(Uuid::from_u128(2), AwaitedEvent::Words).observe(&say()), None);
}
