//! One model call after another, each of them paid for before it is made.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use kairo_agent_runtime::{Models, Parts, Pauses, Received, answered};
use kairo_core::prices::Cost;
use kairo_fork::asking::{Account, Lane, NoMoney, at_most, cost};
use kairo_mind::deliberation::Question;
use kairo_proto::v1::Completion;
use kairo_replay::lanes;

use super::settings::Settings;

/// The client for the models of both lanes, which share one account.
pub struct Asker {
    lanes: [(Lane, Arc<Models>); 2],
    pub account: Account,
    retry_pause: Duration,
    pauses: Pauses,
}

/// The result of a round of calls.
#[derive(Debug, Default)]
pub struct Round {
    pub completions: Vec<Completion>,
    pub calls: u64,
    /// `None` if a price is not known.
    pub cost: Option<Cost>,
}

impl Asker {
    pub fn new(settings: &Settings, parts: &Arc<dyn Parts>) -> Self {
        let [control, candidate] = settings.models(parts);
        Self {
            lanes: [(settings.control.clone(), control), (settings.candidate.clone(), candidate)],
            account: Account::new(settings.most),
            retry_pause: settings.retry_pause,
            pauses: Pauses::default(),
        }
    }

    /// Summarizes the calls made and their cost, beside the expected calls and cost.
    pub fn came_to(&self, (expected_calls, expected_cost): (u64, Option<Cost>), ended: lanes::Ended) -> lanes::CameTo {
        let budget = self.account.budget();
        lanes::CameTo {
            expected_calls,
            expected_cost: expected_cost.map(|cost| cost.to_string()),
            budget: self.account.most.map(|units| Cost::of_units(units).to_string()),
            calls: budget.calls(),
            cost: expected_cost.map(|_| budget.spent().to_string()),
            ended,
        }
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
        let at_most = at_most(model, &question.request);
        let held = self.account.begin(at_most.unwrap_or_default()).await?;
        // As agents do before another try of a call; nobody else tries at the same time.
        tokio::time::sleep(self.pauses.before(question, self.retry_pause, u16::MAX)).await;
        let completion = answered(models.as_ref(), question, &Received::default(), None).await;
        self.pauses.note(question, &completion);
        let cost = model.price.zip(at_most).map(|(price, at_most)| cost(price, &completion, at_most));
        held.end(cost.unwrap_or_default());
        Ok((completion, cost))
    }
}
