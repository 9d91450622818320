//! Requests between agents end: at their deadline, at the limit of model calls that a message may set off, and in a
//! team that begins nothing. With the real services; names, numbers and words are made anew in each run.

use std::collections::BTreeSet;

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    faults::audit,
    world::{Wanted, World},
};

/// Words that no rule of the simulator knows by chance.
struct Words(Uuid);

impl Words {
    fn new() -> Self {
        Self(Uuid::new_v4())
    }

    fn of(&self, name: &str) -> String {
        let word = Uuid::new_v5(&self.0, name.as_bytes()).simple().to_string();
        format!("{}{}", char::from(b'g' + u8::try_from(name.len() % 16).unwrap_or_default()), &word[..7])
    }
}

async fn create_team(world: &World, team: &Value) {
    let (status, answer) = world.post("/v1/teams", team).await;
    assert_eq!(status, 201, "{answer}");
}

fn is_of<'a>(subject: &'a str, type_name: &'static str) -> impl Fn(&EventJson) -> bool + use<'a> {
    move |event| event.subject == subject && event.type_name == type_name
}

/// Five workers, of whom one has a model that never answers.
struct Harbour {
    team: String,
    workers: Vec<String>,
    hanging: String,
    scenario: String,
}

impl Harbour {
    fn new(deadline_s: u32) -> Self {
        let words = Words::new();
        let workers: Vec<String> = ["a", "b", "c", "d", "e"].iter().map(|name| words.of(name)).collect();
        let hanging = workers[usize::from(words.0.as_bytes()[0]) % workers.len()].clone();
        let calls = workers.iter().map(|worker| {
            format!(
                "          - {{ tool: team.delegate, arguments: {{ worker: {worker}, task: 'Look at {worker}', deadline_s: {deadline_s} }} }}\n"
            )
        });
        let calls: String = calls.collect();
        let scenario = format!(
            r#"
rules:
  - name: learn
    when: {{ system_starts_with: You are agent.learn }}
    reply: {{ json: {{ memories: [], briefing: {{ worth: false, reason: "Nothing new." }} }} }}
  - name: get-to-work
    when: {{ system_starts_with: You are agent.work, user_contains: Get to work on your mission }}
    turn:
      - tool_calls:
{calls}
      - text: "told"
  - name: hang
    when: {{ system_starts_with: You are agent.work, user_contains: Look at {hanging} }}
    reply: {{ fault: hang }}
  - name: look
    when: {{ system_starts_with: You are agent.work, user_contains: Look at }}
    reply: "seen: {{{{ user }}}}"
  - name: work
    when: {{ system_starts_with: You are agent.work }}
    reply: "done"
"#
        );
        Self { team: words.of("team"), workers, hanging, scenario }
    }

    fn team(&self) -> Value {
        let worker = |name: &String| json!({ "name": name, "description": name, "prompt": "You look." });
        json!({
            "team": self.team, "owner": "ann", "mission": "Know the harbour.",
            "lead": { "prompt": "You lead." },
            "workers": self.workers.iter().map(worker).collect::<Vec<_>>(),
        })
    }

    /// Four results and the end of the fifth have come to the lead, and the one that hangs was told to stop.
    async fn is_told(&self, world: &World) {
        let (own, answers) =
            (format!("kairo.agent.{}.decision", self.team), format!("kairo.agent.{}.answer", self.team));
        let is_late = |event: &EventJson| event.payload["kind"] == "request_late";
        let late = world.log.wait(|event| event.subject == own && is_late(event)).await;
        assert!(late.text().contains(&self.hanging), "{}", late.text());
        let ended = world.log.wait(is_of(&own, v1::TaskEnded::TYPE)).await;
        assert_eq!((&ended.payload["status"], &ended.payload["result"]), (&json!("completed"), &json!("told")));
        let is_result = |event: &EventJson| event.subject == answers && event.payload["status"] == "completed";
        let from = world.log.wait_for(4, is_result).await;
        let from: BTreeSet<&str> = from.iter().filter_map(|event| event.payload["from"].as_str()).collect();
        let others = self.workers.iter().filter(|worker| **worker != self.hanging);
        let others: Vec<String> = others.map(|worker| format!("{}-{worker}", self.team)).collect();
        assert_eq!(from, others.iter().map(String::as_str).collect());
        // The worker leaves what it hangs in.
        let hanging = format!("kairo.agent.{}-{}.decision", self.team, self.hanging);
        let left = world.log.wait(is_of(&hanging, v1::TaskEnded::TYPE)).await;
        assert_eq!(left.payload["status"], "canceled");
    }
}

