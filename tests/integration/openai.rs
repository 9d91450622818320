//! Chat clients: the client library of OpenAI talks to agents as if they were models.

use std::process::Stdio;

use base64::{Engine, engine::general_purpose::STANDARD};
use kairo_core::{event_json::EventJson, media};
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use uuid::Uuid;

use crate::world::{DEADLINE, Wanted, World, scenario::USUAL};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openai/client.py");

/// "look it up" has the agent say something, call a tool and take its time to answer; "in the form" is answered in JSON.
const CHATTY: &str = r#"
rules:
  - name: look
    when: { user_contains: "look it up" }
    turn:
      - { text: "Let me look that up.", tool_calls: [{ tool: tools.now, arguments: {} }], chunk_chars: 4 }
      - { text: "It is late, and it took me a while to say so.", chunk_chars: 4, chunk_delay_ms: 50 }
  - name: form
    when: { user_contains: "in the form" }
    reply: '{"event": "agent.reply", "params": {"message": "Words in a form."}}'
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

/// A request that is being answered.
struct Client {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    /// Sends it; none on a machine where the client is not installed.
    async fn ask(world: &World, action: &str, arguments: &Value) -> Option<Self> {
        let Some(python) = std::env::var_os("KAIRO_OPENAI_PYTHON") else {
            eprintln!("skipped: the client of OpenAI is not installed, since there is no Python 3.10 here");
            return None;
        };
        let running =
            Command::new(python).arg(CLIENT).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut process = running.unwrap();
        let request = json!({ "base_url": world.url("/v1"), "do": action, "arguments": arguments });
        let mut input = process.stdin.take().unwrap();
        input.write_all(request.to_string().as_bytes()).await.unwrap();
        drop(input);
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Some(Self { process, lines })
    }

    async fn line(&mut self) -> Value {
        let line = timeout(DEADLINE, self.lines.next_line()).await.expect("the client never went on");
        serde_json::from_str(&line.unwrap().expect("the client broke off")).unwrap()
    }

    /// The answer, after what was streamed.
    async fn answer(mut self) -> Value {
        loop {
            let line = self.line().await;
            if line.get("delta").is_none() {
                self.process.wait().await.unwrap();
                return line;
            }
        }
    }
}

fn chat(agent: &str, history: &[&str]) -> Value {
    let message = |(at, text): (usize, &&str)| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        json!({ "role": role, "content": text })
    };
    json!({ "model": agent, "messages": history.iter().enumerate().map(message).collect::<Vec<_>>() })
}

/// Returns the request as the library sends it again by itself.
fn again(request: &Value) -> Value {
    let mut request = request.clone();
    request["extra_headers"]["x-stainless-retry-count"] = json!("1");
    request
}

