//! Spending per owner, read from the read model and cached for a moment, since every message asks for it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::{Timestamp, civil::Date};
use kairo_core::sharing::QuotaHolder;
use kairo_read_model::{ModelUsage, UsageQuery};
use tokio::sync::Mutex;

use super::{CapHolder, Caps, PricedUsage, ReachedSpendingCap, SpendingTotals, applicable_caps, day_of};
use crate::{auth::Caller, http::query, problem::Problem, state::Gateway};

/// Owners whose spending is remembered. Of more, all are asked for anew.
const MAX_OWNERS: usize = 10_000;

/// The last reading for each owner. Cloning it is cheap.
#[derive(Clone, Default)]
pub struct SpendingCache(Arc<Mutex<HashMap<CapHolder, SpendingSlot>>>);

/// The last reading for one owner; locked while it is read again.
type SpendingSlot = Arc<Mutex<Option<SpendingReading>>>;

struct SpendingReading {
    at: Instant,
    day: Date,
    /// Of the days before, which change no more; none where nobody has asked for it.
    before: Option<PricedUsage>,
    today: PricedUsage,
}

/// Refuses a message where a cap is reached that holds for it.
///
/// # Errors
/// If a cap is reached, naming it; or if the spending is unknown because the read model does not answer.
pub async fn check_caps(gateway: &Gateway, caller: &Caller, user: &str) -> Result<(), Problem> {
    let now = Timestamp::now();
    for (owner, caps) in applicable_caps(&gateway.config, caller, Some(user)) {
        let spent = gateway.spending.spending_of(gateway, &owner, &caps, now).await?;
        if let Some(ReachedSpendingCap { text, until }) = caps.first_reached(&owner, &spent, now) {
            return Err(Problem::cap_reached(text, until.map(|at| at.duration_since(now).as_secs())));
        }
    }
    Ok(())
}

impl SpendingCache {
    /// Returns the owner's spending according to the read model, cached for `max_age_ms`. The total includes
    /// earlier days if these caps bound it. Runs one query at a time per owner.
    pub async fn spending_of(
        &self,
        gateway: &Gateway,
        owner: &CapHolder,
        caps: &Caps,
        now: Timestamp,
    ) -> Result<SpendingTotals, Problem> {
        let known = self.slot_for(owner).await;
        let mut known = known.lock().await;
        let (day, _) = day_of(now);
        let max_age = Duration::from_millis(gateway.config.caps.max_age_ms);
        let total = caps.limits_total();
        let is_fresh =
            |it: &&SpendingReading| it.day == day && it.at.elapsed() < max_age && (it.before.is_some() || !total);
        if let Some(reading) = known.as_ref().filter(is_fresh) {
            return Ok(reading.to_totals());
        }
        let before = known.take().filter(|it| it.day == day).and_then(|it| it.before);
        let at = Instant::now();
        let before = match before {
            None if total => {
                Some(query_usage(gateway, owner, UsageQuery { to: day.yesterday().ok(), ..owner.usage_query() }).await?)
            }
            known => known,
        };
        let today = query_usage(gateway, owner, UsageQuery { from: Some(day), ..owner.usage_query() }).await?;
        let reading = SpendingReading { at, day, before, today };
        let spent = reading.to_totals();
        *known = Some(reading);
        Ok(spent)
    }

    async fn slot_for(&self, owner: &CapHolder) -> Arc<Mutex<Option<SpendingReading>>> {
        let mut all = self.0.lock().await;
        if all.len() >= MAX_OWNERS && !all.contains_key(owner) {
            all.clear();
        }
        all.entry(owner.clone()).or_default().clone()
    }
}

impl SpendingReading {
    fn to_totals(&self) -> SpendingTotals {
        let in_total = self.before.as_ref().map_or_else(|| self.today.clone(), |before| before.plus(&self.today));
        SpendingTotals { today: self.today.clone(), in_total }
    }
}

async fn query_usage(gateway: &Gateway, owner: &CapHolder, wanted: UsageQuery) -> Result<PricedUsage, Problem> {
    let model = gateway.read_model.for_holder(QuotaHolder::for_group(format!("spending {owner:?}")));
    let usage = async { model.snapshot().await?.model_usage(&wanted).await };
    let usage: Vec<ModelUsage> = query::await_answer(gateway, usage).await?;
    Ok(PricedUsage::from_usage(&usage, &gateway.config.prices, gateway.config.fallback_price))
}
