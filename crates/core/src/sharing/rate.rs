//! A rate per second, shared among all members that a holder stands for. The burst they have used is given back evenly,
//! as much a second as the rate says, so that each member who wants more gets an equal part of it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{QuotaHolder, fair_limit};

/// Holders after which those that have used nothing are forgotten.
const MANY: usize = 10_000;
/// The cost of one request, in parts: rates that do not divide a second leave no remainder that matters.
const ONE: u64 = 1_000_000;

/// The rate and burst of every holder.
#[derive(Clone, Copy, Debug)]
struct RateQuota {
    per_second: u32,
    burst: u32,
}

/// Counts what holders use.
#[derive(Debug)]
pub struct SharedRateLimiter {
    quota: RateQuota,
    groups: Mutex<HashMap<Arc<str>, GroupUsage>>,
}

/// The usage of a group, in parts, by member.
#[derive(Debug)]
struct GroupUsage {
    by: HashMap<Option<Arc<str>>, u64>,
    /// The last time usage was given back.
    at: Instant,
}

impl SharedRateLimiter {
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self { quota: RateQuota { per_second: per_second.max(1), burst: burst.max(1) }, groups: Mutex::default() }
    }

    /// Counts one request; the error is how long to wait for the next that is allowed.
    ///
    /// # Errors
    /// When the holder, or the one that they stand for, has used its part.
    pub fn count_request(&self, holder: &QuotaHolder, now: Instant) -> Result<(), Duration> {
        self.with_usage(holder, now, |quota, used| used.count_request(quota, holder.member_name().cloned()))
    }

    /// Counts what one member of a group has used as another's.
    ///
    /// # Errors
    /// When that one has used their part; then it counts as nobody's.
    pub fn transfer_request(&self, from: &QuotaHolder, to: &QuotaHolder, now: Instant) -> Result<(), Duration> {
        self.with_usage(to, now, |quota, used| {
            used.take_back_request(from.member_name().cloned());
            used.count_request(quota, to.member_name().cloned())
        })
    }

    fn with_usage<T>(
        &self,
        holder: &QuotaHolder,
        now: Instant,
        what: impl FnOnce(RateQuota, &mut GroupUsage) -> T,
    ) -> T {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if groups.len() > MANY {
            groups.retain(|_, used| {
                used.replenish(self.quota, now);
                !used.by.is_empty()
            });
        }
        let used = groups.entry(holder.group().clone()).or_insert_with(|| GroupUsage { by: HashMap::new(), at: now });
        used.replenish(self.quota, now);
        what(self.quota, used)
    }
}

impl RateQuota {
    fn in_parts(self) -> u64 {
        u64::from(self.burst) * ONE
    }

    /// Returns the parts given back within a time.
    fn replenished_within(self, time: Duration) -> u64 {
        let parts = time.as_micros().saturating_mul(u128::from(self.per_second)) * u128::from(ONE) / 1_000_000;
        u64::try_from(parts).unwrap_or(u64::MAX)
    }

    /// Returns the time until so many parts are given back.
    fn time_until(self, parts: u64) -> Duration {
        let micros = u128::from(parts) * 1_000_000 / (u128::from(self.per_second) * u128::from(ONE));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX).saturating_add(1))
    }
}

impl GroupUsage {
    fn total(&self) -> u64 {
        self.by.values().sum()
    }

    /// Gives back what the time since allows, to everybody as much, and what somebody does not need to the others.
    fn replenish(&mut self, quota: RateQuota, now: Instant) {
        let mut rest = quota.replenished_within(now.saturating_duration_since(self.at));
        // Too little to be counted is not lost.
        if rest == 0 {
            return;
        }
        self.at = now;
        if rest >= self.total() {
            self.by.clear();
            return;
        }
        let mut used: Vec<&mut u64> = self.by.values_mut().collect();
        used.sort_unstable();
        let mut left = used.len() as u64;
        for used in used {
            let given = (rest / left).min(*used);
            *used -= given;
            rest -= given;
            left -= 1;
        }
        self.by.retain(|_, used| *used > 0);
    }

    /// Takes one request of a member back.
    fn take_back_request(&mut self, member: Option<Arc<str>>) {
        if let Some(used) = self.by.get_mut(&member) {
            *used = used.saturating_sub(ONE);
        }
        self.by.retain(|_, used| *used > 0);
    }

    fn count_request(&mut self, quota: RateQuota, member: Option<Arc<str>>) -> Result<(), Duration> {
        let all = quota.in_parts();
        let total = self.total();
        let own = self.by.get(&member).copied().unwrap_or(0);
        let others = total - own;
        let whole = |parts: u64| usize::try_from(parts).unwrap_or(usize::MAX);
        let most = match &member {
            // In whole requests, as far as there are some.
            Some(_) => {
                (fair_limit(whole(all), whole(others)) as u64).next_multiple_of(ONE).min(all.saturating_sub(others))
            }
            None => all.saturating_sub(others),
        };
        if own + ONE <= most {
            self.by.insert(member, own + ONE);
            return Ok(());
        }
        // Of what is given back, they get as much as everybody who has used something.
        let sharing = if own > 0 { self.by.len() as u64 } else { 1 };
        Err(quota.time_until((own + ONE).saturating_sub(most).saturating_mul(sharing)))
    }
}

#[cfg(test)]
mod tests;
