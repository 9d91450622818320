//! Forks that the gateway hosts: talked to over HTTP, bounded, and without a trace in the log.

mod ends;
mod given;

use jiff::Timestamp;
use kairo_local::Service;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

const AGENT: &str = "default";

/// An event of a fork's stream: its id, its name, and its data.
type Told = (u64, String, Value);

/// A stream of a fork's events.
struct Stream {
    answer: Response,
    text: String,
}

impl Stream {
    async fn open(caller: &Caller, fork: &str, after: Option<u64>) -> Self {
        let request = caller.request(Method::GET, &format!("/v1/forks/{fork}/events"));
        let request = after.into_iter().fold(request, |request, after| request.header("last-event-id", after));
        let answer = request.send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self { answer, text: String::new() }
    }

    /// The next event; none when the stream has ended.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let Some(data) = field("data: ") else { continue };
                let name = field("event: ").unwrap_or("message").to_owned();
                return Some((field("id: ").unwrap().parse().unwrap(), name, serde_json::from_str(data).unwrap()));
            }
            let piece = timeout(DEADLINE, self.answer.chunk()).await.expect("nothing is told").unwrap()?;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// All that is told up to an event of this name.
    async fn until(&mut self, name: &str) -> Vec<Told> {
        self.until_one_of(&[name]).await
    }

    /// All that is told up to an event of one of these names.
    async fn until_one_of(&mut self, names: &[&str]) -> Vec<Told> {
        let mut told = Vec::new();
        while told.last().is_none_or(|(_, last, _): &Told| !names.contains(&last.as_str())) {
            told.push(self.next().await.unwrap_or_else(|| panic!("it ended without {names:?}: {told:#?}")));
        }
        told
    }

    /// Waits for the fork's end and returns the reason.
    async fn why(&mut self) -> String {
        self.until("fork.ended").await.last().unwrap().2["why"].as_str().unwrap().to_owned()
    }
}

/// Returns the texts that the agent says in these events.
fn said(told: &[Told]) -> Vec<&str> {
    let says = told.iter().filter(|(_, _, data)| data["payload"]["type"] == "say");
    says.filter_map(|(_, _, data)| data["payload"]["text"].as_str()).collect()
}

/// Returns the source of each answer of this kind, from a model or a tool.
fn from<'t>(told: &'t [Told], answered: &str) -> Vec<&'t str> {
    let of = told.iter().filter(|(_, name, data)| name == "fork.answered" && data["answered"] == answered);
    of.filter_map(|(_, _, data)| data["answer"]["from"].as_str()).collect()
}

async fn world(limits: &[(&str, &str)]) -> (World, Caller) {
    world_of(Wanted::new(USUAL), limits).await
}

/// An agent that said hello to ann, and the operator.
async fn world_of(wanted: Wanted, limits: &[(&str, &str)]) -> (World, Caller) {
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always").env(
        Service::Gateway,
        "KAIRO_GATEWAY__ADMIN_KEY",
        ADMIN,
    );
    let wanted = limits.iter().fold(wanted, |wanted, (name, value)| wanted.env(Service::Gateway, name, *value));
    let world = wanted.start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let profile = json!({ "agent": AGENT, "prompt": "You are a helpful agent." });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    let (status, sent) = operator.post("/v1/messages", json!({ "user": "ann", "agent": AGENT, "text": "hello" })).await;
    assert_eq!(status, 202, "{sent}");
    let correlation: Uuid = sent["correlation_id"].as_str().unwrap().parse().unwrap();
    world.log.wait(|event| event.correlation_id == correlation && event.is_final_reply()).await;
    (world, operator)
}

async fn fork(operator: &Caller, wish: Value) -> Value {
    let (status, fork) = operator.post(&format!("/v1/agents/{AGENT}/forks"), wish).await;
    assert_eq!(status, 201, "{fork}");
    fork
}

/// A fork at the end of the log, and what happens in it, as far as the first rest.
async fn at_rest(operator: &Caller) -> (String, Stream) {
    let begun = fork(operator, json!({})).await;
    let id = begun["fork"].as_str().unwrap().to_owned();
    let mut stream = Stream::open(operator, &id, None).await;
    stream.until("fork.at_rest").await;
    (id, stream)
}

