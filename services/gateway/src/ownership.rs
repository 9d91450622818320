//! Access of user-limited keys: they may see and give orders about only the events, actions and chains of their user.
//! [`crate::visibility`] decides, and the read model supplies owners that the log read so far does not name.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kairo_core::{event_json::EventJson, sharing::QuotaHolder};
use kairo_read_model::{OwnedKind, OwnerCandidates, ReadSnapshot};
use tokio::{sync::Notify, task::yield_now, time::sleep};
use uuid::Uuid;

use crate::{
    http::{query, snapshot_at_least},
    log_follower::end_of_log,
    problem::{FieldError, Problem},
    state::Gateway,
    visibility::{
        EventOrigin, GenerationalMap, KnownOwners, Visibility, belongs_to_user, event_visibility, turn_user,
        unknown_origins,
    },
};

/// Pause before the read model is asked again when it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The owners of turns and threads known to one stream, which is limited to a user.
pub struct StreamOwners {
    gateway: Gateway,
    user: String,
    known: Mutex<KnownOwners>,
    /// Lookups made for live pieces, each with true if its turn was known at the time.
    asked: Mutex<GenerationalMap<(EventOrigin, bool), ()>>,
    /// Notified after each message that [`StreamOwners::apply_events`] applied.
    learned: Notify,
}

