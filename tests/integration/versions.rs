//! Builds of different versions on one log: what one of them does not understand it leaves to others, and nothing is
//! written that some would not understand.

use futures::StreamExt;
use jiff::Timestamp;
use kairo_agent_runtime::SNAPSHOT_FORMAT;
use kairo_core::{
    bus::{Bus, BusConfig},
    envelope::{Envelope, Origin},
    ids,
    ownership::checkpoint::Checkpoint,
    subjects::{
        AGENT_DECISION, AGENT_MESSAGE, Consumer, EPOCH, MEMBERS_BUCKET, OWNERS_BUCKET, SNAPSHOTS_BUCKET, STATUS_PING,
        Service as Core, TOOL_INVOKE,
    },
    vocabulary::{FIRST, READER, READER_HEADER},
};
use kairo_local::{Exit, LocalError, Login, Service};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentDecision, AgentMessage, DecidedEvent, Epoch, GivenUpCall, ReplicaRow, ToolCall,
        agent_action::Action, decided_event::Event,
    },
};
use kairo_tests::login;
use prost::Message as _;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

use crate::{
    command_line::{kairo, lines},
    world::{DEADLINE, Wanted, World, agent, raw::headers, scenario::USUAL},
};

/// A version of readers that nobody has.
const FAR: u32 = 99;
const PARKED: &str = "first";
const OTHER: &str = "second";

/// One partition, so that both agents are in it.
async fn start() -> World {
    let world = Wanted::new(USUAL).env_of_all("KAIRO_NATS__PARTITIONS", "1").start().await;
    world.define(PARKED).await;
    world.define(OTHER).await;
    replies(&world, PARKED).await;
    world
}

async fn replies(world: &World, agent: &str) {
    let reply = world.ask(agent, "time please").await;
    assert!(reply.starts_with("It is 2"), "{agent}: {reply}");
}

/// Writes what only a newer build could, in its own name.
async fn write_newer(world: &World, subject: &str, type_name: &str, reader: Option<u32>, body: Vec<u8>) -> u64 {
    let entering = Envelope::from_outside(ids::generate(), Core::AgentRuntime, Origin::Internal, Timestamp::now());
    let mut headers = headers(&Envelope { type_name: type_name.to_owned(), ..entering });
    if let Some(reader) = reader {
        headers.insert(READER_HEADER, reader.to_string());
    }
    world.publish(subject, headers, body).await
}

/// The agents that are parked, as the gateway says it.
async fn parked(world: &World) -> Vec<Value> {
    let (_, status) = world.get("/v1/status").await;
    let replicas = status["services"].as_array().cloned().unwrap_or_default();
    replicas.iter().flat_map(|replica| replica["parked"].as_array().cloned().unwrap_or_default()).collect()
}

/// Waits until this agent is parked, where it stopped understanding.
async fn is_parked(world: &World, agent: &str, sequence: u64) -> Value {
    let waiting = async {
        loop {
            let found = parked(world).await.into_iter().find(|it| it["agent"] == agent && it["sequence"] == sequence);
            if let Some(found) = found {
                return found;
            }
        }
    };
    timeout(DEADLINE, waiting).await.expect("the agent was never parked")
}

#[tokio::test]
async fn an_agent_whose_log_goes_on_with_something_newer_waits_and_its_neighbours_go_on() {
    let mut world = start().await;
    let decision = AgentDecision { reader: FAR, ..Default::default() };
    let subject = AGENT_DECISION.of_owner(&agent(PARKED));
    let at = write_newer(&world, &subject, AgentDecision::TYPE, None, Body::from(decision).encode()).await;
    let sent = world.send(PARKED, "time please").await;
    let found = is_parked(&world, PARKED, at).await;
    assert_eq!(found["reader"], FAR);
    replies(&world, OTHER).await;

    let status = kairo(&world, &["status"]).await;
    let said = format!("{PARKED} is parked at {at}");
    assert!(lines(&status).iter().any(|line| line.starts_with(&said) && line.contains("version 99")), "{status:?}");

    // Whoever comes next begins before it, and comes as far.
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    assert_eq!(is_parked(&world, PARKED, at).await["agent"], PARKED);
    replies(&world, OTHER).await;
    let decided = world.log.now(&world.bus).await.into_iter().filter(|event| event.correlation_id == sent.event_id);
    assert!(decided.into_iter().all(|event| !event.is_final_reply()), "it was decided on");
    assert_eq!(world.dead_letters_so_far().await, 0);
    world.stack.stop().await.unwrap();
}

