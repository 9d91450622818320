//! The models that answer requests to which the log of a fork has no answer.

use std::sync::Arc;

use futures::future::BoxFuture;
use kairo_agent_runtime::{LiveAnswer, ModelClient, ModelConfig, Models, ModelsConfig, PartStore, ProgressHandle};
use kairo_core::prices::{ModelPrices, TokenCost};
use kairo_mind::request::ModelRequest;
use kairo_proto::v1::Completion;
use kairo_replay::lanes::AskingEnd;
use serde::Serialize;

use super::{
    account::{CallAccount, charged_cost, highest_cost},
    lane_models::{LaneModels, UnpricedModel, resolve_model},
};
use crate::ModelAsker;

/// The models of a fork, and what asking them costs.
pub struct ForkModels {
    models: Models,
    /// The model asked first in each tier, with its price.
    lane: LaneModels,
    /// The models asked in its place.
    fallbacks: Vec<ModelConfig>,
    account: CallAccount,
    currency: String,
}

/// The calls of a fork to models, and their cost.
#[derive(Debug, PartialEq, Serialize)]
pub struct ForkSpending {
    pub calls: u64,
    /// `None` if a price is not known.
    pub cost: Option<String>,
    /// None without a bound.
    pub budget: Option<String>,
    pub currency: String,
    pub ended: AskingEnd,
}

/// The models to ask, and the bound on their cost.
#[derive(Clone, Debug)]
pub struct Terms<'t> {
    pub models: &'t ModelsConfig,
    pub prices: &'t ModelPrices,
    /// The currency of the prices.
    pub currency: String,
    /// The most that may be spent, in units of [`TokenCost`]; none without a bound.
    pub most: Option<u64>,
    /// Longest answer, in tokens, of a model whose configuration leaves that to the endpoint.
    pub max_output: u32,
    /// The most memory for images, audio and video, in bytes.
    pub room: u64,
}

impl ForkModels {
    /// # Errors
    /// If there is a budget, and a model has no price.
    pub fn new(terms: &Terms<'_>, parts: Arc<dyn PartStore>) -> Result<Self, UnpricedModel> {
        if terms.most.is_none() {
            return Ok(Self::without_bound(terms, parts));
        }
        let lane = LaneModels::from_config(terms.models, terms.prices, terms.max_output);
        lane.ensure_priced()?;
        // Nobody knows before which of them will answer, so it is the first one.
        let models = Models::new(&lane.config(), parts, terms.room);
        let account = CallAccount::new(terms.most);
        let currency = terms.currency.clone();
        Ok(Self { models, lane, fallbacks: Vec::new(), account, currency })
    }

    /// Whatever it costs.
    pub fn without_bound(terms: &Terms<'_>, parts: Arc<dyn PartStore>) -> Self {
        let Terms { models, prices, max_output, .. } = *terms;
        let fallbacks = fallbacks(models).map(|model| resolve_model(model, prices, max_output)).collect();
        let lane = LaneModels::from_config(models, prices, max_output);
        let account = CallAccount::new(None);
        let models = Models::new(models, parts, terms.room);
        Self { models, lane, fallbacks, account, currency: terms.currency.clone() }
    }

    /// Returns the calls made up to now, and their cost.
    pub fn spending(&self) -> ForkSpending {
        let budget = self.account.budget();
        let is_priced = self.lane.ensure_priced().is_ok() && self.fallbacks.iter().all(|model| model.price.is_some());
        ForkSpending {
            calls: budget.calls(),
            cost: is_priced.then(|| budget.total_spent().to_string()),
            budget: self.account.most.map(|units| TokenCost::of_units(units).to_string()),
            currency: self.currency.clone(),
            ended: if budget.refused_cost().is_some() { AskingEnd::Budget } else { AskingEnd::Complete },
        }
    }

    /// Returns the cost of an answer.
    fn cost(&self, first: &ModelConfig, completion: &Completion, at_most: TokenCost) -> TokenCost {
        let instead = || self.fallbacks.iter().find(|model| model.model == completion.model);
        let model = if completion.model == first.model { first } else { instead().unwrap_or(first) };
        model.price.map(|price| charged_cost(price, completion, at_most)).unwrap_or_default()
    }

