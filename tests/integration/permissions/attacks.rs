//! Attacks by someone who has one service's password, and their refusal.

use std::process::Command;

use async_nats::jetstream;
use kairo_core::{
    bus::{Bus, BusConfig},
    permissions::NatsIdentity,
    subjects::{EVENTS_STREAM, KEYS_BUCKET, Service as Core},
};
use kairo_local::Service;
use kairo_tests::login;
use serde_json::json;

use super::Stranger;
use crate::{
    bus::Server,
    world::scenario::USUAL,
    world::{DEADLINE, Wanted, agent},
};

/// A hash in the bucket of keys is a key. Whoever has it is an administrator.
#[tokio::test]
async fn a_hash_that_is_put_among_the_keys_is_no_key() {
    let world = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always").start().await;
    let (id, secret) = ("0123456789ab", "11".repeat(32));
    let forged = json!({ "key_id": id, "scopes": ["admin"], "hash": secret, "created": "2026-01-01T00:00:00Z" });
    let subject = format!("$KV.{KEYS_BUCKET}.{id}");
    for service in Core::ALL.into_iter().filter(|service| *service != Core::Gateway) {
        let mut stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(service), &world.nats).await;
        stranger.client.publish(subject.clone(), forged.to_string().into()).await.unwrap();
        stranger.was_refused(&format!("Publish to \"{subject}\"")).await;
    }
    let keys = world.bus.nats().unwrap().jetstream.get_key_value(KEYS_BUCKET).await.unwrap();
    assert!(keys.get(id).await.unwrap().is_none());
    world.end().await;
}

/// A decision is what lets a tool run, with whatever verdict it names.
#[tokio::test]
async fn a_decision_is_taken_from_agent_runtime_alone() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let subject = bus.stored_subject("kairo.agent.default.decision");
    for service in Core::ALL.into_iter().filter(|service| *service != Core::AgentRuntime) {
        let mut stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(service), &server.nats).await;
        stranger.is_refused(&subject).await;
    }
    let stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(Core::AgentRuntime), &server.nats).await;
    let written = jetstream::new(stranger.client).publish(subject, "".into()).await.unwrap().await.unwrap();
    assert_eq!(written.sequence, 1, "the only one that was stored");
}

/// A limit of permissions: nats-server sends its answer to any subject, without checking that the requester may publish
/// there. So a stored message can be put onto a subject of somebody else. Should this fail one day, the server has
/// become better, and docs/security.md can say so.
#[tokio::test]
async fn an_answer_of_the_server_still_goes_where_the_asker_may_not() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(Core::Projector), &server.nats).await;
    let subject = bus.stored_subject("kairo.agent.default.decision");
    let ask = format!("$JS.API.STREAM.INFO.{EVENTS_STREAM}");
    stranger.client.publish_with_reply(ask, subject.clone(), "".into()).await.unwrap();
    let stored = async {
        loop {
            if let Some(raw) = bus.last_message("kairo.agent.default.decision").await.unwrap() {
                return raw;
            }
        }
    };
    let stored = tokio::time::timeout(DEADLINE, stored).await.expect("the server asks now");
    assert!(stored.payload.starts_with(b"{\"type\":\"io.nats.jetstream.api"), "{stored:?}");
}

#[tokio::test]
async fn what_a_replica_may_not_is_counted_and_told() {
    let server = Server::start().await;
    server.bus().await;
    let nats = login::config(&server.nats.login(NatsIdentity::Service(Core::Router)));
    let router = Bus::connect(Core::Router, agent("router-1"), &nats, &BusConfig::default()).await.unwrap();
    router.find_log().await.unwrap();
    assert_eq!(router.violations().count, 0);
    router.send_live("kairo.user.ann.approval.3", "").await.unwrap();
    let counted = async {
        while router.violations().count == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, counted).await.expect("it was let through");
    assert!(router.violations().last.contains("kairo.user.ann.approval.3"));
}

#[tokio::test]
async fn a_violation_appears_in_the_status() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    // The operator takes away what agent-runtime says while a model writes, which it can do without.
    let config = world.nats_folder().join("nats.conf");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replacen("\"kairo.live.*.token\"", "\"kairo.live.*.nothing\"", 8)).unwrap();
    let pid = world.nats.process().pid().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let told = async {
        loop {
            world.ask("default", "the time please").await;
            let (_, status) = world.get("/v1/status").await;
            let replicas = status["services"].as_array().cloned().unwrap_or_default();
            let refused = replicas.into_iter().find(|replica| replica["violations"].as_u64() > Some(0));
            if let Some(refused) = refused.filter(|refused| refused["service"] == "agent-runtime") {
                return refused;
            }
        }
    };
    let refused = tokio::time::timeout(DEADLINE, told).await.expect("nothing of it in the status");
    assert!(refused["last_violation"].as_str().unwrap().contains("kairo.live.default.token"), "{refused}");
}
