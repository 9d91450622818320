//! Caps on the model spending of users, API keys and the whole installation. They are checked where messages enter,
//! against the usage in the read model, so usage it has not applied yet and work in flight may exceed a cap. Agents
//! enforce their own caps.

pub mod config;
pub mod fencing;
pub mod spending;

use std::collections::BTreeSet;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use kairo_core::prices::{ModelPrice, ModelPrices, MoneyAmount, TokenCost, TokenCounts};
use kairo_proto::{
    time,
    v1::{self, CapRow},
    words::{CapKind, CapOwner},
};
use kairo_read_model::{ModelUsage, UsageQuery};

pub use self::config::Caps;
use crate::{auth::Caller, config::GatewayConfig};

/// The owner of a cap that the gateway enforces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CapHolder {
    User(String),
    /// By the key's id.
    Key(String),
    Installation,
}

/// The tokens and the cost of model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PricedUsage {
    /// Input and output together.
    pub tokens: u64,
    cost: TokenCost,
    /// Models whose cost is unknown, since they have no price or did not count their tokens.
    unknown: BTreeSet<String>,
}

/// Spending of one owner, today (UTC) and in total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpendingTotals {
    pub today: PricedUsage,
    pub in_total: PricedUsage,
}

/// A cap that is reached, described for the client that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedSpendingCap {
    pub text: String,
    /// The time at which the cap resets; none for a cap in total.
    pub until: Option<Timestamp>,
}

impl PricedUsage {
    /// Adds up usage at these prices; `fallback` is the price of models without one.
    pub fn from_usage<'u>(
        usage: impl IntoIterator<Item = &'u ModelUsage>,
        prices: &ModelPrices,
        fallback: Option<ModelPrice>,
    ) -> Self {
        let mut taken = Self::default();
        for calls in usage {
            let &ModelUsage { input_tokens, cached_tokens, output_tokens, uncounted, .. } = calls;
            let tokens = input_tokens.saturating_add(output_tokens);
            taken.tokens = taken.tokens.saturating_add(tokens);
            let price = ModelPrice::of_model(prices, &calls.model).or(fallback);
            match price.filter(|_| uncounted == 0) {
                Some(price) => {
                    let usage = TokenCounts { input_tokens, cached_tokens, output_tokens };
                    taken.cost = taken.cost.saturating_add(price.cost_of(usage));
                }
                None if tokens == 0 && uncounted == 0 => {}
                None => _ = taken.unknown.insert(calls.model.clone()),
            }
        }
        taken
    }

    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost.saturating_add(other.cost),
            unknown: self.unknown.union(&other.unknown).cloned().collect(),
        }
    }

    /// Returns the cost; none if part of it is unknown.
    fn known_cost(&self) -> Option<TokenCost> {
        self.unknown.is_empty().then_some(self.cost)
    }
}

impl CapHolder {
    fn owner_word(&self) -> CapOwner {
        match self {
            Self::User(_) => CapOwner::User,
            Self::Key(_) => CapOwner::Key,
            Self::Installation => CapOwner::Installation,
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::User(name) | Self::Key(name) => Some(name),
            Self::Installation => None,
        }
    }

    /// Returns the query for the usage that counts towards the owner's caps.
    fn usage_query(&self) -> UsageQuery {
        let mut user = None;
        let mut entered_by = None;
        match self {
            Self::User(name) => user = Some(name.clone()),
            Self::Key(id) => entered_by = Some(kairo_core::principal::Principal::api_key(id).to_string()),
            Self::Installation => {}
        }
        UsageQuery { user, entered_by, limit: 1, ..UsageQuery::default() }
    }

    /// Describes the owner, for the beginning of a sentence.
    fn describe(&self) -> String {
        match self {
            Self::User(name) => format!("the user {name}"),
            Self::Key(id) => format!("the API key {id}"),
            Self::Installation => "this installation".to_owned(),
        }
    }

    /// Describes who can raise the cap, and how, for the end of a sentence.
    fn describe_remedy(&self, cap: &str) -> String {
        match self {
            Self::User(name) => {
                format!("whoever runs Kairo raises gateway.caps.users.{name}.{cap} (or gateway.caps.user.{cap})")
            }
            Self::Key(_) => {
                format!("an administrator makes a key with more in caps.{cap} (POST /v1/keys, kairo keys create)")
            }
            Self::Installation => format!("whoever runs Kairo raises gateway.caps.installation.{cap}"),
        }
    }
}

/// Returns the owners whose caps apply to a message from this caller as this user, with their caps.
pub fn applicable_caps(config: &GatewayConfig, caller: &Caller, user: Option<&str>) -> Vec<(CapHolder, Caps)> {
    let of_key = caller.key().and_then(|key| Some((CapHolder::Key(key.key_id.clone()), key.caps.clone()?)));
    let of_user = user.map(|user| (CapHolder::User(user.to_owned()), config.caps.for_user(user).clone()));
    let all = [of_key, of_user, Some((CapHolder::Installation, config.caps.installation.clone()))];
    all.into_iter().flatten().filter(|(_, caps)| !caps.is_unlimited()).collect()
}

