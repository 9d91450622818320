//! What is asked of the read model.

use kairo_core::subjects;
use kairo_proto::v1::UserMessageUndelivered;
use kairo_read_model::{ConversationQuery, EventsQuery, stored::Time};

use crate::{
    history::{Turn, defined, entering},
    world::World,
};

#[tokio::test]
async fn a_turn_can_be_asked_about_while_it_runs_and_afterwards() {
    let world = World::start(&[]).await;
    let turn = Turn::new("ann", "bob", 1);
    world.publish(&defined("bob")).await;
    for event in turn.until_invoked() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let in_flight = world.model.actions_in_flight(Some("bob")).await.unwrap();
    assert_eq!((in_flight.len(), in_flight[0].action_id), (1, turn.call));
    assert_eq!((in_flight[0].status.as_str(), in_flight[0].runner.as_deref()), ("running", Some("runner-1")));
    assert_eq!(world.model.actions_in_flight(Some("eve")).await.unwrap(), []);

    for event in turn.rest() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    assert_eq!(world.model.actions_in_flight(None).await.unwrap(), []);
    assert_eq!(world.count("SELECT count(*) FROM actions WHERE status = 'done'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM processes WHERE pid = 7 AND code = 0").await, 1);
    let sent = world.model.message("ann", &turn.message_id).await.unwrap().unwrap();
    assert_eq!((sent.event_id, sent.sequence), (turn.message.envelope.id, 2));
    assert_eq!(world.model.message("ann", "m-2").await.unwrap(), None);

    let agents = world.model.agents().await.unwrap();
    assert_eq!((agents.len(), agents[0].profile["prompt"].as_str()), (1, Some("Be brief.")));
    assert_eq!(world.model.agent("bob").await.unwrap().as_ref(), agents.first());
    assert_eq!(world.model.agent("eve").await.unwrap(), None);
    let threads = world.model.threads("bob").await.unwrap();
    assert_eq!((threads.len(), threads[0].user.as_str(), threads[0].last_sequence), (1, "ann", 9));
}

#[tokio::test]
async fn a_conversation_holds_what_was_sent_said_and_refused() {
    let world = World::start(&[]).await;
    for event in Turn::new("ann", "bob", 1).events() {
        world.publish(&event).await;
    }
    let body = UserMessageUndelivered { agent: "nobody".into(), reason: "no such agent".into(), ..Default::default() };
    world.publish(&entering(&subjects::USER_UNDELIVERED, "ann", "1", body)).await;
    world.caught_up().await;
    let whole = ConversationQuery::of("bob");
    let said = world.model.conversation(&whole).await.unwrap();
    let words: Vec<_> = said.iter().map(|message| (message.role.as_str(), message.text.as_str())).collect();
    assert_eq!(words, [("user", "question 1"), ("agent", "answer to m-1")]);
    assert!(said[1].last && said.iter().all(|message| message.user.as_deref() == Some("ann")));
    let behind = ConversationQuery { after: Some((said[0].sequence, said[0].position)), ..whole.clone() };
    assert_eq!(world.model.conversation(&behind).await.unwrap(), said[1..]);
    let newest = ConversationQuery { latest: Some(1), ..whole.clone() };
    assert_eq!(world.model.conversation(&newest).await.unwrap(), said[1..]);
    let with_eve = ConversationQuery { user: Some("eve".into()), ..whole };
    assert_eq!(world.model.conversation(&with_eve).await.unwrap(), []);
    let nobody = world.model.conversation(&ConversationQuery::of("nobody")).await.unwrap();
    assert_eq!((nobody[0].role.as_str(), nobody[0].text.as_str()), ("failure", "no such agent"));
}

#[tokio::test]
async fn events_are_found_by_agent_thread_chain_place_and_time() {
    let world = World::start(&[]).await;
    let (one, other) = (Turn::new("ann", "bob", 1), Turn::new("ann", "eve", 2));
    for event in one.events().iter().chain(&other.events()) {
        world.publish(event).await;
    }
    world.caught_up().await;
    let all = world.model.events(&EventsQuery::default()).await.unwrap();
    assert_eq!(all.len(), 18);
    assert!(all.windows(2).all(|pair| (pair[0].sequence, pair[0].position) < (pair[1].sequence, pair[1].position)));
    let query = |query: EventsQuery| {
        let model = world.model.clone();
        async move { model.events(&query).await.unwrap() }
    };
    let of_bob = query(EventsQuery { agent: Some("bob".into()), ..Default::default() }).await;
    assert_eq!(of_bob, all[..9]);
    let chain = query(EventsQuery { correlation: Some(other.message.envelope.id), ..Default::default() }).await;
    assert_eq!(chain, all[9..]);
    let thread = query(EventsQuery { thread: Some("t".into()), agent: Some("bob".into()), ..Default::default() }).await;
    assert!(!thread.is_empty() && thread.iter().all(|event| event.thread_id.as_deref() == Some("t")));
    // Within the decision at sequence 3, behind its first event.
    let behind = query(EventsQuery { after: Some((3, 0)), limit: 2, ..Default::default() }).await;
    assert_eq!(behind, all[3..5]);
    let newest = query(EventsQuery { latest: Some(3), ..Default::default() }).await;
    assert_eq!(newest, all[15..]);
    let since = query(EventsQuery { since: Some(all[9].ts), ..Default::default() }).await;
    assert!(since.iter().all(|event| Time(event.ts) >= Time(all[9].ts)) && since.contains(&all[17]));
}
