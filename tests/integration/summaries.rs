//! A conversation in which an agent only answers is summed up by itself, and is found by what it was about.

use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    faults::audit,
    world::{Wanted, World},
};

const AGENT: &str = "answers";

const SCENARIO: &str = r#"
rules:
  - name: sums-up
    when: { system_starts_with: "You are thread.summarize" }
    reply: { json: { title: Lunch in Lisbon, summary: "Whether grilled sardines are in season." } }
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

async fn summed_up(world: &World, so_many: usize) {
    world.log.wait_for(so_many, |event| event.type_name == v1::ThreadSummarized::TYPE).await;
}

#[tokio::test]
async fn a_thread_in_which_the_agent_only_answered_is_summed_up_by_the_light_model_once_and_found_by_its_summary() {
    let mut world = Wanted::new(SCENARIO).start().await;
    let profile = json!({ "agent": AGENT, "prompt": "Be brief.", "summary_after": 2 });
    assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    world.ask(AGENT, "hello").await;
    world.ask(AGENT, "is it time for them?").await;
    summed_up(&world, 1).await;
    // Whatever dies, it is not asked for again.
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    world.ask(AGENT, "and now?").await;
    world.settled().await;
    let requests = world.model_requests().await;
    let sums_up =
        |asked: &&Value| asked["body"]["messages"][0]["content"].as_str().unwrap().contains("thread.summarize");
    let summaries: Vec<&Value> = requests.iter().filter(sums_up).collect();
    assert_eq!((requests.len(), summaries.len()), (4, 1), "three answers, and one summary of two: {requests:?}");

    world.projected().await;
    let (_, listed) = world.get(&format!("/v1/threads?agent={AGENT}")).await;
    assert_eq!(listed["threads"][0]["title"], "Lunch in Lisbon", "{listed}");
    let (_, found) = world.get("/v1/search?q=sardines&in=thread").await;
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1), "{found}");
    audit::passes(&world).await;
    world.end().await;
}
