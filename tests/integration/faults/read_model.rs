//! The tables against the log they were made from.

use crate::world::World;

/// Tables that no turn leaves empty.
const FILLED: [&str; 7] = ["log", "events", "agents", "threads", "messages", "actions", "processes"];

/// Waits until the projection has read the whole log, and sees that a clean rebuild gives the same rows.
pub async fn is_that_of_the_log(world: &World) {
    world.verified().await;
    let digests = world.digests_are_equal().await;
    for generation in digests["generations"].as_array().unwrap() {
        let parts = generation["parts"].as_array().unwrap();
        for table in FILLED {
            let part = parts.iter().find(|part| part["name"] == table).unwrap();
            assert_ne!(part["rows"], 0, "{table} of {generation}");
        }
    }
}
