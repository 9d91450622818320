//! The promises of owned partitions, counted from outside: each decision is paid for once, with any number of replicas,
//! while they come and go; a user's messages are decided on in the order in which they were acknowledged; no model is
//! asked for an answer that could not be kept; and an agent with too much pending is left alone.

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use kairo_agent_runtime::{decode_snapshot, snapshot_key};
use kairo_core::{
    ids::Name,
    subjects::{EVENTS_STREAM, SNAPSHOTS_BUCKET},
};
use kairo_local::Service;
use kairo_proto::Body;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    faults::audit,
    world::{DEADLINE, Sent, Wanted, World, agent},
};

/// A model that takes its time.
const SLOW: &str = r#"
rules:
  - name: echo
    when: {}
    reply: { text: "You said: {{ user }}", delay_ms: 400 }
"#;
/// Half of what the model takes.
const NOW_AND_THEN: Duration = Duration::from_millis(200);
const AGENTS: usize = 6;
const MESSAGES: usize = 6;

fn name(agent: usize) -> String {
    format!("agent-{agent}")
}

/// A world in which nobody is taken for dead who is only slow, unless the test kills him.
async fn start(replicas: usize, expiry_ms: &str) -> World {
    let wanted = Wanted::new(SLOW).replicas(Service::AgentRuntime, replicas).replicas(Service::Router, replicas);
    let world = wanted.env_of_all("KAIRO_BUS__MEMBER_EXPIRY_MS", expiry_ms).start().await;
    join_all((0..AGENTS).map(async |agent| world.define(&name(agent)).await)).await;
    world
}

/// Sends every agent its messages, one after the other, without waiting for replies.
async fn send_all(world: &World) -> Vec<Sent> {
    let mut sent = Vec::new();
    for number in 0..MESSAGES {
        for agent in 0..AGENTS {
            let message = json!({ "user": format!("user-{agent}"), "agent": name(agent), "text": number.to_string() });
            sent.push(world.send_as(&message).await);
        }
    }
    sent
}

async fn replies(world: &World, sent: &[Sent]) {
    for sent in sent {
        world.reply(sent).await;
    }
}

/// Returns the number of requests sent to the simulator.
async fn model_requests(world: &World) -> u64 {
    let url = format!("{}/v1/requests?limit=1", world.stack.url(Service::ModelSim).unwrap());
    let answer: Value = world.http.get(url).send().await.unwrap().json().await.unwrap();
    answer["total"].as_u64().unwrap()
}

/// The decisions of the log, and whether each agent decided on its messages in the order in which the gateway acknowledged
/// them.
async fn decisions_in_order(world: &World, sent: &[Sent]) -> u64 {
    let acknowledged: BTreeMap<_, _> = sent.iter().map(|sent| (sent.event_id, sent.sequence)).collect();
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut decisions = 0;
    for raw in world.raw_log().await {
        let Ok(record) = raw.read(1 << 20) else { continue };
        let Body::AgentDecision(_) = &record.body else { continue };
        decisions += 1;
        let Some(sequence) = acknowledged.get(&record.envelope.correlation_id) else { continue };
        let before = last.insert(record.subject.clone(), *sequence);
        assert!(before.is_none_or(|before| before < *sequence), "{}: out of order", record.subject);
    }
    decisions
}

