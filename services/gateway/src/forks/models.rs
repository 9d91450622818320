//! The models that a fork asks: so often, and for so much money, and no more.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use futures::future::BoxFuture;
use kairo_agent_runtime::{EmptyPartStore, LiveAnswer, ModelsConfig, ProgressHandle};
use kairo_core::prices::ModelPrices;
use kairo_fork::{
    ModelAsker,
    model_calls::{ForkModels, ForkSpending, MAX_OUTPUT, Terms},
};
use kairo_mind::request::ModelRequest;
use kairo_proto::v1::Completion;

use super::limits::ForkLimits;

/// The models that forks may ask, and their prices.
#[derive(Clone, Debug)]
pub struct PricedModels {
    pub models: ModelsConfig,
    pub prices: ModelPrices,
    pub currency: String,
}

pub struct BudgetedModels {
    models: ForkModels,
    /// Calls that are left.
    left: AtomicU32,
    limits: ForkLimits,
}

impl BudgetedModels {
    /// Images and audio are told to models in words.
    pub fn new(priced: &PricedModels, room: u64, limits: ForkLimits) -> Self {
        let PricedModels { models, prices, currency } = priced;
        let currency = currency.clone();
        let most = Some(limits.budget.to_cost().units());
        let terms = Terms { models, prices, currency, most, max_output: MAX_OUTPUT, room };
        // Nobody can keep a budget where a price is not known: calls are bounded all the same.
        let models = ForkModels::new(&terms, Arc::new(EmptyPartStore));
        let models = models.unwrap_or_else(|_| ForkModels::without_bound(&terms, Arc::new(EmptyPartStore)));
        Self { models, left: AtomicU32::new(limits.model_calls), limits }
    }

    /// Returns the calls made and their cost so far.
    pub fn spending(&self) -> ForkSpending {
        self.models.spending()
    }

    fn take_call(&self) -> Result<(), String> {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let over = || format!("this fork has made {}: no more is asked", self.limits.describe_model_calls());
        taken.map(drop).map_err(|_| over())
    }

    /// Builds the error for a call the budget does not cover, with the size of the budget.
    fn describe_over_budget(&self, why: &str) -> String {
        let currency = self.spending().currency;
        format!("{why}; this fork may spend {} {currency} on models (gateway.fork_budget)", self.limits.budget)
    }
}

impl ModelAsker for BudgetedModels {
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a ProgressHandle,
        live: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Result<Completion, String>> {
        Box::pin(async move {
            self.take_call()?;
            self.models.ask(request, received, live).await.map_err(|why| self.describe_over_budget(&why))
        })
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::prices::MoneyAmount;

    use super::*;
    use crate::config::GatewayConfig;

    fn bounded(prices: &str, limits: ForkLimits) -> BudgetedModels {
        let prices = serde_json::from_str(prices).unwrap();
        let priced = PricedModels { models: ModelsConfig::default(), prices, currency: "EUR".to_owned() };
        BudgetedModels::new(&priced, 1_000, limits)
    }

    #[test]
    fn no_more_calls_are_made_than_are_allowed() {
        let limits = ForkLimits { model_calls: 2, ..ForkLimits::from_config(&GatewayConfig::default()) };
        let models = bounded("{}", limits);
        assert_eq!([(); 2].map(|()| models.take_call()), [Ok(()), Ok(())]);
        assert!(models.take_call().unwrap_err().contains("2 calls of models (gateway.fork_model_calls)"));
    }

    #[test]
    fn a_budget_is_kept_where_prices_are_known() {
        let limits = ForkLimits {
            budget: MoneyAmount::from_whole_units(3),
            ..ForkLimits::from_config(&GatewayConfig::default())
        };
        assert_eq!(bounded("{}", limits).spending().budget, None);
        let models = bounded(r#"{ "*": { "input": 1, "output": 2 } }"#, limits);
        assert_eq!(models.spending().budget.as_deref(), Some("3"));
        assert!(models.describe_over_budget("no").contains("3 EUR on models (gateway.fork_budget)"));
    }
}
