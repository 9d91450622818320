//! The cost of a team's work: a lead that delegates very many tasks to its workers, until all are done. Measures CPU
//! time, log and model requests for each task, and the waits of tasks in the queues of workers.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kairo_core::{
    bus::Bus,
    record::{RawMessage, Record},
};
use kairo_local::Service;
use kairo_proto::{
    v1::decided_event::Event,
    words::{TaskSource, TaskStatus},
};
use kairo_tests::audit::decision;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    Outcome,
    agents::in_ms,
    arguments::{Flushing, Team},
    counts::counts,
    load::percentile,
    machine::{Fleet, Machine},
    probe::{Probe, Reading},
    projection::connect,
    rounds::progress,
};

const LEAD: &str = "lead";
/// Tasks that the lead delegates at once.
const AT_ONCE: u64 = 100;
/// Between two looks at the log; nothing of what is measured depends on it.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The longest that all of it may take.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// Largest body that is read, in bytes.
const MAX_BODY: usize = 1_000_000;

/// The results.
#[derive(Debug, Serialize)]
pub struct Report {
    workers: u64,
    tasks: usize,
    delay_ms: u64,
    seconds: f64,
    tasks_per_s: f64,
    /// Of each task, by process.
    cpu_ms: BTreeMap<&'static str, f64>,
    log_messages: f64,
    log_bytes: f64,
    model_requests: f64,
    /// From the queue of a worker until work begins, in milliseconds.
    queued_p50_ms: f64,
    queued_p95_ms: f64,
    /// Of any agent; each of them ended.
    sessions: usize,
}

/// The facts read from the log.
#[derive(Default)]
struct Seen {
    end: u64,
    /// Delegated tasks: when they were queued, and when they were begun.
    queued: BTreeMap<String, Timestamp>,
    waits: Vec<Duration>,
    completed: usize,
    /// Threads of work that are not over, and all that are.
    open: usize,
    over: usize,
    failed: Vec<String>,
}

/// A lead that delegates so many tasks a round, and workers that look at the clock for each.
fn scenario(wanted: &Team) -> String {
    let rounds = wanted.tasks.div_ceil(AT_ONCE);
    let round = |number: u64| {
        let tasks = number * AT_ONCE..wanted.tasks.min((number + 1) * AT_ONCE);
        let call = |task: u64| {
            let worker = format!("w{}", task % wanted.workers);
            json!({ "tool": "team.delegate", "arguments": { "worker": worker, "task": format!("task {task}") } })
        };
        json!({ "tool_calls": tasks.map(call).collect::<Vec<_>>(), "delay_ms": wanted.delay_ms })
    };
    let done = json!({ "text": "Done.", "delay_ms": wanted.delay_ms });
    let work = |words: &str| json!({ "system_starts_with": "You are agent.work", "user_contains": words });
    let turn: Vec<Value> = (0..rounds).map(round).chain([done.clone()]).collect();
    let briefing = json!({ "worth": false, "reason": "Nothing new." });
    json!({ "rules": [
        {
            "name": "brief",
            "when": { "system_starts_with": "You are agent.learn and agent.brief" },
            "reply": { "json": { "memories": [], "briefing": briefing }, "delay_ms": wanted.delay_ms },
        },
        { "name": "learn", "when": { "system_starts_with": "You are agent.learn" }, "reply": { "json": [], "delay_ms": wanted.delay_ms } },
        { "name": "lead", "when": work("Get to work on your mission"), "turn": turn },
        {
            "name": "work",
            "when": work("task"),
            "turn": [{ "tool_calls": [{ "tool": "tools.now", "arguments": {} }], "delay_ms": wanted.delay_ms }, done],
        },
    ] })
    .to_string()
}

pub async fn measure(wanted: &Team) -> Outcome<Report> {
    let mut machine = Machine::servers(Flushing::Default).await?;
    let runtime = machine.stack.service(Service::AgentRuntime);
    runtime.env("KAIRO_AGENT_RUNTIME__PARALLEL_TOOLS", AT_ONCE.to_string());
    machine.start_services(&Fleet::single(&scenario(wanted))).await?;
    let bus = connect(&machine.nats.operator()).await?;
    let mut probe = Probe::open(&machine).await?;
    probe.settled().await?;
    let before = probe.read().await?;
    progress(&format!("a lead, {} workers, {} tasks", wanted.workers, wanted.tasks));
    let begun = Instant::now();
    create(&machine, wanted).await?;
    let mut seen = Seen::default();
    timeout(PATIENCE, seen.read_to_end(&bus, wanted)).await.map_err(|_| "not all tasks are done in time")??;
    let took = begun.elapsed();
    probe.settled().await?;
    let moved = probe.read().await?.since(&before);
    let model = machine.stack.url(Service::ModelSim).unwrap_or_default().to_owned();
    let requests = counts(&machine.http, &model).await?.all.requests;
    drop(bus);
    machine.stop().await?;
    Ok(Report::new(wanted, seen, took, &moved, requests))
}

