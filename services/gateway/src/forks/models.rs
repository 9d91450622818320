//! The models that a fork asks: so often, and for so much money, and no more.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use futures::future::BoxFuture;
use kairo_agent_runtime::{Live, ModelsConfig, NoParts, Received};
use kairo_core::prices::Prices;
use kairo_fork::{
    Asks,
    asking::{Forking, MAX_OUTPUT, Spent, Terms},
};
use kairo_mind::request::ModelRequest;
use kairo_proto::v1::Completion;

use super::limits::Limits;

/// The models that forks may ask, and their prices.
#[derive(Clone, Debug)]
pub struct Priced {
    pub models: ModelsConfig,
    pub prices: Prices,
    pub currency: String,
}

pub struct Bounded {
    models: Forking,
    /// Calls that are left.
    left: AtomicU32,
    limits: Limits,
}

impl Bounded {
    /// Images and audio are told to models in words.
    pub fn new(priced: &Priced, room: u64, limits: Limits) -> Self {
        let Priced { models, prices, currency } = priced;
        let (currency, most) = (currency.clone(), Some(limits.budget.cost().units()));
        let terms = Terms { models, prices, currency, most, max_output: MAX_OUTPUT, room };
        // Nobody can keep a budget where a price is not known: calls are bounded all the same.
        let models = Forking::new(&terms, Arc::new(NoParts));
        let models = models.unwrap_or_else(|_| Forking::unbounded(&terms, Arc::new(NoParts)));
        Self { models, left: AtomicU32::new(limits.model_calls), limits }
    }

    /// Returns the calls made and their cost so far.
    pub fn spent(&self) -> Spent {
        self.models.spent()
    }

    fn take(&self) -> Result<(), String> {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let over = || format!("this fork has made {}: no more is asked", self.limits.model_calls_told());
        taken.map(drop).map_err(|_| over())
    }

    /// Builds the error for a call the budget does not cover, with the size of the budget.
    fn too_dear(&self, why: &str) -> String {
        let currency = self.spent().currency;
        format!("{why}; this fork may spend {} {currency} on models (gateway.fork_budget)", self.limits.budget)
    }
}

impl Asks for Bounded {
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a Received,
        live: Option<Live<'a>>,
    ) -> BoxFuture<'a, Result<Completion, String>> {
        Box::pin(async move {
            self.take()?;
            self.models.ask(request, received, live).await.map_err(|why| self.too_dear(&why))
        })
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::prices::Amount;

    use super::*;
    use crate::config::GatewayConfig;

    fn bounded(prices: &str, limits: Limits) -> Bounded {
        let prices = serde_json::from_str(prices).unwrap();
        let priced = Priced { models: ModelsConfig::default(), prices, currency: "EUR".to_owned() };
        Bounded::new(&priced, 1_000, limits)
    }

    #[test]
    fn no_more_calls_are_made_than_are_allowed() {
        let limits = Limits { model_calls: 2, ..Limits::of(&GatewayConfig::default()) };
        let models = bounded("{}", limits);
        assert_eq!([(); 2].map(|()| models.take()), [Ok(()), Ok(())]);
        assert!(models.take().unwrap_err().contains("2 calls of models (gateway.fork_model_calls)"));
    }

    #[test]
    fn a_budget_is_kept_where_prices_are_known() {
        let limits = Limits { budget: Amount::of(3), ..Limits::of(&GatewayConfig::default()) };
        assert_eq!(bounded("{}", limits).spent().budget, None);
        let models = bounded(r#"{ "*": { "input": 1, "output": 2 } }"#, limits);
        assert_eq!(models.spent().budget.as_deref(), Some("3"));
        assert!(models.too_dear("no").contains("3 EUR on models (gateway.fork_budget)"));
    }
}
