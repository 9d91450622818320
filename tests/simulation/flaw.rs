//! Flaws on purpose: what the invariants are worth. Each is put between a replica and the world, where it makes of a
//! service one that does not keep to a rule: who sees no guard writes without one.

use kairo_core::{
    bus::{
        canceled_calls::STOPPING,
        port::{Headers, OutgoingMessage},
    },
    record::RawMessage,
    subjects::{Consumer, Service},
};
use kairo_in_memory::server::Parcel;
use kairo_proto::Body;

use crate::{
    audit::{decision, tool_calls},
    world::World,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Decisions are written without the guard of their subject.
    UnguardedDecision,
    /// A runner does not look into the ledger, and writes to it without a guard.
    LedgerIgnored,
    /// A runner takes every tool for one that may be called twice.
    EverythingRepeats,
    /// A runner runs a tool before it is entered in the ledger.
    EffectFirst,
    /// Results are written without looking whether there is one.
    UnguardedResult,
    /// A guard runs its program before it is entered in the ledger that the process exists.
    GateFirst,
    /// A supervisor opens the gate without looking whether the process was canceled meanwhile.
    GateAnyway,
    /// A guard does not mind that its supervisor says nothing any more.
    LeaseIgnored,
    /// A delivery is acknowledged before it is dealt with.
    AckFirst,
    /// Entries of a ledger are overlooked.
    ForgetfulLedger,
    /// A router makes up a new id each time.
    FreshIds,
    /// A runner calls tools that need a human's consent without looking for it.
    ConsentIgnored,
    /// A decision is acknowledged before its timers are set.
    EffectsAckFirst,
    /// Timers that go off are forgotten before the log knows.
    LostTimer,
    /// The new owner of a partition does not load the agents that had something to do.
    BusyForgotten,
    /// A checkpoint that is not of this log is taken for one of it.
    OtherLogsCheckpoint,
    /// A server that lags behind is asked for facts that only the leader knows for sure.
    LaggingLeader,
    /// The reader of a partition does not see that messages come out of order.
    TailOutOfOrder,
    /// The reader of a partition does not see that a message was lost.
    TailLoses,
    /// A runner does not look for decisions that stop what it is about to begin.
    StopsOverlooked,
}

impl Flaw {
    /// Those that are searched for only where `KAIRO_SEEDS` is set: they take runs of minutes, or hundreds of runs.
    pub const RARE: [Flaw; 2] = [Flaw::LaggingLeader, Flaw::GateAnyway];

    /// With the seed that found it when it was searched for last, from which the search begins: most changes of the services lead
    /// the same seed elsewhere.
    pub const ALL: [(Flaw, u64); 20] = [
        (Flaw::UnguardedDecision, 119),
        (Flaw::LedgerIgnored, 2),
        (Flaw::EverythingRepeats, 4),
        (Flaw::EffectFirst, 2),
        (Flaw::UnguardedResult, 4),
        (Flaw::GateFirst, 2),
        (Flaw::GateAnyway, 0),
        (Flaw::LeaseIgnored, 116),
        (Flaw::AckFirst, 2),
        (Flaw::ForgetfulLedger, 67),
        (Flaw::FreshIds, 1),
        (Flaw::ConsentIgnored, 4),
        (Flaw::EffectsAckFirst, 135),
        (Flaw::LostTimer, 0),
        (Flaw::BusyForgotten, 16),
        (Flaw::OtherLogsCheckpoint, 211),
        (Flaw::LaggingLeader, 0),
        (Flaw::TailOutOfOrder, 3),
        (Flaw::TailLoses, 6),
        (Flaw::StopsOverlooked, 4),
    ];
}

const CHECKPOINT: &str = "$KV.KAIRO_SNAPSHOTS.checkpoint.";

/// Returns the message that a replica writes as its flaw changes it.
pub fn written(world: &mut World, replica: usize, mut message: OutgoingMessage) -> OutgoingMessage {
    let Some(flaw) = world.flaw else { return message };
    let about = |noun: &str, verb: &str| {
        message.subject.starts_with(&format!("kairo.{noun}.")) && message.subject.contains(&format!(".{verb}."))
    };
    match flaw {
        Flaw::UnguardedDecision if about("agent", "decision") => message.guard = None,
        Flaw::LedgerIgnored if about("tool", "invoke") => message.guard = None,
        Flaw::UnguardedResult if about("tool", "result") => message.guard = None,
        Flaw::FreshIds if world.replicas[replica].service == Service::Router && message.id.is_some() => {
            let id = world.new_id().to_string();
            message.headers = with(&message.headers, "ce-id", &id);
            message.id = Some(id);
        }
        Flaw::BusyForgotten if message.subject.starts_with(CHECKPOINT) => {
            let mut value: serde_json::Value = serde_json::from_slice(&message.payload).expect("a checkpoint");
            value["busy"] = serde_json::json!([]);
            message.payload = value.to_string().into();
        }
        _ => {}
    }
    message
}

