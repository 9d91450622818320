//! Showing an answer while it grows, to whoever watches: ephemeral, and worth nothing once the decision is there.

use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, append::Outgoing},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{LIVE_TOKEN, Service},
};
use kairo_proto::v1::LiveToken;

/// Where the pieces of one answer go.
pub struct Live<'a> {
    bus: &'a Bus,
    agent: &'a Name,
    /// What is being answered.
    cause: &'a Envelope,
    thread_id: &'a str,
    index: u32,
    /// Whether the answer is words, told by how it begins; one that is JSON is for the mind.
    words: Option<bool>,
}

impl<'a> Live<'a> {
    pub fn new(bus: &'a Bus, agent: &'a Name, cause: &'a Envelope, thread_id: &'a str) -> Self {
        Self { bus, agent, cause, thread_id, index: 0, words: None }
    }

    /// Shows a piece; an empty one is none.
    pub async fn show(&mut self, text: String, reasoning: bool) {
        if !reasoning && self.words.is_none() {
            self.words = text.trim_start().chars().next().map(|first| first != '{');
        }
        if text.is_empty() || !reasoning && self.words == Some(false) {
            return;
        }
        let (id, now) = (ids::entering(), Timestamp::now());
        let envelope = self.cause.follow(id, Service::AgentRuntime, Origin::Internal, now);
        let token = LiveToken { thread_id: self.thread_id.to_owned(), index: self.index, text, reasoning };
        self.index += 1;
        self.bus.say_live(&Outgoing::new(&LIVE_TOKEN, self.agent, envelope.in_thread(self.thread_id), token)).await;
    }
}
