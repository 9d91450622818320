//! A replica that is frozen while it thinks, given up, and comes back.

use kairo_local::Service;

use super::{
    audit,
    turn::{self, AGENT, wanted},
    workpiece::Workpiece,
};

#[tokio::test]
async fn a_frozen_mind_is_replaced_and_fenced_when_it_comes_back() {
    let mut world = turn::start(wanted()).await;
    let workpiece = Workpiece::new();
    workpiece.release();
    let mut tokens = turn::tokens(&world).await;
    let sent = turn::send(&world, &workpiece).await;
    turn::next(&mut tokens).await;
    world.stack.freeze(Service::AgentRuntime, 0).unwrap();
    world.stack.start(Service::AgentRuntime).await.unwrap();
    let reply = world.reply(&sent).await;
    assert!(reply.contains("done"), "{reply}");
    // Both asked the model the first question, and the second was asked by the one that is awake.
    assert_eq!(world.model_requests().await.len(), 3);

    world.stack.thaw(Service::AgentRuntime, 0).unwrap();
    // Alone now, and serial: it answers once it is through with the decision it was frozen in.
    world.stack.stop_one(Service::AgentRuntime, 1).await.unwrap();
    assert_eq!(world.ask(AGENT, "are you there?").await, "You said: are you there?");
    audit::passes(&world).await;

    world.stack.restart(Service::AgentRuntime, 1).await.unwrap();
    world.stack.stop_one(Service::AgentRuntime, 0).await.unwrap();
    assert_eq!(world.ask(AGENT, "and you?").await, "You said: and you?");
    assert_eq!(workpiece.effects(), 1);
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn minds_that_freeze_in_turns_lose_nothing() {
    let world = turn::start(wanted().replicas(Service::AgentRuntime, 2)).await;
    let mut sent = Vec::new();
    for (round, frozen) in [0, 1, 0, 1].into_iter().enumerate() {
        world.stack.freeze(Service::AgentRuntime, frozen).unwrap();
        for number in 0..3 {
            sent.push(world.send(AGENT, &format!("message {number} of round {round}")).await);
        }
        let last = sent.last().unwrap();
        world.reply(last).await;
        world.stack.thaw(Service::AgentRuntime, frozen).unwrap();
    }
    for sent in &sent {
        world.reply(sent).await;
    }
    audit::passes(&world).await;
    world.end().await;
}
