//! Giving a server a stream back, by `$JS.API.STREAM.RESTORE`: in pieces, each of which it acknowledges before the next.
//!
//! The server makes the stream at once and lets it stand as far as it got when this breaks off. So whoever fills one marks it
//! first ([`RESTORING`](kairo_core::bus::provision::RESTORING)), and takes the mark away at the end.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::{Request, jetstream::response::Response};
use kairo_core::bus::jetstream::JetStream;
use serde_json::{Value, json};

use crate::{
    error::BackupError, message_line::MessageLine, restore_plan::Filling, stream_archive::StreamArchiveWriter,
};

/// Bytes sent at once; nats-server takes a megabyte by default.
const PIECE: usize = 256 * 1024;
/// Timeout of a piece. A server gives up by itself when none comes for five seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Buffer that the archive is written to, until it is sent.
#[derive(Clone, Default)]
struct UploadBuffer(Arc<Mutex<Vec<u8>>>);

impl UploadBuffer {
    fn take(&self, least: usize) -> Option<Vec<u8>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (waiting.len() >= least.max(1)).then(|| std::mem::take(&mut *waiting))
    }
}

impl Write for UploadBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes a stream of this configuration and fills it with these lines.
///
/// # Errors
/// If a line cannot be read, or the server does not take it. What it took stays.
pub async fn fill(
    nats: &JetStream,
    filling: &Filling,
    config: &Value,
    lines: impl Iterator<Item = Result<MessageLine, BackupError>>,
) -> Result<(), BackupError> {
    let to = UploadTarget { nats, stream: filling.stream, subject: begin_restore(nats, filling, config).await? };
    let outgoing = UploadBuffer::default();
    let unwritten = |error: io::Error| to.not_taken(error);
    let mut archive =
        StreamArchiveWriter::begin(outgoing.clone(), filling.state, &filling.consumers).map_err(unwritten)?;
    for line in lines {
        archive.write_message(&line?).map_err(unwritten)?;
        if let Some(bytes) = outgoing.take(PIECE) {
            to.send(bytes).await?;
        }
    }
    archive.finish().map_err(unwritten)?;
    if let Some(bytes) = outgoing.take(0) {
        to.send(bytes).await?;
    }
    to.finish().await
}

async fn begin_restore(nats: &JetStream, filling: &Filling, config: &Value) -> Result<String, BackupError> {
    let stream = filling.stream;
    let request = json!({ "config": config, "state": filling.state.to_json(filling.consumers.len()) });
    let not_taken = |why: String| BackupError::NotTaken { stream: stream.to_owned(), why };
    let asked = nats.jetstream.request(format!("STREAM.RESTORE.{stream}"), &request).await;
    match asked.map_err(|error| not_taken(error.to_string()))? {
        Response::Ok::<Value>(answer) => {
            let subject = answer.get("deliver_subject").and_then(Value::as_str).map(str::to_owned);
            subject.ok_or_else(|| not_taken("it does not say where to send it".to_owned()))
        }
        Response::Err { error } => Err(not_taken(error.to_string())),
    }
}

struct UploadTarget<'n> {
    nats: &'n JetStream,
    stream: &'static str,
    subject: String,
}

impl UploadTarget<'_> {
    async fn send(&self, bytes: Vec<u8>) -> Result<(), BackupError> {
        for piece in bytes.chunks(PIECE) {
            let answer = self.send_piece(piece.to_vec()).await?;
            if !answer.is_empty() {
                self.check_answer(&answer)?;
            }
        }
        Ok(())
    }

    async fn finish(&self) -> Result<(), BackupError> {
        let answer = self.send_piece(Vec::new()).await?;
        self.check_answer(&answer)
    }

    async fn send_piece(&self, piece: Vec<u8>) -> Result<bytes::Bytes, BackupError> {
        let request = Request::new().payload(piece.into()).timeout(Some(PATIENCE));
        let answer = self.nats.client.send_request(self.subject.clone(), request).await;
        Ok(answer.map_err(|error| self.not_taken(error))?.payload)
    }

    fn check_answer(&self, answer: &[u8]) -> Result<(), BackupError> {
        match serde_json::from_slice(answer).map_err(|error| self.not_taken(error))? {
            Response::Ok::<Value>(_) => Ok(()),
            Response::Err { error } => Err(self.not_taken(error)),
        }
    }

    fn not_taken(&self, why: impl ToString) -> BackupError {
        BackupError::NotTaken { stream: self.stream.to_owned(), why: why.to_string() }
    }
}
