//! The cost of chat completions; and that they miss nothing, however many wait at once.

use std::{
    collections::BTreeSet,
    iter,
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

use futures::future::join_all;
use kairo_local::Service;
use kairo_proto::v1::{self, UserMessage};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};

use crate::world::{DEADLINE, Wanted, World, scenario::USUAL};

/// A listener in place of Postgres that never answers.
struct Nobody {
    listener: TcpListener,
    /// Those who ask again when they are cut off are kept waiting.
    waiting: Mutex<Vec<TcpStream>>,
}

impl Nobody {
    fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener, waiting: Mutex::default() }
    }

    /// A stack whose gateway takes it for Postgres, and asks it for the sake of metrics only once, when it starts.
    fn wanted(&self) -> Wanted {
        let url = format!("postgres://nobody@{}/nothing", self.listener.local_addr().unwrap());
        let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_POSTGRES__URL", url);
        wanted.env(Service::Gateway, "KAIRO_GATEWAY__METRICS_INTERVAL_MS", "3600000")
    }

    /// Returns true if anybody has connected since the last call.
    fn was_asked(&self) -> bool {
        let mut waiting = self.waiting.lock().unwrap();
        let before = waiting.len();
        waiting.extend(iter::from_fn(|| Some(self.listener.accept().ok()?.0)));
        waiting.len() > before
    }

    /// Waits until the gateway has looked back at what was said before it started; till then it asks what it cannot know.
    async fn is_left_alone(&self, world: &World, agent: &str) {
        let looked_back = async {
            for chat in 0.. {
                replied(ask(world, agent, &format!("before-{chat}"), "the time please").await.unwrap());
                if !self.was_asked() {
                    return;
                }
            }
        };
        timeout(DEADLINE, looked_back).await.expect("Postgres is asked for ever");
    }
}

/// A chat's first message, sent again where it was sent before. Chats with the same words are the same, unless they are in different
/// threads.
fn ask(world: &World, agent: &str, thread: &str, words: &str) -> JoinHandle<(u16, Value)> {
    let body = json!({ "model": agent, "messages": [{ "role": "user", "content": words }] });
    let request = world.http.post(world.url("/v1/chat/completions")).header("kairo-thread", thread);
    let request = request.header("x-stainless-retry-count", "1").json(&body);
    tokio::spawn(async move {
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    })
}

