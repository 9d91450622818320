//! Tests of agents' memories: written as rows and found again.

use jiff::civil::date;
use kairo_core::{ids, subjects};
use kairo_proto::v1::{AgentDecision, DecidedEvent, MemoryAppended, MemoryRow, SealedSecret, decided_event::Event};
use kairo_read_model::{MemoriesQuery, MemoryHistoryQuery};
use uuid::Uuid;

use crate::{history::entering, world::World};

fn memory(id: &str, kind: &str, subject: &str, content: &str, day: &str) -> MemoryAppended {
    MemoryAppended {
        memory_id: ids::from_parts("memory", &[id]).to_string(),
        kind: kind.into(),
        subject: subject.into(),
        content: content.into(),
        day: day.into(),
        user: "ann".into(),
        ..Default::default()
    }
}

/// A decision that remembers all of these.
fn decision(agent: &str, unique: &str, memories: Vec<MemoryAppended>) -> kairo_core::bus::append::OutgoingEvent {
    let event = |(at, memory): (usize, MemoryAppended)| DecidedEvent {
        event_id: ids::from_parts("event", &[agent, unique, &at.to_string()]).to_string(),
        thread_id: "t".into(),
        correlation_id: Uuid::from_u128(7).to_string(),
        event: Some(Event::MemoryAppended(memory)),
        ..Default::default()
    };
    let events = memories.into_iter().enumerate().map(event).collect();
    entering(&subjects::AGENT_DECISION, agent, unique, AgentDecision { events, ..Default::default() })
}

async fn found(world: &World, query: MemoriesQuery) -> Vec<MemoryRow> {
    world.now().await.search_memories(&MemoriesQuery { limit: 50, ..query }).await.unwrap()
}

fn contents(memories: &[MemoryRow]) -> Vec<&str> {
    memories.iter().map(|memory| memory.content.as_str()).collect()
}

fn words(words: &str) -> MemoriesQuery {
    MemoriesQuery { words: words.into(), agent: Some("bob".into()), ..Default::default() }
}

#[tokio::test]
async fn memories_are_found_by_words_kind_and_day() {
    let world = World::start(&[]).await;
    let launch = MemoryAppended {
        keywords: vec!["launch".into(), "sarah".into()],
        source_event_ids: vec!["e-1".into()],
        secrets: vec![SealedSecret { name: "pin".into(), sealed: vec![1, 2, 3] }],
        ..memory("1", "journal", "", "We moved the launch to May. [secret pin]", "2026-11-17")
    };
    let memories = vec![
        launch,
        memory("2", "person", "Sarah Miller", "Leads marketing.", "2026-11-18"),
        memory("3", "journal", "", "讨论了预算会议", "2026-11-19"),
        memory("4", "journal", "", "Nothing of note.", "2026-11-20"),
        memory("5", "fact", "x\0y", "no day", "someday"),
    ];
    world.publish(&decision("bob", "1", memories)).await;
    world
        .publish(&decision("eve", "1", vec![memory("1", "journal", "", "Another agent's launch.", "2026-11-17")]))
        .await;
    world.caught_up().await;

    let launch = found(&world, words("launch")).await;
    assert_eq!(contents(&launch), ["We moved the launch to May. [secret pin]"]);
    assert_eq!(launch[0].keywords, ["launch", "sarah"]);
    assert_eq!((launch[0].day.as_deref(), launch[0].user.as_deref()), (Some("2026-11-17"), Some("ann")));
    assert_eq!(
        (launch[0].source_event_ids.as_slice(), launch[0].thread_id.as_deref()),
        (["e-1".to_owned()].as_slice(), Some("t"))
    );
    assert_eq!(launch[0].secrets, [SealedSecret { name: "pin".into(), sealed: vec![1, 2, 3] }]);
    // Any of the words, beginnings of words, misspelt names, and words within a script without spaces.
    assert_eq!(found(&world, words("the MARKETING zebra")).await.len(), 2);
    assert_eq!(contents(&found(&world, words("market")).await), ["Leads marketing."]);
    assert_eq!(contents(&found(&world, words("Sahra Miler")).await)[0], "Leads marketing.");
    assert_eq!(contents(&found(&world, words("预算")).await), ["讨论了预算会议"]);
    assert_eq!(found(&world, words("zebra")).await, []);
    assert!(found(&world, words("launch sarah")).await.windows(2).all(|pair| pair[0].score >= pair[1].score));

    let all = found(&world, words("")).await;
    let days: Vec<_> = all.iter().map(|memory| memory.day.as_deref()).collect();
    assert_eq!(days, [Some("2026-11-20"), Some("2026-11-19"), Some("2026-11-18"), Some("2026-11-17"), None]);
    let of = |from, to| MemoriesQuery { from, to, ..words("") };
    assert_eq!(found(&world, of(Some(date(2026, 11, 18)), Some(date(2026, 11, 19)))).await.len(), 2);
    assert_eq!(found(&world, of(None, Some(date(2026, 11, 17)))).await.len(), 1);
    assert_eq!(
        found(&world, MemoriesQuery { kinds: vec!["person".into(), "fact".into()], ..words("") }).await.len(),
        2
    );
    assert_eq!(found(&world, MemoriesQuery { user: Some("eve".into()), ..words("") }).await, []);
    assert_eq!(found(&world, MemoriesQuery { agent: None, ..words("launch") }).await.len(), 2);
    let one = MemoriesQuery { memory_id: Some(ids::from_parts("memory", &["2"])), ..words("") };
    assert_eq!(contents(&found(&world, one).await), ["Leads marketing."]);
    for hostile in ["'; DROP TABLE memories; --", "a & | ! :* <-> (", "%_\\", "\0", &"ä".repeat(10_000)] {
        found(&world, words(hostile)).await;
    }
}

