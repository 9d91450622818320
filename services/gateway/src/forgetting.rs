//! Forgetting users: orders, and carrying them out.
//!
//! An order stands in the log, and beside the data keys as long as it is not carried out: with how far it is, and which gateway
//! is at it ([`orders`]). It is kept there first, and written into the log as its first step. Gateways alone give orders: one that none of
//! them has signed is not carried out. Every step may be done twice, and whoever goes on with an order does the step again at which it
//! stands, so it ends whatever dies ([`carrying_out`]). Forks that hold the user's words end as soon as there is an order ([`forks`]).

pub mod carrying_out;
pub mod forks;
mod orders;

use std::{collections::BTreeSet, time::Duration};

use futures::StreamExt;
use kairo_core::{
    bus::Bus,
    forgetting::Order,
    ids::{self, Name},
    subjects::DATA_KEYS_BUCKET,
};
use tokio::time::sleep;
use uuid::Uuid;

pub use self::orders::{OrderEntry, Orders, read_completion};

/// Pause before an order is looked at again, or gone on with, that could not be.
const PAUSE: Duration = Duration::from_secs(2);

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
