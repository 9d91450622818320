//! Makes the decisions of logs again, with one mutant or with none, and says what came of it as one line of JSON. Built of the
//! sources that `kairo-mutants` wrapped; of those that are not, no mutant is ever on.
//!
//! `kairo-mutants-runner MUTANT FILE…`: the number of the mutant, 0 for none. With none it also says which were reached, and
//! every text that models are shown.

mod effects;

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs::File,
    io::{BufRead, BufReader},
};

use effects::Effects;
use kairo_events::log_message;
use kairo_mind::{
    replay::{Replay, changes::ReplayChanges},
    request::{ModelRequest, PromptMessage},
};
use kairo_mutants_switch as switch;
use kairo_proto::v1::LogMessage;
use kairo_replay::{
    replayer::{ReplayProgress, Replayer},
    report::{DecisionReport, OutcomeClass, Range},
};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::{Value, json};

/// The memory limit of a mutant that never stops, in bytes.
const MEMORY: u64 = 4 << 30;
/// Its limit of CPU time, in seconds: a replay of the examples takes a fraction of one.
const SECONDS: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mutant: u32 = arguments.next().ok_or("expected the number of a mutant, and files")?.parse()?;
    for (of, most) in [(Resource::As, MEMORY), (Resource::Cpu, SECONDS)] {
        setrlimit(of, Rlimit { current: Some(most), maximum: Some(most + 1) })?;
    }
    let logs: BTreeMap<String, Vec<LogMessage>> =
        arguments.map(|file| Ok((file.clone(), read(&file)?))).collect::<Result<_, Box<dyn Error>>>()?;
    switch::choose(mutant);
    let told = match mutant {
        0 => with_none(&logs)?,
        _ => with_one(&logs),
    };
    println!("{told}");
    Ok(())
}

fn read(file: &str) -> Result<Vec<LogMessage>, Box<dyn Error>> {
    let lines = BufReader::new(File::open(file)?).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

/// The result of a log: how many decisions were made, the first that is not the same, and the states at the end.
struct Told {
    decisions: usize,
    other: Option<String>,
    states: Value,
}

/// Makes the decisions of a log again, up to the first that is not the same.
fn replayed(log: &[LogMessage]) -> Told {
    let mut replaying = Replayer::new(BTreeSet::new(), Range::default(), ReplayChanges::default(), None);
    let (mut decisions, mut other) = (0, None);
    for message in log {
        match replaying.replay(message) {
            Err(broken) => other = Some(format!("cannot be followed: {broken}")),
            Ok(ReplayProgress::NoDecision) => {}
            Ok(ReplayProgress::End) => other = Some("takes a newer build".to_owned()),
            Ok(ReplayProgress::Decision(decision)) => {
                decisions += 1;
                other = describe_decision(&decision);
            }
        }
        if other.is_some() {
            break;
        }
    }
    Told { decisions, other, states: json!(replaying.report("", Vec::new()).states) }
}

fn describe_decision(decision: &DecisionReport) -> Option<String> {
    let outcome = json!(decision.outcome);
    (decision.outcome != OutcomeClass::Same).then(|| outcome.as_str().unwrap_or_default().to_owned())
}

fn with_one(logs: &BTreeMap<String, Vec<LogMessage>>) -> Value {
    let mut states = serde_json::Map::new();
    for (file, log) in logs {
        let Told { decisions, other, states: at_the_end } = replayed(log);
        if let Some(outcome) = other {
            return json!({ "outcome": outcome, "file": file, "decision": decisions });
        }
        states.insert(file.clone(), at_the_end);
    }
    // Before what else it made is looked for, which comes to other places as well.
    let has_changed = switch::has_changed();
    json!({ "outcome": "same", "states": states, "changed": has_changed, "effects": effects(logs) })
}

fn with_none(logs: &BTreeMap<String, Vec<LogMessage>>) -> Result<Value, Box<dyn Error>> {
    let (mut decisions, mut messages, mut states) = (0, 0, serde_json::Map::new());
    for (file, log) in logs {
        let told = replayed(log);
        if let Some(outcome) = told.other {
            return Err(format!("{file}: without a mutant, decision {} is {outcome}", told.decisions).into());
        }
        decisions += told.decisions;
        messages += log.len();
        states.insert(file.clone(), told.states);
    }
    // Before what models are shown is looked for, which comes to other places as well.
    let reached = switch::reached();
    let mut shown = BTreeSet::new();
    for log in logs.values() {
        add_shown(log, &mut shown);
    }
    Ok(json!({
        "outcome": "same", "decisions": decisions, "messages": messages, "states": states, "reached": reached, "shown": shown,
        "effects": effects(logs),
    }))
}

fn effects(logs: &BTreeMap<String, Vec<LogMessage>>) -> Effects {
    let mut effects = Effects::default();
    logs.values().for_each(|log| effects.add(log));
    effects
}

/// Adds every text that models were shown for the decisions of a log.
fn add_shown(log: &[LogMessage], shown: &mut BTreeSet<String>) {
    let mut replay = Replay::new(None);
    for message in log {
        let Ok(Ok(record)) = log_message::decode_record(message) else { continue };
        // None for whatever is no decision.
        for asked in replay.model_calls(&record).unwrap_or_default() {
            add_request(&asked.request, shown);
        }
        replay.apply_record(record);
    }
}

fn add_request(request: &ModelRequest, shown: &mut BTreeSet<String>) {
    shown.extend(request.messages.iter().map(|message| match message {
        PromptMessage::System { text } | PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. } => {
            text.clone()
        }
        PromptMessage::Assistant { text, .. } => text.clone(),
    }));
    shown.extend(request.tools.iter().flat_map(|tool| [tool.description.to_string(), tool.schema.to_string()]));
}
