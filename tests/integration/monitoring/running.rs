//! A system at work, as Prometheus sees it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_core::{
    envelope::{Envelope, Origin},
    ids,
    metrics::table::{Metric, TABLE},
    subjects::{AGENT_DECISION, AGENT_MESSAGE, EVENTS_STREAM, Service as Core},
};
use kairo_local::Service;
use kairo_proto::{
    Body,
    v1::{AgentDecision, TaskDue, TaskFired},
};
use serde_json::json;

use super::{
    INTERVAL, alerts, program,
    prometheus::{Prometheus, services},
    queries,
    scrape::{Family, scrape, sum},
};
use crate::world::{DEADLINE, Wanted, World, agent, raw::headers};

/// "run it" is refused once, then calls a tool and a process; "remind me" sets a task; of "first" there is no end; "with consent" calls
/// a tool that a human must agree to.
const SCENARIO: &str = r#"
rules:
  - name: away
    when: { user_contains: "run it" }
    times: 1
    reply: { error: { status: 503, message: away } }
  - name: run
    when: { user_contains: "run it" }
    turn:
      - tool_calls:
          - { tool: process.run, arguments: { program: echo, args: [hello] } }
          - { tool: tools.now, arguments: {} }
      - text: "done"
  - name: never-there
    when: { user_contains: "be away" }
    reply: { error: { status: 503, message: away } }
  - name: remind
    when: { user_contains: "remind me" }
    turn:
      - tool_calls:
          - tool: task.schedule
            arguments: { type: delay, delay: "1s", action: [{ event: user.notify, params: { message: "now" } }] }
      - text: "I will"
  - name: consent
    when: { user_contains: "with consent" }
    turn:
      - tool_calls: [{ tool: tools.date_calc, arguments: { from: "2026-03-01", add: "3 days" } }]
      - text: "asked"
  - name: never
    when: { user_contains: first }
    reply: { text: "only the first", delay_ms: 600000 }
  - name: both
    when: {}
    reply: { text: "both", usage: { prompt_tokens: 1000, completion_tokens: 10 } }
"#;

/// The panels without data while all is well.
const WITHOUT_DATA: [&str; 2] = ["log: Failures a second", "models-and-tools: Failed calls of tools a second"];
/// The limit of the log, in bytes, unless its stream sets a smaller one.
const ROOM: u64 = 1_000_000_000_000;

async fn start() -> World {
    let price = json!({ "input": 1, "output": 2 }).to_string();
    let wanted = Wanted::new(SCENARIO)
        .env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__PRICE", price)
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__TOOLS", json!({ "workers": [{ "name": "bank" }] }).to_string())
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__WORKER_LIFECYCLE__START_WAIT_MS", "10")
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", json!(["tools.date_calc"]).to_string())
        .env(Service::Gateway, "KAIRO_GATEWAY__METRICS_INTERVAL_MS", "100")
        .env(Service::Gateway, "KAIRO_GATEWAY__LOG_LIMIT_BYTES", ROOM.to_string());
    let world = wanted.start().await;
    let restarting = json!({ "agent": "restarts", "prompt": "Be brief.", "interjection": "restart" });
    assert_eq!(world.post("/v1/agents", &restarting).await.0, 201);
    world.define("default").await;
    world
}

/// A turn with a tool and a process, and a model that is away at first; a task that comes due; a call that is given up.
async fn work(world: &World) {
    assert_eq!(world.ask("default", "run it").await, "done");
    world.ask("default", "remind me").await;
    world.log.wait(|event| event.type_name == TaskFired::TYPE).await;
    world.send("restarts", "first").await;
    let asked =
        async { while !world.model_requests().await.iter().any(|asked| asked.to_string().contains("first")) {} };
    tokio::time::timeout(DEADLINE, asked).await.expect("the model was never asked");
    let second = world.send("restarts", "second").await;
    assert_eq!(world.reply(&second).await, "both");
    world.settled().await;
    world.projected().await;
}

fn of(service: Service) -> Core {
    let core = Core::ALL.into_iter().find(|core| service.binary().ends_with(core.name()));
    core.unwrap()
}

