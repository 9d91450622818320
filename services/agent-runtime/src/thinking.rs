//! From one input to a committed decision: the pure core deliberates, models are asked on the way, and the decision is
//! written under the guard of its subject.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kairo_core::{
    bus::{Bus, BusError, append::Outgoing},
    envelope::Origin,
    ids::Name,
    ownership::lease::Lease,
    record::Record,
    subjects::{AGENT_DECISION, Service},
};
use kairo_mind::{
    deliberation::{Deliberation, Limits, Next, Question, decision_id},
    log::Input,
    request::ModelRequest,
    state::AgentState,
};
use kairo_proto::v1::{AgentDecision, Completion};
use tokio::sync::Semaphore;

use crate::{catalogue::CatalogueInForce, config::Config, live::Live, models::Answers};

/// What all agents of this replica think with.
pub struct Thinker {
    bus: Bus,
    models: Arc<dyn Answers>,
    catalogue: CatalogueInForce,
    limits: Limits,
    retry_pause: Duration,
    /// Decisions that are being made at once.
    room: Semaphore,
}

/// What thinking about an input came to.
#[derive(Debug)]
pub enum Thought {
    /// It stands in the log.
    Decided(Box<Record>),
    /// Somebody else wrote on the decision subject.
    Overtaken,
    /// There was nothing to decide after all.
    Nothing,
    /// The next try may do better.
    Failed(BusError),
}

/// Models' answers to requests made for one input, by the digest of the request. A decision that must be made again asks
/// for none of them twice.
#[derive(Clone, Debug, Default)]
pub struct Paid(Arc<Mutex<HashMap<String, Completion>>>);

impl Paid {
    /// The digest costs a look at the whole request, so it is made only where there is something to find.
    fn answer(&self, request: &ModelRequest) -> Option<Completion> {
        let paid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!paid.is_empty()).then(|| paid.get(&request.digest()).cloned()).flatten()
    }

    fn keep(&self, completion: &Completion) {
        if completion.error.is_none() {
            let mut paid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            paid.insert(completion.request_digest.clone(), completion.clone());
        }
    }
}

impl Thinker {
    pub fn new(bus: &Bus, config: &Config, models: Arc<dyn Answers>, catalogue: CatalogueInForce) -> Self {
        let own = &config.agent_runtime;
        Self {
            bus: bus.clone(),
            models,
            catalogue,
            limits: own.limits(),
            retry_pause: Duration::from_millis(own.retry_pause_ms),
            room: Semaphore::new(own.decisions_at_once),
        }
    }

    /// Decides on an input in this state. Waits for room first, in the order in which it was asked, and says when it has
    /// begun.
    pub async fn think(
        &self,
        agent: &Name,
        state: Arc<AgentState>,
        input: &Input,
        paid: Paid,
        lease: &Lease,
        begun: &AtomicBool,
    ) -> Thought {
        let Ok(_room) = self.room.acquire().await else { return Thought::Nothing };
        begun.store(true, Ordering::Relaxed);
        let catalogue = match self.catalogue.current().await {
            Ok(catalogue) => catalogue,
            Err(error) => return Thought::Failed(error),
        };
        let Some((mut deliberation, mut next)) = Deliberation::begin(&state, input, &catalogue, &self.limits) else {
            return Thought::Nothing;
        };
        let decision = loop {
            match next {
                Next::Commit(decision) => break decision,
                Next::Ask(questions) => {
                    let thread_id = deliberation.thread_id();
                    let asked = questions.iter().map(|it| self.ask(agent, &input.record, &thread_id, it, &paid, lease));
                    let completions = futures::future::join_all(asked).await;
                    (deliberation, next) = deliberation.resume(completions);
                }
            }
        };
        let thread_id = deliberation.thread_id();
        drop(deliberation);
        let guard = state.decided;
        match self.commit(agent, guard, &input.record, &thread_id, decision).await {
            Err(BusError::TooLarge { .. }) => {
                let instead = Deliberation::too_large(&state, input, &catalogue, &self.limits);
                let Some(instead) = instead else { return Thought::Nothing };
                told(self.commit(agent, guard, &input.record, &thread_id, instead).await)
            }
            outcome => told(outcome),
        }
    }

    /// Asks a model, unless it has answered this before. Nothing is asked while the log takes no answers, or by a replica
    /// that may have lost the agent.
    async fn ask(
        &self,
        agent: &Name,
        input: &Record,
        thread_id: &str,
        question: &Question,
        paid: &Paid,
        lease: &Lease,
    ) -> Completion {
        if let Some(completion) = paid.answer(&question.request) {
            return completion;
        }
        self.pause(question.attempt).await;
        self.bus.writes.flowing().await;
        lease.young().await;
        self.bus.standing.count_model_request();
        let live = question.speaks.then(|| Live::new(&self.bus, agent, &input.envelope, thread_id));
        let completion = self.models.complete(&question.request, live).await;
        paid.keep(&completion);
        completion
    }

    /// Waits before another try of a model call, longer each time.
    async fn pause(&self, attempt: u32) {
        if attempt > 1 {
            tokio::time::sleep(self.retry_pause.saturating_mul(1 << (attempt - 2).min(10))).await;
        }
    }

    async fn commit(
        &self,
        agent: &Name,
        guard: u64,
        input: &Record,
        thread_id: &str,
        decision: AgentDecision,
    ) -> Result<Record, BusError> {
        let envelope =
            input.envelope.follow(decision_id(input), Service::AgentRuntime, Origin::Internal, self.bus.now());
        let event = Outgoing::new(&AGENT_DECISION, agent, envelope.in_thread(thread_id), decision);
        let written = self.bus.commit(&event, guard).await?;
        let Outgoing { subject, envelope, body } = event;
        Ok(Record { sequence: written.sequence, subject, envelope, body })
    }
}

fn told(outcome: Result<Record, BusError>) -> Thought {
    match outcome {
        Ok(record) => Thought::Decided(Box::new(record)),
        Err(BusError::Conflict { .. }) => Thought::Overtaken,
        Err(error) => Thought::Failed(error),
    }
}
