//! Memories that agents are told to keep: written by the mind, found by its next step, their secrets sealed.

use std::process::Command;

use kairo_local::{Service, StackOptions};
use serde_json::json;

use crate::world::Wanted;

const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// "remember …" is written down and searched for at once; "forget it" searches only.
const SCENARIO: &str = r#"
rules:
  - name: keywords
    when: { system_starts_with: You are memory.append }
    reply: { json: { keywords: [Wifi, office] } }
  - name: remember
    when: { user_contains: "remember" }
    turn:
      - tool_calls: [{ tool: memory.append, arguments: { content: "The wifi password is hunter22." } }]
      - tool_calls: [{ tool: memory.search, arguments: { query: "password", scope: recent } }]
      - text: "I found {{ last_result.matches | length }}: {{ last_result.matches[0].content }}"
"#;

#[tokio::test]
async fn what_an_agent_writes_it_finds_in_its_next_step_without_the_secret() {
    let wanted = Wanted::new(SCENARIO).env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__SECRET_KEY", KEY);
    let world = wanted.start().await;
    world.define("bob").await;
    assert_eq!(world.ask("bob", "please remember it").await, "I found 1: The wifi password is [secret password].");

    // Its keywords are found later, and from then on it is found by them.
    world.settled().await;
    world.projected().await;
    let (status, listed) = world.get("/v1/memories?agent=bob&q=ofice&type=journal").await;
    let memory = &listed["memories"][0];
    assert_eq!((status, &memory["keywords"]), (200, &json!(["wifi", "office"])));
    assert!(!listed.to_string().contains("hunter22") && !memory["source_event_ids"][0].is_null());
    let asked: String = world.model_requests().await.iter().map(|request| request.to_string()).collect();
    // Only the model that called the tool has seen it.
    assert!(asked.contains("The wifi password is [secret password]."));

    let kairo = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let reveal = |key: &str| {
        let mut command = Command::new(&kairo);
        command.args(["--url", &world.url(""), "--json", "memories", "reveal", memory["memory_id"].as_str().unwrap()]);
        let output = command.env("KAIRO_SECRET_KEY", key).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (opened, secrets) = reveal(KEY);
    assert!(opened && secrets.contains("hunter22"), "{secrets}");
    assert_eq!(reveal(&"08".repeat(32)), (false, String::new()));
    world.end().await;
}