#[tokio::test]
async fn replicas_that_come_and_go_in_order_cost_no_model_request() {
    let mut world = start(2, "20000").await;
    let mut sent = send_all(&world).await;
    world.stack.start(Service::AgentRuntime).await.unwrap();
    world.stack.start(Service::Router).await.unwrap();
    sent.extend(send_all(&world).await);
    world.stack.stop_one(Service::AgentRuntime, 0).await.unwrap();
    world.stack.stop_one(Service::Router, 0).await.unwrap();
    sent.extend(send_all(&world).await);
    replies(&world, &sent).await;
    assert_eq!(decisions_in_order(&world, &sent).await, sent.len() as u64);
    assert_eq!(model_requests(&world).await, sent.len() as u64);
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_replica_that_dies_costs_no_more_than_what_it_was_waiting_for() {
    let world = start(3, "2000").await;
    let mut sent = send_all(&world).await;
    world.stack.kill9(Service::AgentRuntime, 1).await.unwrap();
    world.stack.kill9(Service::Router, 1).await.unwrap();
    sent.extend(send_all(&world).await);
    replies(&world, &sent).await;
    assert_eq!(decisions_in_order(&world, &sent).await, sent.len() as u64);
    let extra = model_requests(&world).await - sent.len() as u64;
    // Each agent waits for one answer at a time.
    assert!(extra <= AGENTS as u64, "{extra} requests too many");
    audit::passes(&world).await;
    world.end().await;
}

/// An agent that plans: a model writes the plan and another translates it, both for one decision; later the first answers.
const PLANNED: &str = r#"
rules:
  - name: answer
    when: { system_starts_with: You are agent.think, step_at_least: 1 }
    reply: { text: "It is done." }
  - name: plan
    when: { system_starts_with: You are agent.think }
    reply: { json: { event: agent.chain, params: { plan: think about it } }, delay_ms: 400 }
  - name: translate
    when: { system_starts_with: You are agent.chain }
    reply: { json: [tools.now, agent.think], delay_ms: 2000 }
  - name: else
    when: {}
    reply: { json: { title: it, summary: it } }
"#;

/// A Kairo with two agents that plan, the first of which has been asked, and how many requests that took.
async fn planning() -> (World, u64) {
    let world = Wanted::new(PLANNED)
        .env_of_all("KAIRO_BUS__MEMBER_EXPIRY_MS", "2000")
        .env_of_all("KAIRO_BUS__CHECKPOINT_MS", "50")
        .start()
        .await;
    for number in 0..2 {
        let profile = json!({ "agent": name(number), "prompt": "You are helpful.", "planning": "chain" });
        assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    }
    assert_eq!(world.ask(&name(0), "Think.").await, "It is done.");
    world.settled().await;
    let undisturbed = model_requests(&world).await;
    assert!(undisturbed >= 3, "a decision takes one request only");
    (world, undisturbed)
}

async fn requests_come_to(world: &World, count: u64) {
    let asked = async { while model_requests(world).await < count {} };
    timeout(DEADLINE, asked).await.expect("the model was never asked");
}

#[tokio::test]
async fn a_replica_that_stops_hands_over_the_answers_it_has() {
    let (mut world, undisturbed) = planning().await;
    for called in 1..=2 {
        let sent = world.send(&name(1), "Think.").await;
        requests_come_to(&world, called * undisturbed + called).await;
        world.stack.start(Service::AgentRuntime).await.unwrap();
        world.stack.stop_one(Service::AgentRuntime, 0).await.unwrap();
        assert_eq!(world.reply(&sent).await, "It is done.");
        world.settled().await;
        assert_eq!(model_requests(&world).await, (called + 1) * undisturbed);
    }
    world.end().await;
}

/// Returns true if a snapshot of the agent holds answers of a model.
async fn is_answer_saved(world: &World, agent: &Name) -> bool {
    let entries = world.bus.read_values(SNAPSHOTS_BUCKET, &snapshot_key(agent)).await.unwrap();
    let entries = entries.into_iter().map(|entry| (entry.key, entry.value)).collect();
    decode_snapshot(agent, &entries).is_some_and(|snapshot| snapshot.answers.is_some())
}

#[tokio::test]
async fn a_replica_that_dies_costs_only_the_answer_that_it_was_waiting_for() {
    let (mut world, undisturbed) = planning().await;
    let sent = world.send(&name(1), "Think.").await;
    requests_come_to(&world, undisturbed + 2).await;
    let saved = async { while !is_answer_saved(&world, &agent(&name(1))).await {} };
    timeout(DEADLINE, saved).await.expect("the answer was never saved");
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    world.stack.start(Service::AgentRuntime).await.unwrap();
    assert_eq!(world.reply(&sent).await, "It is done.");
    world.settled().await;
    assert_eq!(model_requests(&world).await, 2 * undisturbed + 1);
    world.end().await;
}

const OWNERS: [&str; 2] = ["router", "agent-runtime"];

fn replicas_of<'a>(status: &'a Value, service: &str) -> Vec<&'a Value> {
    status["services"].as_array().unwrap().iter().filter(|replica| replica["service"] == service).collect()
}

/// Waits until each replica owns half of the partitions and returns the status. On a busy machine a replica learns of
/// the other late.
async fn shared(world: &World) -> Value {
    let half = |replica: &Value| replica["partitions"].as_array().unwrap().len() == 8;
    loop {
        let (status, answer) = world.get("/v1/status").await;
        assert_eq!(status, 200, "{answer}");
        if OWNERS.iter().all(|service| replicas_of(&answer, service).into_iter().all(half)) {
            return answer;
        }
    }
}

#[tokio::test]
async fn the_owners_say_what_they_own_and_what_a_decision_costs() {
    let world = start(2, "20000").await;
    let sent = send_all(&world).await;
    replies(&world, &sent).await;
    world.settled().await;
    let answer = timeout(DEADLINE, shared(&world)).await.expect("one of them never had its share");
    for service in OWNERS {
        let replicas = replicas_of(&answer, service);
        let mut owned: Vec<u64> = replicas
            .iter()
            .flat_map(|replica| replica["partitions"].as_array().unwrap())
            .map(|owned| owned["partition"].as_u64().unwrap())
            .collect();
        owned.sort_unstable();
        assert_eq!(owned, (0..16).collect::<Vec<_>>(), "{service}");
        let count = |field: &str| replicas.iter().map(|replica| replica[field].as_u64().unwrap()).sum::<u64>();
        let expected = if service == "agent-runtime" { sent.len() as u64 } else { 0 };
        assert_eq!((count("decisions"), count("model_requests")), (expected, expected));
    }
    world.end().await;
}

