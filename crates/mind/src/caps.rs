//! Caps on an agent's spending on models, and the spending so far. Built from the log.

use jiff::{Timestamp, civil::Date};
use kairo_events::prices::{TokenCost, parse_budget};
use kairo_proto::v1::{self, AgentDecision};
use serde::{Deserialize, Serialize};

use super::{
    prices::PriceList,
    state::{AgentState, Profile},
    team::{Amount, completion_tokens},
};

/// As `AgentFailed.kind`.
pub const CAP_REACHED: &str = "cap_reached";

/// A profile's caps on spending; `None` for an amount without a cap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// Input and output together.
    pub tokens_per_day: Option<u64>,
    pub tokens_in_total: Option<u64>,
    /// As in [`Amount`].
    pub cost_per_day: Option<u64>,
    pub cost_in_total: Option<u64>,
    /// From when on it is counted, as the profile says.
    pub since: String,
}

/// Spending of an agent that has caps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// The last day on which it spent something, in its zone.
    pub day: Option<Date>,
    /// On that day.
    pub on_day: Amount,
    pub in_total: Amount,
}

/// A cap that allows no further call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedCap {
    /// As in `AgentFailed.kind`.
    pub kind: &'static str,
    /// In words, for people: which cap, the numbers, and what can be done.
    pub text: String,
    /// When a cap of a day begins anew; none of a cap in total.
    pub until: Option<Timestamp>,
}

impl Caps {
    pub(super) fn from_proto(caps: Option<&v1::Caps>) -> Self {
        let Some(caps) = caps else { return Self::default() };
        let some = |tokens: u64| (tokens > 0).then_some(tokens);
        Self {
            tokens_per_day: some(caps.tokens_per_day),
            tokens_in_total: some(caps.tokens_in_total),
            cost_per_day: parse_budget(&caps.cost_per_day),
            cost_in_total: parse_budget(&caps.cost_in_total),
            since: caps.since.clone(),
        }
    }

    pub fn is_nothing(&self) -> bool {
        let Self { tokens_per_day, tokens_in_total, cost_per_day, cost_in_total, since: _ } = self;
        [tokens_per_day, tokens_in_total, cost_per_day, cost_in_total].into_iter().all(Option::is_none)
    }

    /// Returns true if a cap bounds money, and not tokens alone.
    pub fn bounds_money(&self) -> bool {
        self.cost_per_day.is_some() || self.cost_in_total.is_some()
    }
}

impl Spending {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the spending that counts for a call on this day. An input may be of an earlier day than the last
    /// spending.
    fn amount_on(&self, day: Date) -> Amount {
        if self.day >= Some(day) { self.on_day } else { Amount::default() }
    }

    fn add(&mut self, day: Date, amount: Amount) {
        // Clocks of replicas differ: a day that is over does not begin anew.
        if self.day < Some(day) {
            (self.day, self.on_day) = (Some(day), Amount::default());
        }
        self.on_day = self.on_day.plus(amount);
        self.in_total = self.in_total.plus(amount);
    }
}

impl Profile {
    /// The cap that allows no further call, at this time, where `more` was spent beyond what is folded.
    pub fn reached_cap(&self, spent: &Spending, more: Amount, now: Timestamp) -> Option<ReachedCap> {
        let caps = &self.caps;
        let on_day = spent.amount_on(self.day_of(now)).plus(more);
        let in_total = spent.in_total.plus(more);
        let next = self.next_day(now);
        let until = || Some(next);
        let again = format!("at {next} ({})", self.time_zone);
        let reached = |name: &str, what: String, until: Option<Timestamp>| {
            let text = match until {
                Some(_) => format!("{what}; it begins anew {again}, or {}", raise_hint(name)),
                None => format!("{what}; it goes on when {}", raise_hint(name)),
            };
            Some(ReachedCap { kind: CAP_REACHED, text, until })
        };
        if let Some(most) = caps.tokens_per_day.filter(|most| on_day.tokens >= *most) {
            let what = format!("this agent may use {most} tokens a day, and {} are used", on_day.tokens);
            return reached("tokens_per_day", what, until());
        }
        if let Some(most) = caps.tokens_in_total.filter(|most| in_total.tokens >= *most) {
            let what = format!("this agent may use {most} tokens in total, and {} are used", in_total.tokens);
            return reached("tokens_in_total", what, None);
        }
        if let Some(what) = caps.cost_per_day.and_then(|most| on_day.reached_cost(most)) {
            return reached(
                "cost_per_day",
                format!("this agent may spend a bounded amount a day, and {what}"),
                until(),
            );
        }
        let what = caps.cost_in_total.and_then(|most| in_total.reached_cost(most))?;
        reached("cost_in_total", format!("this agent may spend a bounded amount in total, and {what}"), None)
    }

    /// Returns the reason no model of this tier may be called: the cost is bounded, and a model of the tier has no
    /// price.
    pub fn unknown_cost(&self, prices: &PriceList, tier: &str) -> Option<ReachedCap> {
        let model = prices.unpriced_model(tier).filter(|_| self.caps.bounds_money())?;
        let text = format!(
            "this agent may spend a bounded amount of money, and the model {model} has no price: whoever runs Kairo sets \
             models.{tier}.price or models.fallback_price, or an administrator takes caps.cost_per_day and \
             caps.cost_in_total off the agent"
        );
        Some(ReachedCap { kind: CAP_REACHED, text, until: None })
    }
}

/// Builds the text that says who can raise a cap, and how.
fn raise_hint(name: &str) -> String {
    format!("an administrator raises caps.{name} of the agent (POST /v1/agents, kairo agents define)")
}

impl Amount {
    /// Returns the reason this cap on money allows no more spending, in words; `None` while it does. Unpriced tokens
    /// may cost any amount, so they reach every cap.
    pub fn reached_cost(&self, most: u64) -> Option<String> {
        if self.unpriced > 0 {
            return Some(format!(
                "what was spent is not known: {} tokens are of models without a price (models.*.price, models.fallback_price)",
                self.unpriced
            ));
        }
        let [spent, may] = [self.cost, most].map(|units| TokenCost::of_units(units).to_string());
        (self.cost >= most).then(|| format!("{spent} of {may} is spent"))
    }
}

impl AgentState {
    /// Takes in what a decision took, of an agent that has caps.
    pub(super) fn count_capped_spending(&mut self, at: Timestamp, decision: &AgentDecision) {
        let Some(profile) = self.profile.as_ref().filter(|profile| !profile.caps.is_nothing()) else { return };
        let given_up = decision.given_up.iter().map(|call| call.input_tokens.saturating_add(call.output_tokens));
        let tokens = given_up.fold(completion_tokens(&decision.completions), u64::saturating_add);
        let amount = Amount { tokens, ..Amount::cost_of(decision) };
        let day = profile.day_of(at);
        self.spending.add(day, amount);
    }

    /// Of an agent whose caps are counted from another time on, or that has none, nothing is spent.
    pub(super) fn reset_spending_for_new_caps(&mut self, before: Option<&Caps>) {
        let caps = self.profile.as_ref().map(|profile| &profile.caps);
        let is_same = caps.zip(before).is_some_and(|(now, before)| now.since == before.since);
        if !is_same || caps.is_none_or(Caps::is_nothing) {
            self.spending = Spending::default();
        }
    }
}
