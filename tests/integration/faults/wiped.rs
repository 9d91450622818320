//! Partition owners and snapshots are conveniences: wiping them in mid-run or deleting them by hand changes nothing.

use kairo_core::{
    event_json::EventJson,
    subjects::{MEMBERS_BUCKET, OWNERS_BUCKET, SNAPSHOTS_BUCKET},
};
use kairo_local::Service;
use serde_json::{Value, json};

use super::{audit, turn::wanted};
use crate::world::{Sent, World};

const AGENTS: usize = 6;
const MESSAGES: usize = 6;

fn name(agent: usize) -> String {
    format!("agent-{agent}")
}

/// One more message to each agent.
async fn send_all(world: &World, number: usize) -> Vec<Sent> {
    let mut sent = Vec::new();
    for agent in 0..AGENTS {
        sent.push(world.send(&name(agent), &format!("message {number} to {agent}")).await);
    }
    sent
}

async fn replies(world: &World, count: usize) {
    world.log.wait_for(count, EventJson::is_final_reply).await;
}

#[tokio::test]
async fn owners_and_snapshots_wiped_or_deleted_in_mid_run_change_nothing() {
    let wanted = wanted().replicas(Service::AgentRuntime, 2).replicas(Service::Router, 2);
    let mut world = wanted.env_of_all("KAIRO_BUS__CHECKPOINT_MS", "50").start().await;
    for agent in 0..AGENTS {
        world.define(&name(agent)).await;
    }
    let mut sent = Vec::new();
    for number in 0..MESSAGES {
        sent.extend(send_all(&world, number).await);
    }
    for share in 1..=3 {
        replies(&world, share * sent.len() / 4).await;
        for bucket in [MEMBERS_BUCKET, OWNERS_BUCKET, SNAPSHOTS_BUCKET] {
            match share {
                1 | 2 => world.wipe(bucket).await,
                _ => world.delete_keys(bucket).await,
            }
        }
    }
    // One mind left, that remembers nothing and finds no snapshot.
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    replies(&world, sent.len()).await;
    audit::passes(&world).await;
    world.wipe(SNAPSHOTS_BUCKET).await;
    world.stack.restart(Service::AgentRuntime, 1).await.unwrap();
    sent.extend(send_all(&world, MESSAGES).await);
    replies(&world, sent.len()).await;
    audit::passes(&world).await;
    for agent in 0..AGENTS {
        assert_eq!(said(&last_request(&world, agent).await), history(&world, agent).await);
    }
    world.end().await;
}

/// Returns the last request to the model for an agent.
async fn last_request(world: &World, agent: usize) -> Value {
    let asked = format!("message {MESSAGES} to {agent}");
    let requests = world.model_requests().await;
    let found = requests
        .into_iter()
        .rev()
        .map(|request| request["body"].clone())
        .find(|body| body["messages"].as_array().unwrap().last().unwrap()["content"] == json!(asked));
    found.expect("the model was asked")
}

/// Returns the conversation in a request to the model: the role and the text of each message.
fn said(request: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let messages = request["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system");
    messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

/// Returns the conversation as the log tells it, in the order in which the agent decided, without the last reply.
async fn history(world: &World, agent: usize) -> Vec<(String, String)> {
    let (heard, said) =
        (format!("kairo.agent.{}.message", name(agent)), format!("kairo.agent.{}.decision", name(agent)));
    let all = world.log.now(&world.bus).await;
    let mut history = Vec::new();
    for reply in all.iter().filter(|event| event.subject == said && event.is_final_reply()) {
        let question = all.iter().find(|event| event.subject == heard && event.correlation_id == reply.correlation_id);
        history.push(("user".to_owned(), question.unwrap().text().to_owned()));
        history.push(("assistant".to_owned(), reply.text().to_owned()));
    }
    history.pop();
    history
}
