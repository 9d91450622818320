//! Several replicas of each service: every message is answered once, and every agent decides in order.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use kairo_core::{ids::Name, subjects::agent_filter};
use kairo_proto::{About, Body, about::Tool};
use serde_json::json;
use uuid::Uuid;

use crate::world::{Sent, Wanted, World};

/// Every message calls tools, one or two at once, in process or not.
const BUSY: &str = r#"
rules:
  - name: clock
    when: { user_matches: 'clock (?<word>\w+)' }
    turn:
      - tool_calls:
          - { tool: tools.now, arguments: {} }
          - { tool: tools.date_calc, arguments: { find: tomorrow } }
      - text: "Clock {{ captures.word }}: {{ results | length }}."
  - name: run
    when: { user_matches: 'run (?<word>\w+)' }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: echo, args: ["{{ captures.word }}"] } }]
      - text: "Ran {{ last_result.stdout or last_result_text }}."
  - name: twice
    when: { user_matches: 'twice (?<word>\w+)' }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: "Twice {{ captures.word }}: {{ results | length }}."
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

const AGENTS: usize = 24;

/// The messages to every agent, each from a user of its own, and the replies.
const SAID: [(&str, &str); 4] = [
    ("clock alpha", "Clock alpha: 2."),
    ("run beta", "Ran beta\n."),
    ("twice gamma", "Twice gamma: 2."),
    ("hello", "You said: hello"),
];

async fn say_it_all(world: &World, agent: &str) -> Vec<Sent> {
    let mut sent = Vec::new();
    for (number, (text, _)) in SAID.iter().enumerate() {
        let message = json!({ "user": format!("user-{number}"), "agent": agent, "text": text });
        sent.push(world.send_as(&message).await);
    }
    sent
}

/// Checks in an agent's own subjects that its inputs were decided on in order, and everything once.
async fn assert_in_order(world: &World, agent: &str) {
    let mut log = Vec::new();
    let filter = agent_filter(&Name::parse(agent).unwrap());
    world.bus.read_all(&filter, 0, |raw| log.push(raw.read(1_000_000).unwrap())).await.unwrap();
    let mut cursor = 0;
    let mut decided = BTreeSet::new();
    let mut results: BTreeMap<String, usize> = BTreeMap::new();
    let mut invoked: BTreeMap<String, usize> = BTreeMap::new();
    for record in &log {
        if let Body::AgentDecision(decision) = &record.body {
            assert!(cursor < decision.cursor && decision.cursor < record.sequence, "{agent}: out of order");
            cursor = decision.cursor;
            assert!(decided.insert(decision.input_id.clone()), "{agent}: decided twice on {}", decision.input_id);
        }
        let About::Tool(tool) = record.body.about() else { continue };
        match tool {
            Tool::Invoke(invoke) => {
                for action in &invoke.actions {
                    *invoked.entry(action.action_id.clone()).or_default() += 1;
                }
            }
            Tool::Result(result) => *results.entry(result.action_id.clone()).or_default() += 1,
            Tool::Order(_) | Tool::Progress(_) => {}
        }
    }
    let messages = log.iter().filter(|record| matches!(record.body, Body::AgentMessage(_)));
    let heard: Vec<String> = messages.map(|record| record.envelope.id.to_string()).collect();
    assert_eq!(heard.len(), SAID.len());
    assert!(heard.iter().all(|id| decided.contains(id)), "{agent}: a message nobody decided on");
    assert_eq!(results, invoked);
    assert!(results.len() == 5 && results.values().all(|count| *count == 1), "{agent}: {results:?}");
}

async fn with_replicas(count: usize) {
    // Nobody dies here, so nobody must be taken for dead, however busy the machine is.
    let wanted = Wanted::new(BUSY).replicas_of_all(count).env_of_all("KAIRO_BUS__ACK_WAIT_MS", "20000");
    let wanted = wanted.env_of_all("KAIRO_BUS__MEMBER_EXPIRY_MS", "20000");
    let world = wanted.start().await;
    let agents: Vec<String> = (0..AGENTS).map(|number| format!("agent-{number}")).collect();
    join_all(agents.iter().map(|agent| world.define(agent))).await;
    let sent = join_all(agents.iter().map(|agent| say_it_all(&world, agent))).await;
    for sent in sent.iter().flatten().zip(SAID.iter().cycle()) {
        let (sent, (_, answer)) = sent;
        assert_eq!(world.reply(sent).await, *answer);
    }
    world.settled().await;
    let events = world.log.now(&world.bus).await;
    let mut replies: BTreeMap<Uuid, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event.is_final_reply()) {
        *replies.entry(event.correlation_id).or_default() += 1;
    }
    assert_eq!(replies.len(), AGENTS * SAID.len());
    assert!(replies.values().all(|count| *count == 1));
    for agent in &agents {
        assert_in_order(&world, agent).await;
    }
    world.end().await;
}

#[tokio::test]
async fn two_replicas_of_each_service_are_one_system() {
    with_replicas(2).await;
}

#[tokio::test]
async fn three_replicas_of_each_service_are_one_system() {
    with_replicas(3).await;
}
