//! What a replica has at hand: its bus, and what it answers for. Every call is at least one step.

use std::{cell::Cell, rc::Rc};

use kairo_core::{
    bus::{BusError, append::Outgoing},
    ids::Name,
    record::Record,
};
use uuid::Uuid;

use crate::{flaw::Flaw, steps::step, world::Shared};

/// Messages a server can lag behind by.
const LAG: usize = 4;

#[derive(Clone)]
pub struct Replica {
    pub id: usize,
    /// A replica that is started again is another one.
    pub instance: Name,
    pub world: Shared,
}

/// An action being worked on; dropping it says that it is no more.
pub struct Held<'r> {
    replica: &'r Replica,
    action: Uuid,
    /// Whether it shall stop.
    pub stop: Rc<Cell<bool>>,
}

impl Replica {
    pub fn note(&self, what: impl FnOnce() -> String) {
        self.world.borrow().note(self.instance.as_str(), what);
    }

    /// Whether something of this rate happens now.
    pub fn strikes(&self, rate: impl Fn(&crate::faults::Faults) -> u64) -> bool {
        let world = self.world.borrow();
        world.strikes(rate(&world.faults))
    }

    pub fn has(&self, flaw: Flaw) -> bool {
        self.world.borrow().has(flaw)
    }

    /// `Bus::publish`: the same id is written once.
    pub async fn publish(&self, event: &Outgoing) -> Result<u64, BusError> {
        self.send(event, |world| Ok(world.log.publish(event, world.now()))).await
    }

    /// `Bus::append`: only if `expected` is the last sequence of the subject; after an error, a look at the last
    /// message tells whether it was this one that got there.
    pub async fn append(&self, event: &Outgoing, expected: u64) -> Result<u64, BusError> {
        let write = |world: &mut crate::world::World| {
            world.log.append(event, expected, world.now()).map_err(|_| BusError::Conflict { expected })
        };
        let error = match self.send(event, write).await {
            Ok(sequence) => return Ok(sequence),
            Err(error) => error,
        };
        let Some(last) = self.last(&event.subject).await? else { return Err(error) };
        let same = match self.has(Flaw::SameWordsAreOurs) {
            true => last.envelope.id == event.envelope.id,
            false => last.envelope == event.envelope,
        };
        if same && last.body.encode() == event.body.encode() {
            return Ok(last.sequence);
        }
        if last.sequence != expected {
            return Err(BusError::Conflict { expected });
        }
        Err(error)
    }

    /// `Bus::append_patiently`.
    pub async fn append_patiently(&self, event: &Outgoing, expected: u64) -> Result<u64, BusError> {
        loop {
            match self.append(event, expected).await {
                Ok(sequence) => return Ok(sequence),
                Err(error) => self.patience(error)?,
            }
        }
    }

    /// `Patience::after`: whether to try again.
    pub fn patience(&self, error: BusError) -> Result<(), BusError> {
        let gives_up = !matches!(error, BusError::Unavailable { .. }) || self.strikes(|faults| faults.impatience);
        if gives_up { Err(error) } else { Ok(()) }
    }

    /// A write without any guard, which no service has: for actors that are wrong on purpose.
    pub async fn write_unguarded(&self, event: &Outgoing) -> Result<u64, BusError> {
        self.send(event, |world| Ok(world.log.write(event, world.now()))).await
    }

    /// A request to write, on its way there and back.
    async fn send(
        &self,
        event: &Outgoing,
        write: impl Fn(&mut crate::world::World) -> Result<u64, BusError>,
    ) -> Result<u64, BusError> {
        step().await;
        let lost = || Err(unavailable("publishing"));
        if self.strikes(|faults| faults.lost_request) {
            self.note(|| format!("lost before it was written: {}", event.subject));
            return lost();
        }
        let written = write(&mut self.world.borrow_mut());
        self.note(|| format!("writes {} {}: {written:?}", event.subject, event.envelope.id));
        step().await;
        if self.strikes(|faults| faults.lost_answer) {
            self.note(|| format!("does not hear what came of it: {}", event.subject));
            return lost();
        }
        written
    }

