//! Tests tools of workers of the Python kit, each a process with a user of its own, and their calls when one of the
//! processes dies.

use std::time::Duration;

use async_nats::{ConnectOptions, Event, ServerError};
use futures::StreamExt as _;
use kairo_core::subjects::TOOL_PROGRESS;
use kairo_local::{ChildProcess, Exit, ProcessSpec, Tools};
use kairo_proto::{
    Body,
    v1::{ToolCatalogue, ToolProgress},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};
use uuid::Uuid;

use super::kairo::{Call, Decided, Kairo, WORKER, failed, said};

const DEADLINE: Duration = Duration::from_secs(60);
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control/worker.py");

/// The worker in TypeScript's kit.
const NODE: &str = "node";
const NODE_PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control/worker.mjs");
const KIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/typescript/dist/index.js");

fn lifecycle() -> String {
    json!({ "announce_ms": 200, "start_wait_ms": 1, "beat_ms": 100, "silence_ms": 1500, "busy_ms": 50 }).to_string()
}

/// A Kairo that knows the worker.
async fn start(replicas: usize, worker: Value) -> Kairo {
    let workers = json!([worker]).to_string();
    let env = [("KAIRO_TOOL_RUNNER__TOOLS__WORKERS", workers), ("KAIRO_TOOL_RUNNER__WORKER_LIFECYCLE", lifecycle())];
    Kairo::start(replicas, &env).await
}

fn trusted() -> Value {
    json!({ "name": WORKER })
}

fn spec(kairo: &Kairo, name: &str, flavor: &str) -> ProcessSpec {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let login = kairo.worker_login();
    let log = kairo.folder().join(format!("worker-{}.log", Uuid::new_v4()));
    let folder = kairo.folder().display().to_string();
    let mut spec = match flavor {
        NODE => ProcessSpec::new("worker", "/usr/bin/env", log).args(["node", NODE_PROGRAM, KIT, name, &folder]),
        _ => {
            let python = tools.worker_python().unwrap();
            ProcessSpec::new("worker", python, log).args([PROGRAM, name, &folder, flavor])
        }
    };
    spec.env = vec![
        ("NATS_URL".to_owned(), login.url),
        ("NATS_USER".to_owned(), login.user),
        ("NATS_PASSWORD".to_owned(), login.password),
    ];
    spec
}

/// Starts a replica of the worker and waits until its tools are offered.
async fn worker(kairo: &Kairo, flavor: &str) -> ChildProcess {
    let mut spec = spec(kairo, WORKER, flavor);
    spec.ready = |line| line.contains("offered: ");
    let mut process = ChildProcess::spawn(spec).await.unwrap();
    process.wait_until_ready(DEADLINE).await.unwrap();
    kairo.wait("kairo.system.*.catalogue", |record| offers(&record.body, "billing.echo").then_some(())).await;
    process
}

fn offers(body: &Body, tool: &str) -> bool {
    ToolCatalogue::of(body).is_some_and(|catalogue| catalogue.tools.iter().any(|offered| offered.name == tool))
}

async fn decide(kairo: &Kairo, tool: &'static str) -> Decided {
    kairo.decide(Call { tool, arguments: json!({}), target: None }).await
}

