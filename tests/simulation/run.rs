//! One run, from its first message to its rest.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    task::LocalSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    chance::Chance,
    faults::Faults,
    flaw::Flaw,
    invariants, load,
    orders::{self, Waits},
    storm,
    world::{ProcessState, Shared, World},
};

/// Time that passes when everything is at rest, in seconds: what is planned for later comes about.
const PAUSES: [u64; 3] = [2 * 60, 2 * 60 * 60, 26 * 60 * 60];
const DAY: u64 = 24 * 60 * 60;
/// When a task that failed is tried again, in seconds.
const SESSION_PAUSE: u64 = 61;
/// The silence after which everything is at rest, and the longest time until that once nothing goes wrong any more.
const REST: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(300);
/// The most times that something may still be waited for when everything is at rest.
const MOST_WAITS: usize = 100;
/// The interval at which the server looks at its clock.
const TICK: Duration = Duration::from_millis(50);
/// The longest that an orderly end may take.
const END: Duration = Duration::from_secs(30);

/// The outcome of a run.
pub struct Outcome {
    pub mistakes: Vec<String>,
    /// The messages of its log, as they lie in the stream.
    pub log: Vec<Vec<u8>>,
}

/// Runs a seed.
pub fn run(seed: u64, flaw: Option<Flaw>, trace: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), live(seed, flaw, trace))
}

async fn live(seed: u64, flaw: Option<Flaw>, trace: bool) -> Outcome {
    let mut chance = Chance::new(!seed);
    let faults = Faults::of(seed, &mut chance);
    let world = Arc::new(Mutex::new(World::new(seed, faults, flaw, trace)));
    world.lock().unwrap().me = Arc::downgrade(&world);
    world.lock().unwrap().provision();
    world.lock().unwrap().note("world", || format!("{faults:?}"));
    tokio::spawn(tick(world.clone()));
    if faults.recreated {
        before(&world, &mut chance).await;
    }
    load::define(&mut world.lock().unwrap(), &mut chance);
    storm::fill_up(&world);
    let shortest = if faults.long_programs { 12_000 } else { 1_000 };
    let storm = Duration::from_millis(shortest + chance.below(12_000) as u64);
    let said = load::drawn(&mut chance);
    tokio::join!(storm::rage(&world, Instant::now() + storm), load::speak(&world, said, storm));
    storm::calm(&world);
    // What nobody has in memory must be in the log and the buckets.
    if chance.permille(300) {
        let mut world = world.lock().unwrap();
        world.living(|_| true).into_iter().for_each(|replica| world.kill(replica));
    }
    storm::fill_up(&world);
    come_to_rest(&world).await;
    end(&world).await;
    let world = world.lock().unwrap();
    Outcome { mistakes: invariants::mistakes(&world), log: world.server.bytes() }
}

/// The server's own time.
async fn tick(world: Shared) {
    loop {
        sleep(TICK).await;
        world.lock().unwrap().tick();
    }
}

/// Runs the time before the log is made again, and makes the log again.
async fn before(world: &Shared, chance: &mut Chance) {
    load::define(&mut world.lock().unwrap(), chance);
    storm::fill_up(world);
    let said = load::drawn(chance);
    load::speak(world, said, Duration::from_secs(4)).await;
    {
        let mut world = world.lock().unwrap();
        world.living(|_| true).into_iter().for_each(|replica| world.kill(replica));
    }
    // What they had sent arrives before that.
    sleep(Duration::from_secs(1)).await;
    world.lock().unwrap().make_again();
}

/// When everything is at rest, users answer what they were asked, and time passes.
async fn come_to_rest(world: &Shared) {
    let mut pauses = PAUSES.into_iter();
    let mut has_hooks = true;
    for wait in 0..MOST_WAITS {
        if timeout(PATIENCE, rest(world)).await.is_err() {
            let mut world = world.lock().unwrap();
            // Hooks that make one another happen, each once on behalf of the others, are many but not for ever.
            let ends = if has_hooks { orders::end_of_hooks(&world) } else { Vec::new() };
            has_hooks = false;
            if !ends.is_empty() {
                ends.into_iter().for_each(|end| load::publish(&mut world, end));
                continue;
            }
            let left: Vec<_> =
                world.server.durables.iter().map(|(it, durable)| (it.name(), durable.pending_attempts())).collect();
            let busy = Arc::strong_count(&world.busy) - 1;
            world.violation(format!("it never came to rest; {busy} at work, in hand: {left:?}"));
            return;
        }
        let mut world = world.lock().unwrap();
        let replies = orders::last_replies(&world);
        if !replies.is_empty() {
            replies.into_iter().for_each(|reply| load::publish(&mut world, reply));
            continue;
        }
        let Some(pause) = pauses.next() else {
            // A team with a mission finds work for every day, and each day may bring tasks that come again.
            if wait == MOST_WAITS / 2 {
                let ends = orders::end_of_days(&world).into_iter().chain(orders::end_of_hooks(&world));
                ends.collect::<Vec<_>>().into_iter().for_each(|end| load::publish(&mut world, end));
            }
            match orders::what_waits(&world) {
                Waits::Nothing => return,
                Waits::ForAnotherTry => world.ahead += SESSION_PAUSE,
                Waits::ForTheNextDay => world.ahead += DAY,
                Waits::ForItsOwner(order) => load::publish(&mut world, *order),
            }
            continue;
        };
        if let Some(order) = orders::order_of_task(&world, world.records().len()) {
            load::publish(&mut world, order);
        }
        world.ahead += pause;
        world.note("world", || format!("{pause} s later"));
    }
    let mut world = world.lock().unwrap();
    let waits = orders::what_waits(&world);
    world.violation(format!("it never came to rest; after {MOST_WAITS} waits: {waits:?}"));
}

/// Waits until nothing happens any more.
async fn rest(world: &Shared) {
    let seen = || {
        let world = world.lock().unwrap();
        let runs =
            |process: &&crate::world::Process| matches!(process.state, ProcessState::AtTheGate | ProcessState::Running);
        let busy = Arc::strong_count(&world.busy) > 1 || world.processes.iter().any(|it| runs(&it));
        (world.records().len(), busy || !world.server.is_settled())
    };
    let (mut last, mut since) = (seen(), Instant::now());
    while last.1 || since.elapsed() < REST {
        sleep(Duration::from_millis(100)).await;
        let now = seen();
        if now != last || now.1 {
            (last, since) = (now, Instant::now());
        }
    }
}

/// Everybody is asked to stop, and does.
async fn end(world: &Shared) {
    let living = world.lock().unwrap().living(|_| true);
    for replica in living {
        let running = {
            let mut world = world.lock().unwrap();
            world.replicas[replica].shutdown.cancel();
            world.replicas[replica].running.take()
        };
        if let Some(running) = running
            && timeout(END, running).await.is_err()
        {
            let mut world = world.lock().unwrap();
            let who = world.replicas[replica].instance.clone();
            world.violation(format!("{who} did not stop"));
        }
    }
}
