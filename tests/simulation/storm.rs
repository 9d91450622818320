//! The faults that strike a run, and their times.

mod desertion;

use std::time::Duration;

use kairo_core::subjects::{Consumer, EVENTS_STREAM, MEMBERS_BUCKET, OWNERS_BUCKET, SNAPSHOTS_BUCKET, Service};
use tokio::time::{Instant, sleep};

use crate::{
    cluster::{self, SERVICES},
    faults::Faults,
    replica::Replica,
    world::{ProcessState, Shared, World},
};

/// Replicas of each service while all is well, and at the most.
const REPLICAS: usize = 2;
const MOST: usize = 3;
/// Between two moments in which something may strike, in milliseconds.
const PACE: usize = 400;

/// Strikes until the storm is over.
pub async fn rage(world: &Shared, until: Instant) {
    while Instant::now() < until {
        let pause = world.lock().unwrap().below(PACE) as u64;
        sleep(Duration::from_millis(pause)).await;
        strike(world);
    }
}

/// From here on nothing goes wrong.
pub fn calm(world: &Shared) {
    {
        let mut world = world.lock().unwrap();
        world.deserted = None;
        world.faults = Faults { outdated_catalogue: world.faults.outdated_catalogue, ..Faults::default() };
        world.note("world", || "calm".to_owned());
        for replica in 0..world.replicas.len() {
            world.replicas[replica].life.thaw();
            world.reconnect(replica);
        }
        for stream in world.server.streams.values_mut() {
            (stream.full, stream.leaderless) = (false, None);
        }
    }
    // Who was asked to stop, and has not yet, is not there for long.
    fill_up_counting(world, |replica| !replica.shutdown.is_cancelled());
}

/// Sees to it that there are as many replicas as there should be.
pub fn fill_up(world: &Shared) {
    fill_up_counting(world, |_| true);
}

fn fill_up_counting(world: &Shared, counts: impl Fn(&Replica) -> bool) {
    for service in SERVICES {
        let here = world.lock().unwrap();
        if desertion::is_deserted(&here, service) {
            continue;
        }
        let living = here.living(|its| its == service).into_iter().filter(|at| counts(&here.replicas[*at])).count();
        drop(here);
        (living..REPLICAS).for_each(|_| _ = cluster::start(world, service));
    }
}

fn strike(world: &Shared) {
    let faults = world.lock().unwrap().faults;
    let strikes = |rate: u64| world.lock().unwrap().permille(rate);
    if strikes(250) {
        fill_up(world);
    }
    if strikes(faults.join) {
        let here = world.lock().unwrap();
        let service = SERVICES[here.below(SERVICES.len())];
        let room = here.living(|its| its == service).len() < MOST && !desertion::is_deserted(&here, service);
        drop(here);
        room.then(|| cluster::start(world, service));
    }
    if strikes(faults.desertion) {
        desertion::desert(world);
    }
    let mut here = world.lock().unwrap();
    if here.permille(faults.crash)
        && let Some(replica) = here.some_living()
    {
        here.kill(replica);
    }
    if here.permille(faults.stop)
        && let Some(replica) = here.some_living()
    {
        here.note(&here.replicas[replica].instance, || "is to stop".to_owned());
        here.replicas[replica].shutdown.cancel();
    }
    if here.permille(faults.freeze)
        && let Some(replica) = here.some_living()
    {
        let longest = if here.permille(300) { 14_000 } else { 6_000 };
        let pause = here.length(longest);
        here.freeze(world, vec![replica], pause);
    }
    if here.permille(faults.standstill)
        && let Some(supervisor) = here.some_supervisor_at_work()
    {
        let pause = Duration::from_millis(4_000 + here.below(10_000) as u64);
        here.freeze(world, vec![supervisor], pause);
    }
    if here.permille(faults.pause) {
        let all = here.living(|_| true);
        let pause = here.length(8_000);
        here.freeze(world, all, pause);
    }
    if here.permille(faults.cut)
        && let Some(replica) = here.some_living()
    {
        let pause = here.length(4_000);
        here.cut(world, vec![replica], pause);
    }
    server(world, &mut here, &faults);
}