#[tokio::test]
async fn while_the_log_is_full_no_model_is_asked_and_what_was_paid_for_is_kept() {
    let world = start(1, "20000").await;
    let first = world.send(&name(0), "first").await;
    let asked = timeout(DEADLINE, async { while model_requests(&world).await == 0 {} });
    asked.await.expect("the model was never asked");
    let second = world.send(&name(1), "second").await;
    // As many messages as there are: nothing more is taken, nothing is thrown away.
    let limited = async |messages| {
        let mut stream = world.bus.nats().unwrap().jetstream.get_stream(EVENTS_STREAM).await.unwrap();
        let mut config = stream.info().await.unwrap().config.clone();
        config.max_messages = messages;
        world.bus.nats().unwrap().jetstream.update_stream(config).await.unwrap();
    };
    let end = i64::try_from(world.end_of_log().await).unwrap();
    limited(end).await;
    let ready = async || {
        let url = format!("{}/readyz", world.stack.replica(Service::AgentRuntime, 0).unwrap().health_url().unwrap());
        let answer = world.http.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let stalled = timeout(DEADLINE, async {
        loop {
            let (status, text) = ready().await;
            if status == 503 {
                return text;
            }
        }
    });
    let reason = stalled.await.expect("it never said that it is not ready");
    assert!(reason.contains("the log does not take what is written") && reason.contains("maximum"), "{reason}");
    assert!(world.post("/v1/messages", &json!({ "user": "ann", "agent": name(0), "text": "no" })).await.0 >= 500);
    limited(-1).await;
    replies(&world, &[first, second]).await;
    assert_eq!(model_requests(&world).await, 2);
    timeout(DEADLINE, async { while ready().await.0 != 200 {} }).await.expect("it is never ready again");
    world.end().await;
}

/// A replica that begins to read a long log waits for one agent after the other, and for none of them for ever. Their
/// states are written down with each message, and all but one are forgotten.
#[tokio::test]
async fn agents_that_come_into_memory_one_at_a_time_all_answer() {
    let mut wanted = Wanted::new(SLOW).env_of_all("KAIRO_NATS__PARTITIONS", "1");
    let limits =
        [("LOADS_AT_ONCE", "1"), ("LOADS_WAITING", "1"), ("CHECKPOINT_MESSAGES", "1"), ("CACHED_BYTES", "4096")];
    for (limit, least) in limits {
        wanted = wanted.env(Service::AgentRuntime, &format!("KAIRO_AGENT_RUNTIME__{limit}"), least);
    }
    let mut world = wanted.start().await;
    join_all((0..AGENTS).map(async |agent| world.define(&name(agent)).await)).await;
    let sent = send_all(&world).await;
    replies(&world, &sent).await;
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    let unanswered = send_all(&world).await;
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    replies(&world, &unanswered).await;
    let all = [sent, unanswered].concat();
    assert_eq!(decisions_in_order(&world, &all).await, all.len() as u64);
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn an_agent_with_too_much_before_it_takes_no_messages_until_it_has_dealt_with_some() {
    let wanted = Wanted::new(SLOW).env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__PENDING_INPUTS", "8");
    let world = wanted.start().await;
    world.define("flooded").await;
    world.define("other").await;
    let message = json!({ "user": "ann", "agent": "flooded", "text": "more" });
    let mut accepted = 0;
    // Many at once, and then one now and then: what is taken has to be decided on before this test ends.
    let flood = async {
        loop {
            let (status, answer) = world.post("/v1/messages", &message).await;
            match status {
                202 => accepted += 1,
                429 => return answer,
                _ => panic!("{status} {answer}"),
            }
            if accepted >= 30 {
                sleep(NOW_AND_THEN).await;
            }
        }
    };
    let refused = timeout(DEADLINE, flood).await.expect("everything was taken");
    assert!(refused["detail"].as_str().unwrap().contains("flooded"), "{refused}");
    assert_eq!(world.ask("other", "hello").await, "You said: hello");
    // What was taken is decided on, and then there is room again.
    let again = async {
        while world.post("/v1/messages", &message).await.0 != 202 {
            sleep(NOW_AND_THEN).await;
        }
    };
    timeout(DEADLINE, again).await.expect("it never takes messages again");
    let subject = format!("kairo.agent.{}.decision", agent("flooded"));
    world.log.wait_for(accepted + 1, |event| event.subject == subject && event.is_final_reply()).await;
    world.end().await;
}