#[tokio::test]
async fn a_partition_is_handed_over_to_whoever_understands_it_and_taken_back_when_nobody_is_left() {
    let world = start().await;
    // A subject and a type that are known to newer builds only.
    let at = write_newer(&world, "kairo.agent.first.dreamt", "kairo.agent.dreamt.v1", None, Vec::new()).await;
    let needs = is_parked(&world, PARKED, at).await["reader"].as_u64().unwrap();
    assert_eq!(needs, u64::from(READER + 1));

    // A newer replica comes, of which there is no more than what it announces.
    let announcing = async {
        for beat in 0_u64.. {
            let value = json!({ "beat": beat, "reader": needs }).to_string();
            world.bus.put_value(MEMBERS_BUCKET, "agent-runtime.newer", value.into()).await.unwrap();
            let owner = world.bus.read_value(OWNERS_BUCKET, "agent-runtime.0").await.unwrap().unwrap();
            let owner: Value = serde_json::from_slice(&owner.value).unwrap();
            if owner["owner"].is_null() {
                return owner;
            }
        }
        unreachable!("there are many numbers")
    };
    let given = timeout(DEADLINE, announcing).await.expect("the partition was never handed over");
    assert_eq!(given["reader"], needs);

    // It is gone again, and its expiry over.
    replies(&world, OTHER).await;
    is_parked(&world, PARKED, at).await;
    assert_eq!(world.dead_letters_so_far().await, 0);
}

#[tokio::test]
async fn an_action_that_is_not_understood_is_left_to_newer_replicas() {
    let world = Wanted::new(USUAL).start().await;
    // Nobody decides for this agent, so that only tool-runner is concerned.
    let call = ToolCall { tool: "tools.now".into(), arguments: "{}".into(), ..Default::default() };
    let unknown = DecidedEvent { event_id: ids::generate().to_string(), ..Default::default() };
    let known = DecidedEvent { event_id: ids::generate().to_string(), ..calling(call) };
    let decision = AgentDecision { events: vec![known, unknown], ..Default::default() };
    let subject = AGENT_DECISION.of_owner(&agent("nobody"));
    write_newer(&world, &subject, AgentDecision::TYPE, None, Body::from(decision).encode()).await;
    world.given_back(Consumer::ToolRunner).await;
    world.define("default").await;
    replies(&world, "default").await;
    assert_eq!(world.dead_letters_so_far().await, 0);
    let begun = TOOL_INVOKE.of_owner(&agent("nobody"));
    assert!(!world.log.now(&world.bus).await.iter().any(|event| event.subject == begun), "half of it was done");
}

fn calling(call: ToolCall) -> DecidedEvent {
    let action = AgentAction { action: Some(Action::ToolCall(call)) };
    DecidedEvent { event: Some(Event::Action(action)), ..Default::default() }
}

/// The epoch in force, as the gateway says it.
async fn epoch(world: &World) -> u64 {
    world.get("/v1/status").await.1["epoch"].as_u64().unwrap()
}

