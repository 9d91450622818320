//! One run from its beginning to its verdict.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, subject_follower::NewestRecord},
    ids::Name,
    record::Record,
    subjects::{CATALOGUE, Service},
};
use kairo_proto::{Body, v1::ToolCatalogue};
use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Outcome,
    balancer::Balancer,
    builds::Builds,
    calls,
    faults::Hands,
    journal::Journal,
    load::{self, Clients},
    log::{self, Log},
    machine::{self, Machine},
    oracle::Oracle,
    orders,
    peers::{self, Peers},
    plan::{Course, Plan, Settings},
    probe::Probe,
    report::{Outside, Report},
    rest,
    tables::Tables,
    verdict::Evidence,
};
use crate::{audit, causes};

/// Between two lines that say how far a run is.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// The longest that the remaining messages may take to be accepted after the last fault.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(60);
/// The longest time until agents are offered the tools that the load calls.
const OFFERED_WITHIN: Duration = Duration::from_secs(60);
/// The tools that the load calls.
const TOOLS: [&str; 6] = ["http.get", "tools.now", "process.run", "process.spawn", "process.cancel", "action.cancel"];

/// The parts of a run beside the machine it strikes.
pub struct Run<'a> {
    settings: &'a Settings,
    folder: &'a Path,
    oracle: Oracle,
    peers: Peers,
    bus: Bus,
    journal: Arc<Journal>,
    clients: Clients,
    tables: Tables,
    /// Ends when the run is over.
    watching: (CancellationToken, JoinHandle<()>),
    /// The longest time in which nothing could be written.
    probe: JoinHandle<Duration>,
    log: Log,
    orders: JoinHandle<()>,
    begins: Instant,
}

impl<'a> Run<'a> {
    /// Starts a Kairo of its own in `folder`, whose agents are offered the tools of the load.
    pub async fn start(settings: &'a Settings, builds: &'a Builds, folder: &'a Path) -> Outcome<(Self, Machine)> {
        let oracle = Oracle::start(settings.seed, folder).await?;
        let gateways = machine::gateways(settings.replicas)?;
        let peers = Peers::start(settings, folder).await?;
        let machine = Machine::start(folder, settings, builds, &oracle, &peers, &gateways).await?;
        peers.start_worker(&machine.nats.worker()?).await?;
        let bus = log::connect(&machine.nats.operator()).await?;
        tools_are_offered(&bus).await?;
        let journal = Arc::new(Journal::create(&folder.join("faults.log"))?);
        let tables = Tables::new(gateways.clone())?;
        let over = CancellationToken::new();
        let watching = (over.clone(), tokio::spawn(tables.clone().watch(over.clone())));
        let gateways = Balancer::new(gateways);
        if settings.course == Course::Restarts {
            tokio::spawn(gateways.clone().look(over.clone()));
        }
        let probe = tokio::spawn(Probe::connect(&machine.nats).await?.watch(over.clone()));
        let clients = Clients::new(gateways, journal.clone())?;
        clients.define_agents().await?;
        let orders = tokio::spawn(orders::give(clients.clone(), bus.clone(), machine::desks(folder)));
        let begins = Instant::now();
        let log = Log::default();
        let run = Self {
            settings,
            folder,
            oracle,
            peers,
            bus,
            journal,
            clients,
            tables,
            watching,
            probe,
            log,
            orders,
            begins,
        };
        Ok((run, machine))
    }

