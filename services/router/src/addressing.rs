//! Finding out whom a message is for that names no agent beside its words: what a user says so far, in its order.
//!
//! Each user has one such message on its way at a time, and whatever that user says meanwhile stands behind it: only then is
//! it clear in which line it goes on.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_core::{
    address::{self, Whom},
    bus::{Bus, BusError, append::Outgoing, consume::backoff},
    envelope::Origin,
    ids::{self, Name},
    ownership::lease::Lease,
    record::{Raw, Record},
    subjects::{Service, USER_SWITCHED},
    vocabulary::SWITCHES,
};
use kairo_proto::v1::{UserMessage, UserSwitched};

use crate::{current::Current, lines::Said, routing::Router};

/// Messages whose agent is not known yet at which no more are read.
const MOST: usize = 1_000;

/// The messages of a partition that wait to be addressed, and the agent each user speaks with.
#[derive(Default)]
pub struct Unaddressed {
    waiting: BTreeMap<Name, VecDeque<Arc<Said>>>,
    /// Sequences of all that waits.
    sequences: BTreeSet<u64>,
    current: BTreeMap<Name, Current>,
    /// Users that are remembered at most.
    capacity: usize,
}

impl Unaddressed {
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
    pub fn first(&self) -> Option<u64> {
        self.sequences.first().copied()
    }

    /// Returns true if the user's next message has to wait behind earlier ones.
    pub fn is_waiting(&self, user: &Name) -> bool {
        self.waiting.contains_key(user)
    }

    /// Returns the agent that the user speaks with at the message of this sequence, if cached.
    pub fn current(&mut self, user: &Name, sequence: u64) -> Option<Name> {
        Some(self.current.get_mut(user)?.at(sequence).0)
    }

    /// Queues a message behind the user's earlier ones. Returns the message to address now, if any, with the agent that
    /// the user spoke with so far.
    pub fn push(&mut self, user: &Name, said: Said) -> Option<(Arc<Said>, Option<Current>)> {
        self.sequences.insert(said.raw.sequence);
        let waits = self.waiting.entry(user.clone()).or_default();
        let said = Arc::new(said);
        waits.push_back(said.clone());
        (waits.len() == 1).then(|| (said, self.current.remove(user)))
    }

    /// The first message of a user was addressed. It, and the one behind it.
    pub fn pop(&mut self, user: &Name) -> (Option<Arc<Said>>, Option<Arc<Said>>) {
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
    pub fn remember(&mut self, user: Name, current: Current) {
        if self.current.len() >= self.capacity {
            self.current.clear();
        }
        self.current.insert(user, current);
    }

    /// Forgets all: it is somebody else's.
    pub fn cut(&mut self) {
        self.waiting.clear();
    }
}

/// Returns the addressee of a user's message, as far as the message names one.
pub fn whom(record: &Record) -> Whom<'_> {
    UserMessage::of(&record.body).map_or(Whom::Named, |message| address::whom(&message.agent, &message.text))
}

/// Finds the agent that a message is for, and the one its user speaks with from there on. Retries until it succeeds.
pub async fn address(
    router: &Router,
    lease: &Lease,
    user: &Name,
    said: &Said,
    mut known: Option<Current>,
) -> (Current, Option<Name>) {
    let mut attempt = 0;
    loop {
        lease.young().await;
        match try_address(router, user, said, &mut known).await {
            Ok((current, to)) => return (current, to),
            Err(error) => tracing::debug!(%error, attempt, sequence = said.raw.sequence, "not addressed yet"),
        }
        known = None;
        attempt += 1;
        tokio::time::sleep(backoff(&router.bus.limits, attempt)).await;
    }
}

