//! A log in which very many agents had a turn each, and nothing is left to do.
//!
//! One turn is recorded and written again for every agent, with other names and ids ([`kairo_tests::multiply`]). Unlike
//! copies for a read model, these are read by agents: a decision's cursor is where its own input stands.

use std::time::Duration;

use async_nats::jetstream::{consumer::DeliverPolicy, consumer::pull};
use futures::{StreamExt, TryStreamExt, stream};
use kairo_core::{
    bus::{Bus, append::OutgoingEvent},
    ownership::checkpoint::CheckpointStore,
    record::{RawMessage, Record},
    subjects::{Consumer, EVENTS_STREAM, Service as Core},
};
use kairo_local::{Login, Service};
use kairo_proto::Body;
use kairo_tests::multiply::{AGENT, Pattern, USER, named};

use super::watch::Watch;
use crate::{
    Outcome,
    agents::{Said, Sender, define_one},
    machine::Machine,
    probe::Probe,
    projection::{connect, connect_as},
};

pub const SCENARIO: &str = r#"
rules:
  - name: answer
    reply: "Yes, what can I do for you?"
"#;
/// Agents that are written at once.
const AT_ONCE: usize = 256;
/// The longest that the recorded turn may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The name of the agent of this number.
pub fn agent(number: u32) -> String {
    named(AGENT, number)
}

/// All that is written about one agent and its turn.
pub async fn record(machine: &Machine) -> Outcome<Vec<RawMessage>> {
    let url = machine.stack.url(Service::Gateway).unwrap_or_default().to_owned();
    let sender = Sender { agent: AGENT.to_owned(), http: machine.http.clone(), url };
    define_one(&sender, 20).await?;
    let mut watch = Watch::open(&machine.nats.operator()).await?;
    let Said::Accepted(_) = sender.say_as(USER, "Hello, are you there?").await? else {
        return Err("the first message was refused".into());
    };
    watch.decision(AGENT, PATIENCE).await.ok_or("the recorded turn has no decision")?;
    Probe::open(machine).await?.settled().await?;
    let bus = connect(&machine.nats.operator()).await?;
    let mut turn = Vec::new();
    bus.read_all("kairo.>", 0, |raw| turn.push(raw)).await?;
    turn.retain(|raw| raw.subject.contains(AGENT) || raw.subject.contains(USER));
    Ok(turn)
}

/// Writes the turn for agents 1 to `agents`, as if everybody had dealt with it. Returns how many messages that were.
pub async fn fill(login: &Login, turn: &[RawMessage], agents: u32) -> Outcome<u64> {
    let bus = connect(login).await?;
    let patterns: Vec<Pattern> = turn.iter().map(Pattern::of).collect();
    let (bus, patterns) = (&bus, &patterns);
    let writing = stream::iter(1..=agents).map(|number| Outcome::Ok(write(bus, patterns, number)));
    writing.try_buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    pass_over(bus).await?;
    pass_over_users(login).await?;
    Ok(u64::from(agents) * patterns.len() as u64)
}

/// One agent's turn. Every subject has one message, which its guard proves.
async fn write(bus: &Bus, patterns: &[Pattern], number: u32) -> Outcome<()> {
    let mut input = 0;
    for pattern in patterns {
        let (subject, headers, payload) = pattern.copy(number);
        let raw = RawMessage {
            sequence: 0,
            subject,
            partition: None,
            headers,
            payload,
            sealed: None,
            stored: jiff::Timestamp::now(),
        };
        let Record { subject, envelope, mut body, .. } = raw.read(bus.limits.max_body_bytes)?;
        if let Body::AgentDecision(decision) = &mut body {
            decision.cursor = input;
        }
        let is_input = matches!(body, Body::AgentMessage(_));
        let written = bus.append(&OutgoingEvent { subject, envelope, body }, 0).await?;
        if is_input {
            input = written.sequence;
        }
    }
    Ok(())
}

/// The router goes on behind what was written, too.
async fn pass_over_users(login: &Login) -> Outcome<()> {
    let bus = connect_as(Core::Router, login).await?;
    let end = bus.nats()?.jetstream.get_stream(EVENTS_STREAM).await?.cached_info().state.last_sequence;
    for partition in bus.log_identity()?.partitions.all() {
        CheckpointStore::open(&bus, partition).await?.write(end, Vec::new()).await?;
    }
    Ok(())
}

/// Consumers go on behind what was written: it was dealt with.
async fn pass_over(bus: &Bus) -> Outcome<()> {
    let stream = bus.nats()?.jetstream.get_stream(EVENTS_STREAM).await?;
    let next = stream.cached_info().state.last_sequence + 1;
    for consumer in Consumer::DURABLE.into_iter().filter(|consumer| consumer.stream() == EVENTS_STREAM) {
        let Ok(existing) = stream.get_consumer::<pull::Config>(consumer.name()).await else { continue };
        let mut config = existing.cached_info().config.clone();
        config.deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: next };
        stream.delete_consumer(consumer.name()).await?;
        stream.create_consumer(config).await?;
    }
    Ok(())
}
