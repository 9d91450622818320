//! A real model server: llama.cpp's, with a small model. What the simulator is asked to do, an endpoint does of itself here:
//! it renders a chat template, parses calls out of what the model writes, counts tokens, refuses what is too long in its own
//! words, and dies in the middle.
//!
//! The model has 135 million parameters: it repeats what it is told to, and no more than that is asked of it.

use std::path::Path;

use kairo_local::{ChildProcess, ProcessSpec, Service, ThirdPartyServer};
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{DEADLINE, Sent, Wanted, World};

const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/llama/qwen.jinja");
/// The server's context size, in tokens.
const CONTEXT: &str = "2048";
const AGENT: &str = "small";
/// A call in the form in which the template tells the model to write one.
const CALL: &str =
    "<tool_call>\n{\"name\": \"tools__now\", \"arguments\": {\"time_zone\": \"Asia/Tokyo\"}}\n</tool_call>";

/// A model server; none on a machine where it is not installed.
async fn server() -> Option<ThirdPartyServer> {
    let Some(program) = std::env::var_os("KAIRO_LLAMA_SERVER") else {
        eprintln!("skipped: llama.cpp is not installed; scripts/setup --tests says why");
        return None;
    };
    Some(start(Path::new(&program)).await)
}

async fn start(program: &Path) -> ThirdPartyServer {
    let arguments = |port: u16, _: &Path| vec![port.to_string().into(), CONTEXT.into(), TEMPLATE.into()];
    ThirdPartyServer::start(program, is_ready, arguments).await.unwrap()
}

/// Starts the server again on its port, once it is gone.
async fn start_again(server: &ThirdPartyServer) -> ChildProcess {
    let program = std::env::var_os("KAIRO_LLAMA_SERVER").unwrap();
    let mut spec = ProcessSpec::new("llama", program, server.folder.path().join("again.log"));
    spec = spec.args([server.port.to_string().as_str(), CONTEXT, TEMPLATE]);
    spec.ready = is_ready;
    let mut process = ChildProcess::spawn(spec).await.unwrap();
    process.wait_until_ready(DEADLINE).await.unwrap();
    process
}

/// The server writes lines of its own in between, also into the middle of this one.
fn is_ready(line: &str) -> bool {
    line.contains("listening on http://")
}

/// A Kairo whose models are all this server, with an agent that is offered these tools and answers in so many tokens at most.
async fn world(server: &ThirdPartyServer, tools: &[&str], longest: &str) -> World {
    let wanted = Wanted::new("rules: [{ name: none, when: {}, reply: this is not the model }]");
    let model = |wanted: Wanted, name: &str, value: &str| {
        wanted.env(Service::AgentRuntime, &format!("KAIRO_MODELS__HEAVY__{name}"), value)
    };
    let wanted = model(wanted, "BASE_URL", &server.url("/v1"));
    let wanted = model(wanted, "MAX_OUTPUT_TOKENS", longest);
    // On a busy machine the server takes longer to come back than the default tries last.
    let wanted = wanted.env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__OUTAGE_TRIES", "20");
    let world = wanted.start().await;
    let profile = json!({ "agent": AGENT, "prompt": "You are brief.", "tools": tools, "max_steps": 4 });
    let answer = world.post("/v1/agents", &profile).await;
    assert!(answer.0 == 200 || answer.0 == 201, "{answer:?}");
    world
}

/// The last words of a turn, as the log has them.
async fn said(world: &World, sent: &Sent) -> Value {
    world.log.wait(|event| event.correlation_id == sent.event_id && event.is_final_reply()).await.payload
}

async fn assert_is_answered(world: &World, text: &str) {
    let said = said(world, &world.send(AGENT, text).await).await;
    assert_eq!(said["failure"].as_str().unwrap_or_default(), "", "{text:.40}: {said}");
    assert!(!said["text"].as_str().unwrap_or_default().is_empty(), "{text:.40}: {said}");
}

