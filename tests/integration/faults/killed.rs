//! kill -9 of each service, and of all at once, at every moment of a turn.

use kairo_core::subjects::Consumer;
use kairo_local::Service;

use super::{
    audit, read_model,
    turn::{self, Moment, wanted},
    workpiece::Workpiece,
};
use crate::world::World;

/// Kills a service at every moment of a turn, a turn for each moment, and starts it again.
async fn killed_at_every_moment(service: Service) -> World {
    let mut world = turn::start(wanted()).await;
    for moment in Moment::ALL {
        let turn = turn::with_fault(&mut world, moment, async |world| {
            world.stack.kill9(service, 0).await.unwrap();
            world.stack.restart(service, 0).await.unwrap();
        })
        .await;
        assert_eq!(turn.workpiece.effects(), 1, "{moment:?}");
        let lost = service == Service::ProcessSupervisor && moment == Moment::Working;
        let said = if lost { "in_doubt" } else { "done" };
        assert!(turn.reply.contains(said), "{moment:?}: {}", turn.reply);
    }
    audit::passes(&world).await;
    world
}

#[tokio::test]
async fn a_router_killed_at_any_moment() {
    killed_at_every_moment(Service::Router).await.end().await;
}

#[tokio::test]
async fn an_agent_runtime_killed_at_any_moment() {
    killed_at_every_moment(Service::AgentRuntime).await.end().await;
}

#[tokio::test]
async fn a_tool_runner_killed_at_any_moment() {
    killed_at_every_moment(Service::ToolRunner).await.end().await;
}

#[tokio::test]
async fn a_process_supervisor_killed_at_any_moment() {
    killed_at_every_moment(Service::ProcessSupervisor).await.end().await;
}

#[tokio::test]
async fn a_projector_killed_at_any_moment() {
    let world = killed_at_every_moment(Service::Projector).await;
    read_model::is_that_of_the_log(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_gateway_killed_at_any_moment() {
    let world = killed_at_every_moment(Service::Gateway).await;
    let (status, conversation) = world.get("/v1/conversations/default").await;
    assert_eq!(status, 200, "{conversation}");
    world.end().await;
}

/// A service that dies with something in its hands, which it never looked at, leaves it to another replica.
#[tokio::test]
async fn a_replica_killed_with_a_delivery_in_its_hands() {
    let mut world = turn::start(wanted()).await;
    for (service, consumer) in [
        // These read for themselves what is in the partitions that they own.
        (Service::Router, None),
        (Service::AgentRuntime, None),
        (Service::ToolRunner, Some(Consumer::ToolRunner)),
        (Service::ProcessSupervisor, Some(Consumer::ProcessSupervisor)),
    ] {
        world.settled().await;
        world.stack.freeze(service, 0).unwrap();
        let workpiece = Workpiece::new();
        workpiece.release();
        let sent = turn::send(&world, &workpiece).await;
        if let Some(consumer) = consumer {
            world.delivered(consumer).await;
        }
        world.stack.start(service).await.unwrap();
        world.stack.kill9(service, 0).await.unwrap();
        let reply = world.reply(&sent).await;
        assert!(reply.contains("done"), "{service:?}: {reply}");
        assert_eq!(workpiece.effects(), 1);
    }
    audit::passes(&world).await;
    world.end().await;
}

/// All services die in the same moment.
pub(super) async fn all_killed(world: &mut World) {
    let services: Vec<Service> = Service::ALL.into_iter().filter(|service| *service != Service::ModelSim).collect();
    // Frozen first, so that none lives to see another die.
    services.iter().for_each(|service| world.stack.freeze(*service, 0).unwrap());
    for service in services {
        world.stack.kill9(service, 0).await.unwrap();
    }
}

pub(super) async fn all_restarted(world: &mut World) {
    for service in Service::ALL.into_iter().filter(|service| *service != Service::ModelSim) {
        world.stack.restart(service, 0).await.unwrap();
    }
}

#[tokio::test]
async fn all_services_killed_at_once_at_any_moment() {
    let mut world = turn::start(wanted()).await;
    for moment in Moment::ALL {
        let turn = turn::with_fault(&mut world, moment, async |world| {
            all_killed(world).await;
            all_restarted(world).await;
        })
        .await;
        assert_eq!(turn.workpiece.effects(), 1, "{moment:?}");
        let said = if moment == Moment::Working { "in_doubt" } else { "done" };
        assert!(turn.reply.contains(said), "{moment:?}: {}", turn.reply);
    }
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn everything_killed_at_once_servers_too() {
    let mut world = turn::start(wanted()).await;
    for moment in [Moment::Thinking, Moment::Working] {
        let turn = turn::with_fault(&mut world, moment, async |world| {
            all_killed(world).await;
            world.nats.kill9().await.unwrap();
            world.postgres.kill9().await.unwrap();
            world.nats.restart().await.unwrap();
            world.postgres.restart().await.unwrap();
            all_restarted(world).await;
        })
        .await;
        assert_eq!(turn.workpiece.effects(), 1, "{moment:?}");
    }
    audit::passes(&world).await;
    read_model::is_that_of_the_log(&world).await;
    world.end().await;
}
