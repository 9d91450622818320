use jiff::Timestamp;
use kairo_proto::v1;
use serde_json::json;

use super::*;

pub(in crate::watch) fn event(sequence: u64, position: u32, type_name: &str, payload: Value) -> EventJson {
    let place = format!("{sequence}.{position}");
    let event_id = kairo_core::ids::from_parts("event", &[&place]);
    serde_json::from_value(json!({
        "event_id": event_id, "ts": Timestamp::from_second(i64::try_from(sequence).unwrap()).unwrap(),
        "source": "internal", "modality": "text", "payload": payload, "meta": {"tags": []}, "type": type_name,
        "sequence": sequence, "position": position, "subject": "kairo.agent.bob.decision",
        "correlation_id": Uuid::from_u128(1), "causation_id": null, "thread_id": null,
    }))
    .unwrap()
}

fn of(sequence: u64, type_name: &str, payload: Value) -> EventJson {
    event(sequence, 0, &format!("kairo.{type_name}.v1"), payload)
}

const PROCESS: Uuid = Uuid::from_u128(77);

/// A question, a call that becomes a process, and what it says on the way.
fn history() -> Vec<EventJson> {
    let call = of(
        3,
        "agent.action",
        json!({"type": "tool_call", "tool": "process.run", "args": {"program": "sh"}, "text": "x"}),
    );
    let action = call.event_id;
    let process = |more: Value| {
        let mut payload = json!({"process_id": PROCESS, "action_id": action});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    vec![
        of(1, "agent.message", json!({"user": "ann", "text": "go"})),
        of(2, "agent.thought", json!({"text": "hm"})),
        call,
        of(4, "tool.invoke", json!({"action_id": action, "tool": "process.run"})),
        of(5, "process.spawned", process(json!({"program": "sh", "arguments": ["-c"], "pid": 7, "text": "sh -c"}))),
        of(6, "process.progress", process(json!({"fraction": 0.5, "message": "half", "tail": "one\ntwo\n"}))),
        of(7, "process.canceled", process(json!({}))),
        of(
            8,
            "process.exited",
            process(json!({"outcome": "canceled", "signal": 15, "stdout_tail": "three\n", "text": "y"})),
        ),
        of(
            9,
            "tool.result",
            json!({"action_id": action, "tool": "process.run", "error": "canceled", "text": "canceled"}),
        ),
        of(10, "agent.action", json!({"type": "say", "text": "stopped", "final": true})),
    ]
}

fn picture(events: &[EventJson]) -> Picture {
    let mut picture = Picture::new("bob");
    for event in events {
        picture.apply_event(event);
    }
    picture
}

fn json(picture: &Picture) -> Value {
    serde_json::to_value(picture).unwrap()
}

#[test]
fn what_runs_is_shown_until_it_has_ended() {
    let running = picture(&history()[..6]);
    let action = &running.actions[0];
    assert_eq!((action.begun, action.process_id, action.fraction), (true, Some(PROCESS), Some(0.5)));
    let process = &running.processes[0];
    assert_eq!((process.program.as_str(), process.pid, process.message.as_str()), ("sh", 7, "half"));
    assert_eq!(process.output.lines().len(), 2);
    assert!(!process.cancel_requested && picture(&history()[..7]).processes[0].cancel_requested);

    // It may be asked to end before it began.
    let mut history_of_haste = history();
    history_of_haste.retain(|event| event.type_name != v1::ProcessProgress::TYPE);
    let canceled = history_of_haste.remove(5);
    history_of_haste.insert(4, EventJson { sequence: 4, position: 1, ..canceled });
    let hasty = picture(&history_of_haste[..6]);
    assert!(hasty.actions[0].cancel_requested && hasty.processes[0].cancel_requested);

    let over = picture(&history());
    assert!(over.actions.is_empty() && over.processes.is_empty());
    let ended = over.ended[0].ended.as_ref().unwrap();
    assert_eq!((ended.outcome.as_str(), ended.signal), ("canceled", Some(15)));
    let said: Vec<_> = over.conversation.iter().map(|said| (said.who.as_str(), said.text.as_str())).collect();
    assert_eq!(said, [("ann", "go"), ("bob", "stopped")]);
    let kinds: Vec<_> = over.recent(5).iter().map(|happening| happening.kind).collect();
    assert_eq!(
        kinds,
        [
            HappeningKind::Process,
            HappeningKind::Process,
            HappeningKind::Process,
            HappeningKind::Result,
            HappeningKind::Said
        ]
    );
}

#[test]
fn what_is_told_again_changes_nothing() {
    let history = history();
    for cut in 0..=history.len() {
        let once = picture(&history[..cut]);
        let mut twice = picture(&history[..cut]);
        // After a lost connection, and because it stands in the log twice.
        for event in &history[..cut] {
            assert_eq!(twice.apply_event(event), News::default());
        }
        for event in &history[..cut] {
            assert_eq!(
                twice.apply_event(&EventJson { sequence: event.sequence + 100, ..event.clone() }),
                News::default()
            );
        }
        twice.place = once.place;
        assert_eq!(json(&twice), json(&once), "up to {cut}");
    }
}

fn piece(sequence: u64, text: &str) -> Value {
    json!({"process_id": PROCESS, "stream": "stdout", "sequence": sequence.to_string(), "text": text})
}

#[test]
fn output_is_shown_as_it_comes_and_once() {
    let mut picture = picture(&history()[..5]);
    assert_eq!(picture.apply_live("output", &json!({"process_id": PROCESS, "text": "one\n"})).written.len(), 1);
    assert_eq!(picture.apply_live("output", &piece(1, "two\nthr")).written.len(), 1);
    assert_eq!(picture.apply_live("output", &piece(1, "two\nthr")), News::default());
    picture.apply_event(&history()[5]);
    let lines = picture.processes[0].output.lines();
    assert_eq!(lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["one", "two", "thr"]);
    // What was not shown because its line did not end is shown now.
    assert_eq!(picture.apply_event(&history()[7]).written[0].line.text, "thr");
    assert_eq!(picture.apply_live("output", &piece(2, "late\n")), News::default());
}

#[test]
fn output_may_come_before_it_is_known_what_runs() {
    let mut early = Picture::new("bob");
    early.apply_live("output", &piece(0, "one\n"));
    for event in &history()[..5] {
        early.apply_event(event);
    }
    assert_eq!(early.processes[0].output.lines()[0].text, "one");
    for other in 0..1_000_u128 {
        early.apply_live("output", &json!({"process_id": Uuid::from_u128(1_000 + other), "text": "x"}));
    }
    assert_eq!(early.early.len(), EARLY);
}

#[test]
fn an_action_in_doubt_stays_until_it_is_resolved() {
    let mut events = history()[..4].to_vec();
    let action = events[2].event_id;
    events.push(of(
        5,
        "tool.result",
        json!({"action_id": action, "error": "in_doubt", "message": "runner gone", "text": "z"}),
    ));
    assert_eq!(picture(&events).actions[0].in_doubt.as_deref(), Some("runner gone"));
    let verdict =
        |sequence, verdict: &str| of(sequence, "agent.approval", json!({"action_id": action, "verdict": verdict}));
    events.push(verdict(6, "perhaps"));
    assert_eq!(picture(&events).actions.len(), 1);
    events.push(verdict(7, "did_not_happen"));
    assert!(picture(&events).actions.is_empty());
}

#[test]
fn a_picture_is_bounded() {
    let many = (1..=3_000).map(|sequence| match sequence % 3 {
        0 => of(sequence, "agent.message", json!({"user": "ann", "text": "x".repeat(10_000)})),
        1 => of(sequence, "agent.action", json!({"type": "tool_call", "tool": "t", "args": {}, "text": "t"})),
        _ => of(
            sequence,
            "process.exited",
            json!({"process_id": Uuid::from_u128(sequence.into()), "outcome": "refused"}),
        ),
    });
    let picture = picture(&many.collect::<Vec<_>>());
    assert_eq!((picture.conversation.len(), picture.decisions.len(), picture.outcomes.len()), (LINES, LINES, LINES));
    assert_eq!((picture.actions.len(), picture.ended.len()), (ACTIONS, ENDED));
    assert!(picture.conversation[0].text.len() <= 4_000);
    let mut remembered = RecentEventIds::default();
    for number in 0..REMEMBERED as u128 + 5 {
        assert!(remembered.insert(Uuid::from_u128(number)));
    }
    assert_eq!((remembered.ids.len(), remembered.order.len()), (REMEMBERED, REMEMBERED));
}

#[test]
fn an_answer_being_written_is_shown_until_the_decision_is_there() {
    let mut picture = Picture::new("bob");
    for (index, text) in [(0, "he"), (1, "llo")] {
        picture.apply_live("token", &json!({"index": index, "text": text}));
    }
    picture.apply_live("token", &json!({"index": 2, "text": "hm", "reasoning": true}));
    assert_eq!(picture.writing, "hello");
    picture.apply_live("token", &json!({"text": "anew"}));
    assert_eq!(picture.writing, "anew");
    picture.apply_event(&history()[9]);
    assert_eq!(picture.writing, "");
    picture.apply_live("token", &json!({"text": "half an ans"}));
    picture.apply_event(&of(11, "agent.failed", json!({"text": "model_timeout: too slow"})));
    assert_eq!(picture.writing, "");
    // Of a long one, the end.
    for index in 0..WRITING {
        picture.apply_live("token", &json!({"index": index, "text": "更多"}));
    }
    picture.apply_live("token", &json!({"index": WRITING, "text": "end"}));
    assert!(picture.writing.ends_with("更多end") && (WRITING - 3..=WRITING).contains(&picture.writing.len()));
}
