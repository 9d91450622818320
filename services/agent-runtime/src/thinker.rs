//! From one input to a committed decision: the pure core deliberates, models are asked on the way, and the decision is
//! written under the guard of its subject.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent, epoch::EpochInForce, fence::ModelFence},
    envelope::{Envelope, Origin},
    event_json,
    hash_chain::ContentDigest,
    ids::Name,
    ownership::lease::Lease,
    personal::ContentOwners,
    record::Record,
    sharing::{QuotaHolder, permit_pool::PermitPool},
    subjects::{AGENT_DECISION, Service},
    synthetic,
    vocabulary::{ANSWERS, HASH_CHAINS, REASONING_DETAILS},
};
use kairo_mind::{
    build_pin,
    caps::CAP_REACHED,
    deliberation::{
        DecisionLimits, Deliberation, DeliberationStep, LATE, ModelQuestion, decision_id, with_abandoned_calls,
        with_cost_of_abandoned_calls, with_hash_link, without_words,
    },
    log::DecisionInput,
    state::{AgentState, Profile},
};
use kairo_proto::v1::{AgentDecision, Completion, CompletionError, DecisionBasis};

use crate::{
    agent_metrics,
    answer_progress::{AnswerProgress, ProgressHandle},
    catalogue::CatalogueInForce,
    config::Config,
    drafts::Drafts,
    estimate,
    live_answer::LiveAnswer,
    models::ModelClient,
    pauses::Pauses,
    turn::{CompletionCache, Stage, TurnHandle},
};

/// The resources that all agents of this replica think with.
pub struct Thinker {
    bus: Bus,
    models: Arc<dyn ModelClient>,
    catalogue: CatalogueInForce,
    epoch: EpochInForce,
    drafts: Drafts,
    fence: ModelFence,
    limits: DecisionLimits,
    retry_pause: Duration,
    /// Decisions that are being made at once.
    room: PermitPool,
    /// Those that are being prepared: what is worked on takes no room from users.
    work_room: PermitPool,
}