#[tokio::test]
async fn four_of_five_results_come_within_the_deadline_whichever_runtime_is_killed() {
    let harbour = Harbour::new(15);
    let mut world = Wanted::new(&harbour.scenario).replicas(Service::AgentRuntime, 2).start().await;
    create_team(&world, &harbour.team()).await;
    // The worker hangs when both runtimes are killed.
    let hanging = format!("kairo.agent.{}-{}.decision", harbour.team, harbour.hanging);
    world.log.wait(|event| event.subject == hanging).await;
    for replica in 0..2 {
        world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
        world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
    }
    harbour.is_told(&world).await;
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

/// Two agents that ask each other whatever they are asked, for as long as they may.
const ECHO: &str = r#"
rules:
  - name: ask-the-other
    when: { system_contains: "SOUTH" }
    reply: { tool_calls: [{ tool: member.ask, arguments: { member: north, text: "And you?" } }] }
  - name: ask
    when: { system_contains: "NORTH" }
    reply: { tool_calls: [{ tool: member.ask, arguments: { member: south, text: "And you?" } }] }
"#;

#[tokio::test]
async fn two_agents_that_ask_each_other_make_no_more_calls_than_the_message_may_and_the_user_is_told() {
    let world = Wanted::new(ECHO).start().await;
    let most = 17 + u32::from(Uuid::new_v4().as_bytes()[0] % 8);
    for (agent, other) in [("north", "south"), ("south", "north")] {
        // The second cannot be a member before it is there.
        let plain = json!({ "agent": agent, "prompt": agent.to_uppercase() });
        assert_eq!(world.post("/v1/agents", &plain).await.0, 201);
        let _ = other;
    }
    for (agent, other) in [("north", "south"), ("south", "north")] {
        let profile = json!({
            "agent": agent, "prompt": agent.to_uppercase(), "max_steps": 1000, "message_model_calls": most,
            "members": [{ "agent": other, "tools": ["tools.now"] }],
        });
        let (status, answer) = world.post("/v1/agents", &profile).await;
        assert_eq!(status, 200, "{answer}");
    }
    let sent = world.send("north", "what is new?").await;
    let told = world.reply(&sent).await;
    assert!(told.contains(&format!("may take {most} calls of models")), "{told}");
    let asked = world.model_requests().await.len();
    assert!(asked > 5 && asked <= usize::try_from(most).unwrap(), "{asked} of {most}");
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_team_that_rests_refuses_at_once_and_its_owner_raises_its_budget_and_resumes_it_in_one_step() {
    let harbour = Harbour::new(1);
    let world = Wanted::new(&harbour.scenario).start().await;
    let mut team = harbour.team();
    team["tokens_per_day"] = json!(1);
    create_team(&world, &team).await;
    let name = harbour.team.as_str();
    let own = format!("kairo.agent.{name}.decision");
    world.log.wait(|event| event.subject == own && event.payload["over_budget"] == json!(true)).await;
    let order = |command: &str, more: Value| {
        let mut order = json!({ "user": "ann", "agent": name, "team": name, "command": command });
        order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        order
    };
    let refused = async |command: &str, kind: &'static str| {
        let (status, answer) = world.post("/v1/commands", &order(command, json!({}))).await;
        assert_eq!(status, 202, "{answer}");
        let correlation = answer["correlation_id"].as_str().unwrap().to_owned();
        let is_it = |event: &EventJson| {
            event.correlation_id.to_string() == correlation && event.type_name == v1::AgentFailed::TYPE
        };
        assert_eq!(world.log.wait(is_it).await.payload["kind"], kind, "{command}");
    };
    let told = world.ask(name, "how far are you?").await;
    assert!(told.contains(&format!("kairo teams resume {name} --budget TOKENS")), "{told}");
    refused("resume", "team_over_budget").await;
    // Only the owner raises it, and only where the team is resumed.
    let (status, answer) =
        world.post("/v1/commands", &order("resume", json!({ "user": "bob", "tokens_per_day": 5 }))).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(world.post("/v1/commands", &order("pause", json!({ "tokens_per_day": 5 }))).await.0, 400);
    let (status, answer) = world.post("/v1/commands", &order("resume", json!({ "tokens_per_day": 5_000_000 }))).await;
    assert_eq!(status, 202, "{answer}");
    world.log.wait(|event| event.subject == own && event.payload["status"] == "active").await;
    world.projected().await;
    let (_, shown) = world.get(&format!("/v1/teams/{name}")).await;
    assert_eq!(shown["team"]["tokens_per_day"], 5_000_000, "{shown}");
    // Paused and archived teams say so as well.
    assert_eq!(world.post("/v1/commands", &order("pause", json!({}))).await.0, 202);
    world.log.wait(|event| event.subject == own && event.text().contains("on request of ann")).await;
    let told = world.ask(name, "and now?").await;
    assert!(told.contains("is paused and begins nothing until its owner ann resumes it"), "{told}");
    refused("pause", "team_unchanged").await;
    assert_eq!(world.post("/v1/commands", &order("archive", json!({}))).await.0, 202);
    world.log.wait(|event| event.subject == own && event.payload["status"] == "archived").await;
    let told = world.ask(name, "and now?").await;
    assert!(told.contains("was archived"), "{told}");
    refused("resume", "team_archived").await;
    world.projected().await;
    let (_, queue) = world.get(&format!("/v1/tasks?agent={name}&status=pending")).await;
    assert_eq!(queue["tasks"], json!([]), "nothing is queued for ever");
    world.end().await;
}
