//! Forgetting users: orders, and carrying them out.
//!
//! An order stands in the log, and beside the data keys as long as it is not carried out: with how far it is, and which gateway
//! is at it. It is kept there first, and written into the log as its first step. Every step may be done twice, and whoever goes on
//! with an order does the step again at which it stands, so it ends whatever dies ([`carrying_out`]). Forks that hold the user's words
//! end as soon as there is an order ([`forks`]).

pub mod carrying_out;
pub mod forks;

use std::{collections::BTreeSet, time::Duration};

use futures::StreamExt;
use kairo_core::{
    bus::{Bus, BusError, append::Outgoing, data_keys::order_key},
    envelope::{Envelope, Origin},
    forgetting::Order,
    ids::{self, Name},
    principal::Principal,
    subjects::{DATA_KEYS_BUCKET, Service, USER_FORGET, USER_FORGOTTEN},
};
use kairo_proto::{
    v1::{UserForget, UserForgotten},
    words::ForgettingStep,
};
use tokio::time::sleep;
use uuid::Uuid;

/// Pause before an order is looked at again, or gone on with, that could not be.
const PAUSE: Duration = Duration::from_secs(2);

/// An order, and the revision under which it is written next.
#[derive(Clone, Debug)]
pub struct Kept {
    pub order: Order,
    pub revision: u64,
}

/// The order to forget a user, if there is one that is not carried out.
pub async fn order_of(bus: &Bus, user: &Name) -> Result<Option<Kept>, BusError> {
    let kept = last_of(bus, user).await?;
    Ok(kept.filter(|kept| kept.order.step() != ForgettingStep::Done))
}

/// The last order to forget a user, carried out or not.
///
/// # Errors
/// Also where it cannot be read: a user is not to be told that nobody asked for it, nor asked for again in vain.
async fn last_of(bus: &Bus, user: &Name) -> Result<Option<Kept>, BusError> {
    let key = order_key(user);
    let Some(entry) = bus.value(DATA_KEYS_BUCKET, &key).await? else { return Ok(None) };
    let order = serde_json::from_slice(&entry.value).map_err(|error| {
        let whose = format!("the order to forget {user}, {key} in {DATA_KEYS_BUCKET}, cannot be read ({error})");
        BusError::Refused(format!("{whose}: purge that key and give the order again"))
    })?;
    Ok(Some(Kept { order, revision: entry.revision }))
}

/// What is told of the last order to forget a user that was carried out, if there was one.
pub async fn done(bus: &Bus, user: &Name) -> Result<Option<UserForgotten>, BusError> {
    let last = bus.last(&USER_FORGOTTEN.of(user)).await?;
    let record = last.and_then(|raw| raw.read(bus.limits.max_body_bytes).ok());
    Ok(record.and_then(|record| UserForgotten::try_from(record.body).ok()))
}

/// Gives the order to forget a user, unless there is one.
pub async fn give(bus: &Bus, user: &Name, by: Principal) -> Result<Order, BusError> {
    let last = last_of(bus, user).await?;
    let before = last.as_ref().map_or(0, |last| last.revision);
    if let Some(last) = last.filter(|last| last.order.step() != ForgettingStep::Done) {
        return Ok(last.order);
    }
    let order = Order { by_whom: Some(by), ..Order::new(bus.new_id(), user.clone()) };
    match bus.update_value(DATA_KEYS_BUCKET, &order_key(user), written_as(&order)?, before).await {
        Ok(_) => Ok(order),
        // Another one was faster.
        Err(BusError::Conflict { .. }) => Ok(last_of(bus, user).await?.map_or(order, |last| last.order)),
        Err(error) => Err(error),
    }
}

/// Writes an order into the log, unless it stands there: a restore may have taken it from there.
async fn write(bus: &Bus, order: &Order) -> Result<(), BusError> {
    let Order { order_id, user, by_whom, .. } = order;
    let last = bus.last(&USER_FORGET.of(user)).await?;
    if last.and_then(|raw| raw.ids()).is_some_and(|(id, _)| id == *order_id) {
        return Ok(());
    }
    let origin = if by_whom.is_some() { Origin::User } else { Origin::System };
    let envelope = Envelope::entering(*order_id, Service::Gateway, origin, bus.now());
    let envelope = Envelope { entered_by: by_whom.clone(), ..envelope };
    let body = UserForget { order_id: order_id.to_string(), user: user.to_string() };
    bus.publish(&Outgoing::new(&USER_FORGET, user, envelope, body)).await?;
    Ok(())
}

/// Keeps how far an order is.
async fn keep(bus: &Bus, kept: &mut Kept) -> Result<(), BusError> {
    let value = written_as(&kept.order)?;
    kept.revision = bus.update_value(DATA_KEYS_BUCKET, &order_key(&kept.order.user), value, kept.revision).await?;
    Ok(())
}

fn written_as(order: &Order) -> Result<bytes::Bytes, BusError> {
    let json = serde_json::to_vec(order);
    json.map(Into::into).map_err(|error| BusError::Refused(format!("an order cannot be kept: {error}")))
}

/// The id of what tells an agent, the same whoever tells it.
fn told_id(order: Uuid, agent: &Name) -> Uuid {
    ids::derived(order, agent.as_str())
}

/// Has it looked at the order of each user, now and whenever one changes; after a pause again, where that says that it has to.
async fn at_each<F: Future<Output = bool>>(bus: &Bus, look: impl Fn(Name) -> F) {
    loop {
        let Ok(users) = changes(bus).await else {
            sleep(PAUSE).await;
            continue;
        };
        let mut users = std::pin::pin!(users);
        // Those at whose order it has to be looked again.
        let mut left: BTreeSet<Name> = BTreeSet::new();
        loop {
            let user = tokio::select! {
                biased;
                user = users.next() => match user {
                    Some(user) => user,
                    None => break,
                },
                () = sleep(PAUSE), if !left.is_empty() => match left.pop_first() {
                    Some(user) => user,
                    None => continue,
                },
            };
            match look(user.clone()).await {
                true => _ = left.remove(&user),
                false => _ = left.insert(user),
            }
        }
    }
}

/// Users of whom there is an order, now and whenever one changes.
async fn changes(bus: &Bus) -> Result<impl futures::Stream<Item = Name> + use<>, async_nats::Error> {
    let bucket = bus.nats()?.jetstream.get_key_value(DATA_KEYS_BUCKET).await?;
    let watch = bucket.watch_with_history("order.*").await?;
    let user = |entry: async_nats::jetstream::kv::Entry| Name::parse(entry.key.strip_prefix("order.")?).ok();
    Ok(watch.filter_map(move |entry| std::future::ready(entry.ok().and_then(user))))
}
