//! Building the read model, as the gateway tells of it.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use reqwest::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Outcome;

/// The interval at which the progress is queried.
const PACE: Duration = Duration::from_millis(50);
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// A client of the gateway for the state of the read model.
pub struct Registry {
    http: Client,
    url: String,
}

/// The durations of a rebuild's phases, in seconds, in the order of their names in the registry.
#[derive(Debug, Serialize)]
pub struct Rebuild {
    /// Messages that it took in.
    pub messages: u64,
    pub filling: f64,
    pub indexing: f64,
    pub comparing: f64,
    /// From asking until it was live.
    pub all: f64,
}

impl fmt::Display for Rebuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, filling, indexing, comparing, all } = self;
        let rate = *messages as f64 / all;
        write!(
            f,
            "{all:.1} s ({rate:.0} messages/s): {filling:.1} s filling, {indexing:.1} indexing, {comparing:.1} comparing"
        )
    }
}

#[derive(Deserialize)]
struct Projections {
    projections: Vec<Projection>,
}

#[derive(Deserialize)]
struct Projection {
    name: String,
    position: Option<u64>,
    generations: Vec<Generation>,
}

#[derive(Deserialize)]
struct Generation {
    generation: i64,
    state: String,
    position: u64,
    reason: String,
}

impl Registry {
    pub fn of(gateway: &str) -> Outcome<Self> {
        Ok(Self { http: Client::builder().no_proxy().build()?, url: format!("{gateway}/v1/projections") })
    }

    /// Waits until the first generation is live and holds so many messages.
    pub async fn first(&self, messages: u64) -> Outcome<Rebuild> {
        let begun = Instant::now();
        let number = loop {
            // Nobody has made the registry yet.
            let tables = self.tables().await.ok();
            if let Some(first) = tables.and_then(|tables| tables.generations.into_iter().next()) {
                break first.generation;
            }
            patient(begun)?;
            tokio::time::sleep(PACE).await;
        };
        let (built, _) = self.built(number, begun).await?;
        while self.tables().await?.position.unwrap_or_default() < messages {
            patient(begun)?;
            tokio::time::sleep(PACE).await;
        }
        Ok(Rebuild { messages, all: begun.elapsed().as_secs_f64(), ..built })
    }

    /// Has another generation built, and removes the one before it.
    pub async fn rebuild(&self) -> Outcome<Rebuild> {
        let begun = Instant::now();
        let asked = self.http.post(format!("{}/read-model/rebuild", self.url)).json(&json!({})).send().await?;
        let asked: Value = asked.error_for_status()?.json().await?;
        let number = asked.pointer("/rebuilding/0/generation").and_then(Value::as_i64).ok_or("no generation")?;
        let (built, kept) = self.built(number, begun).await?;
        for generation in kept {
            let url = format!("{}/read-model/generations/{generation}", self.url);
            self.http.delete(url).send().await?.error_for_status()?;
        }
        Ok(built)
    }

    /// Waits until a generation is live. How long it was in each state, and those that were live before.
    async fn built(&self, number: i64, begun: Instant) -> Outcome<(Rebuild, Vec<i64>)> {
        let mut spent: BTreeMap<String, f64> = BTreeMap::new();
        let mut before = begun;
        let (messages, kept) = loop {
            let tables = self.tables().await?;
            let built = tables.generations.iter().find(|it| it.generation == number).ok_or("the generation is gone")?;
            *spent.entry(built.state.clone()).or_default() += before.elapsed().as_secs_f64();
            before = Instant::now();
            match built.state.as_str() {
                "live" => {
                    let kept = tables.generations.iter().filter(|it| it.state == "kept");
                    break (built.position, kept.map(|it| it.generation).collect());
                }
                "failed" | "differing" => return Err(format!("it is {}: {}", built.state, built.reason).into()),
                _ => {}
            }
            patient(begun)?;
            tokio::time::sleep(PACE).await;
        };
        let phase = |state: &str| spent.get(state).copied().unwrap_or_default();
        let (filling, indexing, comparing) = (phase("filling"), phase("indexing"), phase("comparing"));
        Ok((Rebuild { messages, filling, indexing, comparing, all: begun.elapsed().as_secs_f64() }, kept))
    }

    async fn tables(&self) -> Outcome<Projection> {
        let all: Projections = self.http.get(&self.url).send().await?.error_for_status()?.json().await?;
        let tables = all.projections.into_iter().find(|projection| projection.name == "read-model");
        Ok(tables.ok_or("the gateway does not know of the tables")?)
    }
}

fn patient(begun: Instant) -> Outcome<()> {
    if begun.elapsed() > PATIENCE { Err("it does not come to an end".into()) } else { Ok(()) }
}
