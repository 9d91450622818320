//! Agents as a client has them: messages over `POST /v1/messages`, and all replies on one event stream.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use kairo_proto::v1;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle};
use uuid::Uuid;

use crate::Outcome;

/// The only kind of event worth reading: a reply is one.
const ACTION: &str = v1::AgentAction::TYPE;
/// Before a message is sent again that the gateway would not take now.
pub const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// The reply that ends a turn, and the time at which it was seen.
pub struct Reply {
    pub turn: Uuid,
    pub seen: Instant,
}

/// One agent, and its replies in the order of their arrival.
pub struct Agent {
    pub sender: Sender,
    replies: mpsc::UnboundedReceiver<Reply>,
}

/// A sender of messages to one agent.
#[derive(Clone)]
pub struct Sender {
    pub agent: String,
    pub http: Client,
    /// The gateway's.
    pub url: String,
}

#[derive(Deserialize)]
struct Accepted {
    correlation_id: Uuid,
}

#[derive(Deserialize)]
struct Event {
    subject: String,
    correlation_id: Uuid,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default, rename = "final")]
    last: bool,
}

/// The gateway's response to a message.
pub enum Said {
    Accepted(Uuid),
    /// 429: the agent has too much to do.
    Refused,
    /// 503, and why.
    Unavailable(String),
}

/// The replies of all agents, while somebody listens.
pub struct Replies {
    http: Client,
    gateway: String,
    listeners: Arc<BTreeMap<String, mpsc::UnboundedSender<Reply>>>,
}

/// The event stream is open until this is dropped.
pub struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Defines agents of these names. A conversation shows the model `history` entries.
pub async fn define(
    gateway: &str,
    names: impl IntoIterator<Item = String>,
    history: u32,
) -> Outcome<(Vec<Agent>, Replies)> {
    let http = Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let mut agents = Vec::new();
    let mut listeners = BTreeMap::new();
    for agent in names {
        let (listener, replies) = mpsc::unbounded_channel();
        listeners.insert(format!("kairo.agent.{agent}.decision"), listener);
        let sender = Sender { agent, http: http.clone(), url: gateway.to_owned() };
        define_one(&sender, history).await?;
        agents.push(Agent { sender, replies });
    }
    Ok((agents, Replies { http, gateway: gateway.to_owned(), listeners: Arc::new(listeners) }))
}

/// Defines one agent.
pub async fn define_one(sender: &Sender, history: u32) -> Outcome<()> {
    let profile = json!({ "agent": sender.agent, "prompt": "You tell the time.", "history_limit": history });
    sender.http.post(format!("{}/v1/agents", sender.url)).json(&profile).send().await?.error_for_status()?;
    Ok(())
}

impl Replies {
    /// Listens from now on.
    pub async fn listen(&self) -> Outcome<Listening> {
        let stream = self.http.get(format!("{}/v1/events/stream", self.gateway)).send().await?.error_for_status()?;
        let listeners = self.listeners.clone();
        Ok(Listening(tokio::spawn(async move {
            if let Err(error) = hand_out(stream, &listeners).await {
                eprintln!("kairo-bench: the event stream broke: {error}");
            }
        })))
    }
}

/// Hands out replies as they come.
async fn hand_out(
    stream: reqwest::Response,
    listeners: &BTreeMap<String, mpsc::UnboundedSender<Reply>>,
) -> Outcome<()> {
    let mut chunks = stream.bytes_stream();
    let mut buffer: Vec<u8> = Vec::new();
    while let Some(chunk) = chunks.next().await {
        buffer.extend_from_slice(&chunk?);
        let Some(end) = buffer.iter().rposition(|byte| *byte == b'\n') else { continue };
        let seen = Instant::now();
        let rest = buffer.split_off(end + 1);
        let lines = std::mem::replace(&mut buffer, rest);
        for line in std::str::from_utf8(&lines)?.lines().filter(|line| line.contains(ACTION)) {
            let Some(data) = line.strip_prefix("data:") else { continue };
            let event: Event = serde_json::from_str(data)?;
            if let (true, Some(listener)) = (event.payload.last, listeners.get(&event.subject)) {
                // An agent nobody waits for any more is no reason to stop listening for the others.
                let _ = listener.send(Reply { turn: event.correlation_id, seen });
            }
        }
    }
    Err("it ended".into())
}

impl Sender {
    /// Says something once, as a user of its own, who is called as the agent is: users have shares.
    pub async fn try_say(&self, text: &str) -> Outcome<Said> {
        self.say_as(&self.agent, text).await
    }

    /// Says something once, as another user.
    pub async fn say_as(&self, user: &str, text: &str) -> Outcome<Said> {
        let message = json!({ "user": user, "agent": self.agent, "text": text });
        let answer = self.http.post(format!("{}/v1/messages", self.url)).json(&message).send().await?;
        match answer.status() {
            StatusCode::TOO_MANY_REQUESTS => return Ok(Said::Refused),
            StatusCode::SERVICE_UNAVAILABLE => return Ok(Said::Unavailable(answer.text().await?)),
            _ => {}
        }
        let Accepted { correlation_id } = answer.error_for_status()?.json().await?;
        Ok(Said::Accepted(correlation_id))
    }

    /// Says something until it is taken.
    pub async fn say(&self, text: &str) -> Outcome<Uuid> {
        self.say_until_taken(&self.agent, text).await
    }

    /// Says something as another user until it is taken.
    pub async fn say_until_taken(&self, user: &str, text: &str) -> Outcome<Uuid> {
        loop {
            match self.say_as(user, text).await? {
                Said::Accepted(turn) => return Ok(turn),
                Said::Refused => tokio::time::sleep(REFUSED_PAUSE).await,
                Said::Unavailable(why) => return Err(why.into()),
            }
        }
    }
}

/// In milliseconds, with one digit behind the point.
pub fn in_ms(wait: Duration) -> f64 {
    (wait.as_secs_f64() * 10_000.0).round() / 10.0
}

impl Agent {
    /// Says something, and how long its reply is waited for.
    pub async fn turn(&mut self, text: &str, within: Duration) -> Outcome<Duration> {
        let begun = Instant::now();
        let turn = self.sender.say(text).await?;
        let reply = self.reply(within).await?;
        if reply.turn != turn {
            return Err("a reply to something else".into());
        }
        Ok(reply.seen - begun)
    }

    /// When the reply to this turn was seen. One that came too late for a turn before is none.
    pub async fn reply_to(&mut self, turn: Uuid, within: Duration) -> Outcome<Instant> {
        loop {
            let reply = self.reply(within).await?;
            if reply.turn == turn {
                return Ok(reply.seen);
            }
        }
    }

    /// The next reply.
    pub async fn reply(&mut self, within: Duration) -> Outcome<Reply> {
        let reply = tokio::time::timeout(within, self.replies.recv()).await;
        Ok(reply.map_err(|_| format!("no reply within {within:?}"))?.ok_or("the event stream is gone")?)
    }
}
