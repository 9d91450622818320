//! The reader as a whole: which request an answer ends, and with what.

use kairo_fuzz::Corpus;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ListToolsRequest, PaginatedRequestParams,
    PingRequest,
};
use serde_json::json;

use super::*;
use crate::mcp::failure::CallFailure;
use crate::mcp::server_handle::classify_response;
use crate::tool::ToolErrorKind;

fn request(id: i64, request: ClientRequest) -> ClientJsonRpcMessage {
    ClientJsonRpcMessage::request(request, RequestId::Number(id))
}

fn call(id: i64) -> ClientJsonRpcMessage {
    request(id, ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("pay"))))
}

fn list(id: i64) -> ClientJsonRpcMessage {
    let params = Some(PaginatedRequestParams::default());
    let list = ListToolsRequest { method: Default::default(), params, extensions: Default::default() };
    request(id, ClientRequest::ListToolsRequest(list))
}

fn canceled(id: i64) -> ClientJsonRpcMessage {
    let params = CancelledNotificationParam::new(Some(RequestId::Number(id)), None);
    let notification = rmcp::model::CancelledNotification::new(params);
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}

fn reader(sent: &[ClientJsonRpcMessage]) -> MessageReader {
    let mut reader = MessageReader::default();
    sent.iter().for_each(|message| reader.track_sent(message));
    reader
}

/// The ids of the requests that a piece ends.
fn ended(reader: &mut MessageReader, piece: &str) -> Vec<i64> {
    let reading = reader.read(piece.as_bytes(), None);
    let id = |message: &ServerJsonRpcMessage| match message {
        ServerJsonRpcMessage::Response(answer) => Some(answer.id.clone()),
        ServerJsonRpcMessage::Error(answer) => answer.id.clone(),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
    };
    let number = |id| match id {
        RequestId::Number(number) => number,
        RequestId::String(text) => panic!("{text}"),
    };
    reading.messages.iter().filter_map(id).map(number).collect()
}

fn text(id: Value, text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}).to_string()
}

#[test]
fn answers_find_their_requests() {
    let none: [i64; 0] = [];
    let one = || reader(&[call(5)]);
    let two = || reader(&[call(5), call(6)]);
    assert_eq!(ended(&mut one(), &text(json!(5), "a")), [5]);
    assert_eq!(ended(&mut two(), &text(json!("6"), "a")), [6]);
    assert_eq!(ended(&mut two(), &text(json!(6.0), "a")), [6]);
    // Only where there is nothing else it could be.
    for odd in [json!(null), json!("abc"), json!({"a": 1}), json!(5.5)] {
        assert_eq!(ended(&mut one(), &text(odd.clone(), "a")), [5], "{odd}");
        assert_eq!(ended(&mut two(), &text(odd.clone(), "a")), none, "{odd}");
        assert_eq!(ended(&mut reader(&[call(4), canceled(4), call(5)]), &text(odd.clone(), "a")), none, "{odd}");
    }
    // The number of another request: a second answer, or a late one.
    for other in [json!(4), json!("4")] {
        assert_eq!(ended(&mut one(), &text(other.clone(), "a")), none);
        assert_eq!(ended(&mut reader(&[call(4), canceled(4), call(5)]), &text(other, "a")), none);
    }
    let mut twice = one();
    assert_eq!(ended(&mut twice, &format!("{}{}", text(json!(5), "a"), text(json!(5), "b"))), [5]);
    assert_eq!(ended(&mut twice, &text(json!(5), "c")), none);
    // Where it is known by the connection what is answered.
    let answers = two().read(text(json!("other"), "a").as_bytes(), Some(&RequestId::Number(6)));
    assert_eq!(answers.messages.len(), 1);
}

