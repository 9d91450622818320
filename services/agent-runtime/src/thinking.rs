//! From one input to a committed decision: the pure core deliberates, models are asked on the way, and the decision is
//! written under the guard of its subject.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use kairo_core::{
    bus::{Bus, BusError, append::Outgoing, epoch::EpochInForce, fence::Fence},
    envelope::{Envelope, Origin},
    event_json,
    hash_chain::Content,
    ids::Name,
    ownership::lease::Lease,
    personal::Whose,
    record::Record,
    sharing::{Holder, places::Places},
    subjects::{AGENT_DECISION, Service},
    synthetic,
    vocabulary::{ANSWERS, HASH_CHAINS, REASONING_DETAILS},
};
use kairo_mind::{
    basis,
    caps::CAP_REACHED,
    deliberation::{
        Deliberation, LATE, Limits, Next, Question, decision_id, with_cost_of_given_up, with_given_up, with_link,
        without_words,
    },
    log::Input,
    state::{AgentState, Profile},
};
use kairo_proto::v1::{AgentDecision, Completion, CompletionError, DecisionBasis};

use crate::{
    catalogue::CatalogueInForce,
    config::Config,
    drafts::Drafts,
    estimate,
    live::Live,
    measures,
    models::Answers,
    pauses::Pauses,
    received::{Received, SoFar},
    turn::{Paid, Stage, Turn},
};

/// The resources that all agents of this replica think with.
pub struct Thinker {
    bus: Bus,
    models: Arc<dyn Answers>,
    catalogue: CatalogueInForce,
    epoch: EpochInForce,
    drafts: Drafts,
    fence: Fence,
    limits: Limits,
    retry_pause: Duration,
    /// Decisions that are being made at once.
    room: Places,
    /// Those that are being prepared: what is worked on takes no room from users.
    work_room: Places,
}

/// The result of thinking about an input.
#[derive(Debug)]
pub enum Thought {
    /// It stands in the log, with this content.
    Decided(Box<Record>, Content),
    /// All answers are there of which it can be made.
    Prepared,
    /// It cannot be made of the answers that are there.
    Unprepared,
    /// Somebody else wrote on the decision subject.
    Overtaken,
    /// It is to be made elsewhere.
    Stopped,
    /// There was nothing to decide after all.
    Nothing,
    /// The next try may do better.
    Failed(BusError),
}

impl Thinker {
    /// `basis` is what decisions rest on, as it stands in the log.
    pub fn new(
        bus: &Bus,
        config: &Config,
        basis: &DecisionBasis,
        models: Arc<dyn Answers>,
        catalogue: CatalogueInForce,
        epoch: EpochInForce,
        drafts: Drafts,
    ) -> Self {
        let own = &config.agent_runtime;
        Self {
            bus: bus.clone(),
            models,
            catalogue,
            epoch,
            drafts,
            fence: Fence::default(),
            limits: Limits { secret_key: own.secret_key_bytes(), ..basis::limits(basis) },
            retry_pause: Duration::from_millis(own.retry_pause_ms),
            room: Places::shared(own.decisions_at_once),
            work_room: Places::shared(own.work_at_once),
        }
    }

