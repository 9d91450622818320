//! The choice of a gateway for requests: all in turn, or, as with a load balancer, those that report to be ready.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::Client;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Outcome;

/// Between two looks who is ready.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The longest that such an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Addresses of gateways, and who of them is ready.
#[derive(Clone)]
pub struct Balancer {
    gateways: Arc<Vec<Gateway>>,
    next: Arc<AtomicUsize>,
}

struct Gateway {
    address: String,
    is_ready: AtomicBool,
}

impl Balancer {
    pub fn new(addresses: Vec<String>) -> Self {
        let gateways = addresses.into_iter().map(|address| Gateway { address, is_ready: AtomicBool::new(true) });
        Self { gateways: Arc::new(gateways.collect()), next: Arc::default() }
    }

    /// Looks from time to time who is ready, until it is over. Without it, all of them are.
    pub async fn look(self, over: CancellationToken) -> Outcome<()> {
        let http = Client::builder().no_proxy().timeout(PATIENCE).build()?;
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while over.run_until_cancelled(looks.tick()).await.is_some() {
            for gateway in self.gateways.iter() {
                let answer = http.get(format!("http://{}/readyz", gateway.address)).send().await;
                let is_ready = answer.is_ok_and(|answer| answer.status().is_success());
                gateway.is_ready.store(is_ready, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Any that is ready, or any.
    pub fn next(&self) -> &str {
        let from = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.gateways.len();
        let in_turn = || (0..count).filter_map(|step| self.gateways.get((from + step) % count));
        let chosen = in_turn().find(|gateway| gateway.is_ready.load(Ordering::Relaxed)).or_else(|| in_turn().next());
        chosen.map_or("", |gateway| gateway.address.as_str())
    }
}