/// Returns the day in UTC and the time at which the next one begins.
pub fn day_of(now: Timestamp) -> (Date, Option<Timestamp>) {
    let day = now.to_zoned(TimeZone::UTC).date();
    let next = day.tomorrow().and_then(|next| next.to_zoned(TimeZone::UTC));
    (day, next.ok().map(|next| next.timestamp()))
}

impl Caps {
    /// Returns the first cap that is reached, if any; caps in total come before caps per day.
    pub fn first_reached(
        &self,
        owner: &CapHolder,
        spent: &SpendingTotals,
        now: Timestamp,
    ) -> Option<ReachedSpendingCap> {
        let until = day_of(now).1;
        let told = |cap: CapKind, within: &str, until: Option<Timestamp>, what: String| {
            let name = cap.text();
            let anew = until.map(|at| format!("it begins anew at {at}, or ")).unwrap_or_default();
            let text =
                format!("{} {what}{within}; {anew}it goes on when {}", owner.describe(), owner.describe_remedy(&name));
            ReachedSpendingCap { text, until }
        };
        let tokens = |most: u64, taken: &PricedUsage| {
            let used = taken.tokens;
            (most > 0 && used >= most).then(|| format!("may use {most} tokens, and {used} are used"))
        };
        let money = |most: Option<MoneyAmount>, taken: &PricedUsage| {
            let most = most?;
            match taken.known_cost() {
                Some(cost) => {
                    (cost.units() >= most.to_cost().units()).then(|| format!("may spend {most}, and {cost} is spent"))
                }
                None => {
                    let models = taken.unknown.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                    let why = "has no price in gateway.prices, and gateway.fallback_price is not set";
                    Some(format!("may spend {most}, and what is spent is not known ({models} {why})"))
                }
            }
        };
        let SpendingTotals { today, in_total } = spent;
        let day =
            || tokens(self.tokens_per_day, today).map(|what| told(CapKind::TokensPerDay, " today (UTC)", until, what));
        let total =
            || tokens(self.tokens_in_total, in_total).map(|what| told(CapKind::TokensInTotal, " in total", None, what));
        let day_cost =
            || money(self.cost_per_day, today).map(|what| told(CapKind::CostPerDay, " today (UTC)", until, what));
        let total_cost =
            || money(self.cost_in_total, in_total).map(|what| told(CapKind::CostInTotal, " in total", None, what));
        total().or_else(total_cost).or_else(day).or_else(day_cost)
    }

    /// Returns a row for each cap with its limit, what is spent and what is left.
    pub fn to_rows(&self, owner: &CapHolder, spent: &SpendingTotals, now: Timestamp) -> Vec<CapRow> {
        build_cap_rows(&owner.owner_word(), owner.name(), self, spent, day_of(now).1)
    }
}

