//! Asking models by the command itself, for decisions of a log again and in forks: with the models that the services are configured
//! with ([`crate::models`]), and within a budget ([`kairo_fork::model_calls`]).
//!
//! * `settings`: the models of each lane, with their prices, as the services' configuration names them
//! * `asker`: who asks for decisions again

mod asker;
mod settings;

use std::sync::Arc;

use clap::Args;
use kairo_agent_runtime::{EmptyPartStore, PartStore};
use kairo_core::prices;
use kairo_fork::model_calls::{ForkModels, MAX_OUTPUT, Terms};

pub use self::{
    asker::Asker,
    settings::{AskingSettings, TierReplacement},
};
use crate::{
    Error,
    agent_log::LogSource,
    models::{self, ModelsConfiguration},
    objects,
};

/// Ask models, and what that may cost
#[derive(Clone, Debug, Default, Args)]
#[group(id = "asking")]
pub struct AskingOptions {
    #[command(flatten)]
    pub models: models::ModelsOptions,
    /// Budget for models, such as 0.50, in the currency of the configured prices; 0 asks nothing and tells what it
    /// would cost, and `none` sets no bound
    #[arg(long, value_parser = parse_budget, value_name = "AMOUNT|none")]
    budget: Option<ModelBudget>,
    /// Longest answer, in tokens, of a model whose configuration leaves that to the endpoint; so much is held of the budget
    /// for each call under way
    #[arg(long, default_value_t = MAX_OUTPUT, value_parser = clap::value_parser!(u32).range(1..=1_000_000), value_name = "TOKENS")]
    max_output: u32,
}

/// The budget for models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelBudget {
    Unbounded,
    /// In units of [`prices::TokenCost`].
    Units(u64),
}

/// For clap.
fn parse_budget(text: &str) -> Result<ModelBudget, String> {
    match text {
        "none" => Ok(ModelBudget::Unbounded),
        text => prices::parse_budget(text).map(ModelBudget::Units).ok_or_else(|| {
            "expected a decimal number from 0 to 1000000 with at most 6 decimal places, such as 0.50, or none"
                .to_owned()
        }),
    }
}

impl AskingOptions {
    /// Returns true if a budget is given, `none` included.
    pub fn is_bounded(&self) -> bool {
        self.budget.is_some()
    }
}

/// Builds the access to models for requests that the log of a fork has no answer to.
///
/// # Errors
/// Returns an error if a budget is to be kept and a model has no price.
pub fn build_fork_asking(
    configured: &ModelsConfiguration,
    options: &AskingOptions,
    parts: Arc<dyn PartStore>,
) -> Result<ForkModels, Error> {
    let ModelsConfiguration { agent_runtime, models, gateway } = configured;
    let most = match options.budget {
        Some(ModelBudget::Units(units)) => Some(units),
        Some(ModelBudget::Unbounded) | None => None,
    };
    let prices = &gateway.prices;
    let currency = settings::currency(gateway);
    let max_output = options.max_output;
    let room = agent_runtime.max_loaded_bytes;
    let terms = Terms { models, prices, currency, most, max_output, room };
    ForkModels::new(&terms, parts).map_err(settings::missing_price_error)
}

/// Returns the store of the images, audio and video that the log names; without one, models are told that they are
/// missing.
///
/// # Errors
/// Returns an error if a file cannot be read or was altered since its export.
pub fn open_media(source: &LogSource<'_>) -> Result<Arc<dyn PartStore>, Error> {
    Ok(objects::open(source)?.unwrap_or_else(|| Arc::new(EmptyPartStore)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_decimal_number_or_none() {
        assert_eq!(parse_budget("none"), Ok(ModelBudget::Unbounded));
        assert_eq!(parse_budget("0.000001"), Ok(ModelBudget::Units(1_000_000)));
        assert_eq!(parse_budget("0"), Ok(ModelBudget::Units(0)));
        for wrong in ["", "-1", "1e3", "all", "0.0000001", "1,5"] {
            assert!(parse_budget(wrong).unwrap_err().contains("such as 0.50, or none"), "{wrong}");
        }
    }
}
