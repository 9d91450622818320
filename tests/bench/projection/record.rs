//! A short run of everything, and what it wrote into the log.

use std::time::Duration;

use futures::future::try_join_all;
use kairo_core::{
    bus::{Bus, BusConfig},
    ids::{self, Name},
    record::RawMessage,
    subjects::Service as Core,
};
use kairo_local::{Login, Service};
use kairo_proto::v1;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::{
    Outcome,
    arguments::Flushing,
    machine::{Fleet, Machine},
    probe::Probe,
};
use kairo_tests::{
    login,
    multiply::{AGENT, USER},
};

/// Agents that call tools themselves, and agents that plan.
const CALLERS: usize = 12;
const PLANNERS: usize = 4;
/// Messages to each of the first and of the second.
const TURNS: usize = 20;
const PLANS: usize = 5;
/// The wishes that callers are sent again and again: of twenty messages these.
const WISHES: [&str; 20] = [
    "chat", "clock", "chat", "run", "clock", "chat", "several", "clock", "remember", "chat", "clock", "run", "chat",
    "clock", "several", "chat", "later", "run", "chat", "progress",
];
const PLANS_OF: [&str; 5] = ["plan", "chat", "plan", "plan", "consent"];
/// Longest time a turn may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether a turn has its reply: 48 clients look at once.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Words that messages and answers are made of.
const WORDS: &str = "the report is due on friday and ann would like to see a draft of it before that so please look at \
                     what we said last week about numbers for the spring and tell me which of them have changed since \
                     then and whether anybody has to be asked again about the trip or the room that we wanted to book";