/// Waits until the worker has noted so much, and returns it.
async fn noted(kairo: &Kairo, what: &str, lines: usize) -> Vec<String> {
    let file = kairo.folder().join(what);
    let waiting = async {
        loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.lines().count() >= lines {
                return text.lines().map(str::to_owned).collect();
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("{what} was not noted"))
}

fn go(kairo: &Kairo) {
    std::fs::write(kairo.folder().join("go"), "").unwrap();
}

async fn results(kairo: &Kairo, action: Uuid) -> usize {
    let of_action = |body: &Body| matches!(body, Body::ToolResult(result) if result.action_id == action.to_string());
    kairo.log().await.iter().filter(|record| of_action(&record.body)).count()
}

#[tokio::test]
async fn tools_of_a_worker_are_offered_and_called() {
    let kairo = start(2, trusted()).await;
    let _worker = worker(&kairo, "good").await;
    let call = kairo.decide(Call { tool: "billing.echo", arguments: json!({ "n": 1 }), target: None }).await;
    let (result, _) = kairo.result(call.action).await;
    let expected = json!({ "arguments": { "n": 1 }, "action_id": call.action, "agent": "ann", "thread_id": "t-1" });
    assert_eq!(said(&result), expected);
    assert_eq!(result.outside, ["worker:billing"]);
    let wrong = kairo.call("billing.echo", json!({ "n": "one" }), None).await;
    assert_eq!(failed(&wrong).0, "invalid_arguments");
    for (how, kind, words) in
        [("said", "not_found", "there is none"), ("large", "in_doubt", "1000002"), ("raised", "failed", "oops")]
    {
        let result = kairo.call("billing.fail", json!({ "how": how }), None).await;
        let (failed_as, message) = failed(&result);
        assert_eq!(failed_as, kind, "{message}");
        assert!(message.contains(words), "{message}");
    }
    let records = kairo.log().await;
    let catalogue = records.iter().filter_map(|record| ToolCatalogue::of(&record.body)).next_back().unwrap();
    let hints = |name: &str| {
        let tool = catalogue.tools.iter().find(|tool| tool.name == name).unwrap();
        (tool.idempotent, tool.acts_outside)
    };
    assert_eq!(
        ["billing.echo", "billing.pay", "billing.refund"].map(hints),
        [(true, false), (false, true), (true, true)]
    );
    kairo.stop().await;
}

#[tokio::test]
async fn a_call_whose_worker_is_killed_is_in_doubt_and_has_one_result() {
    let kairo = start(1, trusted()).await;
    let worker = worker(&kairo, "good").await;
    let call = decide(&kairo, "billing.pay").await;
    noted(&kairo, "pay", 1).await;
    let told = kairo.wait("kairo.tool.*.progress", |record| ToolProgress::of(&record.body).cloned()).await;
    assert!(TOOL_PROGRESS.matches("kairo.tool.ann.progress") && told.message == "did pay", "{told:?}");
    worker.kill9().await.unwrap();
    let (result, _) = kairo.result(call.action).await;
    assert_eq!(failed(&result).0, "in_doubt");
    assert_eq!(results(&kairo, call.action).await, 1);
    assert_eq!(noted(&kairo, "pay", 1).await, [call.action.to_string()]);
    kairo.stop().await;
}

#[tokio::test]
async fn an_idempotent_call_whose_worker_is_killed_is_given_to_another_with_the_same_action() {
    let kairo = start(1, trusted()).await;
    let first = worker(&kairo, "good").await;
    let call = decide(&kairo, "billing.refund").await;
    noted(&kairo, "refund", 1).await;
    first.kill9().await.unwrap();
    let second = worker(&kairo, "good").await;
    assert_eq!(noted(&kairo, "refund", 2).await, [call.action.to_string(), call.action.to_string()]);
    go(&kairo);
    let (result, _) = kairo.result(call.action).await;
    assert!(result.ok, "{result:?}");
    assert_eq!(results(&kairo, call.action).await, 1);
    second.terminate(DEADLINE).await.unwrap();
    kairo.stop().await;
}

#[tokio::test]
async fn a_call_whose_runner_is_killed_is_taken_up_where_it_is_worked_on_or_is_in_doubt() {
    let mut kairo = start(1, trusted()).await;
    let _workers = [worker(&kairo, "good").await, worker(&kairo, "good").await];
    let pay = decide(&kairo, "billing.pay").await;
    let refund = decide(&kairo, "billing.refund").await;
    noted(&kairo, "pay", 1).await;
    noted(&kairo, "refund", 1).await;
    kairo.kill9(0).await;
    kairo.another().await;
    let (result, _) = kairo.result(pay.action).await;
    assert_eq!(failed(&result).0, "in_doubt");
    go(&kairo);
    let (result, _) = kairo.result(refund.action).await;
    assert_eq!(said(&result)["did"], "refund");
    assert_eq!(noted(&kairo, "refund", 1).await.len(), 1, "whoever had it answered: it was not begun again");
    // Its worker went on, and what it says is heard by the runner that came.
    assert_eq!(said(&kairo.late(pay.action).await)["did"], "pay");
    assert_eq!(noted(&kairo, "pay", 1).await.len(), 1);
    assert_eq!([results(&kairo, pay.action).await, results(&kairo, refund.action).await], [2, 1]);
    kairo.stop().await;
}

#[tokio::test]
async fn an_answer_of_a_worker_that_comes_after_its_limit_settles_what_was_in_doubt() {
    let kairo = start(1, json!({ "name": WORKER, "call_timeout_ms": 200 })).await;
    let _worker = worker(&kairo, "good").await;
    let call = decide(&kairo, "billing.slow").await;
    noted(&kairo, "slow", 1).await;
    let (kind, message) = (kairo.result(call.action).await.0.error).map(|error| (error.kind, error.message)).unwrap();
    assert!(kind == "in_doubt" && message.contains("within 200 ms"), "{kind}: {message}");
    go(&kairo);
    let late = kairo.late(call.action).await;
    assert_eq!(said(&late)["did"], "slow");
    assert_eq!(late.outside, ["worker:billing"]);
    assert_eq!(noted(&kairo, "slow", 1).await, [call.action.to_string()]);
    assert_eq!(results(&kairo, call.action).await, 2);
    kairo.stop().await;
}

#[tokio::test]
async fn a_call_is_stopped_in_its_worker() {
    let kairo = start(2, trusted()).await;
    let _worker = worker(&kairo, "good").await;
    let call = decide(&kairo, "billing.pay").await;
    noted(&kairo, "pay", 1).await;
    assert_eq!(said(&kairo.cancel(call.action).await)["status"], "canceled");
    assert_eq!(noted(&kairo, "stopped", 1).await, [call.action.to_string()]);
    // What a function still did that looks for itself whether it is to stop is its result.
    let call = decide(&kairo, "billing.count").await;
    noted(&kairo, "count", 1).await;
    kairo.cancel(call.action).await;
    assert_eq!(said(&kairo.result(call.action).await.0), "counted until it was stopped");
    assert_eq!(results(&kairo, call.action).await, 1);
    kairo.stop().await;
}

#[tokio::test]
async fn a_worker_with_enough_to_do_leaves_calls_to_others_and_one_that_ends_finishes_its_own() {
    let kairo = start(1, trusted()).await;
    let first = worker(&kairo, "good").await;
    let calls = [decide(&kairo, "billing.pay").await, decide(&kairo, "billing.pay").await];
    noted(&kairo, "pay", 2).await;
    let third = decide(&kairo, "billing.pay").await;
    kairo.invoke(third.action).await;
    let _second = worker(&kairo, "good").await;
    assert_eq!(noted(&kairo, "pay", 3).await[2], third.action.to_string());
    let (ended, ()) = tokio::join!(first.terminate(DEADLINE), async { go(&kairo) });
    ended.unwrap();
    for call in calls.into_iter().chain([third]) {
        assert!(kairo.result(call.action).await.0.ok);
        assert_eq!(results(&kairo, call.action).await, 1);
    }
    kairo.stop().await;
}

#[tokio::test]
async fn bad_tools_and_changed_descriptions_are_withheld_and_their_worker_is_told_why() {
    let kairo = start(1, trusted()).await;
    let first = worker(&kairo, "bad").await;
    let logged = |process: &ChildProcess| std::fs::read_to_string(process.log()).unwrap();
    let log = logged(&first);
    assert!(log.contains("crooked is not offered: its schema is"), "{log}");
    first.terminate(DEADLINE).await.unwrap();

    let mut changed = spec(&kairo, WORKER, "changed");
    changed.ready = |line| line.contains("echo is not offered: ");
    let mut changed = ChildProcess::spawn(changed).await.unwrap();
    let line = changed.wait_until_ready(DEADLINE).await.unwrap();
    assert!(
        line.contains("describes it otherwise than before") && line.contains("tool_runner.tools.workers"),
        "{line}"
    );
    assert_eq!(failed(&kairo.call("billing.echo", json!({}), None).await).0, "approval_required", "nothing was begun");
    changed.terminate(DEADLINE).await.unwrap();
    kairo.stop().await;
}

#[tokio::test]
async fn a_call_of_a_worker_that_is_gone_fails_with_nothing_begun() {
    let workers = json!([trusted()]).to_string();
    let mut short: Value = serde_json::from_str(&lifecycle()).unwrap();
    short["wait_ms"] = json!(200);
    let env =
        [("KAIRO_TOOL_RUNNER__TOOLS__WORKERS", workers), ("KAIRO_TOOL_RUNNER__WORKER_LIFECYCLE", short.to_string())];
    let kairo = Kairo::start(1, &env).await;
    let worker = worker(&kairo, "good").await;
    worker.kill9().await.unwrap();
    let result = kairo.call("billing.pay", json!({}), None).await;
    let (kind, message) = failed(&result);
    assert_eq!(kind, "failed");
    assert!(message.contains("nothing was begun"), "{message}");
    kairo.stop().await;
}

/// Announces the worker until the runner replies, and returns its verdict.
async fn verdict(kairo: &Kairo, worker: &str, announcement: Value) -> Value {
    let mut verdicts = kairo.bus.subscribe(format!("kairo.worker.{worker}.announced.raw")).await.unwrap();
    // Said again until somebody listens: the runner may not have begun to.
    let said = async {
        loop {
            kairo.bus.send_live(&format!("kairo.worker.{worker}.announce"), announcement.to_string()).await.unwrap();
            if let Ok(Some(heard)) = timeout(Duration::from_millis(200), verdicts.next()).await {
                return serde_json::from_slice(&heard.payload).unwrap();
            }
        }
    };
    timeout(DEADLINE, said).await.expect("no verdict")
}

#[tokio::test]
async fn announcements_that_nobody_may_make_are_refused() {
    let kairo = start(1, json!({ "name": WORKER, "max_tools": 2 })).await;
    let tool = |name: &str| json!({ "name": name, "description": "d", "schema": { "type": "object" } });
    let announcement = |protocol: u32, tools: Value| json!({ "protocol": protocol, "instance": "raw", "tools": tools });
    let stranger = verdict(&kairo, "stranger", announcement(1, json!([tool("a")]))).await;
    assert!(stranger["error"].as_str().unwrap().contains("tool_runner.tools.workers"), "{stranger}");
    let newer = verdict(&kairo, WORKER, announcement(2, json!([tool("a")]))).await;
    assert!(newer["error"].as_str().unwrap().contains("version 1"), "{newer}");
    let several = verdict(&kairo, WORKER, announcement(1, json!([tool("a.b"), tool("a"), tool("b")]))).await;
    assert_eq!(several["accepted"], json!(["billing.a"]));
    let reason = |at: usize| several["refused"][at]["reason"].as_str().unwrap();
    assert!(reason(0).contains("[A-Za-z0-9_-]") && reason(1).contains("max_tools"), "{several}");
    kairo.stop().await;
}

/// Checks that a refused login is reported with a remedy, and that the worker still ends when it is told to.
async fn is_refused_and_ends(kairo: &Kairo, flavor: &str) {
    let mut spec = spec(kairo, WORKER, flavor);
    spec.env.retain(|(name, _)| name != "NATS_PASSWORD");
    spec.env.push(("NATS_PASSWORD".to_owned(), "wrong".to_owned()));
    spec.ready = |line| line.contains("refused the login") && line.contains("worker-billing");
    let mut process = ChildProcess::spawn(spec).await.unwrap();
    let line = process.wait_until_ready(DEADLINE).await.unwrap();
    assert!(line.contains("docs/tool-workers.md") && line.contains("kairo dev"), "{line}");
    // One that takes longer is killed.
    let exit = process.terminate(Duration::from_secs(5)).await.unwrap();
    assert_eq!(exit, Exit::Code(0), "{flavor}");
}

#[tokio::test]
async fn a_worker_whose_login_is_refused_says_what_to_do_and_ends_when_it_is_asked_to() {
    let kairo = start(1, trusted()).await;
    is_refused_and_ends(&kairo, "good").await;
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    if let Some(compiler) = tools.worker_tsc() {
        let built = std::process::Command::new(compiler).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
        is_refused_and_ends(&kairo, NODE).await;
    }
    kairo.stop().await;
}

#[tokio::test]
async fn a_worker_says_nothing_but_what_is_its_own() {
    let kairo = start(1, trusted()).await;
    let (refused, mut refusals) = mpsc::unbounded_channel();
    let login = kairo.worker_login();
    let options = ConnectOptions::with_user_and_password(login.user, login.password).event_callback(move |event| {
        if let Event::ServerError(ServerError::Other(said)) = event {
            let _ = refused.send(said);
        }
        std::future::ready(())
    });
    let client = options.connect(login.url).await.unwrap();
    for subject in ["kairo.tool.ann.result.1", "kairo.worker.shipping.announce", "$JS.API.STREAM.INFO.KAIRO_EVENTS"] {
        client.publish(subject, "forged".into()).await.unwrap();
        let said = timeout(DEADLINE, refusals.recv()).await.expect("it was let through").unwrap();
        assert!(said.contains(&format!("Publish to \"{subject}\"")), "{said}");
    }
    for subject in ["kairo.>", "kairo.worker.shipping.call.*", "_INBOX_tool-runner.>"] {
        let _hearing = client.subscribe(subject).await.unwrap();
        let said = timeout(DEADLINE, refusals.recv()).await.expect("it was let through").unwrap();
        assert!(said.contains(&format!("Subscription to \"{subject}\"")), "{said}");
    }
    kairo.stop().await;
}

#[tokio::test]
async fn the_kit_for_typescript_speaks_the_same_protocol() {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let Some(compiler) = tools.worker_tsc() else {
        eprintln!("skipped: this machine has no Node 20");
        return;
    };
    let built = std::process::Command::new(compiler).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
    let mut kairo = start(1, trusted()).await;
    let first = worker(&kairo, NODE).await;
    let call = kairo.decide(Call { tool: "billing.echo", arguments: json!({ "n": 1 }), target: None }).await;
    let expected = json!({ "arguments": { "n": 1 }, "action_id": call.action, "agent": "ann", "thread_id": "t-1" });
    assert_eq!(said(&kairo.result(call.action).await.0), expected);
    assert_eq!(failed(&kairo.call("billing.fail", json!({}), None).await), ("not_found", "there is none"));

    // Stopped.
    let call = decide(&kairo, "billing.pay").await;
    noted(&kairo, "pay", 1).await;
    assert_eq!(said(&kairo.cancel(call.action).await)["status"], "canceled");
    assert_eq!(noted(&kairo, "stopped", 1).await, [call.action.to_string()]);

    // The runner dies, and the next one finds who has the call.
    let refund = decide(&kairo, "billing.refund").await;
    noted(&kairo, "refund", 1).await;
    kairo.kill9(0).await;
    kairo.another().await;
    go(&kairo);
    assert_eq!(said(&kairo.result(refund.action).await.0)["did"], "refund");
    assert_eq!(noted(&kairo, "refund", 1).await.len(), 1, "it was not begun again");

    // The worker dies.
    std::fs::remove_file(kairo.folder().join("go")).unwrap();
    let pay = decide(&kairo, "billing.pay").await;
    noted(&kairo, "pay", 2).await;
    first.kill9().await.unwrap();
    assert_eq!(failed(&kairo.result(pay.action).await.0).0, "in_doubt");
    assert_eq!([results(&kairo, refund.action).await, results(&kairo, pay.action).await], [1, 1]);

    // One that is asked to end, ends.
    let second = worker(&kairo, NODE).await;
    second.terminate(DEADLINE).await.unwrap();
    assert!(second.exit().is_some());
    kairo.stop().await;
}
