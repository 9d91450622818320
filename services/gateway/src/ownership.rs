//! Access of user-limited keys: they may see and give orders about only the events, actions and chains of their user.
//! [`crate::visibility`] decides, and the read model supplies owners that the log read so far does not name.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kairo_core::{event_json::EventJson, sharing::Holder};
use kairo_read_model::{Kind, Owners, Snapshot};
use tokio::{sync::Notify, task::yield_now, time::sleep};
use uuid::Uuid;

use crate::{
    follow::end_of_log,
    http::{at_least, query},
    problem::{FieldError, Problem},
    state::Gateway,
    visibility::{Happened, Known, Remembered, Visibility, began, concerns, is_theirs, to_find_out},
};

/// Pause before the read model is asked again when it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The owners of turns and threads known to one stream, which is limited to a user.
pub struct Own {
    gateway: Gateway,
    user: String,
    known: Mutex<Known>,
    /// Lookups made for live pieces, each with true if its turn was known at the time.
    asked: Mutex<Remembered<(Happened, bool), ()>>,
    /// Notified after each message that [`Own::take_in`] applied.
    learned: Notify,
}

impl Own {
    pub fn new(gateway: &Gateway, user: &str) -> Self {
        let (known, asked, learned) = Default::default();
        Self { gateway: gateway.clone(), user: user.to_owned(), known, asked, learned }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns owners from a message's events. Waits for the read model to supply the others for as long as that takes:
    /// an event left out now would never be shown.
    pub async fn take_in(&self, events: &[EventJson]) {
        self.learn(events).await;
        self.learned.notify_one();
        // Lets the same task show the live pieces that waited for this before it shows the events.
        yield_now().await;
    }

    /// Waits until a message was applied since the last call.
    pub async fn learned(&self) {
        self.learned.notified().await;
    }

    async fn learn(&self, events: &[EventJson]) {
        let missing = {
            let mut known = self.known();
            events.iter().for_each(|event| known.learn(event));
            to_find_out(events.iter(), &self.user, &known)
        };
        let Some(sequence) = events.first().map(|event| event.sequence).filter(|_| !missing.is_empty()) else { return };
        loop {
            match self.find_out(sequence, &missing).await {
                Ok(()) => return,
                Err(problem) => tracing::debug!(problem = problem.detail, "waiting to learn whose something is"),
            }
            sleep(PAUSE).await;
        }
    }

    async fn find_out(&self, sequence: u64, missing: &[Happened]) -> Result<(), Problem> {
        let wait = Duration::from_millis(self.gateway.config.freshness_wait_ms);
        let snapshot = at_least(&self.gateway, &Holder::user(&self.user), sequence, wait).await?;
        let found = query::answered(&self.gateway, find(&snapshot, missing)).await?;
        let mut known = self.known();
        for (at, owners) in missing.iter().zip(found) {
            known.note(at, owners.began.as_deref().and_then(began).map(str::to_owned), owners.of_thread);
        }
        Ok(())
    }

    /// Returns true if the user may see the event, which [`Own::take_in`] must have seen before.
    pub fn shows(&self, event: &EventJson) -> bool {
        concerns(event, &self.user, &self.known()) == Visibility::Theirs
    }

    /// Returns the visibility of a live piece, by the owners known so far.
    pub fn concern(&self, at: &Happened) -> Visibility {
        self.known().concern(at, &self.user)
    }

    /// Returns those turns and threads whose visibility is unknown and which are due for a lookup in the read model:
    /// each is looked up once, and once more when its turn is known.
    pub fn unasked(&self, places: HashSet<Happened>) -> Vec<Happened> {
        let known = self.known();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let unasked = places.into_iter().filter(|at| known.concern(at, &self.user) == Visibility::Unknown);
        unasked.filter(|at| asked.is_new((at.clone(), known.knows_turn(at)))).collect()
    }

    /// Looks up these owners in the read model without waiting for it to catch up; the log supplies the missing ones.
    pub async fn ask(&self, places: &[Happened]) {
        let model = self.gateway.read_model.for_holder(Holder::user(&self.user));
        let asked = async { find(&model.snapshot().await?, places).await };
        let found = query::at_once(&self.gateway, asked).await.unwrap_or_default();
        let mut known = self.known();
        for (at, owners) in places.iter().zip(found) {
            // An owner that is missing now may appear soon.
            known.note_found(at, owners.began.map(|event| began(&event).map(str::to_owned)), owners.of_thread);
        }
    }
}

async fn find(snapshot: &Snapshot, places: &[Happened]) -> Result<Vec<Owners>, kairo_read_model::ReadError> {
    let places: Vec<_> = places
        .iter()
        .map(|at| {
            let (agent, thread) = at.thread.clone().unzip();
            (Some(at.turn), agent.unwrap_or_default(), thread)
        })
        .collect();
    snapshot.owners_where(&places).await
}

fn is_owned_by(owners: &Owners, user: &str) -> bool {
    is_theirs(user, owners.named.as_deref(), owners.began.as_deref().and_then(began), owners.of_thread.as_deref())
}

/// Returns the events that concern the user, or all of them if the key is not limited to a user.
pub async fn events(
    gateway: &Gateway,
    snapshot: &Snapshot,
    user: Option<&str>,
    mut events: Vec<EventJson>,
) -> Result<Vec<EventJson>, Problem> {
    let Some(user) = user else { return Ok(events) };
    let mut known = Known::default();
    let missing = to_find_out(events.iter(), user, &known);
    let found = query::answered(gateway, find(snapshot, &missing)).await?;
    for (at, owners) in missing.iter().zip(found) {
        known.note(at, owners.began.as_deref().and_then(began).map(str::to_owned), owners.of_thread);
    }
    events.retain(|event| concerns(event, user, &known) == Visibility::Theirs);
    Ok(events)
}

/// Returns the things that belong to the user, or all of them if the key is not limited to a user.
pub async fn things<T>(
    gateway: &Gateway,
    snapshot: &Snapshot,
    user: Option<&str>,
    kind: Kind,
    mut things: Vec<T>,
    id: impl Fn(&T) -> &str,
) -> Result<Vec<T>, Problem> {
    let Some(user) = user else { return Ok(things) };
    let ids: Vec<Uuid> = things.iter().filter_map(|thing| id(thing).parse().ok()).collect();
    let owners = query::answered(gateway, snapshot.owners(kind, &ids)).await?;
    let theirs = owners.iter().filter(|owners| is_owned_by(owners, user));
    let theirs: HashSet<String> = theirs.map(|owners| owners.id.to_string()).collect();
    things.retain(|thing| theirs.contains(id(thing)));
    Ok(things)
}

/// Returns the thing if it belongs to the user, or in any case if the key is not limited to a user.
pub async fn thing<T>(
    gateway: &Gateway,
    snapshot: &Snapshot,
    user: Option<&str>,
    kind: Kind,
    thing: Option<T>,
    id: Uuid,
) -> Result<Option<T>, Problem> {
    let thing = thing.map(|thing| (id.to_string(), thing));
    let theirs = things(gateway, snapshot, user, kind, thing.into_iter().collect(), |(id, _)| id).await?.pop();
    Ok(theirs.map(|(_, thing)| thing))
}

/// The subject of an order, a verdict or a choice, with the request field that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    Thing(&'static str, Kind, Uuid),
    Thread(&'static str, String),
    Team(&'static str, String),
}

/// Returns a snapshot of the read model that includes everything in the log now.
async fn up_to_now(gateway: &Gateway, user: &str) -> Result<Snapshot, Problem> {
    let newest = end_of_log(&gateway.bus).await?;
    at_least(gateway, &Holder::user(user), newest, Duration::from_millis(gateway.config.freshness_wait_ms)).await
}

/// Returns an error if the subject does not belong to the user. The error is the same whether it belongs to somebody
/// else or does not exist, so that its id reveals nothing.
pub async fn hold(gateway: &Gateway, user: &str, agent: &str, about: &About) -> Result<(), Problem> {
    let snapshot = up_to_now(gateway, user).await?;
    let (field, found, theirs) = match about {
        About::Thread(field, thread) => {
            let owner = query::answered(gateway, snapshot.owner_of_thread(agent, thread)).await?;
            (*field, thread.clone(), owner.as_deref() == Some(user))
        }
        About::Team(field, team) => {
            let lead = query::answered(gateway, snapshot.agent(team)).await?;
            let profile = lead.and_then(|lead| lead.profile).filter(|profile| profile.team.is_some());
            (*field, team.clone(), team == agent && profile.is_some_and(|profile| profile.owner == user))
        }
        About::Thing(field, kind, id) => {
            let mut owners = query::answered(gateway, snapshot.owners(*kind, &[*id])).await?;
            // An action that waits for consent may be either kind, and one in doubt is judged like a consent.
            let other = match kind {
                Kind::Approval => Some(Kind::Action),
                Kind::Action => Some(Kind::Approval),
                Kind::Process | Kind::Chain | Kind::Task | Kind::Offer => None,
            };
            if let Some(other) = other.filter(|_| owners.is_empty()) {
                owners = query::answered(gateway, snapshot.owners(other, &[*id])).await?;
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
    Err(Problem { errors, ..problem.at(snapshot.position()) })
}

/// Returns an error if the agent asked a different user, whose answer alone it accepts. If the read model cannot say
/// who was asked, the agent itself has to refuse the answer.
pub async fn hold_to_asked(gateway: &Gateway, user: &str, agent: &str, kind: Kind, id: Uuid) -> Result<(), Problem> {
    let asked = async {
        let snapshot = up_to_now(gateway, user).await?;
        query::answered(gateway, snapshot.owners(kind, &[id])).await
    };
    let Ok(owners) = asked.await else { return Ok(()) };
    let of_agent = owners.into_iter().filter(|owners| owners.agent == agent);
    let Some(asked) = of_agent.filter_map(|owners| owners.named).find(|asked| asked != user) else { return Ok(()) };
    let expected = format!("{asked}, who was asked");
    let errors = vec![FieldError { field: "user".to_owned(), expected, found: Some(user.to_owned()) }];
    let detail = format!("{asked} was asked, not {user}: only they can answer");
    Err(Problem { errors, ..Problem::forbidden(detail) })
}
