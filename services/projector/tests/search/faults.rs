//! Tests that the index ends up equal to a clean rebuild, whichever process dies.

use kairo_local::Service;
use kairo_read_model::{SEARCH, search::SearchQuery};

use crate::{
    history::{decision, everything, many, memory},
    meili::{Meili, SlowWay},
    setup::{Setup, ask},
};

#[tokio::test]
async fn a_search_engine_that_is_killed_under_load_misses_nothing() {
    let Some(meili) = Meili::own(&[]).await else { return };
    let mut setup = Setup::start(meili, None).await;
    setup.publish(&everything()).await;
    setup.caught_up().await;
    let search = setup.search();
    for round in 0..3 {
        let events = many("bob", round);
        setup.publish(&events[..20]).await;
        setup.meili.kill9().await;
        // What is asked meanwhile, Postgres answers.
        let answer = ask(&search, SearchQuery { words: "pumpkin".into(), ..Default::default() }).await;
        assert_eq!((answer.backend.as_str(), answer.total), ("postgres", 1));
        setup.publish(&events[20..]).await;
        setup.meili.restart().await;
    }
    setup.is_as_if_rebuilt().await;
    let answer = ask(&search, SearchQuery { words: "pumpkin".into(), ..Default::default() }).await;
    assert_eq!((answer.backend.as_str(), answer.total), ("meilisearch", 1));
}

#[tokio::test]
async fn a_rebuild_goes_on_after_the_search_engine_was_killed() {
    let Some(meili) = Meili::own(&[]).await else { return };
    let mut setup = Setup::start(meili, None).await;
    setup.publish(&many("bob", 0)).await;
    setup.caught_up().await;
    let asked = setup.world.model.request_rebuild(SEARCH).await.unwrap().unwrap();
    setup.until(|all| all.iter().find(|one| one.generation == asked && one.state != "asked").cloned()).await;
    setup.meili.kill9().await;
    setup.publish(&many("eve", 0)).await;
    setup.meili.restart().await;
    setup.until(|all| all.iter().find(|one| one.generation == asked && one.state == "live").cloned()).await;
    setup.is_as_if_rebuilt().await;
}

#[tokio::test]
async fn a_slow_search_engine_is_waited_for_and_a_killed_projector_goes_on() {
    let Some(meili) = Meili::find().await else { return };
    let way = SlowWay::to(&meili.config.meili_url).await;
    let mut setup = Setup::start(meili, Some(&way.url)).await;
    setup.publish(&everything()).await;
    setup.caught_up().await;
    way.takes(60);
    for round in 0..3 {
        let events = many("bob", round);
        setup.publish(&events[..20]).await;
        setup.world.stack.kill9(Service::Projector, 0).await.unwrap();
        setup.publish(&events[20..]).await;
        setup.world.stack.restart(Service::Projector, 0).await.unwrap();
    }
    // In the middle of a rebuild, too.
    setup.caught_up().await;
    let asked = setup.world.model.request_rebuild(SEARCH).await.unwrap().unwrap();
    setup.until(|all| all.iter().find(|one| one.generation == asked && one.state != "asked").cloned()).await;
    setup.world.stack.kill9(Service::Projector, 0).await.unwrap();
    setup.world.stack.restart(Service::Projector, 0).await.unwrap();
    setup.until(|all| all.iter().find(|one| one.generation == asked && one.state == "live").cloned()).await;
    way.takes(0);
    setup.is_as_if_rebuilt().await;
}

#[tokio::test]
async fn a_replica_that_was_frozen_leaves_nothing_old() {
    let Some(meili) = Meili::find().await else { return };
    let mut setup = Setup::start(meili, None).await;
    setup.world.stack.start(Service::Projector).await.unwrap();
    setup.publish(&everything()).await;
    setup.caught_up().await;
    for round in 0..4 {
        let events = many("bob", round);
        setup.publish(&events[..20]).await;
        // One of them leads; frozen for longer than Postgres keeps its session.
        let index = round % 2;
        setup.world.stack.freeze(Service::Projector, index).unwrap();
        setup.publish(&events[20..]).await;
        setup.caught_up().await;
        setup.world.stack.thaw(Service::Projector, index).unwrap();
    }
    setup.is_as_if_rebuilt().await;
}

#[tokio::test]
async fn a_document_that_is_refused_is_set_aside_and_the_rest_goes_on() {
    let Some(meili) = Meili::own(&["--http-payload-size-limit", "20000"]).await else { return };
    let setup = Setup::start(meili, None).await;
    let long = |unique: &str, content: &str| {
        decision("bob", unique, vec![("", memory("long", "ann", "fact", "Long", content, ""))])
    };
    setup.publish(&everything()).await;
    setup.world.publish(&long("long", &"much too long ".repeat(3_000))).await;
    setup.publish(&many("bob", 0)).await;
    setup.caught_up().await;
    let refused = "SELECT count(*) FROM refused_documents WHERE kind = 'memory' AND reason <> ''";
    assert_eq!(setup.world.count(refused).await, 1);
    let all = ask(&setup.search(), SearchQuery::default()).await;
    assert_eq!((all.backend.as_str(), all.total), ("meilisearch", 9 + 3 * 40));
    setup.world.publish(&long("short", "short now")).await;
    setup.caught_up().await;
    assert_eq!(setup.world.count("SELECT count(*) FROM refused_documents").await, 0);
    setup.is_as_if_rebuilt().await;
}
