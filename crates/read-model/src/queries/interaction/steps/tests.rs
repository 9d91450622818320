use uuid::Uuid;

use super::*;

const DECISION: &str = "kairo.agent.bob.decision";
const TURN: Uuid = Uuid::from_u128(1);
const CALL: Uuid = Uuid::from_u128(5);
const OTHER: Uuid = Uuid::from_u128(6);

fn event(sequence: u64, subject: &str, type_name: &str, id: Uuid, payload: Value) -> EventJson {
    serde_json::from_value(json!({
        "event_id": id, "ts": format!("2026-01-01T00:00:{sequence:02}Z"), "source": "internal", "modality": "text",
        "payload": payload, "meta": {"tags": []}, "type": type_name, "sequence": sequence, "position": 0,
        "subject": subject, "correlation_id": TURN, "causation_id": null, "thread_id": "t",
    }))
    .unwrap()
}

fn decided(sequence: u64, type_name: &str, payload: Value) -> EventJson {
    event(sequence, DECISION, type_name, Uuid::nil(), payload)
}

fn sent_event() -> EventJson {
    event(1, "kairo.user.ann.message", v1::UserMessage::TYPE, TURN, json!({ "text": "the time please" }))
}

fn call(sequence: u64, id: Uuid) -> EventJson {
    let called = json!({ "type": "tool_call", "text": "", "tool": "tools.now", "args": { "zone": "UTC" } });
    event(sequence, DECISION, v1::AgentAction::TYPE, id, called)
}

fn result(sequence: u64, id: Uuid, ok: bool) -> EventJson {
    let result = match ok {
        true => json!({ "action_id": id, "ok": true, "text": "12:00", "result": { "now": "12:00" } }),
        false => json!({ "action_id": id, "ok": false, "text": "timed_out: too slow" }),
    };
    event(sequence, "kairo.tool.bob.result", v1::ToolResult::TYPE, Uuid::nil(), result)
}

fn reply(sequence: u64) -> EventJson {
    let said = json!({ "type": "say", "text": "It is noon.", "user": "ann", "message_id": "m", "final": true });
    decided(sequence, v1::AgentAction::TYPE, said)
}

fn thought(sequence: u64, text: &str) -> EventJson {
    decided(sequence, v1::AgentThought::TYPE, json!({ "text": text }))
}

fn of(events: Vec<EventJson>) -> InteractionRow {
    let tokens = [(3, (100, 10)), (5, (200, 20))].into();
    build_interaction(&TurnEvents { events, tokens, more: false }).unwrap()
}

/// Kind, reasoning, content, action, error, and whether it is over.
type Step<'s> = (&'s str, Option<&'s str>, Option<&'s str>, Option<&'s str>, Option<&'s str>, bool);

fn step_summary(step: &InteractionStepRow) -> Step<'_> {
    let InteractionStepRow { kind, reasoning, content, action, error, ended_at, .. } = step;
    (kind, reasoning.as_deref(), content.as_deref(), action.as_deref(), error.as_deref(), ended_at.is_some())
}

fn steps(row: &InteractionRow) -> Vec<Step<'_>> {
    row.steps.iter().map(step_summary).collect()
}

#[test]
fn a_turn_is_planned_executed_and_reflected_on() {
    let delivered = event(2, "kairo.agent.bob.message", v1::AgentMessage::TYPE, Uuid::nil(), json!({ "text": "" }));
    let all = vec![
        sent_event(),
        delivered,
        thought(3, "I need a clock."),
        call(3, CALL),
        result(4, CALL, true),
        thought(5, "Noon."),
        reply(5),
    ];
    let status = |events: usize| of(all[..events].to_vec()).status;
    assert_eq!(
        [1, 2, 3, 4, 5, 6, 7].map(status),
        ["started", "planning", "planning", "executing", "reflecting", "planning", "completed"]
    );
    let turn = of(all);
    assert_eq!(
        steps(&turn),
        [
            ("plan", Some("I need a clock."), None, None, None, true),
            ("execute", None, None, Some("tools.now"), None, true),
            ("reflect", Some("Noon."), Some("It is noon."), None, None, true),
        ]
    );
    assert_eq!((turn.turn_id.as_str(), turn.intent.as_deref()), (TURN.to_string().as_str(), Some("tools.now")));
    assert_eq!((turn.input_tokens, turn.output_tokens), (300, 30));
    assert_eq!((turn.steps[0].input_tokens, turn.steps[1].input_tokens, turn.steps[2].output_tokens), (100, 0, 20));
    let executed = &turn.steps[1];
    assert_eq!(executed.arguments.as_ref().unwrap().value(), json!({ "zone": "UTC" }));
    assert_eq!(executed.result.as_ref().unwrap().value(), json!({ "now": "12:00" }));
    assert_eq!(
        (executed.action_id.as_deref(), executed.agent.as_deref()),
        (Some(CALL.to_string().as_str()), Some("bob"))
    );
    assert_eq!(turn.ended_at, turn.steps[2].timestamp);
}

