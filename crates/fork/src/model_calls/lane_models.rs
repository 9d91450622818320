//! The models that are asked, one for each tier, with what they cost.

use std::collections::{BTreeMap, BTreeSet};

use kairo_agent_runtime::{ModelConfig, ModelsConfig};
use kairo_core::prices::{ModelPrice, ModelPrices, TokenCost};
use kairo_replay::lanes::ExpectedCall;

/// The tiers, from the one that stands for the others where they are not configured.
pub const TIERS: [&str; 3] = ["heavy", "fast", "light"];

/// The models of one lane.
#[derive(Clone)]
pub struct LaneModels {
    tiers: BTreeMap<&'static str, ModelConfig>,
}

/// A model has no price, so nobody can keep a budget.
#[derive(Debug, thiserror::Error)]
#[error(
    "the model {model} has no price, so no budget can be kept: expected {{ input, output }} in models.{tier}.price, or in gateway.prices \
     under its name, for a million tokens"
)]
pub struct UnpricedModel {
    model: String,
    tier: &'static str,
}

impl LaneModels {
    pub fn from_config(models: &ModelsConfig, prices: &ModelPrices, max_output: u32) -> Self {
        let tiers = models.tiers().map(|(tier, model)| (tier, resolve_model(model, prices, max_output)));
        Self { tiers: tiers.into() }
    }

    /// Returns the lane with other models, by tier and name. A model that is configured anywhere is asked as configured
    /// there, any other at the endpoint of its tier.
    #[must_use]
    pub fn with_replaced<'r>(
        &self,
        replaced: impl IntoIterator<Item = (&'static str, &'r str)>,
        models: &ModelsConfig,
        prices: &ModelPrices,
        max_output: u32,
    ) -> Self {
        let configured = [Some(&models.heavy), models.fast.as_ref(), models.light.as_ref()];
        let configured =
            configured.into_iter().flatten().flat_map(|model| std::iter::once(model).chain(&model.fallbacks));
        let configured: Vec<&ModelConfig> = configured.collect();
        let mut tiers = self.tiers.clone();
        for (tier, model) in replaced {
            let known = configured.iter().find(|it| it.model == model).map(|it| (*it).clone());
            let of_tier = self.tiers.get(tier).cloned().unwrap_or_default();
            let unknown = ModelConfig { model: model.to_owned(), price: None, token_factor: None, ..of_tier };
            tiers.insert(tier, resolve_model(&known.unwrap_or(unknown), prices, max_output));
        }
        Self { tiers }
    }

    /// The model of a tier.
    pub fn model(&self, tier: &str) -> Option<&ModelConfig> {
        self.tiers.get(tier).or_else(|| self.tiers.get("heavy"))
    }

    /// The name of each tier's model.
    pub fn names(&self) -> BTreeMap<String, String> {
        self.tiers.iter().map(|(tier, model)| ((*tier).to_owned(), model.model.clone())).collect()
    }

    /// Returns the cost of a call if it is answered as it was; none if the price is not known.
    fn price(&self, call: &ExpectedCall) -> Option<TokenCost> {
        let model = self.model(call.tier)?;
        let counted = usize::try_from(call.input_tokens).unwrap_or(usize::MAX);
        let input = if call.is_counted { model.to_model_tokens(counted) } else { call.input_tokens };
        Some(model.price?.uncached_cost(input, call.output_tokens))
    }

    /// Returns the number and cost of these calls if they are answered as they were; no cost if a price is not known.
    pub fn sum<'c>(&self, calls: impl Iterator<Item = &'c ExpectedCall>) -> (u64, Option<TokenCost>) {
        calls.fold((0, Some(TokenCost::default())), |(calls, sum), call| {
            (calls + 1, sum.zip(self.price(call)).map(|(sum, cost)| sum.saturating_add(cost)))
        })
    }

    /// The most that any of its models is asked at once.
    pub fn max_in_flight(&self) -> usize {
        self.tiers.values().map(|model| model.max_in_flight).max().unwrap_or(1)
    }

    pub fn config(&self) -> ModelsConfig {
        let of = |tier: &str| self.tiers.get(tier).cloned();
        ModelsConfig {
            heavy: of("heavy").unwrap_or_default(),
            fast: of("fast"),
            light: of("light"),
            ..Default::default()
        }
    }

    /// # Errors
    /// If a model has no price; the error names it.
    pub fn ensure_priced(&self) -> Result<(), UnpricedModel> {
        let unpriced: BTreeSet<&str> =
            self.tiers.values().filter(|model| model.price.is_none()).map(|model| model.model.as_str()).collect();
        let Some(model) = unpriced.first() else { return Ok(()) };
        let tier = TIERS.into_iter().find(|tier| self.tiers.get(tier).is_some_and(|it| it.model == *model));
        Err(UnpricedModel { model: (*model).to_owned(), tier: tier.unwrap_or("heavy") })
    }
}

/// A model as it is asked here: no other answers in its place, since it is this one that is looked at.
pub fn resolve_model(model: &ModelConfig, prices: &ModelPrices, max_output: u32) -> ModelConfig {
    let max_output_tokens = if model.max_output_tokens == 0 { max_output } else { model.max_output_tokens };
    let price = model.price.or_else(|| ModelPrice::of_model(prices, &model.model));
    ModelConfig { fallbacks: Vec::new(), max_output_tokens, price, ..model.clone() }
}
