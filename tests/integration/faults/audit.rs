//! Counting over the whole log of a world in which nothing is left to do.

use kairo_core::subjects::{self, DLQ_STREAM};
use kairo_tests::audit;

use crate::world::World;

const MAX_BODY: usize = 1_000_000;

/// Waits until nothing is left to do, then sees that every message has one reply, every tool call one result, every
/// process one end and every input no more than one decision, in the order of the log, and that nothing was given up.
pub async fn passes(world: &World) {
    world.settled().await;
    let mut records = Vec::new();
    let read = world.bus.read_all("kairo.>", 0, |raw| {
        // What other systems say need not be an event of Kairo's.
        if subjects::outside(&raw.subject).is_none() {
            records.push(raw.read(MAX_BODY).expect("an event"));
        }
    });
    read.await.unwrap();
    let wrong = audit::mistakes(&records);
    assert!(wrong.is_empty(), "{}\nthe log holds:\n{}", wrong.join("\n"), world.log.text());
    let mut letters = world.bus.nats().unwrap().jetstream.get_stream(DLQ_STREAM).await.unwrap();
    assert_eq!(letters.info().await.unwrap().state.messages, 0, "dead letters");
}
