//! Options that bound what may be spent on models.

use clap::Args;
use kairo_proto::v1::GivenCaps;
use serde_json::{Map, Value};

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
    /// The caps that are given, zeros included, which take a cap away.
    pub(super) fn into_fields(self) -> Option<Map<String, Value>> {
        let given = [
            ("tokens_per_day", self.cap_tokens_per_day.map(Value::from)),
            ("tokens_in_total", self.cap_tokens.map(Value::from)),
            ("cost_per_day", self.cap_cost_per_day.map(Value::from)),
            ("cost_in_total", self.cap_cost.map(Value::from)),
        ];
        let given = given.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
        Some(given.collect::<Map<_, _>>()).filter(|fields| !fields.is_empty())
    }

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
