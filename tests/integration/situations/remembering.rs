//! Facts that are told in parallel.

use kairo_proto::v1;
use kairo_tests::situations::{Speaker, seeds};
use serde_json::{Value, json};

use super::{kill_runtimes, rows, rule, search, sorted, with_rules};

/// Memories that one answer of the model asks for, and answers for each speaker.
const PARALLEL: usize = 3;
const MESSAGES: usize = 2;

/// The requests of a speaker to an agent: each message, with the facts that the model then writes down in parallel.
struct Appends {
    agent: String,
    messages: Vec<(String, Vec<String>)>,
}

fn draw_appends(mut speaker: Speaker) -> Appends {
    let message =
        |speaker: &mut Speaker| (speaker.request(), (0..PARALLEL).map(|_| speaker.fact().before).collect::<Vec<_>>());
    Appends { agent: speaker.name(), messages: (0..MESSAGES).map(|_| message(&mut speaker)).collect() }
}

#[tokio::test]
async fn parallel_appends_are_as_many_memories_across_kills() {
    let all: Vec<Appends> = seeds().flat_map(Speaker::all).map(draw_appends).collect();
    let no_keywords = json!({ "system_starts_with": "You are memory.append" });
    let mut rules = vec![rule("keywords".into(), no_keywords, json!(["-"]))];
    for Appends { agent, messages } in &all {
        for (at, (message, facts)) in messages.iter().enumerate() {
            let call = |fact: &String| json!({ "tool": "memory.append", "arguments": { "content": fact } });
            let calls: Vec<Value> = facts.iter().map(call).collect();
            let turn = json!([{ "tool_calls": calls }, { "text": "Noted." }]);
            rules.push(rule(format!("{agent}-{at}"), json!({ "user_contains": message }), turn));
        }
    }
    let mut world = with_rules(&rules).start().await;
    let mut sent = Vec::new();
    for Appends { agent, messages } in &all {
        world.define(agent).await;
        for (message, _) in messages {
            sent.push(world.send(agent, message).await);
        }
    }
    world.log.wait(|event| event.type_name == v1::MemoryAppended::TYPE).await;
    kill_runtimes(&mut world).await;
    for sent in &sent {
        assert_eq!(world.reply(sent).await, "Noted.");
    }
    world.settled().await;
    world.projected().await;
    for Appends { agent, messages } in &all {
        let mut facts: Vec<String> = messages.iter().flat_map(|(_, facts)| facts.clone()).collect();
        facts.sort();
        let (status, state) = world.get(&format!("/v1/agents/{agent}/state")).await;
        assert_eq!(status, 200, "{state}");
        let recent = state["memories"]["recent"].as_array().unwrap_or_else(|| panic!("{state}"));
        assert_eq!(sorted(recent, "content"), facts, "in the state");
        let memories = rows(&world, &format!("/v1/memories?agent={agent}"), "memories").await;
        assert_eq!(sorted(&memories, "content"), facts, "in the read model");
        for fact in &facts {
            assert_eq!(search(&world, agent, fact).await.first(), Some(fact), "by a search");
        }
    }
    world.verified().await;
    world.end().await;
}
