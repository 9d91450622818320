//! `GET /v1/ws`: everything a client wants of the gateway while it runs, over one WebSocket: watching what it asks for,
//! as [`super::stream`] does, and saying what the POST endpoints take.
//!
//! A frame that is wrong is answered with the problem and costs nothing else. Frames are dealt with one after another,
//! so what a client says enters the log in the order in which it said it.

pub mod frames;
mod subscriptions;

use std::{pin::pin, time::Duration};

use axum::{
    Extension,
    extract::{
        State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code, rejection::WebSocketUpgradeRejection},
    },
    http::HeaderMap,
    response::Response,
};
use bytes::Bytes;
use futures::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use kairo_core::ids::Name;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Gateway,
    ingest::{self, Ingest},
    span::traceparent,
};
use crate::{
    auth::{Caller, Scope},
    problem::Problem,
    watch::Wish,
};
use frames::{About, Received, Sent};
use subscriptions::Subscriptions;

/// The subprotocol, which browsers offer beside their key and which must be chosen then.
const PROTOCOL: &str = "kairo.v1";
/// Multiple of the allowed size up to which a frame is still read and answered; a larger one is not read.
const READ_FACTOR: usize = 2;
/// Heartbeats without a sign of life after which a client is gone.
const SILENT_HEARTBEATS: u32 = 2;
/// The time limit for sending the last frames of a connection.
const LAST_WORDS: Duration = Duration::from_secs(1);

const STOPPING: &str = "the gateway is stopping; connect again and subscribe after the last place that was seen";
const REFUSED: &str = "the API key was revoked or has expired";
const SILENT: &str = "the client did not answer pings, or does not read";
const CROWDED: &str = "others are owed a stream who have fewer; close some, and connect again later";
const UNREADABLE: &str = "a frame could not be read: frames are text, JSON, and at most max_frame_bytes long";

pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade
        .map_err(|rejection| Problem::malformed(format!("connect with a WebSocket: {}", rejection.body_text())))?;
    let permit = gateway.stream_permit(&caller, None)?;
    let largest = gateway.config.max_body_bytes * READ_FACTOR;
    let traceparent = traceparent(&headers);
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(largest).max_frame_size(largest);
    Ok(upgrade.on_upgrade(async move |socket| {
        let crowded = permit.revocation().child_token();
        serve(socket, gateway, caller, traceparent, crowded).await;
        // The connection counts for as long as it lives.
        drop(permit);
    }))
}

/// Serves one client to its end, or that of the gateway.
async fn serve(
    socket: WebSocket,
    gateway: Gateway,
    caller: Caller,
    traceparent: Option<String>,
    crowded: CancellationToken,
) {
    let (mut sink, mut source) = socket.split();
    let (client, frames) = mpsc::channel(gateway.config.stream_buffer);
    let heartbeat = Duration::from_millis(gateway.config.heartbeat_ms);
    let subscriptions = Subscriptions::new(gateway.config.ws_subscriptions, crowded.clone());
    let mut connection = Connection { gateway, caller, traceparent, client, subscriptions };
    let ended = tokio::select! {
        Err(ended) = connection.listen(&mut source, heartbeat * SILENT_HEARTBEATS) => ended,
        () = crowded.cancelled() => Ended::Crowded,
        () = write(&mut sink, frames, heartbeat) => return,
    };
    let (code, reason) = match ended {
        Ended::Gone => return,
        Ended::Stopping => (close_code::AWAY, STOPPING),
        Ended::Refused => (close_code::POLICY, REFUSED),
        Ended::Silent => (close_code::POLICY, SILENT),
        Ended::Crowded => (close_code::AGAIN, CROWDED),
        Ended::Unreadable => (close_code::POLICY, UNREADABLE),
    };
    let last_words =
        [text(&Sent::Closing { reason }), Message::Close(Some(CloseFrame { code, reason: reason.into() }))];
    let last_words = async {
        for words in last_words {
            // The client may be gone.
            drop(sink.send(words).await);
        }
        // A connection that is closed with something unread is reset, and the client never reads why: so what it still
        // sends is read, until it closes too.
        while let Some(Ok(_)) = source.next().await {}
    };
    drop(timeout(LAST_WORDS, last_words).await);
}

/// Hands over what there is, and asks again and again whether the client is still there. Ends when it is not.
async fn write(sink: &mut SplitSink<WebSocket, Message>, mut frames: mpsc::Receiver<Message>, heartbeat: Duration) {
    let mut pings = interval_at(Instant::now() + heartbeat, heartbeat);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            _ = pings.tick() => Some(Message::Ping(Bytes::new())),
        };
        let Some(frame) = frame else { return };
        if sink.send(frame).await.is_err() {
            return;
        }
    }
}

