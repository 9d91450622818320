//! Tests the orders about processes in the log.

use kairo_core::subjects::{PROCESS_CANCELED, PROCESS_EXITED, PROCESS_REPLY, SUPERVISORS_CONTROL, control_of};
use kairo_proto::v1::{
    ProcessReply, ProcessSignal, ProcessStop, ProcessWrite, process_request::Ask, tool_order::Order,
};
use serde_json::json;
use uuid::Uuid;

use super::{Kairo, Witness, control::SIGNALED, in_time, shell, tell, until_told};

fn signal(name: &str) -> Order {
    Order::Signal(ProcessSignal { name: name.to_owned() })
}

fn write(text: &str, close: bool) -> Order {
    Order::Write(ProcessWrite { text: text.to_owned(), close })
}

fn stop() -> Order {
    Order::Stop(ProcessStop { grace_ms: 0 })
}

/// The outcome of an order to the supervisor that runs the process, and why.
async fn outcome(kairo: &Kairo, action: Uuid, order: Order) -> (String, String) {
    let supervisor = in_time(kairo.spawned(action)).await.supervisor;
    let by = Uuid::now_v7();
    kairo.order(&supervisor, action, by, order).await;
    let ProcessReply { outcome, reason, .. } = in_time(kairo.reply(by)).await;
    (outcome, reason)
}

#[tokio::test]
async fn a_signal_is_sent_once_for_each_call_that_orders_it_and_replied_to() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let mut live = kairo.listen().await;
    let action = kairo.spawn(&shell(SIGNALED)).await;
    let spawned = in_time(kairo.spawned(action)).await;
    in_time(live.until("ready\n")).await;
    let [first, second, last] = [(); 3].map(|()| Uuid::now_v7());
    let order = kairo.order(&spawned.supervisor, action, first, signal("USR1")).await;
    in_time(live.until("usr1\n")).await;
    let reply = in_time(kairo.reply(first)).await;
    assert_eq!((reply.outcome.as_str(), &reply.process_id), ("done", &spawned.process_id), "{}", reply.reason);
    let record = in_time(kairo.last(&PROCESS_REPLY)).await;
    assert_eq!(record.envelope.causation_id, Some(order.id), "a reply follows from its order");
    assert_eq!(record.envelope.correlation_id, order.correlation_id);
    // tool-runner may have lost its view of the ledger; then two of them stand in the log.
    kairo.order(&spawned.supervisor, action, first, signal("USR1")).await;
    kairo.order(&spawned.supervisor, action, second, signal("USR1")).await;
    in_time(live.until("usr1\nusr1\n")).await;
    kairo.order(&spawned.supervisor, action, last, signal("TERM")).await;
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!((exited.outcome.as_str(), exited.code), ("exited", Some(5)));
    assert_eq!(exited.stdout_tail, "ready\nusr1\nusr1\n", "ordered twice is done once");
    assert_eq!(in_time(kairo.reply(last)).await.outcome, "done", "also where it ends the process");
    kairo.stop().await;
    assert_eq!(kairo.all(&PROCESS_REPLY).await.len(), 3, "each call is replied to once");
}

#[tokio::test]
async fn a_text_is_written_once_for_each_call_that_orders_it() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let script = "while read line; do echo \"got $line\"; done; echo closed";
    let arguments = json!({"program": "sh", "args": ["-c", script], "stdin": true}).to_string();
    let action = kairo.spawn(&arguments).await;
    let supervisor = in_time(kairo.spawned(action)).await.supervisor;
    let first = Uuid::now_v7();
    let second = Uuid::now_v7();
    for _ in 0..2 {
        kairo.order(&supervisor, action, first, write("one\n", false)).await;
    }
    in_time(kairo.reply(first)).await;
    kairo.order(&supervisor, action, second, write("two\n", true)).await;
    assert_eq!(in_time(kairo.exited(action)).await.stdout_tail, "got one\ngot two\nclosed\n");
    kairo.stop().await;
}

