//! Forks of agents that the gateway hosts: they run apart from the log, in memory, without any effect outside.
//!
//! [`kairo_fork`] runs them. This module bounds their number, lifetime and size ([`limits`]). Each fork is driven by a
//! task of its own ([`hosted`]), which keeps its history ([`told`]) for clients that come back; tool calls without a
//! known result wait for a person ([`questions`]), and model calls are bounded in number and cost ([`models`]).

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

/// The user of a fork whose agent nobody has talked to yet, as in `kairo fork`.
const NOBODY: &str = "you";
/// The most open forks listed in the error for a client that finds no free seat.
const NAMED: usize = 8;

type Open = Arc<Mutex<BTreeMap<Uuid, Arc<Hosted>>>>;

/// The open forks of this gateway.
pub struct Forks {
    open: Open,
    seats: Arc<Semaphore>,
    /// The most forks that may be open at once.
    max: usize,
    limits: Limits,
    /// The models with their prices; none if forks may not ask any.
    models: Option<Priced>,
    ending: CancellationToken,
}

/// The options of a new fork.
#[derive(Debug)]
pub struct Wish {
    pub at: Option<u64>,
    pub pending: Keep,
    pub prompt: Option<String>,
    /// The user who talks; none for the one who talked to the agent last.
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

    /// Takes a seat for one more fork; an error if all are taken.
    pub fn seat(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.seats.clone().try_acquire_owned().map_err(|_| Problem::too_many_at_once(&self.no_seat()))
    }

    /// Describes why there is no free seat, with the forks that hold them.
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

    /// The most forks that may be open at once.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Maps each open fork, oldest first.
    pub fn each<T>(&self, of: impl Fn(&Hosted) -> T) -> Vec<T> {
        lock(&self.open).values().map(|fork| of(fork)).collect()
    }

    /// Begins a fork of the agent at the cut and spawns its driver.
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

    /// Ends the forks that hold words of a user who is to be forgotten. Once the order is carried out, forks begun
    /// after it are spared.
    pub fn forget(&self, user: &Name, ordered: Timestamp, is_done: bool) {
        for fork in lock(&self.open).values() {
            if fork.holds(user) && (!is_done || fork.began_before(ordered)) {
                fork.end("a user is forgotten whose words it held");
            }
        }
    }

    /// Returns an open fork; an error if there is none with this id.
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
