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
        consume::{Delivery, Failure, Handler, Settled},
    },
    envelope::Origin,
    ids::Name,
    record::Record,
    slots::company,
    subjects::{self, AGENT_DECISION, Service},
};
use kairo_proto::v1::{AgentDecision, Completion};

use crate::{
    catalogue::CatalogueInForce,
    claims::{Claimed, Claims},
    config::Config,
    live::Live,
    memory::{Memory, Mind},
    mind::{
        deliberation::{Deliberation, Limits, Next, decision_id},
        log::Log,
    },
    models::Models,
};

pub struct AgentRuntime {
    bus: Bus,
    memory: Memory,
    claims: Claims,
    models: Models,
    catalogue: CatalogueInForce,
    limits: Limits,
    retry_pause: Duration,
    snapshot_every: u32,
}

/// Conflicts in a row before a doorbell is left to be delivered again.
const CONFLICTS: u32 = 8;
/// Doorbells of one agent that one replica has in hand: one being answered and one waiting. More would keep the
/// doorbells of other agents out, and whoever answers reads the log again before it is done anyway.
const AT_THE_DOOR: usize = 2;
/// First and longest delay before looking again at an agent somebody else is thinking for.
const HELD_FIRST: Duration = Duration::from_millis(20);
const HELD_LONGEST: Duration = Duration::from_secs(1);

/// What answering for an agent came to.
enum Turned {
    Decided,
    /// The log has moved on: look again.
    Overtaken,
    /// Somebody else is thinking for this agent.
    Held,
}

/// One doorbell being answered.
struct Visit<'a> {
    agent: &'a Name,
    doorbell: u64,
    /// The revision of the claim, once it was won.
    claim: Option<u64>,
}

impl Handler for AgentRuntime {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        let slot = self.memory.slot(&agent);
        if company(&slot) > AT_THE_DOOR {
            return Ok(Settled::Later(held_delay(delivery.attempt)));
        }
        let mut mind = slot.lock().await;
        let mut visit = Visit { agent: &agent, doorbell: delivery.record.sequence, claim: None };
        let outcome = self.answer(&mut visit, &mut mind, delivery.redelivered()).await;
        if outcome.is_err() {
            // Whatever went wrong, what is in memory may not be what is in the log.
            mind.log = None;
        }
        match outcome? {
            true => Ok(Settled::Done),
            false => Ok(Settled::Later(held_delay(delivery.attempt))),
        }
    }
}

impl AgentRuntime {
    pub async fn open(bus: &Bus, config: &Config, catalogue: CatalogueInForce) -> Result<Self, BusError> {
        let own = &config.agent_runtime;
        Ok(Self {
            bus: bus.clone(),
            memory: Memory::open(bus, own.cached_agents).await?,
            claims: Claims::open(bus).await?,
            models: Models::new(&config.models),
            catalogue,
            limits: own.limits(),
            retry_pause: Duration::from_millis(own.retry_pause_ms),
            snapshot_every: own.snapshot_every,
        })
    }

    /// Deals with every input there is; false when somebody else is at it.
    async fn answer(&self, visit: &mut Visit<'_>, mind: &mut Mind, redelivered: bool) -> Result<bool, Failure> {
        let passed = mind.log.as_ref().is_some_and(|log| log.state.cursor >= visit.doorbell);
        if passed && !redelivered {
            return Ok(true);
        }
        if redelivered && self.claims.bury(visit.agent, visit.doorbell).await? {
            tracing::info!(agent = %visit.agent, "took over from a replica that is gone");
        }
        let mut conflicts = 0;
        loop {
            self.memory.catch_up(visit.agent, mind, visit.doorbell).await?;
            let Some(log) = mind.log.as_mut() else { return Ok(true) };
            let Some(input) = log.next_input() else { break };
            match self.think(visit, mind, &input).await? {
                Turned::Decided => self.save_now_and_then(visit.agent, mind).await,
                Turned::Held => return Ok(false),
                Turned::Overtaken if conflicts < CONFLICTS => conflicts += 1,
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
    async fn think(&self, visit: &mut Visit<'_>, mind: &mut Mind, input: &Record) -> Result<Turned, Failure> {
        let catalogue = self.catalogue.current().await?;
        let Mind { log: Some(log), claim_revision, .. } = mind else { return Ok(Turned::Overtaken) };
        let Some((mut deliberation, mut next)) = Deliberation::begin(&log.state, input, &catalogue, &self.limits)
        else {
            return Ok(Turned::Overtaken);
        };
        let thread_id = deliberation.turn().1.thread_id.clone();
        let decision = loop {
            match next {
                Next::Commit(decision) => break decision,
                Next::Ask { request, attempt } => {
                    self.pause(attempt).await;
                    let mut live = Live::new(&self.bus, visit.agent, &input.envelope, &thread_id);
                    let model = self.models.complete(&request, &mut live);
                    let completion = match visit.claim {
                        Some(_) => model.await,
                        None => match self.claim_and(visit, log, claim_revision, model).await? {
                            Ok(completion) => completion,
                            Err(turned) => return Ok(turned),
                        },
                    };
                    (deliberation, next) = deliberation.resume(completion);
                }
            }
        };
        match self.commit(visit.agent, log, input, &thread_id, decision).await {
            Err(BusError::TooLarge { .. }) => {
                let instead = Deliberation::too_large(&log.state, input, &catalogue, &self.limits);
                let instead = instead.ok_or_else(|| Failure::Transient("the turn is over already".to_owned()))?;
                Ok(self.commit(visit.agent, log, input, &thread_id, instead).await?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// Claims the agent while the model call starts; if the claim is refused or shows that the state is stale, the
    /// call is abandoned.
    async fn claim_and(
        &self,
        visit: &mut Visit<'_>,
        log: &Log,
        revision: &mut u64,
        model: impl Future<Output = Completion>,
    ) -> Result<Result<Completion, Turned>, Failure> {
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

fn held_delay(attempt: u64) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    HELD_FIRST.saturating_mul(1 << doublings).min(HELD_LONGEST)
}
