//! Doing to Kairo what the plan says.
//!
//! Whatever can be struck has a task of its own that owns it, so that faults overlap: one replica is being started while
//! another freezes. A blow that comes while its target is still down from the one before waits for its turn, so none is
//! left out.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kairo_core::bus::Bus;
use kairo_local::{Database, Postgres, Stack};
use tokio::{
    sync::Semaphore,
    task::JoinHandle,
    time::{sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    Outcome,
    journal::{ENDED, Journal, KILLED},
    machine::{Machine, Replica},
    plan::{Blow, Fault, Target},
    servers::Servers,
    store::Store,
    tables::Tables,
    victim::Victim,
};

/// How often a process may fail to start before the run is given up: what supervises services in earnest tries again,
/// too.
const STARTS: u32 = 5;
/// Before the next try.
const BREATH: Duration = Duration::from_millis(500);

/// When faults begin, and where they are written down.
#[derive(Clone)]
pub struct Season {
    begins: tokio::time::Instant,
    journal: Arc<Journal>,
    /// Has a permit for each target that is through with its faults.
    through: Arc<Semaphore>,
    over: CancellationToken,
}

/// The tasks at work on a machine, and what they own.
pub struct Hands {
    season: Season,
    replicas: Vec<JoinHandle<Outcome<Replica>>>,
    nats: JoinHandle<Outcome<Servers>>,
    postgres: JoinHandle<Outcome<Postgres>>,
    store: JoinHandle<()>,
    tables: JoinHandle<()>,
    model: Stack,
    database: Database,
}

impl Hands {
    /// Takes a machine in hand; faults come from `begins` on.
    pub fn on(
        machine: Machine,
        bus: Bus,
        tables: Tables,
        faults: &[Fault],
        begins: tokio::time::Instant,
        journal: Arc<Journal>,
    ) -> Self {
        let season = Season { begins, journal, through: Arc::new(Semaphore::new(0)), over: CancellationToken::new() };
        let of = |target| faults.iter().filter(|fault| fault.target == target).copied().collect::<Vec<_>>();
        let Machine { nats, postgres, database, replicas, model } = machine;
        let replicas = replicas.into_iter().map(|replica| {
            let faults = of(Target::Replica(replica.service, replica.index));
            tokio::spawn(season.clone().strike(replica, faults))
        });
        Self {
            replicas: replicas.collect(),
            nats: tokio::spawn(season.clone().strike(nats, of(Target::Nats))),
            postgres: tokio::spawn(season.clone().strike(postgres, of(Target::Postgres))),
            store: tokio::spawn(season.clone().strike_store(Store::new(bus), of(Target::Store))),
            tables: tokio::spawn(season.clone().strike_tables(tables, of(Target::ReadModel))),
            season,
            model,
            database,
        }
    }

    /// Waits until every fault was done and mended. What ends by itself is started again until [`Hands::off`].
    pub async fn through(&self) -> Outcome<()> {
        let targets = self.replicas.len() + 4;
        self.season.through.acquire_many(u32::try_from(targets)?).await?.forget();
        Ok(())
    }

    /// URL of Kairo's database, as superuser.
    pub fn database(&self) -> &str {
        &self.database.url
    }

    /// Gives the machine back.
    pub async fn off(self) -> Outcome<Machine> {
        self.season.over.cancel();
        let mut replicas = Vec::new();
        for replica in self.replicas {
            replicas.push(replica.await??);
        }
        let (nats, postgres) = (self.nats.await??, self.postgres.await??);
        self.store.await?;
        self.tables.await?;
        Ok(Machine { nats, postgres, database: self.database, replicas, model: self.model })
    }
}

impl Season {
    async fn strike<V: Victim>(self, mut victim: V, faults: Vec<Fault>) -> Outcome<V> {
        let struck = self.strike_all(&mut victim, faults).await;
        self.through.add_permits(1);
        struck?;
        tokio::select! {
            () = self.over.cancelled() => Ok(victim),
            error = self.watch(&mut victim) => Err(error),
        }
    }

    async fn strike_all<V: Victim>(&self, victim: &mut V, faults: Vec<Fault>) -> Outcome<()> {
        for fault in faults {
            tokio::select! {
                () = sleep_until(self.begins + fault.at) => {}
                error = self.watch(victim) => return Err(error),
            }
            self.blow(victim, fault.blow).await?;
        }
        Ok(())
    }

    async fn blow<V: Victim>(&self, victim: &mut V, blow: Blow) -> Outcome<()> {
        let (kind, name) = (victim.kind(), victim.name());
        match blow {
            Blow::Kill { down } => {
                self.journal.strike(&name);
                victim.kill9().await?;
                self.journal.count(KILLED, kind, format_args!("{name} killed, down for {down:?}"));
                sleep(down).await;
                self.start_again(victim).await?;
            }
            Blow::Freeze { lasts } => {
                self.journal.strike(&name);
                victim.freeze().await;
                self.journal.count("frozen", kind, format_args!("{name} frozen for {lasts:?}"));
                sleep(lasts).await;
                victim.thaw();
                self.journal.note(format_args!("{name} thawed"));
            }
            Blow::Restart => {
                self.journal.count("restarted", kind, format_args!("{name} asked to end, to be started again"));
                self.start_again(victim).await?;
            }
            Blow::WipeOwnership | Blow::WipeSnapshots | Blow::Rebuild | Blow::PublishAgain { .. } => {}
        }
        Ok(())
    }

    /// Starts whatever ends without having been asked to. Returns when that cannot be done.
    async fn watch<V: Victim>(&self, victim: &mut V) -> Box<dyn std::error::Error + Send + Sync> {
        loop {
            let how = victim.ended().await;
            self.journal.count(ENDED, victim.kind(), format_args!("{} ended by itself: {how}", victim.name()));
            if let Err(error) = self.start_again(victim).await {
                return error;
            }
        }
    }

    async fn start_again<V: Victim>(&self, victim: &mut V) -> Outcome<()> {
        let started = Instant::now();
        for start in 1.. {
            match victim.restart().await {
                Ok(()) => break,
                Err(error) if start == STARTS => return Err(error.into()),
                Err(error) => {
                    let text = format!("{} did not start: {error}", victim.name());
                    self.journal.count("failed to start", victim.kind(), text);
                    sleep(BREATH).await;
                }
            }
        }
        self.journal.note(format_args!("{} is ready after {:.3} s", victim.name(), started.elapsed().as_secs_f64()));
        Ok(())
    }

    async fn strike_store(self, store: Store, faults: Vec<Fault>) {
        for fault in faults {
            sleep_until(self.begins + fault.at).await;
            // nats-server may be away just then: that the fault did not come off is a fault like any other.
            match store.strike(fault.blow).await {
                Ok((done, text)) => self.journal.count(done, "store", text),
                Err(error) => self.journal.note(format_args!("{:?} did not come off: {error}", fault.blow)),
            }
        }
        self.through.add_permits(1);
    }

    async fn strike_tables(self, tables: Tables, faults: Vec<Fault>) {
        for fault in faults {
            sleep_until(self.begins + fault.at).await;
            // The gateway may be away just then, or another one being built.
            match tables.rebuild().await {
                Ok(generation) => {
                    let text = format!("generation {generation} of the tables asked for");
                    self.journal.count("rebuilt", "read model", text);
                }
                Err(error) => self.journal.note(format_args!("a rebuild did not come off: {error}")),
            }
        }
        self.through.add_permits(1);
    }
}
