//! The time in which idle agents wake, among very many: from a message to the first decision, one agent after the
//! other; the latency of publishing meanwhile; memory; the durations of restarts and of adding a replica; and the waits
//! of agents whose replica is killed.
//!
//! The log is filled directly ([`fill`]): every agent had one turn, and nothing is left to do. Decisions are seen as
//! agent-runtime publishes them, over core NATS, so that watching costs the server next to nothing.

mod fill;
mod report;
mod watch;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use kairo_local::Service;
use serde::Deserialize;
use tokio::time::sleep;

use crate::{
    Outcome,
    agents::{REFUSED_PAUSE, Said, Sender},
    arguments::{Flushing, Wake},
    cpu,
    machine::{Fleet, Machine},
    probe::Probe,
    rounds::progress,
    sharing,
    ticks::Ticks,
};
pub use report::Report;
use watch::{Seen, Watch};

/// Time for which publishing is measured while nothing else happens.
const QUIET: Duration = Duration::from_secs(5);
/// The longest that a decision is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest that reading the log for the first time may take, and the interval of checks for its end.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(3_600);
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Messages to orphans that are under way at once.
const AT_ONCE: usize = 16;

/// The measurements.
#[derive(Default)]
pub struct Measured {
    /// Messages in the log, and how long writing them took.
    filled: (u64, Duration),
    /// Until every agent had been read for the first time, all services reading.
    caught_up: Duration,
    /// Bytes of the log then, and all that JetStream kept on the disk, snapshots among it.
    log_bytes: u64,
    stored_bytes: u64,
    /// By the name of the service that was restarted.
    restarts: BTreeMap<&'static str, Restart>,
    /// From the start of a second agent-runtime until it owned its share.
    joined: Duration,
    /// Agents that decided, shortest wait first: from sending the message, and from its delivery to the agent.
    whole: Vec<Duration>,
    awake: Vec<Duration>,
    unanswered: usize,
    /// Acknowledged publishes into the log, before and while agents were woken.
    publish_quiet: Vec<Duration>,
    publish_waking: Vec<Duration>,
    /// Resident, in bytes, by process, before and after agents were woken.
    resident: [BTreeMap<&'static str, u64>; 2],
    /// Of agents written to around a kill, from the kill or the message, whichever was later.
    orphans: Vec<Duration>,
    orphans_unanswered: usize,
}

/// The durations of a restart, from asking the replica to end.
struct Restart {
    /// Until the next one was ready.
    ready: Duration,
    /// Until an agent that was then written to had decided; nothing if it did not within [`PATIENCE`].
    decided: Option<Duration>,
}

pub async fn measure(wanted: &Wake) -> Outcome<Report> {
    let mut measured = Measured::default();
    let mut machine = Machine::servers(Flushing::Default).await?;
    machine.start_services(&Fleet::single(fill::SCENARIO)).await?;
    progress("recording one turn");
    let turn = fill::record(&machine).await?;
    machine.stack.stop().await?;
    progress(&format!("writing a turn of each of {} agents", wanted.agents));
    let begun = Instant::now();
    measured.filled = (fill::fill(&machine.nats.operator(), &turn, wanted.agents).await?, begun.elapsed());
    progress("starting every service on that log");
    machine.start_services(&Fleet::single(fill::SCENARIO)).await?;
    let begun = Instant::now();
    let mut probe = Probe::open(&machine).await?;
    probe.settled().await?;
    caught_up(&machine).await?;
    measured.caught_up = begun.elapsed();
    progress(&format!("all was read after {:.0?}", measured.caught_up));
    measured.log_bytes = probe.read().await?.log.bytes;
    measured.stored_bytes = probe.jetstream.query_account().await?.storage;
    // What reading all of the log for the first time has left in memory is not what agents wake from.
    measured.restarting(&mut machine, wanted).await?;
    measured.waking(&machine, wanted).await?;
    progress("a second replica, and then kill -9 of the first");
    let begun = Instant::now();
    machine.start_agent_runtime().await?;
    sharing::shared(&machine).await?;
    measured.joined = begun.elapsed();
    measured.takeover(&machine, wanted).await?;
    machine.stop().await?;
    Ok(Report::new(wanted, &measured))
}

impl Measured {
    async fn restarting(&mut self, machine: &mut Machine, wanted: &Wake) -> Outcome<()> {
        // Neither woken nor orphaned later, as long as there are agents enough.
        let spare = chosen(wanted.agents, wanted.wakes + wanted.orphans, 2);
        for (number, service) in [Service::AgentRuntime, Service::Router].into_iter().enumerate() {
            progress(&format!("restarting {}", service.binary()));
            let mut watch = Watch::open(&machine.nats.operator()).await?;
            let begun = Instant::now();
            match service {
                Service::AgentRuntime => machine.restart_agent_runtime(0).await?,
                _ => machine.stack.restart(service, 0).await?,
            }
            let ready = begun.elapsed();
            let agent = say_to(machine, spare.get(number).copied().unwrap_or(1)).await?;
            let decided = watch.decision(&agent, PATIENCE).await.map(|seen| seen.decision - begun);
            progress(&format!("it was ready after {ready:.1?}, and the first decision there after {decided:.1?}"));
            self.restarts.insert(service.binary(), Restart { ready, decided });
        }
        Ok(())
    }

