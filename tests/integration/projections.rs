//! `kairo projections` and what it is answered with.

use serde_json::Value;

use crate::{
    command_line::{kairo, lines},
    world::{Wanted, World, scenario::USUAL},
};

async fn status(world: &World, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = kairo(world, arguments).await;
    (output.status.code(), lines(&output).into_iter().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_read_model_is_rebuilt_verified_and_cleared_away() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    world.ask("default", "time please").await;
    world.projected().await;

    let (code, listed) = status(&world, &["projections"]).await;
    assert_eq!(code, Some(0), "{listed:?}");
    assert!(listed[0].starts_with("PROJECTION") && listed[1].contains("live"), "{listed:?}");

    let (code, rebuilt) = status(&world, &["projections", "rebuild", "read-model"]).await;
    assert_eq!(code, Some(0), "{rebuilt:?}");
    assert!(rebuilt[0].contains("answers queries"), "{rebuilt:?}");
    let (code, verified) = status(&world, &["projections", "verify"]).await;
    assert_eq!(code, Some(0), "{verified:?}");
    assert!(verified.last().unwrap().ends_with(": equal"), "{verified:?}");

    let (code, swapped) = status(&world, &["projections", "swap", "read-model"]).await;
    assert_eq!((code, swapped.len()), (Some(1), 0), "nothing differs");
    let (code, dropped) = status(&world, &["projections", "drop", "read-model"]).await;
    assert!(code == Some(0) && dropped[0].ends_with("is removed"), "{dropped:?}");
    assert_eq!(status(&world, &["projections", "rebuild", "nothing"]).await.0, Some(1));

    let output = kairo(&world, &["projections", "rebuild", "all", "--json"]).await;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["generations"][0]["state"], "live", "{answer}");
    world.end().await;
}

/// Rows that somebody changed by hand are what a rebuild mends, once it is told to.
#[tokio::test]
async fn what_is_not_what_the_log_says_is_found_and_replaced() {
    let world = World::broken().await;
    let (code, rebuilt) = status(&world, &["projections", "rebuild", "read-model"]).await;
    assert_eq!(code, Some(1), "{rebuilt:?}");
    assert!(rebuilt[0].contains("differs from the live one") && rebuilt[0].contains("agents"), "{rebuilt:?}");
    let (code, verified) = status(&world, &["projections", "verify", "read-model"]).await;
    assert_eq!(code, Some(1), "{verified:?}");
    assert!(verified.iter().any(|line| line.contains("read-model/agents DIFFERS")), "{verified:?}");
    let differing = world.projection("read-model").await["generations"].as_array().unwrap().last().unwrap().clone();
    let (code, swapped) = status(&world, &["projections", "swap", "read-model"]).await;
    assert_eq!(code, Some(0), "{swapped:?}");
    world.swapped("read-model", differing["generation"].as_i64().unwrap()).await;
    assert_ne!(world.get("/v1/agents").await.1["agents"].as_array().unwrap().len(), 0);
    world.end().await;
}

#[tokio::test]
async fn what_differs_is_swapped_in_where_that_was_asked_for() {
    let world = World::broken().await;
    let (code, rebuilt) = status(&world, &["projections", "rebuild", "read-model", "--swap-anyway"]).await;
    assert_eq!(code, Some(0), "{rebuilt:?}");
    world.end().await;
}

impl World {
    /// One whose read model lost an agent.
    async fn broken() -> World {
        let world = Wanted::new(USUAL).start().await;
        world.define("default").await;
        world.ask("default", "hello").await;
        world.projected().await;
        world.execute("DELETE FROM kairo.agents").await;
        world
    }
}