fn replied((status, answer): (u16, Value)) -> String {
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

/// Messages that the replicas of a service have sent to nats since they started.
pub async fn sent_by(world: &World, service: Service) -> u64 {
    let page = format!("{}/connz", world.nats.monitor_url().unwrap());
    let page: Value = world.http.get(page).send().await.unwrap().json().await.unwrap();
    let connections = page["connections"].as_array().unwrap();
    let prefix = format!("{}-", service.binary());
    let of_service = connections
        .iter()
        .filter(|one| one["name"].as_str().is_some_and(|name| name.starts_with(&prefix) && !name.contains("test")));
    of_service.map(|connection| connection["in_msgs"].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn a_chat_costs_one_message_and_no_query() {
    const CHATS: u64 = 40;
    let postgres = Nobody::listen();
    let world = postgres.wanted().monitored().start().await;
    world.define("coach").await;
    postgres.is_left_alone(&world, "coach").await;
    let sent = sent_by(&world, Service::Gateway).await;
    for chat in 0..CHATS {
        let reply = replied(ask(&world, "coach", &format!("t-{chat}"), "the time please").await.unwrap());
        assert!(reply.starts_with("It is 2"), "{reply}");
    }
    // Beside it only the tail's pulls, of many messages each, and a look at the bucket of congestion now and then.
    let sent = sent_by(&world, Service::Gateway).await - sent;
    assert!((CHATS..2 * CHATS).contains(&sent), "{sent} messages for {CHATS} chats");
    assert!(!postgres.was_asked(), "Postgres was asked");
    world.end().await;
}

#[tokio::test]
async fn every_chat_gets_its_own_answer_and_the_same_chat_the_same() {
    let world = Wanted::new(USUAL).start().await;
    let agents: Vec<String> = (0..8).map(|number| format!("a-{number}")).collect();
    join_all(agents.iter().map(|agent| world.define(agent))).await;
    let chats = (0..64_usize).map(|number| {
        let words = format!("number {number}");
        let agent = agents[number % agents.len()].clone();
        // Twice at once, of which one says it and both wait for the answer.
        let both = [0, 1].map(|_| ask(&world, &agent, &format!("t-{number}"), &words));
        async move {
            let answers = join_all(both).await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
            let ids: BTreeSet<String> = answers.iter().map(|(_, answer)| answer["id"].to_string()).collect();
            assert_eq!(ids.len(), 1, "{answers:?}");
            for answer in answers {
                assert_eq!(replied(answer), format!("You said: {words}"));
            }
        }
    });
    join_all(chats).await;
    let all = world.log.now(&world.bus).await;
    assert_eq!(all.iter().filter(|event| event.type_name == UserMessage::TYPE).count(), 64);
    world.end().await;
}

#[tokio::test]
async fn a_chat_that_is_answered_together_with_another_is_answered() {
    let mut world = Wanted::new(USUAL).start().await;
    let profile = json!({ "agent": "joins", "prompt": "Be brief.", "interjection": "join" });
    assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    // Whoever starts decides nothing before it has read all that is there.
    world.stack.stop_one(Service::AgentRuntime, 0).await.unwrap();
    let mut chats = Vec::new();
    // The answer is not in the decision that says they are one: the agent looks at the clock first.
    for (number, words) in ["one", "two", "the time please"].into_iter().enumerate() {
        chats.push(ask(&world, "joins", "kitchen", words));
        world.log.wait_for(number + 1, |event| event.subject == "kairo.agent.joins.message").await;
    }
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    let replies: BTreeSet<String> = join_all(chats).await.into_iter().map(|chat| replied(chat.unwrap())).collect();
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert!(replies.first().unwrap().starts_with("It is 2"), "{replies:?}");
    let all = world.log.now(&world.bus).await;
    assert_eq!(all.iter().filter(|event| event.type_name == v1::AgentJoined::TYPE).count(), 2);
    world.end().await;
}

#[tokio::test]
async fn what_was_said_before_is_known_to_a_gateway_that_started_later_and_to_one_that_ran() {
    let postgres = Nobody::listen();
    let mut world = postgres.wanted().start().await;
    world.define("coach").await;
    let mut answers = Vec::new();
    for words in ["early", "late"] {
        let first = ask(&world, "coach", "kitchen", words).await.unwrap();
        if words == "early" {
            world.stack.restart(Service::Gateway, 0).await.unwrap();
            postgres.is_left_alone(&world, "coach").await;
        }
        answers.push((first, words));
    }
    for (first, words) in answers {
        let answer = ask(&world, "coach", "kitchen", words).await.unwrap();
        assert_eq!((&answer.1["id"], replied(answer.clone())), (&first.1["id"], format!("You said: {words}")));
    }
    assert!(!postgres.was_asked(), "Postgres was asked");
    world.end().await;
}

#[tokio::test]
async fn where_nobody_is_asked_for_a_key_an_unknown_path_is_not_found() {
    let world = Wanted::new(USUAL).start().await;
    for key in [None, Some("Bearer sk-of-another-api"), Some("Basic YW5uOng=")] {
        let request = world.http.get(world.url("/v1/nothing"));
        let request = if let Some(key) = key { request.header("authorization", key) } else { request };
        let answer = request.send().await.unwrap();
        assert_eq!((answer.status().as_u16(), key), (404, key));
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        assert_eq!(answer.json::<Value>().await.unwrap()["type"], "urn:kairo:problem:unknown-path");
    }
    // A ticket that stands for nothing neither.
    assert_eq!(world.get("/v1/nothing?ticket=x").await.0, 404);
    // Where something is, a key that is not in force is refused.
    let wrong = world.http.get(world.url("/v1/agents")).bearer_auth("sk-of-another-api").send().await.unwrap();
    assert_eq!(wrong.status(), 401);
    world.end().await;
}
