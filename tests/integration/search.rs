//! Searching through the gateway and the command line. What is found is tested with projector, on both backends; here
//! Meilisearch answers where `MEILI_URL` (and `MEILI_MASTER_KEY`) name one, else Postgres does.

use std::{env, process::Command};

use kairo_local::StackOptions;
use serde_json::{Value, json};

use crate::world::Wanted;

const SCENARIO: &str = r#"
rules:
  - name: keywords
    when: { system_starts_with: You are memory.append }
    reply: { json: { keywords: [Wifi, office] } }
  - name: remember
    when: { user_contains: "remember" }
    turn:
      - tool_calls: [{ tool: memory.append, arguments: { content: "The wireless network is <b>slow</b>." } }]
      - text: "Done."
"#;

#[tokio::test]
async fn what_an_agent_remembers_is_found_over_http_and_by_the_command_line() {
    let (url, key) = (env::var("MEILI_URL").unwrap_or_default(), env::var("MEILI_MASTER_KEY").unwrap_or_default());
    if url.is_empty() {
        println!("SKIPPED for Meilisearch, as MEILI_URL is not set; Postgres answers");
    }
    let backend = if url.is_empty() { "postgres" } else { "meilisearch" };
    let prefix = format!("test-{}", kairo_core::ids::generate().simple());
    let wanted = Wanted::new(SCENARIO).env_of_all("KAIRO_SEARCH__MEILI_URL", url);
    let wanted = wanted.env_of_all("KAIRO_SEARCH__MEILI_KEY", key).env_of_all("KAIRO_SEARCH__INDEX_PREFIX", prefix);
    let world = wanted.start().await;
    world.define("bob").await;
    assert_eq!(world.ask("bob", "please remember it").await, "Done.");
    world.projected().await;
    let (_, memories) = world.get("/v1/memories?agent=bob").await;
    let sequence = memories["memories"][0]["sequence"].as_u64().unwrap();

    let asked = format!("/v1/search?q=wireles+netwurk&in=memory&agent=bob&facets=true&at_least={sequence}");
    let (status, found) = world.get(&asked).await;
    assert_eq!((status, &found["total"]), (200, &json!(1)), "{found}");
    assert!(found["position"].as_u64().unwrap() >= sequence);
    let snippet = "The <mark>wireless</mark> <mark>network</mark> is &lt;b&gt;slow&lt;/b&gt;.";
    assert_eq!(found["hits"][0]["snippet"], snippet);
    assert_eq!((&found["facets"]["kind"], &found["facets"]["agent"]), (&json!({ "memory": 1 }), &json!({ "bob": 1 })));
    // An index that is not there yet leaves the answer to Postgres.
    assert!(found["backend"] == backend || found["backend"] == "postgres", "{found}");
    assert_eq!(world.get("/v1/search?in=rumours").await.0, 400);
    assert_eq!(world.get("/v1/search?q=network&user=eve").await.1["total"], 0);

    let kairo = |arguments: &[&str]| -> Value {
        let mut command = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
        let output = command.args(["--url", &world.url(""), "--json"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let told = kairo(&["search", "netwurk", "--in", "memories", "--facets"]);
    assert_eq!(told["hits"][0]["id"], found["hits"][0]["id"], "{told}");

    // What was said is found, with the thread that it is in; and that thread, which has no title yet, by its beginning.
    world.projected().await;
    let at_least = world.end_of_log().await.to_string();
    let told =
        kairo(&["--at-least", &at_least, "search", "please", "remembr", "--in", "messages,threads", "--user", "ann"]);
    let hit = |kind: &str| {
        let hits = told["hits"].as_array().unwrap();
        hits.iter().find(|hit| hit["kind"] == kind).unwrap_or_else(|| panic!("no {kind} in {told}")).clone()
    };
    let (said, thread) = (hit("message"), hit("thread"));
    assert_eq!(
        (&said["type"], &said["user"], &said["thread_id"]),
        (&json!("user"), &json!("ann"), &thread["id"]),
        "{told}"
    );
    assert_eq!(
        (&said["snippet"], &thread["title"]),
        (&json!("<mark>please</mark> <mark>remember</mark> it"), &json!("please remember it"))
    );
    let none = format!("/v1/search?q=remember&in=message&user=eve&at_least={at_least}");
    assert_eq!(world.get(&none).await.1["total"], 0);

    // The thread is shown by the command line as the endpoint shows it.
    let id = said["thread_id"].as_str().unwrap();
    let mut shown = [kairo(&["threads", "show", id]), world.get(&format!("/v1/threads/{id}/messages")).await.1];
    for answer in &mut shown {
        answer["position"].take();
    }
    assert_eq!(shown[0]["messages"], shown[1]["messages"]);
    assert_eq!(shown[0]["messages"][0]["content"], "please remember it");
    assert_eq!(kairo(&["threads", "show", id, "--events"])["events"][0]["event"], "user.input");
    world.end().await;
}
