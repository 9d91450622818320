//! Steady load: many more agents than calls may be in flight, each with one message at a time, so that every replica is at
//! its limit as long as the machine is not at its own.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use kairo_local::Service;
use serde::Serialize;
use tokio::time::sleep;

use crate::{
    Outcome,
    agents::{self, Agent},
    arguments::{Flushing, Scale},
    cost::decided,
    counts::counts,
    load::{Lane, for_a_while},
    machine::{Fleet, Machine},
    probe::{Probe, Reading},
    rounds::progress,
    sharing,
    ticks::Figures,
};

const SCENARIO: &str = r#"
rules:
  - name: answer
    reply: "It is late."
"#;
/// Before anything is measured, beside twice what each agent waits for at the limit.
const WARM_UP: Duration = Duration::from_secs(3);
/// The longest that a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Entries that the model is shown.
const HISTORY: u32 = 20;

/// The results with this number of replicas.
#[derive(Debug, Serialize)]
pub struct Case {
    pub replicas: u8,
    pub agents: u32,
    pub in_flight: u32,
    /// Replicas x calls in flight / delay.
    pub ideal_per_s: f64,
    /// Replies within the measured time: each is one decision.
    pub per_s: f64,
    pub share: f64,
    /// From sending a message until its reply was seen, of those seen within the measured time.
    pub waits: Figures,
    /// Into and out of nats-server.
    pub nats_messages_per_decision: f64,
    /// Cores used, by process, replicas together.
    pub cores: BTreeMap<&'static str, f64>,
    /// From the first message to the last reply, the measured time included.
    pub replies: u64,
    pub unanswered: u64,
    /// The error of one of these.
    pub failure: Option<String>,
    pub decisions: u64,
    /// Completions in the decisions: the requests that were needed.
    pub completions: u64,
    pub model_requests: u64,
    pub requests_per_decision: f64,
}

/// Replies that are seen while it is open.
#[derive(Default)]
struct Window {
    open: AtomicBool,
    waits: Mutex<Vec<Duration>>,
}

impl Window {
    fn see(&self, wait: Duration) {
        if self.open.load(Ordering::Relaxed) {
            self.waits.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
        }
    }

    /// All that it saw, shortest first.
    fn close(&self) -> Vec<Duration> {
        self.open.store(false, Ordering::Relaxed);
        let mut waits = std::mem::take(&mut *self.waits.lock().unwrap_or_else(PoisonError::into_inner));
        waits.sort_unstable();
        waits
    }
}

/// One agent with a user of its own, so that users are spread over partitions as agents are.
struct Steady {
    agent: Agent,
    user: String,
    window: Arc<Window>,
}

impl Lane for Steady {
    async fn turn(&mut self) -> Outcome<Duration> {
        let begun = Instant::now();
        let turn = self.agent.sender.say_until_taken(&self.user, "What time is it?").await?;
        let wait = self.agent.reply_to(turn, PATIENCE).await? - begun;
        self.window.see(wait);
        Ok(wait)
    }
}

/// The waits and the usage while the window was open.
struct Seen {
    waits: Vec<Duration>,
    took: Duration,
    used: Reading,
}

pub async fn measure(wanted: &Scale) -> Outcome<Vec<Case>> {
    let mut cases = Vec::new();
    for &replicas in &wanted.replicas {
        progress(&format!("steady load on {replicas} replicas"));
        cases.push(case(wanted, replicas).await?);
    }
    Ok(cases)
}

async fn case(wanted: &Scale, replicas: u8) -> Outcome<Case> {
    let machine = start(wanted, replicas).await?;
    let agents = u32::from(replicas) * wanted.in_flight * wanted.agents_per_call;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default();
    let names = (0..agents).map(|number| format!("steady-{number}"));
    let (defined, replies) = agents::define(gateway, names, HISTORY).await?;
    let listening = replies.listen().await?;
    sharing::shared(&machine).await?;
    let mut probe = Probe::open(&machine).await?;
    let window = Arc::new(Window::default());
    let lanes = defined.into_iter().enumerate().map(|(number, agent)| Steady {
        agent,
        user: format!("user-{number}"),
        window: window.clone(),
    });
    let (_, waits, seen) = for_a_while(lanes.collect(), Duration::ZERO, watch(wanted, &mut probe, &window)).await?;
    drop(listening);
    let model = machine.stack.url(Service::ModelSim).unwrap_or_default();
    let model_requests = counts(&machine.http, model).await?.all.requests;
    let (decisions, completions) = decided(&machine).await?;
    machine.stop().await?;
    let Seen { waits: measured, took, used } = seen?;
    let ideal_per_s = f64::from(replicas) * f64::from(wanted.in_flight) * 1_000.0 / wanted.delay_ms as f64;
    let per_s = measured.len() as f64 / took.as_secs_f64();
    let messages: u64 = used.traffic.values().map(|traffic| traffic.received + traffic.sent).sum();
    Ok(Case {
        replicas,
        agents,
        in_flight: wanted.in_flight,
        ideal_per_s,
        per_s,
        share: per_s / ideal_per_s,
        waits: Figures::of(&measured),
        nats_messages_per_decision: messages as f64 / measured.len().max(1) as f64,
        cores: used.cpu.into_iter().map(|(name, seconds)| (name, seconds / took.as_secs_f64())).collect(),
        replies: waits.replies.len() as u64,
        unanswered: waits.unanswered,
        failure: waits.failure,
        decisions,
        completions,
        model_requests,
        requests_per_decision: model_requests as f64 / decisions.max(1) as f64,
    })
}

async fn start(wanted: &Scale, replicas: u8) -> Outcome<Machine> {
    let mut machine = Machine::servers(Flushing::Default).await?;
    let in_flight = wanted.in_flight.to_string();
    machine.stack.service(Service::AgentRuntime).env("KAIRO_MODELS__HEAVY__MAX_IN_FLIGHT", in_flight);
    // All users are this program, with a connection for each: more than one address has in earnest.
    let connections = ["KAIRO_GATEWAY__MAX_CONNECTIONS", "KAIRO_GATEWAY__MAX_CONNECTIONS_PER_PEER"];
    connections.into_iter().for_each(|limit| _ = machine.stack.service(Service::Gateway).env(limit, "100000"));
    let simulator = vec!["--delay".to_owned(), wanted.delay_ms.to_string()];
    let fleet = Fleet { scenario: SCENARIO.to_owned(), simulator, replicas: usize::from(replicas) };
    machine.start_services(&fleet).await?;
    Ok(machine)
}

/// Waits until load is steady, and then looks for so many seconds.
async fn watch(wanted: &Scale, probe: &mut Probe, window: &Window) -> Outcome<Seen> {
    let round = Duration::from_millis(wanted.delay_ms) * wanted.agents_per_call;
    sleep(WARM_UP + round * 2).await;
    let before = probe.read().await?;
    let begun = Instant::now();
    window.open.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(wanted.seconds)).await;
    let (waits, took) = (window.close(), begun.elapsed());
    Ok(Seen { waits, took, used: probe.read().await?.since(&before) })
}