/// Memories that words of a question resemble, and the one in which they stand.
#[tokio::test]
async fn exact_words_come_first_then_other_forms_then_what_is_like_them() {
    let world = World::start(&[]).await;
    let resembles = |at: usize| MemoryAppended {
        keywords: ["reviewed", "cards", "carried", "redone"].map(str::to_owned).to_vec(),
        ..memory(&format!("r{at}"), "journal", "Reviews", "The cards were reviewed and carried over.", "2026-11-19")
    };
    let sentences = [
        ("Nora drives a red car", "red car"),
        ("They moved to Oslo in spring", "who is moving?"),
        ("Die Häuser stehen am Hafen", "welches Haus?"),
        ("Los barcos llegaron al puerto", "el barco"),
        ("极光号停在七号码头", "极光号在哪个码头"),
        ("She is the owner of three bakeries", "which bakery does she have"),
    ];
    let told = (0..)
        .zip(sentences)
        .map(|(at, (content, _)): (usize, _)| memory(&format!("t{at}"), "fact", "", content, "2026-11-01"));
    world.publish(&decision("bob", "1", (0..40).map(resembles).chain(told).collect())).await;
    world.caught_up().await;
    for (content, question) in sentences {
        let found = found(&world, MemoriesQuery { limit: 10, ..words(question) }).await;
        assert_eq!(contents(&found).first(), Some(&content), "{question}");
    }
}

