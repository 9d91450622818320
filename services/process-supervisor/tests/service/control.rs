//! Tests requests about processes while they run, before, and after. They also ask for effects, in a log whose readers
//! know no orders.

use kairo_core::{
    subjects::{PROCESS_CANCELED, PROCESS_EXITED, PROCESS_SPAWNED, SUPERVISORS_CONTROL, control_of},
    vocabulary::ANSWERS,
};
use kairo_proto::{
    Body,
    v1::{
        ProcessAnswer, ProcessLook, ProcessRequest, ProcessSignal, ProcessState, ProcessStop, ProcessWrite,
        process_request::Ask,
    },
};
use prost::Message;
use serde_json::json;
use uuid::Uuid;

use super::{Kairo, Witness, in_time, shell, tell, until_told};

/// The last epoch whose readers know no orders.
const BEFORE_ORDERS: u32 = ANSWERS - 1;

/// Says each USR1 it gets, and ends on TERM with code 5. What it waits for is not reached by either.
pub const SIGNALED: &str = "trap 'echo usr1' USR1; trap 'exit 5' TERM; (trap '' USR1; exec tail -f /dev/null) & \
                        echo ready; while :; do wait; done";

fn signal(name: &str) -> Ask {
    Ask::Signal(ProcessSignal { name: name.to_owned() })
}

fn write(text: &str, close: bool) -> Ask {
    Ask::Write(ProcessWrite { text: text.to_owned(), close })
}

fn look() -> Ask {
    Ask::Look(ProcessLook {})
}

fn stop() -> Ask {
    Ask::Stop(ProcessStop { grace_ms: 0 })
}

fn done(answer: ProcessAnswer) -> ProcessState {
    assert_eq!(answer.outcome, "done", "{}", answer.reason);
    answer.state.expect("what is done has a state")
}

#[tokio::test]
async fn a_process_can_be_looked_at_and_signaled_once_for_each_request() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    kairo.replica().await;
    let mut live = kairo.listen().await;
    let action = kairo.spawn(&shell(SIGNALED)).await;
    let control = in_time(kairo.control(action)).await;
    in_time(live.until("ready\n")).await;
    let [first, second, last] = [(); 3].map(|()| Uuid::now_v7());
    let state = done(in_time(kairo.ask(&control, action, first, look())).await);
    assert_eq!((state.stdout_tail.as_str(), state.stdout_bytes, state.outcome.as_str()), ("ready\n", 6, ""));
    assert_eq!(state.process_id, in_time(kairo.spawned(action)).await.process_id);
    done(in_time(kairo.ask(&control, action, first, signal("USR1"))).await);
    in_time(live.until("usr1\n")).await;
    done(in_time(kairo.ask(&control, action, first, signal("USR1"))).await);
    done(in_time(kairo.ask(&control, action, second, signal("USR1"))).await);
    in_time(live.until("usr1\nusr1\n")).await;
    done(in_time(kairo.ask(&control, action, last, signal("TERM"))).await);
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!((exited.outcome.as_str(), exited.code), ("exited", Some(5)));
    assert_eq!(exited.stdout_tail, "ready\nusr1\nusr1\n", "asked twice is done once");
    kairo.stop().await;
}

#[tokio::test]
async fn a_process_with_standard_input_can_be_written_to_once_for_each_request() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    kairo.replica().await;
    let script = "while read line; do echo \"got $line\"; done; echo closed";
    let arguments = json!({"program": "sh", "args": ["-c", script], "stdin": true}).to_string();
    let action = kairo.spawn(&arguments).await;
    let control = in_time(kairo.control(action)).await;
    let first = Uuid::now_v7();
    let second = Uuid::now_v7();
    for _ in 0..2 {
        done(in_time(kairo.ask(&control, action, first, write("one\n", false))).await);
    }
    done(in_time(kairo.ask(&control, action, second, write("two\n", true))).await);
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.stdout_tail, "got one\ngot two\nclosed\n");
    kairo.stop().await;
}

