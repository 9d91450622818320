//! Turns of Kairo as clients have them, over its two entrances: `POST /v1/messages` with one event stream for all
//! replies, and `POST /v1/chat/completions`, whose answer is streamed.

use std::time::{Duration, Instant};

use futures::StreamExt;
use reqwest::Client;
use serde_json::json;

use crate::{Outcome, agents::Agent, load::Lane};

/// The longest that a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The data of the last line of a streamed chat completion.
const DONE: &str = "[DONE]";
/// The text that is in every answer.
const ANSWER: &str = "It is";

/// The turns of one agent over `/v1/messages`.
pub struct Messages(Agent);

/// The turns of one agent over `/v1/chat/completions`.
pub struct Chat {
    http: Client,
    url: String,
    agent: String,
    /// Turns until now: words that were said before would be taken for the same message.
    turns: u64,
}

/// The lanes of both entrances, with the same agents.
pub fn lanes(agents: Vec<Agent>) -> (Vec<Messages>, Vec<Chat>) {
    let chat = |agent: &Agent| Chat {
        http: agent.sender.http.clone(),
        url: format!("{}/v1/chat/completions", agent.sender.url),
        agent: agent.sender.agent.clone(),
        turns: 0,
    };
    let chats = agents.iter().map(chat).collect();
    (agents.into_iter().map(Messages).collect(), chats)
}

impl Lane for Messages {
    async fn turn(&mut self) -> Outcome<Duration> {
        let started = Instant::now();
        let turn = self.0.sender.say("What time is it?").await?;
        // Replies to what was said over the other entrance come here, too.
        loop {
            let reply = self.0.reply(PATIENCE).await?;
            if reply.turn == turn {
                return Ok(reply.seen - started);
            }
        }
    }
}

impl Lane for Chat {
    async fn turn(&mut self) -> Outcome<Duration> {
        self.turns += 1;
        let text = format!("What time is it? ({})", self.turns);
        let body = json!({
            "model": self.agent,
            "user": "bench",
            "stream": true,
            "messages": [{ "role": "user", "content": text }],
        });
        let started = Instant::now();
        // One conversation, as over the other entrance; a thread of each agent's own, since the same words in threads
        // of one name are one message, whoever it is for.
        let request = self.http.post(&self.url).header("Kairo-Thread", &self.agent).json(&body);
        let answer = request.send().await?.error_for_status()?;
        let seen = tokio::time::timeout(PATIENCE, whole(answer)).await.map_err(|_| "no whole answer within 30 s")??;
        Ok(seen - started)
    }
}

/// Reads an answer to its end. Returns when its last line was seen.
async fn whole(answer: reqwest::Response) -> Outcome<Instant> {
    let mut chunks = answer.bytes_stream();
    let (mut text, mut done) = (String::new(), None);
    // To the end of the body, so that the connection can be used again.
    while let Some(chunk) = chunks.next().await {
        text.push_str(std::str::from_utf8(&chunk?)?);
        if done.is_none() && text.contains(DONE) {
            done = Some(Instant::now());
        }
    }
    match done {
        Some(done) if text.contains(ANSWER) => Ok(done),
        _ => Err(format!("not the answer: {text}").into()),
    }
}