/// Up to builds of epoch 10, memories of one decision could have one id.
#[tokio::test]
async fn memories_that_were_given_one_id_are_all_there_after_a_rebuild_too() {
    let world = World::start(&[]).await;
    let input = Uuid::from_u128(77);
    let step = ids::derive(ids::derive(input, "decision"), "step/2");
    let shared = |at: usize| MemoryAppended {
        memory_id: ids::derive(step, "memory").to_string(),
        ..memory("x", "journal", "", &format!("fact number {at}"), "2026-11-19")
    };
    let event = |at: usize| DecidedEvent {
        event_id: ids::from_parts("event", &["shared", &at.to_string()]).to_string(),
        thread_id: "t".into(),
        correlation_id: Uuid::from_u128(7).to_string(),
        event: Some(Event::MemoryAppended(shared(at))),
        ..Default::default()
    };
    let events = (0..4).map(event).collect();
    let decided = AgentDecision { input_id: input.to_string(), events, ..Default::default() };
    world.publish(&entering(&subjects::AGENT_DECISION, "bob", "1", decided)).await;
    world.caught_up().await;
    assert_eq!(found(&world, words("fact")).await.len(), 4);
    let rows = world.rows().await;
    world.rebuild().await;
    assert_eq!(world.rows().await["memories"], rows["memories"]);
}

#[tokio::test]
async fn a_memory_says_what_it_was_last_told_after_a_rebuild_too() {
    let world = World::start(&[("KAIRO_PROJECTOR__BATCH", "1")]).await;
    let first = decision("bob", "1", vec![memory("1", "person", "Sarah", "Likes tea.", "2026-11-17")]);
    let second = decision("bob", "2", vec![memory("1", "person", "Sarah", "Likes coffee.", "2026-11-18")]);
    for event in [&first, &second] {
        world.publish(event).await;
    }
    world.caught_up().await;
    let rows = world.rows().await;
    world.publish_again(&second).await;
    world.caught_up().await;
    assert_eq!(world.rows().await["memories"], rows["memories"]);
    assert_eq!(contents(&found(&world, words("sarah")).await), ["Likes coffee."]);
    assert_eq!(found(&world, words("tea")).await, []);
    world.rebuild().await;
    assert_eq!(world.rows().await["memories"], rows["memories"]);
}

/// A correction, the same written again with its keywords, and the same learned from another event.
#[tokio::test]
async fn the_history_of_a_memory_has_each_version_once_with_its_sources_after_a_rebuild_too() {
    let world = World::start(&[("KAIRO_PROJECTOR__BATCH", "1")]).await;
    let said = |content: &str, source: &str, keywords: &[&str]| MemoryAppended {
        source_event_ids: vec![source.into()],
        keywords: keywords.iter().map(|word| (*word).to_owned()).collect(),
        lacks_keywords: keywords.is_empty(),
        ..memory("1", "fact", "Aurora", content, "2026-11-17")
    };
    let written = [
        said("Berths at quay 7.", "e-1", &[]),
        said("Berths at quay 7.", "e-1", &["quay"]),
        said("Berths at quay 9.", "e-2", &["quay"]),
        said("Berths at quay 9.", "e-3", &["quay"]),
    ];
    for (at, memory) in written.into_iter().enumerate() {
        world.publish(&decision("bob", &at.to_string(), vec![memory])).await;
    }
    let elsewhere = MemoryAppended { content: "of another agent".into(), ..said("x", "e-4", &["quay"]) };
    world.publish(&decision("eve", "1", vec![elsewhere])).await;
    world.caught_up().await;
    let history = async |before: Option<u64>, limit: u32| {
        let memory_id = ids::from_parts("memory", &["1"]);
        let wanted = MemoryHistoryQuery { agent: "bob".into(), memory_id, before, limit };
        let versions = world.now().await.memory_history(&wanted).await.unwrap();
        versions
            .into_iter()
            .map(|version| (version.content, version.source_event_ids.join(" "), version.sequence))
            .collect::<Vec<_>>()
    };
    let all = history(None, 50).await;
    let told: Vec<(&str, &str)> = all.iter().map(|(content, source, _)| (content.as_str(), source.as_str())).collect();
    assert_eq!(told, [("Berths at quay 9.", "e-3"), ("Berths at quay 9.", "e-2"), ("Berths at quay 7.", "e-1")]);
    assert_eq!(history(None, 1).await, all[..1]);
    assert_eq!(history(Some(all[0].2), 50).await, all[1..]);
    world.rebuild().await;
    assert_eq!(history(None, 50).await, all);
}
