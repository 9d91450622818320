//! A fixed mix of queries, at a fixed rate: each is asked when its time has come, whatever became of those before.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::Client;
use tokio::{
    task::JoinSet,
    time::{Instant as Due, sleep_until},
};

use crate::Outcome;
use kairo_tests::multiply::{AGENT, USER, named};

/// Time for which queries are measured at rest.
const WHILE: Duration = Duration::from_secs(20);
/// Time before that, so that whatever is read often is in memory.
const WARM_UP: Duration = Duration::from_secs(5);
/// Longest time that a query may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The mix: each is asked as often.
pub const MIX: [&str; 10] = [
    "/v1/conversations/{agent}?user={user}&latest=50",
    "/v1/threads?agent={agent}&limit=20",
    "/v1/events?agent={agent}&latest=50",
    "/v1/tasks?agent={agent}&limit=20",
    "/v1/inbox?user={user}",
    "/v1/actions?agent={agent}",
    "/v1/processes?agent={agent}&limit=20",
    "/v1/memories?agent={agent}&q=report",
    "/v1/memories?user={user}&scope=all&limit=20",
    "/v1/agents?limit=50",
];

/// The client that sends the queries.
pub struct Asking {
    http: Client,
    gateway: Arc<str>,
    copies: u32,
    pace: Duration,
}

/// Latencies, shortest first, and how many queries were not answered.
#[derive(Default)]
pub struct Latencies {
    pub answered: Vec<Duration>,
    pub failed: usize,
}

impl Asking {
    pub fn of(gateway: &str, copies: u32, per_s: u64) -> Outcome<Self> {
        let http = Client::builder().no_proxy().tcp_nodelay(true).timeout(PATIENCE).build()?;
        let pace = Duration::from_secs(1) / u32::try_from(per_s)?;
        Ok(Self { http, gateway: gateway.into(), copies: copies.max(1), pace })
    }

    pub async fn warm_up(&self) -> Outcome<()> {
        self.until(tokio::time::sleep(WARM_UP)).await.map(drop)
    }

    pub async fn for_a_while(&self) -> Outcome<Latencies> {
        Ok(self.until(tokio::time::sleep(WHILE)).await?.1)
    }

    /// Asks for as long as something else takes.
    pub async fn during<T>(&self, other: impl Future<Output = Outcome<T>>) -> Outcome<(T, Latencies)> {
        let (done, latencies) = self.until(other).await?;
        Ok((done?, latencies))
    }

    async fn until<T>(&self, end: impl Future<Output = T>) -> Outcome<(T, Latencies)> {
        tokio::pin!(end);
        let mut asked = JoinSet::new();
        let begun = Due::now();
        let mut number = 0;
        let done = loop {
            let due = begun + self.pace * number;
            tokio::select! {
                done = &mut end => break done,
                () = sleep_until(due) => {}
            }
            asked.spawn(ask(self.http.clone(), self.query(number), due.into_std()));
            number += 1;
        };
        let mut latencies = Latencies::default();
        while let Some(answer) = asked.join_next().await {
            match answer? {
                Some(latency) => latencies.answered.push(latency),
                None => latencies.failed += 1,
            }
        }
        latencies.answered.sort_unstable();
        Ok((done, latencies))
    }

    /// Of another agent each time, in an order that has nothing to do with where its rows are.
    fn query(&self, number: u32) -> String {
        let kind = MIX.get(number as usize % MIX.len()).copied().unwrap_or_default();
        let copy = number.wrapping_mul(7_919) % self.copies;
        let name = |name: &str, of: u32| format!("{}-{of:02}", named(name, copy));
        let path = kind.replace("{agent}", &name(AGENT, number % 16)).replace("{user}", &name(USER, number % 6));
        format!("{}{path}", self.gateway)
    }
}

/// Sends a query; returns the time from when it was due until the whole answer was there, or none if it was refused.
async fn ask(http: Client, url: String, due: Instant) -> Option<Duration> {
    let answer = http.get(&url).send().await.ok()?;
    if !answer.status().is_success() {
        eprintln!("bench: {} to {url}", answer.status());
        return None;
    }
    answer.bytes().await.ok()?;
    Some(due.elapsed())
}
