use kairo_core::ids::Name;
use serde_json::{Value, json};

use super::*;

fn read_json(frame: Value) -> (FrameReference, Result<ClientFrame, Problem>) {
    parse(frame.to_string().as_bytes(), &GatewayConfig::default())
}

fn wrong_fields(frame: Value) -> (FrameReference, Vec<String>) {
    let (about, received) = read_json(frame);
    (about, received.unwrap_err().errors.into_iter().map(|error| error.field).collect())
}

fn about(id: &str, reference: &str) -> FrameReference {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    FrameReference { id: text(id), reference: text(reference) }
}

#[test]
fn fuzz_websocket_frames() {
    let limits = GatewayConfig::default();
    kairo_fuzz::Corpus::named("frames").fuzz(|frame| {
        if let (_, Err(problem)) = parse(frame, &limits) {
            assert!(problem.status.is_client_error(), "{problem:?}");
        }
    });
}

/// One of each frame that the gateway sends; a new kind does not compile until it is here.
pub fn samples() -> Vec<Value> {
    let limits = GatewayConfig::default();
    let event: EventJson = serde_json::from_value(json!({
        "event_id": uuid::Uuid::nil(), "ts": "2026-11-21T10:00:00Z", "source": "user", "modality": "text",
        "payload": {}, "meta": { "tags": [] }, "type": "t", "sequence": 7, "position": 1, "subject": "s",
        "correlation_id": uuid::Uuid::nil(), "causation_id": null, "thread_id": null,
    }))
    .unwrap();
    let change: v1::TurnStatus = serde_json::from_value(json!({ "turn_id": "t", "status": "started" })).unwrap();
    let problem = Problem::unknown_path();
    let said = about("", "r-1");
    let accepted: Vec<AcceptedInput> =
        ["message_id", "choice_id", "approval_id", "command_id"].map(AcceptedInput::sample).into();
    let mut samples = vec![
        ServerFrame::hello(&limits),
        ServerFrame::from_watched("a", WatchItem::Start(LogPosition::whole_message(7))),
        ServerFrame::Unsubscribed { id: "a" },
        ServerFrame::from_watched("a", WatchItem::Event(&event)),
        ServerFrame::from_watched("a", WatchItem::TurnStatus(&change)),
        ServerFrame::from_watched("a", WatchItem::Live("token", json!({}))),
        ServerFrame::Error { about: &said, problem: &problem },
        ServerFrame::Pong,
        ServerFrame::Closing { reason: "because" },
    ];
    samples.extend(accepted.iter().map(|accepted| ServerFrame::Accepted { about: &said, accepted }));
    for sample in &samples {
        match sample {
            ServerFrame::Hello { .. }
            | ServerFrame::Subscribed { .. }
            | ServerFrame::Unsubscribed { .. }
            | ServerFrame::Event { .. }
            | ServerFrame::TurnStatus { .. }
            | ServerFrame::Live { .. }
            | ServerFrame::Accepted { .. }
            | ServerFrame::Error { .. }
            | ServerFrame::Pong
            | ServerFrame::Closing { .. } => {}
        }
    }
    samples.iter().map(|sample| serde_json::from_str(&sample.to_json()).unwrap()).collect()
}

#[test]
fn a_subscription_says_what_to_watch() {
    let frame =
        json!({ "type": "subscribe", "id": "s", "agent": "cook", "after": "7.1", "live": true, "turn_status": true });
    let (about, Ok(ClientFrame::Subscribe(wish))) = read_json(frame) else { panic!() };
    assert_eq!((about.id.as_deref(), wish.filter.agent.as_ref().map(Name::as_str)), (Some("s"), Some("cook")));
    assert_eq!((wish.after, wish.live, wish.turn_status), (Some(LogPosition { sequence: 7, position: 1 }), true, true));
}

#[test]
fn what_is_wrong_with_a_frame_is_told_with_what_it_is_about() {
    let frame = json!({ "type": "subscribe", "id": "s", "agent": "A", "after": 7, "live": "yes", "turn_status": 1,
        "colour": "red" });
    assert_eq!(
        wrong_fields(frame),
        (about("s", ""), ["agent", "after", "live", "turn_status", "colour"].map(String::from).into())
    );
    let frame = json!({ "type": "message", "ref": "r", "id": "x" });
    assert_eq!(wrong_fields(frame), (about("", "r"), ["user", "text", "id"].map(String::from).into()));
    let frame = json!({ "type": "message", "ref": 7, "user": "ann", "text": "hi" });
    assert_eq!(wrong_fields(frame), (about("", ""), vec!["ref".to_owned()]));
    assert_eq!(wrong_fields(json!({ "type": "unsubscribe" })), (about("", ""), vec!["id".to_owned()]));
    assert_eq!(wrong_fields(json!({ "type": "ping", "text": "?" })), (about("", ""), vec!["text".to_owned()]));
    let frame = json!({ "type": "dance", "ref": "r", "to": "the music" });
    assert_eq!(wrong_fields(frame), (about("", "r"), vec!["type".to_owned()]));
    assert_eq!(wrong_fields(json!({ "text": "hi" })), (about("", ""), vec!["type".to_owned()]));
}

#[test]
fn what_is_no_object_is_malformed() {
    for frame in ["", "[]", "7", "\"ping\"", "{", "{\"type\": \"ping\"} {}"] {
        let (_, received) = parse(frame.as_bytes(), &GatewayConfig::default());
        assert_eq!(received.unwrap_err().status.as_u16(), 400, "{frame}");
    }
}