    /// Sets the fence that says when no models may be asked.
    #[must_use]
    pub fn within(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// Decides on an input in this state. Waits for room first, in the order of users' shares, and says when it has begun.
    pub async fn think(
        &self,
        agent: &Name,
        state: Arc<AgentState>,
        input: &Input,
        paid: Paid,
        lease: &Lease,
        turn: &Turn,
    ) -> Thought {
        let room = if turn.stage == Stage::Prepare { &self.work_room } else { &self.room };
        let _room = room.wait(&holder(agent, &state, input)).await;
        turn.begin();
        let catalogue = match self.catalogue.current().await {
            Ok(catalogue) => catalogue,
            Err(error) => return Thought::Failed(error),
        };
        let writing = self.drafts.of(agent, input.record.envelope.id);
        let cause = as_cause(&input.record);
        let pauses = Pauses::default();
        let Some((mut deliberation, mut next)) = Deliberation::begin(&state, input, &catalogue, &self.limits) else {
            return Thought::Nothing;
        };
        let decision = loop {
            match next {
                Next::Commit(decision) => break *decision,
                Next::Ask(questions) => {
                    let thread_id = deliberation.thread_id();
                    let asked = questions.iter().map(async |question| {
                        let live = || Live::new(&self.bus, agent, &cause, &thread_id, &writing);
                        self.ask(question, live, &pauses, &paid, lease, turn).await
                    });
                    let completions: Option<Vec<_>> = join_all(asked).await.into_iter().collect();
                    let Some(completions) = completions else {
                        return if turn.stage == Stage::Commit { Thought::Unprepared } else { Thought::Stopped };
                    };
                    (deliberation, next) = deliberation.resume(completions);
                }
            }
        };
        if turn.stage == Stage::Prepare {
            return Thought::Prepared;
        }
        let thread_id = deliberation.thread_id();
        drop(deliberation);
        let completions = decision.completions.clone();
        let decision = self.to_be_written(decision, &state, &paid, turn);
        match self.commit(agent, &state, &input.record, &thread_id, decision).await {
            Err(BusError::TooLarge { .. }) => {
                let instead = Deliberation::too_large(&state, input, &catalogue, &self.limits, completions);
                let Some(instead) = instead else { return Thought::Nothing };
                let instead = self.to_be_written(instead, &state, &paid, turn);
                told(self.commit_what_fits(agent, &state, &input.record, &thread_id, instead).await)
            }
            outcome => told(outcome),
        }
    }

    /// The decision, which says what was spent in vain before it, and is tied to what stands before it. Where the one before is, the
    /// epoch is there, whether or not this replica has heard of it.
    fn to_be_written(&self, decision: AgentDecision, state: &AgentState, paid: &Paid, turn: &Turn) -> AgentDecision {
        let (given_up, epoch) = (paid.given_up(&decision), self.epoch.current());
        let decision = with_given_up(decision, given_up, epoch);
        let decision = match state.profile.as_ref().is_some_and(Profile::tells_cost) {
            true => with_cost_of_given_up(decision, &self.limits.prices, epoch),
            false => decision,
        };
        let decision = match turn.is_chained || epoch >= HASH_CHAINS {
            true => with_link(decision, turn.link.clone()),
            false => decision,
        };
        synthetic::marked(decision, epoch)
    }

    /// Commits a decision, if need be without the words of the models.
    async fn commit_what_fits(
        &self,
        agent: &Name,
        state: &AgentState,
        input: &Record,
        thread_id: &str,
        decision: AgentDecision,
    ) -> Result<(Record, Content), BusError> {
        match self.commit(agent, state, input, thread_id, decision.clone()).await {
            Err(BusError::TooLarge { .. }) => {
                self.commit(agent, state, input, thread_id, without_words(decision)).await
            }
            outcome => outcome,
        }
    }

    /// Asks a model, unless it has answered this before; none if the decision is to stop, or to be made of the answers that
    /// are there. Nothing is asked while the log takes no answers, or by a replica that may have lost the agent.
    async fn ask<'l>(
        &self,
        question: &Question,
        live: impl FnOnce() -> Live<'l>,
        pauses: &Pauses,
        paid: &Paid,
        lease: &Lease,
        turn: &Turn,
    ) -> Option<Completion> {
        let failure = || paid.failure(&question.request, question.attempt).filter(|_| turn.stage != Stage::Whole);
        if let Some(completion) = failure().or_else(|| paid.answer(&question.request)) {
            pauses.note(question, &completion);
            return Some(completion);
        }
        if turn.stage == Stage::Commit {
            return None;
        }
        let ready = async {
            self.pause(question, pauses).await;
            self.bus.writes.flowing().await;
            lease.young().await;
        };
        turn.unless_stopping(ready).await?;
        if let Some(reason) = self.fence.reason() {
            return Some(not_asked(question, reason));
        }
        self.bus.standing.count_model_request();
        if question.attempt > 1 {
            measures::retried(&self.bus.metrics, question.request.tier);
        }
        let asking = paid.given_up.asking(&question.request);
        let live = question.speaks.then(live);
        let mut completion = answered(self.models.as_ref(), question, asking.received(), live).await;
        if !asking.answered() {
            // This decision was interrupted, and the call counts as given up.
            return None;
        }
        if self.epoch.current() < REASONING_DETAILS {
            completion.reasoning_details.clear();
        }
        completion.answered_at_ms = u64::try_from(self.bus.now().as_millisecond()).unwrap_or_default();
        if self.epoch.current() < ANSWERS {
            without_new_fields(&mut completion);
        }
        pauses.note(question, &completion);
        paid.keep(&completion, question.attempt);
        Some(completion)
    }

