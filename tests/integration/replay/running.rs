//! `kairo replay --samples` of an agent that runs: what models are asked shows what the gateway has, and nothing of what they answer is
//! executed or written.

use base64::{Engine, engine::general_purpose::STANDARD};
use kairo_local::{Service, StackOptions};
use serde_json::{Value, json};
use tokio::process::Command;

use super::AGENT;
use crate::world::{Wanted, World, scenario::USUAL};

/// With another prompt, what is asked for the time leaves a trace.
const NEW: &str = r#"
rules:
  - name: verse
    when: { system_contains: verse, user_contains: "time please" }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: sh, args: ["-c", "echo ran >> TRACE"] } }]
      - text: "It ran."
  - name: seen
    when: { has_image: true }
    reply: "An image."
"#;

/// `kairo replay` with its own way to the model; status, and the report.
async fn replay(world: &World, report: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut kairo = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
    let model = format!("{}/v1", world.stack.url(Service::ModelSim).unwrap());
    kairo.env("KAIRO_MODELS__HEAVY__BASE_URL", model).env("KAIRO_MODELS__HEAVY__PRICE", r#"{"input":1,"output":1}"#);
    kairo.args(["--url", &world.url(""), "replay"]).args(arguments).args([
        "--samples",
        "1",
        "--budget",
        "1",
        "--report",
        report,
    ]);
    let output = kairo.output().await.unwrap();
    let report = std::fs::read_to_string(report).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code(), serde_json::from_str(&report).unwrap())
}

#[tokio::test]
async fn a_running_agent_is_asked_for_and_nothing_of_it_is_executed_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let new = NEW.replace("TRACE", &path("trace"));
    let scenario = format!("{new}{}", USUAL.trim_start().strip_prefix("rules:\n").unwrap());
    let world = Wanted::new(&scenario).start().await;
    world.define(AGENT).await;
    world.ask(AGENT, "time please").await;
    let image = json!({ "media_type": "image/png", "data": STANDARD.encode(b"\x89PNG\r\n\x1a\nimage") });
    let sent = world.send_as(&json!({ "user": "ann", "agent": AGENT, "text": "look", "parts": [image] })).await;
    assert_eq!(world.reply(&sent).await, "An image.");
    world.settled().await;
    let (end, asked) = (world.end_of_log().await, world.model_requests().await.len());

    std::fs::write(path("verse.md"), "You answer in verse.").unwrap();
    let log = path("agent.log");
    let options = ["--agent", AGENT, "--prompt", &path("verse.md"), "--save", &log];
    let (code, report) = replay(&world, &path("report.json"), &options).await;
    let lanes = |report: &Value, decision: usize| report["decisions"][decision]["lanes"].clone();
    assert_eq!((code, &report["asked"]["calls"]), (Some(1), &report["asked"]["expected_calls"]), "{report:#}");
    let calls = usize::try_from(report["asked"]["calls"].as_u64().unwrap()).unwrap();
    assert_eq!((calls, world.model_requests().await.len()), (6, asked + 6), "three decisions in two lanes");
    let first = lanes(&report, 0);
    assert_eq!(first["candidate"]["samples"][0]["outcome"], "divergent", "{first:#}");
    assert_eq!(first["candidate"]["samples"][0]["actions"][0]["tool"], "process.run");
    assert_eq!(first["control"]["samples"][0]["outcome"], "same");
    assert_eq!(lanes(&report, 2)["verdict"], "same", "the image is shown: {report:#}");

    // From the file nobody has the image, and the model is told so.
    let (_, report) = replay(&world, &path("file.json"), &[&log, "--prompt", &path("verse.md")]).await;
    assert_eq!(lanes(&report, 2)["control"]["samples"][0]["outcome"], "reworded", "{report:#}");
    let told =
        world.model_requests().await.iter().filter(|it| it["body"].to_string().contains("no longer stored")).count();
    assert_eq!(told, 2, "in both lanes");

    world.settled().await;
    assert_eq!(world.end_of_log().await, end, "nothing is written");
    assert!(!folder.path().join("trace").exists(), "it was executed");
    world.end().await;
}
