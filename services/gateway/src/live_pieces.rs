//! Live pieces of answers and of process output, which are obsolete once their events are in the log.
//!
//! A listener to one agent first receives what its running processes and models wrote so far ([`crate::tail_merge`]).

use std::{collections::VecDeque, pin::Pin, time::Duration};

use async_nats::{Message, StatusCode, Subscriber};
use futures::{Stream, StreamExt, stream, stream::SelectAll};
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    record::{RawMessage, Record},
    subjects::{LIVE_OUTPUT, LIVE_TOKEN, tail_of},
};
use kairo_proto::{
    Body,
    v1::{LiveToken, TailRequest},
};
use prost::Message as _;
use tokio::time::Sleep;

use crate::tail_merge::{PieceSource, TailMerge};

/// A live piece.
#[derive(Debug)]
pub struct LivePiece {
    pub record: Record,
    /// True if the piece is from a tail or was held back for one: as their number is bounded, it can wait for a slow
    /// client.
    pub waits: bool,
}

/// Streams live pieces of one agent or all from now on; for one agent, the tails of what is being written come first.
/// The caller must keep up, since little is buffered here. `tail_wait` is the longest wait for tails.
pub async fn stream_pieces(
    bus: &Bus,
    agent: Option<&Name>,
    tail_wait: Duration,
) -> Result<impl Stream<Item = LivePiece> + Send + use<>, BusError> {
    let listening = LiveListener::begin(bus, agent, tail_wait).await;
    let listening = listening.map_err(|source| BusError::Unavailable { doing: "listening to what is live", source })?;
    Ok(stream::unfold(listening, |mut listening| async move { Some((listening.next().await?, listening)) }))
}

struct LiveListener {
    live: SelectAll<Subscriber>,
    tail: Option<PendingTail>,
    join: TailMerge<Record>,
    /// Pieces that are ready to be returned.
    ready: VecDeque<LivePiece>,
    max_body: usize,
}

/// A pending request for tails, with the responses of supervisors and agent-runtime.
struct PendingTail {
    answers: Subscriber,
    agent: Name,
    over: Pin<Box<Sleep>>,
}

/// The next event while listening.
enum LiveInput {
    Message(RawMessage, PieceSource),
    NoMoreTail,
}

impl LiveListener {
    async fn begin(bus: &Bus, agent: Option<&Name>, tail_wait: Duration) -> Result<Self, async_nats::Error> {
        let mut live = SelectAll::new();
        for route in [LIVE_TOKEN, LIVE_OUTPUT] {
            live.push(
                bus.nats()?
                    .client
                    .subscribe(agent.map_or_else(|| route.filter(), |agent| route.of_owner(agent)))
                    .await?,
            );
        }
        // Ask for tails after subscribing, so that no piece is lost between the two.
        let tail = match agent {
            Some(agent) => Some(PendingTail::request_tail(bus, agent, tail_wait).await?),
            None => None,
        };
        let join = TailMerge::new(tail.is_some());
        let ready = VecDeque::new();
        Ok(Self { live, tail, join, ready, max_body: bus.limits.max_body_bytes })
    }

    async fn next(&mut self) -> Option<LivePiece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            match self.next_input().await? {
                LiveInput::NoMoreTail => {
                    self.tail = None;
                    self.ready.extend(self.join.end_tail().into_iter().map(waiting_piece));
                }
                LiveInput::Message(raw, source) => {
                    // Skip a piece that cannot be read.
                    let Ok(record) = raw.read(self.max_body) else { continue };
                    self.merge_record(record, source);
                }
            }
        }
    }

    async fn next_input(&mut self) -> Option<LiveInput> {
        let Some(tail) = &mut self.tail else {
            return Some(LiveInput::Message(raw_message(self.live.next().await?), PieceSource::Live));
        };
        tokio::select! {
            biased;
            answer = tail.answers.next() => Some(match answer {
                Some(answer) if answer.status != Some(StatusCode::NO_RESPONDERS) => {
                    LiveInput::Message(tail.answer_to_raw(answer), PieceSource::Tail)
                }
                _ => LiveInput::NoMoreTail,
            }),
            () = &mut tail.over => Some(LiveInput::NoMoreTail),
            said = self.live.next() => Some(LiveInput::Message(raw_message(said?), PieceSource::Live)),
        }
    }

    fn merge_record(&mut self, record: Record, source: PieceSource) {
        let counted = if let Body::LiveOutput(output) = &record.body {
            Some((output.process_id.clone(), output.sequence))
        } else if let Body::LiveToken(token) = &record.body
            && !token.call_id.is_empty()
        {
            Some((token.call_id.clone(), u64::from(token.index)))
        } else {
            None
        };
        let Some((writer, sequence)) = counted else {
            // From an older agent-runtime, which repeats no pieces.
            return self.ready.push_back(LivePiece { record, waits: false });
        };
        let shown = self.join.accept_piece(&writer, sequence, source, record);
        let waits = source == PieceSource::Tail || shown.len() > 1;
        self.ready.extend(shown.into_iter().map(|record| LivePiece { record, waits }));
    }
}

fn waiting_piece(record: Record) -> LivePiece {
    LivePiece { record, waits: true }
}

impl PendingTail {
    async fn request_tail(bus: &Bus, agent: &Name, wait: Duration) -> Result<Self, async_nats::Error> {
        let inbox = bus.nats()?.client.new_inbox();
        let answers = bus.nats()?.client.subscribe(inbox.clone()).await?;
        let request = TailRequest { agent: agent.to_string() };
        bus.nats()?.client.publish_with_reply(tail_of(agent), inbox, request.encode_to_vec().into()).await?;
        Ok(Self { answers, agent: agent.clone(), over: Box::pin(tokio::time::sleep(wait)) })
    }

    /// Converts a response to a message on the subject of its type.
    fn answer_to_raw(&self, answer: Message) -> RawMessage {
        let answer = raw_message(answer);
        let is_token = answer.header("ce-type") == Some(LiveToken::TYPE);
        let route = if is_token { LIVE_TOKEN } else { LIVE_OUTPUT };
        RawMessage { subject: route.of_owner(&self.agent), ..answer }
    }
}

/// Converts a NATS message that is not stored in a stream.
pub fn raw_message(message: Message) -> RawMessage {
    RawMessage {
        sequence: 0,
        subject: message.subject.to_string(),
        partition: None,
        headers: message.headers.unwrap_or_default(),
        payload: message.payload,
        sealed: None,
        stored: Timestamp::UNIX_EPOCH,
    }
}