/// Runs, and returns all that was written.
pub async fn run() -> Outcome<Vec<RawMessage>> {
    let mut machine = Machine::servers(Flushing::Default).await?;
    let programs = json!({ "sh": "/bin/sh" }).to_string();
    machine.stack.service(Service::ProcessSupervisor).env("KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs);
    let guarded = json!(["tools.date_calc"]).to_string();
    machine.stack.service(Service::ToolRunner).env("KAIRO_TOOL_RUNNER__APPROVAL", guarded);
    machine.start_services(&Fleet::single(&scenario())).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default().to_owned();
    let http = Client::builder().no_proxy().build()?;
    let callers = (0..CALLERS).map(|number| converse(&http, &gateway, number, "tools", TURNS));
    let planners = (CALLERS..CALLERS + PLANNERS).map(|number| converse(&http, &gateway, number, "chain", PLANS));
    try_join_all(callers.chain(planners)).await?;
    Probe::open(&machine).await?.settled().await?;
    let bus = connect(&machine.nats.operator()).await?;
    let mut recorded = Vec::new();
    bus.read_all("kairo.>", 0, |raw| recorded.push(raw)).await?;
    machine.stop().await?;
    Ok(recorded)
}

pub async fn connect(login: &Login) -> Outcome<Bus> {
    connect_as(Core::Gateway, login).await
}

/// The bus as a service sees it.
pub async fn connect_as(service: Core, login: &Login) -> Outcome<Bus> {
    let nats = login::config(login);
    let instance = Name::parse(&format!("bench-{}", ids::generate().simple()))?;
    let bus = Bus::connect(service, instance, &nats, &BusConfig::default()).await?;
    bus.provision().await?;
    Ok(bus)
}

/// One agent's conversation: a message, its reply, the next message.
async fn converse(http: &Client, gateway: &str, number: usize, planning: &str, turns: usize) -> Outcome<()> {
    let (agent, user) = (format!("{AGENT}-{number:02}"), format!("{USER}-{:02}", number % 6));
    let planned = planning == "chain";
    let profile = json!({
        "agent": agent,
        "prompt": "You look after what you are asked for, and say shortly what came of it.",
        "planning": planning,
        "threads": if planned { "topics" } else { "single" },
    });
    http.post(format!("{gateway}/v1/agents")).json(&profile).send().await?.error_for_status()?;
    let wishes = if planned { PLANS_OF.as_slice() } else { WISHES.as_slice() };
    for (turn, wish) in wishes.iter().cycle().skip(number).take(turns).enumerate() {
        let text = format!("{wish} {} please {}", number * 100 + turn, words(number * 31 + turn * 7));
        let message = json!({ "user": user, "agent": agent, "text": text });
        let accepted = http.post(format!("{gateway}/v1/messages")).json(&message).send().await?.error_for_status()?;
        let accepted: Value = accepted.json().await?;
        answered(http, gateway, &accepted, *wish == "consent").await?;
    }
    Ok(())
}

/// Waits until a turn has its reply, or waits for its user.
async fn answered(http: &Client, gateway: &str, accepted: &Value, asks: bool) -> Outcome<()> {
    let correlation = accepted.get("event_id").and_then(Value::as_str).unwrap_or_default();
    let url = format!("{gateway}/v1/events?correlation={correlation}&limit=1000");
    let replied = async {
        loop {
            let answer = http.get(&url).send().await?;
            // So many ask at once that a busy machine may have them wait.
            if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
                tokio::time::sleep(ASK_AGAIN).await;
                continue;
            }
            let page: Value = answer.error_for_status()?.json().await?;
            let events = page.get("events").and_then(Value::as_array).into_iter().flatten();
            let ends = |event: &Value| {
                event.pointer("/payload/final") == Some(&json!(true))
                    || asks && event.get("type") == Some(&json!(v1::ApprovalRequested::TYPE))
            };
            if events.into_iter().any(ends) {
                return Ok(());
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    tokio::time::timeout(PATIENCE, replied)
        .await
        .map_err(|_| format!("no reply to {correlation} within {PATIENCE:?}"))?
}

/// Some of the words, as many as people write.
fn words(seed: usize) -> String {
    let length = 4 + seed % 5 * 12;
    WORDS.split_whitespace().cycle().skip(seed).take(length).collect::<Vec<_>>().join(" ")
}

/// Builds the scenario of the model.
fn scenario() -> String {
    let process =
        |script: &str| json!({ "tool": "process.run", "arguments": { "program": "sh", "args": ["-c", script] } });
    let now = || json!({ "tool": "tools.now", "arguments": {} });
    let write =
        json!({ "tool": "memory.append", "arguments": { "content": words(3), "keywords": ["report", "friday"] } });
    let later = json!({ "tool": "task.schedule", "arguments": {
        "type": "delay", "delay": "1 hour", "action": [{ "event": "user.notify", "params": { "message": words(2) } }],
    } });
    let turns = [
        ("chat", vec![]),
        ("clock", vec![now()]),
        ("several", vec![now(), process("echo done"), now()]),
        ("run", vec![process("for line in 1 2 3 4 5 6 7 8; do echo \"this is line $line of what was found\"; done")]),
        ("progress", vec![process("echo '::progress 1/2 half'; sleep 1.2; echo '::progress 2/2 all'; sleep 0.2")]),
        ("remember", vec![write]),
        ("later", vec![later]),
    ];
    let mut rules = planned();
    rules.extend(turns.into_iter().map(|(wish, calls)| {
        let answer = json!({ "text": format!("Here is what I found. {}", words(wish.len() * 3)) });
        let mut turn = Vec::new();
        if !calls.is_empty() {
            turn.push(json!({ "reasoning": words(11), "tool_calls": calls }));
        }
        turn.push(answer);
        json!({ "name": wish, "when": { "user_matches": format!("^{wish} ") }, "turn": turn })
    }));
    rules.push(json!({ "name": "otherwise", "when": {}, "reply": "Noted." }));
    json!({ "rules": rules }).to_string()
}

/// Builds the model's rules for agents that plan.
fn planned() -> Vec<Value> {
    let is = |name: &str| json!(format!("You are {name}"));
    let step = |tool: &str, params: Value| json!({ "event": tool, "params": params });
    let echo = |word: &str| step("process.run", json!({ "program": "sh", "args": ["-c", format!("echo {word}")] }));
    let plan = json!([[step("tools.now", json!({})), echo("one")], echo("two"), step("tools.now", json!({}))]);
    let consent = json!([step("tools.date_calc", json!({ "add": "1 day" })), echo("two")]);
    let mut rules = vec![
        json!({ "name": "match", "when": { "system_starts_with": is("thread.match") },
                "reply": { "json": { "action": "continue" } } }),
        json!({ "name": "sum up", "when": { "system_starts_with": is("thread.summarize") },
                "reply": { "json": { "title": "The report of friday", "summary": words(4) } } }),
    ];
    for (word, chain) in [("plan", plan), ("consent", consent)] {
        let said = format!(r"{word} (?<id>\S+) please");
        let when = |name: &str| json!({ "system_starts_with": is(name), "user_matches": said });
        let told = json!({ "system_starts_with": is("agent.think"), "user_matches": said, "step_at_least": 1 });
        let to_chain =
            json!({ "event": "agent.chain", "params": { "plan": format!("{word} {{{{ captures.id }}}} please") } });
        rules.extend([
            json!({ "name": format!("tell {word}"), "when": told, "reply": { "text": words(7) } }),
            json!({ "name": format!("think {word}"), "when": when("agent.think"), "reply": { "json": to_chain } }),
            json!({ "name": format!("compile {word}"), "when": when("agent.chain"), "reply": { "json": chain } }),
        ]);
    }
    rules
}