/// Strikes the server and its storage.
fn server(world: &Shared, here: &mut World, faults: &Faults) {
    if here.permille(faults.restart) {
        here.note("server", || "restarts".to_owned());
        here.server.restart();
        let all = here.living(|_| true);
        let pause = here.length(2_000);
        here.cut(world, all, pause);
    }
    if here.permille(faults.leaderless) {
        let names: Vec<String> = here.server.streams.keys().cloned().collect();
        let name = &names[here.below(names.len())];
        let until = Instant::now() + here.length(2_000);
        here.note("server", || format!("{name} has no leader"));
        here.server.streams.get_mut(name).expect("there").leaderless = Some(until);
    }
    if here.permille(faults.full) {
        let pause = here.length(2_000);
        here.note("server", || "the log is full".to_owned());
        here.server.streams.get_mut(EVENTS_STREAM).expect("a log").full = true;
        let world = world.clone();
        tokio::spawn(async move {
            sleep(pause).await;
            if let Some(log) = world.lock().unwrap().server.streams.get_mut(EVENTS_STREAM) {
                log.full = false;
            }
        });
    }
    if here.permille(faults.redelivery) {
        // Nobody orders anything to be dealt with again here.
        let consumer = Consumer::DURABLE[here.below(Consumer::DURABLE.len() - Consumer::RETRIES.len())];
        let out = here.server.durables[&consumer].in_flight_count();
        if out > 0 {
            let which = here.below(out);
            here.server.durables.get_mut(&consumer).expect("there").redeliver(which);
            here.flush();
        }
    }
    if here.permille(faults.copy) {
        let end = here.server.streams[EVENTS_STREAM].last_sequence() as usize;
        if end > 0 {
            let sequence = 1 + here.below(end) as u64;
            let copy = here.copy(sequence);
            here.note("world", || format!("{copy} is a copy of {sequence}"));
        }
    }
    if here.permille(faults.wiped) {
        here.note("server", || "the bucket of snapshots is emptied".to_owned());
        here.disruptions += 1;
        here.server.streams.get_mut(&format!("KV_{SNAPSHOTS_BUCKET}")).expect("there").purge();
    }
    if here.permille(faults.forgotten) {
        let bucket = [MEMBERS_BUCKET, OWNERS_BUCKET][here.below(2)];
        here.note("server", || format!("{bucket} is emptied"));
        if let Some(stream) = here.server.streams.get_mut(&format!("KV_{bucket}")) {
            stream.purge();
        }
        here.disruptions += 1;
    }
}

impl World {
    /// Some length of time, mostly short.
    fn length(&mut self, longest: usize) -> Duration {
        let longest = if self.permille(500) { longest / 4 } else { longest };
        Duration::from_millis(50 + self.below(longest) as u64)
    }

    pub fn living(&self, which: impl Fn(Service) -> bool) -> Vec<usize> {
        let lives = |it: &usize| {
            let replica = &self.replicas[*it];
            let over = replica.running.as_ref().is_some_and(|running| running.is_finished());
            which(replica.service) && !replica.life.is_dead() && !over
        };
        (0..self.replicas.len()).filter(lives).collect()
    }

    fn some_living(&mut self) -> Option<usize> {
        let living = self.living(|_| true);
        (!living.is_empty()).then(|| living[self.below(living.len())])
    }

    /// Some process supervisor, if any program runs and none of them stands still: somebody must be there to miss it.
    fn some_supervisor_at_work(&self) -> Option<usize> {
        let supervisors = self.living(|its| its == Service::ProcessSupervisor);
        let all_go = supervisors.iter().all(|it| !self.replicas[*it].life.is_frozen());
        let runs = self.processes.iter().any(|process| process.state == ProcessState::Running);
        (runs && all_go && !supervisors.is_empty()).then(|| supervisors[self.below(supervisors.len())])
    }

    pub fn kill(&mut self, replica: usize) {
        self.note(&self.replicas[replica].instance, || "DIES".to_owned());
        self.disruptions += 1;
        self.replicas[replica].life.kill();
        self.server.disconnect_replica(replica, true);
    }

    fn freeze(&mut self, world: &Shared, replicas: Vec<usize>, pause: Duration) {
        self.disruptions += 1;
        for replica in &replicas {
            self.note(&self.replicas[*replica].instance, || format!("FREEZES for {pause:?}"));
            self.replicas[*replica].life.freeze();
        }
        let world = world.clone();
        tokio::spawn(async move {
            sleep(pause).await;
            let lives: Vec<_> = {
                let world = world.lock().unwrap();
                replicas.iter().map(|replica| world.replicas[*replica].life.clone()).collect()
            };
            lives.iter().for_each(|life| life.thaw());
        });
    }

    fn cut(&mut self, world: &Shared, replicas: Vec<usize>, pause: Duration) {
        self.disruptions += 1;
        self.was_cut = true;
        let until = Instant::now() + pause;
        for replica in &replicas {
            self.note(&self.replicas[*replica].instance, || format!("is cut off for {pause:?}"));
            self.replicas[*replica].cut = Some(until);
            self.server.disconnect_replica(*replica, false);
        }
        let world = world.clone();
        tokio::spawn(async move {
            sleep(pause).await;
            let mut world = world.lock().unwrap();
            replicas.into_iter().for_each(|replica| world.reconnect(replica));
        });
    }

    fn reconnect(&mut self, replica: usize) {
        let there = &mut self.replicas[replica];
        let over = there.cut.is_some_and(|until| until <= Instant::now());
        if over || self.faults.is_fair() && there.cut.is_some() {
            there.cut = None;
            there.connections += 1;
        }
    }
}
