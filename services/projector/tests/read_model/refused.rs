//! Tests of messages that cannot be read, and of those that Postgres rejects.

use kairo_core::subjects::{self, DLQ_STREAM};
use kairo_proto::v1::UserMessage;
use kairo_read_model::EventsQuery;
use sqlx::AssertSqlSafe;

use crate::{
    history::{Turn, defined, entering},
    world::World,
};

async fn dead_letters(world: &World) -> u64 {
    let stream = world.bus.nats().unwrap().jetstream.get_stream_no_info(DLQ_STREAM).await.unwrap();
    stream.get_info().await.unwrap().state.messages
}

#[tokio::test]
async fn what_cannot_be_read_blocks_nothing_and_is_reported_once() {
    let world = World::start(&[]).await;
    // The first three are nobody's but the projector's to report.
    for subject in ["kairo.agent.bob.defined", "kairo.agent.bob.dreamt", "kairo.tool.x.y.z"] {
        let mut event = entering(&subjects::USER_MESSAGE, "ann", subject, UserMessage::default());
        event.subject = subject.to_owned();
        world.publish(&event).await;
    }
    // What a newer version says is counted.
    for number in ["1", "2"] {
        let mut event = entering(&subjects::USER_MESSAGE, "ann", number, UserMessage::default());
        event.envelope.type_name = "kairo.agent.dreamt.v1".to_owned();
        world.publish(&event).await;
    }
    world
        .bus
        .nats()
        .unwrap()
        .jetstream
        .publish(world.bus.stored_subject("kairo.agent.bob.defined"), "no headers".into())
        .await
        .unwrap()
        .await
        .unwrap();
    world.publish(&defined("bob")).await;
    world.caught_up().await;
    assert_eq!(world.now().await.list_agents().await.unwrap().len(), 1);
    assert_eq!(dead_letters(&world).await, 4);
    let unknown = world.model.unknown_types().await.unwrap();
    let unknown: Vec<_> = unknown.iter().map(|unknown| (unknown.r#type.as_str(), unknown.messages)).collect();
    assert_eq!(unknown, [("kairo.agent.dreamt.v1", 2)]);

    world.rebuild().await;
    assert_eq!(world.now().await.list_agents().await.unwrap().len(), 1);
    assert_eq!(dead_letters(&world).await, 4);
}

#[tokio::test]
async fn nuls_and_endless_keys_are_stored_as_far_as_they_can_be() {
    let world = World::start(&[]).await;
    let mut event = entering(
        &subjects::USER_MESSAGE,
        "ann",
        "1",
        UserMessage {
            message_id: "m".repeat(100_000),
            agent: "a\0".repeat(10_000),
            text: "one\0two".into(),
            thread_id: "t".repeat(10_000),
            ..Default::default()
        },
    );
    event.envelope.thread_id = Some("t".repeat(3_000));
    event.envelope.tags = vec!["\0".into()];
    let sequence = world.publish(&event).await;
    world.publish(&Turn::new("ann", "bob", 2).message).await;
    world.caught_up().await;
    let sent = world.model.find_message("ann", &"m".repeat(100_000)).await.unwrap().unwrap();
    assert_eq!(sent.sequence, sequence);
    let of_thread = EventsQuery { thread: Some("t".repeat(3_000)), ..Default::default() };
    let events = world.now().await.list_events(&of_thread).await.unwrap();
    assert_eq!((events.len(), events[0].text()), (1, "one\0two"));
    assert_eq!(dead_letters(&world).await, 0);
}

#[tokio::test]
async fn a_row_that_postgres_refuses_is_set_aside_alone() {
    let world = World::start(&[]).await;
    let place = world.place().await;
    let rule = format!("ALTER TABLE {place}.messages ADD CONSTRAINT no_second CHECK (message_id <> 'm-2')");
    sqlx::raw_sql(AssertSqlSafe(rule)).execute(world.model.pool()).await.unwrap();
    for number in 1..=3 {
        world.publish(&Turn::new("ann", "bob", number).message).await;
    }
    world.caught_up().await;
    let known = |number: usize| {
        let model = world.model.clone();
        async move { model.find_message("ann", &format!("m-{number}")).await.unwrap().is_some() }
    };
    assert_eq!((known(1).await, known(2).await, known(3).await), (true, false, true));
    assert_eq!(dead_letters(&world).await, 1);
}

#[tokio::test]
async fn large_messages_pass_one_after_the_other() {
    let world = World::start(&[("KAIRO_PROJECTOR__BATCH_BYTES", "1024")]).await;
    for number in 0..20 {
        let mut turn = Turn::new("ann", "bob", number);
        turn.message.body = UserMessage { text: "x".repeat(500_000), ..Default::default() }.into();
        world.publish(&turn.message).await;
    }
    world.caught_up().await;
    assert_eq!(world.count("SELECT count(*) FROM events").await, 20);
}