/// Returns a row for each cap, of an agent or any other owner.
pub fn build_cap_rows(
    of: &CapOwner,
    name: Option<&str>,
    caps: &Caps,
    spent: &SpendingTotals,
    next_day: Option<Timestamp>,
) -> Vec<CapRow> {
    let row =
        |cap: CapKind, limit: String, spent: Option<String>, left: Option<String>, anew: Option<Timestamp>| CapRow {
            of: of.text(),
            name: name.map(str::to_owned),
            cap: cap.text(),
            limit,
            spent,
            left,
            resets_at: anew.map(time::message),
        };
    let tokens = |cap: CapKind, most: u64, taken: &PricedUsage, anew: Option<Timestamp>| {
        let left = most.saturating_sub(taken.tokens).to_string();
        (most > 0).then(|| row(cap, most.to_string(), Some(taken.tokens.to_string()), Some(left), anew))
    };
    let money = |cap: CapKind, most: Option<MoneyAmount>, taken: &PricedUsage, anew: Option<Timestamp>| {
        let most = most?;
        let left =
            |spent: TokenCost| TokenCost::of_units(most.to_cost().units().saturating_sub(spent.units())).to_string();
        let spent = taken.known_cost();
        Some(row(cap, most.to_string(), spent.map(|cost| cost.to_string()), spent.map(left), anew))
    };
    let SpendingTotals { today, in_total } = spent;
    [
        tokens(CapKind::TokensPerDay, caps.tokens_per_day, today, next_day),
        tokens(CapKind::TokensInTotal, caps.tokens_in_total, in_total, None),
        money(CapKind::CostPerDay, caps.cost_per_day, today, next_day),
        money(CapKind::CostInTotal, caps.cost_in_total, in_total, None),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Converts caps to their contract type.
impl From<&Caps> for v1::Caps {
    fn from(caps: &Caps) -> Self {
        let text = |amount: Option<MoneyAmount>| amount.map(|amount| amount.to_string()).unwrap_or_default();
        Self {
            tokens_per_day: caps.tokens_per_day,
            tokens_in_total: caps.tokens_in_total,
            cost_per_day: text(caps.cost_per_day),
            cost_in_total: text(caps.cost_in_total),
            since: String::new(),
        }
    }
}

impl From<&v1::Caps> for Caps {
    fn from(caps: &v1::Caps) -> Self {
        Self {
            tokens_per_day: caps.tokens_per_day,
            tokens_in_total: caps.tokens_in_total,
            cost_per_day: caps.cost_per_day.parse().ok(),
            cost_in_total: caps.cost_in_total.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn used(model: &str, tokens: u64) -> ModelUsage {
        ModelUsage {
            day: String::new(),
            agent: String::new(),
            user: String::new(),
            thread: String::new(),
            model_key: String::new(),
            module: String::new(),
            model: model.into(),
            calls: 1,
            failed: 0,
            input_tokens: tokens,
            output_tokens: 0,
            latency_ms: 0,
            cached_tokens: 0,
            estimated_calls: 0,
            estimated_tokens: 0,
            uncounted: 0,
        }
    }

    fn price_usage(usage: &[ModelUsage], fallback: Option<&str>) -> PricedUsage {
        let prices = serde_json::from_value(json!({ "large": { "input": 1, "output": 1 } })).unwrap();
        PricedUsage::from_usage(usage, &prices, fallback.map(|price| serde_json::from_str(price).unwrap()))
    }

    fn caps(value: serde_json::Value) -> Caps {
        serde_json::from_value(value).unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-21T22:10:00Z".parse().unwrap()
    }

    #[test]
    fn a_reached_cap_says_which_the_numbers_and_who_can_raise_it() {
        let spent = |today: u64, total: u64| {
            let of = |tokens| price_usage(&[used("large", tokens)], None);
            SpendingTotals { today: of(today), in_total: of(total) }
        };
        let owner = CapHolder::User("ann".into());
        let text = |value: serde_json::Value, spent: &SpendingTotals| caps(value).first_reached(&owner, spent, now());
        assert_eq!(text(json!({ "tokens_per_day": 100 }), &spent(99, 900)), None);
        let day = text(json!({ "tokens_per_day": 100 }), &spent(100, 900)).unwrap();
        for part in [
            "the user ann may use 100 tokens, and 100 are used today",
            "2026-11-22T00:00:00Z",
            "gateway.caps.users.ann.tokens_per_day",
        ] {
            assert!(day.text.contains(part), "{part}: {}", day.text);
        }
        let total = text(json!({ "tokens_in_total": 900, "tokens_per_day": 1 }), &spent(100, 900)).unwrap();
        assert!(total.text.contains("900 are used in total") && total.until.is_none(), "{}", total.text);
        let money = text(json!({ "cost_per_day": "0.0001" }), &spent(100, 900)).unwrap();
        assert!(money.text.contains("may spend 0.0001, and 0.0001 is spent"), "{}", money.text);
        assert_eq!(text(json!({ "cost_per_day": "0.00011" }), &spent(100, 900)), None);
    }

    #[test]
    fn unknown_money_reaches_a_cap_unless_something_counts_instead() {
        let usage = [used("large", 5), used("odd", 7)];
        let cap = caps(json!({ "cost_in_total": 5 }));
        let spent =
            |fallback| SpendingTotals { today: PricedUsage::default(), in_total: price_usage(&usage, fallback) };
        let unknown = cap.first_reached(&CapHolder::Installation, &spent(None), now()).unwrap();
        assert!(unknown.text.contains("not known (odd has no price"), "{}", unknown.text);
        let row = &cap.to_rows(&CapHolder::Installation, &spent(None), now())[0];
        assert_eq!((row.limit.as_str(), &row.spent, &row.left), ("5", &None, &None));
        let counted = spent(Some(r#"{ "input": 100000, "output": 0 }"#));
        assert_eq!(cap.first_reached(&CapHolder::Installation, &counted, now()), None);
        let row = &cap.to_rows(&CapHolder::Installation, &counted, now())[0];
        assert_eq!((row.spent.as_deref(), row.left.as_deref()), (Some("0.700005"), Some("4.299995")));
        let nobody_counted = ModelUsage { uncounted: 1, ..used("large", 0) };
        assert_eq!(price_usage(&[nobody_counted], Some(r#"{ "input": 1, "output": 0 }"#)).known_cost(), None);
        assert_eq!(price_usage(&[used("odd", 0)], None).known_cost(), Some(TokenCost::default()), "it took nothing");
    }

    #[test]
    fn parts_add_up_to_the_whole_and_no_sum_wraps() {
        let usage: Vec<_> = (0..50).map(|at| used(["large", "odd"][at % 2], 1 << at)).collect();
        let parts = usage.iter().map(|one| price_usage(std::slice::from_ref(one), None));
        assert_eq!(parts.fold(PricedUsage::default(), |sum, part| sum.plus(&part)), price_usage(&usage, None));
        let most = [used("large", u64::MAX), used("large", u64::MAX)];
        assert_eq!(price_usage(&most, None).tokens, u64::MAX);
    }
}
