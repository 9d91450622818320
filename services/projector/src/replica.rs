//! A replica: a worker for each generation that is to be followed, and a controller, by what the registry says.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use kairo_core::bus::{Bus, consume::backoff_delay};
use kairo_proto::words::GenerationState;
use kairo_read_model::{GENERATIONS_CHANNEL, READ_MODEL, ReadError, migrate};
use sqlx::{
    FromRow,
    postgres::{PgListener, PgPoolOptions},
    query_as,
};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, timeout},
};

use crate::{
    Config,
    health::ProjectionHealth,
    rebuild_controller::RebuildController,
    transition::BuildState,
    worker::{GenerationTarget, GenerationWorker},
};

/// Longest time that a look into the registry may take, connecting included; then the connection is made again.
const PATIENCE: Duration = Duration::from_secs(10);

const GENERATIONS: &str = "
    SELECT generation, place, state FROM generations
    WHERE projection = $1 AND version = $2 AND (log IS NULL OR log = $3) ORDER BY generation";

#[derive(FromRow)]
struct RegisteredGeneration {
    generation: i64,
    #[sqlx(rename = "place")]
    schema: String,
    state: String,
}

pub struct ProjectorReplica {
    bus: Bus,
    config: Arc<Config>,
    health: ProjectionHealth,
    wake: watch::Sender<()>,
    /// Everybody at work; they end with this.
    tasks: JoinSet<()>,
    workers: BTreeMap<i64, AbortHandle>,
    has_steward: bool,
}

impl ProjectorReplica {
    pub fn new(bus: &Bus, config: Config, health: ProjectionHealth) -> Self {
        Self {
            bus: bus.clone(),
            config: Arc::new(config),
            health,
            wake: watch::channel(()).0,
            tasks: JoinSet::new(),
            workers: BTreeMap::new(),
            has_steward: false,
        }
    }

    /// Works for as long as it is not dropped, which may be anywhere: what was not committed is done again by others.
    pub async fn run(&mut self) -> Infallible {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let Err(error) = self.watch_registry().await;
            self.health.set_live_generation(None);
            failures = if began.elapsed() > PATIENCE { 1 } else { failures + 1 };
            tracing::warn!(%error, failures, "the registry of read models cannot be read, trying again");
            sleep(backoff_delay(&self.bus.limits, failures)).await;
        }
    }

    /// Has the registry looked at for as long as that can be done.
    async fn watch_registry(&mut self) -> Result<Infallible, ReadError> {
        migrate(&self.config.postgres).await?;
        // A pool of its own, which keeps nothing of the connection before.
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let pool = pool.connect_lazy_with(self.config.postgres.connect_options()?.application_name("kairo-registry"));
        let mut listener = with_timeout(PgListener::connect_with(&pool)).await?;
        // A connection that is lost is made anew, so that what was told meanwhile is not missed.
        listener.eager_reconnect(false);
        with_timeout(listener.listen(GENERATIONS_CHANNEL)).await?;
        loop {
            let log = self.bus.log_identity().ok().map(|log| log.id);
            let registered = query_as(GENERATIONS).bind(READ_MODEL.name).bind(READ_MODEL.version).bind(log);
            self.update_workers(with_timeout(registered.fetch_all(&mut listener)).await?);
            if let Ok(told) = timeout(self.config.projector.heartbeat_interval(), listener.try_recv()).await {
                told?.ok_or(sqlx::Error::WorkerCrashed)?;
                self.wake.send_replace(());
            }
            while listener.next_buffered().is_some() {}
        }
    }

    /// Sees that there is a worker for each generation that wants one.
    fn update_workers(&mut self, registered: Vec<RegisteredGeneration>) {
        while self.tasks.try_join_next().is_some() {}
        if !self.has_steward {
            let controller =
                RebuildController { bus: self.bus.clone(), config: self.config.clone(), woken: self.wake.subscribe() };
            self.tasks.spawn(controller.run());
            self.has_steward = true;
        }
        self.workers.retain(|_, worker| !worker.is_finished());
        let live = registered.iter().find(|registered| registered.state == GenerationState::Live.known_word());
        self.health.set_live_generation(live.map(|live| live.generation));
        for RegisteredGeneration { generation, schema, state } in registered {
            let wanted = BuildState::parse(&state).is_some_and(BuildState::is_followed);
            if wanted && !self.workers.contains_key(&generation) {
                let worker = self.build_worker(GenerationTarget { generation, schema });
                self.workers.insert(generation, self.tasks.spawn(worker.run()));
            }
        }
    }

    fn build_worker(&self, target: GenerationTarget) -> GenerationWorker {
        GenerationWorker {
            bus: self.bus.clone(),
            config: self.config.clone(),
            health: self.health.clone(),
            woken: self.wake.subscribe(),
            target,
        }
    }
}

async fn with_timeout<T>(asked: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    timeout(PATIENCE, asked).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}
