//! The requests that agent-runtime sends to NATS to load its agents, counted at the server.

use futures::future::join_all;
use kairo_agent_runtime::snapshot_key;
use kairo_core::subjects::SNAPSHOTS_BUCKET;
use kairo_local::Service;
use tokio::time::timeout;

use crate::{
    chats::sent_by,
    world::{DEADLINE, Wanted, agent, scenario::USUAL},
};

#[tokio::test]
async fn an_agent_that_is_read_for_the_first_time_costs_a_few_requests_however_much_it_was_told() {
    const AGENTS: u64 = 200;
    let mut world = Wanted::new(USUAL).monitored().start().await;
    let agents: Vec<String> = (0..AGENTS).map(|number| format!("a-{number}")).collect();
    for some in agents.chunks(20) {
        join_all(some.iter().map(|agent| world.define(agent))).await;
        for _ in 0..3 {
            join_all(some.iter().map(|agent| world.ask(agent, "time please"))).await;
        }
    }
    world.settled().await;
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    world.wipe(SNAPSHOTS_BUCKET).await;
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    world.settled().await;
    let sent = sent_by(&world, Service::AgentRuntime).await;
    // Three of each, and its snapshot; then what a replica asks that starts, reads its partitions and says that it is there.
    assert!((3 * AGENTS..8 * AGENTS).contains(&sent), "{sent} messages for {AGENTS} agents");
    world.end().await;
}

#[tokio::test]
async fn a_snapshot_that_was_deleted_is_written_again() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    world.ask("default", "time please").await;
    let key = snapshot_key(&agent("default"));
    let written = async { while world.bus.read_value(SNAPSHOTS_BUCKET, &key).await.unwrap().is_none() {} };
    timeout(DEADLINE, written).await.expect("there was never one");
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    let bucket = world.bus.nats().unwrap().jetstream.get_key_value(SNAPSHOTS_BUCKET).await.unwrap();
    bucket.delete(&key).await.unwrap();
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    world.ask("default", "time please").await;
    let again = async { while world.bus.read_value(SNAPSHOTS_BUCKET, &key).await.unwrap().is_none() {} };
    timeout(DEADLINE, again).await.expect("it was never written again");
    world.end().await;
}
