//! The wait of users for the acknowledgement of longer work, while their agent is at work: a call of the heavy model
//! that takes a minute is under way, on the same endpoint as the fast model.

use std::{fmt, time::Duration};

use kairo_local::Service;
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    Outcome,
    agents::{self, Agent, in_ms},
    arguments::{Acknowledge, Flushing},
    load::percentile,
    machine::{Fleet, Machine},
    rounds::progress,
};

/// Entries that the model is shown.
const HISTORY: u32 = 20;
/// The longest that an acknowledgement is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The results, with times in milliseconds.
#[derive(Debug, Serialize)]
pub struct Report {
    agents: u64,
    messages: usize,
    fast_ms: u64,
    heavy_ms: u64,
    p50_ms: f64,
    p95_ms: f64,
    longest_ms: f64,
}

fn scenario(wanted: &Acknowledge) -> String {
    let Acknowledge { fast_ms, heavy_ms, .. } = wanted;
    json!({ "rules": [
        {
            "name": "acknowledge",
            "when": { "system_starts_with": "You are agent.acknowledge" },
            "reply": {
                "text": "I will see to it.",
                "tool_calls": [{ "tool": "task.queue", "arguments": { "text": "{{ user }}" } }],
                "delay_ms": fast_ms,
            },
        },
        { "name": "work", "reply": { "text": "It is done.", "delay_ms": heavy_ms } },
    ] })
    .to_string()
}

pub async fn measure(wanted: &Acknowledge) -> Outcome<Report> {
    let mut machine = Machine::servers(Flushing::Default).await?;
    machine.start_services(&Fleet::single(&scenario(wanted))).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default();
    let names = (0..wanted.agents).map(|number| format!("aide-{number}"));
    let (agents, replies) = agents::define(gateway, names, HISTORY).await?;
    let listening = replies.listen().await?;
    for agent in &agents {
        let sender = &agent.sender;
        let profile = json!({ "agent": sender.agent, "prompt": "You help.", "conduct": "background" });
        let url = format!("{}/v1/agents", sender.url);
        sender.http.post(url).json(&profile).send().await?.error_for_status()?;
    }
    progress("acknowledgements while agents are at work");
    let mut running = JoinSet::new();
    for agent in agents {
        running.spawn(talk(agent, wanted.messages));
    }
    let mut waits = Vec::new();
    while let Some(ended) = running.join_next().await {
        waits.extend(ended??);
    }
    drop(listening);
    machine.stop().await?;
    waits.sort_unstable();
    let at = |share: f64| in_ms(percentile(&waits, share));
    Ok(Report {
        agents: wanted.agents,
        messages: waits.len(),
        fast_ms: wanted.fast_ms,
        heavy_ms: wanted.heavy_ms,
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        longest_ms: at(1.0),
    })
}

/// Says one thing after the other; how long each was waited for but the first, which has the agent begin to work.
async fn talk(mut agent: Agent, messages: u64) -> Outcome<Vec<Duration>> {
    let mut waits = Vec::new();
    for number in 0..=messages {
        let wait = agent.turn(&format!("Do this: {number}"), PATIENCE).await?;
        waits.extend((number > 0).then_some(wait));
    }
    Ok(waits)
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, messages, fast_ms, heavy_ms, p50_ms, p95_ms, longest_ms } = self;
        writeln!(
            out,
            "{messages} messages to {agents} agents, each at work on a call of {heavy_ms} ms; fast model {fast_ms} ms"
        )?;
        writeln!(out, "acknowledged after: p50 {p50_ms} ms, p95 {p95_ms} ms, longest {longest_ms} ms")
    }
}
