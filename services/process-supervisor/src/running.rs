//! A process from the moment its gate opens to its end.

use std::{future::Future, time::Duration};

use async_nats::connection::State;
use futures::FutureExt;
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, append::Outgoing},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{LIVE_OUTPUT, Service},
};
use kairo_proto::v1;
use uuid::Uuid;

use crate::{
    events::{End, Tails, process_id},
    guarded::{Guarded, GuardedError},
    pieces::{Piece, pieces},
    protocol::{Exit, Output},
};

/// Most text in one live message, in bytes.
const PIECE_BYTES: usize = 8 << 10;
/// Frames put together when they are ready at once.
const FRAMES: usize = 32;
/// How long a live message may wait for the connection to take it; then it is dropped, so that output which nobody
/// hears does not hold up the process.
const LIVE_PATIENCE: Duration = Duration::from_millis(100);

/// Opens the gate, passes on what the process writes, keeps the last `tail_bytes` of each stream, and says how it
/// ended. When `stop` is ready the process is asked to end, and killed when the grace that came with it is over.
pub async fn run(
    mut guarded: Guarded,
    tail_bytes: usize,
    mut live: Option<Live<'_>>,
    stop: impl Future<Output = Duration>,
) -> End {
    let mut tails = Tails::new(tail_bytes);
    let control = guarded.control();
    let stop = stop.fuse();
    tokio::pin!(stop);
    if let Err(error) = guarded.go().await {
        return ended(Err(error), tails);
    }
    loop {
        let first = tokio::select! {
            grace = &mut stop => {
                // A guard that is gone has killed already.
                control.cancel(grace).await.ok();
                continue;
            }
            output = guarded.next_output() => output,
        };
        let Some(first) = first else { break };
        let frames = ready(first, &mut guarded);
        frames.iter().for_each(|frame| tails.push(frame.stream, &frame.text));
        if let Some(live) = &mut live {
            live.say(frames).await;
        }
    }
    drop(control);
    ended(guarded.wait().await, tails)
}

/// What can be had without waiting, after `first`.
fn ready(first: Output, guarded: &mut Guarded) -> Vec<Output> {
    let mut frames = vec![first];
    while frames.len() < FRAMES
        && let Some(Some(frame)) = guarded.next_output().now_or_never()
    {
        frames.push(frame);
    }
    frames
}

fn ended(exit: Result<Exit, GuardedError>, tails: Tails) -> End {
    match exit {
        Ok(exit) => End::Seen { exit, tails },
        Err(error) => End::lost_guard(&error.to_string()),
    }
}

/// Says what one process writes to whoever listens.
pub struct Live<'a> {
    pub bus: &'a Bus,
    pub agent: &'a Name,
    /// The event the process follows from.
    pub cause: Envelope,
    pub action: Uuid,
    /// Of the next message.
    pub sequence: u64,
}

impl Live<'_> {
    async fn say(&mut self, frames: Vec<Output>) {
        // What is given to a client without a connection fills its queue, and comes out late.
        let mut taken = self.bus.client.connection_state() == State::Connected;
        for piece in pieces(frames, PIECE_BYTES) {
            // Dropped pieces are counted too: whoever listens sees that some are missing.
            let event = self.event(piece);
            if taken {
                taken = tokio::time::timeout(LIVE_PATIENCE, self.bus.say_live(&event)).await.is_ok();
            }
        }
    }

    fn event(&mut self, piece: Piece) -> Outgoing {
        let sequence = self.sequence;
        self.sequence += 1;
        let id = ids::derived(self.action, &format!("output/{sequence}"));
        let envelope = self.cause.follow(id, Service::ProcessSupervisor, Origin::System, Timestamp::now());
        let body = v1::LiveOutput {
            process_id: process_id(self.action).to_string(),
            action_id: self.action.to_string(),
            stream: piece.stream.as_str().to_owned(),
            sequence,
            text: piece.text,
        };
        Outgoing::new(&LIVE_OUTPUT, self.agent, envelope, body)
    }
}
