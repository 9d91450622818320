//! Tests that every search backend finds the same.

use std::{collections::BTreeMap, time::Duration};

use jiff::civil::date;
use kairo_core::ids;
use kairo_proto::{time, v1::HitRow, words::HitKind};
use kairo_read_model::{
    NotFresh,
    search::{DocumentKind, SearchConfig, SearchQuery, SearchService},
};

use crate::{
    history::{decision, everything, thread},
    meili::Meili,
    setup::{Setup, ask, search},
    world::World,
};

#[tokio::test]
async fn postgres_finds_what_there_is() {
    let world = World::start(&[]).await;
    for event in everything() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    finds_what_there_is(&search(&world, &SearchConfig::default()), "postgres").await;
}

#[tokio::test]
async fn meilisearch_finds_what_there_is() {
    let Some(meili) = Meili::find().await else { return };
    let setup = Setup::start(meili, None).await;
    setup.publish(&everything()).await;
    setup.caught_up().await;
    finds_what_there_is(&setup.search(), "meilisearch").await;
    // Nothing that is sealed is in the index.
    let live = setup.caught_up().await;
    let documents =
        setup.meili.engine().list_documents(&setup.meili.config.index_name(live.generation), 0, 100).await.unwrap();
    let text = format!("{documents:?}");
    assert!(documents.len() == 17 && !text.contains("unmistakable") && !text.contains("dW5taXN0YWthYmxl"), "{text}");
}

