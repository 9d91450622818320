//! The replicas of every service, and how a delivery is dealt with and settled: `consume.rs`.

use std::rc::Rc;

use kairo_core::{
    bus::consume::{Delivery, Failure, Settled},
    subjects::{Consumer, Service},
};

use crate::{
    effects, flaw::Flaw, replica::Own, router::Router, runner::Runner, runtime::Runtime, steps::step,
    supervisor::Supervisor,
};

pub const SERVICES: [Service; 4] =
    [Service::Router, Service::AgentRuntime, Service::ToolRunner, Service::ProcessSupervisor];
/// Conflicts in a row before a delivery comes again.
const CONFLICTS: u32 = 8;

#[derive(Clone)]
pub enum Actor {
    Router(Rc<Router>),
    Runtime(Rc<Runtime>),
    Runner(Rc<Runner>),
    Supervisor(Rc<Supervisor>),
}

impl Actor {
    pub fn new(service: Service, replica: Own) -> Self {
        match service {
            Service::Router => Actor::Router(Rc::new(Router { replica })),
            Service::AgentRuntime => Actor::Runtime(Rc::new(Runtime::new(&replica))),
            Service::ToolRunner => Actor::Runner(Rc::new(Runner::new(&replica))),
            Service::ProcessSupervisor => {
                let supervisor = Rc::new(Supervisor::new(&replica));
                replica.world.borrow_mut().supervisors.push(Rc::downgrade(&supervisor));
                Actor::Supervisor(supervisor)
            }
            Service::Gateway | Service::Projector => unreachable!("not in a simulation"),
        }
    }

    pub fn service(&self) -> Service {
        match self {
            Actor::Router(_) => Service::Router,
            Actor::Runtime(_) => Service::AgentRuntime,
            Actor::Runner(_) => Service::ToolRunner,
            Actor::Supervisor(_) => Service::ProcessSupervisor,
        }
    }

    async fn handle(&self, consumer: Consumer, delivery: &Delivery) -> Result<Settled, Failure> {
        match self {
            Actor::Router(router) => router.handle(delivery).await,
            Actor::Runtime(runtime) if consumer == Consumer::AgentRuntimeEffects => {
                effects::handle(&runtime.replica, delivery).await
            }
            Actor::Runtime(runtime) => runtime.handle(delivery).await,
            Actor::Runner(runner) if consumer == Consumer::ToolRunnerProcesses => runner.results.handle(delivery).await,
            Actor::Runner(runner) => runner.handle(delivery).await,
            Actor::Supervisor(supervisor) => supervisor.handle(delivery).await,
        }
    }
}

pub fn consumed_by(consumer: Consumer) -> Service {
    match consumer {
        Consumer::Router | Consumer::RouterEvents => Service::Router,
        Consumer::AgentRuntime | Consumer::AgentRuntimeEffects => Service::AgentRuntime,
        Consumer::ToolRunner | Consumer::ToolRunnerProcesses => Service::ToolRunner,
        Consumer::ProcessSupervisor => Service::ProcessSupervisor,
    }
}

/// Deals with a delivery, and settles it.
pub async fn work(own: Own, actor: Actor, consumer: Consumer, delivery: Delivery) {
    let sequence = delivery.record.sequence;
    let effects_first = own.has(Flaw::EffectsAckFirst) && consumer == Consumer::AgentRuntimeEffects;
    if own.has(Flaw::AckFirst) || effects_first {
        own.world.borrow_mut().log.ack(consumer, sequence);
    }
    let mut conflicts = 0;
    let outcome = loop {
        match actor.handle(consumer, &delivery).await {
            Err(Failure::Conflict(_)) if conflicts < CONFLICTS => conflicts += 1,
            other => break other,
        }
    };
    step().await;
    own.note(|| format!("settles {sequence}: {outcome:?}"));
    let heard = !own.strikes(|faults| faults.lost_ack);
    let mut world = own.world.borrow_mut();
    match outcome {
        Ok(Settled::Done) if heard => world.log.ack(consumer, sequence),
        Err(Failure::Permanent(reason)) => world.violation(format!("{sequence} became a dead letter: {reason}")),
        _ => world.log.again(consumer, sequence),
    }
}
