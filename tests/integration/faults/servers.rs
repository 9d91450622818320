//! nats-server and Postgres, killed and started again during a turn.

use kairo_local::Service;

use super::{
    audit, read_model,
    turn::{self, Moment, wanted},
    workpiece::Workpiece,
};

#[tokio::test]
async fn nats_killed_at_any_moment() {
    let mut world = turn::start(wanted()).await;
    for moment in Moment::ALL {
        let turn = turn::with_fault(&mut world, moment, async |world| {
            world.nats.kill9().await.unwrap();
            world.nats.restart().await.unwrap();
        })
        .await;
        assert_eq!(turn.workpiece.effects(), 1, "{moment:?}");
        assert!(turn.reply.contains("done"), "a process outlives the server: {}", turn.reply);
    }
    audit::passes(&world).await;
    read_model::is_that_of_the_log(&world).await;
    world.end().await;
}

#[tokio::test]
async fn nats_killed_with_replicas_that_could_take_each_other_for_dead() {
    let mut world = turn::start(wanted().replicas_of_all(2)).await;
    for moment in Moment::ALL {
        let turn = turn::with_fault(&mut world, moment, async |world| {
            world.nats.kill9().await.unwrap();
            world.nats.restart().await.unwrap();
        })
        .await;
        assert_eq!(turn.workpiece.effects(), 1, "{moment:?}");
        assert!(turn.reply.contains("done"), "a process outlives the server: {}", turn.reply);
    }
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_process_that_ends_while_nats_is_away_is_heard_of_all_the_same() {
    let mut world = turn::start(wanted()).await;
    let mut workpiece = Workpiece::new();
    let sent = turn::send(&world, &workpiece).await;
    workpiece.begun().await;
    world.nats.kill9().await.unwrap();
    workpiece.release();
    workpiece.gone().await;
    world.nats.restart().await.unwrap();
    let reply = world.reply(&sent).await;
    assert!(reply.contains("done"), "{reply}");
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn postgres_killed_at_any_moment() {
    let mut world = turn::start(wanted().replicas(Service::Projector, 2)).await;
    for moment in Moment::ALL {
        let turn = turn::with_fault(&mut world, moment, async |world| {
            world.postgres.kill9().await.unwrap();
            world.postgres.restart().await.unwrap();
        })
        .await;
        assert_eq!(turn.workpiece.effects(), 1, "{moment:?}");
    }
    audit::passes(&world).await;
    read_model::is_that_of_the_log(&world).await;
    world.end().await;
}

/// Rows are for looking at: nothing that an agent does waits for them.
#[tokio::test]
async fn a_turn_needs_no_postgres() {
    let mut world = turn::start(wanted()).await;
    world.postgres.kill9().await.unwrap();
    let turn = turn::with_fault(&mut world, Moment::Accepted, async |_| {}).await;
    assert!(turn.reply.contains("done"), "{}", turn.reply);
    world.postgres.restart().await.unwrap();
    audit::passes(&world).await;
    read_model::is_that_of_the_log(&world).await;
    world.end().await;
}