#[test]
fn what_failed_says_so_and_a_turn_goes_on_while_anything_runs() {
    let started = vec![sent_event(), call(3, CALL), call(3, OTHER), result(4, CALL, false)];
    let turn = of(started.clone());
    assert_eq!((turn.status.as_str(), steps(&turn)[1].4), ("executing", Some("timed_out: too slow")));
    assert!(turn.steps[2].ended_at.is_none());
    let failure = |retried: bool| decided(5, v1::AgentFailed::TYPE, json!({ "text": "no model", "retried": retried }));
    let told = |failure: bool| {
        let mut reply = reply(5);
        if failure {
            reply.payload["failure"] = json!("model_unavailable");
        }
        reply
    };
    let ended = |retried: bool| of([started.clone(), vec![failure(retried), told(!retried)]].concat());
    assert_eq!([ended(true).status, ended(false).status], ["completed", "failed"]);
    assert_eq!(steps(&ended(false)).last().unwrap().4, Some("no model"));
    let undelivered = event(
        2,
        "kairo.user.ann.undelivered",
        v1::UserMessageUndelivered::TYPE,
        Uuid::nil(),
        json!({ "text": "nobody" }),
    );
    let turn = of(vec![sent_event(), undelivered]);
    assert_eq!((turn.status.as_str(), turn.intent.as_deref(), steps(&turn)[0].4), ("failed", None, Some("nobody")));
}

#[test]
fn a_plan_is_the_intent_and_its_steps_are_executed_with_or_without_tools() {
    let chain = json!({
        "chain_id": "c", "plan": "1. look\n2. remember", "text": "",
        "steps": [{ "event": "tools.now" }, { "event": "memory.append" }, { "event": "agent.think" }],
    });
    let ended = |step: u64, outcome: &str| {
        let payload = json!({
            "chain_id": "c", "step": step, "outcome": outcome, "params": "{\"a\":1}", "result": "\"kept\"", "reason": "why",
        });
        decided(4, v1::ChainStepEnded::TYPE, payload)
    };
    let turn = of(vec![
        sent_event(),
        decided(3, v1::ChainStarted::TYPE, chain),
        ended(1, "done"),
        ended(2, "done"),
        ended(0, "skipped"),
    ]);
    assert_eq!(turn.intent.as_deref(), Some("1. look\n2. remember"));
    assert_eq!(
        steps(&turn),
        [
            ("plan", None, Some("1. look\n2. remember"), None, None, true),
            ("execute", None, None, Some("memory.append"), None, true),
            ("execute", None, None, Some("tools.now"), None, true),
        ]
    );
    let standing = |at: usize| (turn.steps[at].status.as_deref(), turn.steps[at].reason.as_deref());
    assert_eq!([standing(1), standing(2)], [(Some("done"), None), (Some("skipped"), Some("why"))]);
    assert_eq!(turn.steps[1].result.as_ref().unwrap().value(), json!("kept"));
}

#[test]
fn a_plain_answer_is_an_answer() {
    let turn = of(vec![sent_event(), thought(3, "Easy."), reply(3)]);
    assert_eq!(steps(&turn), [("answer", Some("Easy."), Some("It is noon."), None, None, true)]);
    assert_eq!((turn.input_tokens, turn.intent.as_deref()), (100, None));
}

