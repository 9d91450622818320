//! Answering a doorbell: the claim-and-commit protocol.
//!
//! The delivery of an input only says that there may be something to decide. What there is, the agent's own subjects
//! say; who may say what was decided, the guard on the decision subject says.

use std::time::Duration;

use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus, BusError,
        append::Outgoing,
        consume::{self, Delivery, Failure, Handler, Settled},
        holding::Holding,
        objects::Objects,
    },
    envelope::Origin,
    ids::{self, Name},
    record::Record,
    slots::company,
    subjects::{self, AGENT_DECISION, Consumer, Service},
};
use kairo_proto::{
    Body,
    v1::{AgentDecision, Completion},
};
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::{
    catalogue::CatalogueInForce,
    claims::{Claimed, Claims},
    config::Config,
    interjections::{self, Interjections},
    live::Live,
    memory::{Memory, Mind},
    mind::{
        deliberation::{Deliberation, Limits, Next, Question, decision_id},
        log::Log,
        state::Interjection,
    },
    models::Models,
};

pub struct AgentRuntime {
    bus: Bus,
    memory: Memory,
    claims: Claims,
    models: Models,
    catalogue: CatalogueInForce,
    holding: Holding,
    limits: Limits,
    retry_pause: Duration,
    snapshot_every: u32,
    restarts: u32,
}

/// Conflicts in a row before a doorbell is left to be delivered again.
const CONFLICTS: u32 = 8;
/// Doorbells of one agent that one replica has in hand: one being answered and a few waiting. More would keep the
/// doorbells of other agents out, and one that waits is enough for all that came before it; fewer would send away the
/// next message of a busy agent, which then loses a delay although its turn has come.
const AT_THE_DOOR: usize = 4;
/// First and longest delay before looking again at an agent somebody else is thinking for.
const HELD_FIRST: Duration = Duration::from_millis(20);
const HELD_LONGEST: Duration = Duration::from_secs(1);
/// Deliveries after which whoever holds the agent is asked whether it still works on it; a few seconds.
const HELD_SUSPICIOUSLY: u64 = 9;

/// What answering for an agent came to.
enum Turned {
    Decided,
    /// The log has moved on: look again.
    Overtaken,
    /// Somebody else is thinking for this agent.
    Held,
    /// A message came, and the agent wants to decide on it, too.
    Interrupted,
}

/// One doorbell being answered.
struct Visit<'a> {
    agent: &'a Name,
    doorbell: u64,
    /// It waited while another was answered, which left it to this one to read what came meanwhile.
    waited: bool,
    /// The revision of the claim, once it was won.
    claim: Option<u64>,
}

impl Handler for AgentRuntime {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        let slot = self.memory.slot(&agent);
        let free = slot.try_lock();
        let waited = free.is_err();
        if waited {
            self.announce(&agent, delivery).await;
        }
        if company(&slot) > AT_THE_DOOR {
            return Ok(Settled::Later(held_delay(delivery.attempt)));
        }
        let mut mind = match free {
            Ok(mind) => mind,
            Err(_) => slot.lock().await,
        };
        let _held = self.holding.hold(holding_id(&agent));
        let mut visit = Visit { agent: &agent, doorbell: delivery.record.sequence, waited, claim: None };
        let outcome = self.answer(&mut visit, &mut mind, delivery.redelivered(), || company(&slot) > 1).await;
        if outcome.is_err() {
            // Whatever went wrong, what is in memory may not be what is in the log.
            mind.log = None;
        }
        match outcome? {
            true => return Ok(Settled::Done),
            false if delivery.attempt == 1 => self.announce(&agent, delivery).await,
            false if delivery.attempt >= HELD_SUSPICIOUSLY => self.bury_if_gone(&agent).await?,
            false => {}
        }
        Ok(Settled::Later(held_delay(delivery.attempt)))
    }
}

impl AgentRuntime {
    pub fn new(
        bus: &Bus,
        config: &Config,
        memory: Memory,
        claims: Claims,
        catalogue: CatalogueInForce,
        holding: Holding,
    ) -> Self {
        let own = &config.agent_runtime;
        Self {
            bus: bus.clone(),
            memory,
            claims,
            models: Models::new(&config.models, Objects::new(bus), own.max_loaded_bytes),
            catalogue,
            holding,
            limits: own.limits(),
            retry_pause: Duration::from_millis(own.retry_pause_ms),
            snapshot_every: own.snapshot_every,
            restarts: own.restarts,
        }
    }

    /// Tells whoever is busy with the agent that another message has come.
    async fn announce(&self, agent: &Name, delivery: &Delivery) {
        if matches!(delivery.record.body, Body::AgentMessage(_)) && !delivery.redelivered() {
            interjections::announce(&self.bus, agent, delivery.record.sequence).await;
        }
    }

