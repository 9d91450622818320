//! `GET /v1/status`: who is there, how far each of them is, and what went wrong.

use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use axum::extract::State;
use futures::StreamExt;
use kairo_core::{bus::BusError, subjects::STATUS_PING};
use kairo_proto::v1::{ConsumerRow, GetStatusResponse, LagRow, LogRow, ReplicaRow};
use prost::Message as _;

use super::{Gateway, answer::Told, query};
use crate::{
    log_state::{self, LogState},
    problem::Problem,
};

/// Replicas that are listed at most.
const MAX_REPLICAS: usize = 10_000;

pub async fn get(State(gateway): State<Gateway>) -> Result<Told<GetStatusResponse>, Problem> {
    let log =
        async { log(&gateway).await.map_err(|source| BusError::Unavailable { doing: "asking for the state", source }) };
    let position = query::at_once(&gateway, gateway.read_model.position());
    let (services, log, position, epoch) = tokio::join!(services(&gateway), log, position, gateway.bus.epoch());
    let (services, Log { stream, consumers, dead_letters, drift }, epoch) = (services?, log?, epoch?);
    // A status is wanted most when something is away: then the rest is still told.
    let lag = |position| LagRow { position, lag: stream.last_sequence.saturating_sub(position) };
    let projection = position.map(lag);
    Ok(Told(GetStatusResponse { services, consumers, stream: Some(stream), projection, dead_letters, epoch, drift }))
}

/// Every replica that answers, by name.
pub(super) async fn services(gateway: &Gateway) -> Result<Vec<ReplicaRow>, BusError> {
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
        replicas.extend(ReplicaRow::decode(answer.payload).ok());
        if replicas.len() >= MAX_REPLICAS {
            break;
        }
    }
    replicas.sort_by(|one, other| (&one.service, &one.instance).cmp(&(&other.service, &other.instance)));
    Ok(replicas)
}

/// What JetStream knows.
struct Log {
    stream: LogRow,
    consumers: Vec<ConsumerRow>,
    dead_letters: u64,
    /// How streams and consumers differ from what is wanted.
    drift: Vec<String>,
}

async fn log(gateway: &Gateway) -> Result<Log, async_nats::Error> {
    let nats = gateway.bus.nats()?;
    let (log, drift) = tokio::join!(log_state::ask(nats), nats.drift());
    let log = log?;
    let limit_bytes = log.limit(&gateway.config);
    let LogState { events, consumers, dead_letters, .. } = log;
    let stream = LogRow {
        messages: events.messages,
        bytes: events.bytes,
        last_sequence: events.last_sequence,
        first_sequence: events.first_sequence,
        limit_bytes,
    };
    let drift = drift?.iter().map(ToString::to_string).collect();
    Ok(Log { stream, consumers: consumers.into_iter().map(shown).collect(), dead_letters, drift })
}

fn shown(info: Info) -> ConsumerRow {
    ConsumerRow {
        name: info.name,
        pending: info.num_pending,
        ack_pending: u64::try_from(info.num_ack_pending).unwrap_or(u64::MAX),
        redelivered: u64::try_from(info.num_redelivered).unwrap_or(u64::MAX),
        delivered: info.delivered.stream_sequence,
    }
}
