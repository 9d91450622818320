//! The limits of forks: each is reached, and the caller is told which one it is and how to set it.

use kairo_local::Service;
use serde_json::{Value, json};

use super::{Stream, Told, at_rest, from, say, standing, world, world_of};
use crate::{
    forgetting,
    keys::Caller,
    world::{Wanted, scenario::USUAL},
};

const MODELS: (&str, &str) = ("KAIRO_GATEWAY__FORK_MODELS", "true");

#[tokio::test]
async fn a_fork_ends_in_which_nobody_speaks_and_leaves_its_place() {
    let (world, operator) = world(&[("KAIRO_GATEWAY__FORK_IDLE_MS", "1000"), ("KAIRO_GATEWAY__MAX_FORKS", "1")]).await;
    let (id, mut stream) = at_rest(&operator).await;
    assert_eq!(stream.why().await, "nobody spoke in it for 1000 ms (gateway.fork_idle_ms)");
    let (status, problem) = operator.post(&format!("/v1/forks/{id}/messages"), json!({ "text": "hello?" })).await;
    assert_eq!(
        (status, problem["detail"].as_str().unwrap().contains("gateway.fork_idle_ms")),
        (404, true),
        "{problem}"
    );
    at_rest(&operator).await;
    world.end().await;
}

#[tokio::test]
async fn a_fork_ends_in_which_more_happens_than_is_kept() {
    let (world, operator) = world(&[MODELS, ("KAIRO_GATEWAY__FORK_BYTES", "65536")]).await;
    let (id, mut stream) = at_rest(&operator).await;
    let ended = loop {
        say(&operator, &id, &"a".repeat(20_000)).await;
        let told = stream.until_one_of(&["fork.at_rest", "fork.ended"]).await;
        let (_, name, data) = told.last().unwrap().clone();
        if name == "fork.ended" {
            break data;
        }
        assert!(standing(&operator, &id).await["used"]["bytes"].as_u64().unwrap() <= 65_536);
    };
    assert_eq!(ended, json!({ "why": "more has happened in it than 65536 bytes (gateway.fork_bytes)" }));
    world.end().await;
}

/// Says something again and again, until a model is no longer asked; why, and how often models were.
async fn until_not_asked(operator: &Caller, id: &str, stream: &mut Stream) -> (String, usize) {
    let mut all: Vec<Told> = Vec::new();
    while !from(&all, "model").contains(&"not_asked") {
        say(operator, id, &format!("number {}", all.len())).await;
        all.extend(stream.until("fork.at_rest").await);
    }
    let not_asked = all.iter().find(|(_, _, data)| data["answer"]["from"] == "not_asked").unwrap();
    let asked = from(&all, "model").into_iter().filter(|from| *from == "asked").count();
    (not_asked.2["answer"]["why"].as_str().unwrap().to_owned(), asked)
}

#[tokio::test]
async fn a_fork_asks_models_so_often_and_no_more() {
    let (world, operator) = world(&[MODELS, ("KAIRO_GATEWAY__FORK_MODEL_CALLS", "2")]).await;
    let (id, mut stream) = at_rest(&operator).await;
    let before = world.model_requests().await.len();
    let (why, asked) = until_not_asked(&operator, &id, &mut stream).await;
    assert!(why.contains("2 calls of models (gateway.fork_model_calls)"), "{why}");
    assert_eq!((asked, world.model_requests().await.len() - before), (2, 2));
    let standing = standing(&operator, &id).await;
    assert_eq!((&standing["used"]["model_calls"], &standing["limits"]["model_calls"]), (&json!(2), &json!(2)));
    assert_eq!(standing["used"]["cost"], Value::Null, "its price is not known: {standing}");
    world.end().await;
}

#[tokio::test]
async fn a_fork_spends_no_more_on_models_than_it_may() {
    // What a call may cost at most is about half of it, and what one costs far less.
    let prices = json!({ "*": { "input": 1000, "output": 1 } }).to_string();
    let priced = [MODELS, ("KAIRO_GATEWAY__PRICES", prices.as_str()), ("KAIRO_GATEWAY__CURRENCY", "EUR")];
    let limits = [priced.as_slice(), &[("KAIRO_GATEWAY__FORK_BUDGET", "5")]].concat();
    let (world, operator) = world_of(Wanted::new(USUAL), &limits).await;
    let (id, mut stream) = at_rest(&operator).await;
    let none = standing(&operator, &id).await;
    assert_eq!(
        (&none["used"]["cost"], &none["limits"]["cost"], &none["currency"]),
        (&json!("0"), &json!("5"), &json!("EUR"))
    );
    let before = world.model_requests().await.len();
    let (why, asked) = until_not_asked(&operator, &id, &mut stream).await;
    assert!(why.contains("5 EUR on models (gateway.fork_budget)"), "{why}");
    assert!(asked > 0 && world.model_requests().await.len() - before == asked, "{asked}: {why}");
    let spent = standing(&operator, &id).await["used"]["cost"].as_str().unwrap().parse::<f64>().unwrap();
    assert!(spent > 0.0 && spent <= 5.0, "{spent}");
    world.end().await;
}

#[tokio::test]
async fn a_fork_ends_at_once_that_holds_words_of_somebody_who_is_forgotten() {
    let world = forgetting::wanted().env(Service::Gateway, "KAIRO_GATEWAY__MAX_FORKS", "3").start().await;
    for agent in [forgetting::AGENT, "other"] {
        world.define(agent).await;
    }
    for (user, agent) in [("ann", forgetting::AGENT), ("bob", forgetting::AGENT), ("bob", "other")] {
        world.ask_as(user, agent, &format!("hello {}", forgetting::MARK)).await;
    }
    let anybody = Caller::new(&world, 0, None);
    let begin = async |agent: &str, user: &str| {
        let (status, begun) = anybody.post(&format!("/v1/agents/{agent}/forks"), json!({ "user": user })).await;
        assert_eq!(status, 201, "{begun}");
        begun["fork"].as_str().unwrap().to_owned()
    };
    let [holds, of_other, spoken_by] =
        [begin(forgetting::AGENT, "bob").await, begin("other", "bob").await, begin("other", "ann").await];
    let mut ending = [Stream::open(&anybody, &holds, None).await, Stream::open(&anybody, &spoken_by, None).await];
    assert_eq!(world.post("/v1/users/ann/forget", &json!({})).await.0, 202);
    for stream in &mut ending {
        assert_eq!(stream.why().await, "a user is forgotten whose words it held");
    }
    world.forgotten("ann").await;
    let open = anybody.get("/v1/forks").await.1;
    let open: Vec<&str> = open["forks"].as_array().unwrap().iter().filter_map(|fork| fork["fork"].as_str()).collect();
    assert_eq!(open, [of_other.as_str()], "nothing of ann's is in it");
    world.end().await;
}