fn with(headers: &Headers, changed: &str, to: &str) -> Headers {
    let mut copy = Headers::new();
    for (name, values) in headers.iter() {
        let name_text: &str = name.as_ref();
        match name_text == changed {
            true => copy.insert(changed, to),
            false => values.iter().for_each(|value| copy.append(name.clone(), value.clone())),
        }
    }
    copy
}

/// Returns the messages that a replica reads as its flaw changes them.
pub fn filter_messages(world: &mut World, replica: usize, mut raws: Vec<RawMessage>) -> Vec<RawMessage> {
    let service = world.replicas[replica].service;
    if world.faults.outdated_catalogue && service == Service::AgentRuntime {
        raws.iter_mut().for_each(forget_consent_in);
    }
    let Some(flaw) = world.flaw else { return raws };
    let is = |raw: &RawMessage, noun: &str, verb: &str| {
        raw.subject.starts_with(&format!("kairo.{noun}.")) && raw.subject.ends_with(&format!(".{verb}"))
    };
    match (flaw, service) {
        (Flaw::LedgerIgnored, Service::ToolRunner) => raws.retain(|raw| !is(raw, "tool", "invoke")),
        (Flaw::UnguardedResult, Service::ToolRunner) => raws.retain(|raw| !is(raw, "tool", "result")),
        (Flaw::GateAnyway, Service::ProcessSupervisor) => raws.retain(|raw| !is(raw, "process", "canceled")),
        (Flaw::ForgetfulLedger, Service::ToolRunner) => {
            raws.retain(|raw| !is(raw, "tool", "invoke") || !world.permille(300));
        }
        (Flaw::StopsOverlooked, Service::ToolRunner) => raws.retain(|raw| !stops(raw)),
        (Flaw::OtherLogsCheckpoint, _) => {
            let log = world.log.to_string();
            let checkpoints = raws.iter_mut().filter(|raw| raw.subject.starts_with(CHECKPOINT));
            checkpoints.for_each(|raw| {
                if let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(&raw.payload) {
                    value["log"] = serde_json::json!(log);
                    raw.payload = value.to_string().into();
                }
            });
        }
        _ => {}
    }
    raws
}

/// Returns true if the message is a decision that stops a call.
fn stops(raw: &RawMessage) -> bool {
    let Ok(record) = raw.read(1 << 20) else { return false };
    let calls = decision(&record).into_iter().flat_map(tool_calls);
    calls.into_iter().any(|(_, call)| STOPPING.contains(&call.tool.as_str()))
}

fn forget_consent_in(raw: &mut RawMessage) {
    // Without the keys of its users nothing is changed in it.
    let Ok(mut record) = raw.read(1 << 20) else { return };
    if raw.is_sealed() {
        return;
    }
    forget_consent(&mut record.body);
    raw.payload = record.body.encode().into();
}

/// A catalogue of an older version did not say which tools need consent.
pub fn forget_consent(body: &mut Body) {
    if let Body::ToolCatalogue(catalogue) = body {
        catalogue.tools.iter_mut().for_each(|tool| tool.needs_approval = false);
    }
}

/// Acknowledges what has only just been sent.
pub fn ack_first(world: &mut World, parcels: &[(usize, Parcel)]) {
    let consumer = if world.has(Flaw::AckFirst) { Consumer::ToolRunner } else { Consumer::AgentRuntimeEffects };
    let first = parcels.iter().filter_map(|(_, parcel)| match parcel {
        Parcel::Delivery(_, delivered) if delivered.receipt.starts_with(&format!("{}/", consumer.name())) => {
            Some(delivered.receipt.clone())
        }
        _ => None,
    });
    let first: Vec<String> = first.collect();
    first.iter().for_each(|receipt| world.server.settle(receipt, kairo_core::bus::port::Settlement::Done));
}