    async fn ask_within_budget(
        &self,
        request: &ModelRequest,
        received: &ProgressHandle,
        live: Option<LiveAnswer<'_>>,
    ) -> Result<Completion, String> {
        let Some(first) = self.lane.model(request.tier) else { return Err("no model is configured".to_owned()) };
        let at_most = highest_cost(first, request).unwrap_or_default();
        let held = self.account.hold(at_most).await.map_err(|_| self.account.refusal_reason())?;
        let completion = self.models.complete(request, received, live).await;
        held.settle(self.cost(first, &completion, at_most));
        Ok(completion)
    }
}

impl ModelAsker for ForkModels {
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a ProgressHandle,
        live: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Result<Completion, String>> {
        Box::pin(self.ask_within_budget(request, received, live))
    }
}

fn fallbacks(models: &ModelsConfig) -> impl Iterator<Item = &ModelConfig> {
    models.tiers().into_iter().flat_map(|(_, model)| &model.fallbacks)
}

impl std::fmt::Display for ForkSpending {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, cost, budget, currency, ended } = self;
        let cost = cost.as_ref().map_or("at prices that are not known".to_owned(), |cost| format!("for {cost}"));
        let budget = budget.as_ref().map(|budget| format!(" of {budget}")).unwrap_or_default();
        write!(out, "{calls} calls of models {cost}{budget}")?;
        if self.cost.is_some() {
            write!(out, " {currency}")?;
        }
        match ended {
            AskingEnd::Budget => out.write_str("; what is left of the budget does not suffice, so no more is asked"),
            AskingEnd::Complete | AskingEnd::Interrupted => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use kairo_agent_runtime::EmptyPartStore;
    use serde_json::{Value, json};

    use super::*;

    fn forking(models: Value, most: Option<u64>) -> Result<ForkModels, UnpricedModel> {
        let models = serde_json::from_value(models).unwrap();
        let prices = ModelPrices::new();
        let currency = "USD".to_owned();
        let room = 1_000;
        let terms = Terms { models: &models, prices: &prices, currency, most, max_output: 100, room };
        ForkModels::new(&terms, Arc::new(EmptyPartStore))
    }

    fn with_fallback() -> Value {
        let other = json!({ "model": "b", "price": { "input": 5, "output": 6 } });
        json!({ "heavy": { "model": "a", "fallbacks": [other], "price": { "input": 1, "output": 2 } } })
    }

    #[test]
    fn a_budget_takes_prices_and_without_one_it_is_said_that_they_are_not_known() {
        let unpriced = || json!({ "heavy": { "model": "a" } });
        let refused = forking(unpriced(), Some(1)).err().unwrap().to_string();
        assert!(refused.contains("the model a has no price") && refused.contains("models.heavy.price"), "{refused}");
        let spent = forking(unpriced(), None).unwrap().spending();
        assert_eq!(spent.to_string(), "0 calls of models at prices that are not known");
        let spent = forking(with_fallback(), Some(1_000_000)).unwrap().spending();
        assert_eq!(spent.to_string(), "0 calls of models for 0 of 0.000001 USD");
    }

    #[test]
    fn an_answer_of_a_fallback_costs_what_that_costs_and_within_a_budget_none_is_asked() {
        let answer = |model: &str| Completion { model: model.into(), input_tokens: 1, ..Completion::default() };
        let cost = |forking: &ForkModels, model: &str| {
            let first = forking.lane.model("heavy").unwrap();
            forking.cost(first, &answer(model), TokenCost::default()).to_string()
        };
        let unbounded = forking(with_fallback(), None).unwrap();
        assert_eq!(["a", "b", "a-2026"].map(|model| cost(&unbounded, model)), ["0.000001", "0.000005", "0.000001"]);
        let bounded = forking(with_fallback(), Some(1)).unwrap();
        assert!(bounded.fallbacks.is_empty() && cost(&bounded, "b") == "0.000001");
    }
}
