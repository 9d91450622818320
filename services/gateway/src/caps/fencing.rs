//! The cap of the installation, looked at from time to time: while it is reached, agents ask no models, whatever set them going.

use std::time::Duration;

use jiff::Timestamp;
use kairo_core::bus::{congestion::LIFETIME, fence};
use tokio::time::MissedTickBehavior;

use super::CapHolder;
use crate::state::Gateway;

/// Interval at which the cap is checked and announced: several times within the lifetime of an announcement.
const EVERY: Duration = Duration::from_secs(LIFETIME.as_secs() / 6);

/// Looks until the gateway stops, where the installation has a cap.
pub async fn run(gateway: Gateway) {
    let caps = gateway.config.caps.installation.clone();
    if caps.is_unlimited() {
        return;
    }
    let mut looks = tokio::time::interval(EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_reached = false;
    while gateway.shutdown.run_until_cancelled(looks.tick()).await.is_some() {
        let now = Timestamp::now();
        let reached = match gateway.spending.spending_of(&gateway, &CapHolder::Installation, &caps, now).await {
            Ok(spent) => caps.first_reached(&CapHolder::Installation, &spent, now),
            Err(problem) => {
                tracing::warn!(problem.detail, "what the installation has spent is not known");
                continue;
            }
        };
        match (&reached, is_reached) {
            (Some(reached), _) => fence::announce(&gateway.bus, Some(&reached.text)).await,
            (None, true) => fence::announce(&gateway.bus, None).await,
            (None, false) => {}
        }
        is_reached = reached.is_some();
    }
}