    /// `Bus::last`.
    pub async fn last(&self, subject: &str) -> Result<Option<Record>, BusError> {
        step().await;
        let hidden = self.hidden();
        Ok(self.world.borrow().log.last(subject, hidden))
    }

    /// Whether there is anything on a subject, for `directory.rs`. Servers that lag behind are left out: a message to
    /// an agent that was defined a moment ago may come back as undeliverable.
    pub async fn exists(&self, subject: &str) -> bool {
        step().await;
        self.world.borrow().log.last_sequence(subject) > 0
    }

    /// `Bus::read_all` of a subject.
    pub async fn read_subject(&self, subject: &str, after: u64) -> Vec<Record> {
        self.read(after, |record| record.subject == subject).await
    }

    /// `Bus::read_all` of everything that concerns an agent.
    pub async fn read_agent(&self, agent: &Name, after: u64) -> Vec<Record> {
        self.read(after, |record| concerns(record, agent)).await
    }

    async fn read(&self, after: u64, fits: impl Fn(&Record) -> bool) -> Vec<Record> {
        step().await;
        let hidden = self.hidden();
        self.world.borrow().log.read(after, hidden, fits)
    }

    /// The message at a place of the log, of which the ledger knows.
    pub async fn at(&self, sequence: u64) -> Record {
        step().await;
        self.world.borrow().log.records[sequence as usize - 1].clone()
    }

    /// How many messages the server that answers has not seen yet.
    fn hidden(&self) -> usize {
        match self.strikes(|faults| faults.lag) {
            true => 1 + self.world.borrow().chance.borrow_mut().below(LAG),
            false => 0,
        }
    }

    /// `Holding::hold`.
    pub fn hold(&self, action: Uuid) -> Held<'_> {
        let stop = Rc::new(Cell::new(false));
        self.world.borrow_mut().replicas[self.id].held.insert(action, stop.clone());
        Held { replica: self, action, stop }
    }

    /// `Holding::is_held`. A replica that stands still does not answer and counts as gone. That comes long after the
    /// lease of its processes is over, which is a matter of clocks (`lease.rs` of the supervisor) and is taken for
    /// granted here.
    pub async fn is_held(&self, instance: &str, action: Uuid) -> bool {
        if instance == self.instance.as_str() {
            return self.world.borrow().replicas[self.id].held.contains_key(&action);
        }
        step().await;
        if self.strikes(|faults| faults.young) {
            return true;
        }
        let mut world = self.world.borrow_mut();
        let Some(other) = world.replicas.iter().position(|other| other.instance.as_str() == instance) else {
            return false;
        };
        let condition = &world.replicas[other];
        let (answers, held) = (condition.alive && !condition.frozen, condition.held.contains_key(&action));
        if !answers {
            world.lease_over(other);
        }
        world.note(self.instance.as_str(), || format!("asks {instance} whether it has {action}: {}", answers && held));
        answers && held
    }
}

impl Replica {
    /// `Holding::stop`: whether that replica works on it and was told to stop.
    pub async fn stop(&self, instance: &str, action: Uuid) -> bool {
        step().await;
        let world = self.world.borrow();
        let other = world.replicas.iter().position(|other| other.instance.as_str() == instance);
        let held = other.filter(|other| world.answers(*other)).and_then(|it| world.replicas[it].held.get(&action));
        held.inspect(|stop| stop.set(true)).is_some()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.replica.world.borrow_mut().replicas[self.replica.id].held.remove(&self.action);
    }
}

/// Whether it is on one of the subjects that `everything_of` the agent names.
pub fn concerns(record: &Record, agent: &Name) -> bool {
    record.subject.split('.').nth(2) == Some(agent.as_str())
}

pub fn unavailable(doing: &'static str) -> BusError {
    BusError::Unavailable { doing, source: "lost on the way".into() }
}

/// What an actor shares with those that work in the same replica.
pub type Own = Rc<Replica>;
