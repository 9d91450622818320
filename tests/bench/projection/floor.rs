//! The floor: reading the log from its beginning to its end, and inserting the bytes of its messages into one table.
//!
//! Without anything that a read model needs: no column but those, no index, no position. Batches of 5 000 rows by
//! UNNEST; the next is read while one is written.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures::StreamExt;
use kairo_core::{record::RawMessage, subjects::EVENTS_STREAM};
use serde::Serialize;
use sqlx::{Connection, PgConnection, query};
use tokio::sync::mpsc;

use super::record::connect;
use crate::Outcome;
use kairo_local::Login;

const BATCH: usize = 5_000;
/// Batches that were read and not written.
const AHEAD: usize = 2;
const PULL_EXPIRES: Duration = Duration::from_secs(30);

const INSERT: &str = "
    INSERT INTO floor SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::bytea[])";

/// The speed of the floor.
#[derive(Debug, Serialize)]
pub struct Floor {
    pub messages: u64,
    pub seconds: f64,
}

pub async fn run(login: &Login, database: &str) -> Outcome<Floor> {
    let mut postgres = PgConnection::connect(database).await?;
    let make = "CREATE TABLE floor (sequence bigint, subject text, headers text, payload bytea)";
    query(make).execute(&mut postgres).await?;
    let begun = Instant::now();
    let (batches, read) = mpsc::channel(AHEAD);
    let reading = tokio::spawn(read_all(login.clone(), batches));
    let messages = write_all(&mut postgres, read).await?;
    reading.await??;
    let seconds = begun.elapsed().as_secs_f64();
    query("DROP TABLE floor").execute(&mut postgres).await?;
    Ok(Floor { messages, seconds })
}

async fn read_all(login: Login, batches: mpsc::Sender<Vec<RawMessage>>) -> Outcome<()> {
    let bus = connect(&login).await?;
    let log = bus.nats()?.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
    let end = log.get_info().await?.state.last_sequence;
    let consumer = log.create_consumer(pull::Config {
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::None,
        memory_storage: true,
        ..Default::default()
    });
    let consumer = consumer.await?;
    let mut messages = consumer.stream().max_messages_per_batch(BATCH).expires(PULL_EXPIRES).messages().await?;
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(message) = messages.next().await {
        let mut message = message?;
        let (raw, _) = RawMessage::from_delivery(&mut message)?;
        let last = raw.sequence >= end;
        batch.push(raw);
        if last || batch.len() == BATCH {
            batches.send(std::mem::take(&mut batch)).await?;
        }
        if last {
            break;
        }
    }
    Ok(())
}

async fn write_all(postgres: &mut PgConnection, mut read: mpsc::Receiver<Vec<RawMessage>>) -> Outcome<u64> {
    let mut messages = 0;
    while let Some(batch) = read.recv().await {
        messages += batch.len() as u64;
        let sequences: Vec<i64> = batch.iter().map(|raw| raw.sequence.cast_signed()).collect();
        let subjects: Vec<&str> = batch.iter().map(|raw| raw.subject.as_str()).collect();
        let headers: Vec<String> = batch.iter().map(RawMessage::header_lines).collect();
        let payloads: Vec<&[u8]> = batch.iter().map(|raw| raw.payload.as_ref()).collect();
        query(INSERT).bind(sequences).bind(subjects).bind(headers).bind(payloads).execute(&mut *postgres).await?;
    }
    Ok(messages)
}
