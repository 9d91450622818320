//! The read model as those see it who ask: rebuilt during the load, watched all the while, and held against a clean
//! rebuild in the end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Outcome, journal::locked, machine::administrator};

/// The longest that an answer is waited for; a frozen gateway gives none.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks.
const PACE: Duration = Duration::from_millis(50);
/// The longest that a rebuild may take when nothing strikes any more.
const BUILT_WITHIN: Duration = Duration::from_secs(120);
/// The longest that a digest may take.
const DIGESTED_WITHIN: Duration = Duration::from_secs(60);

/// The read model, through the gateways.
#[derive(Clone)]
pub struct Tables {
    http: Client,
    gateways: Arc<Vec<String>>,
    /// The occasions on which the position went back.
    back: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Deserialize)]
struct Generation {
    generation: i64,
    state: String,
    reason: String,
}

impl Tables {
    pub fn new(gateways: Vec<String>) -> Outcome<Self> {
        let http = administrator(PATIENCE)?;
        Ok(Self { http, gateways: Arc::new(gateways), back: Arc::default() })
    }

    /// Asks for another generation; its number.
    pub async fn rebuild(&self) -> Outcome<i64> {
        let mut last: Box<dyn std::error::Error + Send + Sync> = "there is no gateway".into();
        for gateway in self.gateways.iter() {
            let url = format!("http://{gateway}/v1/projections/read-model/rebuild");
            let asked = self.http.post(url).json(&json!({})).send().await;
            match asked.and_then(reqwest::Response::error_for_status) {
                Ok(answer) => {
                    let answer: Value = answer.json().await?;
                    let number = answer.pointer("/rebuilding/0/generation").and_then(Value::as_i64);
                    return number.ok_or_else(|| format!("no generation in {answer}").into());
                }
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }

    /// One of them.
    pub fn gateway(&self) -> &str {
        self.gateways.first().map(String::as_str).unwrap_or_default()
    }

    /// Asks for a promotion until it is granted, and tells why it is not; the epoch that is in force then, and the one before.
    pub async fn promote(&self, tell: impl Fn(&str)) -> (u64, u64) {
        let mut last = String::new();
        for gateway in self.gateways.iter().cycle() {
            let asked = self.http.post(format!("http://{gateway}/v1/fleet/promote")).json(&json!({})).send().await;
            let answer = match asked {
                Ok(answer) => answer.json().await.unwrap_or_default(),
                Err(error) => json!({ "detail": error.to_string() }),
            };
            let told = |field: &str| answer.get(field).and_then(Value::as_u64);
            if let (Some(epoch), Some(before)) = (told("epoch"), told("before")) {
                return (epoch, before);
            }
            let why = answer.get("detail").and_then(Value::as_str).unwrap_or_default().to_owned();
            if why != last {
                tell(&why);
                last = why;
            }
            sleep(PACE).await;
        }
        unreachable!("there is a gateway, which is asked again and again")
    }

    /// Asks one gateway after the other, until it is over, and writes down where the position went back.
    pub async fn watch(self, over: CancellationToken) {
        let mut highest: (u64, String) = Default::default();
        for gateway in self.gateways.iter().cycle() {
            if over.is_cancelled() {
                return;
            }
            if let Some(position) = self.position(gateway).await {
                if position < highest.0 {
                    let text = format!("{} at {} and then {position} at {gateway}", highest.0, highest.1);
                    locked(&self.back).push(text);
                }
                highest = (position, gateway.clone());
            }
            sleep(PACE).await;
        }
    }

    async fn position(&self, gateway: &str) -> Option<u64> {
        let answer = self.http.get(format!("http://{gateway}/v1/agents?limit=1")).send().await.ok()?;
        let answer = answer.error_for_status().ok()?;
        answer.headers().get("kairo-position")?.to_str().ok()?.parse().ok()
    }

    /// Returns the mistakes in the tables, now that nothing happens any more.
    pub async fn judge(&self) -> Outcome<Vec<String>> {
        let mut wrong: Vec<String> =
            locked(&self.back).iter().map(|back| format!("the position went back: {back}")).collect();
        let deadline = Instant::now() + BUILT_WITHIN;
        // One that was begun during the load comes first.
        let clean = loop {
            match self.rebuild().await {
                Ok(generation) => break generation,
                Err(_) if Instant::now() < deadline && self.differing().await?.is_empty() => sleep(PACE).await,
                Err(error) => {
                    wrong.push(format!("no clean rebuild can be begun: {error}"));
                    wrong.extend(self.differing().await?);
                    return Ok(wrong);
                }
            }
        };
        let state = loop {
            let all = self.generations().await?;
            let state = all.get(&clean).map(|it| it.state.clone()).unwrap_or_default();
            if ["live", "failed", "differing", ""].contains(&state.as_str()) || Instant::now() > deadline {
                break state;
            }
            sleep(PACE).await;
        };
        if state != "live" {
            wrong.push(format!("generation {clean}, a clean rebuild, is {state:?}"));
        }
        wrong.extend(self.differing().await?);
        let digests = self.ask("/v1/projections/read-model/digests", DIGESTED_WITHIN).await?;
        if digests.get("equal") != Some(&json!(true)) {
            wrong.push(format!("digests are not equal: {digests}"));
        }
        Ok(wrong)
    }

    /// Those that are not what the live one was, or could not be built.
    async fn differing(&self) -> Outcome<Vec<String>> {
        let all = self.generations().await?;
        let wrong = all.values().filter(|it| ["differing", "failed"].contains(&it.state.as_str()));
        Ok(wrong.map(|it| format!("generation {} is {}: {}", it.generation, it.state, it.reason)).collect())
    }

    async fn generations(&self) -> Outcome<BTreeMap<i64, Generation>> {
        let answer = self.ask("/v1/projections", PATIENCE).await?;
        let all = answer.pointer("/projections/0/generations").cloned().unwrap_or_default();
        let all: Vec<Generation> = serde_json::from_value(all)?;
        Ok(all.into_iter().map(|it| (it.generation, it)).collect())
    }

    async fn ask(&self, path: &str, within: Duration) -> Outcome<Value> {
        let asked = self.http.get(format!("http://{}{path}", self.gateway())).timeout(within).send().await?;
        Ok(asked.error_for_status()?.json().await?)
    }
}
