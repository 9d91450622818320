//! Tests tools about processes, with supervisors that answer oddly or not at all. Tests of the whole system cover them
//! with real ones.

use futures::StreamExt as _;
use kairo_core::{
    subjects::{PROCESS_EXITED, PROCESS_REPLY, PROCESS_SPAWNED, SUPERVISORS_CONTROL, control_of},
    vocabulary::ANSWERS,
};
use kairo_proto::v1::{
    ProcessAnswer, ProcessExited, ProcessReply, ProcessRequest, ProcessSpawned, ProcessState, ToolOrder, ToolResult,
    process_request::Ask, tool_order::Order,
};
use prost::Message as _;
use serde_json::{Value, json};
use uuid::Uuid;

use super::kairo::{Call, Kairo, failed, said};

const SUPERVISOR: &str = "supervisor-test";

fn spawned(action: Uuid, background: bool) -> ProcessSpawned {
    ProcessSpawned {
        process_id: "p-1".to_owned(),
        action_id: action.to_string(),
        supervisor: SUPERVISOR.to_owned(),
        pid: 7,
        program: "/bin/build".to_owned(),
        background,
        tool: if background { "process.spawn" } else { "process.run" }.to_owned(),
        ..Default::default()
    }
}

fn exited(action: Uuid, outcome: &str) -> ProcessExited {
    ProcessExited {
        process_id: "p-1".to_owned(),
        action_id: action.to_string(),
        outcome: outcome.to_owned(),
        reason: "it was stopped on request".to_owned(),
        program: "/bin/build".to_owned(),
        background: true,
        tool: "process.spawn".to_owned(),
        ..Default::default()
    }
}

fn named() -> Value {
    json!({ "process_id": "p-1" })
}

fn signaling(signal: &str) -> Value {
    json!({ "process_id": "p-1", "signal": signal })
}

/// With a log whose readers know no orders.
async fn before_orders() -> Kairo {
    Kairo::start(1, &[("KAIRO_NATS__EPOCH", (ANSWERS - 1).to_string())]).await
}

/// Says of each action, as a supervisor would, that it is worked on.
async fn holding(kairo: &Kairo) {
    let client = kairo.bus.nats().unwrap().client.clone();
    let mut questions = client.subscribe(format!("kairo.live.{SUPERVISOR}.holding.held")).await.unwrap();
    client.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(question) = questions.next().await {
            client.publish(question.reply.unwrap(), "yes".into()).await.unwrap();
        }
    });
}

/// Makes a call that sends an order to the supervisor, which replies with `outcome`; returns the order and the result.
async fn ordering(
    kairo: &Kairo,
    tool: &'static str,
    arguments: Value,
    action: Uuid,
    outcome: &str,
) -> (ToolOrder, ToolResult) {
    let decided = kairo.decide(Call { tool, arguments, target: Some(action) }).await;
    let order = kairo
        .wait("kairo.tool.*.order", |record| {
            let order = ToolOrder::of(&record.body)?;
            (order.by_action_id == decided.action.to_string()).then(|| order.clone())
        })
        .await;
    let reply = ProcessReply {
        process_id: "p-1".to_owned(),
        action_id: order.action_id.clone(),
        by_action_id: order.by_action_id.clone(),
        supervisor: SUPERVISOR.to_owned(),
        outcome: outcome.to_owned(),
        reason: "no stdin".to_owned(),
    };
    kairo.say(&PROCESS_REPLY, reply).await;
    (order, kairo.result(decided.action).await.0)
}

/// Answers as the supervisor of the process would; returns a channel with the requests it got.
async fn answering(
    kairo: &Kairo,
    subject: String,
    answer: ProcessAnswer,
) -> tokio::sync::mpsc::Receiver<ProcessRequest> {
    let mut questions = kairo.bus.nats().unwrap().client.subscribe(subject).await.unwrap();
    let (seen, asked) = tokio::sync::mpsc::channel(16);
    let client = kairo.bus.nats().unwrap().client.clone();
    tokio::spawn(async move {
        while let Some(question) = questions.next().await {
            let _ = seen.send(ProcessRequest::decode(question.payload).unwrap()).await;
            client.publish(question.reply.unwrap(), answer.encode_to_vec().into()).await.unwrap();
        }
    });
    kairo.bus.nats().unwrap().client.flush().await.unwrap();
    asked
}

fn answer(outcome: &str, state: ProcessState) -> ProcessAnswer {
    ProcessAnswer { outcome: outcome.to_owned(), reason: "no stdin".to_owned(), state: Some(state) }
}

