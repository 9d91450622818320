//! The end of the log, read once for all event streams.
//!
//! A consumer for each client would cost the server more than the clients are worth, and it allows a thousand a
//! stream. So one follows the log, for as long as anybody listens, and its messages are shared. Whoever is behind them
//! ([`Tail::join`] with an old place, or a client that is too slow) reads the log with a follower of its own until it
//! has caught up.

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicU64, Ordering},
};

use futures::{Stream, stream};
use kairo_core::{
    bus::{Bus, BusError},
    event_json::{self, EventJson},
    ids::Name,
    record::{Raw, Record},
    subjects,
};
use kairo_proto::{Body, v1::Completion};
use tokio::{
    sync::{
        Mutex,
        broadcast::{self, error::RecvError},
    },
    task::AbortHandle,
};

use crate::{
    follow::{Follower, end_of_log},
    http::Tokens,
};

/// What a message of the log says; nothing if it cannot be read.
#[derive(Debug)]
pub struct Said {
    pub sequence: u64,
    pub subject: String,
    pub events: Vec<EventJson>,
    /// What it took of models, if it is a decision.
    pub tokens: Tokens,
}

impl Said {
    pub fn read(message: &Raw, max_body: usize) -> Self {
        // What cannot be read is in the dead letters; here it is passed over.
        let record = message.read(max_body).ok();
        let events = record.as_ref().map(event_json::events).unwrap_or_default();
        let tokens = record.as_ref().map(tokens).unwrap_or_default();
        Self { sequence: message.sequence, subject: message.subject.clone(), events, tokens }
    }

    /// Whether it concerns the agent: as [`subjects::everything_of`].
    fn concerns(&self, agent: &Name) -> bool {
        self.subject.split('.').nth(2) == Some(agent.as_str())
    }
}

fn tokens(record: &Record) -> Tokens {
    let Body::AgentDecision(decision) = &record.body else { return Tokens::default() };
    let sum = |of: fn(&Completion) -> u64| decision.completions.iter().map(of).fold(0, u64::saturating_add);
    Tokens { input: sum(|completion| completion.input_tokens), output: sum(|completion| completion.output_tokens) }
}

/// Where streams join.
#[derive(Clone)]
pub struct Tail {
    bus: Bus,
    /// Messages a follower asks for at once.
    buffer: usize,
    /// Newest messages that are kept for streams to take.
    kept: usize,
    shared: Arc<Mutex<Weak<Shared>>>,
}

/// The newest messages, as long as anybody wants them.
struct Shared {
    said: broadcast::Sender<Arc<Said>>,
    /// The last message that was said, or is about to be.
    position: AtomicU64,
    sharing: OnceLock<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(sharing) = self.sharing.get() {
            sharing.abort();
        }
    }
}

impl Tail {
    pub fn new(bus: &Bus, buffer: usize, kept: usize) -> Self {
        Self { bus: bus.clone(), buffer, kept, shared: Arc::default() }
    }

    /// The messages behind `position` that concern `agent`, or all: those in the log and those to come, in order, each
    /// once, without end.
    pub async fn join(
        &self,
        agent: Option<Name>,
        position: u64,
    ) -> Result<impl Stream<Item = Arc<Said>> + Send + use<>, BusError> {
        let shared = self.shared().await?;
        let news = shared.said.subscribe();
        // All above this will be heard.
        let heard_from = shared.position.load(Ordering::Acquire);
        let mut listener = Listener { tail: self.clone(), _shared: shared, news, agent, position, behind: None };
        if position < heard_from {
            listener.fall_behind();
        }
        Ok(stream::unfold(listener, |mut listener| async move {
            let said = listener.next().await;
            Some((said, listener))
        }))
    }

    async fn shared(&self) -> Result<Arc<Shared>, BusError> {
        let mut shared = self.shared.lock().await;
        if let Some(shared) = shared.upgrade() {
            return Ok(shared);
        }
        let end = end_of_log(&self.bus).await?;
        let (said, _) = broadcast::channel(self.kept);
        let begun = Arc::new(Shared { said, position: AtomicU64::new(end), sharing: OnceLock::new() });
        let follower = Follower::new(&self.bus, String::new(), end, self.buffer);
        let sharing = tokio::spawn(share(follower, Arc::downgrade(&begun), self.bus.limits.max_body_bytes));
        let _ = begun.sharing.set(sharing.abort_handle());
        *shared = Arc::downgrade(&begun);
        Ok(begun)
    }
}

async fn share(mut follower: Follower, shared: Weak<Shared>, max_body: usize) {
    loop {
        let said = Arc::new(Said::read(&follower.next().await, max_body));
        let Some(shared) = shared.upgrade() else { return };
        // Before it is said: whoever joins in between knows that it may miss this one.
        shared.position.store(said.sequence, Ordering::Release);
        let _ = shared.said.send(said);
    }
}

/// One stream.
struct Listener {
    tail: Tail,
    /// Keeps the news coming.
    _shared: Arc<Shared>,
    news: broadcast::Receiver<Arc<Said>>,
    agent: Option<Name>,
    /// The last message handed over, or passed over.
    position: u64,
    /// Reads what the news no longer hold.
    behind: Option<Follower>,
}

impl Listener {
    fn fall_behind(&mut self) {
        // The server sorts out what does not concern the agent.
        let filter = self.agent.as_ref().map(subjects::everything_of).unwrap_or_default();
        self.behind = Some(Follower::new(&self.tail.bus, filter, self.position, self.tail.buffer));
    }

    async fn next(&mut self) -> Arc<Said> {
        loop {
            let said = match &mut self.behind {
                Some(follower) => match follower.next_pending().await {
                    Some(message) => Arc::new(Said::read(&message, self.tail.bus.limits.max_body_bytes)),
                    None => {
                        self.behind = None;
                        continue;
                    }
                },
                None => match self.news.recv().await {
                    Ok(said) => said,
                    Err(RecvError::Lagged(_)) => {
                        self.fall_behind();
                        continue;
                    }
                    // Not while the sender is held here.
                    Err(RecvError::Closed) => std::future::pending().await,
                },
            };
            // While it caught up, what it read was news too.
            if said.sequence > self.position {
                self.position = said.sequence;
                if self.agent.as_ref().is_none_or(|agent| said.concerns(agent)) {
                    return said;
                }
            }
        }
    }
}
