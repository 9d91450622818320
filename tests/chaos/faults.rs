//! Doing to Kairo what the plan says.
//!
//! Whatever can be struck has a task of its own that owns it, so that faults overlap: one replica is being started while
//! another freezes. A blow that comes while its target is still down from the one before waits for its turn, so none is
//! left out.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use kairo_core::bus::Bus;
use kairo_local::{Database, Postgres, Service, Stack};
use tokio::{
    sync::{Mutex, Semaphore},
    task::JoinHandle,
    time::{sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Outcome,
    builds::Builds,
    journal::{ENDED, Journal, KILLED, PROMOTED},
    machine::{Machine, Replica},
    plan::{Blow, Fault, Target},
    servers::Servers,
    store::Store,
    tables::Tables,
    victim::Victim,
};

/// Failed starts of a process after which the run is given up: a supervisor of real services tries again, too.
const STARTS: u32 = 5;
/// The longest time until the remaining replicas are replaced.
const PROMOTED_WITHIN: Duration = Duration::from_secs(120);
/// Before the next try.
const BREATH: Duration = Duration::from_millis(500);

/// The faults of a run: their beginning, their journal and their progress.
#[derive(Clone)]
pub struct Season {
    begins: tokio::time::Instant,
    journal: Arc<Journal>,
    /// Has a permit for each target that is through with its faults.
    through: Arc<Semaphore>,
    /// Held by the one whose turn it is to be replaced.
    turn: Arc<Mutex<()>>,
    /// Has a permit for each process that is through with its faults.
    mended: Arc<Semaphore>,
    /// Replicas that ask models, where there are several servers.
    owners: Arc<Vec<String>>,
    /// The failure to strike a process or to start it again, which ends the run.
    failed: Arc<OnceLock<String>>,
    over: CancellationToken,
    /// Of the run.
    folder: PathBuf,
}

/// The outcome of a promotion.
#[derive(Debug, Default)]
pub struct Fleet {
    /// True if the epoch has changed.
    pub raised: bool,
    /// The mistakes of one build with the other's incident files.
    pub unread: Vec<String>,
}

/// The tasks at work on a machine, and what they own.
pub struct Hands {
    season: Season,
    replicas: Vec<JoinHandle<Outcome<Replica>>>,
    nats: JoinHandle<Outcome<Servers>>,
    postgres: JoinHandle<Outcome<Postgres>>,
    store: JoinHandle<()>,
    tables: JoinHandle<()>,
    fleet: JoinHandle<Fleet>,
    model: Stack,
    builds: Builds,
    database: Database,
}

impl Hands {
    /// Takes a machine in hand; faults come from `begins` on.
    pub fn on(
        machine: Machine,
        folder: &Path,
        bus: Bus,
        tables: Tables,
        faults: &[Fault],
        begins: tokio::time::Instant,
        journal: Arc<Journal>,
    ) -> Self {
        let [through, mended] = [Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0))];
        let over = CancellationToken::new();
        let folder = folder.to_owned();
        let owners = machine.replicas.iter().filter(|replica| replica.service == Service::AgentRuntime);
        let owners = if machine.nats.len() > 1 { owners.map(Victim::name).collect() } else { Vec::new() };
        let owners = Arc::new(owners);
        let (turn, failed) = (Arc::default(), Arc::default());
        let season = Season { begins, journal, through, turn, mended, owners, failed, over, folder };
        let of = |target| faults.iter().filter(|fault| fault.target == target).copied().collect::<Vec<_>>();
        let Machine { nats, postgres, database, replicas, model, builds } = machine;
        // With nats-server and Postgres.
        let processes = u32::try_from(replicas.len() + 2).unwrap_or(u32::MAX);
        let replicas = replicas.into_iter().map(|replica| {
            let faults = of(Target::Replica(replica.service, replica.index));
            tokio::spawn(season.clone().strike(replica, faults))
        });
        Self {
            replicas: replicas.collect(),
            nats: tokio::spawn(season.clone().strike(nats, of(Target::Nats))),
            postgres: tokio::spawn(season.clone().strike(postgres, of(Target::Postgres))),
            store: tokio::spawn(season.clone().strike_store(Store::new(bus), of(Target::Store))),
            tables: tokio::spawn(season.clone().strike_tables(tables.clone(), of(Target::ReadModel))),
            fleet: tokio::spawn(season.clone().strike_fleet(tables, builds.clone(), processes, of(Target::Fleet))),
            season,
            model,
            builds,
            database,
        }
    }

    /// Waits until every fault was done and mended. What ends by itself is started again until [`Hands::off`].
    ///
    /// # Errors
    /// Returns an error if a process could not be struck or started again.
    pub async fn through(&self) -> Outcome<()> {
        let targets = self.replicas.len() + 5;
        self.season.through.acquire_many(u32::try_from(targets)?).await?.forget();
        self.season.failed.get().map_or(Ok(()), |failed| Err(failed.clone().into()))
    }

    /// URL of Kairo's database, as superuser.
    pub fn database(&self) -> &str {
        &self.database.url
    }

    /// Gives the machine back, and says what came of a promotion.
    pub async fn off(self) -> Outcome<(Machine, Fleet)> {
        self.season.over.cancel();
        let mut replicas = Vec::new();
        for replica in self.replicas {
            replicas.push(replica.await??);
        }
        let (nats, postgres) = (self.nats.await??, self.postgres.await??);
        self.store.await?;
        self.tables.await?;
        let fleet = self.fleet.await?;
        let Self { database, model, builds, .. } = self;
        Ok((Machine { nats, postgres, database, replicas, model, builds }, fleet))
    }
}