/// The result of thinking about an input.
#[derive(Debug)]
pub enum ThoughtOutcome {
    /// It stands in the log, with this content.
    Decided(Box<Record>, ContentDigest),
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
        models: Arc<dyn ModelClient>,
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
            fence: ModelFence::default(),
            limits: DecisionLimits { secret_key: own.secret_key_bytes(), ..build_pin::recorded_limits(basis) },
            retry_pause: Duration::from_millis(own.retry_pause_ms),
            room: PermitPool::with_capacity(own.decisions_at_once),
            work_room: PermitPool::with_capacity(own.work_at_once),
        }
    }

    /// Sets the fence that says when no models may be asked.
    #[must_use]
    pub fn with_fence(self, fence: ModelFence) -> Self {
        Self { fence, ..self }
    }

    /// Decides on an input in this state. Waits for room first, in the order of users' shares, and says when it has begun.
    pub async fn think(
        &self,
        agent: &Name,
        state: Arc<AgentState>,
        input: &DecisionInput,
        paid: CompletionCache,
        lease: &Lease,
        turn: &TurnHandle,
    ) -> ThoughtOutcome {
        let room = if turn.stage == Stage::Prepare { &self.work_room } else { &self.room };
        let _room = room.acquire(&holder(agent, &state, input)).await;
        turn.begin();
        let catalogue = match self.catalogue.current().await {
            Ok(catalogue) => catalogue,
            Err(error) => return ThoughtOutcome::Failed(error),
        };
        let writing = self.drafts.open(agent, input.record.envelope.id);
        let cause = cause_envelope(&input.record);
        let pauses = Pauses::default();
        let Some((mut deliberation, mut next)) = Deliberation::begin(&state, input, &catalogue, &self.limits) else {
            return ThoughtOutcome::Nothing;
        };
        let decision = loop {
            match next {
                DeliberationStep::Commit(decision) => break *decision,
                DeliberationStep::Ask(questions) => {
                    let thread_id = deliberation.thread_id();
                    let asked = questions.iter().map(async |question| {
                        let live = || LiveAnswer::new(&self.bus, agent, &cause, &thread_id, &writing);
                        self.ask(question, live, &pauses, &paid, lease, turn).await
                    });
                    let completions: Option<Vec<_>> = join_all(asked).await.into_iter().collect();
                    let Some(completions) = completions else {
                        return if turn.stage == Stage::Commit {
                            ThoughtOutcome::Unprepared
                        } else {
                            ThoughtOutcome::Stopped
                        };
                    };
                    (deliberation, next) = deliberation.resume(completions);
                }
            }
        };
        if turn.stage == Stage::Prepare {
            return ThoughtOutcome::Prepared;
        }
        let thread_id = deliberation.thread_id();
        drop(deliberation);
        let completions = decision.completions.clone();
        let decision = self.finalize_decision(decision, &state, &paid, turn);
        match self.commit(agent, &state, &input.record, &thread_id, decision).await {
            Err(BusError::TooLarge { .. }) => {
                let instead = Deliberation::oversize_fallback(&state, input, &catalogue, &self.limits, completions);
                let Some(instead) = instead else { return ThoughtOutcome::Nothing };
                let instead = self.finalize_decision(instead, &state, &paid, turn);
                to_outcome(self.commit_or_shorten(agent, &state, &input.record, &thread_id, instead).await)
            }
            outcome => to_outcome(outcome),
        }
    }

    /// The decision, which says what was spent in vain before it, and is tied to what stands before it. Where the one before is, the
    /// epoch is there, whether or not this replica has heard of it.
    fn finalize_decision(
        &self,
        decision: AgentDecision,
        state: &AgentState,
        paid: &CompletionCache,
        turn: &TurnHandle,
    ) -> AgentDecision {
        let given_up = paid.calls_to_report(&decision);
        let epoch = self.epoch.current();
        let decision = with_abandoned_calls(decision, given_up, epoch);
        let decision = match state.profile.as_ref().is_some_and(Profile::records_cost) {
            true => with_cost_of_abandoned_calls(decision, &self.limits.prices, epoch),
            false => decision,
        };
        let decision = match turn.is_chained || epoch >= HASH_CHAINS {
            true => with_hash_link(decision, turn.link.clone()),
            false => decision,
        };
        synthetic::mark_decision(decision, epoch)
    }

    /// Commits a decision, if need be without the words of the models.
    async fn commit_or_shorten(
        &self,
        agent: &Name,
        state: &AgentState,
        input: &Record,
        thread_id: &str,
        decision: AgentDecision,
    ) -> Result<(Record, ContentDigest), BusError> {
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
        question: &ModelQuestion,
        live: impl FnOnce() -> LiveAnswer<'l>,
        pauses: &Pauses,
        paid: &CompletionCache,
        lease: &Lease,
        turn: &TurnHandle,
    ) -> Option<Completion> {
        let failure = || paid.find_failure(&question.request, question.attempt).filter(|_| turn.stage != Stage::Whole);
        if let Some(completion) = failure().or_else(|| paid.find_answer(&question.request)) {
            pauses.note(question, &completion);
            return Some(completion);
        }
        if turn.stage == Stage::Commit {
            return None;
        }
        let ready = async {
            self.pause(question, pauses).await;
            self.bus.writes.wait_until_flowing().await;
            lease.wait_until_fresh().await;
        };
        turn.unless_stopping(ready).await?;
        if let Some(reason) = self.fence.reason() {
            return Some(cap_reached_completion(question, reason));
        }
        self.bus.standing.count_model_request();
        if question.attempt > 1 {
            agent_metrics::count_retry(&self.bus.metrics, question.request.tier);
        }
        let asking = paid.abandoned_calls.begin_call(&question.request);
        let live = question.speaks.then(live);
        let mut completion = complete_with_deadline(self.models.as_ref(), question, asking.progress(), live).await;
        if !asking.finish() {
            // This decision was interrupted, and the call counts as given up.
            return None;
        }
        if self.epoch.current() < REASONING_DETAILS {
            completion.reasoning_details.clear();
        }
        completion.answered_at_ms = u64::try_from(self.bus.now().as_millisecond()).unwrap_or_default();
        if self.epoch.current() < ANSWERS {
            strip_new_fields(&mut completion);
        }
        pauses.note(question, &completion);
        paid.store(&completion, question.attempt);
        Some(completion)
    }

    /// Waits before another try of a model call.
    async fn pause(&self, question: &ModelQuestion, pauses: &Pauses) {
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
    ) -> Result<(Record, ContentDigest), BusError> {
        let guard = state.decided;
        let whose = state.data_subjects_of(agent.as_str(), input, &decision);
        let id = decision_id(input);
        let now = self.bus.now();
        let envelope = cause_envelope(input).follow_up(id, Service::AgentRuntime, Origin::Internal, now);
        let event = OutgoingEvent::new(&AGENT_DECISION, agent, envelope.with_thread(thread_id), decision)
            .with_data_subject(whose);
        let (written, content) = self.bus.commit_decision(&event, guard).await?;
        let OutgoingEvent { subject, envelope, body } = event;
        Ok((Record { sequence: written.sequence, subject, envelope, body }, content))
    }
}