/// Decisions in the log.
async fn decisions(world: &World) -> f64 {
    let log = world.raw_log().await;
    log.iter().filter(|raw| raw.subject.ends_with(".decision")).count() as f64
}

/// The metrics of a service, once all that happened is counted: what is in the log is counted a moment later.
async fn scraped(world: &World, service: Service) -> Vec<Family> {
    let (last, count) = match service {
        Service::AgentRuntime => ("kairo_agent_decision_duration_seconds_count", decisions(world).await),
        Service::ToolRunner => ("kairo_tool_call_duration_seconds_count", 2.0),
        Service::ProcessSupervisor => ("kairo_processes_ended_total", 1.0),
        Service::Projector => ("kairo_projector_messages_total", world.raw_log().await.len() as f64),
        Service::Gateway => ("kairo_log_messages_total", world.end_of_log().await as f64),
        Service::Router | Service::ModelSim => ("kairo_service_ready", 1.0),
    };
    let counted = async {
        loop {
            let families = scrape(&world.http, &world.stack.replicas(service)[0]).await;
            if sum(&families, last, &[]) >= count {
                return families;
            }
        }
    };
    tokio::time::timeout(DEADLINE, counted)
        .await
        .unwrap_or_else(|_| panic!("{last} of {service:?} never came to {count}"))
}

/// Everything that is served is what the table says, and everything that the table says is served.
fn is_as_told(service: Service, families: &[Family]) {
    let told: Vec<&Metric> = TABLE.iter().copied().filter(|metric| metric.services.contains(&of(service))).collect();
    for family in families.iter().filter(|family| family.name != "target") {
        let metric = told.iter().find(|metric| metric.family_name() == family.name);
        let metric = metric.unwrap_or_else(|| panic!("{service:?} serves {}, which is told nowhere", family.name));
        assert_eq!(
            (family.kind.as_str(), family.says.as_str()),
            (metric.kind.openmetrics_type(), metric.says),
            "{}",
            family.name
        );
        assert_eq!(family.unit, metric.unit.suffix().unwrap_or_default(), "{}", family.name);
        let labels: BTreeSet<String> = metric.exposed_labels().into_iter().chain(["le".to_owned()]).collect();
        for sample in &family.samples {
            assert!(sample.labels.keys().all(|label| labels.contains(label)), "{sample:?}");
            assert!(!sample.labels.contains_key("gen_ai_agent_id"), "nobody asked for agents: {sample:?}");
        }
    }
    let served: BTreeSet<&str> = families.iter().map(|family| family.name.as_str()).collect();
    let missing: Vec<&str> = told
        .iter()
        .filter(|metric| !served.contains(metric.family_name().as_str()))
        .map(|metric| metric.name)
        .collect();
    assert!(missing.is_empty(), "{service:?} does not serve {missing:?}");
}

