//! The cost of submodules for a user's wait: turns of agents without any, with one and with several, alternating, so
//! that other load on the machine hits all of them.

use std::{fmt, time::Duration};

use kairo_local::Service;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Outcome, agents,
    arguments::{Flushing, ThinkAlong},
    load::percentile,
    machine::{Fleet, Machine},
    rounds::progress,
};

/// Entries that the model is shown.
const HISTORY: u32 = 20;
/// The longest that a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The results.
#[derive(Debug, Serialize)]
pub struct Report {
    turns: u64,
    delay_ms: u64,
    /// Medians by the number of submodules, in milliseconds.
    medians: Vec<Median>,
    /// The turn with the most submodules, as a multiple of the one with a single submodule.
    ratio: f64,
}

#[derive(Debug, Serialize)]
struct Median {
    submodules: u64,
    ms: f64,
}

fn scenario(wanted: &ThinkAlong) -> String {
    json!({ "rules": [
        {
            "name": "think along",
            "when": { "system_starts_with": "You are a submodule" },
            "reply": { "text": "Mind the gap.", "delay_ms": wanted.delay_ms },
        },
        { "name": "answer", "reply": { "text": "It is done.", "delay_ms": wanted.delay_ms } },
    ] })
    .to_string()
}

fn profile(agent: &str, submodules: u64) -> Value {
    let voice = |at: u64| json!({ "name": format!("voice-{at}"), "prompt": "You think of dangers." });
    let submodules: Vec<Value> = (0..submodules).map(voice).collect();
    json!({ "agent": agent, "prompt": "You help.", "submodules": submodules })
}

pub async fn measure(wanted: &ThinkAlong) -> Outcome<Report> {
    let mut machine = Machine::servers(Flushing::Default).await?;
    machine.start_services(&Fleet::single(&scenario(wanted))).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default();
    let numbers = [0, 1, wanted.submodules];
    let names = numbers.iter().map(|number| format!("with-{number}"));
    let (mut agents, replies) = agents::define(gateway, names, HISTORY).await?;
    let listening = replies.listen().await?;
    for (agent, submodules) in agents.iter().zip(numbers) {
        let sender = &agent.sender;
        let url = format!("{}/v1/agents", sender.url);
        sender.http.post(url).json(&profile(&sender.agent, submodules)).send().await?.error_for_status()?;
    }
    progress("turns in which submodules think along");
    let mut waits = vec![Vec::new(); agents.len()];
    for number in 0..=wanted.turns {
        for (agent, waits) in agents.iter_mut().zip(&mut waits) {
            let wait = agent.turn(&format!("Do this: {number}"), PATIENCE).await?;
            // The first of each brings up what the others find there.
            waits.extend((number > 0).then_some(wait));
        }
    }
    drop(listening);
    machine.stop().await?;
    let medians: Vec<Median> =
        numbers.into_iter().zip(waits).map(|(submodules, waits)| median(submodules, waits)).collect();
    let ratio = match medians.as_slice() {
        [_, one, most] => most.ms / one.ms,
        _ => f64::NAN,
    };
    Ok(Report { turns: wanted.turns, delay_ms: wanted.delay_ms, medians, ratio })
}

fn median(submodules: u64, mut waits: Vec<Duration>) -> Median {
    waits.sort_unstable();
    Median { submodules, ms: agents::in_ms(percentile(&waits, 0.5)) }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { turns, delay_ms, medians, ratio } = self;
        writeln!(out, "{turns} turns of each agent, model {delay_ms} ms")?;
        for Median { submodules, ms } in medians {
            writeln!(out, "with {submodules} submodules: median {ms} ms")?;
        }
        writeln!(out, "most against one: {ratio:.3}")
    }
}
