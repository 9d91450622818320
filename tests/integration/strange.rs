//! Endpoints that misbehave as real ones do: for each preset of the model simulator, what is right.
//!
//! One Kairo plays them all, an agent for each; what is wrong is told of all of them at once. The presets, and what is right for
//! each, are data: `crates/model-sim/scenarios/presets.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_model_sim::presets::{self, Expect, Preset};
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::world::{Wanted, World};

/// Presets whose agents work at once: more would wait for the machine.
const AT_ONCE: usize = 16;

/// The outcome of playing one preset.
struct Outcome {
    /// The status of the chat completion; none if the message was not sent as one.
    status: Option<u16>,
    answer: Value,
    events: Vec<EventJson>,
    requests: u64,
}

/// A Kairo whose endpoint misbehaves as the presets say.
fn wanted() -> Wanted {
    Wanted::new(&presets::scenario()).env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__OUTAGE_TRIES", "5").env(
        Service::AgentRuntime,
        "KAIRO_AGENT_RUNTIME__RETRY_PAUSE_MS",
        "50",
    )
}

/// The agent of a preset: few tools, few steps.
async fn define(world: &World, preset: &Preset) {
    let profile = json!({
        "agent": preset.name, "prompt": "You are brief.", "max_steps": 5,
        "tools": ["tools.now", "tools.date_calc", "task.schedule"],
    });
    let answer = world.post("/v1/agents", &profile).await;
    assert!(answer.0 == 200 || answer.0 == 201, "{answer:?}");
}

/// Says it to the agent of the preset, behind as many long messages as it wants.
async fn play(world: &World, preset: &Preset) -> Outcome {
    define(world, preset).await;
    let text = format!("please #{}", preset.name);
    let (status, answer) = match preset.expect.long_messages {
        0 => {
            let request = json!({ "model": preset.name, "messages": [{ "role": "user", "content": text }] });
            let (status, answer) = world.post("/v1/chat/completions", &request).await;
            (Some(status), answer)
        }
        count => {
            // Some 1 100 tokens each.
            let long = "The lamp in the hall is green, and the door is open. ".repeat(85);
            for number in 1..=count {
                world.ask(&preset.name, &format!("Message {number}. {long}")).await;
            }
            (None, json!(world.ask(&preset.name, &text).await))
        }
    };
    Outcome { status, answer, events: Vec::new(), requests: 0 }
}

/// Plays the presets and returns their outcomes, completed with the events of the log and the simulator's counts.
async fn play_all(world: &World, chosen: &[&'static Preset]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for some in chosen.chunks(AT_ONCE) {
        outcomes.extend(join_all(some.iter().map(|preset| play(world, preset))).await);
    }
    let (events, counts) = (world.log.now(&world.bus).await, counts(world).await);
    for (preset, outcome) in chosen.iter().zip(&mut outcomes) {
        outcome.events = events.iter().filter(|event| owner(event) == Some(&*preset.name)).cloned().collect();
        outcome.requests = counts.get(&preset.name).copied().unwrap_or_default();
    }
    outcomes
}

/// Returns the owner named in the event's subject.
fn owner(event: &EventJson) -> Option<&str> {
    event.subject.split('.').nth(2)
}

/// Returns the number of requests that each preset answered.
async fn counts(world: &World) -> BTreeMap<String, u64> {
    let url = format!("{}/v1/counts?rules=true", world.stack.url(Service::ModelSim).unwrap());
    let page: Value = world.http.get(url).send().await.unwrap().json().await.unwrap();
    let mut counts = BTreeMap::new();
    for (rule, count) in page["rules"].as_object().unwrap() {
        let preset = rule.split('/').next().unwrap().to_owned();
        *counts.entry(preset).or_default() += count.as_u64().unwrap();
    }
    counts
}

