//! Provisioning of streams, and the reports while they are missing or differ.

use std::process::{Command, Output};

use async_nats::jetstream::{consumer::pull, stream};
use kairo_core::{
    bus::port::StreamStore,
    permissions::NatsIdentity,
    subjects::{Consumer, DLQ_STREAM, EVENTS_STREAM},
};
use kairo_local::{NatsServer, Service, Stack, StackOptions, free_port};
use serde_json::Value;

use crate::{
    bus::Server,
    world::scenario::USUAL,
    world::{DEADLINE, Wanted, connect},
};

/// `kairo provision` with these arguments, as who may make streams.
fn provision(nats: &NatsServer, arguments: &[&str]) -> Output {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let mut command = Command::new(program);
    command.args(["provision", "--json"]).args(arguments).env("KAIRO_NATS__URL", nats.url());
    command.envs(nats.users().settings(NatsIdentity::Provision)).output().unwrap()
}

fn answer(output: &Output) -> Value {
    let complaint = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {complaint}"))
}

#[tokio::test]
async fn what_is_missing_is_told_then_made_and_then_nothing_differs() {
    let server = Server::start().await;
    let checked = provision(&server.nats, &["--check"]);
    let missing = answer(&checked);
    assert_eq!(checked.status.code(), Some(1));
    assert!(missing["drift"].to_string().contains("stream KAIRO_EVENTS") && missing["done"] == Value::Array(vec![]));
    let made = provision(&server.nats, &[]);
    assert!(made.status.success(), "{made:?}");
    let parts = answer(&made)["done"].as_array().unwrap().len();
    assert_eq!(parts, kairo_core::subjects::STREAMS.len() + Consumer::DURABLE.len());
    let again = answer(&provision(&server.nats, &[]));
    assert_eq!(again, serde_json::json!({ "done": [], "drift": [] }), "the second time there is nothing to do");
    assert!(provision(&server.nats, &["--check"]).status.success());
}

#[tokio::test]
async fn what_is_narrower_is_widened_and_what_the_operator_chose_is_only_told() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let jetstream = &bus.nats().unwrap().jetstream;
    let letters = jetstream.get_stream(DLQ_STREAM).await.unwrap().cached_info().config.clone();
    let chosen = stream::Config { max_messages: 7, description: Some("ours".to_owned()), ..letters };
    jetstream.update_stream(chosen).await.unwrap();
    let events = jetstream.get_stream(EVENTS_STREAM).await.unwrap();
    let all = events.cached_info().config.clone();
    let narrower = all.subjects.iter().filter(|subject| !subject.starts_with("kairo.email")).cloned().collect();
    jetstream.update_stream(stream::Config { subjects: narrower, ..all.clone() }).await.unwrap();
    let results = Consumer::ToolRunnerProcesses;
    let older = pull::Config {
        durable_name: Some(results.name().to_owned()),
        filter_subjects: vec![results.filters().remove(0)],
        ..Default::default()
    };
    events.delete_consumer(results.name()).await.unwrap();
    events.create_consumer(older).await.unwrap();

    let checked = answer(&provision(&server.nats, &["--check"]))["drift"].to_string();
    for problem in ["max_msgs is 7, not 100000", "it does not take kairo.email.>", "it is not delivered kairo.process."]
    {
        assert!(checked.contains(problem), "{problem} is not in {checked}");
    }
    // A replica says what it lacks rather than work on part of it.
    let refused = bus.nats().unwrap().open_pull(results).await.err().unwrap().to_string();
    assert!(refused.contains("run `kairo provision`") && refused.contains("kairo.process."), "{refused}");

    let widened = answer(&provision(&server.nats, &[]));
    let done: Vec<&str> = widened["done"].as_array().unwrap().iter().map(|it| it["done"].as_str().unwrap()).collect();
    assert_eq!(done, ["widened", "widened"], "{widened}");
    let letters = jetstream.get_stream(DLQ_STREAM).await.unwrap().cached_info().config.clone();
    assert_eq!((letters.max_messages, letters.description.as_deref()), (7, Some("ours")));
    let drift = answer(&provision(&server.nats, &["--check"]))["drift"].to_string();
    assert!(drift.contains("max_msgs is 7") && !drift.contains("kairo.email") && !drift.contains("kairo.process"));
    bus.nats().unwrap().open_pull(results).await.map(drop).unwrap();
}

