//! Questions while something runs.

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use kairo_tests::situations::{Speaker, seeds};
use serde_json::{Value, json};

use super::{kill_runtimes, rule, with_rules};
use crate::faults::audit;

/// Says how far it is, and ends when it is told to.
const PROGRAM: &str = r#"echo "::progress $2% $1"; while :; do sleep 0.05; done"#;

struct Job {
    agent: String,
    begin: String,
    progress: String,
    percent: u64,
    question: String,
    stop: String,
}

fn job(seed: u64, mut speaker: Speaker) -> Job {
    Job {
        agent: speaker.name(),
        begin: speaker.request(),
        progress: speaker.progress(),
        percent: 1 + seed % 98,
        question: speaker.status_question(),
        stop: speaker.request(),
    }
}

/// The model answers the question from what it is told to be in progress, and calls nothing for that.
fn rules(job: &Job) -> Vec<Value> {
    let Job { agent, begin, progress, percent, question, stop } = job;
    let spawn = json!({ "program": "job", "args": [progress, percent.to_string()] });
    let in_progress = r#""message":"(?<message>[^"]*)","percent":(?<percent>[0-9.]+)"#;
    let running = r#""process_id":"(?<id>[0-9a-f-]{36})""#;
    let canceled =
        json!([{ "tool_calls": [{ "tool": "process.cancel", "arguments": { "process_id": "{{ captures.id }}" } }] }]);
    vec![
        rule(
            format!("{agent}-begin"),
            json!({ "user_contains": begin }),
            json!([{ "tool_calls": [{ "tool": "process.spawn", "arguments": spawn }] }, { "text": "Begun." }]),
        ),
        rule(
            format!("{agent}-question"),
            json!({ "user_contains": question, "system_matches": in_progress }),
            json!([{ "text": "{{ captures.percent }} {{ captures.message }}" }]),
        ),
        rule(
            format!("{agent}-stop"),
            json!({ "user_contains": stop, "round": 0, "system_matches": running }),
            canceled,
        ),
        rule(
            format!("{agent}-stopped"),
            json!({ "user_contains": stop }),
            json!([{ "text": "never" }, { "text": "Stopped." }]),
        ),
    ]
}

#[tokio::test]
async fn a_status_question_in_any_language_is_answered_from_what_is_in_flight() {
    let jobs: Vec<Job> = seeds().flat_map(|seed| Speaker::all(seed).into_iter().map(move |it| job(seed, it))).collect();
    let rules: Vec<Value> = jobs.iter().flat_map(rules).collect();
    let programs = json!({ "job": { "path": "/bin/sh", "args": ["-c", PROGRAM, "job"] } });
    let wanted =
        with_rules(&rules).env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs.to_string());
    let mut world = wanted.start().await;
    let is_offered =
        |event: &EventJson| event.type_name == v1::ToolCatalogue::TYPE && event.text().contains("process.spawn");
    world.log.wait(is_offered).await;
    for job in &jobs {
        world.define(&job.agent).await;
        assert_eq!(world.ask(&job.agent, &job.begin).await, "Begun.");
        world.log.wait(|event| event.payload["message"] == job.progress.as_str()).await;
    }
    // Nothing of it is in a runtime's memory: those that answer have never seen it begin.
    kill_runtimes(&mut world).await;
    for job in &jobs {
        let sent = world.send(&job.agent, &job.question).await;
        assert_eq!(world.reply(&sent).await, format!("{} {}", job.percent, job.progress));
        let events = world.events_of(&sent).await;
        assert!(events.iter().all(|event| event.type_name != v1::ToolInvoke::TYPE), "{events:?}");
    }
    for job in &jobs {
        assert_eq!(world.ask(&job.agent, &job.stop).await, "Stopped.");
    }
    let ended = world.log.wait_for(jobs.len(), |event| event.type_name == v1::ProcessExited::TYPE).await;
    assert!(ended.iter().all(|event| event.payload["outcome"] == "canceled"), "{ended:?}");
    audit::passes(&world).await;
    world.end().await;
}
