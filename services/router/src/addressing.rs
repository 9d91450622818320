//! Finding out whom a message is for that names no agent beside its words: what a user says so far, in its order.
//!
//! Each user has one such message on its way at a time, and whatever that user says meanwhile stands behind it: only then is
//! it clear in which line it goes on.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_core::{
    address::{self, Addressee},
    bus::{Bus, BusError, append::OutgoingEvent, consume::backoff_delay},
    envelope::Origin,
    ids::{self, Name},
    ownership::lease::Lease,
    record::{RawMessage, Record},
    subjects::{Service, USER_SWITCHED},
    vocabulary::SWITCHES,
};
use kairo_proto::v1::{UserMessage, UserSwitched};

use crate::{current_agent::CurrentAgent, keyed_queues::PendingMessage, routing::Router};

/// Messages whose agent is not known yet at which no more are read.
const MOST: usize = 1_000;

/// The messages of a partition that wait to be addressed, and the agent each user speaks with.
#[derive(Default)]
pub struct AddressingQueue {
    waiting: BTreeMap<Name, VecDeque<Arc<PendingMessage>>>,
    /// Sequences of all that waits.
    sequences: BTreeSet<u64>,
    current: BTreeMap<Name, CurrentAgent>,
    /// Users that are remembered at most.
    capacity: usize,
}

impl AddressingQueue {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    pub fn has_room(&self) -> bool {
        self.sequences.len() < MOST
    }

    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// The first that waits, or waited when the rest was forgotten.
    pub fn first_sequence(&self) -> Option<u64> {
        self.sequences.first().copied()
    }

    /// Returns true if the user's next message has to wait behind earlier ones.
    pub fn is_waiting(&self, user: &Name) -> bool {
        self.waiting.contains_key(user)
    }

    /// Returns the agent that the user speaks with at the message of this sequence, if cached.
    pub fn current_agent(&mut self, user: &Name, sequence: u64) -> Option<Name> {
        Some(self.current.get_mut(user)?.agent_at(sequence).0)
    }

    /// Queues a message behind the user's earlier ones. Returns the message to address now, if any, with the agent that
    /// the user spoke with so far.
    pub fn enqueue(
        &mut self,
        user: &Name,
        said: PendingMessage,
    ) -> Option<(Arc<PendingMessage>, Option<CurrentAgent>)> {
        self.sequences.insert(said.raw.sequence);
        let waits = self.waiting.entry(user.clone()).or_default();
        let said = Arc::new(said);
        waits.push_back(said.clone());
        (waits.len() == 1).then(|| (said, self.current.remove(user)))
    }

    /// The first message of a user was addressed. It, and the one behind it.
    pub fn pop_addressed(&mut self, user: &Name) -> (Option<Arc<PendingMessage>>, Option<Arc<PendingMessage>>) {
        let Some(waits) = self.waiting.get_mut(user) else { return (None, None) };
        let first = waits.pop_front();
        if let Some(said) = &first {
            self.sequences.remove(&said.raw.sequence);
        }
        let next = waits.front().cloned();
        if next.is_none() {
            self.waiting.remove(user);
        }
        (first, next)
    }

    /// Remembers whom a user speaks with.
    pub fn remember_agent(&mut self, user: Name, current: CurrentAgent) {
        if self.current.len() >= self.capacity {
            self.current.clear();
        }
        self.current.insert(user, current);
    }

    /// Forgets all: it is somebody else's.
    pub fn clear_waiting(&mut self) {
        self.waiting.clear();
    }
}

/// Returns the addressee of a user's message, as far as the message names one.
pub fn addressee_of(record: &Record) -> Addressee<'_> {
    UserMessage::of(&record.body)
        .map_or(Addressee::Named, |message| address::addressee_of(&message.agent, &message.text))
}

/// Finds the agent that a message is for, and the one its user speaks with from there on. Retries until it succeeds.
pub async fn resolve_addressee(
    router: &Router,
    lease: &Lease,
    user: &Name,
    said: &PendingMessage,
    mut known: Option<CurrentAgent>,
) -> (CurrentAgent, Option<Name>) {
    let mut attempt = 0;
    loop {
        lease.wait_until_fresh().await;
        match try_resolve_addressee(router, user, said, &mut known).await {
            Ok((current, to)) => return (current, to),
            Err(error) => tracing::debug!(%error, attempt, sequence = said.raw.sequence, "not addressed yet"),
        }
        known = None;
        attempt += 1;
        tokio::time::sleep(backoff_delay(&router.bus.limits, attempt)).await;
    }
}