/// A replica of a build that knows nothing of epochs, as far as others see it.
async fn old_replica(login: &Login) -> tokio::task::JoinHandle<()> {
    let (nats, limits) = (login::config(login), BusConfig::default());
    let instance = agent("agent-runtime-old");
    let bus = Bus::connect(Core::AgentRuntime, instance.clone(), &nats, &limits).await.unwrap();
    let mut pings = bus.subscribe(STATUS_PING).await.unwrap();
    tokio::spawn(async move {
        while let Some(ping) = pings.next().await {
            let service = Core::AgentRuntime.name().to_owned();
            let status = ReplicaRow { service, instance: instance.to_string(), ..Default::default() };
            bus.send_live(&ping.reply.unwrap(), status.encode_to_vec()).await.unwrap();
        }
    })
}

#[tokio::test]
async fn the_epoch_is_raised_when_no_older_replica_is_left() {
    let world = Wanted::new(USUAL).env_of_all("KAIRO_NATS__EPOCH", FIRST.to_string()).start().await;
    world.define("default").await;
    assert_eq!(epoch(&world).await, u64::from(FIRST));
    let old = old_replica(&world.nats.operator()).await;
    let seen =
        async { while !lines(&kairo(&world, &["status"]).await).iter().any(|it| it.contains("agent-runtime-old")) {} };
    timeout(DEADLINE, seen).await.expect("the old replica never answered");
    let refused = kairo(&world, &["fleet", "promote"]).await;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("agent-runtime-old"), "{refused:?}");
    assert_eq!(epoch(&world).await, u64::from(FIRST));

    old.abort();
    let promoted = async { while !kairo(&world, &["fleet", "promote"]).await.status.success() {} };
    timeout(DEADLINE, promoted).await.expect("it was never promoted");
    assert_eq!(epoch(&world).await, u64::from(READER));
    let again = kairo(&world, &["fleet", "promote"]).await;
    assert_eq!(lines(&again), [format!("epoch {READER} is in force already")]);
    replies(&world, "default").await;
    world.end().await;
}

#[tokio::test]
async fn a_promotion_that_is_held_waits_until_it_is_released() {
    let world = Wanted::new(USUAL).env_of_all("KAIRO_NATS__EPOCH", FIRST.to_string()).start().await;
    let held = kairo(&world, &["fleet", "hold"]).await;
    assert!(held.status.success() && lines(&held)[0].contains("keeps the epoch from being raised"), "{held:?}");
    // Whoever says so again keeps what there is.
    assert_eq!(lines(&kairo(&world, &["fleet", "hold"]).await), lines(&held));

    let refused = kairo(&world, &["fleet", "promote"]).await;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("kairo fleet release"), "{why}");
    assert_eq!(epoch(&world).await, u64::from(FIRST));
    let shown = kairo(&world, &["fleet"]).await;
    let shown = lines(&shown);
    let raises = format!("a promotion raises it to {READER}:");
    for part in [raises.as_str(), "  7  decisions carry digests", lines(&held)[0]] {
        assert!(shown.iter().any(|line| line.starts_with(part)), "{part:?} is not in {shown:#?}");
    }

    assert!(lines(&kairo(&world, &["fleet", "release"]).await)[0].starts_with("released: "));
    assert!(kairo(&world, &["fleet", "promote"]).await.status.success());
    assert_eq!(epoch(&world).await, u64::from(READER));
    world.end().await;
}