    /// Lets the plan happen. Returns when every fault is mended and every message accepted.
    pub async fn rage(&mut self, machine: Machine, tell: impl Fn(&str)) -> Outcome<Hands> {
        let Plan { faults, messages } = Plan::new(self.settings);
        // What comes after a promotion waits for it, however long replacing takes.
        let promoted = self.settings.promoted_at();
        let (messages, after): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| message.at < promoted);
        self.begins = Instant::now();
        let tables = self.tables.clone();
        let (bus, journal) = (self.bus.clone(), self.journal.clone());
        let hands = Hands::on(machine, self.folder, bus, tables, &faults, self.begins, journal);
        let sending = tokio::spawn(self.clients.clone().send(messages, self.begins));
        self.telling(hands.through(), tell).await?;
        let accepted = timeout(ACCEPTED_WITHIN, sending).await;
        accepted.map_err(|_| "messages are not accepted although everything runs")???;
        if !after.is_empty() {
            self.clients.clone().send(after, Instant::now() - promoted).await?;
        }
        Ok(hands)
    }

    /// Says how far it is while waiting.
    async fn telling<T>(&mut self, waited_for: impl Future<Output = T>, tell: impl Fn(&str)) -> T {
        tokio::pin!(waited_for);
        let mut ticks = interval(TELL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                done = &mut waited_for => return done,
                _ = ticks.tick() => tell(&self.progress().await),
            }
        }
    }

    async fn progress(&mut self) -> String {
        // nats-server may be away just now; then the last count stands.
        let _ = self.log.read_on(&self.bus).await;
        let faults = self.journal.all().into_iter().map(|(what, count)| format!("{count} {what}"));
        format!(
            "{} s of {}: {} messages, {} answered; {}",
            self.begins.elapsed().as_secs(),
            self.settings.time.as_secs(),
            self.clients.accepted().len(),
            self.log.open.answered.len(),
            faults.collect::<Vec<_>>().join(", ")
        )
    }

    /// Gives everything time to finish, and counts.
    pub async fn count(mut self, hands: Hands) -> Outcome<Report> {
        let (expected, work) = (self.clients.accepted(), machine::work(self.folder));
        let delay = self.settings.model_delay;
        let book = self.peers.book();
        let rest =
            rest::come_to_rest(&self.bus, hands.database(), &mut self.log, &expected, &work, book, delay).await?;
        let over = Timestamp::now();
        self.orders.abort();
        let tables = self.tables.judge().await?;
        self.watching.0.cancel();
        self.watching.1.await?;
        let outside = Outside { requests_failed: self.clients.failed(), longest_without_write: self.probe.await? };
        let (mut machine, fleet) = hands.off().await?;
        let older_again = match self.settings.course {
            Course::Walk => Some(machine.older_again(fleet.raised).await?),
            _ => None,
        };
        machine.stop().await?;
        let (sent, mut effects) = (self.clients.sent(), self.oracle.effects());
        effects.add(self.peers.book().effects());
        let errands = self.peers.book().read();
        let (requests, struck) = (calls::read(&machine::requests(self.folder))?, self.journal.struck());
        let evidence = Evidence {
            log: &self.log,
            sent: &sent,
            effects: &effects,
            errands: &errands,
            gone: &self.journal.gone(),
            requests: &requests,
            struck: &struck,
            over,
            restarting: &load::restarting(),
        };
        let mut broken = mistakes(&evidence.records(), self.settings.other_words);
        broken.extend(self.log.unreadable.iter().cloned());
        let report = Report::new(self.settings, &self.journal, evidence.judge(), rest, tables, broken)
            .after(older_again, fleet.unread)
            .seen_from_outside(self.settings.course, outside);
        std::fs::write(self.folder.join("log.txt"), self.log.text())?;
        std::fs::write(self.folder.join("findings.txt"), report.findings())?;
        Ok(report)
    }
}

/// Returns the mistakes in the log. Where models may have been asked in other words, that difference alone is printed
/// and is no mistake.
fn mistakes(records: &[Record], other_words: bool) -> Vec<String> {
    let replays = audit::replays(records).into_iter();
    let (told, wrong): (Vec<_>, Vec<_>) = replays.partition(|replayed| other_words && replayed.is_asked_otherwise());
    told.iter().for_each(|replayed| eprintln!("chaos: asked in other words, and decided alike: {}", replayed.place()));
    let wrong = wrong.iter().map(ToString::to_string);
    // Builds before epoch 10 name decisions as causes, which clients do not see.
    let gaps = if other_words { Vec::new() } else { causes::gaps(records) };
    audit::miscounted(records).into_iter().chain(wrong).chain(gaps).collect()
}

async fn tools_are_offered(bus: &Bus) -> Outcome<()> {
    let owner = Name::parse(Service::ToolRunner.name())?;
    let shutdown = CancellationToken::new();
    let _ends_with_us = shutdown.clone().drop_guard();
    let catalogue = NewestRecord::follow(bus, CATALOGUE.of_owner(&owner), shutdown);
    let offers = |body: &Body, tool: &str| {
        ToolCatalogue::of(body).is_some_and(|catalogue| catalogue.tools.iter().any(|offered| offered.name == tool))
    };
    let tools: Vec<String> = TOOLS.map(str::to_owned).into_iter().chain(peers::tools()).collect();
    let mut changes = catalogue.changes();
    let offered = changes
        .wait_for(|record| record.as_ref().is_some_and(|record| tools.iter().all(|tool| offers(&record.body, tool))));
    timeout(OFFERED_WITHIN, offered).await.map_err(|_| "the tools of the load were never offered")??;
    Ok(())
}