/// Returns the fork as the gateway shows it now.
async fn standing(operator: &Caller, id: &str) -> Value {
    let (status, fork) = operator.get(&format!("/v1/forks/{id}")).await;
    assert_eq!(status, 200, "{fork}");
    fork
}

/// Says something, which is taken.
async fn say(operator: &Caller, id: &str, text: &str) {
    let (status, problem) = operator.post(&format!("/v1/forks/{id}/messages"), json!({ "text": text })).await;
    assert_eq!(status, 202, "{problem}");
}

#[tokio::test]
async fn a_fork_is_talked_to_and_nothing_of_it_stands_in_the_log() {
    let (world, operator) = world(&[("KAIRO_GATEWAY__FORK_MODELS", "true")]).await;
    let (end, requests) = (world.end_of_log().await, world.model_requests().await.len());
    let state = operator.get(&format!("/v1/agents/{AGENT}/state")).await;

    let begun = fork(&operator, json!({})).await;
    assert_eq!((&begun["agent"], &begun["user"], &begun["models"]), (&json!(AGENT), &json!("ann"), &json!(true)));
    let id = begun["fork"].as_str().unwrap();
    let path = |what: &str| format!("/v1/forks/{id}/{what}");
    let now = standing(&operator, id).await;
    assert_eq!(
        ["fork", "at", "begun_at", "limits"].map(|it| &now[it]),
        ["fork", "at", "begun_at", "limits"].map(|it| &begun[it])
    );
    let mut stream = Stream::open(&operator, id, None).await;
    let mut all = stream.until("fork.at_rest").await;

    // A model is asked what the log has no answer to, and a person what a call comes to.
    assert_eq!(operator.post(&path("messages"), json!({ "text": "time please" })).await.0, 202);
    let asked = stream.until("fork.asked").await;
    let question = asked.last().unwrap().2.clone();
    assert_eq!((&question["tool"], &question["arguments"]), (&json!("tools.now"), &json!({})), "{question}");
    let answer = json!({ "question": question["question"], "result": { "now": "never" } });
    assert_eq!(operator.post(&path("answers"), answer.clone()).await.0, 202);
    assert_eq!(operator.post(&path("answers"), answer).await.0, 404, "it is answered");
    all.extend(asked);
    all.extend(stream.until("fork.at_rest").await);
    assert_eq!(said(&all).last(), Some(&"It is never."), "{all:#?}");
    assert_eq!((from(&all, "model"), from(&all, "tool")), (vec!["asked"; 2], vec!["asked"]), "{all:#?}");

    // What nobody knows is locked.
    assert_eq!(operator.post(&path("messages"), json!({ "text": "time please" })).await.0, 202);
    let asked = stream.until("fork.asked").await;
    let locked = json!({ "question": asked.last().unwrap().2["question"] });
    assert_eq!(operator.post(&path("answers"), locked).await.0, 202);
    all.extend(asked);
    all.extend(stream.until("fork.at_rest").await);
    assert_eq!(from(&all, "tool"), ["asked", "locked"], "{all:#?}");

    // Who comes back is told the same, from the beginning or behind what was seen.
    let ids: Vec<u64> = all.iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    for seen in [0, all.len() / 2] {
        let mut again = Stream::open(&operator, id, Some(seen as u64)).await;
        for expected in &all[seen..] {
            assert_eq!(again.next().await.as_ref(), Some(expected));
        }
    }

    assert_eq!(operator.send(Method::DELETE, &format!("/v1/forks/{id}"), None).await.0, 204);
    assert_eq!(stream.until("fork.ended").await.last().unwrap().2, json!({ "why": "it was ended" }));
    assert_eq!(stream.next().await, None, "nothing is told behind the end");
    assert_eq!(world.end_of_log().await, end, "the log is as it was");
    assert_eq!(operator.get(&format!("/v1/agents/{AGENT}/state")).await, state);
    assert!(world.model_requests().await.len() > requests);
    world.end().await;
}

