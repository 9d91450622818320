//! People and MCP servers: signing in, and answering the questions that a server asks during a call.

use std::process::Stdio;

use kairo_core::event_json::EventJson;
use kairo_local::{Service, StackOptions, Tools};
use kairo_proto::v1;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::{
    command_line::{kairo, lines},
    forgetting,
    keys::{self, Caller},
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

/// Returns the answer that a chat client of this user gets: the log holds it sealed.
async fn paid(world: &World, user: &str, words: &str) -> String {
    let question = json!({ "model": "default", "user": user, "messages": [{ "role": "user", "content": words }] });
    let (_, answer) = world.post("/v1/chat/completions", &question).await;
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Until both replicas of tool-runner have the server's tools: each learns by itself that somebody signed in.
async fn connected(world: &World) {
    let is_connected = |replica: &&Value| {
        let servers = replica["tool_servers"].as_array().map(Vec::as_slice).unwrap_or_default();
        replica["service"] == "tool-runner" && servers.iter().any(|server| server["tools"].as_u64().unwrap_or(0) > 0)
    };
    let count = |told: &Value| told["services"].as_array().unwrap().iter().filter(is_connected).count();
    timeout(DEADLINE, async { while count(&world.get("/v1/status").await.1) < 2 {} }).await.unwrap();
}

/// Runs `kairo mcp login` and does what a browser does with the address that it shows.
async fn log_in(world: &World, user: Option<&str>) -> std::process::Output {
    let mut command = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
    command.arg("--url").arg(world.url("")).args(["mcp", "login", "bank", "--no-browser"]);
    if let Some(user) = user {
        command.args(["--user", user]);
    }
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap()).lines();
    let address = loop {
        let line = said.next_line().await.unwrap().expect("an address");
        if let Some(address) = line.trim().strip_prefix("http") {
            break format!("http{address}");
        }
    };
    // It follows the redirect, to where the command waits.
    let person = user.map(|user| format!("&as={user}")).unwrap_or_default();
    let page = reqwest::get(format!("{address}{person}")).await.unwrap();
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

    let signed_in = timeout(DEADLINE, log_in(&world, None)).await.unwrap();
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
async fn users_sign_in_each_for_themselves_and_who_is_forgotten_is_signed_out() {
    let provider = Provider::start().await;
    let server = json!({ "name": "bank", "url": format!("{}/mcp", provider.url), "oauth": { "per": "user" } });
    let wanted = forgetting::wanted_with(SCENARIO)
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", json!([server]).to_string())
        .replicas(Service::ToolRunner, 2);
    let mut world = start(wanted).await;
    for user in ["ann", "bob"] {
        let signed_in = timeout(DEADLINE, log_in(&world, Some(user))).await.unwrap();
        assert_eq!(lines(&signed_in), [format!("{user} is signed in at bank with read")], "{signed_in:?}");
    }
    let is_offered = |event: &EventJson| event.payload.to_string().contains("bank.pay");
    world.log.wait(|event| event.type_name == v1::ToolCatalogue::TYPE && is_offered(event)).await;
    connected(&world).await;
    for user in ["ann", "bob"] {
        let reply = paid(&world, user, "pay it, 1").await;
        assert!(reply.contains(&format!(" by {user}")), "{reply}");
    }
    let lost = paid(&world, "cid", "pay it, 2").await;
    assert!(lost.contains("kairo mcp login bank --user cid"), "{lost}");
    assert_eq!(world.delete("/v1/mcp/bank/login").await.0, 409);

    // Those who come after know who is signed in.
    for index in 0..2 {
        world.stack.kill9(Service::ToolRunner, index).await.unwrap();
    }
    for index in 0..2 {
        world.stack.restart(Service::ToolRunner, index).await.unwrap();
    }
    connected(&world).await;
    provider.expire();
    let (ann, bob) = tokio::join!(paid(&world, "ann", "pay it, 3"), paid(&world, "bob", "pay it, 4"));
    assert!(ann.contains(" by ann") && bob.contains(" by bob"), "{ann}, {bob}");

    assert_eq!(world.post("/v1/users/ann/forget", &json!({})).await.0, 202);
    timeout(DEADLINE, world.forgotten("ann")).await.unwrap();
    assert_eq!(provider.knobs().revoked, 1);
    let (_, signed_in) = world.get("/v1/mcp/sign-ins").await;
    let users: Vec<_> = signed_in["sign_ins"].as_array().unwrap().iter().map(|row| row["user"].clone()).collect();
    assert_eq!(users, ["bob"], "{signed_in}");
    let bob = paid(&world, "bob", "pay it, 5").await;
    assert!(bob.contains(" by bob"), "{bob}");
}

#[tokio::test]
async fn a_users_key_signs_in_its_user_alone() {
    let provider = Provider::start().await;
    let server = json!({ "name": "bank", "url": format!("{}/mcp", provider.url), "oauth": { "per": "user" } });
    let world = keys::guarded()
        .env_of_all("KAIRO_PRIVACY__MASTER_KEY", "07".repeat(32))
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", json!([server]).to_string())
        .start()
        .await;
    let operator = Caller::new(&world, 0, Some(keys::ADMIN));
    let (_, key) = operator.make(json!({ "name": "phone", "scopes": ["read", "write"], "user": "ann" })).await;
    let phone = Caller::new(&world, 0, Some(&key));
    let (_, key) = operator.make(json!({ "name": "shop", "scopes": ["write"], "agents": ["bob"] })).await;
    let shop = Caller::new(&world, 0, Some(&key));
    let login = |user: &str| json!({ "redirect_uri": "http://127.0.0.1:7/callback", "user": user });
    let path = "/v1/mcp/bank/login";
    assert_eq!(phone.post(path, login("bob")).await.0, 403);
    let (status, problem) = phone.post(path, json!({ "redirect_uri": "http://127.0.0.1:7/callback" })).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!("user")), "{problem}");
    assert_eq!(shop.post(path, login("ann")).await.0, 403);
    for (method, path, status) in [
        (Method::DELETE, "/v1/mcp/bank/login?user=bob", 403),
        (Method::DELETE, path, 400),
        (Method::GET, "/v1/mcp/sign-ins?user=bob", 403),
        (Method::GET, "/v1/mcp/sign-ins", 403),
    ] {
        assert_eq!(phone.send(method.clone(), path, None).await.0, status, "{method} {path}");
    }
    let (status, begun) = phone.post(path, login("ann")).await;
    assert_eq!(status, 200, "{begun}");
    assert_eq!(phone.get("/v1/mcp/sign-ins?user=ann").await, (200, json!({ "sign_ins": [] })));
    assert_eq!(operator.get("/v1/mcp/sign-ins").await.0, 200);
    world.end().await;
}