    /// Waits before another try of a model call.
    async fn pause(&self, question: &Question, pauses: &Pauses) {
        if question.attempt > 1 {
            let [.., high, low] = *self.bus.new_id().as_bytes();
            tokio::time::sleep(pauses.before(question, self.retry_pause, u16::from_be_bytes([high, low]))).await;
        }
    }

    async fn commit(
        &self,
        agent: &Name,
        state: &AgentState,
        input: &Record,
        thread_id: &str,
        decision: AgentDecision,
    ) -> Result<(Record, Content), BusError> {
        let (guard, whose) = (state.decided, state.whose(agent.as_str(), input, &decision));
        let (id, now) = (decision_id(input), self.bus.now());
        let envelope = as_cause(input).follow(id, Service::AgentRuntime, Origin::Internal, now);
        let event = Outgoing::new(&AGENT_DECISION, agent, envelope.in_thread(thread_id), decision).whose(whose);
        let (written, content) = self.bus.commit(&event, guard).await?;
        let Outgoing { subject, envelope, body } = event;
        Ok((Record { sequence: written.sequence, subject, envelope, body }, content))
    }
}

/// The holder whose share of `decisions_at_once` an input counts against: the user of the turn, or of the input; without one the agent.
fn holder(agent: &Name, state: &AgentState, input: &Input) -> Holder {
    let of_turn = state.due(input.record.sequence).map(|(_, turn)| turn.user.clone());
    let user = of_turn.or_else(|| match Whose::of(&input.record.body) {
        Whose::Of(user) => Some(user),
        Whose::Nobodys | Whose::Each(_) => None,
    });
    Holder::on_behalf(user.as_deref(), agent.as_str())
}

/// The envelope of an input, with the id of an event that clients can get: a decision is none.
fn as_cause(input: &Record) -> Envelope {
    let id = event_json::cause(input).unwrap_or(input.envelope.id);
    Envelope { id, ..input.envelope.clone() }
}

/// The completion of a call that is not made, since the cap of the installation is reached.
fn not_asked(question: &Question, message: String) -> Completion {
    let error = CompletionError { kind: CAP_REACHED.to_owned(), message, transient: false, ..Default::default() };
    Completion {
        tier: question.request.tier.to_owned(),
        request_digest: question.request.digest(),
        module: question.module.clone(),
        error: Some(error),
        ..Completion::default()
    }
}

/// Returns a model's answer to a question, or an error if it missed the deadline.
pub async fn answered(
    models: &dyn Answers,
    question: &Question,
    received: &Received,
    live: Option<Live<'_>>,
) -> Completion {
    let answering = models.complete(&question.request, received, live);
    let answered = within(question.deadline_ms, answering).await;
    let completion = answered.unwrap_or_else(|| late(question, received.get()));
    Completion { module: question.module.clone(), ..completion }
}

/// Awaits a future for at most so many milliseconds, the wait for room at the model included.
async fn within<T>(deadline_ms: Option<u32>, what: impl Future<Output = T>) -> Option<T> {
    match deadline_ms {
        Some(limit) => tokio::time::timeout(Duration::from_millis(limit.into()), what).await.ok(),
        None => Some(what.await),
    }
}

/// Builds the completion of a call that missed its deadline, with the part of the answer that had arrived: making the
/// decision again then needs no clock.
fn late(question: &Question, received: SoFar) -> Completion {
    let limit = question.deadline_ms.unwrap_or_default();
    let message = format!("no answer within {limit} ms");
    let completion = Completion {
        tier: question.request.tier.to_owned(),
        request_digest: question.request.digest(),
        latency_ms: limit,
        error: Some(CompletionError { kind: LATE.to_owned(), message, transient: false, ..Default::default() }),
        ..Completion::default()
    };
    estimate::counted(completion, &question.request, &received, 1.0)
}

/// Takes out what builds before epoch 10 would lose: what is decided rests on what all of them read.
fn without_new_fields(completion: &mut Completion) {
    completion.ending.clear();
    completion.passed_back.clear();
    completion.answered_at_ms = 0;
    for call in &mut completion.tool_calls {
        call.call_id.clear();
        call.passed_back.clear();
    }
}

fn told(outcome: Result<(Record, Content), BusError>) -> Thought {
    match outcome {
        Ok((record, content)) => Thought::Decided(Box::new(record), content),
        Err(BusError::Conflict { .. }) => Thought::Overtaken,
        Err(error) => Thought::Failed(error),
    }
}