/// The holder whose share of `decisions_at_once` an input counts against: the user of the turn, or of the input; without one the agent.
fn holder(agent: &Name, state: &AgentState, input: &DecisionInput) -> QuotaHolder {
    let of_turn = state.due_turn(input.record.sequence).map(|(_, turn)| turn.user.clone());
    let user = of_turn.or_else(|| match ContentOwners::from_body(&input.record.body) {
        ContentOwners::One(user) => Some(user),
        ContentOwners::Nobody | ContentOwners::PerPart(_) => None,
    });
    QuotaHolder::on_behalf(user.as_deref(), agent.as_str())
}

/// The envelope of an input, with the id of an event that clients can get: a decision is none.
fn cause_envelope(input: &Record) -> Envelope {
    let id = event_json::cause_id(input).unwrap_or(input.envelope.id);
    Envelope { id, ..input.envelope.clone() }
}

/// The completion of a call that is not made, since the cap of the installation is reached.
fn cap_reached_completion(question: &ModelQuestion, message: String) -> Completion {
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
pub async fn complete_with_deadline(
    models: &dyn ModelClient,
    question: &ModelQuestion,
    received: &ProgressHandle,
    live: Option<LiveAnswer<'_>>,
) -> Completion {
    let answering = models.complete(&question.request, received, live);
    let answered = with_deadline(question.deadline_ms, answering).await;
    let completion = answered.unwrap_or_else(|| late_completion(question, received.get()));
    Completion { module: question.module.clone(), ..completion }
}

/// Awaits a future for at most so many milliseconds, the wait for room at the model included.
async fn with_deadline<T>(deadline_ms: Option<u32>, what: impl Future<Output = T>) -> Option<T> {
    match deadline_ms {
        Some(limit) => tokio::time::timeout(Duration::from_millis(limit.into()), what).await.ok(),
        None => Some(what.await),
    }
}

/// Builds the completion of a call that missed its deadline, with the part of the answer that had arrived: making the
/// decision again then needs no clock.
fn late_completion(question: &ModelQuestion, received: AnswerProgress) -> Completion {
    let limit = question.deadline_ms.unwrap_or_default();
    let message = format!("no answer within {limit} ms");
    let completion = Completion {
        tier: question.request.tier.to_owned(),
        request_digest: question.request.digest(),
        latency_ms: limit,
        error: Some(CompletionError { kind: LATE.to_owned(), message, transient: false, ..Default::default() }),
        ..Completion::default()
    };
    estimate::fill_in_tokens(completion, &question.request, &received, 1.0)
}

/// Takes out what builds before epoch 10 would lose: what is decided rests on what all of them read.
fn strip_new_fields(completion: &mut Completion) {
    completion.ending.clear();
    completion.passed_back.clear();
    completion.answered_at_ms = 0;
    for call in &mut completion.tool_calls {
        call.call_id.clear();
        call.passed_back.clear();
    }
}

fn to_outcome(outcome: Result<(Record, ContentDigest), BusError>) -> ThoughtOutcome {
    match outcome {
        Ok((record, content)) => ThoughtOutcome::Decided(Box::new(record), content),
        Err(BusError::Conflict { .. }) => ThoughtOutcome::Overtaken,
        Err(error) => ThoughtOutcome::Failed(error),
    }
}