async fn create(machine: &Machine, wanted: &Team) -> Outcome<()> {
    let worker = |number: u64| json!({ "name": format!("w{number}"), "prompt": "You work.", "tools": ["tools.now"] });
    let workers: Vec<Value> = (0..wanted.workers).map(worker).collect();
    let lead = json!({ "prompt": "You lead.", "tools": ["task.queue"], "max_steps": 1_000, "next_run_after": 604_800 });
    let team = json!({ "team": LEAD, "owner": "ann", "mission": "Work.", "lead": lead, "workers": workers });
    let url = format!("{}/v1/teams", machine.stack.url(Service::Gateway).unwrap_or_default());
    machine.http.post(url).json(&team).send().await?.error_for_status()?;
    Ok(())
}

impl Seen {
    /// Reads on until all tasks are done and every session is over.
    async fn read_to_end(&mut self, bus: &Bus, wanted: &Team) -> Outcome<()> {
        let wanted = usize::try_from(wanted.tasks)?;
        loop {
            let mut messages: Vec<RawMessage> = Vec::new();
            bus.read_all("kairo.agent.*.decision.*", self.end, |raw| messages.push(raw)).await?;
            for raw in &messages {
                self.end = raw.sequence;
                self.see(&raw.read(MAX_BODY)?);
            }
            if !self.failed.is_empty() {
                return Err(self.failed.join("; ").into());
            }
            if self.completed >= wanted && self.open == 0 {
                return Ok(());
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    fn see(&mut self, record: &Record) {
        let events = decision(record).into_iter().flat_map(|decision| &decision.events);
        for event in events.filter_map(|event| event.event.as_ref()) {
            if let Event::TaskScheduled(scheduled) = event {
                let delegated = scheduled.task.as_ref().filter(|task| task.source == TaskSource::Delegation.as_str());
                self.queued.extend(delegated.map(|task| (task.task_id.clone(), record.envelope.time)));
            } else if let Event::TaskStarted(started) = event {
                let queued = self.queued.get(&started.task_id);
                let wait = queued.map(|queued| record.envelope.time.duration_since(*queued));
                self.waits.extend(wait.and_then(|wait| Duration::try_from(wait).ok()));
            } else if let Event::TaskEnded(ended) = event {
                self.completed += usize::from(self.queued.contains_key(&ended.task_id));
                let failed = ended.status_word() != TaskStatus::Completed;
                self.failed.extend(failed.then(|| format!("a task {}: {}", ended.status, ended.reason)));
            } else if let Event::ThreadCreated(created) = event {
                self.open += usize::from(created.kind == "work");
            } else if let Event::ThreadCompleted(_) = event {
                (self.open, self.over) = (self.open.saturating_sub(1), self.over + 1);
            }
        }
    }
}

impl Report {
    fn new(wanted: &Team, mut seen: Seen, took: Duration, moved: &Reading, requests: u64) -> Self {
        let tasks = seen.completed.max(1) as f64;
        seen.waits.sort_unstable();
        Self {
            workers: wanted.workers,
            tasks: seen.completed,
            delay_ms: wanted.delay_ms,
            seconds: took.as_secs_f64(),
            tasks_per_s: tasks / took.as_secs_f64(),
            cpu_ms: moved.cpu.iter().map(|(name, seconds)| (*name, seconds * 1_000.0 / tasks)).collect(),
            log_messages: moved.log.messages as f64 / tasks,
            log_bytes: moved.log.bytes as f64 / tasks,
            model_requests: requests as f64 / tasks,
            queued_p50_ms: in_ms(percentile(&seen.waits, 0.5)),
            queued_p95_ms: in_ms(percentile(&seen.waits, 0.95)),
            sessions: seen.over,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, tasks, delay_ms, seconds, tasks_per_s, log_messages, log_bytes, .. } = self;
        writeln!(out, "a lead, {workers} workers, {tasks} delegated tasks; the model takes {delay_ms} ms")?;
        writeln!(out, "all done in {seconds:.1} s: {tasks_per_s:.1} tasks a second, in {} sessions", self.sessions)?;
        writeln!(
            out,
            "a task: {log_messages:.1} messages and {log_bytes:.0} bytes of log, {:.2} model requests",
            self.model_requests
        )?;
        writeln!(out, "in the queue of its worker: p50 {} ms, p95 {} ms", self.queued_p50_ms, self.queued_p95_ms)?;
        let all: f64 = self.cpu_ms.values().sum();
        writeln!(out, "CPU time of a task: {all:.1} ms, of which")?;
        self.cpu_ms.iter().try_for_each(|(name, ms)| writeln!(out, "  {name:20}{ms:>8.2} ms"))
    }
}