async fn try_address(
    router: &Router,
    user: &Name,
    said: &Said,
    known: &mut Option<Current>,
) -> Result<(Current, Option<Name>), BusError> {
    let sequence = said.raw.sequence;
    let mut current = match known.take() {
        Some(current) => current,
        None => load(&router.bus, user, sequence, &router.default_agent).await?,
    };
    let (speaks_with, of_this) = current.at(sequence);
    let Ok(record) = &said.read else { return Ok((current, None)) };
    let wanted = match wanted(router, record, &speaks_with).await? {
        Some(wanted) if !of_this && wanted != speaks_with => wanted,
        _ => {
            let to = router.address(record, &speaks_with);
            return Ok((current, to));
        }
    };
    // Those who read it in an older build would not know what to make of it.
    let may_switch = router.epoch.current() >= SWITCHES && current.is_newest();
    if may_switch && router.directory.exists(&wanted).await? {
        let switched = switched(router, record, user, (&speaks_with, &wanted), sequence);
        match router.bus.append(&switched, current.last()).await {
            Ok(written) => {
                current.take(written.sequence, &of(&switched));
                current.at(sequence);
            }
            // It would never be taken: this message alone is for the other agent.
            Err(error @ (BusError::TooLarge { .. } | BusError::Refused(_))) => {
                tracing::warn!(%error, sequence, "a user does not go on with the agent that was named");
            }
            Err(error) => return Err(error),
        }
    }
    let to = router.address(record, &wanted);
    Ok((current, to))
}

/// Finds the agent for a message that is retried after later ones of its user: it does not change the agent the user
/// speaks with.
pub async fn address_again(router: &Router, user: &Name, record: &Record) -> Result<Name, BusError> {
    let (speaks_with, _) = load(&router.bus, user, record.sequence, &router.default_agent).await?.at(record.sequence);
    Ok(wanted(router, record, &speaks_with).await?.unwrap_or(speaks_with))
}

/// The agent that a message names in its words, if it does.
async fn wanted(router: &Router, record: &Record, speaks_with: &Name) -> Result<Option<Name>, BusError> {
    Ok(match whom(record) {
        Whom::Named | Whom::Current => None,
        Whom::Mentioned(agent) => Name::parse(agent).ok(),
        Whom::Command(command) => {
            // An agent may have been defined just before.
            router.commands.caught_up(record.sequence).await?;
            router.commands.known().agent_of(command, speaks_with).cloned()
        }
    })
}

/// Reads from the log the agent that a user spoke with at the message of this sequence, and later changes.
async fn load(bus: &Bus, user: &Name, sequence: u64, default_agent: &Name) -> Result<Current, BusError> {
    let subject = USER_SWITCHED.of(user);
    let mut current = Current::new(default_agent.clone());
    let max_body = bus.limits.max_body_bytes;
    let mut take = |raw: &Raw| {
        let record = raw.read(max_body).ok()?;
        let switched = UserSwitched::of(&record.body)?;
        current.take(raw.sequence, switched);
        Some(switched.at)
    };
    let last = match bus.last_at_leader(&subject).await? {
        0 => return Ok(current),
        last => bus.message_at(last).await?.map(Raw::standing),
    };
    // Where the last change is older than the message, it is all there is to know.
    if let Some(last) = last
        && let Ok(record) = last.read(max_body)
        && UserSwitched::of(&record.body).is_some_and(|switched| switched.at < sequence)
    {
        take(&last);
        return Ok(current);
    }
    bus.read_all_at_leader(&subject, 0, |raw| _ = take(&raw.standing())).await?;
    Ok(current)
}

fn switched(router: &Router, record: &Record, user: &Name, (from, to): (&Name, &Name), at: u64) -> Outgoing {
    let message_id = UserMessage::of(&record.body).map(|message| message.message_id.clone()).unwrap_or_default();
    let id = ids::derived(record.envelope.id, "user.switched");
    let body = UserSwitched {
        user: user.to_string(),
        agent: to.to_string(),
        from: from.to_string(),
        message_id: ids::message_id(&message_id, record.envelope.id),
        at,
    };
    let envelope = record.envelope.follow(id, Service::Router, Origin::System, router.bus.now());
    Outgoing::new(&USER_SWITCHED, user, envelope, body)
}

fn of(outgoing: &Outgoing) -> UserSwitched {
    UserSwitched::of(&outgoing.body).cloned().unwrap_or_default()
}
