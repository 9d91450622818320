//! agent-runtime: the real mind, and the protocol of `runtime.rs` and `memory.rs`.

use std::time::Duration;

use kairo_agent_runtime::mind::{
    deliberation::{Deliberation, Limits, Next, Question, decision_id},
    log::Log,
    request::Catalogue,
    state::Interjection,
};
use kairo_core::{
    bus::{
        BusError,
        append::Outgoing,
        consume::{Delivery, Failure, Settled},
    },
    envelope::Origin,
    ids::{self, Name},
    record::Record,
    slots::{Slot, Slots, company},
    subjects::{self, AGENT_DECISION, AGENT_MESSAGE, Service},
};
use kairo_proto::v1::{AgentDecision, Completion};
use uuid::Uuid;

use crate::{
    claims::Claimed,
    flaw::Flaw,
    memory::Mind,
    model,
    replica::Own,
    steps::{step, together},
};

pub struct Runtime {
    pub replica: Own,
    minds: Slots<Name, Mind>,
    catalogue: Catalogue,
    limits: Limits,
}

const CONFLICTS: u32 = 8;
const AT_THE_DOOR: usize = 4;
const HELD_SUSPICIOUSLY: u64 = 9;
const RESTARTS: u32 = 2;

enum Turned {
    Decided,
    Overtaken,
    Held,
    Interrupted,
}

struct Visit<'a> {
    agent: &'a Name,
    doorbell: u64,
    waited: bool,
    claim: Option<u64>,
}

impl Runtime {
    pub fn new(replica: &Own) -> Self {
        let limits = Limits { max_steps: 3, tries: 2, parallel_tools: 3, chain_steps: 16, secret_key: None };
        Self {
            replica: replica.clone(),
            minds: Slots::new(64),
            catalogue: model::catalogue(replica.world.borrow().faults.outdated_catalogue),
            limits,
        }
    }

    /// What it keeps of an agent, for those who check it.
    pub fn mind(&self, agent: &Name) -> Slot<Mind> {
        self.minds.get(agent)
    }

