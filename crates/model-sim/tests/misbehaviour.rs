//! Misbehaviour over HTTP: what a client sees of it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

use std::net::SocketAddr;

use kairo_model_sim::{Config, Scenario, bind, presets};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A simulator that plays this until it is dropped.
struct Simulator {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Simulator {
    async fn start(scenario: &str, settings: impl FnOnce(&mut Config)) -> Self {
        let scenario = Scenario::parse(scenario).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let mut config = Config::loopback(scenario);
        settings(&mut config);
        let server = bind(config).await.expect("it listens");
        let address = server.address();
        let (stop, stopping) = oneshot::channel::<()>();
        tokio::spawn(server.run(async move { drop(stopping.await) }));
        Self { address, _stop: stop }
    }

    async fn ask(&self, text: &str) -> reqwest::Response {
        let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": text }] });
        let url = format!("http://{}/v1/chat/completions", self.address);
        reqwest::Client::new().post(url).json(&body).send().await.expect("it answers")
    }
}

#[tokio::test]
async fn an_answer_is_sent_as_it_is_written_out() {
    let simulator = Simulator::start(&presets::scenario(), |_| ()).await;
    let page = simulator.ask("please #html403").await;
    assert_eq!(
        (page.status().as_u16(), &page.headers()["content-type"]),
        (403, &"text/html".parse().expect("a value"))
    );
    let busy = simulator.ask("please #retryafter").await;
    assert_eq!((busy.status().as_u16(), &busy.headers()["retry-after"]), (429, &"3".parse().expect("a value")));
    let split = simulator.ask("please #utf8split").await.text().await.expect("it is whole");
    assert!(split.contains("日本語 😀 конец") && split.ends_with("[DONE]\n\n"), "{split}");
    assert!(simulator.ask("please #cut").await.bytes().await.is_err(), "the connection breaks");
    let spare = simulator.ask("hello").await.text().await.expect("it is whole");
    assert!(spare.contains("hello"), "{spare}");

    let counts = reqwest::get(format!("http://{}/v1/counts?rules=true", simulator.address)).await.expect("it answers");
    let counts: Value = counts.json().await.expect("it is JSON");
    assert_eq!((&counts["rules"]["cut/1"], &counts["rules"]["hello"]), (&json!(1), &json!(1)), "{counts}");
}

const LONG: &str = "rules: [{ name: long, reply: 'one two three four five six seven eight nine ten' }]";

#[tokio::test]
async fn misbehaviour_at_random_is_the_same_with_the_same_seed_and_fails_twice_at_most() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let simulator = Simulator::start(LONG, |config| {
            config.misbehaviour = "1".parse().expect("it is a share");
            config.seed = 5;
        })
        .await;
        let mut statuses = Vec::new();
        for _ in 0..40 {
            statuses.push(simulator.ask("the same words").await.status().as_u16());
        }
        let refused = statuses.iter().filter(|status| **status != 200).count();
        assert!(refused <= 2, "{statuses:?}");
        runs.push(statuses);
    }
    assert_eq!(runs[0], runs[1]);
}