    async fn waking(&mut self, machine: &Machine, wanted: &Wake) -> Outcome<()> {
        let mut watch = Watch::open(&machine.nats.operator()).await?;
        progress("publishing, while all are idle");
        let ticks = Ticks::start(machine).await?;
        sleep(QUIET).await;
        self.publish_quiet = ticks.stop().await?;
        let [idle, woken] = &mut self.resident;
        *idle = memory(machine)?;
        progress(&format!("waking {} agents", wanted.wakes));
        let ticks = Ticks::start(machine).await?;
        for agent in chosen(wanted.agents, 0, wanted.wakes) {
            let sent = Instant::now();
            let agent = say_to(machine, agent).await?;
            match watch.decision(&agent, PATIENCE).await {
                Some(Seen { message, decision }) => {
                    self.whole.push(decision - sent);
                    self.awake.push(decision.saturating_duration_since(message));
                }
                None => self.unanswered += 1,
            }
        }
        self.publish_waking = ticks.stop().await?;
        *woken = memory(machine)?;
        self.whole.sort_unstable();
        self.awake.sort_unstable();
        Ok(())
    }

    async fn takeover(&mut self, machine: &Machine, wanted: &Wake) -> Outcome<()> {
        let mut watch = Watch::open(&machine.nats.operator()).await?;
        let orphans = chosen(wanted.agents, wanted.wakes, wanted.orphans);
        let (before, after) = orphans.split_at(orphans.len() / 2);
        let mut sent = say_to_all(machine, before).await?;
        machine.stack.kill9(Service::AgentRuntime, 0).await?;
        let killed = Instant::now();
        sent.extend(say_to_all(machine, after).await?);
        let deadline = killed + PATIENCE;
        for (agent, at) in sent {
            let within = deadline.saturating_duration_since(Instant::now());
            match watch.decision(&agent, within).await {
                Some(Seen { decision, .. }) => self.orphans.push(decision.saturating_duration_since(at.max(killed))),
                None => self.orphans_unanswered += 1,
            }
        }
        self.orphans.sort_unstable();
        Ok(())
    }
}

/// The gateway's answer about the services.
#[derive(Deserialize)]
struct Status {
    services: Vec<Replica>,
}

#[derive(Deserialize)]
struct Replica {
    service: String,
    partitions: Vec<Partition>,
}

#[derive(Deserialize)]
struct Partition {
    waiting: u64,
}

/// Waits until agent-runtime has read what stands in the log.
async fn caught_up(machine: &Machine) -> Outcome<()> {
    let url = format!("{}/v1/status", machine.stack.url(Service::Gateway).unwrap_or_default());
    let deadline = Instant::now() + CAUGHT_UP_WITHIN;
    loop {
        let status: Status = machine.http.get(&url).send().await?.error_for_status()?.json().await?;
        let partitions =
            status.services.iter().filter(|it| it.service == "agent-runtime").flat_map(|it| &it.partitions);
        let waiting: Vec<u64> = partitions.map(|partition| partition.waiting).collect();
        if !waiting.is_empty() && waiting.iter().sum::<u64>() == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("agent-runtime has not read the log within {CAUGHT_UP_WITHIN:?}").into());
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Returns `count` agents, spread over all of them; other ones for another `from`.
fn chosen(agents: u32, from: u32, count: u32) -> Vec<u32> {
    // An odd stride that is a prime is coprime to nearly every number of agents: none is chosen twice.
    const STRIDE: u64 = 7_919;
    let place = |number: u32| u32::try_from(u64::from(number) * STRIDE % u64::from(agents)).unwrap_or(0) + 1;
    (from..from.saturating_add(count).min(agents)).map(place).collect()
}

async fn say_to_all(machine: &Machine, agents: &[u32]) -> Outcome<Vec<(String, Instant)>> {
    let saying = stream::iter(agents).map(|agent| async move {
        let name = say_to(machine, *agent).await?;
        Outcome::Ok((name, Instant::now()))
    });
    saying.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await.into_iter().collect()
}

/// Says something to the agent of this number, and returns its name.
async fn say_to(machine: &Machine, number: u32) -> Outcome<String> {
    let agent = fill::agent(number);
    let url = machine.stack.url(Service::Gateway).unwrap_or_default().to_owned();
    let sender = Sender { agent: agent.clone(), http: machine.http.clone(), url };
    // An agent that is known but not yet to the router's server is refused for a moment.
    let begun = Instant::now();
    loop {
        match sender.try_say("Are you awake?").await? {
            Said::Accepted(_) => return Ok(agent),
            // What a client does, too: it waits, which is part of what is measured.
            Said::Unavailable(why) if begun.elapsed() < PATIENCE => progress(&format!("not taken: {why}")),
            Said::Unavailable(why) => return Err(why.into()),
            Said::Refused => {}
        }
        sleep(REFUSED_PAUSE).await;
    }
}

/// Resident bytes by process. Those of Postgres share most of their memory, and are not added up.
fn memory(machine: &Machine) -> Outcome<BTreeMap<&'static str, u64>> {
    let processes = machine.processes().into_iter().filter(|(name, _)| *name != "postgres");
    processes.map(|(name, pid)| Ok((name, cpu::resident(pid)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nobody_is_woken_twice() {
        for agents in [1, 10, 1_000, 100_000] {
            let (wakes, orphans) = (chosen(agents, 0, 500), chosen(agents, 500, 200));
            let all: BTreeSet<u32> = wakes.iter().chain(&orphans).copied().collect();
            assert_eq!(all.len(), wakes.len() + orphans.len(), "{agents}");
            assert_eq!(all.len(), agents.min(700) as usize);
            assert!(all.iter().all(|agent| (1..=agents).contains(agent)));
        }
    }
}