impl Season {
    async fn strike<V: Victim>(self, mut victim: V, faults: Vec<Fault>) -> Outcome<V> {
        let struck = self.strike_all(&mut victim, faults).await;
        if let Err(error) = &struck {
            // It is gone with its task, and whatever fails after that is told for want of this.
            let _ = self.failed.set(format!("{}: {error}", victim.name()));
        }
        self.through.add_permits(1);
        self.mended.add_permits(1);
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
                self.strike_with(kind);
                self.journal.leave(&name);
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
                self.journal.leave(&name);
                self.journal.count("restarted", kind, format_args!("{name} asked to end, to be started again"));
                self.start_again(victim).await?;
            }
            Blow::Replace { build, killed } => {
                let _turn = self.turn.lock().await;
                // Whoever is asked to end may have begun a call that it cannot wait for; that is told, and not held against it.
                self.journal.strike(&name);
                self.journal.leave(&name);
                if killed {
                    victim.kill9().await?;
                    self.journal.count(KILLED, kind, format_args!("{name} killed"));
                }
                victim.becomes(build);
                self.journal.count("replaced", kind, format_args!("{name} becomes the {build:?} build"));
                self.start_again(victim).await?;
            }
            Blow::RestartInTurn => {
                let _turn = self.turn.lock().await;
                self.journal.leave(&name);
                self.journal.count("restarted", kind, format_args!("{name} asked to end, to be started again"));
                self.start_again(victim).await?;
            }
            Blow::LameDuck { server } => {
                let _turn = self.turn.lock().await;
                self.journal.count("restarted", kind, format_args!("{name} {server} is a lame duck"));
                victim.suffer(blow).await?;
                self.journal.note(format_args!("{name} {server} is there again"));
            }
            Blow::CutOff { server, lasts } => {
                self.strike_with(kind);
                self.journal.count("cut off", kind, format_args!("{name} {server} is cut off for {lasts:?}"));
                victim.suffer(blow).await?;
                self.journal.note(format_args!("{name} {server} hears the others again"));
            }
            Blow::FillDisk { server, lasts } => {
                self.strike_with(kind);
                self.journal.count("disk full", kind, format_args!("{name} {server} has a full disk for {lasts:?}"));
                victim.suffer(blow).await?;
                self.journal.note(format_args!("{name} {server} has room again"));
            }
            Blow::WipeOwnership
            | Blow::WipeSnapshots
            | Blow::Rebuild
            | Blow::PublishAgain { .. }
            | Blow::FillLog { .. }
            | Blow::Promote => {}
        }
        Ok(())
    }

    /// A server of several that is lost takes with it what owners of partitions knew: another one leads only after their leases
    /// have ended.
    fn strike_with(&self, kind: &str) {
        if kind == Servers::KIND {
            self.owners.iter().for_each(|owner| self.journal.strike(owner));
        }
    }

    /// Starts whatever ends without having been asked to. Returns when that cannot be done.
    async fn watch<V: Victim>(&self, victim: &mut V) -> Box<dyn std::error::Error + Send + Sync> {
        loop {
            let how = victim.ended().await;
            self.journal.leave(&victim.name());
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

    /// Once nothing strikes any of so many processes any more.
    async fn strike_fleet(self, tables: Tables, builds: Builds, processes: u32, faults: Vec<Fault>) -> Fleet {
        let mut fleet = Fleet::default();
        for fault in faults {
            sleep_until(self.begins + fault.at).await;
            let promoted = timeout(PROMOTED_WITHIN, async {
                // Nobody is down then, and nobody of the older build is left.
                self.mended.acquire_many(processes).await?.forget();
                self.journal.note("all replicas are of the newer build");
                fleet.unread.extend(builds.exchange_incidents(tables.gateway(), &self.folder).await?);
                Outcome::Ok(tables.promote(|refused| self.journal.note(refused)).await)
            });
            match promoted.await {
                Ok(Ok((epoch, before))) => {
                    fleet.raised = epoch > before;
                    self.journal.count(PROMOTED, "fleet", format_args!("epoch {epoch} is in force, after {before}"));
                }
                Ok(Err(error)) => fleet.unread.push(error.to_string()),
                Err(_) => self.journal.note("the fleet was never promoted"),
            }
        }
        self.through.add_permits(1);
        fleet
    }
}