#[tokio::test]
async fn forks_are_bounded_and_for_whoever_may_see_all_of_an_agent() {
    let limits = [("KAIRO_GATEWAY__MAX_FORKS", "1"), ("KAIRO_GATEWAY__FORK_MESSAGES", "1")];
    let (world, operator) = world(&limits).await;
    let forks = format!("/v1/agents/{AGENT}/forks");
    let begun = fork(&operator, json!({ "pending": "lost" })).await;
    let id = begun["fork"].as_str().unwrap();
    let (status, problem) = operator.post(&forks, json!({})).await;
    let detail = problem["detail"].as_str().unwrap();
    for told in ["1 forks", "gateway.max_forks", id, AGENT, "gateway.fork_idle_ms"] {
        assert!(status == 429 && detail.contains(told), "{told}: {problem}");
    }

    // Without models a call that the log has no answer to fails, and says why.
    let mut stream = Stream::open(&operator, id, None).await;
    let messages = format!("/v1/forks/{id}/messages");
    assert_eq!(operator.post(&messages, json!({ "text": "something else" })).await.0, 202);
    let (status, problem) = operator.post(&messages, json!({ "text": "and more" })).await;
    assert_eq!(
        (status, problem["detail"].as_str().unwrap().contains("1 messages (gateway.fork_messages)")),
        (409, true),
        "{problem}"
    );
    let mut told = Vec::new();
    while from(&told, "model").is_empty() {
        told.push(stream.next().await.unwrap());
    }
    assert_eq!(from(&told, "model"), ["locked"], "{told:#?}");

    for wanted in [
        json!({ "name": "reader", "scopes": ["read", "write"] }),
        json!({ "name": "limited", "scopes": ["read", "write"], "agents": ["other"] }),
        json!({ "name": "own", "scopes": ["read", "write"], "agents": [AGENT] }),
    ] {
        let (_, key) = operator.make(wanted.clone()).await;
        let caller = Caller::new(&world, 0, Some(&key));
        assert_eq!(caller.post(&forks, json!({})).await.0, 403, "{wanted}");
        assert_eq!(caller.get("/v1/forks").await.0, 403, "{wanted}");
        assert_eq!(caller.get(&format!("/v1/forks/{id}")).await.0, 403, "{wanted}");
        assert_eq!(caller.get(&format!("/v1/forks/{id}/events")).await.0, 403, "{wanted}");
        assert_eq!(caller.post(&messages, json!({ "text": "hello" })).await.0, 403, "{wanted}");
    }

    // Who looks after them sees those that are open, and how far they are; one that is ended leaves its place to another.
    let (_, key) = operator.make(json!({ "name": "looks", "scopes": ["admin"] })).await;
    let looks = Caller::new(&world, 0, Some(&key));
    let (status, open) = looks.get("/v1/forks").await;
    assert_eq!((status, &open["max_forks"], open["forks"].as_array().unwrap().len()), (200, &json!(1), 1), "{open}");
    let told = &open["forks"][0];
    assert_eq!(
        ["fork", "agent", "at", "begun_at"].map(|it| &told[it]),
        ["fork", "agent", "at", "begun_at"].map(|it| &begun[it])
    );
    assert_eq!((&told["used"]["messages"], &told["limits"]["messages"]), (&json!(1), &json!(1)), "{told}");
    assert!(told["used"]["bytes"].as_u64().unwrap() > 0, "{told}");
    let at = |it: &str| told[it].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert!(at("spoken_at") > at("begun_at"), "{told}");

    assert_eq!(operator.send(Method::DELETE, &format!("/v1/forks/{id}"), None).await.0, 204);
    assert_eq!(stream.why().await, "it was ended");
    assert_eq!(operator.get("/v1/forks").await.1["forks"], json!([]));
    assert_eq!(operator.post("/v1/agents/nobody/forks", json!({})).await.0, 404);
    fork(&operator, json!({})).await;
    assert_eq!(operator.post("/v1/forks/7/messages", json!({ "text": "hello" })).await.0, 400);
    world.end().await;
}