#[tokio::test]
async fn after_a_promotion_a_build_that_reads_less_refuses_to_start_and_projects_nothing() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    replies(&world, "default").await;
    world.projected().await;
    // As a newer gateway would.
    let next = READER + 1;
    let subject = EPOCH.of_owner(&agent(Core::Gateway.name()));
    let raised = Body::from(Epoch { epoch: next, ..Default::default() });
    let entering = Envelope::from_outside(ids::generate(), Core::Gateway, Origin::System, Timestamp::now());
    let envelope = Envelope { type_name: Epoch::TYPE.to_owned(), ..entering };
    let at = world.publish(&subject, headers(&envelope), raised.encode()).await;

    // The one that was there already has come that far, and stops before it.
    let interrupted = async {
        loop {
            let (_, status) = world.get("/v1/status").await;
            let services = status["services"].as_array().cloned().unwrap_or_default();
            if services.iter().any(|replica| replica["service"] == "projector" && replica["ready"] == false) {
                return;
            }
        }
    };
    timeout(DEADLINE, interrupted).await.expect("projector goes on");
    let mut postgres = PgConnection::connect(&world.database.url).await.unwrap();
    let position = sqlx::query_scalar::<_, i64>("SELECT max(sequence) FROM positions").fetch_one(&mut postgres).await;
    let position = u64::try_from(position.unwrap()).unwrap();
    assert!(position < at, "{position} is not before {at}");

    for service in [
        Service::Router,
        Service::AgentRuntime,
        Service::ToolRunner,
        Service::ProcessSupervisor,
        Service::Gateway,
        Service::Projector,
    ] {
        let refused = world.stack.restart(service, 0).await.unwrap_err();
        let LocalError::Exited { exit: Exit::Code(1), tail, .. } = &refused else { panic!("{refused:?}") };
        let why = format!("reads messages up to epoch {READER}, and the log is in epoch {next}");
        assert!(tail.contains(&why), "{}: {tail}", service.binary());
    }
    assert_eq!(world.dead_letters_so_far().await, 0);
    world.stack.stop().await.unwrap();
}

#[tokio::test]
async fn a_message_of_a_newer_version_of_its_type_is_waited_with_and_no_dead_letter() {
    let world = start().await;
    let message = Body::from(AgentMessage { text: "time please".into(), ..Default::default() }).encode();
    let subject = AGENT_MESSAGE.of_owner(&agent(PARKED));
    let newer = AgentMessage::TYPE.replace("v1", "v2");
    let at = write_newer(&world, &subject, &newer, None, message).await;
    assert_eq!(is_parked(&world, PARKED, at).await["reader"], READER + 1);
    replies(&world, OTHER).await;
    assert_eq!(world.dead_letters_so_far().await, 0);
}

#[tokio::test]
async fn a_new_log_begins_in_the_epoch_of_its_build() {
    let world = Wanted::new(USUAL).start().await;
    assert_eq!(epoch(&world).await, u64::from(READER));
    world.end().await;
}

#[tokio::test]
async fn what_a_checkpoint_says_of_a_log_that_was_restored_is_not_believed() {
    let mut world = start().await;
    world.settled().await;
    world.stack.stop_one(Service::AgentRuntime, 0).await.unwrap();
    let (end, log) = (world.end_of_log().await, world.bus.log_identity().unwrap().id);
    let beyond = Checkpoint { log, through: end + 1_000, busy: Vec::new() };
    let key = format!("checkpoint.agent-runtime.0.{}", SNAPSHOT_FORMAT.to_key());
    let value = serde_json::to_vec(&beyond).unwrap();
    world.bus.put_value(SNAPSHOTS_BUCKET, &key, value.into()).await.unwrap();
    world.stack.start(Service::AgentRuntime).await.unwrap();
    replies(&world, PARKED).await;
    world.end().await;
}

/// Calls that were given up count towards usage once a decision records them.
#[tokio::test]
async fn usage_counts_calls_that_were_given_up() {
    let world = Wanted::new(USUAL).start().await;
    let given_up = GivenUpCall {
        tier: "heavy".into(),
        model: "dear".into(),
        input_tokens: 70,
        output_tokens: 7,
        reason: "unused".into(),
        ..Default::default()
    };
    let decision = AgentDecision { given_up: vec![given_up], reader: READER, ..Default::default() };
    let subject = AGENT_DECISION.of_owner(&agent("nobody"));
    write_newer(&world, &subject, AgentDecision::TYPE, Some(READER), Body::from(decision).encode()).await;
    world.projected().await;
    let (_, usage) = world.get("/v1/usage?by=model&model=dear").await;
    assert_eq!((&usage["total"]["input_tokens"], &usage["total"]["output_tokens"]), (&json!(70), &json!(7)), "{usage}");
}
