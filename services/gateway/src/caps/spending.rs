//! Spending per owner, read from the read model and cached for a moment, since every message asks for it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::{Timestamp, civil::Date};
use kairo_core::sharing::Holder;
use kairo_read_model::{ModelUsage, UsageQuery};
use tokio::sync::Mutex;

use super::{Caps, Owner, Reached, Spent, Taken, day_of, holding};
use crate::{auth::Caller, http::query, problem::Problem, state::Gateway};

/// Owners whose spending is remembered. Of more, all are asked for anew.
const MAX_OWNERS: usize = 10_000;

/// The last reading for each owner. Cloning it is cheap.
#[derive(Clone, Default)]
pub struct Spending(Arc<Mutex<HashMap<Owner, Entry>>>);

/// The last reading for one owner; locked while it is read again.
type Entry = Arc<Mutex<Option<Reading>>>;

struct Reading {
    at: Instant,
    day: Date,
    /// Of the days before, which change no more; none where nobody has asked for it.
    before: Option<Taken>,
    today: Taken,
}

/// Refuses a message where a cap is reached that holds for it.
///
/// # Errors
/// If a cap is reached, naming it; or if the spending is unknown because the read model does not answer.
pub async fn admit(gateway: &Gateway, caller: &Caller, user: &str) -> Result<(), Problem> {
    let now = Timestamp::now();
    for (owner, caps) in holding(&gateway.config, caller, Some(user)) {
        let spent = gateway.spending.of(gateway, &owner, &caps, now).await?;
        if let Some(Reached { text, until }) = caps.reached(&owner, &spent, now) {
            return Err(Problem::cap_reached(text, until.map(|at| at.duration_since(now).as_secs())));
        }
    }
    Ok(())
}

impl Spending {
    /// Returns the owner's spending according to the read model, cached for `max_age_ms`. The total includes
    /// earlier days if these caps bound it. Runs one query at a time per owner.
    pub async fn of(&self, gateway: &Gateway, owner: &Owner, caps: &Caps, now: Timestamp) -> Result<Spent, Problem> {
        let known = self.entry(owner).await;
        let mut known = known.lock().await;
        let (day, _) = day_of(now);
        let max_age = Duration::from_millis(gateway.config.caps.max_age_ms);
        let total = caps.bounds_the_total();
        let is_fresh = |it: &&Reading| it.day == day && it.at.elapsed() < max_age && (it.before.is_some() || !total);
        if let Some(reading) = known.as_ref().filter(is_fresh) {
            return Ok(reading.spent());
        }
        let before = known.take().filter(|it| it.day == day).and_then(|it| it.before);
        let at = Instant::now();
        let before = match before {
            None if total => {
                Some(asked(gateway, owner, UsageQuery { to: day.yesterday().ok(), ..owner.usage() }).await?)
            }
            known => known,
        };
        let today = asked(gateway, owner, UsageQuery { from: Some(day), ..owner.usage() }).await?;
        let reading = Reading { at, day, before, today };
        let spent = reading.spent();
        *known = Some(reading);
        Ok(spent)
    }

    async fn entry(&self, owner: &Owner) -> Arc<Mutex<Option<Reading>>> {
        let mut all = self.0.lock().await;
        if all.len() >= MAX_OWNERS && !all.contains_key(owner) {
            all.clear();
        }
        all.entry(owner.clone()).or_default().clone()
    }
}

impl Reading {
    fn spent(&self) -> Spent {
        let in_total = self.before.as_ref().map_or_else(|| self.today.clone(), |before| before.plus(&self.today));
        Spent { today: self.today.clone(), in_total }
    }
}

async fn asked(gateway: &Gateway, owner: &Owner, wanted: UsageQuery) -> Result<Taken, Problem> {
    let model = gateway.read_model.for_holder(Holder::of(format!("spending {owner:?}")));
    let usage = async { model.snapshot().await?.usage(&wanted).await };
    let usage: Vec<ModelUsage> = query::answered(gateway, usage).await?;
    Ok(Taken::of(&usage, &gateway.config.prices, gateway.config.fallback_price))
}