    pub async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Some((_, agent)) = subjects::route(&delivery.record.subject) else {
            return Err(Failure::Permanent("subject names no agent".to_owned()));
        };
        let slot = self.minds.get(&agent);
        let free = slot.try_lock();
        let waited = free.is_err();
        if company(&slot) > AT_THE_DOOR {
            return Ok(Settled::Later(Duration::ZERO));
        }
        let mut mind = match free {
            Ok(mind) => mind,
            Err(_) => slot.lock().await,
        };
        if self.replica.strikes(|faults| faults.forgotten_mind) {
            *mind = Mind::default();
        }
        let _held = self.replica.hold(holding_id(&agent));
        let mut visit = Visit { agent: &agent, doorbell: delivery.record.sequence, waited, claim: None };
        let outcome = self.answer(&mut visit, &mut mind, delivery.redelivered(), || company(&slot) > 1).await;
        if outcome.is_err() {
            mind.log = None;
        }
        match outcome? {
            true => return Ok(Settled::Done),
            false if delivery.attempt >= HELD_SUSPICIOUSLY => self.bury_if_gone(&agent).await,
            false => {}
        }
        Ok(Settled::Later(Duration::ZERO))
    }

    async fn bury_if_gone(&self, agent: &Name) {
        let Some((holder, revision)) = self.replica.claim_holder(agent).await else { return };
        if !self.replica.is_held(holder.as_str(), holding_id(agent)).await {
            self.replica.release_claim(agent, revision, 0).await;
        }
    }

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
        if redelivered {
            self.replica.bury_claim(visit.agent, visit.doorbell).await;
        }
        let (mut conflicts, mut restarts) = (0, 0);
        let mut up_to_date = false;
        loop {
            if !up_to_date {
                self.catch_up(visit.agent, mind, visit.doorbell).await?;
            }
            let Some(log) = mind.log.as_mut() else { return Ok(true) };
            let Some(input) = log.next_input() else { break };
            match self.think(visit, mind, &input, restarts < RESTARTS).await? {
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
            mind.claim_revision = self.replica.release_claim(visit.agent, revision, decided).await;
        }
        Ok(true)
    }

    async fn think(
        &self,
        visit: &mut Visit<'_>,
        mind: &mut Mind,
        input: &Record,
        may_restart: bool,
    ) -> Result<Turned, Failure> {
        let Mind { log: Some(log), claim_revision, .. } = mind else { return Ok(Turned::Overtaken) };
        let Some((mut deliberation, mut next)) = Deliberation::begin(&log.state, input, &self.catalogue, &self.limits)
        else {
            return Ok(Turned::Overtaken);
        };
        let wants = log.state.profile.as_ref().map(|profile| profile.interjection) == Some(Interjection::Restart);
        let interrupted_by = (may_restart && wants).then_some(log.read);
        let decision = loop {
            match next {
                Next::Commit(decision) => break decision,
                Next::Ask(questions) => {
                    self.replica.note(|| format!("asks the model about {}", input.sequence));
                    let model = self.complete(visit.agent, &questions, interrupted_by);
                    let completions = match visit.claim {
                        Some(_) => model.await,
                        None => match self.claim_and(visit, log.state.decided, claim_revision, model).await {
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
        Ok(self.commit(visit.agent, log, input, &thread_id, decision).await?)
    }

    /// Model calls, from requests to answers; none when a message came behind what was read.
    async fn complete(
        &self,
        agent: &Name,
        questions: &[Question],
        interrupted_by: Option<u64>,
    ) -> Option<Vec<Completion>> {
        step().await;
        if interrupted_by.is_some_and(|read| self.message_behind(agent, read)) {
            return None;
        }
        step().await;
        let seed = self.replica.world.borrow().seed;
        Some(questions.iter().map(|asked| model::answer(&asked.request, asked.attempt, seed)).collect())
    }

    /// Claims the agent while the model call starts; if the claim is refused or shows that the state is stale, the
    /// call is abandoned.
    async fn claim_and(
        &self,
        visit: &mut Visit<'_>,
        decided: u64,
        revision: &mut u64,
        model: impl Future<Output = Option<Vec<Completion>>>,
    ) -> Result<Option<Vec<Completion>>, Turned> {
        let (agent, doorbell, seen) = (visit.agent, visit.doorbell, *revision);
        let claim = async {
            match self.replica.claim(agent, doorbell, seen).await {
                Claimed::Mine { revision, decided: last } if last.is_none_or(|last| last <= decided) => {
                    Ok(Either::Claimed(revision))
                }
                Claimed::Mine { revision, .. } => Err(Some(revision)),
                Claimed::Held => Err(None),
            }
        };
        let model = async { Ok(Either::Answered(model.await)) };
        let chance = self.replica.world.borrow().chance.clone();
        let mut completions = None;
        let won = match together(chance, vec![Box::pin(claim), Box::pin(model)]).await {
            Ok(both) => {
                let mut won = None;
                for one in both {
                    match one {
                        Either::Claimed(revision) => won = Some(revision),
                        Either::Answered(answers) => completions = answers,
                    }
                }
                won.map(Ok)
            }
            Err(refused) => refused.map(Err),
        };
        let Some(won) = won else { return Err(Turned::Held) };
        let (Ok(revision_won) | Err(revision_won)) = won;
        (*revision, visit.claim) = (revision_won, Some(revision_won));
        if won.is_ok() { Ok(completions) } else { Err(Turned::Overtaken) }
    }

    fn message_behind(&self, agent: &Name, read: u64) -> bool {
        self.replica.world.borrow().log.last_sequence(&AGENT_MESSAGE.of(agent)) > read
    }

    async fn commit(
        &self,
        agent: &Name,
        log: &mut Log,
        input: &Record,
        thread_id: &str,
        decision: AgentDecision,
    ) -> Result<Turned, BusError> {
        let now = self.replica.world.borrow().now();
        let envelope = input.envelope.follow(decision_id(input), Service::AgentRuntime, Origin::Internal, now);
        let event = Outgoing::new(&AGENT_DECISION, agent, envelope.in_thread(thread_id), decision);
        let written = match self.replica.has(Flaw::UnguardedDecision) {
            true => self.replica.write_unguarded(&event).await,
            false => self.replica.append_patiently(&event, log.state.decided).await,
        };
        let sequence = match written {
            Ok(sequence) => sequence,
            Err(BusError::Conflict { .. }) => return Ok(Turned::Overtaken),
            Err(error) => return Err(error),
        };
        let Outgoing { subject, envelope, body } = event;
        match log.decided(Record { sequence, subject, envelope, body }) {
            Ok(()) => Ok(Turned::Decided),
            Err(_) => Ok(Turned::Overtaken),
        }
    }
}

/// What came of one half of claiming while the model call starts.
enum Either {
    Claimed(u64),
    /// None when the call was interrupted.
    Answered(Option<Vec<Completion>>),
}

fn holding_id(agent: &Name) -> Uuid {
    ids::named("agent", &[agent.as_str()])
}