/// Checks the answers of a backend; both must pass.
async fn finds_what_there_is(search: &SearchService, backend: &str) {
    let words = |words: &str| SearchQuery { words: words.into(), ..Default::default() };
    // Words, in any place and case; misspelt ones: one letter changed, added, left out; beginnings; part of a run.
    for (wanted, expected) in [
        ("budget", vec!["budget", "work"]),
        ("SARAH", vec!["budget", "memory 1"]),
        ("sarah budget", vec!["budget"]),
        ("buddget", vec!["budget", "work"]),
        ("budgat", vec!["budget", "work"]),
        ("budgt", vec!["budget", "work"]),
        ("marketong", vec!["memory 1"]),
        ("market", vec!["memory 1"]),
        ("quarterly rev", vec!["budget", "task 1"]),
        ("calendar", vec!["task 1"]),
        ("email send", vec!["task 1"]),
        ("example", vec!["memory 1 of cook"]),
        ("预算", vec!["memory 3"]),
        ("会议", vec!["memory 3"]),
        ("marmelade", vec!["user eve"]),
        ("打印机", vec!["agent ann"]),
        ("works aga", vec!["agent ann"]),
        // A thread without a title is found by its first message.
        ("wirelass", vec!["printer", "user ann"]),
        ("turquois", vec!["state house", "state house of cat", "state kitchen/paint of ann"]),
        ("厨房", vec!["state kitchen/paint of ann"]),
        ("kitchen pain", vec!["state kitchen/paint of ann"]),
        ("obsolete", vec![]),
        ("gone", vec![]),
        ("toner", vec![]),
        ("zebra", vec![]),
        ("sarah zebra", vec![]),
        ("params", vec![]),
        ("unmistakable", vec![]),
    ] {
        let answer = ask(search, words(wanted)).await;
        assert_eq!(answer.backend, backend);
        assert_eq!(named(&answer.hits), sorted(&expected), "{wanted}");
        assert_eq!(answer.total, expected.len() as u64, "{wanted}");
        assert!(answer.hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{answer:?}");
    }
    let hit = &ask(search, words("bugdet reviewed")).await.hits;
    // Two letters swapped count as one mistake for one of the backends only.
    assert!(hit.iter().all(|hit| hit.id == "budget"), "{hit:?}");
    let hit = &ask(search, words("budgat reviewed")).await.hits[0];
    assert_eq!(
        hit.snippet,
        "Sarah wants the <mark>budget</mark> &lt;b&gt;<mark>reviewed</mark>&lt;/b&gt; &amp; signed by Friday."
    );
    assert_eq!(
        (hit.title.as_str(), hit.agent.as_str(), hit.user.as_deref()),
        ("Quarterly planning", "bob", Some("ann"))
    );
    assert_eq!((hit.kind.as_str(), hit.r#type.as_str(), hit.status.as_deref()), ("thread", "topic", Some("active")));

    let [thread, said] = ["thread", "message"].map(|kind| {
        let wireless = SearchQuery { kinds: DocumentKind::parse(kind).into_iter().collect(), ..words("wireless") };
        async move { ask(search, wireless).await.hits.remove(0) }
    });
    let thread = thread.await;
    let said = said.await;
    assert_eq!((thread.title.as_str(), thread.snippet.as_str()), ("Is the wireless printer broken?", ""));
    assert_eq!(
        (said.snippet.as_str(), said.thread_id.as_deref()),
        ("Is the   <mark>wireless</mark> printer broken?", Some("printer"))
    );
    assert_eq!((said.agent.as_str(), said.user.as_deref(), said.r#type.as_str()), ("bob", Some("ann"), "user"));

    for (query, expected) in [
        (SearchQuery { kinds: vec![DocumentKind::Task, DocumentKind::Memory], ..words("review") }, vec!["task 1"]),
        (SearchQuery { agent: Some("cook".into()), ..words("soup") }, vec!["memory 1 of cook", "soup"]),
        (SearchQuery { agent: Some("cook".into()), ..words("budget") }, vec![]),
        // Memories for all, and not what is nobody's.
        (
            SearchQuery { user: Some("eve".into()), ..words("") },
            vec!["memory 2", "memory 3", "state house", "trip", "user eve"],
        ),
        // Inner state is its user's, or everybody's.
        (
            SearchQuery { user: Some("ann".into()), ..words("turquoise") },
            vec!["state house", "state kitchen/paint of ann"],
        ),
        (
            SearchQuery { kinds: vec![DocumentKind::State], user: Some("cat".into()), ..words("") },
            vec!["state house", "state house of cat"],
        ),
        // What is said to others is nobody else's.
        (SearchQuery { user: Some("eve".into()), ..words("printer") }, vec![]),
        (SearchQuery { user: Some("ann".into()), ..words("marmalade") }, vec![]),
        (SearchQuery { kinds: vec![DocumentKind::Message], ..words("printer") }, vec!["user ann"]),
        (SearchQuery { kind_of: Some("agent".into()), ..words("") }, vec!["agent ann", "state house"]),
        (SearchQuery { status: Some("deleted".into()), ..words("") }, vec![]),
        (SearchQuery { kind_of: Some("person".into()), ..words("") }, vec!["memory 1"]),
        (SearchQuery { status: Some("archived".into()), ..words("") }, vec!["trip"]),
        (
            SearchQuery {
                from: Some(date(2026, 11, 19)),
                to: Some(date(2026, 11, 20)),
                kinds: vec![DocumentKind::Memory],
                ..words("")
            },
            vec!["memory 2", "memory 3"],
        ),
        (SearchQuery { to: Some(date(2026, 10, 31)), ..words("") }, vec!["memory 1 of cook"]),
        (SearchQuery { status: Some("\" OR kind = \"task".into()), ..words("") }, vec![]),
    ] {
        assert_eq!(named(&ask(search, query.clone()).await.hits), sorted(&expected), "{query:?}");
    }

    let all = ask(search, SearchQuery { facets: true, ..words("") }).await;
    let facets = all.facets.unwrap();
    let counts = |counts: &[(&str, u64)]| {
        counts.iter().map(|(name, count)| (name.to_string(), *count)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(facets.kind, counts(&[("memory", 4), ("message", 3), ("state", 3), ("task", 1), ("thread", 5)]));
    assert_eq!(facets.agent, counts(&[("bob", 13), ("cook", 3)]));
    assert_eq!(
        facets.r#type,
        counts(&[
            ("agent", 2),
            ("fact", 1),
            ("hook", 1),
            ("journal", 1),
            ("person", 1),
            ("preference", 1),
            ("topic", 5),
            ("user", 4),
        ])
    );
    assert_eq!(facets.status.values().sum::<u64>(), 6);
    assert_eq!(facets.status["archived"], 1);
    assert!(all.hits.windows(2).all(|pair| updated(&pair[0]) >= updated(&pair[1])), "what changed last comes first");
    let some = ask(search, SearchQuery { facets: true, user: Some("eve".into()), ..words("") }).await;
    assert_eq!(some.facets.unwrap().kind, counts(&[("memory", 2), ("message", 1), ("state", 1), ("thread", 1)]));

    let page = |page| SearchQuery { limit: 4, page, ..words("") };
    let mut pages = Vec::new();
    for number in 0..4 {
        let answer = search.search(&page(number), 0, Duration::ZERO).await.unwrap();
        assert_eq!(answer.total, 16);
        pages.extend(answer.hits);
    }
    assert_eq!(named(&pages), named(&all.hits));

    for hostile in ["'; DROP TABLE threads; --", "a & | ! :* <-> (", "%_\\", "\0", "\"", &"ä".repeat(1_000), "-budget"]
    {
        ask(search, words(hostile)).await;
    }
}

fn updated(hit: &HitRow) -> Option<jiff::Timestamp> {
    hit.updated_at.as_ref().and_then(time::read)
}

/// Threads by their ids; tasks and memories by their numbers.
fn named(hits: &[HitRow]) -> Vec<String> {
    let name = |hit: &HitRow| {
        let numbers = ["1", "2", "3"];
        let id =
            |kind: &str| numbers.iter().find(|number| ids::from_parts(kind, &[number]).to_string() == hit.id).unwrap();
        let of = if hit.agent == "bob" { "" } else { " of cook" };
        match hit.kind_word() {
            HitKind::Task => format!("task {}", id("task")),
            HitKind::Memory => format!("memory {}{of}", id("memory")),
            HitKind::Message => format!("{} {}", hit.r#type, hit.user.as_deref().unwrap_or_default()),
            HitKind::State => {
                let of_user = hit.user.as_ref().map(|user| format!(" of {user}")).unwrap_or_default();
                format!("state {}{of_user}", hit.id)
            }
            HitKind::Thread | HitKind::Unknown(_) => hit.id.clone(),
        }
    };
    let mut names: Vec<String> = hits.iter().map(name).collect();
    names.sort();
    names
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_answer_waits_until_the_index_takes_account_of_what_was_done() {
    let Some(meili) = Meili::find().await else { return };
    let setup = Setup::start(meili, None).await;
    let search = setup.search();
    setup.publish(&everything()).await;
    setup.caught_up().await;
    for number in 0..20 {
        let title = format!("Unheard{number}");
        let written = decision("bob", &title, vec![("", thread(&title.to_lowercase(), "ann", &title))]);
        let sequence = setup.world.publish(&written).await;
        let query = SearchQuery { words: title.clone(), limit: 20, ..Default::default() };
        let answer = search.search(&query, sequence, Duration::from_secs(60)).await.unwrap();
        assert_eq!(answer.backend, "meilisearch");
        assert!(answer.position >= sequence && answer.hits.iter().any(|hit| hit.title == title), "{answer:?}");
    }
    let ahead = search.search(&SearchQuery::default(), 1_000_000, Duration::from_millis(50)).await;
    assert!(matches!(ahead, Err(NotFresh::Behind { wanted: 1_000_000, .. })), "{ahead:?}");
}
