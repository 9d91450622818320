//! Chooses who takes the next step.

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use kairo_core::{
    bus::consume::Delivery,
    subjects::{Consumer, Service},
};

use uuid::Uuid;

use crate::{
    actor::{Actor, SERVICES, consumed_by, work},
    chance::Chance,
    faults::Faults,
    flaw::Flaw,
    load::{self, Said},
    orders,
    replica::{Own, Replica},
    steps::Thread,
    world::{Condition, ProcessState, Shared, World},
};

/// Replicas of each service while all is well.
const REPLICAS: usize = 2;
/// Deliveries one replica works on at once.
const AT_ONCE: usize = 6;
/// Steps within which everything must come to rest once nothing goes wrong any more.
const PATIENCE: u64 = 40_000;
/// Time that passes when everything is at rest, in seconds: what is planned for later comes about.
const PAUSES: [u64; 3] = [2 * 60, 2 * 60 * 60, 26 * 60 * 60];

pub struct Simulation {
    pub world: Shared,
    /// By the number of the replica; none for those that are dead.
    pub actors: Vec<Option<Actor>>,
    pub tasks: Vec<Task>,
    pub chance: Rc<RefCell<Chance>>,
    unsaid: VecDeque<Said>,
    pauses: VecDeque<u64>,
    /// Until when things go wrong.
    storm: u64,
}

/// A delivery being dealt with.
pub struct Task {
    pub replica: usize,
    consumer: Consumer,
    sequence: u64,
    thread: Thread<'static, ()>,
}

/// What can happen next when nothing goes wrong.
enum Choice {
    GoOn(usize),
    Deliver(Consumer, u64),
    Say {
        at_last: bool,
    },
    End(usize),
    /// A timer goes off.
    GoOff((Uuid, u64)),
}

impl Simulation {
    pub fn new(seed: u64, flaw: Option<Flaw>, trace: bool) -> Self {
        let mut chance = Chance::new(!seed);
        let mut world = World::new(seed, Faults::drawn(&mut chance), flaw, trace);
        load::define(&mut world, &mut chance);
        let mut simulation = Self {
            chance: world.chance.clone(),
            world: Rc::new(RefCell::new(world)),
            actors: Vec::new(),
            tasks: Vec::new(),
            unsaid: load::drawn(&mut chance),
            pauses: VecDeque::from(PAUSES),
            storm: 100 + chance.below(600) as u64,
        };
        simulation.fill_up();
        simulation
    }

    /// Runs until everything is at rest, or cannot come to rest.
    pub fn run(&mut self) {
        let mut calm = false;
        loop {
            let clock = self.tick();
            match calm {
                false if clock > self.storm => {
                    self.calm_down();
                    calm = true;
                }
                false => self.go_wrong(),
                true => {}
            }
            let moved = self.happen() || calm && self.go_on();
            if calm && (!moved || clock > self.storm + PATIENCE) {
                break;
            }
        }
        let left: Vec<_> = self.tasks.iter().map(|task| (task.consumer, task.sequence)).collect();
        let mut world = self.world.borrow_mut();
        if !left.is_empty() || !world.log.is_settled() {
            world.violation(format!("it never came to rest; these deliveries are in hand: {left:?}"));
        }
    }

    /// When everything is at rest: users answer what they were asked, and time passes. False when that is over.
    fn go_on(&mut self) -> bool {
        let replies = orders::last_replies(&self.world.borrow());
        let mut world = self.world.borrow_mut();
        if !replies.is_empty() {
            replies.into_iter().for_each(|reply| load::publish(&mut world, reply));
            return true;
        }
        let Some(pause) = self.pauses.pop_front() else { return false };
        if let Some(order) = orders::order_of_task(&world, world.log.records.len()) {
            load::publish(&mut world, order);
        }
        world.ahead += pause;
        world.note("world", || format!("{pause} s later"));
        true
    }

    fn tick(&self) -> u64 {
        let mut world = self.world.borrow_mut();
        world.clock += 1;
        world.clock
    }

    /// One step of whoever is chosen; false when there is nobody.
    fn happen(&mut self) -> bool {
        let choices = self.choices();
        let total: usize = choices.iter().map(|(weight, _)| weight).sum();
        if total == 0 {
            return false;
        }
        let mut at = self.chance.borrow_mut().below(total);
        for (weight, choice) in choices {
            if at < weight {
                self.take(choice);
                break;
            }
            at -= weight;
        }
        true
    }

