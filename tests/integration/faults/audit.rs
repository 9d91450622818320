//! Counting over the whole log of a world in which nothing is left to do.

use std::collections::BTreeSet;

use kairo_core::subjects::{self, DLQ_STREAM, TASK_TRIGGERED};
use kairo_tests::{audit, causes};

use crate::world::World;

const MAX_BODY: usize = 1_000_000;

/// Waits until nothing is left to do, then sees that every message has one reply, every tool call one result, every
/// process one end and every input no more than one decision, in the order of the log, and that nothing was given up.
pub async fn passes(world: &World) {
    world.settled().await;
    let (mut records, mut headers) = (Vec::new(), Vec::new());
    let read = world.bus.read_all("kairo.>", 0, |raw| {
        let header = |name| raw.header(name).map(str::to_owned);
        // What another system said has the id that it chose, in whatever form.
        let cause = header("ce-causationid").filter(|_| !raw.subject.ends_with(TASK_TRIGGERED.verb));
        headers.push([header("ce-id"), header("ce-events"), cause]);
        // What other systems say need not be an event of Kairo's.
        if subjects::trigger_of(&raw.subject).is_none() {
            records.push(raw.read(MAX_BODY).expect("an event"));
        }
    });
    read.await.unwrap();
    let wrong = audit::mistakes(&records);
    every_cause_is_named(&headers);
    let gaps = causes::gaps(&records);
    assert!(gaps.is_empty(), "{}\nthe log holds:\n{}", gaps.join("\n"), world.log.text());
    assert!(wrong.is_empty(), "{}\nthe log holds:\n{}", wrong.join("\n"), world.log.text());
    let mut letters = world.bus.nats().unwrap().jetstream.get_stream(DLQ_STREAM).await.unwrap();
    assert_eq!(letters.info().await.unwrap().state.messages, 0, "dead letters");
}

/// Checks that headers alone name every cause: it is the id of a message, or among those that a message says it holds.
fn every_cause_is_named(headers: &[[Option<String>; 3]]) {
    let known: BTreeSet<&str> =
        headers.iter().flat_map(|[id, held, _]| [id, held]).flatten().flat_map(|ids| ids.split(',')).collect();
    let causes = headers.iter().filter_map(|[.., cause]| cause.as_deref());
    let lost: Vec<&str> = causes.filter(|cause| !known.contains(cause)).collect();
    assert!(lost.is_empty(), "no header names {lost:?}");
}
