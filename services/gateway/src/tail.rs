//! The tail of the log, read once on behalf of all listeners.
//!
//! A consumer for each client would cost the server too much, and it allows a thousand a stream. So one consumer
//! follows the log for as long as the gateway lives, and every message is handed to the listeners that want it
//! ([`crate::dispatch`]). A listener that is behind ([`LogTail::join`] with an old place, or a client that is too slow)
//! reads the log with a follower of its own until it has caught up.

use std::sync::Arc;

use futures::{Stream, stream};
use kairo_core::{
    bus::{Bus, BusError},
    event_json::{self, EventJson},
    ids::Name,
    record::{RawMessage, Record},
    subjects,
};
use kairo_proto::{Body, v1::Completion};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    dispatch::{Dispatcher, Interest, Subscription},
    http::TokenUsage,
    log_follower::{LogFollower, end_of_log},
};

/// A message of the log, decoded; without events if it cannot be read.
#[derive(Debug)]
pub struct TailMessage {
    pub sequence: u64,
    pub subject: String,
    pub events: Vec<EventJson>,
    /// Model tokens spent on it, if it is a decision; zero otherwise.
    pub tokens: TokenUsage,
}

impl TailMessage {
    pub fn decode(message: &RawMessage, max_body: usize) -> Self {
        // A message that cannot be read is in the dead letters; it is skipped here.
        let record = message.read(max_body).ok();
        let events = record.as_ref().map(event_json::events).unwrap_or_default();
        let tokens = record.as_ref().map(decision_tokens).unwrap_or_default();
        Self { sequence: message.sequence, subject: message.subject.clone(), events, tokens }
    }

    /// Returns true if the message concerns the agent, by the same rule as [`subjects::agent_filter`].
    fn concerns_agent(&self, agent: &Name) -> bool {
        subject_owner(&self.subject) == Some(agent.as_str())
    }

    fn has_correlation(&self, correlation: Uuid) -> bool {
        self.events.iter().any(|event| event.correlation_id == correlation)
    }

    /// Returns the interests that the message matches, each once.
    fn interests(&self) -> Vec<Interest> {
        let mut interests = vec![Interest::Everything];
        interests.extend(agent_interest(&self.subject));
        for event in &self.events {
            let correlation = Interest::Correlation(event.correlation_id);
            if !interests.contains(&correlation) {
                interests.push(correlation);
            }
        }
        interests
    }
}

fn decision_tokens(record: &Record) -> TokenUsage {
    let Body::AgentDecision(decision) = &record.body else { return TokenUsage::default() };
    let sum = |of: fn(&Completion) -> u64| decision.completions.iter().map(of).fold(0, u64::saturating_add);
    TokenUsage {
        input: sum(|completion| completion.input_tokens),
        output: sum(|completion| completion.output_tokens),
        cached: sum(|completion| completion.cached_tokens),
    }
}

/// The third token of a subject.
fn subject_owner(subject: &str) -> Option<&str> {
    subject.split('.').nth(2)
}

fn agent_interest(subject: &str) -> Option<Interest> {
    Name::parse(subject_owner(subject)?).ok().map(Interest::Agent)
}

/// Returns the interests that are known from a message's subject and headers, without decoding its body, and true if
/// the body may hold more.
fn header_interests(message: &RawMessage) -> (Vec<Interest>, bool) {
    let mut interests = vec![Interest::Everything];
    interests.extend(agent_interest(&message.subject));
    interests.extend(message.ids().map(|(_, correlation)| Interest::Correlation(correlation)));
    let is_decision = subjects::AGENT_DECISION.matches(&message.subject);
    (interests, is_decision)
}

/// The messages that a listener receives.
#[derive(Clone, Debug)]
pub struct TailFilter {
    pub interest: Interest,
    /// Only what concerns this agent, whatever the interest.
    pub agent: Option<Name>,
}

/// The tail of the log, which listeners join; cheap to clone.
#[derive(Clone)]
pub struct LogTail {
    bus: Bus,
    /// Messages a follower asks for at once.
    buffer: usize,
    news: Dispatcher<Arc<TailMessage>>,
}