    fn choices(&self) -> Vec<(usize, Choice)> {
        let world = self.world.borrow();
        let mut choices = Vec::new();
        for (at, task) in self.tasks.iter().enumerate() {
            if task.thread.can_go_on() && !world.replicas[task.replica].frozen {
                choices.push((4, Choice::GoOn(at)));
            }
        }
        for (consumer, sequence, attempts) in world.log.waiting() {
            choices.push((if attempts == 0 { 3 } else { 1 }, Choice::Deliver(consumer, sequence)));
        }
        for (at, process) in world.processes.iter().enumerate() {
            if process.state == ProcessState::Running {
                choices.push((1, Choice::End(at)));
            }
        }
        choices.extend(world.due().map(|timer| (1, Choice::GoOff(timer))));
        if !self.unsaid.is_empty() {
            choices.push((2, Choice::Say { at_last: choices.is_empty() }));
        }
        choices
    }

    fn take(&mut self, choice: Choice) {
        match choice {
            Choice::GoOn(at) => {
                if self.tasks[at].thread.go_on().is_some() {
                    self.tasks.swap_remove(at);
                }
            }
            Choice::Deliver(consumer, sequence) => self.deliver(consumer, sequence),
            Choice::Say { at_last } => {
                let Some(said) = self.unsaid.pop_front() else { return };
                let mut world = self.world.borrow_mut();
                // Orders are given while there is something to be ordered, or else at the end.
                match at_last || load::is_timely(&world, &said) {
                    true => load::say(&mut world, said),
                    false => self.unsaid.push_back(said),
                }
            }
            Choice::GoOff(timer) => {
                let mut world = self.world.borrow_mut();
                let (again, lost) = (world.strikes(world.faults.repeated_timer), world.has(Flaw::LostTimer));
                world.go_off(timer, again, lost);
            }
            Choice::End(at) => {
                let mut world = self.world.borrow_mut();
                world.note("world", || format!("the process of {} ends", world.processes[at].action));
                world.over(at, ProcessState::Ended);
            }
        }
    }

    fn deliver(&mut self, consumer: Consumer, sequence: u64) {
        let busy = |replica| self.tasks.iter().filter(|task| task.replica == replica).count() >= AT_ONCE;
        let takers = self.well(|service, replica| consumed_by(consumer) == service && !busy(replica));
        let Some(replica) = self.pick(takers) else { return };
        let Some(actor) = self.actors[replica].clone() else { return };
        let mut world = self.world.borrow_mut();
        let Some((record, attempt)) = world.log.deliver(consumer, sequence, replica) else { return };
        let instance = world.replicas[replica].instance.clone();
        world.note(instance.as_str(), || format!("is given {sequence} {} (attempt {attempt})", record.subject));
        let own = Own::new(Replica { id: replica, instance, world: self.world.clone() });
        let thread = Thread::new(work(own, actor, consumer, Delivery { record, attempt }));
        self.tasks.push(Task { replica, consumer, sequence, thread });
    }

    /// Starts what is missing.
    pub fn fill_up(&mut self) {
        for service in SERVICES {
            let there = self.actors.iter().flatten().filter(|actor| actor.service() == service).count();
            (there..REPLICAS).for_each(|_| self.start(service));
        }
    }

    fn start(&mut self, service: Service) {
        let id = self.actors.len();
        let instance = load::name(&format!("{}-{id}", service.name()));
        let condition = Condition { instance: instance.clone(), alive: true, frozen: false, held: Default::default() };
        self.world.borrow_mut().replicas.push(condition);
        let replica = Own::new(Replica { id, instance, world: self.world.clone() });
        self.actors.push(Some(Actor::new(service, replica)));
    }

    pub fn living(&self) -> Vec<usize> {
        (0..self.actors.len()).filter(|replica| self.actors[*replica].is_some()).collect()
    }

    pub fn well(&self, fits: impl Fn(Service, usize) -> bool) -> Vec<usize> {
        let world = self.world.borrow();
        let fit = |at: &usize| self.actors[*at].as_ref().is_some_and(|actor| fits(actor.service(), *at));
        self.living().into_iter().filter(|at| !world.replicas[*at].frozen).filter(fit).collect()
    }

    pub fn pick<T: Clone>(&self, from: Vec<T>) -> Option<T> {
        (!from.is_empty()).then(|| from[self.chance.borrow_mut().below(from.len())].clone())
    }
}