#[test]
fn drafts_reviews_and_revisions_are_steps_in_their_order_within_and_over_decisions() {
    let review = |sequence: u64, verdict: &str, draft: &str| {
        let told = json!({ "text": "", "verdict": verdict, "reason": format!("{verdict} it"), "draft": draft });
        decided(sequence, v1::AgentReflected::TYPE, told)
    };
    let said = |sequence: u64, text: &str| {
        let mut reply = reply(sequence);
        reply.payload["text"] = json!(text);
        reply
    };
    let turn = of(vec![
        sent_event(),
        decided(3, v1::AgentGoal::TYPE, json!({ "text": "To catch a train." })),
        thought(3, "By heart."),
        review(3, "act", "One."),
        call(3, CALL),
        result(4, CALL, true),
        review(5, "revise", "Two."),
        thought(5, "Shorter."),
        review(5, "finished", "Three."),
        said(5, "Three."),
    ]);
    assert_eq!(
        steps(&turn),
        [
            ("plan", None, Some("To catch a train."), None, None, true),
            ("draft", Some("By heart."), Some("One."), None, None, true),
            ("review", Some("act it"), Some("act"), None, None, true),
            ("execute", None, None, Some("tools.now"), None, true),
            ("revision", None, Some("Two."), None, None, true),
            ("review", Some("revise it"), Some("revise"), None, None, true),
            ("revision", Some("Shorter."), Some("Three."), None, None, true),
            ("review", Some("finished it"), Some("finished"), None, None, true),
            ("answer", None, Some("Three."), None, None, true),
        ]
    );
    // Where no review is left, what is written after the last one is a revision.
    let turn = of(vec![sent_event(), review(3, "revise", "One."), said(3, "Two.")]);
    assert_eq!(steps(&turn).iter().map(|step| step.0).collect::<Vec<_>>(), ["draft", "review", "revision"]);
    assert_eq!((turn.input_tokens, turn.output_tokens), (100, 10), "counted once");
}

#[test]
fn a_task_that_is_queued_is_a_call_told_once() {
    let task = json!({ "task_id": OTHER, "kind": "queued", "title": "Pay", "text": "Pay the crane." });
    let scheduled = event(3, DECISION, v1::TaskScheduled::TYPE, CALL, json!({ "text": "", "task": task }));
    let turn = of(vec![sent_event(), scheduled.clone(), reply(3)]);
    let [planned, queued, answered] = turn.steps.as_slice() else { panic!("{turn:?}") };
    assert_eq!((planned.kind.as_str(), planned.input_tokens), ("plan", 100));
    assert_eq!((queued.action.as_deref(), queued.status.as_deref()), (Some("task.queue"), Some("done")));
    assert_eq!(queued.arguments.as_ref().unwrap().value(), json!({ "title": "Pay", "text": "Pay the crane." }));
    assert_eq!(answered.kind, "answer");
    // As a step of a chain it is that step.
    let chain = json!({ "chain_id": "c", "plan": "", "text": "", "steps": [{ "event": "task.queue" }] });
    let ended = json!({ "chain_id": "c", "step": 0, "outcome": "done", "params": "{}", "result": json!({ "task_id": OTHER }).to_string() });
    let ended = decided(3, v1::ChainStepEnded::TYPE, ended);
    let turn = of(vec![sent_event(), decided(3, v1::ChainStarted::TYPE, chain), scheduled, ended]);
    let actions: Vec<_> = turn.steps.iter().filter_map(|step| step.action.as_deref()).collect();
    assert_eq!(actions, ["task.queue"]);
}

#[test]
fn a_turn_that_waits_for_consent_is_executed() {
    let asked = event(3, DECISION, v1::ApprovalRequested::TYPE, OTHER, json!({ "tool": "email.send" }));
    let given =
        event(4, "kairo.agent.bob.approval", v1::AgentApproval::TYPE, Uuid::nil(), json!({ "action_id": OTHER }));
    assert_eq!(of(vec![sent_event(), asked.clone()]).status, "executing");
    assert_eq!(of(vec![sent_event(), asked, given]).status, "planning");
}

#[test]
fn what_is_asked_of_another_agent_ends_with_its_answer() {
    let ask = |kind: &str| {
        let asked =
            json!({ "type": "ask", "agent": "eve", "kind": kind, "title": "Look", "task": "at it", "text": "" });
        event(3, DECISION, v1::AgentAction::TYPE, CALL, asked)
    };
    assert_eq!(of(vec![sent_event(), ask("work")]).status, "executing");
    assert_eq!(of(vec![sent_event(), ask("cancel")]).status, "planning");
    let answer = json!({ "request_id": CALL, "status": "completed", "result": "done", "reason": "" });
    let answer = event(4, "kairo.agent.bob.answer", v1::AgentAnswer::TYPE, Uuid::nil(), answer);
    let turn = of(vec![sent_event(), ask("work"), answer]);
    assert_eq!((turn.status.as_str(), turn.steps[1].result.as_ref().unwrap().value()), ("reflecting", json!("done")));
}

#[test]
fn of_nothing_there_is_no_turn() {
    assert_eq!(build_interaction(&TurnEvents::default()), None);
}