#[tokio::test]
async fn what_is_spawned_gives_a_result_at_once_under_the_name_of_its_tool() {
    let kairo = Kairo::start(1, &[]).await;
    let spawn = Uuid::from_u128(1);
    let run = Uuid::from_u128(2);
    kairo.say(&PROCESS_SPAWNED, spawned(run, false)).await;
    kairo.say(&PROCESS_SPAWNED, spawned(spawn, true)).await;
    kairo.say(&PROCESS_EXITED, exited(spawn, "exited")).await;
    let (started, _) = kairo.result(spawn).await;
    assert_eq!((started.tool.as_str(), &said(&started)["status"]), ("process.spawn", &json!("started")));
    // An old event, which names no tool.
    kairo.say(&PROCESS_EXITED, ProcessExited { background: false, tool: String::new(), ..exited(run, "exited") }).await;
    let (ran, _) = kairo.result(run).await;
    assert_eq!((ran.tool.as_str(), &said(&ran)["outcome"]), ("process.run", &json!("exited")));
    kairo.stop().await;
}

#[tokio::test]
async fn a_supervisor_is_asked_how_a_process_is_doing() {
    let kairo = Kairo::start(1, &[]).await;
    let action = Uuid::from_u128(1);
    kairo.say(&PROCESS_SPAWNED, spawned(action, true)).await;
    let state = ProcessState { fraction: Some(0.5), message: "half".to_owned(), ..Default::default() };
    let mut asked = answering(&kairo, control_of(SUPERVISOR), answer("done", state)).await;
    let told = said(&kairo.call("process.status", named(), Some(action)).await);
    assert_eq!(
        (&told["status"], &told["percent"], &told["message"]),
        (&json!("running"), &json!(50.0), &json!("half"))
    );
    assert!(matches!(asked.recv().await.unwrap().ask, Some(Ask::Look(_))));
    kairo.stop().await;
}

#[tokio::test]
async fn a_supervisor_is_ordered_and_told_who_orders() {
    let kairo = Kairo::start(1, &[]).await;
    let action = Uuid::from_u128(1);
    kairo.say(&PROCESS_SPAWNED, spawned(action, true)).await;
    holding(&kairo).await;
    let (signal, sent) = ordering(&kairo, "process.signal", signaling("USR1"), action, "done").await;
    assert_eq!(said(&sent)["status"], "sent");
    let text = json!({ "process_id": "p-1", "text": "yes\n", "close": true });
    let (write, written) = ordering(&kairo, "process.write", text, action, "done").await;
    assert_eq!(said(&written)["bytes"], 4);
    assert!(matches!(&signal.order, Some(Order::Signal(signal)) if signal.name == "USR1"), "{signal:?}");
    assert!(matches!(&write.order, Some(Order::Write(write)) if write.close && write.text == "yes\n"), "{write:?}");
    for order in [&signal, &write] {
        assert_eq!((order.action_id.as_str(), order.holder.as_str()), (action.to_string().as_str(), SUPERVISOR));
    }
    assert_ne!(signal.by_action_id, write.by_action_id);
    kairo.stop().await;
}

#[tokio::test]
async fn before_orders_a_supervisor_is_asked_and_told_who_asks() {
    let kairo = before_orders().await;
    let action = Uuid::from_u128(1);
    kairo.say(&PROCESS_SPAWNED, spawned(action, true)).await;
    let mut asked = answering(&kairo, control_of(SUPERVISOR), answer("done", ProcessState::default())).await;
    assert_eq!(said(&kairo.call("process.signal", signaling("USR1"), Some(action)).await)["status"], "sent");
    let write = json!({ "process_id": "p-1", "text": "yes\n", "close": true });
    assert_eq!(said(&kairo.call("process.write", write, Some(action)).await)["bytes"], 4);
    let signal = asked.recv().await.unwrap();
    assert!(matches!(&signal.ask, Some(Ask::Signal(signal)) if signal.name == "USR1"), "{signal:?}");
    assert_eq!(signal.action_id, action.to_string());
    let write = asked.recv().await.unwrap();
    assert!(matches!(&write.ask, Some(Ask::Write(write)) if write.close && write.text == "yes\n"), "{write:?}");
    assert_ne!(signal.by_action_id, write.by_action_id);
    kairo.stop().await;
}

#[tokio::test]
async fn what_a_supervisor_refuses_says_why() {
    let kairo = Kairo::start(1, &[]).await;
    let action = Uuid::from_u128(1);
    kairo.say(&PROCESS_SPAWNED, spawned(action, true)).await;
    holding(&kairo).await;
    let write = json!({ "process_id": "p-1", "text": "yes\n" });
    let (_, result) = ordering(&kairo, "process.write", write, action, "refused").await;
    assert_eq!(failed(&result), ("failed", "no stdin"));
    assert_eq!(failed(&kairo.call("process.signal", signaling("SEGV"), Some(action)).await).0, "invalid_arguments");
    kairo.stop().await;
}

