//! Readers of a log that loses messages while they read: they wait for none of those that are gone.

use async_nats::HeaderMap;
use futures::future::join_all;
use kairo_core::ownership::tail::{self, TailItem};

use super::*;
use crate::archive::trimmed_by_limit;

/// More messages than a reader asks for ahead of what is taken from it.
const MESSAGES: usize = 4_000;
const SOLD: &str = "kairo.system.shop.sold";

#[tokio::test]
async fn an_owner_that_catches_up_waits_for_no_message_that_the_log_has_lost() {
    let mut world = Wanted::new(USUAL).start().await;
    join_all((0..MESSAGES).map(|_| world.publish(SOLD, HeaderMap::new(), "{}"))).await;
    let mut tail = tail::follow(&world.bus, vec![world.bus.stored_subject(SOLD)], 0);
    let Some(TailItem::Began { pending }) = tail.recv().await else { panic!("it counts first") };
    assert_eq!(pending, MESSAGES as u64);
    trimmed_by_limit(&world, 1).await;
    let mut read = 0;
    let caught_up = async {
        loop {
            match tail.recv().await.unwrap() {
                TailItem::Messages(messages) => read += messages.len(),
                TailItem::Began { pending: 0 } => return,
                TailItem::Began { .. } => {}
            }
        }
    };
    timeout(DEADLINE, caught_up).await.expect("it waits for what is gone");
    assert!(0 < read && read < MESSAGES, "some were lost: {read} were read");
    // What comes afterwards is read as ever.
    world.publish(SOLD, HeaderMap::new(), "{}").await;
    let next = timeout(DEADLINE, tail.recv()).await.unwrap();
    assert!(matches!(next, Some(TailItem::Messages(messages)) if messages.len() == 1));
    // Agents whose definitions are gone never settle.
    world.stack.stop().await.unwrap();
}