#[tokio::test]
async fn what_cannot_be_done_has_a_clear_answer() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    kairo.replica().await;
    let pipe = kairo.dir.path().join("pipe");
    let action = kairo.spawn(&until_told(&pipe)).await;
    let control = in_time(kairo.control(action)).await;
    let by = Uuid::now_v7();
    let without_stdin = in_time(kairo.ask(&control, action, by, write("x", false))).await;
    assert_eq!(without_stdin.outcome, "refused");
    assert!(without_stdin.reason.contains("standard input"), "{}", without_stdin.reason);
    let unknown = in_time(kairo.ask(&control, Uuid::now_v7(), by, signal("TERM"))).await;
    assert_eq!(unknown.outcome, "not_here", "{}", unknown.reason);
    let of_another = ProcessRequest {
        agent: "bob".to_owned(),
        action_id: action.to_string(),
        by_action_id: by.to_string(),
        after: 1,
        ask: Some(look()),
    };
    let of_another = in_time(kairo.ask_raw(&control, of_another.encode_to_vec())).await;
    assert_eq!((of_another.outcome.as_str(), of_another.state), ("not_here", None));
    tell(&pipe);
    in_time(kairo.exited(action)).await;
    let gone = in_time(kairo.ask(SUPERVISORS_CONTROL, Uuid::now_v7(), by, look())).await;
    assert_eq!(gone.outcome, "not_here", "{}", gone.reason);
    kairo.stop().await;
}

#[tokio::test]
async fn a_malformed_question_is_answered_and_harms_nobody() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    kairo.replica().await;
    let pipe = kairo.dir.path().join("pipe");
    let action = kairo.spawn(&until_told(&pipe)).await;
    let control = in_time(kairo.control(action)).await;
    let sound = || ProcessRequest {
        agent: "ann".to_owned(),
        action_id: action.to_string(),
        after: 1,
        by_action_id: Uuid::now_v7().to_string(),
        ask: Some(stop()),
    };
    let malformed = [
        (ProcessRequest { agent: "*".to_owned(), ..sound() }, "agent"),
        (ProcessRequest { agent: String::new(), ..sound() }, "agent"),
        (ProcessRequest { action_id: "7".to_owned(), ..sound() }, "action_id"),
        (ProcessRequest { by_action_id: String::new(), ..sound() }, "by_action_id"),
        (ProcessRequest { by_action_id: String::new(), ask: Some(write("x", false)), ..sound() }, "by_action_id"),
        (ProcessRequest { ask: Some(signal("SEGV")), ..sound() }, "signal.name"),
        (ProcessRequest { ask: None, ..sound() }, "nothing is asked"),
    ];
    let mut questions: Vec<(Vec<u8>, &str)> =
        malformed.iter().map(|(request, what)| (request.encode_to_vec(), *what)).collect();
    questions.push((vec![0xff; 99], "no ProcessRequest"));
    for (question, what) in questions {
        for subject in [control.as_str(), SUPERVISORS_CONTROL] {
            let answer = in_time(kairo.ask_raw(subject, question.clone())).await;
            assert_eq!(answer.outcome, "refused", "{what}");
            assert!(answer.reason.contains(what), "{what}: {}", answer.reason);
        }
    }
    // Nobody waits for an answer to these.
    kairo.bus.nats().expect("on nats").client.publish(control, "".into()).await.expect("said");
    kairo.bus.nats().expect("on nats").client.publish("kairo.live.NOBODY.tail", "".into()).await.expect("said");
    tell(&pipe);
    assert_eq!(in_time(kairo.exited(action)).await.code, Some(7));
    kairo.stop().await;
}

#[tokio::test]
async fn a_stop_is_answered_when_the_end_is_in_the_log_and_has_one_outcome() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    kairo.replica().await;
    let mut witness = Witness::new(kairo.dir.path());
    let script = format!("{}; tail -f /dev/null", witness.daemon());
    let action = kairo.spawn(&shell(&script)).await;
    in_time(witness.alive()).await;
    let by = Uuid::now_v7();
    let again = Uuid::now_v7();
    let (first, second) =
        in_time(async { tokio::join!(kairo.stop_process(action, by), kairo.stop_process(action, again)) }).await;
    // It is in the log: no waiting here.
    assert_eq!(kairo.all(&PROCESS_EXITED).await.len(), 1);
    in_time(witness.dead()).await;
    let first = done(first);
    let second = done(second);
    assert_eq!((first.outcome.as_str(), &first), ("canceled", &second));
    assert_eq!(done(in_time(kairo.stop_process(action, Uuid::now_v7())).await), first, "a stop comes late");
    let exited = in_time(kairo.exited(action)).await;
    assert!(exited.reason.contains("on request"), "{}", exited.reason);

    let spawned = in_time(kairo.last(&PROCESS_SPAWNED)).await;
    let canceled = kairo.all(&PROCESS_CANCELED).await;
    assert_eq!(canceled.len(), 1, "asked three times, entered once");
    let (envelope, Body::ProcessCanceled(body)) = (&canceled[0].envelope, &canceled[0].body) else { panic!("no body") };
    assert!([by, again].contains(&envelope.causation_id.expect("a cause")));
    assert_eq!(Some(body.by_action_id.clone()), envelope.causation_id.map(|cause| cause.to_string()));
    assert_eq!(envelope.correlation_id, spawned.envelope.correlation_id);
    assert_eq!(envelope.thread_id.as_deref(), Some("t-1"));
    assert_eq!(body.grace_ms, 100);
    kairo.stop().await;
}