fn content(answer: &Value) -> String {
    let pieces = answer["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    pieces.iter().map(|piece| piece.as_str().unwrap()).collect()
}

fn replied(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Returns the agent's texts in the log in reply to the message that an answer names.
async fn said(world: &World, id: &str) -> Vec<String> {
    let correlation: Uuid = id.strip_prefix("chatcmpl-").unwrap().parse().unwrap();
    let is_said = |event: &&EventJson| event.correlation_id == correlation && event.payload["type"] == "say";
    world.log.now(&world.bus).await.iter().filter(is_said).map(|event| event.text().to_owned()).collect()
}

async fn messages(world: &World) -> usize {
    let all = world.log.now(&world.bus).await;
    all.iter().filter(|event| event.type_name == v1::UserMessage::TYPE).count()
}

#[tokio::test]
async fn every_agent_is_a_model_and_answers() {
    let world = Wanted::new(USUAL).start().await;
    world.define("coach").await;
    world.settled().await;
    let Some(models) = Client::ask(&world, "models", &json!({})).await else { return };
    assert_eq!(models.answer().await, json!({ "models": ["coach"] }));
    let model = Client::ask(&world, "model", &json!({ "model": "coach" })).await.unwrap().answer().await;
    assert_eq!((&model["id"], &model["object"]), (&json!("coach"), &json!("model")));

    let first = Client::ask(&world, "chat", &chat("coach", &["the time please"])).await.unwrap().answer().await;
    assert!(replied(&first).starts_with("It is 2"), "{first}");
    assert_eq!(first["choices"][0]["finish_reason"], "stop");
    assert_eq!(said(&world, first["id"].as_str().unwrap()).await, [replied(&first)]);
    let total = first["usage"]["total_tokens"].as_u64().unwrap();
    let parts = ["prompt_tokens", "completion_tokens"].map(|part| first["usage"][part].as_u64().unwrap());
    assert!(parts.iter().all(|part| *part > 0) && total == parts[0] + parts[1], "{first}");

    // The same request sent again is the same message; what is said next is in the same thread, another chat is not.
    let same = again(&chat("coach", &["the time please"]));
    let same = Client::ask(&world, "chat", &same).await.unwrap().answer().await;
    assert_eq!((&same["id"], replied(&same), messages(&world).await), (&first["id"], replied(&first), 1));
    assert_eq!(same["usage"], first["usage"]);
    let next = chat("coach", &["the time please", replied(&first), "thanks"]);
    let next = Client::ask(&world, "chat", &next).await.unwrap().answer().await;
    assert_eq!((replied(&next), &next["thread"]), ("You said: thanks", &first["thread"]));
    let other = Client::ask(&world, "chat", &chat("coach", &["thanks"])).await.unwrap().answer().await;
    assert_eq!(replied(&other), "You said: thanks");
    assert_ne!(other["thread"], first["thread"]);
    world.end().await;
}

#[tokio::test]
async fn users_and_threads_can_be_named() {
    let world = Wanted::new(USUAL).start().await;
    world.define("coach").await;
    let mut request = chat("coach", &["hello"]);
    request["user"] = json!("Ann@Example.com");
    let Some(client) = Client::ask(&world, "chat", &request).await else { return };
    client.answer().await;
    request["extra_headers"] = json!({ "Kairo-User": "ann", "Kairo-Thread": "kitchen", "Idempotency-Key": "k 1" });
    let bad = Client::ask(&world, "chat", &request).await.unwrap().answer().await;
    assert_eq!((&bad["status"], &bad["param"]), (&json!(400), &json!("idempotency-key")));
    for key in ["k1", "k2", "k1"] {
        request["extra_headers"]["Idempotency-Key"] = json!(key);
        let answer = Client::ask(&world, "chat", &request).await.unwrap().answer().await;
        assert_eq!((replied(&answer), &answer["thread"]), ("You said: hello", &json!("kitchen")));
    }
    let all = world.log.now(&world.bus).await;
    let said = all.iter().filter(|event| event.type_name == v1::UserMessage::TYPE);
    let said: Vec<_> =
        said.map(|event| (event.payload["user"].as_str().unwrap(), event.thread_id.as_deref())).collect();
    assert!(said[0].0.starts_with("ann-example-com-"), "{said:?}");
    assert_eq!(said[1..], [("ann", Some("kitchen")), ("ann", Some("kitchen"))]);
    world.end().await;
}

#[tokio::test]
async fn what_cannot_be_answered_is_an_error_of_the_api() {
    let limits = |wanted: Wanted| wanted.env(Service::Gateway, "KAIRO_GATEWAY__OPENAI_WAIT_MS", "100");
    let mut world = limits(Wanted::new(USUAL)).start().await;
    world.define("coach").await;
    let Some(client) = Client::ask(&world, "chat", &chat("nobody", &["hello"])).await else { return };
    let answer = client.answer().await;
    assert_eq!((&answer["status"], &answer["code"]), (&json!(404), &json!("model_not_found")), "{answer}");
    assert_eq!(messages(&world).await, 0);
    let model = Client::ask(&world, "model", &json!({ "model": "no/body" })).await.unwrap().answer().await;
    assert_eq!((&model["status"], &model["code"]), (&json!(404), &json!("model_not_found")), "{model}");

    let mut tools = chat("coach", &["hello"]);
    tools["tools"] = json!([{ "type": "function", "function": { "name": "a b", "parameters": {} } }]);
    let mut image = chat("coach", &[]);
    let part = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } });
    image["messages"] = json!([{ "role": "user", "content": [part] }]);
    for (request, param) in [(tools, "tools[0].function.name"), (image, "messages[0].content[0].image_url.url")] {
        let answer = Client::ask(&world, "chat", &request).await.unwrap().answer().await;
        assert_eq!((&answer["status"], &answer["param"]), (&json!(400), &json!(param)), "{answer}");
        assert_eq!(answer["type"], "invalid_request_error");
    }
    for action in ["responses", "embeddings"] {
        let asked = json!({ "model": "coach", "input": "hello" });
        let answer = Client::ask(&world, action, &asked).await.unwrap().answer().await;
        assert_eq!((&answer["status"], &answer["code"]), (&json!(404), &json!("unknown_url")), "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("served here"), "{answer}");
    }
    let (status, answer) = world.get("/v1/chat/completions").await;
    assert_eq!((status, &answer["error"]["code"]), (405, &json!("method_not_allowed")), "{answer}");

    // Nobody is there to answer.
    world.stack.freeze(Service::AgentRuntime, 0).unwrap();
    let late = Client::ask(&world, "chat", &chat("coach", &["hello"])).await.unwrap().answer().await;
    assert_eq!((&late["status"], &late["code"]), (&json!(504), &json!("timeout")), "{late}");
    let late = Client::ask(&world, "stream", &chat("coach", &["hello"])).await.unwrap().answer().await;
    assert_eq!(late["code"], "timeout", "{late}");
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn what_is_streamed_is_what_is_committed() {
    let world = Wanted::new(CHATTY).start().await;
    world.define("coach").await;
    for (words, paragraphs) in [("look it up", 2), ("in the form", 1), ("hello", 1)] {
        let mut request = chat("coach", &[words]);
        request["stream_options"] = json!({ "include_usage": true });
        let Some(client) = Client::ask(&world, "stream", &request).await else { return };
        let streamed = client.answer().await;
        let ids = streamed["ids"].as_array().unwrap();
        assert_eq!((ids.len(), &streamed["roles"], &streamed["finish"]), (1, &json!(["assistant"]), &json!("stop")));
        let said = said(&world, ids[0].as_str().unwrap()).await;
        assert_eq!((said.len(), content(&streamed)), (paragraphs, said.join("\n\n")));
        if words == "look it up" {
            assert!(streamed["content"].as_array().unwrap().len() > 4, "it was not shown while it grew: {streamed}");
        }
        assert!(streamed["usage"]["completion_tokens"].as_u64().unwrap() > 0, "{streamed}");

        let whole = Client::ask(&world, "chat", &again(&chat("coach", &[words]))).await.unwrap().answer().await;
        assert_eq!((replied(&whole), &whole["id"]), (content(&streamed).as_str(), &ids[0]));
        assert_eq!(whole["usage"]["total_tokens"], streamed["usage"]["total_tokens"]);
    }
    assert_eq!(messages(&world).await, 3);
    world.end().await;
}

#[tokio::test]
async fn a_question_is_an_answer_and_the_same_message_again_gets_what_came_of_it() {
    let wanted = Wanted::new(USUAL).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.now"]"#);
    let world = wanted.start().await;
    world.define("coach").await;
    let request = chat("coach", &["the time please"]);
    let Some(client) = Client::ask(&world, "stream", &request).await else { return };
    let asked = content(&client.answer().await);
    let id = asked.split("kairo approve ").nth(1).and_then(|rest| rest.split(' ').next()).expect(&asked).to_owned();
    let still = Client::ask(&world, "chat", &request).await.unwrap().answer().await;
    assert_eq!(replied(&still), asked);
    let verdict = json!({ "user": "openai", "agent": "coach", "action_id": id, "verdict": "approved" });
    assert_eq!(world.post("/v1/approvals", &verdict).await.0, 202);
    world.log.wait(|event| event.type_name == v1::AgentApproval::TYPE).await;
    let answer = Client::ask(&world, "chat", &request).await.unwrap().answer().await;
    assert!(replied(&answer).starts_with("It is 2"), "{answer}");
    assert_eq!(messages(&world).await, 1);
    world.end().await;
}

#[tokio::test]
async fn an_answer_outlives_the_replica_that_was_writing_it() {
    let mut world = Wanted::new(CHATTY).start().await;
    world.define("coach").await;
    let Some(mut client) = Client::ask(&world, "stream", &chat("coach", &["look it up"])).await else { return };
    let mut streamed = String::new();
    while !streamed.contains("It is") {
        streamed.push_str(client.line().await["delta"].as_str().unwrap());
    }
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    let whole = Client::ask(&world, "chat", &again(&chat("coach", &["look it up"]))).await.unwrap();
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    let (streamed, whole) = (client.answer().await, whole.answer().await);
    let said = said(&world, whole["id"].as_str().unwrap()).await;
    assert_eq!((content(&streamed), replied(&whole)), (said.join("\n\n"), said.join("\n\n").as_str()));
    assert_eq!(messages(&world).await, 1);
    world.end().await;
}

/// Says what it was shown.
const SEEING: &str = r#"
rules:
  - name: seeing
    when: { has_image: true }
    reply: "{% for part in parts %}{{ part.media_type }} {{ part.size }} {{ part.sha256 }};{% endfor %}"
  - { name: echo, when: {}, reply: "You said: {{ user }}" }
"#;

#[tokio::test]
async fn a_chat_clients_image_is_stored_and_shown_to_the_model() {
    let world = Wanted::new(SEEING).start().await;
    world.define("eye").await;
    let bytes = b"\x89PNG\r\n\x1a\nnot much of one";
    let digest = media::digest(bytes);
    let asked = |url: String| {
        let content = json!([
            { "type": "text", "text": "What is this?" },
            { "type": "image_url", "image_url": { "url": url } },
        ]);
        json!({ "model": "eye", "messages": [{ "role": "user", "content": content }] })
    };
    let question = asked(format!("data:image/png;base64,{}", STANDARD.encode(bytes)));
    let Some(client) = Client::ask(&world, "chat", &question).await else { return };
    let first = client.answer().await;
    let shown = format!("image/png {} {digest};", bytes.len());
    assert_eq!(replied(&first), shown);
    assert_eq!(world.get(&format!("/v1/objects/{digest}")).await.0, 200);
    // The same request sent again is the same message, another image is another one.
    let same = Client::ask(&world, "chat", &again(&question)).await.unwrap().answer().await;
    assert_eq!((replied(&same), messages(&world).await), (shown.as_str(), 1));
    let other = b"\x89PNG\r\n\x1a\nsomething else";
    let other = asked(format!("data:image/png;base64,{}", STANDARD.encode(other)));
    let other = Client::ask(&world, "chat", &other).await.unwrap().answer().await;
    assert_eq!(messages(&world).await, 2, "{other}");
    // The chat goes on with its history, the image in it.
    let mut history = question.clone();
    let more = [json!({ "role": "assistant", "content": shown }), json!({ "role": "user", "content": "Sure?" })];
    history["messages"].as_array_mut().unwrap().extend(more);
    let sure = Client::ask(&world, "chat", &history).await.unwrap().answer().await;
    assert_eq!((replied(&sure), &sure["thread"]), ("You said: Sure?", &first["thread"]));
    // Nothing is fetched.
    let elsewhere = asked(world.url("/v1/objects/x"));
    let refused = Client::ask(&world, "chat", &elsewhere).await.unwrap().answer().await;
    assert_eq!((&refused["status"], &refused["param"]), (&json!(400), &json!("messages[0].content[1].image_url.url")));
    world.end().await;
}
