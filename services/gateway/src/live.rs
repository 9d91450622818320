//! What is said live: pieces of answers and of processes' output, worth nothing once the events are there.
//!
//! Who listens to one agent is told first what its running processes, and models, wrote so far ([`crate::tail_merge`]).

use std::{collections::VecDeque, pin::Pin, time::Duration};

use async_nats::{Message, StatusCode, Subscriber};
use futures::{Stream, StreamExt, stream, stream::SelectAll};
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    record::{Raw, Record},
    subjects::{LIVE_OUTPUT, LIVE_TOKEN, tail_of},
};
use kairo_proto::{
    Body,
    v1::{LiveToken, TailRequest},
};
use prost::Message as _;
use tokio::time::Sleep;

use crate::tail_merge::{Source, TailMerge};

/// Something said.
#[derive(Debug)]
pub struct Piece {
    pub record: Record,
    /// It is of a tail or was held back for one, of which there is a bounded amount: it can wait for a slow client.
    pub waits: bool,
}

/// What is said from now on about one agent or all, and for one agent before that the tail of what it writes. Whoever
/// listens must keep up: nothing waits here for long. `tail_wait` is how long a tail may be on its way.
pub async fn pieces(
    bus: &Bus,
    agent: Option<&Name>,
    tail_wait: Duration,
) -> Result<impl Stream<Item = Piece> + Send + use<>, BusError> {
    let listening = Listening::begin(bus, agent, tail_wait).await;
    let listening = listening.map_err(|source| BusError::Unavailable { doing: "listening to what is live", source })?;
    Ok(stream::unfold(listening, |mut listening| async move { Some((listening.next().await?, listening)) }))
}

struct Listening {
    live: SelectAll<Subscriber>,
    tail: Option<Tail>,
    join: TailMerge<Record>,
    /// To be handed over.
    ready: VecDeque<Piece>,
    max_body: usize,
}

/// The answers of supervisors and agent-runtime.
struct Tail {
    answers: Subscriber,
    agent: Name,
    over: Pin<Box<Sleep>>,
}

/// What happened next.
enum Heard {
    Said(Raw, Source),
    NoMoreTail,
}

impl Listening {
    async fn begin(bus: &Bus, agent: Option<&Name>, tail_wait: Duration) -> Result<Self, async_nats::Error> {
        let mut live = SelectAll::new();
        for route in [LIVE_TOKEN, LIVE_OUTPUT] {
            live.push(
                bus.nats()?.client.subscribe(agent.map_or_else(|| route.filter(), |agent| route.of(agent))).await?,
            );
        }
        // Only now: what is said after the tail was told is heard live.
        let tail = match agent {
            Some(agent) => Some(Tail::ask(bus, agent, tail_wait).await?),
            None => None,
        };
        let (join, ready) = (TailMerge::new(tail.is_some()), VecDeque::new());
        Ok(Self { live, tail, join, ready, max_body: bus.limits.max_body_bytes })
    }

    async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            match self.hear().await? {
                Heard::NoMoreTail => {
                    self.tail = None;
                    self.ready.extend(self.join.no_more_tail().into_iter().map(waiting));
                }
                Heard::Said(raw, source) => {
                    // What nobody can read is nothing anybody misses.
                    let Ok(record) = raw.read(self.max_body) else { continue };
                    self.sort(record, source);
                }
            }
        }
    }

    async fn hear(&mut self) -> Option<Heard> {
        let Some(tail) = &mut self.tail else {
            return Some(Heard::Said(raw(self.live.next().await?), Source::Live));
        };
        tokio::select! {
            biased;
            answer = tail.answers.next() => Some(match answer {
                Some(answer) if answer.status != Some(StatusCode::NO_RESPONDERS) => {
                    Heard::Said(tail.raw(answer), Source::Tail)
                }
                _ => Heard::NoMoreTail,
            }),
            () = &mut tail.over => Some(Heard::NoMoreTail),
            said = self.live.next() => Some(Heard::Said(raw(said?), Source::Live)),
        }
    }

    fn sort(&mut self, record: Record, source: Source) {
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
            // Of an older agent-runtime, which repeats nothing.
            return self.ready.push_back(Piece { record, waits: false });
        };
        let shown = self.join.take(&writer, sequence, source, record);
        let waits = source == Source::Tail || shown.len() > 1;
        self.ready.extend(shown.into_iter().map(|record| Piece { record, waits }));
    }
}

fn waiting(record: Record) -> Piece {
    Piece { record, waits: true }
}

impl Tail {
    async fn ask(bus: &Bus, agent: &Name, wait: Duration) -> Result<Self, async_nats::Error> {
        let inbox = bus.nats()?.client.new_inbox();
        let answers = bus.nats()?.client.subscribe(inbox.clone()).await?;
        let request = TailRequest { agent: agent.to_string() };
        bus.nats()?.client.publish_with_reply(tail_of(agent), inbox, request.encode_to_vec().into()).await?;
        Ok(Self { answers, agent: agent.clone(), over: Box::pin(tokio::time::sleep(wait)) })
    }

    /// An answer is as good as a message of the subject that takes what it is.
    fn raw(&self, answer: Message) -> Raw {
        let answer = raw(answer);
        let is_token = answer.header("ce-type") == Some(LiveToken::TYPE);
        let route = if is_token { LIVE_TOKEN } else { LIVE_OUTPUT };
        Raw { subject: route.of(&self.agent), ..answer }
    }
}

/// A message that is not stored.
pub fn raw(message: Message) -> Raw {
    Raw {
        sequence: 0,
        subject: message.subject.to_string(),
        partition: None,
        headers: message.headers.unwrap_or_default(),
        payload: message.payload,
        sealed: None,
        stored: Timestamp::UNIX_EPOCH,
    }
}
