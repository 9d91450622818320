//! Conversations in five languages, drawn from seeds (`kairo_tests::situations`), while runtimes are killed: memories,
//! corrections, requests and questions in between. Models are scripted from the situations, so each test is about how
//! Kairo handles their answers.

mod correcting;
mod progress;
mod queueing;
mod remembering;

use kairo_local::Service;
use serde_json::{Value, json};

use crate::world::{Wanted, World};

/// The number of runtimes: one goes on where another was killed.
const RUNTIMES: usize = 2;

/// A rule of the simulator, which reads JSON as it reads YAML.
fn rule(name: String, when: Value, turn: Value) -> Value {
    json!({ "name": name, "when": when, "turn": turn })
}

/// A Kairo with two runtimes, and models that answer by these rules.
fn with_rules(rules: &[Value]) -> Wanted {
    Wanted::new(&json!({ "rules": rules }).to_string()).replicas(Service::AgentRuntime, RUNTIMES)
}

/// Kills every runtime, one after the other; each is started again before the next.
async fn kill_runtimes(world: &mut World) {
    for replica in 0..RUNTIMES {
        world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
        world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
    }
}

/// An agent that works in the background.
async fn define_background(world: &World, agent: &str) {
    let profile = json!({ "agent": agent, "prompt": "Be brief.", "conduct": "background" });
    let (status, answer) = world.post("/v1/agents", &profile).await;
    assert_eq!(status, 201, "{answer}");
}

/// A list that the gateway answers with; the read model holds all of the log.
async fn rows(world: &World, path: &str, list: &str) -> Vec<Value> {
    let (status, answer) = world.get(path).await;
    assert_eq!(status, 200, "{answer}");
    answer[list].as_array().unwrap().clone()
}

/// The texts of a field, sorted.
fn sorted(rows: &[Value], field: &str) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(|row| row[field].as_str().unwrap().to_owned()).collect();
    texts.sort();
    texts
}

/// Searches an agent's memories for these words and returns the contents of the hits, the best first.
async fn search(world: &World, agent: &str, words: &str) -> Vec<String> {
    let at_least = world.end_of_log().await.to_string();
    let query = [("q", words), ("in", "memory"), ("agent", agent), ("at_least", &at_least)];
    let answer = world.http.get(world.url("/v1/search")).query(&query).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    let hits = answer["hits"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let memories = rows(world, &format!("/v1/memories?agent={agent}"), "memories").await;
    let content = |hit: &Value| {
        let memory = memories.iter().find(|memory| memory["memory_id"] == hit["id"]);
        memory.unwrap_or_else(|| panic!("{hit} in {memories:?}"))["content"].as_str().unwrap().to_owned()
    };
    hits.iter().map(content).collect()
}