#[tokio::test]
async fn before_orders_what_a_supervisor_refuses_says_why() {
    let kairo = before_orders().await;
    let action = Uuid::from_u128(1);
    kairo.say(&PROCESS_SPAWNED, spawned(action, true)).await;
    let _asked = answering(&kairo, control_of(SUPERVISOR), answer("refused", ProcessState::default())).await;
    let write = json!({ "process_id": "p-1", "text": "yes\n" });
    let result = kairo.call("process.write", write, Some(action)).await;
    assert_eq!(failed(&result), ("failed", "no stdin"));
    assert_eq!(failed(&kairo.call("process.signal", signaling("SEGV"), Some(action)).await).0, "invalid_arguments");
    kairo.stop().await;
}

#[tokio::test]
async fn without_its_supervisor_the_log_says_how_a_process_is_doing() {
    for kairo in [Kairo::start(1, &[]).await, before_orders().await] {
        let action = Uuid::from_u128(1);
        kairo.say(&PROCESS_SPAWNED, spawned(action, true)).await;
        let told = said(&kairo.call("process.status", named(), Some(action)).await);
        assert_eq!(told["status"], "running");
        assert!(told["note"].as_str().unwrap().contains(SUPERVISOR), "{told}");
        let gone = signal_to_nobody(&kairo, action).await;
        assert!(failed(&gone).0 == "failed" && failed(&gone).1.contains("is gone"), "{gone:?}");
        let listed = said(&kairo.call("process.list", json!({}), None).await);
        assert_eq!(listed["processes"][0]["status"], "running", "{listed}");

        // Nobody can be asked to stop it; that it has ended is told by the log.
        let cancel = kairo.call("process.cancel", named(), Some(action));
        let end = kairo.say(&PROCESS_EXITED, exited(action, "canceled"));
        let (canceled, _) = tokio::join!(cancel, end);
        assert_eq!(said(&canceled)["outcome"], "canceled");
        let over = kairo.call("process.signal", signaling("TERM"), Some(action)).await;
        assert!(failed(&over).0 == "failed" && failed(&over).1.contains("on request"), "{over:?}");
        assert_eq!(said(&kairo.call("process.status", named(), Some(action)).await)["outcome"], "canceled");
        assert_eq!(said(&kairo.call("process.cancel", named(), Some(action)).await)["outcome"], "canceled");
        let listed = said(&kairo.call("process.list", json!({}), None).await);
        assert_eq!(listed["processes"][0]["outcome"], "canceled", "{listed}");
        kairo.stop().await;
    }
}

/// Sends a signal until its outcome is known: a runner that has just connected cannot tell that nobody is there, and
/// leaves the signal in doubt.
async fn signal_to_nobody(kairo: &Kairo, action: Uuid) -> ToolResult {
    loop {
        let result = kairo.call("process.signal", signaling("TERM"), Some(action)).await;
        if failed(&result).0 != "in_doubt" {
            return result;
        }
    }
}

#[tokio::test]
async fn a_process_that_nobody_began_is_canceled_all_the_same() {
    let kairo = Kairo::start(1, &[]).await;
    let told = said(&kairo.call("process.cancel", named(), Some(Uuid::from_u128(1))).await);
    assert_eq!(told["status"], "canceled");
    kairo.stop().await;
}

#[tokio::test]
async fn before_orders_a_process_that_nobody_began_is_canceled_all_the_same() {
    let kairo = before_orders().await;
    let mut asked =
        answering(&kairo, SUPERVISORS_CONTROL.to_owned(), answer("not_begun", ProcessState::default())).await;
    let told = said(&kairo.call("process.cancel", named(), Some(Uuid::from_u128(1))).await);
    assert_eq!(told["status"], "canceled");
    assert!(matches!(asked.recv().await.unwrap().ask, Some(Ask::Stop(_))));
    kairo.stop().await;
}

#[tokio::test]
async fn what_is_not_the_agents_is_not_found() {
    let kairo = Kairo::start(1, &[]).await;
    for (tool, arguments) in [
        ("process.status", named()),
        ("process.cancel", named()),
        ("process.signal", signaling("TERM")),
        ("process.write", json!({ "process_id": "p-1", "text": "" })),
    ] {
        assert_eq!(failed(&kairo.call(tool, arguments, None).await).0, "not_found", "{tool}");
    }
    kairo.stop().await;
}
