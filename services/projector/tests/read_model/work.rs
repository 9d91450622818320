//! Tests the queries for threads, chains, tasks and requests that wait for a human.

use kairo_proto::{
    v1::{ChainRow, TaskRow, ThreadMessageRow},
    words::{TaskStatus, ThreadStatus},
};
use kairo_read_model::{TaskState, TasksQuery, ThreadMessagesQuery, ThreadState, ThreadsQuery};

use crate::{
    planned::{Part, Planned},
    world::World,
};

async fn tell(world: &World, planned: &Planned, part: Part) {
    for event in planned.part(part) {
        world.publish(&event).await;
    }
    world.caught_up().await;
}

fn states(chain: &ChainRow) -> Vec<&str> {
    chain.steps.iter().map(|step| step.state.as_str()).collect()
}

#[tokio::test]
async fn what_waits_for_a_user_waits_until_it_is_answered() {
    let world = World::start(&[]).await;
    let planned = Planned::new(1);
    tell(&world, &planned, Part::Offered).await;
    let inbox = world.now().await.user_inbox("ann").await.unwrap();
    assert_eq!((inbox.offers.len(), inbox.approvals.len()), (1, 0));
    let offer = &inbox.offers[0];
    assert_eq!((&offer.offer_id, offer.message.as_deref()), (&planned.id("offer").to_string(), Some("plan 1")));
    assert_eq!(world.now().await.user_inbox("eve").await.unwrap().offers, []);

    tell(&world, &planned, Part::Asked).await;
    let inbox = world.now().await.user_inbox("ann").await.unwrap();
    assert_eq!((inbox.offers.len(), inbox.approvals.len()), (0, 1));
    let approval = &inbox.approvals[0];
    let asked = (approval.action_id.as_str(), approval.tool.as_str(), approval.step);
    assert_eq!(asked, (planned.id("consent").to_string().as_str(), "email.send", 2));
    assert_eq!(approval.arguments.as_ref().unwrap().value()["to"], "john");

    tell(&world, &planned, Part::Ended).await;
    let inbox = world.now().await.user_inbox("ann").await.unwrap();
    assert_eq!((inbox.offers.len(), inbox.approvals.len()), (0, 0));
    assert_eq!(world.count("SELECT count(*) FROM approvals WHERE status = 'approved'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM offers WHERE choice = 'accept'").await, 1);
}

#[tokio::test]
async fn what_a_chain_asked_for_is_withdrawn_when_it_ends() {
    let world = World::start(&[("KAIRO_PROJECTOR__BATCH", "1")]).await;
    let planned = Planned::new(1);
    for event in planned.events().into_iter().filter(|event| !event.subject.ends_with(".approval")) {
        world.publish(&event).await;
    }
    world.caught_up().await;
    assert_eq!(world.count("SELECT count(*) FROM approvals WHERE status = 'withdrawn'").await, 1);
    // Too late.
    for event in planned.part(Part::Ended).into_iter().filter(|event| event.subject.ends_with(".approval")) {
        world.publish(&event).await;
    }
    world.caught_up().await;
    assert_eq!(world.count("SELECT count(*) FROM approvals WHERE status = 'withdrawn'").await, 1);
    assert_eq!(world.now().await.user_inbox("ann").await.unwrap().approvals, []);
}

