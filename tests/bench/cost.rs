//! The cost of a decision: model requests, and messages over NATS, with several replicas, a model that takes its time,
//! a replica that is killed and one that joins.
//!
//! Each case has a Kairo of its own. Some agents are sent a few messages each ([`Workload::Wide`]), or one is sent many
//! ([`Workload::Deep`]), all at once; halfway through the replies the fault comes. The simulator counts requests, also
//! those that are given up; the log says which were needed: a decision holds the completions it was made from.

mod report;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use kairo_local::Service;
use kairo_proto::Body;
use serde::Serialize;

use crate::{
    Outcome,
    agents::{self, Agent},
    arguments::{Cost, Fault, Flushing},
    counts::{Counts, counts},
    machine::{Fleet, Machine, caller},
    monitor::{Traffic, traffic},
    projection::connect,
    rounds::progress,
    sharing,
};
pub use report::Report;

const SCENARIO: &str = r#"
rules:
  - name: answer
    reply: "It is late."
"#;
/// Time for which traffic without any work is watched.
const IDLE: Duration = Duration::from_secs(3);
/// Time that a case may take beyond three times the model's: a takeover, and delays on a busy machine.
const BEYOND: Duration = Duration::from_secs(60);
/// Entries that the model is shown.
const HISTORY: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Several agents with a few messages each.
    Wide,
    /// One agent with many.
    Deep,
}

/// The results of one case.
#[derive(Debug, Serialize)]
pub struct Case {
    workload: Workload,
    replicas: usize,
    fault: Fault,
    agents: usize,
    messages: usize,
    replies: usize,
    decisions: u64,
    /// Completions in the decisions: the requests that were needed.
    completions: u64,
    model_requests: u64,
    /// Requests of the replica that was killed which were open then.
    open_in_killed: u64,
    seconds: f64,
    /// The time that the model alone takes.
    model_seconds: f64,
    /// Over all connections and both directions, a second, before there was anything to do.
    idle_messages_per_second: f64,
    /// By process, while there was.
    traffic: BTreeMap<&'static str, Traffic>,
}

pub async fn measure(wanted: &Cost) -> Outcome<Report> {
    let mut cases = Vec::new();
    for &replicas in &wanted.replicas {
        let replicas = usize::from(replicas);
        for &fault in &wanted.faults {
            // With nobody left to take over there is nothing to see.
            if fault == Fault::Kill && replicas == 1 {
                continue;
            }
            for (workload, agents, messages) in
                [(Workload::Wide, wanted.agents, wanted.messages), (Workload::Deep, 1, wanted.deep)]
            {
                if messages > 0 {
                    progress(&format!("{replicas} replicas, {workload:?}, {}", fault.name()));
                    cases.push(case(wanted, replicas, fault, (workload, agents, messages)).await?);
                }
            }
        }
    }
    Ok(Report::new(wanted, cases))
}

async fn case(
    wanted: &Cost,
    replicas: usize,
    fault: Fault,
    (workload, agents, messages): (Workload, usize, usize),
) -> Outcome<Case> {
    let mut machine = Machine::servers(Flushing::Default).await?;
    let simulator = vec!["--delay".to_owned(), wanted.delay_ms.to_string()];
    machine.start_services(&Fleet { scenario: SCENARIO.to_owned(), simulator, replicas }).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default();
    let names = (0..agents).map(|number| format!("cost-{number}"));
    let (mut agents, replies) = agents::define(gateway, names, HISTORY).await?;
    let listening = replies.listen().await?;
    let meter = Meter::of(&machine)?;
    sharing::shared(&machine).await?;
    let before = meter.read().await?;
    tokio::time::sleep(IDLE).await;
    let idle = meter.read().await?;

    let begun = Instant::now();
    try_join_all(agents.iter().map(|agent| say_all(agent, messages))).await?;
    let model_seconds = messages as f64 * wanted.delay_ms as f64 / 1_000.0;
    let deadline = begun + Duration::from_secs_f64(model_seconds * 3.0) + BEYOND;
    let half = replies_within(&mut agents, messages.div_ceil(2), deadline).await;
    let open_in_killed = strike(&mut machine, &meter, fault).await?;
    let replies = half + replies_within(&mut agents, messages - messages.div_ceil(2), deadline).await;
    let seconds = begun.elapsed().as_secs_f64();

    let after = meter.read().await?;
    let (decisions, completions) = decided(&machine).await?;
    let case = Case {
        workload,
        replicas,
        fault,
        agents: agents.len(),
        messages: agents.len() * messages,
        replies,
        decisions,
        completions,
        model_requests: after.model.all.requests - before.model.all.requests,
        open_in_killed,
        seconds,
        model_seconds,
        idle_messages_per_second: messages_in(&idle.since(&before)) as f64 / IDLE.as_secs_f64(),
        traffic: after.since(&idle),
    };
    drop(listening);
    machine.stop().await?;
    Ok(case)
}

