//! One model call after another, each of them paid for before it is made.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use kairo_agent_runtime::{ModelConfig, Models, Parts, Received, answered};
use kairo_core::prices::{Cost, Price};
use kairo_mind::{
    deliberation::{LATE, Question},
    tokens,
};
use kairo_proto::v1::Completion;
use kairo_replay::lanes::{
    self,
    budget::{Budget, May},
};
use tokio::sync::Notify;

use super::settings::{Lane, Settings};

/// Failures after which nobody knows what the endpoint has written, and charges.
const UNTOLD: [&str; 3] = ["model_timeout", "malformed_answer", LATE];

/// Who asks the models of both lanes.
pub struct Asker {
    lanes: [(Lane, Arc<Models>); 2],
    budget: Mutex<Budget>,
    /// A call has ended, so what it held is free.
    ended: Notify,
    retry_pause: Duration,
    most: Option<u64>,
}

/// What is left does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMoney;

/// What a round of calls came to.
#[derive(Debug, Default)]
pub struct Round {
    pub completions: Vec<Completion>,
    pub calls: u64,
    /// None where a price is not known.
    pub cost: Option<Cost>,
}

impl Asker {
    pub fn new(settings: &Settings, parts: &Arc<dyn Parts>) -> Self {
        let [control, candidate] = settings.models(parts);
        Self {
            lanes: [(settings.control.clone(), control), (settings.candidate.clone(), candidate)],
            budget: Mutex::new(Budget::new(settings.most)),
            ended: Notify::new(),
            retry_pause: settings.retry_pause,
            most: settings.most,
        }
    }

    /// What was spent up to now, and how many calls were made.
    pub fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What asking came to, of which this was expected.
    pub fn came_to(&self, (expected_calls, expected_cost): (u64, Option<Cost>), ended: lanes::Ended) -> lanes::CameTo {
        let budget = self.budget();
        lanes::CameTo {
            expected_calls,
            expected_cost: expected_cost.map(|cost| cost.to_string()),
            budget: self.most.map(|units| Cost::of_units(units).to_string()),
            calls: budget.calls(),
            cost: expected_cost.map(|_| budget.spent().to_string()),
            ended,
        }
    }

    /// Why a call is not made.
    pub fn no_money(&self) -> String {
        let wanting =
            self.budget().wanting().map(|cost| format!(": the next call may cost {cost}")).unwrap_or_default();
        format!("what is left of the budget does not suffice{wanting}")
    }

    /// Asks all of these at once; the answers in their order. Where the money ends on the way, those that were asked are paid all the
    /// same, which stands in the round.
    pub async fn ask(&self, lane: lanes::Lane, questions: &[Question]) -> (Round, Result<(), NoMoney>) {
        let mut round = Round { cost: Some(Cost::default()), ..Round::default() };
        let mut outcome = Ok(());
        for answer in join_all(questions.iter().map(|question| self.ask_one(lane, question))).await {
            match answer {
                Ok((completion, cost)) => {
                    round.completions.push(completion);
                    round.calls += 1;
                    round.cost = round.cost.zip(cost).map(|(sum, cost)| sum.plus(cost));
                }
                Err(no_money) => outcome = Err(no_money),
            }
        }
        (round, outcome)
    }

    async fn ask_one(&self, lane: lanes::Lane, question: &Question) -> Result<(Completion, Option<Cost>), NoMoney> {
        let [control, candidate] = &self.lanes;
        let (lane, models) = match lane {
            lanes::Lane::Control => control,
            lanes::Lane::Candidate => candidate,
        };
        let Some(model) = lane.model(question.request.tier) else { return Err(NoMoney) };
        let at_most = at_most(model, question);
        self.begin(at_most.unwrap_or_default()).await?;
        self.pause(question.attempt).await;
        let completion = answered(models.as_ref(), question, &Received::default(), None).await;
        let cost = model.price.zip(at_most).map(|(price, at_most)| cost(price, &completion, at_most));
        self.budget().end(at_most.unwrap_or_default(), cost.unwrap_or_default());
        self.ended.notify_waiters();
        Ok((completion, cost))
    }

    /// Holds what a call costs at most; waits where calls under way may leave it.
    async fn begin(&self, at_most: Cost) -> Result<(), NoMoney> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Whatever ends from here on is not missed.
            ended.as_mut().enable();
            let may = self.budget().begin(at_most);
            match may {
                May::Begin => return Ok(()),
                May::Not => {
                    // Those that wait are told the same.
                    self.ended.notify_waiters();
                    return Err(NoMoney);
                }
                May::Wait => ended.await,
            }
        }
    }

    /// As agents do before another try of a call.
    async fn pause(&self, attempt: u32) {
        if attempt > 1 {
            tokio::time::sleep(self.retry_pause.saturating_mul(1 << (attempt - 2).min(10))).await;
        }
    }
}

/// What a call costs at most: its request, as it is counted here, and the longest answer. None where the price is not known.
fn at_most(model: &ModelConfig, question: &Question) -> Option<Cost> {
    let input = model.own_tokens(tokens::of_request(&question.request));
    model.price.map(|price| price.cost(input, model.max_output_tokens.into()))
}

/// What a call cost, as the endpoint says. Where it does not, the most it may be: an answer that did not arrive is charged as well.
fn cost(price: Price, completion: &Completion, at_most: Cost) -> Cost {
    let said = completion.input_tokens > 0 || completion.output_tokens > 0;
    match &completion.error {
        None if said => price.cost(completion.input_tokens, completion.output_tokens),
        Some(error) if !UNTOLD.contains(&error.kind.as_str()) => {
            price.cost(completion.input_tokens, completion.output_tokens)
        }
        _ => at_most,
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::CompletionError;

    use super::*;

    fn completion(tokens: [u64; 2], error: &str) -> Completion {
        let [input_tokens, output_tokens] = tokens;
        let error = CompletionError { kind: error.to_owned(), message: "Incorrect key sk-1".into(), transient: false };
        let error = Some(error).filter(|error| !error.kind.is_empty());
        Completion { input_tokens, output_tokens, error, ..Completion::default() }
    }

    #[test]
    fn what_the_endpoint_does_not_say_costs_the_most_it_may() {
        let price: Price = serde_json::from_str(r#"{ "input": 1, "output": 2 }"#).unwrap();
        let of = |tokens, error| cost(price, &completion(tokens, error), price.cost(9, 9)).to_string();
        assert_eq!(of([3, 4], ""), "0.000011");
        assert_eq!(of([0, 0], ""), "0.000027");
        assert_eq!(of([0, 0], "model_refused"), "0");
        assert_eq!(of([3, 0], "model_timeout"), "0.000027");
    }
}
