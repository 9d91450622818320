//! Asking models what a log has no answer to, within a budget.
//!
//! * `lane`: who is asked in each tier, with what that costs
//! * `account`: what calls cost, each paid for before it is made
//! * `forking`: who asks what a fork's log has no answer to

mod account;
mod fork_models;
mod lane_models;

pub use self::{
    account::{BudgetExhausted, CallAccount, charged_cost, highest_cost},
    fork_models::{ForkModels, ForkSpending, Terms},
    lane_models::{LaneModels, TIERS, UnpricedModel, resolve_model},
};

/// Longest answer, in tokens, of a model whose configuration leaves that to the endpoint, unless somebody says otherwise.
pub const MAX_OUTPUT: u32 = 8_192;
