//! Showing an answer while it grows, to whoever watches: ephemeral, and worth nothing once the decision is there.

use std::time::Duration;

use kairo_core::{
    bus::{Bus, append::Outgoing},
    envelope::{Envelope, Origin},
    ids::Name,
    metrics::table::FIRST_WORDS,
    subjects::{LIVE_TOKEN, Service},
};
use kairo_proto::v1::LiveToken;

use crate::drafts::Writing;

/// What arrived at once is told at once, as long as it is no more than so many of the model's own pieces.
const PIECES: usize = 4;

/// Where the pieces of one answer go: whoever answers shows them, and need not know who watches.
pub struct Live<'a> {
    bus: &'a Bus,
    agent: &'a Name,
    /// What is being answered.
    cause: &'a Envelope,
    thread_id: &'a str,
    /// Where it is kept for whoever comes late.
    writing: &'a Writing,
    /// Of this answer: the id of its first piece; empty until there is one.
    call_id: String,
    index: u32,
    /// Not yet said, and of how many pieces of the model.
    held: String,
    pieces: usize,
    /// Whether what is held is reasoning.
    reasoning: bool,
    /// Whether [`FIRST_WORDS`] was measured: once for each input, also where an answer begins again.
    is_heard: bool,
    /// Whether the answer is words, told by how it begins; one that is JSON is for the mind.
    words: Option<bool>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(
        bus: &'a Bus,
        agent: &'a Name,
        cause: &'a Envelope,
        thread_id: &'a str,
        writing: &'a Writing,
    ) -> Self {
        let (call_id, held) = (String::new(), String::new());
        let (index, pieces, reasoning, is_heard, words) = (0, 0, false, false, None);
        Self { bus, agent, cause, thread_id, writing, call_id, index, held, pieces, reasoning, is_heard, words }
    }

    /// Shows a piece, at the latest with the next [`Live::flush`]; an empty one is none.
    pub async fn show(&mut self, text: &str, reasoning: bool) {
        if !reasoning && self.words.is_none() {
            self.words = text.trim_start().chars().next().map(|first| first != '{');
        }
        if text.is_empty() || !reasoning && self.words == Some(false) {
            return;
        }
        if self.reasoning != reasoning {
            self.flush().await;
        }
        self.reasoning = reasoning;
        self.held.push_str(text);
        self.pieces += 1;
        if self.pieces == PIECES {
            self.flush().await;
        }
    }

    /// How long somebody waited for words, whatever was thought before.
    fn measure(&mut self, reasoning: bool) {
        if reasoning || std::mem::replace(&mut self.is_heard, true) {
            return;
        }
        let waited = Duration::try_from(self.bus.now().duration_since(self.cause.time)).unwrap_or_default();
        let traceparent = self.cause.traceparent.as_deref();
        let labels = [self.cause.type_name.as_str(), self.agent.as_str()];
        self.bus.metrics.took_in(traceparent, &FIRST_WORDS, waited, &labels);
    }

    /// Another answer begins, in the place of this one: who watches drops the pieces of the other call.
    pub fn begin_again(&mut self) {
        self.call_id.clear();
        self.held.clear();
        (self.index, self.pieces, self.reasoning, self.words) = (0, 0, false, None);
    }

    /// Says what is held. To be called before anything is waited for.
    pub async fn flush(&mut self) {
        self.pieces = 0;
        if self.held.is_empty() {
            return;
        }
        let (id, now) = (self.bus.new_id(), self.bus.now());
        let envelope = self.cause.follow(id, Service::AgentRuntime, Origin::Internal, now);
        let (text, thread_id) = (std::mem::take(&mut self.held), self.thread_id.to_owned());
        if self.call_id.is_empty() {
            self.call_id = id.to_string();
        }
        let (index, reasoning, call_id) = (self.index, self.reasoning, self.call_id.clone());
        let token = LiveToken { thread_id, index, text, reasoning, call_id };
        self.index += 1;
        self.measure(reasoning);
        let envelope = envelope.in_thread(self.thread_id);
        // First, so that who asks for it hears each piece then or live.
        self.writing.take(&envelope, &token);
        self.bus.say_live(&Outgoing::new(&LIVE_TOKEN, self.agent, envelope, token)).await;
    }
}