#[tokio::test]
async fn every_service_serves_its_metrics_and_what_happens_moves_them() {
    let world = start().await;
    work(&world).await;
    for service in services() {
        let families = scraped(&world, service).await;
        is_as_told(service, &families);
        let sum = |name: &str, labels: &[(&str, &str)]| sum(&families, name, labels);
        assert_eq!((sum("kairo_service_ready", &[]), sum("kairo_nats_connected", &[])), (1.0, 1.0), "{service:?}");
        assert_eq!((sum("kairo_log_stalled", &[]), sum("kairo_dead_letters_written_total", &[])), (0.0, 0.0));
        match service {
            Service::AgentRuntime => {
                assert_eq!(sum("kairo_partitions_owned", &[]), 16.0);
                assert_eq!(sum("kairo_model_retries_total", &[("kairo_tier", "heavy")]), 1.0);
                assert_eq!(sum("kairo_model_abandoned_total", &[("kairo_reason", "interrupted")]), 1.0);
                assert_eq!(sum("kairo_agent_wakeups_total", &[("kairo_input", TaskDue::TYPE)]), 1.0);
                let calls = "gen_ai_client_operation_duration_seconds_count";
                assert_eq!(sum(calls, &[("error_type", "model_overloaded")]), 1.0);
                assert!(sum(calls, &[("error_type", ""), ("gen_ai_request_model", "simulator")]) >= 5.0);
                let input = sum("gen_ai_client_token_usage_sum", &[("gen_ai_token_type", "input")]);
                let output = sum("gen_ai_client_token_usage_sum", &[("gen_ai_token_type", "output")]);
                assert!(input >= 1000.0 && output >= 10.0, "{input} {output}");
                let cost = sum("kairo_model_cost_total", &[]);
                assert!((cost - (input + 2.0 * output) / 1e6).abs() < 1e-9, "{cost} for {input} and {output}");
                let foreground = [("kairo_lane", "foreground")];
                let counted = sum("kairo_agent_decision_duration_seconds_count", &foreground);
                assert_eq!(counted, decisions(&world).await, "each is counted once");
                assert!(sum("kairo_agent_first_words_duration_seconds_count", &[]) >= 2.0);
                assert!(sum("kairo_agents_memory_bytes", &[]) > 0.0);
                assert_eq!(sum("kairo_model_in_flight", &[]), 0.0);
            }
            Service::Router => {
                assert_eq!(sum("kairo_partitions_owned", &[]), 16.0);
            }
            Service::ToolRunner => {
                let calls = "kairo_tool_call_duration_seconds_count";
                assert_eq!(sum(calls, &[("gen_ai_tool_name", "tools.now"), ("error_type", "")]), 1.0);
                assert_eq!(sum(calls, &[("gen_ai_tool_name", "process.run")]), 1.0);
                let processed = [("messaging_consumer_group_name", "tool-runner")];
                assert!(sum("messaging_process_duration_seconds_count", &processed) >= 1.0);
                assert_eq!(
                    (sum("kairo_tool_in_flight", &[]), sum("kairo_tool_effects_in_doubt_total", &[])),
                    (0.0, 0.0)
                );
            }
            Service::ProcessSupervisor => {
                assert_eq!(sum("kairo_processes_ended_total", &[("kairo_outcome", "exited")]), 1.0);
                assert_eq!(sum("kairo_processes_running", &[]), 0.0);
            }
            Service::Projector => {
                let projected = sum("kairo_projector_messages_total", &[]);
                assert!(projected >= world.raw_log().await.len() as f64, "{projected}");
            }
            Service::Gateway => {
                let requests = [("http_route", "/v1/messages"), ("http_request_method", "POST")];
                assert_eq!(sum("http_server_request_duration_seconds_count", &requests), 4.0);
                assert_eq!(sum("kairo_log_limit_bytes", &[]), ROOM as f64);
                assert!(sum("kairo_log_size_bytes", &[]) > 0.0 && sum("kairo_log_messages_total", &[]) > 0.0);
            }
            Service::ModelSim => {}
        }
    }
    // They are served to whoever may probe, and not where strangers come.
    let at_the_door = world.http.get(world.url("/metrics")).send().await.unwrap();
    assert_eq!(at_the_door.status(), 404);
    world.end().await;
}

