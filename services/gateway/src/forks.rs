//! Forks of agents that the gateway hosts: they go on apart from the log, in memory, and nothing of them reaches anybody.
//!
//! [`kairo_fork`] runs them. How many there are, for how long and how far they go is bounded here ([`limits`]): each is driven by a task
//! of its own ([`hosted`]), which keeps what happened ([`told`]) for whoever comes back; calls that nobody has an answer to wait for a
//! person ([`questions`]), and models are asked so often, and for so much money, and no more ([`models`]).

pub mod hosted;
mod limits;
mod models;
mod questions;
pub mod told;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kairo_agent_runtime::ModelsConfig;
use kairo_core::ids::Name;
use kairo_fork::{Fork, ForkError, Keep, Settings, mocks::Mocks};
use kairo_replay::cut::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::{
    hosted::Hosted,
    limits::Limits,
    models::{Bounded, Priced},
    questions::Questions,
    told::Telling,
};
use crate::{config::GatewayConfig, problem::Problem};

/// Who talks where nobody has yet, as in `kairo fork`.
const NOBODY: &str = "you";
/// Forks that are named to whom there is no place for.
const NAMED: usize = 8;

type Open = Arc<Mutex<BTreeMap<Uuid, Arc<Hosted>>>>;

/// All that are open.
pub struct Forks {
    open: Open,
    seats: Arc<Semaphore>,
    /// How many there may be.
    max: usize,
    limits: Limits,
    /// None where no model is asked.
    models: Option<Priced>,
    ending: CancellationToken,
}

/// What a fork begins with beside the log.
#[derive(Debug)]
pub struct Wish {
    pub at: Option<u64>,
    pub pending: Keep,
    pub prompt: Option<String>,
    /// Who talks; none for whoever spoke with the agent last.
    pub user: Option<Name>,
}

impl Forks {
    pub fn new(config: &GatewayConfig, models: &ModelsConfig, ending: CancellationToken) -> Self {
        let GatewayConfig { prices, currency, max_forks, .. } = config;
        let priced = || Priced { models: models.clone(), prices: prices.clone(), currency: currency.clone() };
        Self {
            open: Open::default(),
            seats: Arc::new(Semaphore::new(*max_forks)),
            max: *max_forks,
            limits: Limits::of(config),
            models: config.fork_models.then(priced),
            ending,
        }
    }

    /// A place for one more.
    pub fn seat(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.seats.clone().try_acquire_owned().map_err(|_| Problem::too_many_at_once(&self.no_seat()))
    }

    /// Why there is no place, and who has them.
    fn no_seat(&self) -> String {
        let named: Vec<String> = self.each(|fork| {
            let hosted::About { fork, agent, at, .. } = fork.about();
            format!("{fork} of {agent} at {at}")
        });
        let named = named.get(..NAMED).unwrap_or(&named).join(", ");
        format!(
            "{} forks are open or begin, as many as may at once (gateway.max_forks): {named}; end one of them, or wait until nobody \
             has spoken in one for {}",
            self.max,
            self.limits.idle_told()
        )
    }

    /// How many there may be.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Something of each that is open, from the one that was begun first.
    pub fn each<T>(&self, of: impl Fn(&Hosted) -> T) -> Vec<T> {
        lock(&self.open).values().map(|fork| of(fork)).collect()
    }

    /// Lets an agent go on from the cut.
    pub async fn begin(
        &self,
        seat: OwnedSemaphorePermit,
        agent: Name,
        (parts, holds): (Parts, BTreeSet<String>),
        wish: Wish,
    ) -> Result<Arc<Hosted>, ForkError> {
        let user = wish.user.or_else(|| parts.spoke_last(&agent)).or_else(|| Name::parse(NOBODY).ok());
        let user = user.unwrap_or_else(|| agent.clone());
        let (telling, limits) = (Telling::new(self.limits.bytes), self.limits);
        let questions = Questions::new(telling.clone());
        let (at, in_flight) = (parts.at, parts.pending.len());
        let config = kairo_agent_runtime::Config {
            models: self.models.as_ref().map(|priced| priced.models.clone()).unwrap_or_default(),
            ..kairo_agent_runtime::Config::default()
        };
        let room = config.agent_runtime.max_loaded_bytes;
        let models = self.models.as_ref().map(|priced| Arc::new(Bounded::new(priced, room, limits)));
        let settings = Settings {
            pending: wish.pending,
            mocks: Mocks::default(),
            asked: Some(Arc::new(questions.clone())),
            config,
            models: models.clone().map(|models| models as _),
            prompt: wish.prompt,
        };
        let fork = Fork::begin(parts, settings).await?;
        let about = hosted::About { fork: Uuid::now_v7(), agent, at, user, in_flight, models: models.is_some() };
        let parts = hosted::Parts { about, telling, questions, limits, models, holds };
        let (hosted, driver) = Hosted::new(parts, fork, &self.ending);
        let hosted = Arc::new(hosted);
        let (id, open) = (hosted.about().fork, self.open.clone());
        lock(&open).insert(id, hosted.clone());
        tokio::spawn(async move {
            let ended = driver.run().await;
            // Whoever hears that it has ended, or no longer finds it in the list, finds its seat free.
            drop(seat);
            lock(&open).remove(&id);
            ended.tell();
        });
        Ok(hosted)
    }

    /// Ends those that hold words of a user who is to be forgotten; of those that were begun since it was ordered only where that is
    /// not carried out yet.
    pub fn forget(&self, user: &Name, ordered: Timestamp, is_done: bool) {
        for fork in lock(&self.open).values() {
            if fork.holds(user) && (!is_done || fork.began_before(ordered)) {
                fork.end("a user is forgotten whose words it held");
            }
        }
    }

    /// One that is open.
    pub fn get(&self, id: Uuid) -> Result<Arc<Hosted>, Problem> {
        let gone = "there is no such fork, or none any more: it was ended, nobody spoke in it for gateway.fork_idle_ms, it reached \
                    gateway.fork_bytes, or it was in the memory of another gateway, or of this one before it started; fork again at \
                    the same place";
        lock(&self.open).get(&id).cloned().ok_or_else(|| Problem::not_found(gone))
    }
}

fn lock(open: &Open) -> MutexGuard<'_, BTreeMap<Uuid, Arc<Hosted>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
