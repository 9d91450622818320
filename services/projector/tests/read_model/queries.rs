//! Tests of queries to the read model.

use kairo_core::subjects;
use kairo_proto::v1::{ActionRow, ProcessRow, UserMessageUndelivered};
use kairo_read_model::{
    ActionState::{self, InDoubt, InFlight, Open},
    ActionsQuery, ConversationQuery, EventsQuery, MAX_ROWS, ProcessesQuery, ThreadsQuery,
    sql_values::Time,
};

use crate::{
    history::{Turn, defined, entering},
    world::World,
};

async fn actions(world: &World, state: ActionState, agent: Option<&str>) -> Vec<ActionRow> {
    let wanted = ActionsQuery { state, agent: agent.map(str::to_owned), limit: MAX_ROWS, ..ActionsQuery::default() };
    world.now().await.recent_actions(&wanted).await.unwrap()
}

async fn processes(world: &World, agent: Option<&str>, running: Option<bool>) -> Vec<ProcessRow> {
    let wanted =
        ProcessesQuery { running, agent: agent.map(str::to_owned), limit: MAX_ROWS, ..ProcessesQuery::default() };
    world.now().await.recent_processes(&wanted).await.unwrap()
}

#[tokio::test]
async fn a_turn_can_be_asked_about_while_it_runs_and_afterwards() {
    let world = World::start(&[]).await;
    let turn = Turn::new("ann", "bob", 1);
    world.publish(&defined("bob")).await;
    for event in turn.until_invoked() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let in_flight = actions(&world, InFlight, Some("bob")).await;
    assert_eq!((in_flight.len(), in_flight[0].action_id.as_str()), (1, turn.call.to_string().as_str()));
    assert_eq!((in_flight[0].status.as_str(), in_flight[0].runner.as_deref()), ("running", Some("runner-1")));
    assert_eq!(actions(&world, InFlight, Some("eve")).await, []);

    for event in turn.rest() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    assert_eq!(actions(&world, Open, None).await, []);
    assert_eq!(world.count("SELECT count(*) FROM actions WHERE status = 'done'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM processes WHERE pid = 7 AND code = 0").await, 1);
    let sent = world.model.find_message("ann", &turn.message_id).await.unwrap().unwrap();
    assert_eq!((sent.event_id, sent.sequence), (turn.message.envelope.id, 2));
    assert_eq!(world.model.find_message("ann", "m-2").await.unwrap(), None);

    let agents = world.now().await.list_agents().await.unwrap();
    assert_eq!((agents.len(), agents[0].profile.as_ref().unwrap().prompt.as_str()), (1, "Be brief."));
    assert_eq!(world.now().await.find_agent("bob").await.unwrap().as_ref(), agents.first());
    assert_eq!(world.now().await.find_agent("eve").await.unwrap(), None);
    let threads = world
        .now()
        .await
        .list_threads(&ThreadsQuery { agent: Some("bob".into()), ..Default::default() })
        .await
        .unwrap();
    assert_eq!((threads.len(), threads[0].user.as_str(), threads[0].last_sequence), (1, "ann", 12));
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
    let whole = ConversationQuery::of_agent("bob");
    let said = world.now().await.conversation_messages(&whole).await.unwrap();
    let words: Vec<_> = said.iter().map(|message| (message.role.as_str(), message.text.as_str())).collect();
    assert_eq!(words, [("user", "question 1"), ("agent", "answer to m-1")]);
    assert!(said[1].r#final && said.iter().all(|message| message.user.as_deref() == Some("ann")));
    let behind = ConversationQuery { after: Some((said[0].sequence, said[0].position)), ..whole.clone() };
    assert_eq!(world.now().await.conversation_messages(&behind).await.unwrap(), said[1..]);
    let newest = ConversationQuery { latest: Some(1), ..whole.clone() };
    assert_eq!(world.now().await.conversation_messages(&newest).await.unwrap(), said[1..]);
    let with_eve = ConversationQuery { user: Some("eve".into()), ..whole };
    assert_eq!(world.now().await.conversation_messages(&with_eve).await.unwrap(), []);
    let nobody = world.now().await.conversation_messages(&ConversationQuery::of_agent("nobody")).await.unwrap();
    assert_eq!((nobody[0].role.as_str(), nobody[0].text.as_str()), ("failure", "no such agent"));
}

#[tokio::test]
async fn events_are_found_by_agent_thread_chain_place_and_time() {
    let world = World::start(&[]).await;
    let one = Turn::new("ann", "bob", 1);
    let other = Turn::new("ann", "eve", 2);
    for event in one.events().iter().chain(&other.events()) {
        world.publish(event).await;
    }
    world.caught_up().await;
    let all = world.now().await.list_events(&EventsQuery::default()).await.unwrap();
    assert_eq!(all.len(), 24);
    assert!(all.windows(2).all(|pair| (pair[0].sequence, pair[0].position) < (pair[1].sequence, pair[1].position)));
    let query = |query: EventsQuery| {
        let model = world.model.clone();
        async move { model.snapshot().await.unwrap().list_events(&query).await.unwrap() }
    };
    let of_bob = query(EventsQuery { agent: Some("bob".into()), ..Default::default() }).await;
    assert_eq!(of_bob, all[..12]);
    let chain = query(EventsQuery { correlation: Some(other.message.envelope.id), ..Default::default() }).await;
    assert_eq!(chain, all[12..]);
    let thread = query(EventsQuery { thread: Some("t".into()), agent: Some("bob".into()), ..Default::default() }).await;
    assert!(!thread.is_empty() && thread.iter().all(|event| event.thread_id.as_deref() == Some("t")));
    // Within the decision at sequence 3, behind its first event.
    let behind = query(EventsQuery { after: Some((3, 0)), limit: 2, ..Default::default() }).await;
    assert_eq!(behind, all[3..5]);
    let newest = query(EventsQuery { latest: Some(3), ..Default::default() }).await;
    assert_eq!(newest, all[21..]);
    let since = query(EventsQuery { since: Some(all[12].ts), ..Default::default() }).await;
    assert!(since.iter().all(|event| Time(event.ts) >= Time(all[12].ts)) && since.contains(&all[23]));
}

#[tokio::test]
async fn what_runs_says_how_far_it_is_and_that_it_was_asked_to_end() {
    let world = World::start(&[]).await;
    let turn = Turn::new("ann", "bob", 1);
    for event in turn.until_invoked().iter().chain(&turn.until_canceled()) {
        world.publish(event).await;
    }
    world.caught_up().await;
    let action = actions(&world, Open, Some("bob")).await.remove(0);
    assert_eq!((action.process_id, action.fraction), (Some(turn.process().to_string()), Some(0.6)));
    assert_eq!(action.progress_message.as_deref(), Some("two thirds"));
    assert!(action.progress_at.is_some() && action.cancel_requested_at.is_some());
    let running = processes(&world, Some("bob"), Some(true)).await.remove(0);
    assert_eq!((running.process_id, running.action_id), (turn.process().to_string(), Some(turn.call.to_string())));
    assert_eq!((running.fraction, running.tail.as_deref()), (Some(0.6), Some("working\n")));
    assert_eq!((running.tool.as_deref(), running.background), (Some("process.run"), false));
    assert!(running.cancel_requested_at.is_some());
    assert_eq!(processes(&world, None, Some(false)).await, []);

    for event in turn.rest().iter().skip(4) {
        world.publish(event).await;
    }
    world.caught_up().await;
    assert_eq!(processes(&world, None, Some(true)).await, []);
    let ended = processes(&world, Some("bob"), None).await.remove(0);
    assert_eq!((ended.code, ended.wall_ms, ended.stdout_tail.as_deref()), (Some(0), Some(1_500), Some("done\n")));
    assert_eq!((ended.sequence, ended.supervisor.as_str()), (running.sequence, "supervisor-1"));
}

#[tokio::test]
async fn a_late_answer_settles_an_action_in_doubt() {
    let world = World::start(&[]).await;
    let turn = Turn::new("ann", "bob", 1);
    for event in turn.until_invoked() {
        world.publish(&event).await;
    }
    world.publish(&turn.in_doubt()).await;
    world.caught_up().await;
    assert_eq!(actions(&world, InDoubt, Some("bob")).await.len(), 1);
    world.publish(&turn.late_answer()).await;
    world.publish(&turn.verdict("did_not_happen", "too late")).await;
    world.caught_up().await;
    assert_eq!(actions(&world, InDoubt, Some("bob")).await, []);
    assert_eq!(actions(&world, Open, Some("bob")).await, []);
    let settled = actions(&world, ActionState::All, Some("bob")).await.remove(0);
    assert_eq!((settled.status.as_str(), &settled.error_message, &settled.verdict), ("done", &None, &None));
    let result: serde_json::Value = serde_json::from_str(&settled.result.unwrap().text).unwrap();
    assert_eq!(result, serde_json::json!({ "paid": 7 }));
    let rows = world.rows().await;
    world.rebuild().await;
    assert_eq!(world.rows().await, rows);
}

#[tokio::test]
async fn an_action_in_doubt_stays_open_until_a_human_resolves_it() {
    let world = World::start(&[]).await;
    let turn = Turn::new("ann", "bob", 1);
    for event in turn.until_invoked() {
        world.publish(&event).await;
    }
    // Too early, and then no verdict at all.
    world.publish(&turn.verdict("happened", "early")).await;
    world.publish(&turn.in_doubt()).await;
    world.publish(&turn.verdict("perhaps", "unsure")).await;
    world.caught_up().await;
    let open = actions(&world, Open, Some("bob")).await;
    assert_eq!((open.len(), open[0].status.as_str(), &open[0].verdict), (1, "in_doubt", &None));
    assert_eq!(actions(&world, InFlight, Some("bob")).await, []);

    world.publish(&turn.verdict("did_not_happen", "looked it up")).await;
    world.publish(&turn.verdict("happened", "too late")).await;
    world.caught_up().await;
    assert_eq!(actions(&world, Open, None).await, []);
    let resolved = actions(&world, InDoubt, Some("bob")).await.remove(0);
    assert_eq!((resolved.verdict.as_deref(), resolved.resolved_by.as_deref()), (Some("did_not_happen"), Some("ann")));
    assert_eq!(resolved.resolution_note.as_deref(), Some("looked it up"));
    let rows = world.rows().await;
    world.rebuild().await;
    assert_eq!(world.rows().await, rows);
}
