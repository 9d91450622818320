//! The configuration of the spending caps.

use std::collections::BTreeMap;

use kairo_core::{
    config::{Mistake, check},
    prices::{ModelPrice, ModelPrices, MoneyAmount},
};
use serde::{Deserialize, Serialize};

/// Users with caps of their own.
const MAX_USERS: usize = 10_000;

/// Caps on what users and the installation may spend on models.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapsConfig {
    /// Caps of each user that `users` does not name. Default any amount.
    pub user: Caps,
    /// Caps of single users, by name. Default none.
    pub users: BTreeMap<String, Caps>,
    /// Caps of all users together, work of agents in the background included. Default any amount.
    pub installation: Caps,
    /// Age up to which known spending is used for a message without a new query, in milliseconds. Default 1000.
    pub max_age_ms: u64,
}

/// A cap of each kind; none for any amount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// Tokens in a day of UTC, input and output together; 0 for any number. Default 0.
    #[serde(skip_serializing_if = "is_none")]
    pub tokens_per_day: u64,
    /// Tokens for good; 0 for any number. Default 0.
    #[serde(skip_serializing_if = "is_none")]
    pub tokens_in_total: u64,
    /// Money in a day of UTC, in units of `gateway.currency`, with at most 6 decimal places. Default any amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<MoneyAmount>,
    /// Money for good. Default any amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_in_total: Option<MoneyAmount>,
}

// As serde wants it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Caps {
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if there is a cap in money.
    pub fn limits_cost(&self) -> bool {
        self.cost_per_day.is_some() || self.cost_in_total.is_some()
    }

    /// Returns true if there is a cap on the total, beside those per day.
    pub fn limits_total(&self) -> bool {
        self.tokens_in_total > 0 || self.cost_in_total.is_some()
    }
}

impl Default for CapsConfig {
    fn default() -> Self {
        let user = Caps::default();
        let installation = Caps::default();
        Self { user, users: BTreeMap::new(), installation, max_age_ms: 1_000 }
    }
}

impl CapsConfig {
    /// Adds what is wrong, with keys from `caps` on. Money cannot be counted where nothing has a price.
    pub fn check(&self, found: &mut Vec<Mistake>, prices: &ModelPrices, fallback: Option<ModelPrice>) {
        let named = self.users.iter().map(|(user, caps)| (format!("caps.users.{user}"), caps));
        let all = [("caps.user".to_owned(), &self.user), ("caps.installation".to_owned(), &self.installation)];
        for (key, caps) in all.into_iter().chain(named) {
            if caps.limits_cost() && prices.is_empty() && fallback.is_none() {
                let problem = "money cannot be counted: no model has a price";
                found.push(Mistake::new(key, problem, "set gateway.prices or gateway.fallback_price"));
            }
        }
        if self.users.len() > MAX_USERS {
            let problem = format!("{} users", self.users.len());
            found.push(Mistake::new("caps.users", problem, "name at most 10000 users"));
        }
        check(found, "caps.max_age_ms", self.max_age_ms, 1..=600_000, "milliseconds");
    }

    pub fn for_user(&self, user: &str) -> &Caps {
        self.users.get(user).unwrap_or(&self.user)
    }
}
