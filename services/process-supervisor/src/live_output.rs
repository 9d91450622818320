//! Publishes the output of a process to current listeners, and keeps the end of it for those who come late.

use std::time::Duration;

use kairo_core::{
    bus::{Bus, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{LIVE_OUTPUT, Service},
};
use kairo_proto::v1;
use tokio::{sync::Mutex, time::timeout};
use uuid::Uuid;

use crate::{
    live_pieces::{StreamPiece, repack_frames},
    protocol::Output,
    ring_buffer::RingBuffer,
};

/// Most text in one live message, in bytes.
const PIECE_BYTES: usize = 8 << 10;
/// The longest time that live messages wait for the connection; then they are dropped, so that output which nobody
/// hears does not hold up the process.
const PATIENCE: Duration = Duration::from_millis(100);

/// The voice of one process.
pub struct LivePublisher {
    bus: Bus,
    agent: Name,
    action: Uuid,
    /// The event the process follows from.
    cause: Envelope,
    /// Locked by each speaker: anything said after the output so far was repeated has a higher sequence than all of
    /// that.
    said: Mutex<PublishedTail>,
}

struct PublishedTail {
    /// Of the next message.
    sequence: u64,
    kept: RingBuffer<OutgoingEvent>,
}

impl LivePublisher {
    /// Keeps the last `tail_bytes` for whoever comes late.
    pub fn new(bus: &Bus, agent: &Name, action: Uuid, cause: Envelope, tail_bytes: usize) -> Self {
        let said = Mutex::new(PublishedTail { sequence: 0, kept: RingBuffer::new(tail_bytes) });
        Self { bus: bus.clone(), agent: agent.clone(), action, cause, said }
    }

    pub async fn publish(&self, frames: Vec<Output>) {
        let mut said = self.said.lock().await;
        // What is given to a client without a connection fills its queue, and comes out late.
        let mut taken = self.bus.connection().up;
        for piece in repack_frames(frames, PIECE_BYTES) {
            let bytes = piece.text.len();
            let event = self.event(said.sequence, piece);
            // Dropped pieces are counted too: whoever listens sees that some are missing.
            said.sequence += 1;
            if taken {
                taken = timeout(PATIENCE, self.bus.publish_live(&event)).await.is_ok();
            }
            said.kept.push(bytes, event);
        }
    }

    /// Says what was kept again, to one listener.
    pub async fn repeat_tail(&self, to: &str) {
        let said = self.said.lock().await;
        let repeating = async {
            for event in said.kept.iter() {
                if let Err(error) = self.bus.publish_live_to(to, event).await {
                    tracing::debug!(%error, action = %self.action, "a tail went nowhere");
                    return;
                }
            }
        };
        if timeout(PATIENCE, repeating).await.is_err() {
            tracing::debug!(action = %self.action, "the connection takes too long for a tail");
        }
    }

    fn event(&self, sequence: u64, piece: StreamPiece) -> OutgoingEvent {
        let id = ids::derive(self.action, &format!("output/{sequence}"));
        let envelope = self.cause.follow_up(id, Service::ProcessSupervisor, Origin::System, self.bus.now());
        let body = v1::LiveOutput {
            process_id: ids::process_id(self.action).to_string(),
            action_id: self.action.to_string(),
            stream: piece.stream.as_str().to_owned(),
            sequence,
            text: piece.text,
        };
        OutgoingEvent::new(&LIVE_OUTPUT, &self.agent, envelope, body)
    }
}
