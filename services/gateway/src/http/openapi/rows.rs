//! The rows of answers are described as they are: every field, with what it can hold.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::log_message::LogMessage;
use kairo_read_model::{
    Action, Agent, Approval, Chain, ChainStep, Conversation, ConversationMessage, Firing, Memory, OpenOffer, Process,
    Sealed, Task, Thread, ThreadEvent, WaitingApproval, stored::Time,
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{super::usage, tests::parsed};

/// A value of a field: with all that there may be, or with nothing that there need not be.
trait Sample {
    fn sample(full: bool) -> Self;
}

macro_rules! samples {
    ($($type:ty: $value:expr),* $(,)?) => {
        $(impl Sample for $type {
            fn sample(_: bool) -> Self {
                $value
            }
        })*
    };
}

samples! {
    String: "word".to_owned(),
    Value: json!({ "any": [1, null] }),
    Uuid: Uuid::from_u128(7),
    Time: Time(Timestamp::UNIX_EPOCH),
    bool: true,
    u32: 7,
    u64: 7,
    i32: -7,
    i64: 7,
    f64: 0.5,
}

/// Base64, and headers of which none is certain to be there.
impl Sample for LogMessage {
    fn sample(_: bool) -> Self {
        let headers = BTreeMap::from([("ce-id".to_owned(), "word".to_owned())]);
        let (subject, stored, data) = ("kairo.agent.a.message".to_owned(), Timestamp::UNIX_EPOCH, "AA==".to_owned());
        Self { sequence: 7, subject, stored, headers, data }
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(full: bool) -> Self {
        full.then(|| T::sample(full))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(full: bool) -> Self {
        full.then(|| T::sample(full)).into_iter().collect()
    }
}

/// Samples of a row by its fields, none of which can be forgotten; some hold words of their own.
macro_rules! rows {
    ($($row:path { $($field:ident),* $(; $($own:ident: $word:expr),*)? })*) => {
        $(impl Sample for $row {
            fn sample(full: bool) -> Self {
                $row { $($field: Sample::sample(full),)* $($($own: $word.into()),*)? }
            }
        })*
    };
}

rows! {
    Agent { agent, profile, sequence, defined_at }
    Approval {
        action_id, sequence, agent, user, thread_id, correlation_id, tool, arguments, chain_id, step, requested_at,
        decided_by, note, decided_at; status: "rejected"
    }
    Action {
        action_id, sequence, agent, thread_id, correlation_id, tool, arguments, status, decided_at, invoked_at, runner,
        process_id, fraction, progress_message, progress_at, cancel_requested_at, ended_at, result, error_message,
        duration_ms, verdict, resolved_by, resolution_note, resolved_at
    }
    Conversation { agent, user, last_sequence, last_at, last_text; last_role: "failure" }
    ConversationMessage {
        sequence, position, event_id, ts, correlation_id, agent, user, thread_id, message_id, text, last;
        role: "user", parts: json!([])
    }
    Chain {
        chain_id, sequence, agent, thread_id, correlation_id, task_id, plan, started_at, ended_at, outcome, reason,
        steps; origin: "plan"
    }
    ChainStep {
        chain_id, step, group, event, params, filled, decide, approval_id, action_id, begun_at, ended_at, result, reason;
        state: "stopped"
    }
    Firing { event_id, sequence, fired_at, occurrence, due_at, late, trigger_event_id }
    Memory {
        agent, memory_id, user, subject, content, keywords, day, thread_id, source_event_ids, secrets, sequence,
        updated_at, score; kind: "fact"
    }
    OpenOffer {
        offer_id, sequence, agent, user, correlation_id, message_id, message, thread_id, current_thread_id, reason,
        summary, offered_at; action: "suggest_new"
    }
    Process {
        process_id, action_id, sequence, agent, supervisor, tool, background, program, arguments, pid, started_at,
        fraction, progress_message, progress_at, tail, cancel_requested_at, cancel_requested_by, ended_at, outcome, code,
        signal, reason, wall_ms, user_ms, system_ms, max_rss_bytes, stdout_tail, stderr_tail, stdout_bytes, stderr_bytes
    }
    Sealed { name, sealed }
    Task {
        task_id, sequence, agent, user, thread_id, title, type_name, at, interval, cron, rrule, time_zone, trigger,
        condition, action, source, reason, created_at, changed_at, next_at, occurrence, fired, last_fired_at, last_late,
        ended_at; kind: "hook", status: "paused"
    }
    Thread {
        agent, thread_id, user, title, summary, created_at, updated_at, last_sequence; kind: "work", status: "archived"
    }
    ThreadEvent { sequence, position, event_id, correlation_id, event, params, status, result, timestamp }
    WaitingApproval {
        action_id, sequence, agent, user, thread_id, correlation_id, tool, arguments, chain_id, step, requested_at
    }
    usage::Usage { day, agent, user, thread_id, model, sum }
}

impl Sample for usage::Sum {
    fn sample(full: bool) -> Self {
        let sum = Self::default();
        Self { cost: sum.cost.filter(|_| full), ..sum }
    }
}

/// The fields that a schema describes, and those that must be there, of all that it consists of.
fn described(document: &Value, schema: &Value) -> [BTreeSet<String>; 2] {
    if let Some(reference) = schema["$ref"].as_str() {
        return described(document, document.pointer(reference.trim_start_matches('#')).unwrap());
    }
    let words =
        |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let mut properties: BTreeSet<String> =
        schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect();
    let mut required: BTreeSet<String> = words(&schema["required"]);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        let [more, needed] = described(document, part);
        properties.extend(more);
        required.extend(needed);
    }
    [properties, required]
}

fn is_as_described<T: Sample + Serialize>(name: &'static str) -> &'static str {
    let document = parsed();
    let reference = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
    let schema = jsonschema::draft202012::new(&reference).unwrap();
    let rows = [true, false].map(|full| serde_json::to_value(T::sample(full)).unwrap());
    for row in &rows {
        let wrong: Vec<String> =
            schema.iter_errors(row).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?} in {row}");
    }
    let [full, bare] = rows.map(|row| row.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>());
    let [properties, required] = described(&document, &document["components"]["schemas"][name]);
    assert_eq!(full, properties, "{name}");
    assert_eq!(bare, required, "{name}");
    name
}

#[test]
fn rows_have_the_fields_that_are_described_and_no_others() {
    let mut compared = BTreeSet::from([
        is_as_described::<Agent>("Agent"),
        is_as_described::<Approval>("ConsentAsked"),
        is_as_described::<Action>("Action"),
        is_as_described::<Chain>("Chain"),
        is_as_described::<ChainStep>("Step"),
        is_as_described::<Conversation>("Conversation"),
        is_as_described::<ConversationMessage>("Said"),
        is_as_described::<Firing>("Firing"),
        is_as_described::<LogMessage>("LogMessage"),
        is_as_described::<Memory>("Memory"),
        is_as_described::<OpenOffer>("Offer"),
        is_as_described::<Process>("Process"),
        is_as_described::<Sealed>("Sealed"),
        is_as_described::<Task>("Task"),
        is_as_described::<Thread>("Thread"),
        is_as_described::<ThreadEvent>("ThreadEvent"),
        is_as_described::<WaitingApproval>("WaitingApproval"),
        is_as_described::<usage::Usage>("Usage"),
        is_as_described::<usage::Sum>("UsageSum"),
    ]);
    // What the services, the store of objects, the search and the registry of generations answer.
    compared.extend([
        "Status",
        "Replica",
        "OwnedPartition",
        "ParkedAgent",
        "Consumer",
        "Part",
        "StoredObject",
        "Hit",
        "Counts",
    ]);
    compared.extend(["ProjectionName", "Requested", "Projection", "UnknownType", "Generation", "Digests"]);
    let rows = include_str!("../../openapi/rows.yaml").lines();
    let names = rows.filter_map(|line| line.strip_prefix("    ")?.strip_suffix(':'));
    let missed: Vec<&str> = names.filter(|name| !name.starts_with(' ') && !compared.contains(name)).collect();
    assert!(missed.is_empty(), "nothing holds these to what is answered: {missed:?}");
}
