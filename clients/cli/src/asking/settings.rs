//! The models that are asked, as the services' configuration names them.

use std::{sync::Arc, time::Duration};

use kairo_agent_runtime::{Models, PartStore};
use kairo_core::prices::TokenCost;
use kairo_fork::model_calls::{LaneModels, TIERS, UnpricedModel};

use super::{AskingOptions, ModelBudget};
use crate::{
    Error,
    models::{GatewayPrices, ModelsConfiguration},
};

/// The currency of prices if the configuration names none.
const CURRENCY: &str = "USD";

/// A model that the candidate lane asks in the place of a tier's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierReplacement {
    pub tier: &'static str,
    pub model: String,
}

impl TierReplacement {
    /// For clap: `NAME` for the heavy tier, or `TIER=NAME`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || format!("expected the name of a model, or one of {} with = and a name", TIERS.join(", "));
        let (tier, model) = text.split_once('=').unwrap_or(("heavy", text));
        let tier = TIERS.into_iter().find(|known| *known == tier.trim()).ok_or_else(expected)?;
        let model = model.trim().to_owned();
        if model.is_empty() { Err(expected()) } else { Ok(Self { tier, model }) }
    }

    /// Returns the option as it is written on the command line.
    pub fn to_option_text(&self) -> String {
        format!("model {}={}", self.tier, self.model)
    }
}

/// The models of both lanes, and what they may cost.
pub struct AskingSettings {
    pub control: LaneModels,
    pub candidate: LaneModels,
    /// None without a bound.
    pub most: Option<u64>,
    pub currency: String,
    pub retry_pause: Duration,
    room: u64,
}

impl AskingSettings {
    /// Reads the settings from the command line, the configuration and the environment.
    ///
    /// # Errors
    /// Returns an error if they cannot be read, a model that needs a price has none, or no budget is given.
    pub fn load(options: &AskingOptions, replaced: &[TierReplacement]) -> Result<Self, Error> {
        match options.models.load()? {
            (configured, true) => Self::from_configuration(configured, options, replaced),
            (_, false) => Err(Error::Usage(
                "no model is configured: expected --config, variables such as KAIRO_MODELS__HEAVY__BASE_URL, or a `kairo dev` that \
                 runs here"
                    .to_owned(),
            )),
        }
    }

    fn from_configuration(
        configured: ModelsConfiguration,
        options: &AskingOptions,
        replaced: &[TierReplacement],
    ) -> Result<Self, Error> {
        let ModelsConfiguration { agent_runtime, models, gateway } = configured;
        let control = LaneModels::from_config(&models, &gateway.prices, options.max_output);
        let others = replaced.iter().map(|it| (it.tier, it.model.as_str()));
        let candidate = control.with_replaced(others, &models, &gateway.prices, options.max_output);
        let most = match options.budget {
            None => return Err(missing_budget_error()),
            Some(ModelBudget::Unbounded) => None,
            Some(ModelBudget::Units(units)) => {
                control.ensure_priced().and_then(|()| candidate.ensure_priced()).map_err(missing_price_error)?;
                Some(units)
            }
        };
        let currency = currency(&gateway);
        let retry_pause = Duration::from_millis(agent_runtime.retry_pause_ms);
        Ok(Self { control, candidate, most, currency, retry_pause, room: agent_runtime.max_loaded_bytes })
    }

    /// The models of both lanes, ready to be asked: the same where they are the same, so that their bounds are, too.
    pub fn models(&self, parts: &Arc<dyn PartStore>) -> [Arc<Models>; 2] {
        let made = |lane: &LaneModels| Arc::new(Models::new(&lane.config(), parts.clone(), self.room));
        let control = made(&self.control);
        let is_same = self.control.names() == self.candidate.names();
        let candidate = if is_same { control.clone() } else { made(&self.candidate) };
        [control, candidate]
    }
}

impl AskingSettings {
    /// Describes the expected cost and the budget in words.
    pub fn describe_costs(&self, cost: Option<TokenCost>) -> (String, String) {
        let currency = &self.currency;
        let cost =
            cost.map_or("at prices that are not known".to_owned(), |cost| format!("for about {cost} {currency}"));
        let budget = |units| format!("a budget of {} {currency}", TokenCost::of_units(units));
        (cost, self.most.map_or("no budget".to_owned(), budget))
    }
}