#[tokio::test]
async fn what_differs_is_mended_by_name_or_all_of_it_and_what_cannot_be_is_told() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let jetstream = &bus.nats().unwrap().jetstream;
    let letters = jetstream.get_stream(DLQ_STREAM).await.unwrap().cached_info().config.clone();
    let chosen =
        stream::Config { max_messages: 7, max_bytes: 1 << 20, description: Some("ours".to_owned()), ..letters };
    jetstream.update_stream(chosen).await.unwrap();
    let there = async || jetstream.get_stream(DLQ_STREAM).await.unwrap().cached_info().config.clone();

    let mended = answer(&provision(&server.nats, &["--mend", "max_msgs"]));
    assert_eq!(mended["done"], serde_json::json!([{ "part": "stream KAIRO_DLQ", "done": "mended" }]));
    assert_eq!(mended["drift"][0]["problem"], "max_bytes is 1048576, not null", "{mended}");
    let letters = there().await;
    assert_eq!((letters.max_messages, letters.description.as_deref()), (100_000, Some("ours")));

    let all = answer(&provision(&server.nats, &["--mend", "all"]));
    assert_eq!(all["drift"], serde_json::json!([]), "{all}");
    assert_eq!(there().await.max_bytes, -1);

    let unknown = provision(&server.nats, &["--mend", "replicas"]);
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(!unknown.status.success() && told.contains("num_replicas"), "{told}");
    // What was denied once cannot be allowed again, and a stream in memory is none in a file.
    let name = "KV_KAIRO_MEMBERS";
    jetstream.delete_stream(name).await.unwrap();
    let in_file =
        stream::Config { name: name.to_owned(), subjects: vec!["$KV.KAIRO_MEMBERS.>".into()], ..Default::default() };
    jetstream.create_stream(in_file).await.unwrap();
    let refused = provision(&server.nats, &["--mend", "storage"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("stream KV_KAIRO_MEMBERS cannot be mended"), "{told}");
}

#[tokio::test]
async fn a_service_says_that_there_is_no_log_until_somebody_makes_it() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut stack = Stack::of_this_build(folder.path()).unwrap();
    stack.use_nats(&server.nats.url(), server.nats.users());
    let health = format!("127.0.0.1:{}", free_port(None).unwrap());
    stack.service(Service::Router).env("KAIRO_HEALTH__LISTEN", &health);
    let url = format!("http://{health}/readyz");
    let provisioned = async {
        loop {
            let answer = match reqwest::get(&url).await {
                Ok(answer) => answer.text().await.unwrap(),
                Err(_) => continue,
            };
            if answer.contains("run `kairo provision`") {
                break;
            }
        }
        let bus = connect(&server.nats.operator()).await;
        let error = bus.nats().unwrap().jetstream.get_stream(EVENTS_STREAM).await;
        assert!(error.is_err(), "the service made the log");
        bus.provision().await.unwrap();
    };
    let (started, provisioned) =
        tokio::join!(stack.start(Service::Router), tokio::time::timeout(DEADLINE, provisioned));
    provisioned.expect("it never said so");
    started.unwrap();
    stack.stop().await.unwrap();
}

#[tokio::test]
async fn drift_is_shown_in_the_status() {
    let world = Wanted::new(USUAL).start().await;
    let (_, status) = world.get("/v1/status").await;
    assert_eq!(status["drift"], Value::Array(vec![]), "{status}");
    let jetstream = &world.bus.nats().unwrap().jetstream;
    let events = jetstream.get_stream(EVENTS_STREAM).await.unwrap();
    let chosen = stream::Config { max_bytes: 1 << 30, ..events.cached_info().config.clone() };
    jetstream.update_stream(chosen).await.unwrap();
    events.delete_consumer(Consumer::RouterEvents.name()).await.unwrap();
    let (code, status) = world.get("/v1/status").await;
    let drift = status["drift"].to_string();
    assert_eq!(code, 200);
    assert!(drift.contains("stream KAIRO_EVENTS: max_bytes is 1073741824, not null"), "{drift}");
    assert!(drift.contains("consumer router-events of KAIRO_EVENTS: it is missing"), "{drift}");
}
