//! Another generation of the documents is made beside the live one.

use kairo_read_model::{READ_MODEL, SEARCH, search::SearchQuery};

use crate::{
    history::{everything, many},
    meili::Meili,
    setup::{Setup, ask},
};

#[tokio::test]
async fn an_index_is_made_anew_while_questions_are_answered() {
    let Some(meili) = Meili::find().await else { return };
    let setup = Setup::start(meili, None).await;
    setup.publish(&many("bob", 0)).await;
    let first = setup.caught_up().await;
    let search = setup.search();
    let asked = setup.world.model.request_rebuild(SEARCH).await.unwrap().unwrap();
    assert_eq!(setup.world.model.request_rebuild(SEARCH).await.unwrap(), None, "one is being made");
    let swapped = setup.until(|all| all.iter().find(|one| one.generation == asked && one.state == "live").cloned());
    let mut swapped = std::pin::pin!(swapped);
    loop {
        let query = SearchQuery { words: "thread".into(), ..Default::default() };
        let answer = ask(&search, query).await;
        assert_eq!((answer.backend.as_str(), answer.total), ("meilisearch", 40));
        if futures::poll!(&mut swapped).is_ready() {
            break;
        }
    }
    let (held, wanted) = setup.digests(asked).await;
    assert_eq!(held, wanted);
    // The one before is kept until it is told to go.
    let kept = setup.until(|all| all.iter().find(|one| one.generation == first.generation).cloned()).await;
    assert_eq!(kept.state, "kept");
    assert!(setup.world.model.request_drop(first.generation).await.unwrap());
    setup.until(|all| all.iter().all(|one| one.generation != first.generation).then(|| all[0].clone())).await;
    assert!(!setup.meili.engine().has_index(&setup.meili.config.index_name(first.generation)).await.unwrap());
}

#[tokio::test]
async fn other_tables_and_a_lost_index_lead_to_another_generation() {
    let Some(meili) = Meili::find().await else { return };
    let setup = Setup::start(meili, None).await;
    setup.publish(&everything()).await;
    let first = setup.caught_up().await;
    let tables = setup.world.model.request_rebuild(READ_MODEL).await.unwrap().unwrap();
    let second =
        setup.until(|all| all.iter().find(|one| one.state == "live" && one.source == Some(tables)).cloned()).await;
    assert_ne!(second.generation, first.generation);
    let index = setup.meili.config.index_name(second.generation);
    setup.meili.engine().delete_index(&index).await.unwrap();
    // What is asked meanwhile, Postgres answers.
    let answer = ask(&setup.search(), SearchQuery { words: "soup".into(), ..Default::default() }).await;
    assert_eq!(answer.total, 2);
    setup.publish(&many("eve", 0)).await;
    let third = setup
        .until(|all| all.iter().find(|one| one.state == "live" && one.generation > second.generation).cloned())
        .await;
    assert!(!setup.meili.engine().has_index(&index).await.unwrap(), "it is not made again by what is sent to it");
    setup.caught_up().await;
    let (held, wanted) = setup.digests(third.generation).await;
    assert_eq!(held, wanted);
}
