//! agent-runtime's `effects.rs` with the real `plan`, and `kairo_core::bus::timers` and `hooks`, on a stream and a bucket
//! in memory: the same protocol, line by line. JetStream's part, the timers that go off, is in the
//! [`scheduler`](crate::scheduler).

use jiff::Timestamp;
use kairo_agent_runtime::effects::plan::{self, Effect, Planned};
use kairo_core::{
    bus::{
        BusError,
        append::Outgoing,
        consume::{Delivery, Failure, Settled},
    },
    envelope::{Envelope, Origin},
    hooks::Registration,
    ids::{self, Name},
    record::Place,
    subjects::{self, Service, TASK_DUE},
};
use kairo_proto::{Body, v1::TaskDue};
use uuid::Uuid;

use crate::{
    replica::{Own, Replica, unavailable},
    steps::step,
    world::World,
};

const TRIES: usize = 8;

/// A timer that is set.
#[derive(Clone, Debug)]
pub struct Timer {
    pub agent: Name,
    pub task: Uuid,
    pub occurrence: u64,
    pub at: Timestamp,
    pub decided: Place,
    pub sequence: u64,
}

pub async fn handle(own: &Own, delivery: &Delivery) -> Result<Settled, Failure> {
    let record = &delivery.record;
    let (Body::AgentDecision(decision), Some((_, agent))) = (&record.body, subjects::route(&record.subject)) else {
        return Err(Failure::Permanent("not a decision".to_owned()));
    };
    for Planned { position, effect } in plan::effects(decision) {
        own.note(|| format!("brings about {effect:?}"));
        let decided = Place { sequence: record.sequence, position };
        match effect {
            Effect::Arm { task, occurrence, at } => {
                own.arm(Timer { agent: agent.clone(), task, occurrence, at, decided, sequence: 0 }).await?;
            }
            Effect::Disarm { task } => own.disarm(task, decided).await?,
            Effect::Register { task, trigger, state } => {
                own.register(&agent, task, Registration { trigger, state, decided }).await?;
            }
        }
    }
    Ok(Settled::Done)
}

impl Replica {
    async fn arm(&self, timer: Timer) -> Result<(), BusError> {
        let mut expected = 0;
        for _ in 0..TRIES {
            step().await;
            self.may_be_lost(|faults| faults.lost_request)?;
            let set = self.world.borrow_mut().set_timer(&timer, expected);
            step().await;
            if set {
                return self.may_be_lost(|faults| faults.lost_answer);
            }
            step().await;
            match self.world.borrow().timers.get(&(timer.task, timer.occurrence)) {
                Some(other) if other.decided >= timer.decided => return Ok(()),
                Some(other) => expected = other.sequence,
                None => expected = 0,
            }
        }
        Err(BusError::Conflict { expected })
    }

    async fn disarm(&self, task: Uuid, decided: Place) -> Result<(), BusError> {
        step().await;
        let timers: Vec<Timer> = {
            let world = self.world.borrow();
            world.timers.values().filter(|timer| timer.task == task && timer.decided < decided).cloned().collect()
        };
        for timer in timers {
            step().await;
            self.may_be_lost(|faults| faults.lost_request)?;
            // One that goes off at this very moment is overlooked.
            if !self.strikes(|faults| faults.overlooked_timer) {
                self.world.borrow_mut().remove_timer(&timer);
            }
        }
        Ok(())
    }

    /// `Bus::register`: merged with what is known, guarded by the revision of the key.
    async fn register(&self, agent: &Name, task: Uuid, said: Registration) -> Result<(), BusError> {
        for _ in 0..TRIES {
            step().await;
            let known = self.world.borrow().registrations.get(&task).cloned();
            let merged = match known.clone() {
                Some((_, before)) => before.and(said.clone()),
                None => said.clone(),
            };
            step().await;
            self.may_be_lost(|faults| faults.lost_request)?;
            let mut world = self.world.borrow_mut();
            if world.registrations.get(&task) == known.as_ref() {
                world.registrations.insert(task, (agent.clone(), merged));
                return Ok(());
            }
        }
        Err(unavailable("registering a hook"))
    }

    fn may_be_lost(&self, rate: impl Fn(&crate::faults::Faults) -> u64) -> Result<(), BusError> {
        if self.strikes(rate) { Err(unavailable("setting a timer")) } else { Ok(()) }
    }
}

impl World {
    /// Sets a timer if `expected` is the sequence of the one that is set on its subject.
    fn set_timer(&mut self, timer: &Timer, expected: u64) -> bool {
        let subject = (timer.task, timer.occurrence);
        if self.timers.get(&subject).map_or(0, |there| there.sequence) != expected {
            return false;
        }
        self.revision += 1;
        let sequence = self.revision;
        self.timers.insert(subject, Timer { sequence, ..timer.clone() });
        true
    }

    fn remove_timer(&mut self, timer: &Timer) {
        let subject = (timer.task, timer.occurrence);
        if self.timers.get(&subject).is_some_and(|there| there.sequence == timer.sequence) {
            self.timers.remove(&subject);
        }
    }

    /// Timers whose time has come.
    pub fn due(&self) -> impl Iterator<Item = (Uuid, u64)> + '_ {
        let now = self.now();
        self.timers.values().filter(move |timer| timer.at <= now).map(|timer| (timer.task, timer.occurrence))
    }

    /// A timer goes off: the log says that its task is due, and it is set no more, unless it will do so again.
    pub fn go_off(&mut self, subject: (Uuid, u64), again: bool, lost: bool) {
        let Some(timer) = self.timers.get(&subject).cloned() else { return };
        if !again {
            self.timers.remove(&subject);
        }
        self.note("timers", || format!("{} is due, time {}", timer.task, timer.occurrence));
        if lost {
            return;
        }
        let (now, id) = (self.now(), ids::derived(timer.task, &format!("due/{}", timer.occurrence)));
        let envelope = Envelope::entering(id, Service::AgentRuntime, Origin::System, now);
        let (task_id, due_at) = (timer.task.to_string(), timer.at.to_string());
        let body = TaskDue { task_id, occurrence: timer.occurrence, due_at };
        self.log.write(&Outgoing::new(&TASK_DUE, &timer.agent, envelope, body), now);
    }
}
