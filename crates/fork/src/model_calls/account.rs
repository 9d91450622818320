//! The account for model calls: each call is paid for before it is made.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kairo_agent_runtime::ModelConfig;
use kairo_core::prices::{ModelPrice, TokenCost, TokenCounts};
use kairo_mind::{deliberation::LATE, request::ModelRequest, tokens};
use kairo_proto::v1::Completion;
use kairo_replay::lanes::budget::{Budget, Permission};
use tokio::sync::Notify;

/// Failures after which nobody knows what the endpoint has written, and charges.
const UNTOLD: [&str; 3] = ["model_timeout", "malformed_answer", LATE];

/// A budget that several calls are paid from at once.
pub struct CallAccount {
    budget: Mutex<Budget>,
    /// A call has ended, so what it held is free.
    ended: Notify,
    /// None without a bound.
    pub most: Option<u64>,
}

/// The budget that is left does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetExhausted;

/// The highest cost of a call, held for it. A call that nobody waits for any more is charged in full.
pub struct HeldCost<'a> {
    account: &'a CallAccount,
    at_most: TokenCost,
    cost: TokenCost,
}

impl CallAccount {
    pub fn new(most: Option<u64>) -> Self {
        Self { budget: Mutex::new(Budget::new(most)), ended: Notify::new(), most }
    }

    /// Returns the budget, with the amount spent and the number of calls up to now.
    pub fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason for which a call is not made.
    pub fn refusal_reason(&self) -> String {
        let wanting =
            self.budget().refused_cost().map(|cost| format!(": the next call may cost {cost}")).unwrap_or_default();
        format!("what is left of the budget does not suffice{wanting}")
    }

    /// Holds what a call costs at most; waits where calls under way may leave it.
    pub async fn hold(&self, at_most: TokenCost) -> Result<HeldCost<'_>, BudgetExhausted> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Whatever ends from here on is not missed.
            ended.as_mut().enable();
            let may = self.budget().begin(at_most);
            match may {
                Permission::Begin => return Ok(HeldCost { account: self, at_most, cost: at_most }),
                Permission::Refuse => {
                    // Those that wait are told the same.
                    self.ended.notify_waiters();
                    return Err(BudgetExhausted);
                }
                Permission::Wait => ended.await,
            }
        }
    }
}

impl HeldCost<'_> {
    /// The call has ended, and cost this.
    pub fn settle(mut self, cost: TokenCost) {
        self.cost = cost;
    }
}

impl Drop for HeldCost<'_> {
    fn drop(&mut self) {
        self.account.budget().end(self.at_most, self.cost);
        self.account.ended.notify_waiters();
    }
}

/// Returns the highest cost of a call: its request, as it is counted here, and the longest answer. None if the price
/// is not known.
pub fn highest_cost(model: &ModelConfig, request: &ModelRequest) -> Option<TokenCost> {
    let input = model.to_model_tokens(tokens::of_request(request));
    model.price.map(|price| price.uncached_cost(input, model.max_output_tokens.into()))
}

/// Returns the cost of a call, as the endpoint reports it. Without a report, it is `at_most`: an answer that did not
/// arrive is charged as well.
pub fn charged_cost(price: ModelPrice, completion: &Completion, at_most: TokenCost) -> TokenCost {
    let &Completion { input_tokens, cached_tokens, output_tokens, .. } = completion;
    let said = input_tokens > 0 || output_tokens > 0;
    let told = || price.cost_of(TokenCounts { input_tokens, cached_tokens, output_tokens });
    match &completion.error {
        None if said => told(),
        Some(error) if !UNTOLD.contains(&error.kind.as_str()) => told(),
        _ => at_most,
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use kairo_proto::v1::CompletionError;

    use super::*;

    fn completion(tokens: [u64; 2], error: &str) -> Completion {
        let [input_tokens, output_tokens] = tokens;
        let error = CompletionError {
            kind: error.to_owned(),
            message: "Incorrect key sk-1".into(),
            transient: false,
            ..Default::default()
        };
        let error = Some(error).filter(|error| !error.kind.is_empty());
        Completion { input_tokens, output_tokens, error, ..Completion::default() }
    }

    #[test]
    fn what_the_endpoint_does_not_say_costs_the_most_it_may() {
        let price: ModelPrice = serde_json::from_str(r#"{ "input": 1, "output": 2 }"#).unwrap();
        let of = |tokens, error| charged_cost(price, &completion(tokens, error), price.uncached_cost(9, 9)).to_string();
        assert_eq!(of([3, 4], ""), "0.000011");
        assert_eq!(of([0, 0], ""), "0.000027");
        assert_eq!(of([0, 0], "model_refused"), "0");
        assert_eq!(of([3, 0], "model_timeout"), "0.000027");
    }

    #[test]
    fn whoever_waits_for_a_call_that_is_given_up_is_told_that_nothing_is_left() {
        let account = CallAccount::new(Some(100));
        let half = TokenCost::of_units(60);
        let given_up = account.hold(half).now_or_never().unwrap().ok().unwrap();
        let mut waits = Box::pin(account.hold(half));
        assert!(waits.as_mut().now_or_never().is_none(), "the first may cost less");
        drop(given_up);
        assert!(waits.now_or_never().unwrap().is_err());
        let budget = account.budget();
        assert_eq!((budget.total_spent(), budget.calls()), (half, 1));
    }
}
