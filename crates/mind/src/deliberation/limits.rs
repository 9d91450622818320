//! The configuration that decisions rest on; it is in the log, too.

use std::collections::BTreeMap;

use crate::{prices::PriceList, tool_offering::ListingLimits};

/// The rules of this build by which memories are written and threads are summed up.
pub const MEMORY_RULES: u32 = 1;

/// Limits of deciding.
#[derive(Clone, Debug)]
pub struct DecisionLimits {
    /// Answers of the heavy model in one turn when the profile does not say.
    pub max_steps: u32,
    /// Tries of one model call, the first included.
    pub tries: u32,
    /// Tries of one model call that finds its endpoint away, overloaded or busy, the first included. 0 for as many as `tries`.
    pub outage_tries: u32,
    /// Tools called at once.
    pub parallel_tools: usize,
    /// Steps a chain may have.
    pub chain_steps: usize,
    /// Key under which secrets are sealed.
    pub secret_key: Option<[u8; 32]>,
    /// Prices of the models that may be asked.
    pub prices: PriceList,
    /// Tokens that the models of each tier take at once; nothing is summed up for the sake of tiers that are missing.
    pub context_tokens: BTreeMap<String, usize>,
    /// From how many tools on a request lists a few of them.
    pub listing: ListingLimits,
    /// By which rules memories are written and threads are summed up, as in `DecisionBasis`; 0 for those of older builds.
    pub memory_rules: u32,
    /// Digest of the [basis](crate::build_pin) that says all of this, and more.
    pub basis: String,
}

impl DecisionLimits {
    /// Those of builds before epoch 10 whose logs do not say them.
    pub fn of_old_build() -> Self {
        Self { outage_tries: 0, listing: ListingLimits::ALL, memory_rules: 0, ..Self::default() }
    }

    /// Returns true if decisions are made as builds before epoch 10 made them, whose logs do not record `outage_tries`:
    /// a replay must come to the same decisions.
    pub fn is_of_old_build(&self) -> bool {
        self.outage_tries == 0
    }
}

impl Default for DecisionLimits {
    fn default() -> Self {
        Self {
            max_steps: 12,
            tries: 3,
            outage_tries: 8,
            parallel_tools: 8,
            chain_steps: 64,
            secret_key: None,
            prices: PriceList::default(),
            context_tokens: BTreeMap::new(),
            listing: ListingLimits::default(),
            memory_rules: MEMORY_RULES,
            basis: String::new(),
        }
    }
}
