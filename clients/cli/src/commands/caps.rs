//! Options that bound what may be spent on models.

use clap::Args;
use kairo_proto::v1::GivenCaps;

/// Caps of an agent or an API key.
#[derive(Debug, Args)]
pub(super) struct CapOptions {
    /// Tokens that may be used in a day, input and output (default: any number)
    #[arg(long, value_name = "N")]
    cap_tokens_per_day: Option<u64>,
    /// Tokens that may be used in total (default: any number)
    #[arg(long, value_name = "N")]
    cap_tokens: Option<u64>,
    /// Most that may be spent in a day, in the currency of the prices (default: any amount)
    #[arg(long, value_name = "AMOUNT")]
    cap_cost_per_day: Option<String>,
    /// Most that may be spent in total, in the currency of the prices (default: any amount)
    #[arg(long, value_name = "AMOUNT")]
    cap_cost: Option<String>,
}

impl CapOptions {
    /// Builds the caps from the options; `None` if nothing is bounded.
    pub(super) fn into_caps(self) -> Option<GivenCaps> {
        let caps = GivenCaps {
            tokens_per_day: self.cap_tokens_per_day.unwrap_or_default(),
            tokens_in_total: self.cap_tokens.unwrap_or_default(),
            cost_per_day: self.cap_cost_per_day.unwrap_or_default(),
            cost_in_total: self.cap_cost.unwrap_or_default(),
        };
        (caps != GivenCaps::default()).then_some(caps)
    }
}
