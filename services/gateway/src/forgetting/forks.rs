//! Forks that hold words of somebody who is to be forgotten end at once. Every gateway looks after its own: they are in its memory, in
//! the clear, where no data key is asked for any more.

use kairo_core::{bus::BusError, ids::Name};
use kairo_proto::words::ForgettingStep;

use super::for_each_order;
use crate::state::Gateway;

/// Looks at every order, whenever it gets further, until the gateway stops.
pub async fn run(gateway: Gateway) {
    let all = for_each_order(&gateway.bus, async |user| match end_forks(&gateway, &user).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%user, %error, "it is not known yet whether forks are to end since a user is to be forgotten");
            false
        }
    });
    gateway.shutdown.run_until_cancelled(all).await;
}

/// Ends them by the last order to forget this user.
async fn end_forks(gateway: &Gateway, user: &Name) -> Result<(), BusError> {
    if let Some(kept) = gateway.orders.last_order(user).await? {
        let is_done = kept.order.step() == ForgettingStep::Done;
        gateway.forks.end_for_user(user, kept.order.given_at(), is_done);
    }
    Ok(())
}