impl LogTail {
    /// Follows the log from its end on until shutdown. `witness` sees every message before it is handed on; up to `waiting`
    /// messages wait for one listener.
    pub async fn follow(
        bus: &Bus,
        buffer: usize,
        waiting: usize,
        witness: impl Fn(&RawMessage) + Send + 'static,
        shutdown: CancellationToken,
    ) -> Result<Self, BusError> {
        let end = end_of_log(bus).await?;
        let tail = Self { bus: bus.clone(), buffer, news: Dispatcher::new(end, waiting) };
        let follower = LogFollower::new(bus, String::new(), end, buffer);
        let following = dispatch_log(follower, tail.news.clone(), bus.limits.max_body_bytes, witness);
        tokio::spawn(async move { shutdown.run_until_cancelled(following).await });
        Ok(tail)
    }

    /// Listens from now on: no wanted message written after this call is missed.
    pub fn listen(&self, wanted: TailFilter) -> TailListener {
        let news = self.news.subscribe(wanted.interest.clone());
        TailListener { tail: self.clone(), position: news.position, news, wanted, behind: None }
    }

    /// Listens from `position` on: the wanted messages after it, in the log and to come, in order, each once, without
    /// end.
    pub fn join(&self, wanted: TailFilter, position: u64) -> TailListener {
        let mut listener = self.listen(wanted);
        let heard_from = std::mem::replace(&mut listener.position, position);
        if position < heard_from {
            listener.start_catching_up();
        }
        listener
    }
}

async fn dispatch_log(
    mut follower: LogFollower,
    news: Dispatcher<Arc<TailMessage>>,
    max_body: usize,
    witness: impl Fn(&RawMessage) + Send + 'static,
) {
    loop {
        let message = follower.next().await;
        witness(&message);
        let (interests, of_many) = header_interests(&message);
        if !news.skip_if_unwanted(message.sequence, &interests, of_many) {
            let said = Arc::new(TailMessage::decode(&message, max_body));
            news.dispatch(said.sequence, &said.interests(), &said);
        }
    }
}

/// A subscriber to the tail, which reads the log itself while it is behind.
pub struct TailListener {
    tail: LogTail,
    news: Subscription<Arc<TailMessage>>,
    wanted: TailFilter,
    /// The last message handed over, or passed over.
    position: u64,
    /// Reads the messages that the news no longer hold, while the listener is behind.
    behind: Option<LogFollower>,
}

impl TailListener {
    /// Reads the log from its place on, until it has caught up with the news.
    fn start_catching_up(&mut self) {
        // The server sorts out what does not concern the agent.
        let filter = self.wanted.agent.as_ref().map(subjects::agent_filter).unwrap_or_default();
        self.behind = Some(LogFollower::new(&self.tail.bus, filter, self.position, self.tail.buffer));
    }

    async fn next(&mut self) -> Arc<TailMessage> {
        loop {
            let said = match &mut self.behind {
                Some(follower) => match follower.next_pending().await {
                    Some(message) => Arc::new(TailMessage::decode(&message, self.tail.bus.limits.max_body_bytes)),
                    None => {
                        self.behind = None;
                        continue;
                    }
                },
                None => match self.news.next().await {
                    Some(said) => said,
                    None => {
                        self.news = self.tail.news.subscribe(self.wanted.interest.clone());
                        self.start_catching_up();
                        continue;
                    }
                },
            };
            // While it caught up, what it read was news too.
            if said.sequence > self.position {
                self.position = said.sequence;
                if self.wanted.matches(&said) {
                    return said;
                }
            }
        }
    }

    /// Returns the listener's messages as a stream, so that a read in progress is kept when a `select!` on it is
    /// cancelled.
    pub fn into_stream(self) -> impl Stream<Item = Arc<TailMessage>> + Send {
        stream::unfold(self, |mut listener| async move {
            let said = listener.next().await;
            Some((said, listener))
        })
    }
}

impl TailFilter {
    fn matches(&self, said: &TailMessage) -> bool {
        let interested = match &self.interest {
            Interest::Everything => true,
            Interest::Agent(agent) => said.concerns_agent(agent),
            Interest::Correlation(correlation) => said.has_correlation(*correlation),
        };
        interested && self.agent.as_ref().is_none_or(|agent| said.concerns_agent(agent))
    }
}