/// The expression of an alert.
fn expression(name: &str) -> String {
    let alert = alerts().into_iter().find(|alert| alert["alert"] == name).unwrap_or_else(|| panic!("no alert {name}"));
    alert["expr"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn dashboards_show_a_running_system_and_faults_raise_alerts() {
    let Some(program) = program("KAIRO_PROMETHEUS") else { return };
    let mut world = start().await;
    let mut prometheus = Prometheus::start(&program, &world).await;
    work(&world).await;
    for asked in queries() {
        let query = asked.query.replace(INTERVAL, "[1m]");
        let is_alert = alerts().iter().any(|alert| alert["alert"] == asked.by.as_str());
        if is_alert || WITHOUT_DATA.contains(&asked.by.as_str()) {
            prometheus.ask(&query).await;
        } else {
            prometheus.wait_for(&query).await;
        }
    }
    // The bounds that objectives are set at are bounds of buckets.
    for bucket in [
        r#"kairo_agent_decision_duration_seconds_bucket{kairo_lane="foreground", le=~"60(.0)?"}"#,
        r#"kairo_agent_first_words_duration_seconds_bucket{le=~"5(.0)?"}"#,
        r#"http_server_request_duration_seconds_bucket{http_route=~"/v1/(messages|commands)", le="0.5"}"#,
    ] {
        assert!(
            alerts()
                .iter()
                .any(|alert| alert["expr"].as_str().unwrap().contains(&bucket[bucket.find("le=").unwrap()..]))
        );
        prometheus.wait_for(bucket).await;
    }
    for alert in [
        "KairoDeadLetters",
        "KairoAgentsParked",
        "KairoLogFilling",
        "KairoConsentWaiting",
        "KairoPartitionsUnowned",
        "KairoDown",
        "KairoServiceGone",
        "KairoNatsDisconnected",
    ] {
        assert_eq!(prometheus.ask(&expression(alert)).await.len(), 0, "{alert}");
    }
    raise(&mut world, &mut prometheus).await;
    world.stack.stop().await.unwrap();
}

/// Waits until an alert finds its fault.
async fn fires(prometheus: &Prometheus, alert: &str) {
    prometheus.wait_for(&expression(alert)).await;
}

/// Brings about one fault after another, until its alert finds it.
async fn raise(world: &mut World, prometheus: &mut Prometheus) {
    // A worker of the configuration that never came.
    fires(prometheus, "KairoToolServerDown").await;
    // A call that waits for somebody's consent.
    world.send("default", "with consent").await;
    let waits = expression("KairoConsentWaiting").replace("> 3600", "> 0");
    prometheus.wait_for(&waits).await;
    // A model that stays away.
    world.send("default", "be away").await;
    fires(prometheus, "KairoModelErrors").await;
    let undecided = expression("KairoDecisionStuck").replace("> 900", "> 1");
    prometheus.wait_for(&undecided).await;
    // What nobody can read.
    world.publish(&AGENT_MESSAGE.of_owner(&agent("default")), Default::default(), "?").await;
    fires(prometheus, "KairoDeadLetters").await;
    // What only a newer build could read.
    let newer = Body::from(AgentDecision { reader: 99, ..Default::default() });
    let envelope = Envelope::from_outside(ids::generate(), Core::AgentRuntime, Origin::Internal, Timestamp::now());
    let envelope = Envelope { type_name: AgentDecision::TYPE.to_owned(), ..envelope };
    world.publish(&AGENT_DECISION.of_owner(&agent("restarts")), headers(&envelope), newer.encode()).await;
    fires(prometheus, "KairoAgentsParked").await;
    // A log that is given less room.
    let jetstream = &world.bus.nats().unwrap().jetstream;
    let info = jetstream.get_stream(EVENTS_STREAM).await.unwrap().get_info().await.unwrap();
    let room = i64::try_from(info.state.bytes * 110 / 100).unwrap();
    let config = async_nats::jetstream::stream::Config { max_bytes: room, ..info.config };
    jetstream.update_stream(config).await.unwrap();
    fires(prometheus, "KairoLogFilling").await;
    fires(prometheus, "KairoLogAlmostFull").await;
    // A read model that nobody writes. Its alert waits until five minutes have passed without progress.
    world.stack.kill9(Service::Projector, 0).await.unwrap();
    world.send("default", "the read model does not have this").await;
    let stopped = expression("KairoProjectorStopped").replace("[5m]", "[5s]");
    prometheus.wait_for(&stopped).await;
    // Partitions that nobody owns.
    world.stack.kill9(Service::Router, 0).await.unwrap();
    fires(prometheus, "KairoPartitionsUnowned").await;
    // A replica that is killed, a service that is gone altogether, and a server.
    world.stack.kill9(Service::ProcessSupervisor, 0).await.unwrap();
    fires(prometheus, "KairoDown").await;
    prometheus.forget(Service::ProcessSupervisor).await;
    fires(prometheus, "KairoServiceGone").await;
    world.nats.kill9().await.unwrap();
    fires(prometheus, "KairoNatsDisconnected").await;
    fires(prometheus, "KairoNotReady").await;
    fires(prometheus, "KairoLogUnseen").await;
}
