//! Forgetting users: orders, and carrying them out.
//!
//! An order is stored beside the data keys until it is carried out, with its progress and the gateway that works on it
//! ([`orders`]); writing it to the log is its first step. Only gateways give orders: one without a gateway's signature
//! is not carried out. Every step is idempotent, and a gateway that takes over an order repeats its current step, so
//! that an order completes whatever fails ([`order_execution`]). Forks that hold the user's words end as soon as an order
//! exists ([`forks`]).

pub mod forks;
pub mod order_execution;
mod orders;

use std::{collections::BTreeSet, time::Duration};

use futures::StreamExt;
use kairo_core::{
    bus::Bus,
    forget_order::ForgetOrder,
    ids::{self, Name},
    subjects::DATA_KEYS_BUCKET,
};
use tokio::time::sleep;
use uuid::Uuid;

pub use self::orders::{OrderEntry, OrderStore, read_completion};

/// Pause before an order that failed is tried again.
const PAUSE: Duration = Duration::from_secs(2);

/// Returns the id of the message that tells an agent of an order, the same for every sender.
fn agent_notice_id(order: Uuid, agent: &Name) -> Uuid {
    ids::derive(order, agent.as_str())
}

/// Calls `look` for each user with an order, now and on every change, and again after a pause while it returns false.
async fn for_each_order<F: Future<Output = bool>>(bus: &Bus, look: impl Fn(Name) -> F) {
    loop {
        let Ok(users) = watch_orders(bus).await else {
            sleep(PAUSE).await;
            continue;
        };
        let mut users = std::pin::pin!(users);
        // Users for whom `look` returned false.
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

/// Streams the users with an order: all of them now, and each whose order changes.
async fn watch_orders(bus: &Bus) -> Result<impl futures::Stream<Item = Name> + use<>, async_nats::Error> {
    let bucket = bus.nats()?.jetstream.get_key_value(DATA_KEYS_BUCKET).await?;
    let watch = bucket.watch_with_history("order.*").await?;
    let user = |entry: async_nats::jetstream::kv::Entry| Name::parse(entry.key.strip_prefix("order.")?).ok();
    Ok(watch.filter_map(move |entry| std::future::ready(entry.ok().and_then(user))))
}
