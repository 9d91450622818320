//! Calls of endpoints that answer as real ones do, over real connections.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use kairo_mind::request::{ModelRequest, PromptMessage, Tool};
use kairo_proto::v1::Completion;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{EmptyPartStore, MESSAGE_CHARS, ModelClient, Models};
use crate::{answer_progress::ProgressHandle, config::ModelsConfig};

/// One step of the test endpoint's response.
#[derive(Clone, Debug)]
enum Step {
    Send(String),
    /// It says nothing more, and keeps the connection.
    Hang,
    /// It says nothing for so long.
    Wait(Duration),
}

/// An endpoint that answers one request after another as it is told, and keeps what it was asked.
#[derive(Clone, Default)]
struct Endpoint {
    answers: Arc<Mutex<VecDeque<Vec<Step>>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Endpoint {
    async fn start(answers: impl IntoIterator<Item = Vec<Step>>) -> (Self, String) {
        let endpoint = Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let serving = endpoint.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(client));
            }
        });
        (endpoint, url)
    }

    async fn serve(self, mut client: TcpStream) {
        let request = body(&mut client).await;
        self.requests.lock().unwrap().push(request);
        let steps = self.answers.lock().unwrap().pop_front().unwrap_or_default();
        for step in steps {
            match step {
                Step::Send(text) => drop(client.write_all(text.as_bytes()).await),
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Hang => std::future::pending().await,
            }
        }
    }

    fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

async fn body(client: &mut TcpStream) -> Value {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if rest.len() >= length.unwrap_or(0) {
                return serde_json::from_str(rest).unwrap_or_default();
            }
        }
        let mut more = [0; 4096];
        match client.read(&mut more).await {
            Ok(length) if length > 0 => received.extend_from_slice(&more[..length]),
            _ => return Value::Null,
        }
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
    vec![Step::Send(head + body)]
}

fn stream_head() -> Step {
    Step::Send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned())
}

fn event(delta: Value, finish: Value) -> Step {
    Step::Send(format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })))
}

fn done() -> Step {
    Step::Send("data: [DONE]\n\n".to_owned())
}

fn said(text: &str) -> Vec<Step> {
    vec![stream_head(), event(json!({ "content": text }), Value::Null), event(json!({}), json!("stop")), done()]
}

fn refusal(message: &str) -> Vec<Step> {
    answer("400 Bad Request", "", &json!({ "error": { "message": message } }).to_string())
}

fn models(heavy: Value) -> Models {
    let config: ModelsConfig = serde_json::from_value(json!({ "heavy": heavy })).unwrap();
    Models::new(&config, Arc::new(EmptyPartStore), 1024)
}

async fn ask(models: &Models) -> Completion {
    let request = ModelRequest::from_messages("heavy", vec![PromptMessage::user("hello")]);
    models.complete(&request, &ProgressHandle::default(), None).await
}

fn kind(completion: &Completion) -> &str {
    completion.error.as_ref().map_or("", |error| error.kind.as_str())
}

#[tokio::test]
async fn a_key_that_an_endpoint_quotes_becomes_part_of_no_event() {
    let key = "sk-0123456789-0123456789";
    // So that the key stands where the message is cut.
    let padding = "x".repeat(MESSAGE_CHARS - 80);
    let body = json!({ "error": { "message": format!("wrong: {key} {padding}: wrong: {key}") } }).to_string();
    let (_, url) = Endpoint::start([answer("401 Unauthorized", "", &body)]).await;
    let error = ask(&models(json!({ "base_url": url, "api_key": key }))).await.error.unwrap();
    assert_eq!((error.kind.as_str(), error.status, error.transient), ("model_unauthorized", 401, false));
    assert!(error.message.contains("wrong: <") && !error.message.contains("sk-"), "{}", error.message);
    assert!(error.message.chars().count() <= MESSAGE_CHARS);
}

