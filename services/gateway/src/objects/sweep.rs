//! Removing what no event names. Every gateway looks, now and then; of several that look at the same time one removes an
//! object, and one that is killed leaves nothing that the next does not finish.

use std::{collections::HashSet, time::Duration};

use jiff::Timestamp;
use kairo_core::{bus::objects::MediaObject, ids::Name, sharing::QuotaHolder};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    http::{query, snapshot_at_least},
    log_follower::end_of_log,
    problem::Problem,
    state::Gateway,
};

/// Objects that the read model is asked about at once, and whose pieces are removed at once that belong to none.
const BATCH: usize = 500;

/// Looks until the gateway stops.
pub async fn run(gateway: Gateway) {
    let mut ticks = interval(Duration::from_millis(gateway.config.objects_sweep_ms));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while gateway.shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        if let Some(Err(problem)) = gateway.shutdown.run_until_cancelled(sweep(&gateway)).await {
            tracing::warn!(problem = problem.detail, "objects that no event names are looked for again later");
        }
    }
}

async fn sweep(gateway: &Gateway) -> Result<(), Problem> {
    let before = gateway.bus.now() - Duration::from_millis(gateway.config.objects_grace_ms);
    let removed = remove_unreferenced(gateway, |kept| kept.at < before).await?;
    for kept in gateway.inventory.objects_where(|kept| kept.is_removed && kept.at < before) {
        gateway.objects.forget_removed(&kept).await?;
        gateway.inventory.forget(&kept);
    }
    let strays = gateway.objects.remove_orphan_pieces(before, BATCH).await?;
    if removed + strays > 0 {
        tracing::info!(removed, strays, "removed objects that no event names");
    }
    Ok(())
}

/// Removes at once what was stored for a user until then and no event names.
pub async fn remove_for_user(gateway: &Gateway, user: &Name, before: Timestamp) -> Result<(), Problem> {
    let of_user = |kept: &MediaObject| kept.stored_for.user.as_deref() == Some(user.as_str()) && kept.at < before;
    let removed = remove_unreferenced(gateway, of_user).await?;
    tracing::info!(%user, removed, "removed objects of a user who is forgotten");
    Ok(())
}

/// Removes those of these objects that no event names. How many that were.
async fn remove_unreferenced(gateway: &Gateway, these: impl Fn(&MediaObject) -> bool) -> Result<usize, Problem> {
    let mut removed = 0;
    for batch in gateway.inventory.objects_where(|kept| !kept.is_removed && these(kept)).chunks(BATCH) {
        for kept in find_unreferenced(gateway, batch).await? {
            removed += usize::from(gateway.objects.remove(kept).await?);
        }
    }
    Ok(removed)
}

/// Those of the objects that no event names. They were old before this was asked, so whoever named one since has made it
/// young first, and it will not be removed as it was.
async fn find_unreferenced<'k>(gateway: &Gateway, batch: &'k [MediaObject]) -> Result<Vec<&'k MediaObject>, Problem> {
    let end = end_of_log(&gateway.bus).await?;
    let snapshot = snapshot_at_least(
        gateway,
        &QuotaHolder::for_group("sweep"),
        end,
        Duration::from_millis(gateway.config.freshness_wait_ms),
    )
    .await?;
    let digests: Vec<String> = batch.iter().map(|kept| kept.digest.clone()).collect();
    let named = query::await_answer(gateway, snapshot.named_objects(&digests)).await?;
    let named: HashSet<String> = named.into_iter().collect();
    Ok(batch.iter().filter(|kept| !named.contains(&kept.digest)).collect())
}
