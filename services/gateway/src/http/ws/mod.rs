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
    ingest::{self, UserInput},
    request_span::traceparent,
};
use crate::{
    auth::{Caller, Scope},
    problem::Problem,
    watch::WatchRequest,
};
use frames::{ClientFrame, FrameReference, ServerFrame};
use subscriptions::SubscriptionSet;

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

pub async fn open_websocket(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|rejection| {
        Problem::malformed_request(format!("connect with a WebSocket: {}", rejection.body_text()))
    })?;
    let permit = gateway.stream_permit(&caller, None)?;
    let largest = gateway.config.max_body_bytes * READ_FACTOR;
    let traceparent = traceparent(&headers);
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(largest).max_frame_size(largest);
    Ok(upgrade.on_upgrade(async move |socket| {
        let crowded = permit.revocation_token().child_token();
        serve_client(socket, gateway, caller, traceparent, crowded).await;
        // The connection counts for as long as it lives.
        drop(permit);
    }))
}

/// Serves one client to its end, or that of the gateway.
async fn serve_client(
    socket: WebSocket,
    gateway: Gateway,
    caller: Caller,
    traceparent: Option<String>,
    crowded: CancellationToken,
) {
    let (mut sink, mut source) = socket.split();
    let (client, frames) = mpsc::channel(gateway.config.stream_buffer);
    let heartbeat = Duration::from_millis(gateway.config.heartbeat_ms);
    let subscriptions = SubscriptionSet::new(gateway.config.ws_subscriptions, crowded.clone());
    let mut connection = WebSocketConnection { gateway, caller, traceparent, client, subscriptions };
    let ended = tokio::select! {
        Err(ended) = connection.handle_frames(&mut source, heartbeat * SILENT_HEARTBEATS) => ended,
        () = crowded.cancelled() => CloseReason::Crowded,
        () = write_frames(&mut sink, frames, heartbeat) => return,
    };
    let (code, reason) = match ended {
        CloseReason::Gone => return,
        CloseReason::Stopping => (close_code::AWAY, STOPPING),
        CloseReason::Refused => (close_code::POLICY, REFUSED),
        CloseReason::Silent => (close_code::POLICY, SILENT),
        CloseReason::Crowded => (close_code::AGAIN, CROWDED),
        CloseReason::Unreadable => (close_code::POLICY, UNREADABLE),
    };
    let last_words = [
        text_message(&ServerFrame::Closing { reason }),
        Message::Close(Some(CloseFrame { code, reason: reason.into() })),
    ];
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
async fn write_frames(
    sink: &mut SplitSink<WebSocket, Message>,
    mut frames: mpsc::Receiver<Message>,
    heartbeat: Duration,
) {
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
enum CloseReason {
    Gone,
    Stopping,
    /// The key is no longer in force.
    Refused,
    Silent,
    /// A place of it, or of one of its subscriptions, was taken back for somebody who has fewer.
    Crowded,
    Unreadable,
}

struct WebSocketConnection {
    gateway: Gateway,
    caller: Caller,
    /// The client's place in its trace when it connected.
    traceparent: Option<String>,
    /// Frames on their way to the client.
    client: mpsc::Sender<Message>,
    subscriptions: SubscriptionSet,
}

impl WebSocketConnection {
    /// Deals with what the client sends, for as long as it shows signs of life within `patience`.
    async fn handle_frames(
        &mut self,
        source: &mut SplitStream<WebSocket>,
        patience: Duration,
    ) -> Result<std::convert::Infallible, CloseReason> {
        let shutdown = self.gateway.shutdown.clone();
        let caller = self.caller.clone();
        let mut refused = pin!(caller.wait_for_expiry());
        self.send_frame(&ServerFrame::hello(&self.gateway.config), patience).await?;
        loop {
            let received = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Err(CloseReason::Stopping),
                () = &mut refused => return Err(CloseReason::Refused),
                received = timeout(patience, source.next()) => received.map_err(|_| CloseReason::Silent)?,
            };
            match received {
                Some(Ok(Message::Text(frame))) => self.answer_frame(frame.as_bytes(), patience).await?,
                Some(Ok(Message::Binary(_))) => {
                    let problem = Problem::malformed_request("frames are text; this one is binary");
                    self.send_frame(
                        &ServerFrame::Error { about: &FrameReference::default(), problem: &problem },
                        patience,
                    )
                    .await?;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                None | Some(Ok(Message::Close(_))) => return Err(CloseReason::Gone),
                Some(Err(error)) => {
                    tracing::debug!(%error, "a WebSocket could not be read on");
                    return Err(CloseReason::Unreadable);
                }
            }
        }
    }

    async fn answer_frame(&mut self, frame: &[u8], patience: Duration) -> Result<(), CloseReason> {
        let limits = &self.gateway.config;
        let (about, received) = if frame.len() > limits.max_body_bytes {
            (FrameReference::default(), Err(frame_too_large(limits.max_body_bytes)))
        } else {
            frames::parse(frame, limits)
        };
        // A frame is a request like any other.
        let user = received.as_ref().ok().and_then(ClientFrame::user);
        let received = self.gateway.limits.count_caller(&self.caller, user).and(received);
        let id = about.id.clone().unwrap_or_default();
        let done = match received {
            Err(problem) => Err(problem),
            // The subscription speaks for itself.
            Ok(ClientFrame::Subscribe(wish)) => self.subscribe(id, wish).await.map(|()| None),
            Ok(ClientFrame::Unsubscribe) => {
                let removed = self.subscriptions.remove(&id).await;
                removed.map(|()| Some(ServerFrame::Unsubscribed { id: &id }.to_json()))
            }
            Ok(ClientFrame::Message(message)) => self.submit_input(message, &about).await,
            Ok(ClientFrame::Choice(choice)) => self.submit_input(choice, &about).await,
            Ok(ClientFrame::Approval(approval)) => self.submit_input(approval, &about).await,
            Ok(ClientFrame::Command(command)) => self.submit_input(command, &about).await,
            Ok(ClientFrame::Ping) => Ok(Some(ServerFrame::Pong.to_json())),
        };
        match done {
            Ok(Some(answer)) => self.queue_message(Message::Text(answer.into()), patience).await,
            Ok(None) => Ok(()),
            Err(problem) => self.send_frame(&ServerFrame::Error { about: &about, problem: &problem }, patience).await,
        }
    }

    async fn subscribe(&mut self, id: String, wish: WatchRequest) -> Result<(), Problem> {
        self.caller.require_scope(Scope::Read)?;
        self.caller.require_agent(wish.filter.agent.as_ref().map(Name::as_str))?;
        self.subscriptions.add(&self.gateway, &self.caller, &self.client, id, wish).await
    }

    async fn submit_input(&self, said: impl UserInput, about: &FrameReference) -> Result<Option<String>, Problem> {
        let accepted = ingest::submit_input(&self.gateway, &self.caller, self.traceparent.clone(), said).await?;
        Ok(Some(ServerFrame::Accepted { about, accepted: &accepted }.to_json()))
    }

    async fn send_frame(&self, frame: &ServerFrame<'_>, patience: Duration) -> Result<(), CloseReason> {
        self.queue_message(text_message(frame), patience).await
    }

    /// Queues a frame. A client that sends and does not read is held up, and is given up on in the end.
    async fn queue_message(&self, frame: Message, patience: Duration) -> Result<(), CloseReason> {
        tokio::select! {
            sent = timeout(patience, self.client.send(frame)) => match sent {
                Ok(sent) => sent.map_err(|_| CloseReason::Gone),
                Err(_) => Err(CloseReason::Silent),
            },
            () = self.gateway.shutdown.cancelled() => Err(CloseReason::Stopping),
        }
    }
}

fn frame_too_large(limit: usize) -> Problem {
    Problem::too_large(format!("the frame is larger than gateway.max_body_bytes, which is {limit} bytes"))
}

fn text_message(frame: &ServerFrame<'_>) -> Message {
    Message::Text(frame.to_json().into())
}