async fn say_all(agent: &Agent, messages: usize) -> Outcome<()> {
    for number in 0..messages {
        agent.sender.say(&format!("{} is asked what time it is, {number}", agent.sender.agent)).await?;
    }
    Ok(())
}

/// Waits for so many replies of each agent; how many came in time.
async fn replies_within(agents: &mut [Agent], each: usize, deadline: Instant) -> usize {
    let replies = agents.iter_mut().map(|agent| async move {
        for seen in 0..each {
            if agent.reply(deadline.saturating_duration_since(Instant::now())).await.is_err() {
                return seen;
            }
        }
        each
    });
    futures::future::join_all(replies).await.into_iter().sum()
}

/// Does what the case is about. Returns how many requests were open in what was killed.
async fn strike(machine: &mut Machine, meter: &Meter, fault: Fault) -> Outcome<u64> {
    match fault {
        Fault::None => Ok(0),
        Fault::Join => machine.start_agent_runtime().await.map(|_| 0),
        Fault::Kill => {
            // Frozen first, so that what is counted is what is killed.
            machine.stack.freeze(Service::AgentRuntime, 0)?;
            let open = meter.read().await?.model.callers.get(&caller(0)).map_or(0, |count| count.open);
            machine.stack.kill9(Service::AgentRuntime, 0).await?;
            Ok(open)
        }
    }
}

/// Decisions in the log, and the completions in them.
pub async fn decided(machine: &Machine) -> Outcome<(u64, u64)> {
    let (mut decisions, mut completions) = (0, 0);
    let bus = connect(&machine.nats.operator()).await?;
    let max_body = bus.limits.max_body_bytes;
    let read = bus.read_all("kairo.agent.>", 0, |raw| {
        if let Ok(Body::AgentDecision(decision)) = raw.read(max_body).map(|record| record.body) {
            decisions += 1;
            completions += decision.completions.len() as u64;
        }
    });
    read.await?;
    Ok((decisions, completions))
}

/// The sources that are read before and after a case.
struct Meter {
    http: reqwest::Client,
    monitor: String,
    model: String,
    processes: Vec<&'static str>,
}

struct Metered {
    model: Counts,
    traffic: BTreeMap<&'static str, Traffic>,
}

impl Meter {
    fn of(machine: &Machine) -> Outcome<Self> {
        Ok(Self {
            http: reqwest::Client::builder().no_proxy().build()?,
            monitor: machine.nats.monitor_url().unwrap_or_default(),
            model: machine.stack.url(Service::ModelSim).unwrap_or_default().to_owned(),
            processes: machine.processes().into_iter().map(|(name, _)| name).collect(),
        })
    }

    async fn read(&self) -> Outcome<Metered> {
        let mut of_processes: BTreeMap<&'static str, Traffic> = BTreeMap::new();
        for (connection, counted) in traffic(&self.http, &self.monitor).await? {
            if let Some(name) = self.processes.iter().find(|name| connection.starts_with(**name)) {
                let sum = of_processes.entry(name).or_default();
                sum.received += counted.received;
                sum.sent += counted.sent;
            }
        }
        Ok(Metered { model: counts(&self.http, &self.model).await?, traffic: of_processes })
    }
}

impl Metered {
    fn since(&self, before: &Self) -> BTreeMap<&'static str, Traffic> {
        let since = |(name, now): (&&'static str, &Traffic)| {
            let before = before.traffic.get(name).copied().unwrap_or_default();
            let received = now.received.saturating_sub(before.received);
            (*name, Traffic { received, sent: now.sent.saturating_sub(before.sent) })
        };
        self.traffic.iter().map(since).collect()
    }
}

fn messages_in(traffic: &BTreeMap<&'static str, Traffic>) -> u64 {
    traffic.values().map(|traffic| traffic.received + traffic.sent).sum()
}