impl Outcome {
    /// Returns the text that the user reads: the answer, the refusal, or the error.
    fn words(&self) -> String {
        let message = &self.answer["choices"][0]["message"];
        let said = [&self.answer, &message["content"], &message["refusal"], &self.answer["error"]["message"]];
        said.iter().filter_map(|text| text.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The last words of the last turn, as the log has them.
    fn last(&self) -> Value {
        self.events.iter().rev().find(|event| event.is_final_reply()).map_or(Value::Null, |event| event.payload.clone())
    }

    /// Calls of tools that have a result.
    fn tools(&self) -> usize {
        self.events.iter().filter(|event| event.type_name == v1::ToolResult::TYPE).count()
    }

    /// Returns the complaints: every way in which the outcome differs from `expect`.
    fn wrong(&self, expect: &Expect) -> Vec<String> {
        let (words, last) = (self.words(), self.last());
        let failure = last["failure"].as_str().unwrap_or_default();
        let finish = self.answer["choices"][0]["finish_reason"].as_str();
        let counted = self.answer["usage"]["completion_tokens"].as_u64();
        let most = expect.requests_at_most.or(expect.requests).unwrap_or(u64::MAX);
        let least = expect.requests.unwrap_or_default();
        let mut wrong = Vec::new();
        let mut check = |holds: bool, complaint: String| {
            if !holds {
                wrong.push(complaint);
            }
        };
        for text in &expect.reply {
            check(words.contains(text), format!("{text:?} is not in the reply"));
        }
        for text in &expect.never {
            check(!words.contains(text), format!("{text:?} is in the reply"));
        }
        check(expect.tools.is_none_or(|tools| tools == self.tools()), format!("{} tools ran", self.tools()));
        check((least..=most).contains(&self.requests), format!("{} requests", self.requests));
        check(expect.failure.as_deref().is_none_or(|kind| kind == failure), format!("the failure is {failure:?}"));
        let is_status = self.status.is_none_or(|status| expect.status.is_empty() || expect.status.contains(&status));
        check(is_status, format!("the status is {:?}", self.status));
        let is_finish = expect.finish.as_deref().is_none_or(|wanted| finish == Some(wanted));
        check(is_finish, format!("the finish reason is {finish:?}"));
        let is_counted = expect.counted_tokens.is_none_or(|least| counted >= Some(least));
        check(is_counted, format!("{counted:?} tokens are counted"));
        if !wrong.is_empty() {
            wrong.push(format!("the reply is {:.200?}", words));
        }
        wrong
    }
}

/// Fails with all that is not right.
fn assert_right(chosen: &[&'static Preset], outcomes: &[Outcome], right: impl Fn(&Preset) -> Expect) {
    let mut complaints = Vec::new();
    for (preset, outcome) in chosen.iter().zip(outcomes) {
        let wrong = outcome.wrong(&right(preset));
        if !wrong.is_empty() {
            complaints.push(format!("#{} ({}): {}", preset.name, preset.what, wrong.join("; ")));
        }
    }
    assert!(complaints.is_empty(), "{} of {}:\n{}", complaints.len(), chosen.len(), complaints.join("\n"));
}

/// The read model says of each last reply what the log says: how the answer ended, and why the turn failed.
async fn assert_rows_tell_endings(world: &World, chosen: &[&'static Preset], outcomes: &[Outcome]) {
    world.projected().await;
    let mut endings = BTreeSet::new();
    for (preset, outcome) in chosen.iter().zip(outcomes) {
        let (status, answer) = world.get(&format!("/v1/conversations/{}?latest=1", preset.name)).await;
        assert_eq!(status, 200, "{answer}");
        let (row, last) = (&answer["messages"][0], outcome.last());
        for field in ["ending", "failure"] {
            let [shown, logged] = [row, &last].map(|of| of[field].as_str().unwrap_or_default().to_owned());
            assert_eq!(shown, logged, "{field} of #{}: {row}", preset.name);
            endings.insert(shown);
        }
        let is_failure = last["failure"].as_str().is_some_and(|kind| !kind.is_empty());
        assert_eq!(row["role"] == "failure", is_failure, "#{}: {row}", preset.name);
    }
    assert!(endings.contains("cut") && endings.contains("refused") && endings.len() > 5, "{endings:?}");
}

#[tokio::test]
async fn kairo_copes_with_whatever_an_endpoint_does() {
    let world = wanted().start().await;
    let chosen: Vec<&Preset> = presets::all().iter().collect();
    let outcomes = play_all(&world, &chosen).await;
    assert_right(&chosen, &outcomes, |preset| preset.expect.clone());
    assert_rows_tell_endings(&world, &chosen, &outcomes).await;
    world.end().await;
}

/// A fallback answers wherever it can help.
#[tokio::test]
async fn a_fallback_answers_where_the_endpoint_cannot() {
    let world = wanted().spare("spare").start().await;
    let chosen: Vec<&Preset> = presets::all().iter().filter(|preset| preset.expect.fallback).collect();
    assert!(chosen.len() > 8);
    let outcomes = play_all(&world, &chosen).await;
    assert_right(&chosen, &outcomes, |preset| Expect {
        reply: vec!["the spare model answers".to_owned()],
        never: preset.expect.never.clone(),
        failure: Some(String::new()),
        status: vec![200],
        requests_at_most: Some(3),
        ..Expect::default()
    });
    world.end().await;
}