#[tokio::test]
async fn what_cannot_be_done_is_replied_with_the_reason() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let pipe = kairo.dir.path().join("pipe");
    let action = kairo.spawn(&until_told(&pipe)).await;
    let (refused, why) = outcome(&kairo, action, write("x", false)).await;
    assert!(refused == "refused" && why.contains("standard input"), "{refused}: {why}");
    let (refused, why) = outcome(&kairo, action, signal("SEGV")).await;
    assert!(refused == "refused" && why.contains("HUP, INT"), "{refused}: {why}");
    tell(&pipe);
    in_time(kairo.exited(action)).await;
    let (over, why) = outcome(&kairo, action, signal("USR1")).await;
    assert!(over == "not_here" && why.contains("its end is in the log"), "{over}: {why}");
    kairo.stop().await;
}

#[tokio::test]
async fn a_stop_reaches_whoever_has_the_process_and_has_one_outcome() {
    let mut kairo = Kairo::start().await;
    for _ in 0..2 {
        kairo.replica().await;
    }
    let instances = in_time(kairo.instances(2)).await;
    let mut witness = Witness::new(kairo.dir.path());
    let script = format!("{}; tail -f /dev/null", witness.daemon());
    let action = kairo.spawn(&shell(&script)).await;
    in_time(witness.alive()).await;
    let supervisor = in_time(kairo.spawned(action)).await.supervisor;
    let other = instances.iter().find(|instance| **instance != supervisor).expect("another replica");
    // Whoever orders it may know no better than that the other one has it.
    let passed_on = kairo.order(other, action, Uuid::now_v7(), stop()).await.id;
    let direct = kairo.order(&supervisor, action, Uuid::now_v7(), stop()).await.id;
    let exited = in_time(kairo.exited(action)).await;
    in_time(witness.dead()).await;
    assert_eq!((exited.outcome.as_str(), exited.supervisor), ("canceled", supervisor));
    assert!(exited.reason.contains("on request"), "{}", exited.reason);
    in_time(kairo.last(&PROCESS_CANCELED)).await;
    kairo.stop().await;
    let canceled = kairo.all(&PROCESS_CANCELED).await;
    assert_eq!((canceled.len(), kairo.all(&PROCESS_EXITED).await.len()), (1, 1), "ordered twice, done once");
    // The other replica takes its time to pass it on, so that either may arrive first.
    let cause = canceled[0].envelope.causation_id.expect("a cause");
    assert!([passed_on, direct].contains(&cause), "it follows from one of the orders, not from {cause}");
    assert!(kairo.all(&PROCESS_REPLY).await.is_empty(), "the end is the reply");
}

#[tokio::test]
async fn an_order_waits_in_the_log_for_a_supervisor_that_is_frozen() {
    let mut kairo = Kairo::start().await;
    let replica = kairo.replica().await;
    let mut live = kairo.listen().await;
    let action = kairo.spawn(&shell(SIGNALED)).await;
    let supervisor = in_time(kairo.spawned(action)).await.supervisor;
    in_time(live.until("ready\n")).await;
    kairo.freeze(replica);
    let by = Uuid::now_v7();
    kairo.order(&supervisor, action, by, signal("USR1")).await;
    kairo.thaw(replica);
    assert_eq!(in_time(kairo.reply(by)).await.outcome, "done");
    in_time(live.until("usr1\n")).await;
    kairo.stop().await;
}

#[tokio::test]
async fn requests_for_an_effect_are_refused() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let pipe = kairo.dir.path().join("pipe");
    let action = kairo.spawn(&until_told(&pipe)).await;
    let supervisor = in_time(kairo.spawned(action)).await.supervisor;
    let asks = [
        Ask::Stop(ProcessStop { grace_ms: 0 }),
        Ask::Signal(ProcessSignal { name: "TERM".to_owned() }),
        Ask::Write(ProcessWrite { text: "x".to_owned(), close: true }),
    ];
    for (subject, ask) in [SUPERVISORS_CONTROL.to_owned(), control_of(&supervisor)]
        .iter()
        .flat_map(|subject| asks.iter().map(move |ask| (subject, ask.clone())))
    {
        let answer = in_time(kairo.ask(subject, action, Uuid::now_v7(), ask)).await;
        assert!(answer.outcome == "refused" && answer.reason.contains("order in the log"), "{}", answer.reason);
    }
    tell(&pipe);
    assert_eq!(in_time(kairo.exited(action)).await.code, Some(7), "nothing was done to it");
    kairo.stop().await;
}
