//! Facts that are corrected.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_tests::situations::{Fact, Speaker, seeds};
use serde_json::{Value, json};

use super::{define_background, kill_runtimes, rows, rule, search, sorted, with_rules};
use crate::world::World;

/// Sessions of work: one that finds the fact out, one that finds out better, and one that rests on what is known.
const SESSIONS: usize = 3;

struct Corrected {
    agent: String,
    fact: Fact,
    /// A fact that is never corrected.
    other: Fact,
    requests: Vec<String>,
}

fn corrected(mut speaker: Speaker) -> Corrected {
    let [fact, other] = [speaker.fact(), speaker.fact()];
    let requests = (0..SESSIONS).map(|_| speaker.request()).collect();
    Corrected { agent: speaker.name(), fact, other, requests }
}

/// The model that learns finds out both facts, then corrects the one by its number, and then has nothing to say.
fn rules(corrected: &Corrected) -> Vec<Value> {
    let Corrected { agent, fact, other, requests } = corrected;
    let remembered =
        |content: &str, replaces: Value| json!({ "kind": "fact", "content": content, "replaces": replaces });
    let learned =
        |at: usize, when: Value, items: Value| rule(format!("{agent}-learn-{at}"), when, json!([{ "json": items }]));
    let numbered = format!(r"(?<number>\d+)\. fact \([0-9-]+\): {}", regex::escape(&fact.before));
    let again = json!([remembered(&fact.after, json!("{{ captures.number | int }}"))]);
    let first = json!([remembered(&other.before, json!(0)), remembered(&fact.before, json!(0))]);
    let is = |words: &str| json!({ "system_starts_with": "You are agent.learn", "conversation_contains": words });
    let matched = json!({
        "system_starts_with": "You are agent.learn",
        "conversation_contains": requests[1],
        "conversation_matches": numbered,
    });
    vec![learned(1, matched, again), learned(0, is(&requests[0]), first), learned(2, is(&requests[2]), json!([]))]
}

fn shared_rules() -> Vec<Value> {
    let queue =
        json!([{ "text": "I will.", "tool_calls": [{ "tool": "task.queue", "arguments": { "text": "{{ user }}" } }] }]);
    vec![
        rule("acknowledge".into(), json!({ "system_starts_with": "You are agent.acknowledge" }), queue),
        rule("work".into(), json!({ "system_starts_with": "You are agent.work" }), json!([{ "text": "Done." }])),
        rule("keywords".into(), json!({ "system_starts_with": "You are memory.append" }), json!([{ "text": "-" }])),
    ]
}

/// Has a session of every agent done, with every runtime killed meanwhile.
async fn work(world: &mut World, all: &[Corrected], session: usize) {
    let mut sent = Vec::new();
    for Corrected { agent, requests, .. } in all {
        sent.push(world.send(agent, &requests[session]).await);
    }
    let first = sent[0].event_id;
    world.log.wait(|event| event.correlation_id == first && event.type_name == v1::TaskStarted::TYPE).await;
    kill_runtimes(world).await;
    for sent in sent {
        let is_over =
            |event: &EventJson| event.correlation_id == sent.event_id && event.type_name == v1::ThreadCompleted::TYPE;
        world.log.wait(is_over).await;
    }
    world.settled().await;
    world.projected().await;
}

#[tokio::test]
async fn a_corrected_fact_replaces_the_older_one_in_recall_and_search() {
    let all: Vec<Corrected> = seeds().flat_map(Speaker::all).map(corrected).collect();
    let mut rules: Vec<Value> = all.iter().flat_map(rules).collect();
    rules.extend(shared_rules());
    let mut world = with_rules(&rules).start().await;
    for Corrected { agent, .. } in &all {
        define_background(&world, agent).await;
    }
    work(&mut world, &all, 0).await;
    for Corrected { agent, fact, other, .. } in &all {
        let mut known = [fact.before.clone(), other.before.clone()];
        known.sort();
        let memories = rows(&world, &format!("/v1/memories?agent={agent}"), "memories").await;
        assert_eq!(sorted(&memories, "content"), known);
    }
    work(&mut world, &all, 1).await;
    for Corrected { agent, fact, other, .. } in &all {
        let mut known = [fact.after.clone(), other.before.clone()];
        known.sort();
        let memories = rows(&world, &format!("/v1/memories?agent={agent}"), "memories").await;
        assert_eq!(sorted(&memories, "content"), known);
        assert_eq!(search(&world, agent, &fact.after).await.first(), Some(&fact.after));
        assert!(!search(&world, agent, &fact.before).await.contains(&fact.before));
    }
    // What the next session is told.
    work(&mut world, &all, 2).await;
    let asked = world.model_requests().await;
    for Corrected { fact, requests, .. } in &all {
        let is_work =
            |request: &&Value| request["rule"] == "work" && request["body"].to_string().contains(&requests[2]);
        let told = asked.iter().find(is_work).unwrap()["body"].to_string();
        assert!(told.contains(&fact.after) && !told.contains(&fact.before), "{told}");
    }
    world.verified().await;
    world.end().await;
}