    /// Frees a claim whose holder does not answer. Its doorbell may never come again: a replica that was frozen can
    /// have acknowledged it, on waking up, after another had claimed the agent under it.
    async fn bury_if_gone(&self, agent: &Name) -> Result<(), BusError> {
        let Some((holder, revision)) = self.claims.holder(agent).await? else { return Ok(()) };
        if !self.holding.is_held(&self.bus, &holder, holding_id(agent)).await {
            tracing::info!(%agent, holder, "took over from a replica that does not answer");
            self.claims.release(agent, revision, 0).await?;
        }
        Ok(())
    }

    /// Deals with every input there is; false when somebody else is at it. `relieved` says whether another doorbell
    /// waits: what came meanwhile is left to it.
    async fn answer(
        &self,
        visit: &mut Visit<'_>,
        mind: &mut Mind,
        redelivered: bool,
        relieved: impl Fn() -> bool,
    ) -> Result<bool, Failure> {
        let passed = mind.log.as_ref().is_some_and(|log| log.state.cursor >= visit.doorbell);
        if passed && !redelivered && (!visit.waited || relieved()) {
            return Ok(true);
        }
        if redelivered && self.claims.bury(visit.agent, visit.doorbell).await? {
            tracing::info!(agent = %visit.agent, "took over from a replica that is gone");
        }
        let (mut conflicts, mut restarts) = (0, 0);
        let mut up_to_date = false;
        loop {
            if !up_to_date {
                self.memory.catch_up(visit.agent, mind, visit.doorbell).await?;
            }
            let Some(log) = mind.log.as_mut() else { return Ok(true) };
            let Some(input) = log.next_input() else { break };
            // It belongs to the trace of the input, which need not be that of the doorbell.
            let span = match input.sequence == visit.doorbell {
                true => Span::current(),
                false => consume::span(Consumer::AgentRuntime, &input),
            };
            match self.think(visit, mind, &input, restarts < self.restarts).instrument(span).await? {
                Turned::Decided => {
                    restarts = 0;
                    self.save_now_and_then(visit.agent, mind).await;
                    up_to_date = relieved() || mind.log.as_ref().is_some_and(Log::ends_with_decision);
                }
                Turned::Held => return Ok(false),
                Turned::Interrupted => {
                    restarts += 1;
                    up_to_date = false;
                }
                Turned::Overtaken if conflicts < CONFLICTS => {
                    conflicts += 1;
                    up_to_date = false;
                }
                Turned::Overtaken => return Err(Failure::Conflict("overtaken again and again".to_owned())),
            }
        }
        if let Some(revision) = visit.claim {
            let decided = mind.log.as_ref().map_or(0, |log| log.state.decided);
            mind.claim_revision = self.claims.release(visit.agent, revision, decided).await?;
        }
        Ok(true)
    }

