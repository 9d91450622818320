//! Forks of agents that the gateway hosts: they run apart from the log, in memory, without any effect outside.
//!
//! [`kairo_fork`] runs them. This module bounds their number, lifetime and size ([`limits`]). Each fork is driven by a
//! task of its own ([`hosted_fork`]), which keeps its history ([`fork_history`]) for clients that come back; tool calls without a
//! known result wait for a person ([`questions`]), and model calls are bounded in number and cost ([`models`]).

pub mod fork_history;
pub mod hosted_fork;
mod limits;
mod models;
mod questions;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kairo_agent_runtime::ModelsConfig;
use kairo_core::ids::Name;
use kairo_fork::{Fork, ForkError, ForkSettings, PendingFate, mocks::Mocks};
use kairo_replay::cut::ForkParts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::{
    fork_history::ForkHistory,
    hosted_fork::HostedFork,
    limits::ForkLimits,
    models::{BudgetedModels, PricedModels},
    questions::ForkQuestions,
};
use crate::{config::GatewayConfig, problem::Problem};

/// The user of a fork whose agent nobody has talked to yet, as in `kairo fork`.
const NOBODY: &str = "you";
/// The most open forks listed in the error for a client that finds no free seat.
const NAMED: usize = 8;

type OpenForks = Arc<Mutex<BTreeMap<Uuid, Arc<HostedFork>>>>;

/// The open forks of this gateway.
pub struct HostedForks {
    open: OpenForks,
    seats: Arc<Semaphore>,
    /// The most forks that may be open at once.
    max: usize,
    limits: ForkLimits,
    /// The models with their prices; none if forks may not ask any.
    models: Option<PricedModels>,
    ending: CancellationToken,
}

/// The options of a new fork.
#[derive(Debug)]
pub struct ForkRequest {
    pub at: Option<u64>,
    pub pending: PendingFate,
    pub prompt: Option<String>,
    /// The user who talks; none for the one who talked to the agent last.
    pub user: Option<Name>,
}

impl HostedForks {
    pub fn new(config: &GatewayConfig, models: &ModelsConfig, ending: CancellationToken) -> Self {
        let GatewayConfig { prices, currency, max_forks, .. } = config;
        let priced = || PricedModels { models: models.clone(), prices: prices.clone(), currency: currency.clone() };
        Self {
            open: OpenForks::default(),
            seats: Arc::new(Semaphore::new(*max_forks)),
            max: *max_forks,
            limits: ForkLimits::from_config(config),
            models: config.fork_models.then(priced),
            ending,
        }
    }

    /// Takes a seat for one more fork; an error if all are taken.
    pub fn take_seat(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.seats.clone().try_acquire_owned().map_err(|_| Problem::too_many_at_once(&self.describe_full()))
    }

    /// Describes why there is no free seat, with the forks that hold them.
    fn describe_full(&self) -> String {
        let named: Vec<String> = self.map_open(|fork| {
            let hosted_fork::ForkDescription { fork, agent, at, .. } = fork.description();
            format!("{fork} of {agent} at {at}")
        });
        let named = named.get(..NAMED).unwrap_or(&named).join(", ");
        format!(
            "{} forks are open or begin, as many as may at once (gateway.max_forks): {named}; end one of them, or wait until nobody \
             has spoken in one for {}",
            self.max,
            self.limits.describe_idle()
        )
    }

    /// The most forks that may be open at once.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Maps each open fork, oldest first.
    pub fn map_open<T>(&self, of: impl Fn(&HostedFork) -> T) -> Vec<T> {
        lock_open(&self.open).values().map(|fork| of(fork)).collect()
    }

    /// Begins a fork of the agent at the cut and spawns its driver.
    pub async fn begin(
        &self,
        seat: OwnedSemaphorePermit,
        agent: Name,
        (parts, holds): (ForkParts, BTreeSet<String>),
        wish: ForkRequest,
    ) -> Result<Arc<HostedFork>, ForkError> {
        let user = wish.user.or_else(|| parts.last_speaker(&agent)).or_else(|| Name::parse(NOBODY).ok());
        let user = user.unwrap_or_else(|| agent.clone());
        let telling = ForkHistory::new(self.limits.bytes);
        let limits = self.limits;
        let questions = ForkQuestions::new(telling.clone());
        let at = parts.at;
        let in_flight = parts.pending.len();
        let config = kairo_agent_runtime::Config {
            models: self.models.as_ref().map(|priced| priced.models.clone()).unwrap_or_default(),
            ..kairo_agent_runtime::Config::default()
        };
        let room = config.agent_runtime.max_loaded_bytes;
        let models = self.models.as_ref().map(|priced| Arc::new(BudgetedModels::new(priced, room, limits)));
        let settings = ForkSettings {
            pending: wish.pending,
            mocks: Mocks::default(),
            asked: Some(Arc::new(questions.clone())),
            config,
            models: models.clone().map(|models| models as _),
            prompt: wish.prompt,
        };
        let fork = Fork::start(parts, settings).await?;
        let about =
            hosted_fork::ForkDescription { fork: Uuid::now_v7(), agent, at, user, in_flight, models: models.is_some() };
        let parts = hosted_fork::HostedForkParts { about, telling, questions, limits, models, holds };
        let (hosted, driver) = HostedFork::new(parts, fork, &self.ending);
        let hosted = Arc::new(hosted);
        let id = hosted.description().fork;
        let open = self.open.clone();
        lock_open(&open).insert(id, hosted.clone());
        tokio::spawn(async move {
            let ended = driver.run().await;
            // Whoever hears that it has ended, or no longer finds it in the list, finds its seat free.
            drop(seat);
            lock_open(&open).remove(&id);
            ended.announce_end();
        });
        Ok(hosted)
    }

    /// Ends the forks that hold words of a user who is to be forgotten. Once the order is carried out, forks begun
    /// after it are spared.
    pub fn end_for_user(&self, user: &Name, ordered: Timestamp, is_done: bool) {
        for fork in lock_open(&self.open).values() {
            if fork.holds_words_of(user) && (!is_done || fork.began_before(ordered)) {
                fork.end("a user is forgotten whose words it held");
            }
        }
    }

    /// Returns an open fork; an error if there is none with this id.
    pub fn get(&self, id: Uuid) -> Result<Arc<HostedFork>, Problem> {
        let gone = "there is no such fork, or none any more: it was ended, nobody spoke in it for gateway.fork_idle_ms, it reached \
                    gateway.fork_bytes, or it was in the memory of another gateway, or of this one before it started; fork again at \
                    the same place";
        lock_open(&self.open).get(&id).cloned().ok_or_else(|| Problem::not_found(gone))
    }
}

fn lock_open(open: &OpenForks) -> MutexGuard<'_, BTreeMap<Uuid, Arc<HostedFork>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
