//! Asking models what a log has no answer to, within a budget.
//!
//! * `lane`: who is asked in each tier, with what that costs
//! * `account`: what calls cost, each paid for before it is made
//! * `forking`: who asks what a fork's log has no answer to

mod account;
mod forking;
mod lane;

pub use self::{
    account::{Account, NoMoney, at_most, cost},
    forking::{Forking, Spent, Terms},
    lane::{Lane, TIERS, Unpriced, asked},
};

/// Longest answer, in tokens, of a model whose configuration leaves that to the endpoint, unless somebody says otherwise.
pub const MAX_OUTPUT: u32 = 8_192;
