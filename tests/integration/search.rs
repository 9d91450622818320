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
    let prefix = format!("test-{}", kairo_core::ids::entering().simple());
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

    let mut command = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
    command.args(["--url", &world.url(""), "--json", "search", "netwurk", "--in", "memories", "--facets"]);
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.success(), &told["hits"][0]["id"]), (true, &found["hits"][0]["id"]), "{told}");
    world.end().await;
}
