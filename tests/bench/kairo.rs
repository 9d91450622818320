//! Turns of Kairo, as a client has them: `POST /v1/messages`, and the reply on one event stream.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::StreamExt;
use reqwest::Client;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{Outcome, load::Lane};

/// The only kind of event worth reading: a reply is one.
const ACTION: &str = "\"kairo.agent.action.v1\"";

/// What ends a turn, and when it was seen.
struct Reply {
    turn: Uuid,
    seen: Instant,
}

/// The turns of one agent.
pub struct Turns {
    http: Client,
    url: String,
    message: serde_json::Value,
    replies: mpsc::UnboundedReceiver<Reply>,
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

/// Defines so many agents and listens for their replies. A conversation shows the model `history` entries.
pub async fn lanes(gateway: &str, agents: usize, history: u32) -> Outcome<Vec<Turns>> {
    let http = Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let mut lanes = Vec::new();
    let mut listeners = BTreeMap::new();
    for number in 0..agents {
        let agent = format!("bench-{number}");
        let profile = json!({ "agent": agent, "prompt": "You tell the time.", "history_limit": history });
        http.post(format!("{gateway}/v1/agents")).json(&profile).send().await?.error_for_status()?;
        let message = json!({ "user": "bench", "agent": agent, "text": "What time is it?" });
        let (listener, replies) = mpsc::unbounded_channel();
        listeners.insert(format!("kairo.agent.{agent}.decision"), listener);
        lanes.push(Turns { http: http.clone(), url: format!("{gateway}/v1/messages"), message, replies });
    }
    let stream = http.get(format!("{gateway}/v1/events/stream")).send().await?.error_for_status()?;
    tokio::spawn(async move {
        let ended = listen(stream, &listeners).await;
        // When nobody listens any more, it is the gateway that was stopped.
        if let (Err(error), false) = (ended, listeners.values().all(mpsc::UnboundedSender::is_closed)) {
            eprintln!("kairo-bench: the event stream broke: {error}");
        }
    });
    Ok(lanes)
}

/// Hands out replies as they come. When it ends, every lane's next turn fails.
async fn listen(stream: reqwest::Response, listeners: &BTreeMap<String, mpsc::UnboundedSender<Reply>>) -> Outcome<()> {
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
                listener.send(Reply { turn: event.correlation_id, seen })?;
            }
        }
    }
    Err("it ended".into())
}

impl Lane for Turns {
    async fn turn(&mut self) -> Outcome<Duration> {
        let started = Instant::now();
        let answer = self.http.post(&self.url).json(&self.message).send().await?.error_for_status()?;
        let Accepted { correlation_id } = answer.json().await?;
        let reply = tokio::time::timeout(Duration::from_secs(30), self.replies.recv()).await;
        let reply = reply.map_err(|_| "no reply within 30 s")?.ok_or("the event stream is gone")?;
        if reply.turn != correlation_id {
            return Err("a reply to another turn".into());
        }
        Ok(reply.seen - started)
    }
}
