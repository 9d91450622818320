//! One model call after another, each of them paid for before it is made.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use kairo_agent_runtime::{Models, PartStore, Pauses, ProgressHandle, complete_with_deadline};
use kairo_core::prices::TokenCost;
use kairo_fork::model_calls::{BudgetExhausted, CallAccount, LaneModels, charged_cost, highest_cost};
use kairo_mind::deliberation::ModelQuestion;
use kairo_proto::v1::Completion;
use kairo_replay::lanes;

use super::settings::AskingSettings;

/// The client for the models of both lanes, which share one account.
pub struct Asker {
    lanes: [(LaneModels, Arc<Models>); 2],
    pub account: CallAccount,
    retry_pause: Duration,
    pauses: Pauses,
}

/// The result of a round of calls.
#[derive(Debug, Default)]
pub struct Round {
    pub completions: Vec<Completion>,
    pub calls: u64,
    /// `None` if a price is not known.
    pub cost: Option<TokenCost>,
}

impl Asker {
    pub fn new(settings: &AskingSettings, parts: &Arc<dyn PartStore>) -> Self {
        let [control, candidate] = settings.models(parts);
        Self {
            lanes: [(settings.control.clone(), control), (settings.candidate.clone(), candidate)],
            account: CallAccount::new(settings.most),
            retry_pause: settings.retry_pause,
            pauses: Pauses::default(),
        }
    }

    /// Summarizes the calls made and their cost, beside the expected calls and cost.
    pub fn summarize_costs(
        &self,
        (expected_calls, expected_cost): (u64, Option<TokenCost>),
        ended: lanes::AskingEnd,
    ) -> lanes::ModelCallTotals {
        let budget = self.account.budget();
        lanes::ModelCallTotals {
            expected_calls,
            expected_cost: expected_cost.map(|cost| cost.to_string()),
            budget: self.account.most.map(|units| TokenCost::of_units(units).to_string()),
            calls: budget.calls(),
            cost: expected_cost.map(|_| budget.total_spent().to_string()),
            ended,
        }
    }

    /// Asks all of these at once; the answers in their order. Where the money ends on the way, those that were asked are paid all the
    /// same, which stands in the round.
    pub async fn ask(
        &self,
        lane: lanes::SamplingLane,
        questions: &[ModelQuestion],
    ) -> (Round, Result<(), BudgetExhausted>) {
        let mut round = Round { cost: Some(TokenCost::default()), ..Round::default() };
        let mut outcome = Ok(());
        for answer in join_all(questions.iter().map(|question| self.ask_one(lane, question))).await {
            match answer {
                Ok((completion, cost)) => {
                    round.completions.push(completion);
                    round.calls += 1;
                    round.cost = round.cost.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
                }
                Err(no_money) => outcome = Err(no_money),
            }
        }
        (round, outcome)
    }

    async fn ask_one(
        &self,
        lane: lanes::SamplingLane,
        question: &ModelQuestion,
    ) -> Result<(Completion, Option<TokenCost>), BudgetExhausted> {
        let [control, candidate] = &self.lanes;
        let (lane, models) = match lane {
            lanes::SamplingLane::Control => control,
            lanes::SamplingLane::Candidate => candidate,
        };
        let Some(model) = lane.model(question.request.tier) else { return Err(BudgetExhausted) };
        let at_most = highest_cost(model, &question.request);
        let held = self.account.hold(at_most.unwrap_or_default()).await?;
        // As agents do before another try of a call; nobody else tries at the same time.
        tokio::time::sleep(self.pauses.before(question, self.retry_pause, u16::MAX)).await;
        let completion = complete_with_deadline(models.as_ref(), question, &ProgressHandle::default(), None).await;
        self.pauses.note(question, &completion);
        let cost = model.price.zip(at_most).map(|(price, at_most)| charged_cost(price, &completion, at_most));
        held.settle(cost.unwrap_or_default());
        Ok((completion, cost))
    }
}