#[tokio::test]
async fn limits_are_those_of_silence_and_not_of_an_answer_that_arrives() {
    let tokens = (0..8).flat_map(|number| {
        [Step::Wait(Duration::from_millis(60)), event(json!({ "content": format!("{number} ") }), Value::Null)]
    });
    let slow = [stream_head()].into_iter().chain(tokens).chain([event(json!({}), json!("stop")), done()]).collect();
    let pings =
        std::iter::repeat_n([Step::Wait(Duration::from_millis(40)), Step::Send(": ping\n\n".to_owned())], 50).flatten();
    let silent = vec![Step::Hang];
    let pinging = [stream_head()].into_iter().chain(pings).collect();
    let stuck = vec![stream_head(), event(json!({ "content": "Half" }), Value::Null), Step::Hang];
    let unended = vec![
        stream_head(),
        event(json!({ "content": "All." }), Value::Null),
        event(json!({}), json!("stop")),
        Step::Hang,
    ];
    let (_, url) = Endpoint::start([slow, silent, pinging, stuck, unended]).await;
    let models = models(json!({ "base_url": url, "first_token_ms": 400, "idle_ms": 300, "timeout_ms": 60_000 }));
    assert_eq!(ask(&models).await.text, "0 1 2 3 4 5 6 7 ", "it takes longer than any silence may");
    for words in ["no answer began within 400 ms", "no answer began within 400 ms", "nothing more arrived for 300 ms"] {
        let error = ask(&models).await.error.unwrap();
        assert_eq!((error.kind.as_str(), error.transient), ("model_timeout", true));
        assert!(error.message.contains(words), "{}", error.message);
    }
    assert_eq!(ask(&models).await.text, "All.", "its connection stays open");
}

#[tokio::test]
async fn a_whole_answer_has_a_limit_too() {
    let pieces = std::iter::repeat_n(
        [event(json!({ "content": "x" }), Value::Null), Step::Wait(Duration::from_millis(30))],
        200,
    )
    .flatten();
    let (_, url) = Endpoint::start([[stream_head()].into_iter().chain(pieces).collect()]).await;
    let error = ask(&models(json!({ "base_url": url, "timeout_ms": 300 }))).await.error.unwrap();
    assert!(error.kind == "model_timeout" && error.message.contains("within 300 ms"), "{error:?}");
}

#[tokio::test]
async fn a_wait_is_told_and_one_that_is_too_long_ends_the_tries() {
    let busy = |wait: &str| answer("429 Too Many Requests", &format!("retry-after: {wait}\r\n"), "{}");
    let dated = "Date: Fri, 27 Nov 2026 18:00:00 GMT\r\nRetry-After: Fri, 27 Nov 2026 18:00:07 GMT\r\n";
    let (_, url) = Endpoint::start([busy("4"), busy("3600"), answer("503 Unavailable", dated, "<html>x</html>")]).await;
    let models = models(json!({ "base_url": url }));
    for (kind, wait, transient) in [
        ("model_rate_limited", 4_000, true),
        ("model_rate_limited", 3_600_000, false),
        ("model_overloaded", 7_000, true),
    ] {
        let error = ask(&models).await.error.unwrap();
        assert_eq!((error.kind.as_str(), error.retry_after_ms, error.transient), (kind, wait, transient));
    }
}