/// Returns the currency of the configured prices, USD by default.
pub fn currency(gateway: &GatewayPrices) -> String {
    if gateway.currency.is_empty() { CURRENCY.to_owned() } else { gateway.currency.clone() }
}

/// Returns the error for a budget that cannot be kept without prices.
pub fn missing_price_error(unpriced: UnpricedModel) -> Error {
    Error::Usage(format!("{unpriced}; or --budget none"))
}

fn missing_budget_error() -> Error {
    Error::Usage("--budget: expected what models may cost, such as 0.50, or none: they are asked, and cost".to_owned())
}

#[cfg(test)]
mod tests {
    use kairo_agent_runtime::ModelConfig;
    use serde_json::{Value, json};

    use super::*;

    fn settings(configured: Value, budget: Option<ModelBudget>, replaced: &[&str]) -> Result<AskingSettings, String> {
        let configured: ModelsConfiguration = serde_json::from_value(configured).unwrap();
        let options = AskingOptions { budget, max_output: 100, ..AskingOptions::default() };
        let replaced: Vec<TierReplacement> =
            replaced.iter().map(|text| TierReplacement::parse(text).unwrap()).collect();
        AskingSettings::from_configuration(configured, &options, &replaced).map_err(|error| error.to_string())
    }

    #[test]
    fn a_model_is_named_for_a_tier() {
        assert_eq!(TierReplacement::parse("m"), Ok(TierReplacement { tier: "heavy", model: "m".into() }));
        assert_eq!(TierReplacement::parse("light=a/m"), Ok(TierReplacement { tier: "light", model: "a/m".into() }));
        for wrong in ["", "slow=m", "fast="] {
            assert!(TierReplacement::parse(wrong).unwrap_err().contains("heavy, fast, light"), "{wrong}");
        }
    }

    #[test]
    fn a_model_that_is_configured_anywhere_is_asked_as_it_is_there() {
        let other = json!({ "model": "b", "base_url": "http://other/v1", "price": { "input": 1, "output": 2 } });
        let heavy =
            json!({ "model": "a", "fallbacks": [other], "max_output_tokens": 7, "price": { "input": 3, "output": 4 } });
        let configured =
            json!({ "models": { "heavy": heavy }, "gateway": { "prices": { "c*": { "input": 5, "output": 6 } } } });
        let settings = settings(configured, Some(ModelBudget::Units(1)), &["b", "light=c1"]).unwrap();
        let of = |lane: &LaneModels, tier: &str| {
            let model = lane.model(tier).unwrap();
            (
                model.model.clone(),
                model.base_url.clone(),
                model.max_output_tokens,
                model.price.unwrap().input.to_string(),
            )
        };
        let default = ModelConfig::default().base_url;
        assert_eq!(of(&settings.control, "light"), ("a".into(), default.clone(), 7, "3".into()));
        assert_eq!(of(&settings.candidate, "heavy"), ("b".into(), "http://other/v1".into(), 100, "1".into()));
        assert_eq!(of(&settings.candidate, "fast"), ("a".into(), default.clone(), 7, "3".into()), "only that tier is");
        assert_eq!(of(&settings.candidate, "light"), ("c1".into(), default, 7, "5".into()));
        assert!(settings.control.model("heavy").unwrap().fallbacks.is_empty(), "no other answers in its place");
    }

    #[test]
    fn what_may_be_spent_is_said_and_a_model_without_a_price_is_named_with_its_key() {
        let told = |budget, replaced: &[&str]| {
            let priced = json!({ "models": { "heavy": { "model": "a", "api_key": "hush", "price": { "input": 1, "output": 2 } } } });
            settings(priced, budget, replaced).err().unwrap_or_default()
        };
        assert!(told(None, &[]).starts_with("--budget: expected"));
        assert_eq!(told(Some(ModelBudget::Units(1)), &[]), "");
        let unpriced = told(Some(ModelBudget::Units(1)), &["fast=b"]);
        assert!(unpriced.contains("the model b has no price") && unpriced.contains("models.fast.price"), "{unpriced}");
        assert!(!unpriced.contains("hush"));
        assert_eq!(told(Some(ModelBudget::Unbounded), &["fast=b"]), "");
    }
}
