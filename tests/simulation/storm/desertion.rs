//! Times in which nobody of a service is there: what is decided meanwhile waits for whoever comes back.

use std::time::Duration;

use kairo_core::subjects::Service;
use tokio::time::{Instant, sleep};

use crate::{
    load, orders,
    world::{Shared, World},
};

/// The longest, in milliseconds.
const LONGEST: usize = 8_000;
/// Orders to stop something that users give meanwhile, at most, and the longest time between them in milliseconds.
const ORDERS: usize = 4;
const PACE: usize = 700;

/// All who carry calls out die or stand still for a while, and users order the end of calls meanwhile.
pub fn desert(world: &Shared) {
    let mut here = world.lock().unwrap();
    let service = [Service::ToolRunner, Service::ToolRunner, Service::ProcessSupervisor][here.below(3)];
    let pause = Duration::from_millis(1_000 + here.below(LONGEST) as u64);
    let all = here.living(|its| its == service);
    here.note("world", || format!("nobody of {service:?} is there for {pause:?}"));
    match here.permille(500) {
        true => here.freeze(world, all, pause),
        false => all.into_iter().for_each(|replica| here.kill(replica)),
    }
    here.deserted = Some((service, Instant::now() + pause));
    drop(here);
    tokio::spawn(order_stops(world.clone()));
}

/// Returns true while no replica of this service is to be started.
pub fn is_deserted(world: &World, service: Service) -> bool {
    world.deserted.is_some_and(|(of, until)| of == service && Instant::now() < until)
}

async fn order_stops(world: Shared) {
    for number in 0..ORDERS {
        let pause = world.lock().unwrap().below(PACE) as u64;
        sleep(Duration::from_millis(pause)).await;
        let mut here = world.lock().unwrap();
        if here.deserted.is_none() {
            return;
        }
        if orders::acts(&here) {
            let at = here.records().len();
            let stop = orders::stop(&here, &format!("s-{at}-{number}"));
            load::publish(&mut here, stop);
        }
    }
}