impl StreamOwners {
    pub fn new(gateway: &Gateway, user: &str) -> Self {
        let (known, asked, learned) = Default::default();
        Self { gateway: gateway.clone(), user: user.to_owned(), known, asked, learned }
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownOwners> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns owners from a message's events. Waits for the read model to supply the others for as long as that takes:
    /// an event left out now would never be shown.
    pub async fn apply_events(&self, events: &[EventJson]) {
        self.learn_owners(events).await;
        self.learned.notify_one();
        // Lets the same task show the live pieces that waited for this before it shows the events.
        yield_now().await;
    }

    /// Waits until a message was applied since the last call.
    pub async fn wait_for_update(&self) {
        self.learned.notified().await;
    }

    async fn learn_owners(&self, events: &[EventJson]) {
        let missing = {
            let mut known = self.lock_known();
            events.iter().for_each(|event| known.learn_from(event));
            unknown_origins(events.iter(), &self.user, &known)
        };
        let Some(sequence) = events.first().map(|event| event.sequence).filter(|_| !missing.is_empty()) else { return };
        loop {
            match self.look_up_owners(sequence, &missing).await {
                Ok(()) => return,
                Err(problem) => tracing::debug!(problem = problem.detail, "waiting to learn whose something is"),
            }
            sleep(PAUSE).await;
        }
    }

    async fn look_up_owners(&self, sequence: u64, missing: &[EventOrigin]) -> Result<(), Problem> {
        let wait = Duration::from_millis(self.gateway.config.freshness_wait_ms);
        let snapshot = snapshot_at_least(&self.gateway, &QuotaHolder::for_user(&self.user), sequence, wait).await?;
        let found = query::await_answer(&self.gateway, fetch_owners(&snapshot, missing)).await?;
        let mut known = self.lock_known();
        for (at, owners) in missing.iter().zip(found) {
            known.record_lookup(at, owners.began.as_deref().and_then(turn_user).map(str::to_owned), owners.of_thread);
        }
        Ok(())
    }

    /// Returns true if the user may see the event, which [`StreamOwners::apply_events`] must have seen before.
    pub fn is_visible(&self, event: &EventJson) -> bool {
        event_visibility(event, &self.user, &self.lock_known()) == Visibility::Theirs
    }

    /// Returns the visibility of a live piece, by the owners known so far.
    pub fn visibility_of(&self, at: &EventOrigin) -> Visibility {
        self.lock_known().visibility_of(at, &self.user)
    }

    /// Returns those turns and threads whose visibility is unknown and which are due for a lookup in the read model:
    /// each is looked up once, and once more when its turn is known.
    pub fn due_lookups(&self, places: HashSet<EventOrigin>) -> Vec<EventOrigin> {
        let known = self.lock_known();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let unasked = places.into_iter().filter(|at| known.visibility_of(at, &self.user) == Visibility::Unknown);
        unasked.filter(|at| asked.insert_new((at.clone(), known.knows_turn(at)))).collect()
    }

    /// Looks up these owners in the read model without waiting for it to catch up; the log supplies the missing ones.
    pub async fn look_up_without_waiting(&self, places: &[EventOrigin]) {
        let model = self.gateway.read_model.for_holder(QuotaHolder::for_user(&self.user));
        let asked = async { fetch_owners(&model.snapshot().await?, places).await };
        let found = query::lookup_or_none(&self.gateway, asked).await.unwrap_or_default();
        let mut known = self.lock_known();
        for (at, owners) in places.iter().zip(found) {
            // An owner that is missing now may appear soon.
            known.record_partial_lookup(
                at,
                owners.began.map(|event| turn_user(&event).map(str::to_owned)),
                owners.of_thread,
            );
        }
    }
}

async fn fetch_owners(
    snapshot: &ReadSnapshot,
    places: &[EventOrigin],
) -> Result<Vec<OwnerCandidates>, kairo_read_model::ReadError> {
    let places: Vec<_> = places
        .iter()
        .map(|at| {
            let (agent, thread) = at.thread.clone().unzip();
            (Some(at.turn), agent.unwrap_or_default(), thread)
        })
        .collect();
    snapshot.owners_of_turns(&places).await
}

fn is_owned_by(owners: &OwnerCandidates, user: &str) -> bool {
    belongs_to_user(
        user,
        owners.named.as_deref(),
        owners.began.as_deref().and_then(turn_user),
        owners.of_thread.as_deref(),
    )
}

/// Returns the events that concern the user, or all of them if the key is not limited to a user.
pub async fn filter_events(
    gateway: &Gateway,
    snapshot: &ReadSnapshot,
    user: Option<&str>,
    mut events: Vec<EventJson>,
) -> Result<Vec<EventJson>, Problem> {
    let Some(user) = user else { return Ok(events) };
    let mut known = KnownOwners::default();
    let missing = unknown_origins(events.iter(), user, &known);
    let found = query::await_answer(gateway, fetch_owners(snapshot, &missing)).await?;
    for (at, owners) in missing.iter().zip(found) {
        known.record_lookup(at, owners.began.as_deref().and_then(turn_user).map(str::to_owned), owners.of_thread);
    }
    events.retain(|event| event_visibility(event, user, &known) == Visibility::Theirs);
    Ok(events)
}

/// Returns the things that belong to the user, or all of them if the key is not limited to a user.
pub async fn filter_owned<T>(
    gateway: &Gateway,
    snapshot: &ReadSnapshot,
    user: Option<&str>,
    kind: OwnedKind,
    mut things: Vec<T>,
    id: impl Fn(&T) -> &str,
) -> Result<Vec<T>, Problem> {
    let Some(user) = user else { return Ok(things) };
    let ids: Vec<Uuid> = things.iter().filter_map(|thing| id(thing).parse().ok()).collect();
    let owners = query::await_answer(gateway, snapshot.find_owners(kind, &ids)).await?;
    let theirs = owners.iter().filter(|owners| is_owned_by(owners, user));
    let theirs: HashSet<String> = theirs.map(|owners| owners.id.to_string()).collect();
    things.retain(|thing| theirs.contains(id(thing)));
    Ok(things)
}

/// Returns the thing if it belongs to the user, or in any case if the key is not limited to a user.
pub async fn keep_if_owned<T>(
    gateway: &Gateway,
    snapshot: &ReadSnapshot,
    user: Option<&str>,
    kind: OwnedKind,
    thing: Option<T>,
    id: Uuid,
) -> Result<Option<T>, Problem> {
    let thing = thing.map(|thing| (id.to_string(), thing));
    let theirs = filter_owned(gateway, snapshot, user, kind, thing.into_iter().collect(), |(id, _)| id).await?.pop();
    Ok(theirs.map(|(_, thing)| thing))
}

/// The subject of an order, a verdict or a choice, with the request field that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderSubject {
    Thing(&'static str, OwnedKind, Uuid),
    Thread(&'static str, String),
    Team(&'static str, String),
}

/// Returns a snapshot of the read model that includes everything in the log now.
pub async fn current_snapshot(gateway: &Gateway, user: &str) -> Result<ReadSnapshot, Problem> {
    let newest = end_of_log(&gateway.bus).await?;
    snapshot_at_least(
        gateway,
        &QuotaHolder::for_user(user),
        newest,
        Duration::from_millis(gateway.config.freshness_wait_ms),
    )
    .await
}

/// Returns an error if the subject does not belong to the user. The error is the same whether it belongs to somebody
/// else or does not exist, so that its id reveals nothing.
pub async fn require_ownership(
    gateway: &Gateway,
    user: &str,
    agent: &str,
    about: &OrderSubject,
) -> Result<(), Problem> {
    let snapshot = current_snapshot(gateway, user).await?;
    let (field, found, theirs) = match about {
        OrderSubject::Thread(field, thread) => {
            let owner = query::await_answer(gateway, snapshot.owner_of_thread(agent, thread)).await?;
            (*field, thread.clone(), owner.as_deref() == Some(user))
        }
        OrderSubject::Team(field, team) => {
            let lead = query::await_answer(gateway, snapshot.find_agent(team)).await?;
            let profile = lead.and_then(|lead| lead.profile).filter(|profile| profile.team.is_some());
            (*field, team.clone(), team == agent && profile.is_some_and(|profile| profile.owner == user))
        }
        OrderSubject::Thing(field, kind, id) => {
            let mut owners = query::await_answer(gateway, snapshot.find_owners(*kind, &[*id])).await?;
            // An action that waits for consent may be either kind, and one in doubt is judged like a consent.
            let other = match kind {
                OwnedKind::Approval => Some(OwnedKind::Action),
                OwnedKind::Action => Some(OwnedKind::Approval),
                OwnedKind::Process | OwnedKind::Chain | OwnedKind::Task | OwnedKind::Offer => None,
            };
            if let Some(other) = other.filter(|_| owners.is_empty()) {
                owners = query::await_answer(gateway, snapshot.find_owners(other, &[*id])).await?;
            }
            let theirs = owners.iter().any(|owners| owners.agent == agent && is_owned_by(owners, user));
            (*field, id.to_string(), theirs)
        }
    };
    if theirs {
        return Ok(());
    }
    let expected = format!("something of {user}, to whom the key is limited, with the agent {agent}");
    let errors = vec![FieldError { field: field.to_owned(), expected, found: Some(found) }];
    let problem = Problem::not_found(format!("{user} has nothing of this {field}"));
    Err(Problem { errors, ..problem.with_position(snapshot.position()) })
}

/// Returns an error if the agent asked a different user, whose answer alone it accepts. If the read model cannot say
/// who was asked, the agent itself has to refuse the answer.
pub async fn require_asked_user(
    gateway: &Gateway,
    user: &str,
    agent: &str,
    kind: OwnedKind,
    id: Uuid,
) -> Result<(), Problem> {
    let asked = async {
        let snapshot = current_snapshot(gateway, user).await?;
        query::await_answer(gateway, snapshot.find_owners(kind, &[id])).await
    };
    let Ok(owners) = asked.await else { return Ok(()) };
    let of_agent = owners.into_iter().filter(|owners| owners.agent == agent);
    let Some(asked) = of_agent.filter_map(|owners| owners.named).find(|asked| asked != user) else { return Ok(()) };
    let expected = format!("{asked}, who was asked");
    let errors = vec![FieldError { field: "user".to_owned(), expected, found: Some(user.to_owned()) }];
    let detail = format!("{asked} was asked, not {user}: only they can answer");
    Err(Problem { errors, ..Problem::forbidden(detail) })
}