#[tokio::test]
async fn a_user_answers_what_an_mcp_server_asks_in_a_call() {
    let everything = Tools::of_this_checkout().unwrap().mcp_everything().expect("Node is needed").to_owned();
    let world = start(wanted(json!({ "name": "all", "command": everything }))).await;
    let message = json!({ "user": "ann", "agent": "default", "text": "ask me" });
    let sent = world.send_as(&message).await;
    let asks = |event: &EventJson| event.type_name == v1::ToolProgress::TYPE;
    let told = world.log.wait(move |event| asks(event) && event.payload.get("question").is_some()).await;
    assert!(told.text().contains("kairo inbox"), "{told:?}");

    let (_, inbox) = world.get("/v1/inbox?user=ann").await;
    let id = inbox["questions"][0]["question_id"].as_str().unwrap().to_owned();
    assert_eq!(inbox["questions"][0]["server"], "all", "{inbox}");
    assert_eq!(
        (&told.payload["question"]["question_id"], &told.payload["question"]["user"]),
        (&json!(id), &json!("ann"))
    );
    assert_eq!(world.get("/v1/inbox?user=bob").await.1["questions"], json!([]));
    let path = format!("/v1/questions/{id}");
    let unfit = json!({ "user": "ann", "action": "accept", "content": { "integer": 1000 } });
    assert_eq!(world.post(&path, &unfit).await.0, 400);
    assert_eq!(world.post(&path, &json!({ "user": "bob", "action": "decline" })).await.0, 404);

    let answered = kairo(&world, &["answer", &id, "--user", "ann", "name=Ann Lee", "integer=7"]).await;
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    let reply = world.reply(&sent).await;
    assert!(reply.contains("Ann Lee"), "{reply}");
    let ended = world.log.wait(move |event| asks(event) && event.payload.get("question_ended").is_some()).await;
    assert_eq!(ended.payload["question_ended"], json!({ "question_id": id, "action": "accept" }));
    assert!(!ended.payload.to_string().contains("Ann Lee"), "{ended:?}");
    assert_eq!(world.post(&path, &json!({ "user": "ann", "action": "decline" })).await.0, 404);
}

#[tokio::test]
async fn a_chat_client_is_asked_in_the_conversation_what_an_mcp_server_asks() {
    let everything = Tools::of_this_checkout().unwrap().mcp_everything().expect("Node is needed").to_owned();
    let world = start(wanted(json!({ "name": "all", "command": everything }))).await;
    let said = async |answer: Value| answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
    let question = json!({ "model": "default", "user": "eve", "messages": [{ "role": "user", "content": "ask me" }] });
    let asked = said(world.post("/v1/chat/completions", &question).await.1).await;
    let (_, inbox) = world.get("/v1/inbox?user=eve").await;
    let id = inbox["questions"][0]["question_id"].as_str().unwrap().to_owned();
    assert!(asked.contains("all asks in a call of all.trigger-elicitation-request"), "{asked}");
    assert!(asked.contains(&format!("kairo answer {id} --decline --user eve")), "{asked}");
    let declined = world.post(&format!("/v1/questions/{id}"), &json!({ "user": "eve", "action": "decline" })).await;
    assert_eq!(declined.0, 200, "{}", declined.1);
    let answered = said(world.post("/v1/chat/completions", &question).await.1).await;
    assert!(answered.to_lowercase().contains("decline"), "{answered}");
    world.end().await;
}