/// Asks for an answer in a stream, and returns what is still to come of it once its first words have.
async fn begin_answer(world: &World, text: &str) -> (String, reqwest::Response) {
    let request = chat(text, true);
    let mut response = world.http.post(world.url("/v1/chat/completions")).json(&request).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut told = String::new();
    while !has_words(&told) {
        let piece = timeout(DEADLINE, response.chunk()).await.expect("the answer never began").unwrap();
        told.push_str(&String::from_utf8_lossy(&piece.expect("the answer broke off")));
    }
    (told, response)
}

fn chat(text: &str, stream: bool) -> Value {
    json!({ "model": AGENT, "user": "bob", "stream": stream, "messages": [{ "role": "user", "content": text }] })
}

/// Returns true if any chunk of this stream has content.
fn has_words(stream: &str) -> bool {
    let chunks = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    chunks.into_iter().any(|chunk| !chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().is_empty())
}

#[tokio::test]
async fn a_real_model_answers_whole_and_streamed() {
    let Some(server) = server().await else { return };
    let world = world(&server, &["no.such"], "64").await;
    let (status, answer) = world.post("/v1/chat/completions", &chat("Say hello.", false)).await;
    assert_eq!(status, 200, "{answer}");
    assert!(!answer["choices"][0]["message"]["content"].as_str().unwrap().is_empty(), "{answer}");
    assert!(answer["usage"]["prompt_tokens"].as_u64().unwrap() > 0, "the server counts tokens: {answer}");
    assert!(answer["usage"]["completion_tokens"].as_u64().unwrap() > 0, "{answer}");

    let (begun, rest) = begin_answer(&world, "Count to three.").await;
    let streamed = begun + &timeout(DEADLINE, rest.text()).await.expect("the answer never ended").unwrap();
    assert!(streamed.contains("data: [DONE]"), "{streamed}");
    assert!(!streamed.contains("\"error\""), "{streamed}");
    world.end().await;
}

#[tokio::test]
async fn a_call_that_a_real_server_parses_runs_and_its_result_goes_back() {
    let Some(server) = server().await else { return };
    let world = world(&server, &["tools.now"], "64").await;
    let sent = world.send(AGENT, &format!("Repeat this text:\n{CALL}")).await;
    let said = said(&world, &sent).await;
    let events = world.events_of(&sent).await;
    let results: Vec<_> = events.iter().filter(|event| event.type_name == v1::ToolResult::TYPE).collect();
    assert_eq!(results.len(), 1, "{said}\n{}", world.log.text());
    assert!(results[0].payload.to_string().contains("Asia/Tokyo"), "{:?}", results[0].payload);
    assert_eq!(said["failure"].as_str().unwrap_or_default(), "", "{said}");
    world.end().await;
}

#[tokio::test]
async fn a_thread_that_outgrows_the_servers_context_goes_on() {
    let Some(server) = server().await else { return };
    let world = world(&server, &["no.such"], "24").await;
    // Each is a quarter of the context.
    let long = "The lamp in the hall is green. ".repeat(64);
    for number in 1..=6 {
        assert_is_answered(&world, &format!("Message {number}. {long}")).await;
    }
    assert_is_answered(&world, "Say hello.").await;
    world.end().await;
}

#[tokio::test]
async fn a_server_that_is_killed_in_the_middle_and_comes_back_costs_no_turn() {
    let Some(server) = server().await else { return };
    let world = world(&server, &["no.such"], "64").await;
    let (_, rest) = begin_answer(&world, "Count from one to a hundred.").await;
    server.process.kill9().await.unwrap();
    let again = start_again(&server).await;
    let reply = world.log.wait(|event| event.is_final_reply()).await.payload;
    assert_eq!(reply["failure"].as_str().unwrap_or_default(), "", "{reply}");
    drop((rest, again));
    world.end().await;
}
