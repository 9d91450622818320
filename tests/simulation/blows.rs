//! What strikes a simulation, and when.

use kairo_proto::Body;

use crate::{faults::Faults, scheduler::Simulation};

/// Steps in a thousand in which a frozen replica goes on, something it holds is given to another, and a dead replica
/// is replaced.
const THAW: u64 = 30;
const ACK_WAIT: u64 = 80;
const RESTART: u64 = 50;

impl Simulation {
    /// Strikes, if this is the moment.
    pub fn go_wrong(&mut self) {
        let faults = self.world.borrow().faults;
        if self.strikes(faults.forgotten_claims) {
            self.world.borrow_mut().claims.clear();
        }
        if self.strikes(RESTART) {
            self.fill_up();
        }
        if self.strikes(faults.crash)
            && let Some(replica) = self.pick(self.living())
        {
            self.crash(replica);
        }
        if self.strikes(faults.freeze)
            && let Some(replica) = self.pick(self.well(|_, _| true))
        {
            self.set_frozen(replica, true);
        }
        if self.strikes(THAW)
            && let Some(replica) = self.pick(self.frozen())
        {
            self.set_frozen(replica, false);
        }
        if self.strikes(ACK_WAIT) {
            self.give_to_another(true);
        }
        if self.strikes(faults.redelivery) {
            self.give_to_another(false);
        }
        if self.strikes(faults.copy) {
            self.copy();
        }
    }

    /// From here on nothing goes wrong.
    pub fn calm_down(&mut self) {
        self.world.borrow_mut().faults = Faults::default();
        self.frozen().into_iter().for_each(|replica| self.set_frozen(replica, false));
        self.fill_up();
        self.world.borrow().note("world", || "calm".to_owned());
    }

    fn strikes(&self, rate: u64) -> bool {
        self.chance.borrow_mut().permille(rate)
    }

    /// Something comes again that a replica has in hand which stands still, or which is well.
    fn give_to_another(&self, of_frozen: bool) {
        let frozen = self.frozen();
        let out: Vec<_> = self.world.borrow().log.out().filter(|(_, _, by)| frozen.contains(by) == of_frozen).collect();
        let Some((consumer, sequence, by)) = self.pick(out) else { return };
        let mut world = self.world.borrow_mut();
        if of_frozen {
            world.lease_over(by);
        }
        world.log.again(consumer, sequence);
    }

    /// Somebody publishes a message again, which no guard keeps out. Not the last decision of an agent: whoever made it
    /// may not know yet that it is written, and would take the copy for it.
    fn copy(&self) {
        let mut world = self.world.borrow_mut();
        let sequence = 1 + self.chance.borrow_mut().below(world.log.records.len()) as u64;
        let record = &world.log.records[sequence as usize - 1];
        if matches!(record.body, Body::AgentDecision(_)) && world.log.last_sequence(&record.subject) == sequence {
            return;
        }
        let now = world.now();
        let copy = world.log.copy(sequence, now);
        world.note("world", || format!("{copy} is a copy of {sequence}"));
    }

    fn crash(&mut self, replica: usize) {
        self.say_of(replica, "DIES");
        self.actors[replica] = None;
        // What it was doing is dropped while nothing is borrowed: that, too, says something to the world.
        self.tasks.retain(|task| task.replica != replica);
        let mut world = self.world.borrow_mut();
        world.replicas[replica].alive = false;
        world.lease_over(replica);
        let held: Vec<_> = world.log.out().filter(|(_, _, by)| *by == replica).collect();
        held.into_iter().for_each(|(consumer, sequence, _)| world.log.again(consumer, sequence));
    }

    fn set_frozen(&self, replica: usize, frozen: bool) {
        self.say_of(replica, if frozen { "FREEZES" } else { "thaws" });
        self.world.borrow_mut().replicas[replica].frozen = frozen;
    }

    fn say_of(&self, replica: usize, what: &str) {
        let world = self.world.borrow();
        world.note(world.replicas[replica].instance.as_str(), || what.to_owned());
    }

    fn frozen(&self) -> Vec<usize> {
        let world = self.world.borrow();
        self.living().into_iter().filter(|replica| world.replicas[*replica].frozen).collect()
    }
}
