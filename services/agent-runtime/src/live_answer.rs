//! Showing an answer while it grows, to whoever watches: ephemeral, and worth nothing once the decision is there.

use std::time::Duration;

use kairo_core::{
    bus::{Bus, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    ids::Name,
    metrics::table::FIRST_WORDS,
    subjects::{LIVE_TOKEN, Service},
};
use kairo_proto::v1::LiveToken;

use crate::drafts::DraftWriter;

/// Pieces of the model that are sent as one message at most, if they arrive at once.
const PIECES: usize = 4;

/// The live output of one answer: the caller writes the pieces and need not know who watches.
pub struct LiveAnswer<'a> {
    bus: &'a Bus,
    agent: &'a Name,
    /// The envelope of the input being answered.
    cause: &'a Envelope,
    thread_id: &'a str,
    /// The draft, kept for clients that connect late.
    writing: &'a DraftWriter,
    /// The id of the first piece of this answer; empty before there is one.
    call_id: String,
    index: u32,
    /// Not yet said, and of how many pieces of the model.
    held: String,
    pieces: usize,
    /// True if the held text is reasoning.
    reasoning: bool,
    /// True once [`FIRST_WORDS`] was measured: once for each input, even if the answer begins again.
    is_heard: bool,
    /// True if the answer is prose, judged by its first character; a JSON answer is for the mind.
    words: Option<bool>,
}

impl<'a> LiveAnswer<'a> {
    pub(crate) fn new(
        bus: &'a Bus,
        agent: &'a Name,
        cause: &'a Envelope,
        thread_id: &'a str,
        writing: &'a DraftWriter,
    ) -> Self {
        let call_id = String::new();
        let held = String::new();
        let index = 0;
        let pieces = 0;
        let reasoning = false;
        let is_heard = false;
        let words = None;
        Self { bus, agent, cause, thread_id, writing, call_id, index, held, pieces, reasoning, is_heard, words }
    }

    /// Shows a piece, at the latest with the next [`LiveAnswer::flush`]; an empty one is none.
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

    /// Records the wait for the first words of the answer, time spent on reasoning included.
    fn measure(&mut self, reasoning: bool) {
        if reasoning || std::mem::replace(&mut self.is_heard, true) {
            return;
        }
        let waited = Duration::try_from(self.bus.now().duration_since(self.cause.time)).unwrap_or_default();
        let traceparent = self.cause.traceparent.as_deref();
        let labels = [self.cause.type_name.as_str(), self.agent.as_str()];
        self.bus.metrics.record_duration_in_trace(traceparent, &FIRST_WORDS, waited, &labels);
    }

    /// Another answer begins, in the place of this one: who watches drops the pieces of the other call.
    pub fn restart(&mut self) {
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
        let id = self.bus.new_id();
        let now = self.bus.now();
        let envelope = self.cause.follow_up(id, Service::AgentRuntime, Origin::Internal, now);
        let text = std::mem::take(&mut self.held);
        let thread_id = self.thread_id.to_owned();
        if self.call_id.is_empty() {
            self.call_id = id.to_string();
        }
        let index = self.index;
        let reasoning = self.reasoning;
        let call_id = self.call_id.clone();
        let token = LiveToken { thread_id, index, text, reasoning, call_id };
        self.index += 1;
        self.measure(reasoning);
        let envelope = envelope.with_thread(self.thread_id);
        // First, so that who asks for it hears each piece then or live.
        self.writing.add_token(&envelope, &token);
        self.bus.publish_live(&OutgoingEvent::new(&LIVE_TOKEN, self.agent, envelope, token)).await;
    }
}