#[tokio::test]
async fn a_chain_says_how_far_each_step_is() {
    let world = World::start(&[]).await;
    let planned = Planned::new(1);
    let chain = || async { world.now().await.find_chain(planned.id("chain")).await.unwrap() };
    tell(&world, &planned, Part::Offered).await;
    assert_eq!(chain().await, None);
    tell(&world, &planned, Part::Asked).await;
    let running = chain().await.unwrap();
    assert_eq!(states(&running), ["done", "running", "asked", "pending", "pending"]);
    let groups: Vec<_> = running.steps.iter().map(|step| step.group).collect();
    assert_eq!((groups, running.plan.as_str()), (vec![0, 1, 1, 2, 3], "1. look\n2. write"));
    assert_eq!(running.steps[0].result.as_deref(), Some("{\"n\":1}"));

    tell(&world, &planned, Part::Ended).await;
    let ended = chain().await.unwrap();
    // A tool that was called goes on to its result.
    assert_eq!(states(&ended), ["done", "failed", "running", "skipped", "skipped"]);
    assert_eq!(ended.outcome.as_deref(), Some("broken"));
    let reasons: Vec<_> = ended.steps.iter().filter_map(|step| step.reason.as_deref()).collect();
    assert_eq!(reasons, ["timed_out: too slow", "nothing to look for", "the chain ended: broken"]);

    tell(&world, &planned, Part::Done).await;
    assert_eq!(states(&chain().await.unwrap()), ["done", "failed", "done", "skipped", "skipped"]);
}

#[tokio::test]
async fn a_thread_is_shown_with_its_events_and_chains() {
    let world = World::start(&[]).await;
    let one = Planned::new(1);
    let other = Planned::new(2);
    tell(&world, &one, Part::Offered).await;
    tell(&world, &one, Part::Asked).await;
    tell(&world, &one, Part::Ended).await;
    for event in other.events() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let threads = |status| {
        let query = ThreadsQuery { agent: Some("bob".into()), user: Some("ann".into()), status, ..Default::default() };
        let model = world.model.clone();
        async move {
            let threads = model.snapshot().await.unwrap().list_threads(&query).await.unwrap();
            threads.into_iter().map(|thread| thread.thread_id).collect::<Vec<_>>()
        }
    };
    assert_eq!(threads(Some(ThreadState::Only(ThreadStatus::Active))).await, ["plan-1"]);
    assert_eq!(threads(Some(ThreadState::Only(ThreadStatus::Archived))).await, ["plan-2"]);
    assert_eq!(threads(None).await, ["plan-2", "plan-1"]);
    let thread = world.now().await.find_threads("plan-1", None).await.unwrap().remove(0);
    assert_eq!((thread.title.as_str(), thread.summary.as_str()), ("Plans", "All is planned."));
    let before = ThreadsQuery { before: Some(thread.last_sequence), ..Default::default() };
    assert_eq!(world.now().await.list_threads(&before).await.unwrap(), []);

    let history = world.now().await.thread_history("bob", "plan-1", None, 100).await.unwrap();
    let names: Vec<_> = history.events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(names[..5], ["user.input", "thread.created", "thread.match", "agent.chain", "tools.now"]);
    assert!(names.contains(&"agent.reply") && !history.more);
    let event = |name: &str| history.events.iter().find(|event| event.event == name).unwrap();
    assert_eq!(event("user.input").result.as_ref().unwrap().value()["text"], "plan 1");
    let now = event("tools.now");
    assert_eq!((now.status.as_deref(), now.result.as_ref().unwrap().value()["n"].as_i64()), (Some("done"), Some(1)));
    assert_eq!(event("http.get").status.as_deref(), Some("timed_out"));
    assert_eq!(event("email.send").result, None);
    // Page by page, it is the same.
    let newest = world.now().await.thread_history("bob", "plan-1", None, 3).await.unwrap();
    assert!(newest.more && newest.events == history.events[history.events.len() - 3..]);
    let place = Some((newest.events[0].sequence, newest.events[0].position));
    let older = world.now().await.thread_history("bob", "plan-1", place, 100).await.unwrap();
    assert_eq!(older.events, history.events[..history.events.len() - 3]);

    let chains = world.now().await.chains_of_thread("bob", "plan-2", 10).await.unwrap();
    let origins: Vec<_> = chains.iter().map(|chain| chain.origin.as_str()).collect();
    assert_eq!(origins, ["plan", "task"]);
}