#[tokio::test]
async fn what_is_stopped_before_it_began_never_runs() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    kairo.replica().await;
    let action = Uuid::now_v7();
    let by = Uuid::now_v7();
    for _ in 0..2 {
        let answer = in_time(kairo.stop_process(action, by)).await;
        assert_eq!((answer.outcome.as_str(), answer.state), ("not_begun", None), "{}", answer.reason);
    }
    let marker = kairo.dir.path().join("marker");
    kairo.invoke(&[(action, &shell(&format!(": >{}", marker.display())))]).await;
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.outcome, "canceled");
    assert!(exited.reason.contains("on request"), "{}", exited.reason);
    assert!(!marker.exists());
    assert_eq!(done(in_time(kairo.stop_process(action, by)).await).outcome, "canceled");
    assert_eq!(kairo.all(&PROCESS_CANCELED).await.len(), 1);
    kairo.stop().await;
}

#[tokio::test]
async fn a_process_that_has_ended_is_not_canceled_any_more() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    kairo.replica().await;
    let action = kairo.spawn(&shell("echo out; exit 3")).await;
    in_time(kairo.exited(action)).await;
    let state = done(in_time(kairo.stop_process(action, Uuid::now_v7())).await);
    assert_eq!((state.outcome.as_str(), state.code, state.stdout_tail.as_str()), ("exited", Some(3), "out\n"));
    assert!(kairo.all(&PROCESS_CANCELED).await.is_empty());
    kairo.stop().await;
}

#[tokio::test]
async fn a_stop_reaches_the_supervisor_that_has_the_process() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    for _ in 0..2 {
        kairo.replica().await;
    }
    let instances = in_time(kairo.instances(2)).await;
    let mut witness = Witness::new(kairo.dir.path());
    let action = kairo.spawn(&shell(&witness.command())).await;
    in_time(witness.alive()).await;
    let supervisor = in_time(kairo.spawned(action)).await.supervisor;
    let other = instances.iter().find(|instance| **instance != supervisor).expect("another replica");
    let state = done(in_time(kairo.ask(&control_of(other), action, Uuid::now_v7(), stop())).await);
    assert_eq!(state.outcome, "canceled");
    in_time(witness.dead()).await;
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.supervisor, supervisor);
    let Body::ProcessCanceled(canceled) = in_time(kairo.last(&PROCESS_CANCELED)).await.body else { panic!("no body") };
    assert_eq!(canceled.supervisor, *other, "whoever is asked says so");
    kairo.stop().await;
}

#[tokio::test]
async fn a_stop_of_a_process_whose_supervisor_is_gone_leaves_its_end_to_the_log() {
    let mut kairo = Kairo::start_in(BEFORE_ORDERS).await;
    let first = kairo.replica().await;
    let mut witness = Witness::new(kairo.dir.path());
    let action = kairo.spawn(&shell(&witness.command())).await;
    in_time(witness.alive()).await;
    kairo.replica().await;
    kairo.kill9(first).await;
    in_time(witness.dead()).await;
    let answer = in_time(kairo.stop_process(action, Uuid::now_v7())).await;
    // Who is asked first, or who records the end, is not for this test to say.
    assert!(["not_here", "done"].contains(&answer.outcome.as_str()), "{}: {}", answer.outcome, answer.reason);
    assert_eq!(in_time(kairo.exited(action)).await.outcome, "supervisor_lost");
    kairo.stop().await;
}
