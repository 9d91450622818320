//! Tests the simulator's answers with real clients: async-openai, which agents use, and plain HTTP for what it hides.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::chat::{
    ChatCompletionMessageToolCallChunk, ChatCompletionMessageToolCalls, CreateChatCompletionRequest,
    CreateChatCompletionStreamResponse,
};
use futures::StreamExt;
use kairo_model_sim::{Config, Scenario, bind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SCENARIO: &str = "
models: [one, two]
defaults: { chunk_chars: 5 }
rules:
  - name: busy-once
    when: { user_contains: busy }
    times: 1
    reply: { error: { status: 429, message: slow down, retry_after: 0 } }
  - { name: busy-no-more, when: { user_contains: busy }, reply: at last }
  - name: refused
    when: { user_contains: refuse }
    reply: { error: { status: 400, message: 'no {{ user }}', code: bad } }
  - name: parallel
    when: { user_contains: time, tools_offered: tools.now }
    turn:
      - reasoning: two at once
        tool_calls:
          - { tool: tools.now, arguments: { time_zone: Europe/Berlin } }
          - { tool: tools.now, arguments: {} }
      - '{{ results[0].value.now }} and {{ results[1].value.now }} from {{ last_tool }}'
  - { name: broken, when: { user_contains: broken }, reply: { text: a broken answer, fault: invalid_json } }
  - { name: truncated, when: { user_contains: truncated }, reply: { text: a truncated answer, fault: truncate } }
  - { name: dropped, when: { user_contains: dropped }, reply: { text: a dropped answer, fault: drop } }
  - { name: stalled, when: { user_contains: stalled }, reply: { text: a stalled answer, fault: stall } }
  - { name: hanging, when: { user_contains: hang }, reply: { fault: hang } }
  - { name: slow, when: { user_contains: slow }, reply: { text: a slow answer, chunk_delay_ms: 1 } }
  - { name: echo, reply: 'You said {{ user }}', }
";

/// A simulator that plays [`SCENARIO`] until it is stopped.
struct Simulator {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    stopped: JoinHandle<std::io::Result<()>>,
}

impl Simulator {
    async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    async fn start_with(settings: impl FnOnce(&mut Config)) -> Self {
        let scenario = Scenario::parse(SCENARIO).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let mut config = Config::loopback(scenario);
        settings(&mut config);
        let server = bind(config).await.expect("it listens");
        let address = server.address();
        let (stop, stopping) = oneshot::channel();
        let stopped = tokio::spawn(server.run(async move { drop(stopping.await) }));
        Self { address, stop, stopped }
    }

    fn client(&self) -> Client<OpenAIConfig> {
        Client::with_config(OpenAIConfig::new().with_api_key("none").with_api_base(self.url("/v1")))
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn post(&self, body: &Value) -> reqwest::Response {
        let request = reqwest::Client::new().post(self.url("/v1/chat/completions")).json(body);
        request.send().await.expect("it answers")
    }

    async fn get(&self, path: &str) -> Value {
        reqwest::get(self.url(path)).await.expect("it answers").json().await.expect("it is JSON")
    }
}

fn body(user: &str) -> Value {
    json!({
        "model": "one",
        "messages": [{ "role": "system", "content": "Be brief." }, { "role": "user", "content": user }],
        "tools": [{ "type": "function", "function": { "name": "tools__now", "parameters": { "type": "object" } } }],
    })
}

fn request(body: Value) -> CreateChatCompletionRequest {
    serde_json::from_value(body).expect("it is a request")
}

fn with_results(mut body: Value, calls: &[(String, String)]) -> Value {
    let messages = body["messages"].as_array_mut().expect("a list");
    let made = calls.iter().map(|(id, arguments)| {
        json!({ "id": id, "type": "function", "function": { "name": "tools__now", "arguments": arguments } })
    });
    messages.push(json!({ "role": "assistant", "tool_calls": made.collect::<Vec<_>>() }));
    for (id, arguments) in calls {
        let result = json!({ "now": format!("noon {arguments}") }).to_string();
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
    }
    body
}

async fn streamed(
    simulator: &Simulator,
    mut body: Value,
) -> Vec<Result<CreateChatCompletionStreamResponse, OpenAIError>> {
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let stream = simulator.client().chat().create_stream(request(body)).await.expect("it streams");
    stream.collect().await
}

fn text(chunks: &[Result<CreateChatCompletionStreamResponse, OpenAIError>]) -> String {
    let choices = chunks.iter().flatten().flat_map(|chunk| &chunk.choices);
    choices.filter_map(|choice| choice.delta.content.as_deref()).collect()
}

#[tokio::test]
async fn a_whole_answer_is_understood() {
    let simulator = Simulator::start().await;
    let answer = simulator.client().chat().create(request(body("hello"))).await.expect("an answer");
    assert_eq!(answer.choices[0].message.content.as_deref(), Some("You said hello"));
    assert_eq!(answer.model, "one");
    assert!(answer.usage.is_some_and(|usage| usage.prompt_tokens > 0 && usage.completion_tokens > 0));
}

#[tokio::test]
async fn a_streamed_answer_is_understood_with_and_without_pauses() {
    let simulator = Simulator::start().await;
    for (user, said) in [("hello 世界", "You said hello 世界"), ("slow", "a slow answer")] {
        let chunks = streamed(&simulator, body(user)).await;
        assert_eq!(text(&chunks), said);
        let last = chunks.last().and_then(|chunk| chunk.as_ref().ok()).expect("a last chunk");
        assert!(last.choices.is_empty() && last.usage.is_some(), "{last:?}");
    }
}

#[tokio::test]
async fn parallel_tool_calls_and_their_results_go_round() {
    let simulator = Simulator::start().await;
    let asked = body("what time is it");
    let answer = simulator.client().chat().create(request(asked.clone())).await.expect("an answer");
    let calls: Vec<_> = answer.choices[0]
        .message
        .tool_calls
        .iter()
        .flatten()
        .map(|call| match call {
            ChatCompletionMessageToolCalls::Function(call) => {
                assert_eq!(call.function.name, "tools__now");
                (call.id.clone(), call.function.arguments.clone())
            }
            ChatCompletionMessageToolCalls::Custom(call) => panic!("a function was expected, not {call:?}"),
        })
        .collect();
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0].0, calls[1].0);
    let next = with_results(asked, &calls);
    let answer = simulator.client().chat().create(request(next)).await.expect("an answer");
    assert_eq!(
        answer.choices[0].message.content.as_deref(),
        Some(r#"noon {"time_zone":"Europe/Berlin"} and noon {} from tools.now"#),
    );
}

#[tokio::test]
async fn streamed_tool_calls_are_put_together_by_their_index() {
    let simulator = Simulator::start().await;
    let chunks = streamed(&simulator, body("what time is it")).await;
    let deltas: Vec<&ChatCompletionMessageToolCallChunk> = chunks
        .iter()
        .flatten()
        .flat_map(|chunk| &chunk.choices)
        .filter_map(|choice| choice.delta.tool_calls.as_ref())
        .flatten()
        .collect();
    for (index, whole) in [(0, r#"{"time_zone":"Europe/Berlin"}"#), (1, "{}")] {
        let of_call: Vec<_> = deltas.iter().filter(|delta| delta.index == index).collect();
        let functions = of_call.iter().filter_map(|delta| delta.function.as_ref());
        let arguments: String = functions.clone().filter_map(|function| function.arguments.as_deref()).collect();
        assert_eq!(arguments, whole);
        assert_eq!(of_call.iter().filter(|delta| delta.id.is_some()).count(), 1);
        assert_eq!(functions.filter(|function| function.name.is_some()).count(), 1);
    }
}

#[tokio::test]
async fn errors_are_understood_and_a_busy_endpoint_is_asked_again() {
    let simulator = Simulator::start().await;
    let refused = simulator.client().chat().create(request(body("refuse"))).await;
    let Err(OpenAIError::ApiError(error)) = refused else { panic!("an API error was expected, not {refused:?}") };
    assert_eq!(error.status_code, 400);
    assert_eq!((error.api_error.message.as_str(), error.api_error.code.as_deref()), ("no refuse", Some("bad")));

    let first = simulator.post(&body("busy")).await;
    assert_eq!((first.status().as_u16(), &first.headers()["retry-after"]), (429, &"0".parse().expect("a value")));
    assert_eq!(simulator.post(&body("busy")).await.status(), 200);
    // Another conversation, so the rule answers once more, and the client tries again by itself.
    let answer = simulator.client().chat().create(request(body("busy?"))).await.expect("an answer");
    assert_eq!(answer.choices[0].message.content.as_deref(), Some("at last"));
}

#[tokio::test]
async fn faults_reach_a_client_that_streams() {
    let simulator = Simulator::start().await;
    let broken = streamed(&simulator, body("broken")).await;
    assert!(broken.iter().any(Result::is_err), "{broken:?}");
    let dropped = streamed(&simulator, body("dropped")).await;
    assert!(dropped.iter().any(Result::is_err) && dropped.iter().any(Result::is_ok), "{dropped:?}");
    let truncated = streamed(&simulator, body("truncated")).await;
    let finished = |chunk: &CreateChatCompletionStreamResponse| {
        chunk.choices.first().is_none_or(|choice| choice.finish_reason.is_some())
    };
    assert!(!truncated.iter().flatten().any(finished), "{truncated:?}");
    assert!("a truncated answer".starts_with(&text(&truncated)), "{truncated:?}");
}

#[tokio::test]
async fn faults_reach_a_client_that_does_not_stream() {
    let simulator = Simulator::start().await;
    for user in ["broken", "truncated", "dropped"] {
        let answer = simulator.post(&body(user)).await;
        assert_eq!(answer.status(), 200);
        let read = answer.bytes().await;
        assert_eq!(read.is_err(), user == "dropped", "{user}: {read:?}");
        assert!(read.is_err() || read.is_ok_and(|body| serde_json::from_slice::<Value>(&body).is_err()), "{user}");
    }
}

#[tokio::test]
async fn it_stops_though_requests_hang_and_stall() {
    let simulator = Simulator::start().await;
    let mut stalling = body("stalled");
    stalling["stream"] = json!(true);
    let mut stalled = simulator.post(&stalling).await;
    assert!(stalled.chunk().await.expect("a first half").is_some());
    let mut hanging = TcpStream::connect(simulator.address).await.expect("it accepts");
    let request = body("hang").to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        request.len(),
    );
    hanging.write_all(head.as_bytes()).await.expect("it reads");
    // Having been asked for the body, the request is known to be under way.
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    hanging.read_exact(&mut go_on).await.expect("it goes on");
    hanging.write_all(request.as_bytes()).await.expect("it reads");
    simulator.stop.send(()).expect("it runs");
    simulator.stopped.await.expect("it ends").expect("without an error");
    let mut answer = String::new();
    hanging.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let rest = async {
        while stalled.chunk().await?.is_some() {}
        Ok::<(), reqwest::Error>(())
    };
    assert!(rest.await.is_err(), "the rest of a stalled answer never comes");
}

#[tokio::test]
async fn what_clients_sent_and_who_answered_can_be_seen() {
    let simulator = Simulator::start().await;
    let asked = body("refuse");
    simulator.post(&asked).await;
    simulator.post(&json!({ "model": "one" })).await;
    let seen = simulator.get("/v1/requests").await;
    assert_eq!(seen["total"], 2);
    assert_eq!(seen["requests"][0], json!({ "sequence": 1, "rule": "refused", "body": asked }));
    assert_eq!(seen["requests"][1]["rule"], Value::Null);
    assert_eq!(simulator.get("/v1/requests?limit=1").await["requests"][0]["sequence"], 2);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_told_so_in_the_api_s_own_way() {
    let simulator = Simulator::start().await;
    let unreadable = simulator.post(&json!({ "model": "one" })).await;
    assert_eq!(unreadable.status(), 400);
    let error: Value = unreadable.json().await.expect("it is JSON");
    assert!(
        error["error"]["message"].as_str().is_some_and(|text| text.contains("missing field `messages`")),
        "{error}"
    );
    let lost = reqwest::get(simulator.url("/v2/nothing")).await.expect("it answers");
    assert_eq!(lost.status(), 404);
    let models = simulator.get("/v1/models").await;
    assert_eq!(models["data"][1]["id"], "two");
}

#[tokio::test]
async fn an_answer_waits_for_the_delay_before_its_first_byte_streamed_or_not() {
    let simulator = Simulator::start_with(|config| config.delay = "150".parse().expect("a delay")).await;
    for stream in [false, true] {
        let mut asked = body("hello");
        asked["stream"] = json!(stream);
        let begun = Instant::now();
        // Its head has come; the whole of it is not waited for.
        let answer = simulator.post(&asked).await;
        assert!(begun.elapsed() >= Duration::from_millis(150), "{:?}", begun.elapsed());
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test]
async fn answers_say_the_number_of_their_request_if_asked_to() {
    let simulator = Simulator::start_with(|config| config.number_answers = true).await;
    for number in 1..=2 {
        let answer = simulator.client().chat().create(request(body("hello"))).await.expect("an answer");
        assert_eq!(answer.model, format!("one#{number}"));
    }
    let chunks = streamed(&simulator, body("hello")).await;
    assert!(chunks.iter().flatten().all(|chunk| chunk.model == "one#3"), "{chunks:?}");
}

#[tokio::test]
async fn requests_are_counted_by_caller_and_text_however_they_end() {
    let simulator = Simulator::start().await;
    let at_once = (0..20).map(|_| async {
        let url = simulator.url("/as/replica-1/v1/chat/completions");
        reqwest::Client::new().post(url).json(&body("hello")).send().await.expect("it answers").status()
    });
    assert!(futures::future::join_all(at_once).await.iter().all(|status| status.is_success()));
    let mut slow = body("slow");
    slow["stream"] = json!(true);
    assert!(simulator.post(&slow).await.bytes().await.is_ok());
    simulator.post(&body("refuse")).await;
    let counts = simulator.get("/v1/counts?texts=true").await;
    let answered = |requests: u64| json!({ "requests": requests, "open": 0, "answered": requests, "abandoned": 0 });
    assert_eq!(counts["callers"], json!({ "replica-1": answered(20) }));
    assert_eq!(counts["texts"], json!({ "hello": 20, "slow": 1, "refuse": 1 }));
    assert_eq!((&counts["requests"], &counts["answered"]), (&json!(22), &json!(22)));
    assert!(simulator.get("/v1/counts").await["texts"].is_null());
}

#[tokio::test]
async fn a_request_whose_client_leaves_was_made_all_the_same() {
    let simulator = Simulator::start().await;
    let counted = async |open: u64, abandoned: u64| loop {
        let counts = simulator.get("/v1/counts").await;
        if (&counts["open"], &counts["abandoned"]) == (&json!(open), &json!(abandoned)) {
            break counts["requests"].clone();
        }
        tokio::task::yield_now().await;
    };
    let counted = async |open, abandoned| {
        let counting = counted(open, abandoned);
        tokio::time::timeout(Duration::from_secs(10), counting).await.expect("it is counted within 10 s")
    };
    let hanging =
        tokio::spawn(reqwest::Client::new().post(simulator.url("/v1/chat/completions")).json(&body("hang")).send());
    assert_eq!(counted(1, 0).await, 1);
    hanging.abort();
    assert_eq!(counted(0, 1).await, 1);
    let mut stalling = body("stalled");
    stalling["stream"] = json!(true);
    let mut stalled = simulator.post(&stalling).await;
    assert!(stalled.chunk().await.expect("a first half").is_some());
    assert_eq!(counted(1, 1).await, 2);
    drop(stalled);
    assert_eq!(counted(0, 2).await, 2);
}