async fn try_resolve_addressee(
    router: &Router,
    user: &Name,
    said: &PendingMessage,
    known: &mut Option<CurrentAgent>,
) -> Result<(CurrentAgent, Option<Name>), BusError> {
    let sequence = said.raw.sequence;
    let mut current = match known.take() {
        Some(current) => current,
        None => load_current_agent(&router.bus, user, sequence, &router.default_agent).await?,
    };
    let (speaks_with, of_this) = current.agent_at(sequence);
    let Ok(record) = &said.read else { return Ok((current, None)) };
    let wanted = match named_agent(router, record, &speaks_with).await? {
        Some(wanted) if !of_this && wanted != speaks_with => wanted,
        _ => {
            let to = router.addressee(record, &speaks_with);
            return Ok((current, to));
        }
    };
    // Those who read it in an older build would not know what to make of it.
    let may_switch = router.epoch.current() >= SWITCHES && current.is_newest();
    if may_switch && router.directory.exists(&wanted).await? {
        let switched = switched_event(router, record, user, (&speaks_with, &wanted), sequence);
        match router.bus.append(&switched, current.last_switch()).await {
            Ok(written) => {
                current.apply_switch(written.sequence, &switched_body(&switched));
                current.agent_at(sequence);
            }
            // It would never be taken: this message alone is for the other agent.
            Err(error @ (BusError::TooLarge { .. } | BusError::Refused(_))) => {
                tracing::warn!(%error, sequence, "a user does not go on with the agent that was named");
            }
            Err(error) => return Err(error),
        }
    }
    let to = router.addressee(record, &wanted);
    Ok((current, to))
}

/// Finds the agent for a message that is retried after later ones of its user: it does not change the agent the user
/// speaks with.
pub async fn resolve_for_retry(router: &Router, user: &Name, record: &Record) -> Result<Name, BusError> {
    let (speaks_with, _) =
        load_current_agent(&router.bus, user, record.sequence, &router.default_agent).await?.agent_at(record.sequence);
    Ok(named_agent(router, record, &speaks_with).await?.unwrap_or(speaks_with))
}

/// The agent that a message names in its words, if it does.
async fn named_agent(router: &Router, record: &Record, speaks_with: &Name) -> Result<Option<Name>, BusError> {
    Ok(match addressee_of(record) {
        Addressee::Named | Addressee::Current => None,
        Addressee::Mentioned(agent) => Name::parse(agent).ok(),
        Addressee::Command(command) => {
            // An agent may have been defined just before.
            router.commands.catch_up(record.sequence).await?;
            router.commands.lock_commands().agent_of(command, speaks_with).cloned()
        }
    })
}

/// Reads from the log the agent that a user spoke with at the message of this sequence, and later changes.
async fn load_current_agent(
    bus: &Bus,
    user: &Name,
    sequence: u64,
    default_agent: &Name,
) -> Result<CurrentAgent, BusError> {
    let subject = USER_SWITCHED.of_owner(user);
    let mut current = CurrentAgent::new(default_agent.clone());
    let max_body = bus.limits.max_body_bytes;
    let mut take = |raw: &RawMessage| {
        let record = raw.read(max_body).ok()?;
        let switched = UserSwitched::of(&record.body)?;
        current.apply_switch(raw.sequence, switched);
        Some(switched.at)
    };
    let last = match bus.last_at_leader(&subject).await? {
        0 => return Ok(current),
        last => bus.message_at(last).await?.map(RawMessage::without_carried_mark),
    };
    // Where the last change is older than the message, it is all there is to know.
    if let Some(last) = last
        && let Ok(record) = last.read(max_body)
        && UserSwitched::of(&record.body).is_some_and(|switched| switched.at < sequence)
    {
        take(&last);
        return Ok(current);
    }
    bus.read_all_at_leader(&subject, 0, |raw| _ = take(&raw.without_carried_mark())).await?;
    Ok(current)
}

fn switched_event(router: &Router, record: &Record, user: &Name, (from, to): (&Name, &Name), at: u64) -> OutgoingEvent {
    let message_id = UserMessage::of(&record.body).map(|message| message.message_id.clone()).unwrap_or_default();
    let id = ids::derive(record.envelope.id, "user.switched");
    let body = UserSwitched {
        user: user.to_string(),
        agent: to.to_string(),
        from: from.to_string(),
        message_id: ids::message_id(&message_id, record.envelope.id),
        at,
    };
    let envelope = record.envelope.follow_up(id, Service::Router, Origin::System, router.bus.now());
    OutgoingEvent::new(&USER_SWITCHED, user, envelope, body)
}

fn switched_body(outgoing: &OutgoingEvent) -> UserSwitched {
    UserSwitched::of(&outgoing.body).cloned().unwrap_or_default()
}