/// The reason why a connection ends.
enum Ended {
    Gone,
    Stopping,
    /// The key is no longer in force.
    Refused,
    Silent,
    /// A place of it, or of one of its subscriptions, was taken back for somebody who has fewer.
    Crowded,
    Unreadable,
}

struct Connection {
    gateway: Gateway,
    caller: Caller,
    /// The client's place in its trace when it connected.
    traceparent: Option<String>,
    /// Frames on their way to the client.
    client: mpsc::Sender<Message>,
    subscriptions: Subscriptions,
}

impl Connection {
    /// Deals with what the client sends, for as long as it shows signs of life within `patience`.
    async fn listen(
        &mut self,
        source: &mut SplitStream<WebSocket>,
        patience: Duration,
    ) -> Result<std::convert::Infallible, Ended> {
        let shutdown = self.gateway.shutdown.clone();
        let caller = self.caller.clone();
        let mut refused = pin!(caller.ended());
        self.say(&Sent::hello(&self.gateway.config), patience).await?;
        loop {
            let received = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Err(Ended::Stopping),
                () = &mut refused => return Err(Ended::Refused),
                received = timeout(patience, source.next()) => received.map_err(|_| Ended::Silent)?,
            };
            match received {
                Some(Ok(Message::Text(frame))) => self.answer(frame.as_bytes(), patience).await?,
                Some(Ok(Message::Binary(_))) => {
                    let problem = Problem::malformed("frames are text; this one is binary");
                    self.say(&Sent::Error { about: &About::default(), problem: &problem }, patience).await?;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                None | Some(Ok(Message::Close(_))) => return Err(Ended::Gone),
                Some(Err(error)) => {
                    tracing::debug!(%error, "a WebSocket could not be read on");
                    return Err(Ended::Unreadable);
                }
            }
        }
    }

    async fn answer(&mut self, frame: &[u8], patience: Duration) -> Result<(), Ended> {
        let limits = &self.gateway.config;
        let (about, received) = if frame.len() > limits.max_body_bytes {
            (About::default(), Err(too_large(limits.max_body_bytes)))
        } else {
            frames::read(frame, limits)
        };
        // A frame is a request like any other.
        let user = received.as_ref().ok().and_then(Received::user);
        let received = self.gateway.limits.count_caller(&self.caller, user).and(received);
        let id = about.id.clone().unwrap_or_default();
        let done = match received {
            Err(problem) => Err(problem),
            // The subscription speaks for itself.
            Ok(Received::Subscribe(wish)) => self.subscribe(id, wish).await.map(|()| None),
            Ok(Received::Unsubscribe) => {
                let removed = self.subscriptions.remove(&id).await;
                removed.map(|()| Some(Sent::Unsubscribed { id: &id }.to_json()))
            }
            Ok(Received::Message(message)) => self.enter(message, &about).await,
            Ok(Received::Choice(choice)) => self.enter(choice, &about).await,
            Ok(Received::Approval(approval)) => self.enter(approval, &about).await,
            Ok(Received::Command(command)) => self.enter(command, &about).await,
            Ok(Received::Ping) => Ok(Some(Sent::Pong.to_json())),
        };
        match done {
            Ok(Some(answer)) => self.hand_over(Message::Text(answer.into()), patience).await,
            Ok(None) => Ok(()),
            Err(problem) => self.say(&Sent::Error { about: &about, problem: &problem }, patience).await,
        }
    }

    async fn subscribe(&mut self, id: String, wish: Wish) -> Result<(), Problem> {
        self.caller.require(Scope::Read)?;
        self.caller.act_on_agent(wish.filter.agent.as_ref().map(Name::as_str))?;
        self.subscriptions.add(&self.gateway, &self.caller, &self.client, id, wish).await
    }

    async fn enter(&self, said: impl Ingest, about: &About) -> Result<Option<String>, Problem> {
        let accepted = ingest::enter(&self.gateway, &self.caller, self.traceparent.clone(), said).await?;
        Ok(Some(Sent::Accepted { about, accepted: &accepted }.to_json()))
    }

    async fn say(&self, frame: &Sent<'_>, patience: Duration) -> Result<(), Ended> {
        self.hand_over(text(frame), patience).await
    }

    /// Queues a frame. A client that sends and does not read is held up, and is given up on in the end.
    async fn hand_over(&self, frame: Message, patience: Duration) -> Result<(), Ended> {
        tokio::select! {
            sent = timeout(patience, self.client.send(frame)) => match sent {
                Ok(sent) => sent.map_err(|_| Ended::Gone),
                Err(_) => Err(Ended::Silent),
            },
            () = self.gateway.shutdown.cancelled() => Err(Ended::Stopping),
        }
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::too_large(format!("the frame is larger than gateway.max_body_bytes, which is {limit} bytes"))
}

fn text(frame: &Sent<'_>) -> Message {
    Message::Text(frame.to_json().into())
}
