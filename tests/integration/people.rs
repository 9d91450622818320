//! What MCP servers need people for: signing in at them, and answering what they ask in a call.

use std::process::Stdio;

use kairo_core::event_json::EventJson;
use kairo_local::{Service, StackOptions, Tools};
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::{
    command_line::{kairo, lines},
    provider::Provider,
    world::{DEADLINE, Wanted, World},
};

const SCENARIO: &str = r#"
rules:
  - name: pay
    when: { user_contains: "pay it" }
    turn:
      - tool_calls: [{ tool: bank.pay, arguments: {} }]
      - text: "{{ last_result_text }}"
  - name: ask
    when: { user_contains: "ask me" }
    turn:
      - tool_calls: [{ tool: all.trigger-elicitation-request, arguments: {} }]
      - text: "{{ last_result_text }}"
  - name: else
    reply: Yes.
"#;

fn wanted(server: Value) -> Wanted {
    Wanted::new(SCENARIO).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", json!([server]).to_string())
}

async fn start(wanted: Wanted) -> World {
    let world = wanted.start().await;
    world.define("default").await;
    world
}

/// Runs `kairo mcp login` and does what a browser does with the address that it shows.
async fn log_in(world: &World) -> std::process::Output {
    let mut command = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
    command.arg("--url").arg(world.url("")).args(["mcp", "login", "bank", "--no-browser"]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap()).lines();
    let address = loop {
        let line = said.next_line().await.unwrap().expect("an address");
        if let Some(address) = line.trim().strip_prefix("http") {
            break format!("http{address}");
        }
    };
    // It follows the redirect, to where the command waits.
    let page = reqwest::get(address).await.unwrap();
    assert!(page.status().is_success(), "{page:?}");
    running.wait_with_output().await.unwrap()
}

#[tokio::test]
async fn a_person_signs_in_at_an_mcp_server_and_out_again() {
    let provider = Provider::start().await;
    let url = format!("{}/mcp", provider.url);
    // Tokens are kept sealed.
    let wanted = wanted(json!({ "name": "bank", "url": url, "oauth": {} }));
    let world = start(wanted.env_of_all("KAIRO_PRIVACY__MASTER_KEY", "07".repeat(32))).await;
    let (status, problem) = world.delete("/v1/mcp/nowhere/login").await;
    assert_eq!(status, 404, "{problem}");

    let signed_in = timeout(DEADLINE, log_in(&world)).await.unwrap();
    assert_eq!((signed_in.status.code(), lines(&signed_in)), (Some(0), vec!["signed in at bank with read"]));
    let is_offered = |event: &EventJson| event.payload.to_string().contains("bank.pay");
    world.log.wait(|event| event.type_name == v1::ToolCatalogue::TYPE && is_offered(event)).await;
    let question = json!({ "model": "default", "messages": [{ "role": "user", "content": "pay it" }] });
    let (_, answer) = world.post("/v1/chat/completions", &question).await;
    let reply = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
    assert!(reply.contains("paid 1"), "{answer}");
    let page = async |query: &str| world.get(&format!("/v1/events?{query}")).await.1.to_string();
    world.projected().await;
    let of_agent = page("agent=default&latest=100").await;
    assert!(of_agent.contains("paid 1"), "{of_agent}");
    let told = page("after=0").await + &of_agent;
    for secret in ["access-", "refresh-", "code-"] {
        assert!(!told.contains(secret), "{secret} stands in the log");
    }

    let signed_out = kairo(&world, &["mcp", "logout", "bank"]).await;
    assert_eq!(lines(&signed_out), ["signed out at bank; the tokens are revoked"], "{signed_out:?}");
    assert_eq!(provider.knobs().revoked, 1);
}

#[tokio::test]
async fn a_user_answers_what_an_mcp_server_asks_in_a_call() {
    let everything = Tools::of_this_checkout().unwrap().mcp_everything().expect("Node is needed").to_owned();
    let world = start(wanted(json!({ "name": "all", "command": everything }))).await;
    let message = json!({ "user": "ann", "agent": "default", "text": "ask me" });
    let sent = world.send_as(&message).await;
    let asks = |event: &EventJson| event.type_name == v1::ToolProgress::TYPE;
    world.log.wait(move |event| asks(event) && event.payload.to_string().contains("kairo inbox")).await;

    let (_, inbox) = world.get("/v1/inbox?user=ann").await;
    let id = inbox["questions"][0]["question_id"].as_str().unwrap().to_owned();
    assert_eq!(inbox["questions"][0]["server"], "all", "{inbox}");
    assert_eq!(world.get("/v1/inbox?user=bob").await.1["questions"], json!([]));
    let path = format!("/v1/questions/{id}");
    let unfit = json!({ "user": "ann", "action": "accept", "content": { "integer": 1000 } });
    assert_eq!(world.post(&path, &unfit).await.0, 400);
    assert_eq!(world.post(&path, &json!({ "user": "bob", "action": "decline" })).await.0, 404);

    let answered = kairo(&world, &["answer", &id, "--user", "ann", "name=Ann Lee", "integer=7"]).await;
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    let reply = world.reply(&sent).await;
    assert!(reply.contains("Ann Lee"), "{reply}");
    assert_eq!(world.post(&path, &json!({ "user": "ann", "action": "decline" })).await.0, 404);
}