#[tokio::test]
async fn fallbacks_are_asked_whatever_the_error_is_and_the_most_hopeful_one_is_told() {
    let fails = || answer("401 Unauthorized", "", r#"{"error":"no key"}"#);
    let busy = || answer("503 Unavailable", "", "");
    let long = || refusal("This model's maximum context length is 8192 tokens.");
    let broken = || {
        vec![
            stream_head(),
            event(json!({ "content": "Half an ans" }), Value::Null),
            Step::Send("data: {\"error\":\"gone\"}\n\n".into()),
        ]
    };
    for (first, second, expected) in [
        (fails(), said("All."), ""),
        (long(), said("All."), ""),
        (broken(), said("All."), ""),
        (answer("404 Not Found", "", ""), said("All."), ""),
        (fails(), busy(), "model_overloaded"),
        (busy(), fails(), "model_overloaded"),
        (fails(), long(), "context_too_long"),
        (fails(), answer("404 Not Found", "", ""), "model_unauthorized"),
    ] {
        let ((_, url), (_, other)) = (Endpoint::start([first]).await, Endpoint::start([second]).await);
        let completion = ask(&models(
            json!({ "base_url": url, "model": "first", "fallbacks": [{ "base_url": other, "model": "second" }] }),
        ))
        .await;
        assert_eq!(kind(&completion), expected);
        if expected.is_empty() {
            assert_eq!((completion.text.as_str(), completion.model.as_str()), ("All.", "second"));
        }
    }
}

#[tokio::test]
async fn what_an_endpoint_refuses_is_left_out_at_once_and_remembered() {
    let answers = [
        refusal("Unknown parameter: 'stream_options'."),
        refusal("Unsupported parameter: max_completion_tokens is not supported"),
        refusal("Invalid schema for function 'odd__list': array schema missing items."),
        said("All."),
        said("Again."),
    ];
    let (endpoint, url) = Endpoint::start(answers).await;
    let models = models(json!({ "base_url": url, "max_output_tokens": 9 }));
    let tool = |name: &str| Tool {
        name: name.into(),
        description: "".into(),
        schema: r#"{"type":"object"}"#.into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    };
    let tools = vec![tool("odd.list"), tool("tools.now")];
    let request = ModelRequest { tools, ..ModelRequest::from_messages("heavy", vec![PromptMessage::user("hello")]) };
    assert_eq!(models.complete(&request, &ProgressHandle::default(), None).await.text, "All.");
    assert_eq!(models.complete(&request, &ProgressHandle::default(), None).await.text, "Again.");
    let requests = endpoint.requests();
    assert!(requests[0].get("stream_options").is_some() && requests[1].get("stream_options").is_none());
    for sent in &requests[3..] {
        let names: Vec<_> =
            sent["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].clone()).collect();
        assert_eq!(
            (names, &sent["max_tokens"], sent.get("max_completion_tokens")),
            (vec![json!("tools__now")], &json!(9), None)
        );
    }
    assert_eq!(requests.len(), 5);
}

#[tokio::test]
async fn an_answer_that_ends_without_a_mark_is_asked_for_once_more() {
    let unmarked = || vec![stream_head(), event(json!({ "content": "All." }), Value::Null)];
    let (_, url) = Endpoint::start([unmarked(), unmarked(), said("Marked."), unmarked()]).await;
    let models = models(json!({ "base_url": url }));
    assert_eq!(kind(&ask(&models).await), "malformed_answer");
    assert_eq!(ask(&models).await.text, "All.");
    assert_eq!(ask(&models).await.text, "Marked.");
    assert_eq!(kind(&ask(&models).await), "malformed_answer", "it marks its ends after all");
}

#[tokio::test]
async fn a_request_that_is_too_large_for_a_minute_is_waited_for_once() {
    let words = r#"{"error":{"message":"too many tokens per min (TPM): Limit 30000, Requested 41000"}}"#;
    let busy = || answer("429 Too Many Requests", "", words);
    let (_, url) = Endpoint::start([busy(), busy()]).await;
    let models = models(json!({ "base_url": url }));
    assert_eq!(kind(&ask(&models).await), "model_rate_limited");
    let error = ask(&models).await.error.unwrap();
    assert_eq!((error.kind.as_str(), error.context_tokens), ("context_too_long", 30_000));
}

#[tokio::test]
async fn an_endpoint_that_is_away_or_breaks_off_is_told_apart_from_one_that_refuses() {
    let (_, url) = Endpoint::start([
        Vec::new(),
        vec![Step::Send(
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
                .into(),
        )],
    ])
    .await;
    let models_of = |url: &str| models(json!({ "base_url": url }));
    let answered = models_of(&url);
    assert_eq!(kind(&ask(&answered).await), "model_unavailable");
    let error = ask(&answered).await.error.unwrap();
    assert!(error.kind == "malformed_answer" && error.message.contains("broke off"), "{error:?}");
    let nobody = { TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap() };
    assert_eq!(kind(&ask(&models_of(&format!("http://{nobody}/v1"))).await), "model_unavailable");
    let moved = answer("302 Found", "", "");
    let (_, url) = Endpoint::start([moved]).await;
    assert_eq!(kind(&ask(&models_of(&url)).await), "model_refused");
    assert_eq!(kind(&ask(&models_of("http://[")).await), "model_refused");
}

#[tokio::test]
async fn a_whole_answer_may_come_where_a_stream_was_asked_for_and_the_other_way_round() {
    let whole = json!({ "choices": [{ "message": { "content": "All." }, "finish_reason": "stop" }] }).to_string();
    for stream in [true, false] {
        let (endpoint, url) = Endpoint::start([answer("200 OK", "", &whole), said("All.")]).await;
        let models = models(json!({ "base_url": url, "stream": stream }));
        assert_eq!((ask(&models).await.text, ask(&models).await.text), ("All.".to_owned(), "All.".to_owned()));
        assert_eq!(endpoint.requests()[0]["stream"], stream);
    }
}