/// Returns number, role, content and called tools of a message.
fn spoken(message: &ThreadMessageRow) -> (u64, String, String, Vec<String>) {
    let calls = message.tool_calls.iter().map(|call| call.tool.clone()).collect();
    (message.sequence, message.role.clone(), message.content.clone(), calls)
}

#[tokio::test]
async fn what_was_said_in_a_thread_has_numbers_that_stay() {
    let world = World::start(&[]).await;
    let planned = Planned::new(1);
    let messages = async |after, latest, limit| {
        let agent = "bob".into();
        let thread = "plan-1".into();
        let query = ThreadMessagesQuery { agent, thread, after, latest, limit };
        world.now().await.thread_messages(&query).await.unwrap()
    };
    tell(&world, &planned, Part::Offered).await;
    assert_eq!(messages(0, None, 10).await, [], "it is in no thread yet");
    tell(&world, &planned, Part::Asked).await;
    tell(&world, &planned, Part::Ended).await;
    let all = messages(0, None, 100).await;
    let said = |number: u64, role: &str, content: &str, calls: &[&str]| {
        (number, role.to_owned(), content.to_owned(), calls.iter().map(|call| (*call).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(
        all.iter().map(spoken).collect::<Vec<_>>(),
        [
            said(1, "user", "plan 1", &[]),
            said(2, "assistant", "", &["tools.now"]),
            said(3, "tool", "{\"n\":1}", &[]),
            said(4, "assistant", "", &["http.get"]),
            said(5, "assistant", "", &["email.send"]),
            said(6, "tool", "timed_out: too slow", &[]),
            said(7, "assistant", "", &["memory.search"]),
            said(8, "tool", "skipped: nothing to look for", &[]),
            said(9, "assistant", "done", &[]),
        ]
    );
    assert!(all[1..].windows(2).all(|pair| pair[0].log_sequence <= pair[1].log_sequence), "{all:?}");
    assert_eq!((&all[2].tool_call_id, all[2].ok), (&Some(all[1].tool_calls[0].id.clone()), Some(true)));
    assert_eq!((&all[5].tool_call_id, all[5].ok), (&Some(all[3].tool_calls[0].id.clone()), Some(false)));
    assert_eq!(all[1].tool_calls[0].arguments.as_ref().unwrap().value()["a"], 2);
    // The user's own words stand where they entered, before what put them there.
    assert!(all[0].log_sequence < all[1].log_sequence, "{all:?}");
    assert!(all.iter().all(|message| message.correlation_id == all[0].correlation_id), "{all:?}");

    // Whatever the pages are, numbers are the same, and what comes later stands behind them.
    for message in &all {
        assert_eq!(messages(message.sequence - 1, None, 1).await, std::slice::from_ref(message));
    }
    assert_eq!(messages(0, Some(3), 100).await, all[6..]);
    assert_eq!(messages(5, Some(100), 100).await, all[5..]);
    tell(&world, &planned, Part::Done).await;
    let later = messages(0, None, 100).await;
    assert_eq!((&later[..9], later.len()), (&all[..], 10));
    assert_eq!(
        (later[9].role.as_str(), later[9].tool_call_id.clone()),
        ("tool", Some(all[4].tool_calls[0].id.clone()))
    );
    let elsewhere =
        ThreadMessagesQuery { agent: "eve".into(), thread: "plan-1".into(), limit: 10, ..Default::default() };
    assert_eq!(world.now().await.thread_messages(&elsewhere).await.unwrap(), []);
}

#[tokio::test]
async fn a_thread_is_compacted_while_it_is_in_use_and_has_a_title_from_its_first_message_on() {
    let world = World::start(&[]).await;
    let planned = Planned::new(1);
    tell(&world, &planned, Part::Offered).await;
    tell(&world, &planned, Part::Asked).await;
    let thread = async |state| {
        world.caught_up().await;
        let query = ThreadsQuery { agent: Some("bob".into()), status: state, ..Default::default() };
        world.now().await.list_threads(&query).await.unwrap().pop().map(|thread| (thread.title, thread.status))
    };
    assert_eq!(thread(None).await, Some(("plan 1".into(), "active".into())), "by its first message");
    world.publish(&planned.compacted("once")).await;
    for state in [ThreadState::Open, ThreadState::Only(ThreadStatus::Compacted)] {
        assert_eq!(thread(Some(state)).await, Some(("plan 1".into(), "compacted".into())));
    }
    assert_eq!(thread(Some(ThreadState::Only(ThreadStatus::Active))).await, None);
    // With a title of its own it has that one; put away or taken out again, it stays as it is.
    tell(&world, &planned, Part::Ended).await;
    assert_eq!(thread(None).await, Some(("Plans".into(), "compacted".into())));
    tell(&world, &planned, Part::Done).await;
    assert_eq!(thread(None).await, Some(("Plans".into(), "archived".into())));
    world.publish(&planned.compacted("twice")).await;
    assert_eq!(thread(Some(ThreadState::Open)).await, None, "one that was put away is not in use");
    let query = ThreadMessagesQuery { agent: "bob".into(), thread: planned.thread(), limit: 100, ..Default::default() };
    let messages = world.now().await.thread_messages(&query).await.unwrap();
    let summed: Vec<_> = messages.iter().filter(|it| it.role == "system").map(|it| it.content.as_str()).collect();
    assert_eq!(summed, ["It was once about plans.", "It was twice about plans."]);
}

#[tokio::test]
async fn a_task_says_when_it_fired_and_what_became_of_it() {
    let world = World::start(&[]).await;
    let planned = Planned::new(1);
    for part in [Part::Offered, Part::Asked, Part::Ended] {
        tell(&world, &planned, part).await;
    }
    let tasks = |status| {
        let query =
            TasksQuery { agent: Some("bob".into()), status, kind: Some("scheduled".into()), ..Default::default() };
        let model = world.model.clone();
        async move { model.snapshot().await.unwrap().list_tasks(&query).await.unwrap() }
    };
    let made = tasks(Some(TaskState::Open)).await.remove(0);
    assert_eq!((&made.task_id, made.status.as_str(), made.fired), (&planned.id("task").to_string(), "pending", 0));
    assert_eq!((made.occurrence, made.interval.as_deref()), (Some(1), Some("1 day")));
    assert_eq!((made.last_fired_at, made.ended_at), (None, None));

    let [fired, rest] = [0..2, 2..3].map(|range| planned.part(Part::Done)[range].to_vec());
    for event in fired {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let fired = tasks(Some(TaskState::Only(TaskStatus::Active))).await.remove(0);
    assert_eq!((fired.fired, fired.last_late, fired.occurrence), (1, Some(true), Some(2)));
    let next = |task: &TaskRow| task.next_at.map(|at| at.seconds).unwrap();
    assert!(next(&fired) > next(&made));
    for event in rest {
        world.publish(&event).await;
    }
    world.caught_up().await;
    assert_eq!(tasks(Some(TaskState::Open)).await, []);
    let over = world.now().await.find_task(planned.id("task")).await.unwrap().unwrap();
    assert_eq!((over.status.as_str(), over.reason.as_deref(), over.next_at), ("canceled", Some("by ann"), None));
    assert!(over.ended_at.is_some());
    let firings = world.now().await.task_firings(planned.id("task"), 10).await.unwrap();
    assert_eq!((firings.len(), firings[0].occurrence, firings[0].late), (1, Some(1), true));
    let chain = world.now().await.chains_of_task(planned.id("task"), 10).await.unwrap().remove(0);
    assert_eq!((states(&chain), chain.outcome.as_deref()), (vec!["skipped"], Some("canceled")));
    assert_eq!(world.now().await.find_task(planned.id("nothing")).await.unwrap(), None);
}
