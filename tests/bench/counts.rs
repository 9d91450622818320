//! The requests to the simulator, by its own count.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Outcome;

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Count {
    pub requests: u64,
    pub open: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Counts {
    #[serde(flatten)]
    pub all: Count,
    /// By replica of agent-runtime.
    pub callers: BTreeMap<String, Count>,
}

/// Until now. `model` is the simulator's URL.
pub async fn counts(http: &reqwest::Client, model: &str) -> Outcome<Counts> {
    Ok(http.get(format!("{model}/v1/counts")).send().await?.error_for_status()?.json().await?)
}
