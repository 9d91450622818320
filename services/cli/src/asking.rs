//! Asking models by the command itself, for decisions of a log again and in forks: with the models that the services are configured
//! with ([`models`](crate::models)), and within a budget ([`kairo_fork::asking`]).
//!
//! * `settings`: the models of each lane, with their prices, as the services' configuration names them
//! * `asker`: who asks for decisions again

mod asker;
mod settings;

use std::sync::Arc;

use clap::Args;
use kairo_agent_runtime::{NoParts, Parts};
use kairo_core::prices;
use kairo_fork::asking::{Forking, MAX_OUTPUT, Terms};

pub use self::{
    asker::Asker,
    settings::{Replaced, Settings},
};
use crate::{
    Error,
    agent_log::Source,
    models::{self, Configured},
    objects,
};

/// Ask models, and what that may cost
#[derive(Clone, Debug, Default, Args)]
#[group(id = "asking")]
pub struct Options {
    #[command(flatten)]
    pub models: models::Options,
    /// Budget for models, such as 0.50, in the currency of the configured prices; 0 asks nothing and tells what it
    /// would cost, and `none` sets no bound
    #[arg(long, value_parser = budget, value_name = "AMOUNT|none")]
    budget: Option<Most>,
    /// Longest answer, in tokens, of a model whose configuration leaves that to the endpoint; so much is held of the budget
    /// for each call under way
    #[arg(long, default_value_t = MAX_OUTPUT, value_parser = clap::value_parser!(u32).range(1..=1_000_000), value_name = "TOKENS")]
    max_output: u32,
}

/// The budget for models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    Unbounded,
    /// In units of [`prices::Cost`].
    Units(u64),
}

/// For clap.
fn budget(text: &str) -> Result<Most, String> {
    match text {
        "none" => Ok(Most::Unbounded),
        text => prices::spendable(text).map(Most::Units).ok_or_else(|| {
            "expected a decimal number from 0 to 1000000 with at most 6 decimal places, such as 0.50, or none"
                .to_owned()
        }),
    }
}

impl Options {
    /// Returns true if a budget is given, `none` included.
    pub fn is_bounded(&self) -> bool {
        self.budget.is_some()
    }
}

/// Builds the access to models for requests that the log of a fork has no answer to.
///
/// # Errors
/// Returns an error if a budget is to be kept and a model has no price.
pub fn forking(configured: &Configured, options: &Options, parts: Arc<dyn Parts>) -> Result<Forking, Error> {
    let Configured { agent_runtime, models, gateway } = configured;
    let most = match options.budget {
        Some(Most::Units(units)) => Some(units),
        Some(Most::Unbounded) | None => None,
    };
    let (prices, currency) = (&gateway.prices, settings::currency(gateway));
    let (max_output, room) = (options.max_output, agent_runtime.max_loaded_bytes);
    let terms = Terms { models, prices, currency, most, max_output, room };
    Forking::new(&terms, parts).map_err(settings::no_price)
}

/// Returns the store of the images, audio and video that the log names; without one, models are told that they are
/// missing.
///
/// # Errors
/// Returns an error if a file cannot be read or was altered since its export.
pub fn parts(source: &Source<'_>) -> Result<Arc<dyn Parts>, Error> {
    Ok(objects::of(source)?.unwrap_or_else(|| Arc::new(NoParts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_decimal_number_or_none() {
        assert_eq!(budget("none"), Ok(Most::Unbounded));
        assert_eq!(budget("0.000001"), Ok(Most::Units(1_000_000)));
        assert_eq!(budget("0"), Ok(Most::Units(0)));
        for wrong in ["", "-1", "1e3", "all", "0.0000001", "1,5"] {
            assert!(budget(wrong).unwrap_err().contains("such as 0.50, or none"), "{wrong}");
        }
    }
}
