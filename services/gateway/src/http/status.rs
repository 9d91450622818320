//! `GET /v1/status`: who is there, how far each of them is, and what went wrong.

use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use axum::{Json, extract::State};
use futures::{StreamExt, future::try_join_all};
use kairo_core::{
    bus::BusError,
    subjects::{Consumer, DLQ_STREAM, EVENTS_STREAM, STATUS_PING},
};
use kairo_proto::{
    Body, ContentType,
    v1::{OwnedPartition, ParkedAgent, ServiceStatus},
};
use serde_json::{Value, json};

use super::{Gateway, query};
use crate::problem::Problem;

/// Replicas that are listed at most.
const MAX_REPLICAS: usize = 10_000;

pub async fn get(State(gateway): State<Gateway>) -> Result<Json<Value>, Problem> {
    let log =
        async { log(&gateway).await.map_err(|source| BusError::Unavailable { doing: "asking for the state", source }) };
    let position = query::at_once(&gateway, gateway.read_model.position());
    let (services, log, position, epoch) = tokio::join!(services(&gateway), log, position, gateway.bus.epoch());
    let (services, log, epoch) = (services?, log?, epoch?);
    // A status is wanted most when something is away: then the rest is still told.
    let projection =
        position.map(|position| json!({ "position": position, "lag": log.last_sequence.saturating_sub(position) }));
    Ok(Json(json!({
        "services": services.iter().map(service).collect::<Vec<_>>(),
        "consumers": log.consumers.iter().map(consumer).collect::<Vec<_>>(),
        "stream": { "messages": log.messages, "bytes": log.bytes, "last_sequence": log.last_sequence },
        "projection": projection,
        "dead_letters": log.dead_letters,
        "epoch": epoch,
    })))
}

/// Every replica that answers, by name.
pub(super) async fn services(gateway: &Gateway) -> Result<Vec<ServiceStatus>, BusError> {
    let client = &gateway.bus.nats()?.client;
    let wait = Duration::from_millis(gateway.config.status_wait_ms);
    let asked = async {
        let inbox = client.new_inbox();
        let answers = client.subscribe(inbox.clone()).await?;
        client.publish_with_reply(STATUS_PING, inbox, Default::default()).await?;
        Ok::<_, async_nats::Error>(answers)
    };
    let mut answers = asked.await.map_err(|source| BusError::Unavailable { doing: "asking who is there", source })?;
    let mut replicas = Vec::new();
    while let Ok(Some(answer)) = tokio::time::timeout(wait, answers.next()).await {
        let status = Body::decode(ServiceStatus::TYPE, ContentType::Protobuf, &answer.payload);
        if let Ok(Body::ServiceStatus(status)) = status {
            replicas.push(status);
        }
        if replicas.len() >= MAX_REPLICAS {
            break;
        }
    }
    replicas.sort_by(|one, other| (&one.service, &one.instance).cmp(&(&other.service, &other.instance)));
    Ok(replicas)
}

/// What JetStream knows.
struct Log {
    messages: u64,
    bytes: u64,
    last_sequence: u64,
    consumers: Vec<Info>,
    dead_letters: u64,
}

async fn log(gateway: &Gateway) -> Result<Log, async_nats::Error> {
    let jetstream = &gateway.bus.nats()?.jetstream;
    let stream = jetstream.get_stream_no_info(EVENTS_STREAM).await?;
    let letters = jetstream.get_stream_no_info(DLQ_STREAM).await?;
    let consumers = try_join_all(Consumer::DURABLE.map(async |consumer| {
        let stream = jetstream.get_stream_no_info(consumer.stream()).await?;
        Ok::<_, async_nats::Error>(stream.consumer_info(consumer.name()).await?)
    }));
    let (events, letters, consumers) = tokio::join!(stream.get_info(), letters.get_info(), consumers);
    let events = events?.state;
    Ok(Log {
        messages: events.messages,
        bytes: events.bytes,
        last_sequence: events.last_sequence,
        consumers: consumers?,
        dead_letters: letters?.state.messages,
    })
}

// Written out: proto3's JSON would make texts of the numbers.
fn service(replica: &ServiceStatus) -> Value {
    json!({
        "service": replica.service,
        "instance": replica.instance,
        "version": replica.version,
        "uptime_s": replica.uptime_s,
        "ready": replica.ready,
        "health_url": replica.health_url,
        "not_ready_because": replica.not_ready_because,
        "partitions": replica.partitions.iter().map(partition).collect::<Vec<_>>(),
        "takeovers": replica.takeovers,
        "handovers": replica.handovers,
        "decisions": replica.decisions,
        "model_requests": replica.model_requests,
        "reader": replica.reader,
        "parked": replica.parked.iter().map(parked).collect::<Vec<_>>(),
        "notes": replica.notes,
    })
}

fn partition(owned: &OwnedPartition) -> Value {
    json!({ "partition": owned.partition, "read": owned.read, "waiting": owned.waiting })
}

fn parked(agent: &ParkedAgent) -> Value {
    let ParkedAgent { agent, sequence, reader, reason, waiting } = agent;
    json!({ "agent": agent, "sequence": sequence, "reader": reader, "reason": reason, "waiting": waiting })
}

fn consumer(info: &Info) -> Value {
    json!({
        "name": info.name,
        "pending": info.num_pending,
        "ack_pending": info.num_ack_pending,
        "redelivered": info.num_redelivered,
        "delivered": info.delivered.stream_sequence,
    })
}