#[test]
fn batches_and_broken_messages() {
    let batch = format!("[{},{},7]", text(json!(5), "a"), text(json!(6), "b"));
    assert_eq!(ended(&mut reader(&[call(5), call(6)]), &batch), [5, 6]);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"structuredContent":{}"#, "[".repeat(300));
    assert_eq!(ended(&mut reader(&[call(5), call(6)]), &deep), [5]);
    let mut open = reader(&[call(5)]);
    for noise in ["[]", "42", "\"x\"", "null", "", "\u{feff}", "Server is up", "{not json", "{}", "{\"hello\": 1}"] {
        assert!(ended(&mut open, noise).is_empty(), "{noise}");
    }
    assert_eq!(ended(&mut open, &text(json!(5), "after noise")), [5]);
}

#[test]
fn messages_of_the_server_are_passed_on() {
    let mut reader = reader(&[]);
    for (message, passed_on) in [
        (r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, true),
        (r#"{"method":"notifications/tools/list_changed","params":null,"id":null}"#, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true),
        (r#"{"jsonrpc":"2.0","id":"a","method":"unheard/of","params":{"x":1},"result":null}"#, true),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, false),
    ] {
        let reading = reader.read(message.as_bytes(), None);
        assert_eq!(reading.messages.len(), usize::from(passed_on), "{message}");
        assert_eq!(reading.notes.is_empty(), passed_on, "{message}");
    }
}

/// Returns the error that the agent sees for a call of a tool that may have had an effect.
fn kind(answer: &str) -> Option<ToolErrorKind> {
    let mut reader = reader(&[call(5)]);
    let mut messages = reader.read(answer.as_bytes(), None).messages;
    assert_eq!(messages.len(), 1, "{answer}");
    outcome(messages.remove(0)).err().map(|failure| failure.into_error("s", false).kind)
}

fn outcome(message: ServerJsonRpcMessage) -> Result<(), CallFailure> {
    match message {
        ServerJsonRpcMessage::Response(answer) => classify_response(Ok(answer.result)).map(drop),
        ServerJsonRpcMessage::Error(answer) => {
            classify_response(Err(rmcp::ServiceError::McpError(answer.error))).map(drop)
        }
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => panic!("no answer"),
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_in_doubt_at_once() {
    for (rest, expected) in [
        (r#""result":{"content":[]}"#, None),
        (r#""result":{"content":[]},"error":null"#, None),
        (r#""result":{"receipt":7}"#, None),
        (r#""result":null,"error":{"code":-32000,"message":"no"}"#, Some(ToolErrorKind::Failed)),
        (r#""error":{"code":"-32602","message":7}"#, Some(ToolErrorKind::InvalidArguments)),
        (r#""result":null"#, Some(ToolErrorKind::InDoubt)),
        (r#""error":null"#, Some(ToolErrorKind::InDoubt)),
        (r#""error":{"message":"no code"}"#, Some(ToolErrorKind::InDoubt)),
        (r#""error":"boom""#, Some(ToolErrorKind::InDoubt)),
        (r#""result":{"content":[]},"error":{"code":1,"message":"both"}"#, Some(ToolErrorKind::InDoubt)),
        (r#""result":{"resultType":"later"}"#, Some(ToolErrorKind::InDoubt)),
        (r#""resultat":{"paid":7}"#, Some(ToolErrorKind::InDoubt)),
    ] {
        assert_eq!(kind(&format!(r#"{{"jsonrpc":"2.0","id":5,{rest}}}"#)), expected, "{rest}");
    }
}

#[test]
fn other_requests_end_with_an_error() {
    let reading = reader(&[list(1)]).read(br#"{"id":1,"result":"none"}"#, None);
    let [ServerJsonRpcMessage::Error(error)] = &reading.messages[..] else { panic!("{reading:?}") };
    assert!(error.error.message.contains("a string"), "{error:?}");
    let reading = reader(&[list(1)]).read(br#"{"id":1,"result":{"tools":[null]}}"#, None);
    assert_eq!((reading.messages.len(), reading.left_out.len()), (1, 1));
    let ping = request(1, ClientRequest::PingRequest(PingRequest::default()));
    assert_eq!(ended(&mut reader(&[ping]), r#"{"id":1,"result":{}}"#), [1]);
}

#[test]
fn requests_are_forgotten_in_the_end() {
    let mut reader = reader(&(0..3000).map(call).collect::<Vec<_>>());
    assert_eq!(reader.open.len(), MAX_REQUESTS);
    (0..3000).for_each(|id| reader.track_sent(&canceled(id)));
    assert_eq!((reader.open.len(), reader.canceled.len()), (0, MAX_REQUESTS));
}

fn json_value() -> impl Strategy<Value = Value> {
    let key = || {
        prop_oneof![
            Just("content"),
            Just("type"),
            Just("text"),
            Just("isError"),
            Just("structuredContent"),
            Just("data"),
            Just("toolResult"),
            Just("mimeType"),
            Just("resource"),
            Just("uri"),
            Just("resultType"),
            Just("task"),
            Just("x"),
        ]
    };
    let word =
        prop_oneof![Just("text"), Just("image"), Just("resource"), Just("resource_link"), Just("complete"), Just("x")];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key(), inner), 0..5)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    /// Whatever JSON a tool with effects answers with: it is its result, its own word that it failed, or in doubt.
    #[test]
    fn any_result_of_a_call_is_read(result in json_value()) {
        let is_error = result.get("isError").is_some() || result.to_string().contains("isError");
        let answer = json!({"jsonrpc": "2.0", "id": 5, "result": result}).to_string();
        match kind(&answer) {
            None | Some(ToolErrorKind::InDoubt) => {}
            Some(ToolErrorKind::Failed) => assert!(is_error, "{answer}"),
            Some(other) => panic!("{other:?}: {answer}"),
        }
    }

    /// An answer whose id can be read ends its call, whatever else it holds.
    #[test]
    fn any_answer_ends_its_call(result in json_value(), error in json_value()) {
        for answer in [json!({"id": 5, "result": result, "error": error}), json!({"id": 5, "error": error})] {
            assert_eq!(ended(&mut reader(&[call(5), call(6)]), &answer.to_string()), [5]);
        }
    }
}

/// Whatever a server writes: nothing breaks, what is noted is bounded, and no request is answered twice.
#[test]
fn fuzz_the_reader_of_mcp_servers() {
    Corpus::named("mcp").one_in(4).fuzz(|bytes| {
        let mut reader = reader(&[call(1), list(2), request(3, ClientRequest::PingRequest(PingRequest::default()))]);
        let mut answered = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let reading = reader.read(line, None);
            assert!(reading.notes.iter().all(|note| note.chars().count() < 1_000), "{:?}", reading.notes);
            for message in reading.messages {
                if let ServerJsonRpcMessage::Response(answer) = &message {
                    answered.push(answer.id.clone());
                }
                if let ServerJsonRpcMessage::Error(answer) = &message {
                    answered.extend(answer.id.clone());
                }
                // It travels as JSON over streams of events.
                let travels = serde_json::to_string(&message).unwrap();
                assert!(serde_json::from_str::<ServerJsonRpcMessage>(&travels).is_ok(), "{travels}");
            }
        }
        let count = answered.len();
        answered.sort_by_key(ToString::to_string);
        answered.dedup();
        assert_eq!(answered.len(), count);
    });
}
