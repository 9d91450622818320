//! Whatever dies, the index holds in the end what a clean rebuild makes.

use kairo_local::Service;
use kairo_read_model::{SEARCH, search::SearchQuery};

use crate::{
    history::{decision, everything, many, memory},
    meili::{Meili, SlowWay},
    place::{Place, ask},
};

#[tokio::test]
async fn a_search_engine_that_is_killed_under_load_misses_nothing() {
    let Some(meili) = Meili::own(&[]).await else { return };
    let mut place = Place::start(meili, None).await;
    place.publish(&everything()).await;
    place.caught_up().await;
    let search = place.search();
    for round in 0..3 {
        let events = many("bob", round);
        place.publish(&events[..20]).await;
        place.meili.kill9().await;
        // What is asked meanwhile, Postgres answers.
        let answer = ask(&search, SearchQuery { words: "pumpkin".into(), ..Default::default() }).await;
        assert_eq!((answer.backend.as_str(), answer.total), ("postgres", 1));
        place.publish(&events[20..]).await;
        place.meili.restart().await;
    }
    place.is_as_if_rebuilt().await;
    let answer = ask(&search, SearchQuery { words: "pumpkin".into(), ..Default::default() }).await;
    assert_eq!((answer.backend.as_str(), answer.total), ("meilisearch", 1));
}

#[tokio::test]
async fn a_rebuild_goes_on_after_the_search_engine_was_killed() {
    let Some(meili) = Meili::own(&[]).await else { return };
    let mut place = Place::start(meili, None).await;
    place.publish(&many("bob", 0)).await;
    place.caught_up().await;
    let asked = place.world.model.rebuild(SEARCH).await.unwrap().unwrap();
    place.until(|all| all.iter().find(|one| one.generation == asked && one.state != "asked").cloned()).await;
    place.meili.kill9().await;
    place.publish(&many("eve", 0)).await;
    place.meili.restart().await;
    place.until(|all| all.iter().find(|one| one.generation == asked && one.state == "live").cloned()).await;
    place.is_as_if_rebuilt().await;
}

#[tokio::test]
async fn a_slow_search_engine_is_waited_for_and_a_killed_projector_goes_on() {
    let Some(meili) = Meili::find().await else { return };
    let way = SlowWay::to(&meili.config.meili_url).await;
    let mut place = Place::start(meili, Some(&way.url)).await;
    place.publish(&everything()).await;
    place.caught_up().await;
    way.takes(60);
    for round in 0..3 {
        let events = many("bob", round);
        place.publish(&events[..20]).await;
        place.world.stack.kill9(Service::Projector, 0).await.unwrap();
        place.publish(&events[20..]).await;
        place.world.stack.restart(Service::Projector, 0).await.unwrap();
    }
    // In the middle of a rebuild, too.
    place.caught_up().await;
    let asked = place.world.model.rebuild(SEARCH).await.unwrap().unwrap();
    place.until(|all| all.iter().find(|one| one.generation == asked && one.state != "asked").cloned()).await;
    place.world.stack.kill9(Service::Projector, 0).await.unwrap();
    place.world.stack.restart(Service::Projector, 0).await.unwrap();
    place.until(|all| all.iter().find(|one| one.generation == asked && one.state == "live").cloned()).await;
    way.takes(0);
    place.is_as_if_rebuilt().await;
}

#[tokio::test]
async fn a_replica_that_was_frozen_leaves_nothing_old() {
    let Some(meili) = Meili::find().await else { return };
    let mut place = Place::start(meili, None).await;
    place.world.stack.start(Service::Projector).await.unwrap();
    place.publish(&everything()).await;
    place.caught_up().await;
    for round in 0..4 {
        let events = many("bob", round);
        place.publish(&events[..20]).await;
        // One of them leads; frozen for longer than Postgres keeps its session.
        let index = round % 2;
        place.world.stack.freeze(Service::Projector, index).unwrap();
        place.publish(&events[20..]).await;
        place.caught_up().await;
        place.world.stack.thaw(Service::Projector, index).unwrap();
    }
    place.is_as_if_rebuilt().await;
}

#[tokio::test]
async fn a_document_that_is_refused_is_set_aside_and_the_rest_goes_on() {
    let Some(meili) = Meili::own(&["--http-payload-size-limit", "20000"]).await else { return };
    let place = Place::start(meili, None).await;
    let long = |unique: &str, content: &str| {
        decision("bob", unique, vec![("", memory("long", "ann", "fact", "Long", content, ""))])
    };
    place.publish(&everything()).await;
    place.world.publish(&long("long", &"much too long ".repeat(3_000))).await;
    place.publish(&many("bob", 0)).await;
    place.caught_up().await;
    let refused = "SELECT count(*) FROM refused_documents WHERE kind = 'memory' AND reason <> ''";
    assert_eq!(place.world.count(refused).await, 1);
    let all = ask(&place.search(), SearchQuery::default()).await;
    assert_eq!((all.backend.as_str(), all.total), ("meilisearch", 9 + 3 * 40));
    place.world.publish(&long("short", "short now")).await;
    place.caught_up().await;
    assert_eq!(place.world.count("SELECT count(*) FROM refused_documents").await, 0);
    place.is_as_if_rebuilt().await;
}