    /// From one input to a committed decision.
    async fn think(
        &self,
        visit: &mut Visit<'_>,
        mind: &mut Mind,
        input: &Record,
        may_restart: bool,
    ) -> Result<Turned, Failure> {
        let catalogue = self.catalogue.current().await?;
        let Mind { log: Some(log), claim_revision, .. } = mind else { return Ok(Turned::Overtaken) };
        let Some((mut deliberation, mut next)) = Deliberation::begin(&log.state, input, &catalogue, &self.limits)
        else {
            return Ok(Turned::Overtaken);
        };
        let mut interjections = match may_restart {
            true => self.interjections(visit.agent, log).await?,
            false => None,
        };
        let decision = loop {
            match next {
                Next::Commit(decision) => break decision,
                Next::Ask(questions) => {
                    let thread_id = deliberation.thread_id();
                    let answers = self.ask_all(visit.agent, input, &thread_id, &questions);
                    let answers = unless_interrupted(answers, &mut interjections);
                    let completions = match visit.claim {
                        Some(_) => answers.await,
                        None => match self.claim_and(visit, log, claim_revision, answers).await? {
                            Ok(completions) => completions,
                            Err(turned) => return Ok(turned),
                        },
                    };
                    let Some(completions) = completions else { return Ok(Turned::Interrupted) };
                    (deliberation, next) = deliberation.resume(completions);
                }
            }
        };
        let thread_id = deliberation.thread_id();
        drop(deliberation);
        match self.commit(visit.agent, log, input, &thread_id, decision).await {
            Err(BusError::TooLarge { .. }) => {
                let instead = Deliberation::too_large(&log.state, input, &catalogue, &self.limits);
                let instead = instead.ok_or_else(|| Failure::Transient("the turn is over already".to_owned()))?;
                Ok(self.commit(visit.agent, log, input, &thread_id, instead).await?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// Asks all questions at once; the completions are in their order.
    async fn ask_all(&self, agent: &Name, input: &Record, thread_id: &str, questions: &[Question]) -> Vec<Completion> {
        let ask = |question: &Question| {
            let live = question.speaks.then(|| Live::new(&self.bus, agent, &input.envelope, thread_id));
            let (request, attempt) = (question.request.clone(), question.attempt);
            async move {
                self.pause(attempt).await;
                self.models.complete(&request, live).await
            }
        };
        futures::future::join_all(questions.iter().map(ask)).await
    }

    /// Claims the agent while the model call starts; if the claim is refused or shows that the state is stale, the
    /// call is abandoned.
    async fn claim_and<T>(
        &self,
        visit: &mut Visit<'_>,
        log: &Log,
        revision: &mut u64,
        model: impl Future<Output = T>,
    ) -> Result<Result<T, Turned>, Failure> {
        let claim = async {
            match self.claims.claim(visit.agent, visit.doorbell, *revision).await {
                Ok(Claimed::Mine { revision, decided }) if decided.is_none_or(|last| last <= log.state.decided) => {
                    Ok((revision, true))
                }
                Ok(Claimed::Mine { revision, .. }) => Err(Ok(Some(revision))),
                Ok(Claimed::Held) => Err(Ok(None)),
                Err(error) => Err(Err(error)),
            }
        };
        match tokio::try_join!(claim, async { Ok(model.await) }) {
            Ok(((won, _), completion)) => {
                *revision = won;
                visit.claim = Some(won);
                Ok(Ok(completion))
            }
            Err(Ok(Some(won))) => {
                *revision = won;
                visit.claim = Some(won);
                Ok(Err(Turned::Overtaken))
            }
            Err(Ok(None)) => Ok(Err(Turned::Held)),
            Err(Err(error)) => Err(error.into()),
        }
    }

    /// What may interrupt the agent, if it wants to be interrupted.
    async fn interjections(&self, agent: &Name, log: &Log) -> Result<Option<Interjections>, BusError> {
        match log.state.profile.as_ref().map(|profile| profile.interjection) {
            Some(Interjection::Restart) => Ok(Some(Interjections::behind(&self.bus, agent, log.read).await?)),
            _ => Ok(None),
        }
    }

    /// Waits before another try of a model call, longer each time.
    async fn pause(&self, attempt: u32) {
        if attempt > 1 {
            tokio::time::sleep(self.retry_pause.saturating_mul(1 << (attempt - 2).min(10))).await;
        }
    }

    /// Writes the decision under the guard, and takes it into the state.
    async fn commit(
        &self,
        agent: &Name,
        log: &mut Log,
        input: &Record,
        thread_id: &str,
        decision: AgentDecision,
    ) -> Result<Turned, BusError> {
        let envelope =
            input.envelope.follow(decision_id(input), Service::AgentRuntime, Origin::Internal, Timestamp::now());
        let event = Outgoing::new(&AGENT_DECISION, agent, envelope.in_thread(thread_id), decision);
        // The model's answer is worth keeping while the server is away for a moment.
        let written = match self.bus.append_patiently(&event, log.state.decided).await {
            Ok(written) => written,
            Err(BusError::Conflict { .. }) => return Ok(Turned::Overtaken),
            Err(error) => return Err(error),
        };
        let Outgoing { subject, envelope, body } = event;
        let committed = Record { sequence: written.sequence, subject, envelope, body };
        match log.decided(committed) {
            Ok(()) => Ok(Turned::Decided),
            Err(_) => Ok(Turned::Overtaken),
        }
    }

    async fn save_now_and_then(&self, agent: &Name, mind: &mut Mind) {
        mind.unsaved += 1;
        let Some(log) = mind.log.as_ref().filter(|log| log.at_rest()) else { return };
        if mind.unsaved >= self.snapshot_every {
            mind.unsaved = 0;
            self.memory.save(agent, log).await;
        }
    }
}

/// The models' answers; none when something came before it.
async fn unless_interrupted(
    model: impl Future<Output = Vec<Completion>>,
    interjections: &mut Option<Interjections>,
) -> Option<Vec<Completion>> {
    match interjections {
        None => Some(model.await),
        Some(interjections) => tokio::select! {
            biased;
            completions = model => Some(completions),
            () = interjections.come() => None,
        },
    }
}

/// What a replica at work on an agent answers for.
fn holding_id(agent: &Name) -> Uuid {
    ids::named("agent", &[agent.as_str()])
}

fn held_delay(attempt: u64) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    HELD_FIRST.saturating_mul(1 << doublings).min(HELD_LONGEST)
}
