//! Attacks that have the server answer on subjects where the attacker may not publish, and their refusal.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use async_nats::{HeaderMap, jetstream};
use futures::future::try_join_all;
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, append::OutgoingEvent, data_keys::order_key},
    copies::COPY_OF,
    envelope::{Envelope, Origin},
    forget_order::ForgetOrder,
    ids,
    permissions::NatsIdentity,
    principal::Principal,
    record::UnreadableRecord,
    subjects::{
        AGENT_DECISION, DATA_KEYS_BUCKET, EVENTS_STREAM, KEYS_BUCKET, OWNERS_BUCKET, PROCESS_PROGRESS, Service as Core,
        TASK_TRIGGERED, TICKETS_BUCKET, TOOL_PROGRESS, USER_APPROVAL,
    },
};
use kairo_local::{NatsServer, Service};
use kairo_proto::v1::UserApproval;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use super::Stranger;
use crate::{
    forgetting::{self, AGENT},
    keys::{ADMIN, guarded},
    world::{DEADLINE, World, agent},
};

/// Services that may write something into the log, and nothing in a gateway's name.
const OTHERS: [Core; 4] = [Core::Router, Core::AgentRuntime, Core::ToolRunner, Core::ProcessSupervisor];
const PUSH: &str = "kairo.system.github.push";

/// A subject on which a service may publish anything.
fn own(service: Core) -> String {
    let route = match service {
        Core::Router => TASK_TRIGGERED,
        Core::AgentRuntime => AGENT_DECISION,
        Core::ToolRunner => TOOL_PROGRESS,
        _ => PROCESS_PROGRESS,
    };
    route.of_owner(&agent("x"))
}

/// Has the server copy a message from the log to a subject.
async fn copy(stranger: &Stranger, sequence: u64, to: &str) {
    let ask = format!("$JS.API.DIRECT.GET.{EVENTS_STREAM}");
    let wanted = json!({ "seq": sequence }).to_string();
    stranger.client.publish_with_reply(ask, to.to_owned(), wanted.into()).await.unwrap();
    stranger.client.flush().await.unwrap();
}

/// Waits until a bucket or the log has this many messages of a subject, and its newest one.
async fn stored(bus: &Bus, stream: &str, subject: &str, after: u64) -> u64 {
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(stream).await.unwrap();
    let look = async {
        loop {
            if let Ok(last) = stream.get_last_raw_message_by_subject(subject).await
                && last.sequence > after
            {
                return last.sequence;
            }
        }
    };
    timeout(DEADLINE, look).await.unwrap_or_else(|_| panic!("nothing was written to {subject}"))
}

/// The bytes of a message with these headers, to be sent by a client of nobody's code.
async fn say_raw(nats: &NatsServer, identity: NatsIdentity, subject: &str, headers: &[u8]) {
    let login = nats.login(identity);
    let address = login.url.trim_start_matches("nats://").to_owned();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let login = json!({ "user": login.user, "pass": login.password, "headers": true, "verbose": false });
    let length = headers.len();
    stream.write_all(format!("CONNECT {login}\r\nHPUB {subject} {length} {length}\r\n").as_bytes()).await.unwrap();
    stream.write_all(headers).await.unwrap();
    stream.write_all(b"\r\nPING\r\n").await.unwrap();
    stream.flush().await.unwrap();
    stream.readable().await.unwrap();
}

async fn publish(outside: &Stranger, body: &str) -> u64 {
    let jetstream = jetstream::new(outside.client.clone());
    let acknowledged = jetstream.publish(PUSH, body.to_owned().into()).await.unwrap();
    timeout(DEADLINE, acknowledged.into_future()).await.expect("no gateway answers").unwrap().sequence
}

/// The agent is there for this user, as the gateway shows it.
async fn answers(world: &World, user: &str, text: &str) {
    world.ask_as(user, AGENT, text).await;
    let shown = world.shown().await;
    assert!(shown.contains(&format!("You said: {text}")), "{shown}");
}

/// The publisher chooses where the server's acknowledgement goes.
#[tokio::test]
async fn no_acknowledgement_to_another_system_gets_into_a_stream() {
    let world = forgetting::wanted().start().await;
    world.define(AGENT).await;
    world.ask_as("ann", AGENT, "hello").await;
    let outside = Stranger::who_has_the_password_of(NatsIdentity::Outside, &world.nats).await;
    let targets = [
        ("KV_KAIRO_DATA_KEYS", "$KV.KAIRO_DATA_KEYS.user.ann.1".to_owned()),
        ("KV_KAIRO_KEYS", "$KV.KAIRO_KEYS.0123456789abcdef".to_owned()),
        ("KV_KAIRO_OWNERS", "$KV.KAIRO_OWNERS.router.3".to_owned()),
        ("KV_KAIRO_SNAPSHOTS", format!("$KV.KAIRO_SNAPSHOTS.agent.{AGENT}")),
        ("OBJ_KAIRO_OBJECTS", "$O.KAIRO_OBJECTS.M.mine".to_owned()),
        (EVENTS_STREAM, world.bus.stored_subject("kairo.user.ann.approval")),
        (EVENTS_STREAM, world.bus.stored_subject("kairo.agent.keeper.decision")),
    ];
    let jetstream = &world.bus.nats().unwrap().jetstream;
    let acknowledged = |bytes: &[u8]| bytes.starts_with(b"{\"stream\"");
    for (_, subject) in &targets {
        outside.client.publish_with_reply(PUSH, subject.clone(), "{}".into()).await.unwrap();
    }
    publish(&outside, "{}").await;
    // The entrance writes several at once, in any order.
    let written = async {
        while world.bus.read_page(&world.bus.stored_subject(PUSH), 0).await.unwrap().messages.len() < targets.len() + 1
        {
        }
    };
    timeout(DEADLINE, written).await.expect("they are written all the same");
    for (stream, subject) in targets {
        let stream = jetstream.get_stream_no_info(stream).await.unwrap();
        let last = stream.get_last_raw_message_by_subject(&subject).await;
        assert!(!last.is_ok_and(|last| acknowledged(&last.payload)), "{subject}");
    }
    answers(&world, "ann", "are you there").await;
    world.end().await;
}

/// The client library breaks a connection off on which it reads such a header: stored, it would do so to everybody for good.
#[tokio::test]
async fn a_header_that_nobody_can_read_gets_no_further_than_the_entrance() {
    let world = forgetting::wanted().start().await;
    world.define(AGENT).await;
    for headers in
        [&b"NATS/1.0\r\nno colon\r\n\r\n"[..], b"NATS/1.0\r\nA: \xff\xfe\r\n\r\n", b"NATS/1.0\r\nA b: x\r\n\r\n"]
    {
        say_raw(&world.nats, NatsIdentity::Outside, PUSH, headers).await;
    }
    let outside = Stranger::who_has_the_password_of(NatsIdentity::Outside, &world.nats).await;
    let entered = async {
        // Whatever is sent while the entrance connects anew is not acknowledged, as with a server that is away.
        loop {
            let jetstream = jetstream::new(outside.client.clone());
            let acknowledged = jetstream.publish(PUSH, "{}".into()).await.unwrap().into_future();
            if let Ok(Ok(ack)) = timeout(Duration::from_secs(1), acknowledged).await {
                return ack.sequence;
            }
        }
    };
    let sequence = timeout(DEADLINE, entered).await.expect("the entrance does not come back");
    let all = world.bus.read_page(&world.bus.stored_subject(PUSH), 0).await.unwrap().messages;
    assert_eq!(all.last().map(|raw| raw.sequence), Some(sequence));
    assert!(all.iter().all(|raw| &raw.payload[..] == b"{}"), "{all:?}");
    answers(&world, "ann", "are you there").await;
    world.end().await;
}

#[tokio::test]
async fn another_system_is_told_what_is_wrong_and_cannot_make_everybody_wait() {
    let world = forgetting::wanted().start().await;
    world.define(AGENT).await;
    let outside = Stranger::who_has_the_password_of(NatsIdentity::Outside, &world.nats).await;
    let asked = outside.client.request("kairo.system.GitHub.push", "{}".into()).await.unwrap();
    let refusal: Value = serde_json::from_slice(&asked.payload).unwrap();
    assert_eq!(refusal["error"]["code"], 400, "{refusal}");
    // In a service's name, and only for builds of another time.
    let mut headers = HeaderMap::new();
    headers.insert("ce-source", "/kairo/router");
    headers.insert("ce-specversion", "1.0");
    headers.insert("ce-type", format!("{}.v9", "kairo.system.push"));
    headers.insert("ce-id", ids::generate().to_string());
    headers.insert(kairo_core::vocabulary::READER_HEADER, "999");
    headers.insert("Nats-Stream", "X");
    let jetstream = jetstream::new(outside.client.clone());
    headers.insert("Nats-Expected-Last-Sequence", "999999");
    let mut plain = HeaderMap::new();
    for name in ["ce-source", "ce-specversion", "ce-type", "ce-id", kairo_core::vocabulary::READER_HEADER] {
        plain.insert(name, headers.get(name).unwrap().clone());
    }
    jetstream.publish_with_headers(PUSH, plain, "{}".into()).await.unwrap().await.unwrap();
    answers(&world, "ann", "are you there").await;
    // The read model has come behind it.
    world.projected().await;
    world.end().await;
}

/// An event, an API key, a ticket and an order that a service has published on a subject of its own, and the server has copied.
#[tokio::test]
async fn a_copy_of_the_server_is_nobodys_word() {
    let world = guarded().start().await;
    let bus = &world.bus;
    let approval = UserApproval { action_id: "a".to_owned(), user: "ann".to_owned(), ..Default::default() };
    let envelope = Envelope::from_outside(ids::generate(), Core::Gateway, Origin::User, Timestamp::now());
    let genuine = OutgoingEvent::new(&USER_APPROVAL, &agent("ann"), envelope, approval);
    let secret = format!("kairo_{}_{}", "a".repeat(16), "b".repeat(52));
    let hash = |text: &str| {
        use sha2::{Digest, Sha256};
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let key = json!({
        "key_id": "a".repeat(16), "name": "mine", "scopes": ["admin"], "hash": hash(&secret), "created": "2026-01-01T00:00:00Z",
    });
    let ticket = "a".repeat(52);
    let stands_for = json!({ "stands_for": { "key": "a".repeat(16) }, "expires_at": "2999-01-01T00:00:00Z" });
    let bodies: BTreeMap<&str, (HeaderMap, Vec<u8>, String, String)> = [
        (
            "approval",
            (
                genuine.headers(),
                genuine.body.encode(),
                EVENTS_STREAM.to_owned(),
                bus.stored_subject("kairo.user.ann.approval"),
            ),
        ),
        (
            "key",
            (
                HeaderMap::new(),
                key.to_string().into(),
                "KV_KAIRO_KEYS".to_owned(),
                format!("$KV.{KEYS_BUCKET}.{}", "a".repeat(16)),
            ),
        ),
        (
            "ticket",
            (
                HeaderMap::new(),
                stands_for.to_string().into(),
                "KV_KAIRO_TICKETS".to_owned(),
                format!("$KV.{TICKETS_BUCKET}.{}", hash(&ticket)),
            ),
        ),
    ]
    .into();
    for service in OTHERS {
        let stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(service), &world.nats).await;
        for (what, (headers, body, stream, target)) in &bodies {
            let subject = bus.stored_subject(&own(service));
            let jetstream = jetstream::new(stranger.client.clone());
            let said = jetstream.publish_with_headers(subject, headers.clone(), body.clone().into()).await;
            let sequence = said.unwrap().await.unwrap_or_else(|error| panic!("{service:?}, {what}: {error}")).sequence;
            let nats = bus.nats().unwrap().jetstream.get_stream_no_info(stream).await.unwrap();
            let before = nats.get_last_raw_message_by_subject(target).await.map_or(0, |last| last.sequence);
            copy(&stranger, sequence, target).await;
            if stream.as_str() != "KV_KAIRO_KEYS" {
                stored(bus, stream, target, before).await;
            }
        }
    }
    let copied = bus.last_message("kairo.user.ann.approval").await.unwrap().expect("the server asks now");
    assert_eq!(copied.header(COPY_OF), Some(EVENTS_STREAM));
    assert!(matches!(copied.read(1 << 20), Err(UnreadableRecord::Copy { .. })), "{copied:?}");
    // A tail reads it without any note of the server.
    let mut tail =
        bus.tail_subject("kairo.user.ann.approval", kairo_core::bus::port::TailStart::After(0)).await.unwrap();
    let tailed = timeout(DEADLINE, tail.next_batch()).await.unwrap().unwrap();
    assert!(tailed.iter().all(|raw| raw.header(COPY_OF) == Some(EVENTS_STREAM)), "{tailed:?}");
    let asked = |path: &str| world.http.get(world.url(path));
    assert_eq!(asked("/v1/keys").bearer_auth(&secret).send().await.unwrap().status(), 401);
    assert_eq!(asked(&format!("/v1/events/stream?ticket={ticket}")).send().await.unwrap().status(), 401);
    assert_eq!(asked("/v1/keys").bearer_auth(ADMIN).send().await.unwrap().status(), 200);
    assert!(bus.read_value(TICKETS_BUCKET, &hash(&ticket)).await.unwrap().is_none());
    // What no gateway has written among the keys is removed.
    let removed = async { while !bus.read_revisions(KEYS_BUCKET, &"a".repeat(16)).await.unwrap().is_empty() {} };
    timeout(DEADLINE, removed).await.expect("it stays there");
    world.end().await;
}

/// Revoked keys stay revoked and keys in force stay in force, whatever is written over them.
#[tokio::test]
async fn a_key_outlives_what_is_written_over_it() {
    let mut world = guarded().start().await;
    let make = json!({ "name": "shop", "scopes": ["read"] });
    let made = world.http.post(world.url("/v1/keys")).bearer_auth(ADMIN).json(&make).send().await.unwrap();
    let made: Value = made.json().await.unwrap();
    let (id, secret) = (made["key_id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned());
    let target = format!("$KV.{KEYS_BUCKET}.{id}");
    let stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(Core::Projector), &world.nats).await;
    world.stack.kill9(Service::Gateway, 0).await.unwrap();
    for _ in 0..20 {
        let ask = format!("$JS.API.STREAM.INFO.{EVENTS_STREAM}");
        stranger.client.publish_with_reply(ask, target.clone(), "".into()).await.unwrap();
    }
    stranger.client.flush().await.unwrap();
    let full = async { while world.bus.read_revisions(KEYS_BUCKET, &id).await.unwrap().len() < 8 {} };
    timeout(DEADLINE, full).await.expect("the server answers elsewhere");
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let status = |world: &World, secret: &str| world.http.get(world.url("/v1/agents")).bearer_auth(secret).send();
    assert_eq!(status(&world, &secret).await.unwrap().status(), 200);
    let revoke = world.http.delete(world.url(&format!("/v1/keys/{id}"))).bearer_auth(ADMIN).send().await.unwrap();
    assert_eq!(revoke.status(), 200);
    assert_eq!(status(&world, &secret).await.unwrap().status(), 401);
    world.end().await;
}

/// A damaged entry blocks no user for good.
#[tokio::test]
async fn whatever_is_written_over_a_data_key_its_user_is_read_and_goes_on() {
    let mut world = forgetting::wanted().start().await;
    world.define(AGENT).await;
    answers(&world, "ann", "my word is zebra").await;
    let jetstream = &world.bus.nats().unwrap().jetstream;
    let stream = jetstream.get_stream_no_info("KV_KAIRO_DATA_KEYS").await.unwrap();
    let first = stream.get_last_raw_message_by_subject("$KV.KAIRO_DATA_KEYS.user.ann.1").await.unwrap();
    let wrapped: Value = serde_json::from_slice(&first.payload).unwrap();
    let mut damaged = wrapped.clone();
    damaged["wrapped"]["key"] = json!("AAAA");
    let other = json!({ "wrapped": { "master": "00000000", "key": "AAAA" } });
    let projector = Stranger::who_has_the_password_of(NatsIdentity::Service(Core::Projector), &world.nats).await;
    let runtime = Stranger::who_has_the_password_of(NatsIdentity::Service(Core::AgentRuntime), &world.nats).await;
    let write = async |key: &str, value: &str| {
        let subject = format!("$KV.KAIRO_DATA_KEYS.{key}");
        // Refused where it would drop what stands there; then the attack has failed already.
        let written = jetstream::new(runtime.client.clone()).publish(subject, value.to_owned().into()).await.unwrap();
        drop(written.await);
    };
    // Of a user whom nobody knows yet, too.
    for user in ["ann", "bob"] {
        for generation in ["1", "2", "7", "4294967295"] {
            let key = format!("user.{user}.{generation}");
            for value in [&damaged.to_string(), "\"destroyed\"", &other.to_string(), "", "null"] {
                write(&key, value).await;
            }
            let ask = format!("$JS.API.STREAM.INFO.{EVENTS_STREAM}");
            let target = format!("$KV.KAIRO_DATA_KEYS.{key}");
            projector.client.publish_with_reply(ask, target, "".into()).await.unwrap();
        }
    }
    projector.client.flush().await.unwrap();
    // Whoever knew the keys before is gone.
    for service in [Service::AgentRuntime, Service::Router, Service::Projector, Service::Gateway] {
        world.stack.kill9(service, 0).await.unwrap();
        world.stack.restart(service, 0).await.unwrap();
    }
    answers(&world, "ann", "and now").await;
    answers(&world, "bob", "I am new").await;
    let shown = world.shown().await;
    for text in ["my word is zebra", "and now", "I am new"] {
        assert!(shown.contains(text), "{text} of {shown}");
    }
    // And both can be forgotten.
    for user in ["ann", "bob"] {
        let (status, answer) = world.post(&format!("/v1/users/{user}/forget"), &json!({})).await;
        assert_eq!(status, 202, "{answer}");
        world.forgotten(user).await;
    }
    let shown = world.shown().await;
    assert!(!shown.contains("zebra") && !shown.contains("I am new"), "{shown}");
    world.end().await;
}

/// Data keys are destroyed at a gateway's word alone.
#[tokio::test]
async fn an_order_to_forget_somebody_is_carried_out_only_if_a_gateway_has_signed_it() {
    let world = forgetting::wanted().start().await;
    world.define(AGENT).await;
    world.ask_as("ann", AGENT, "my word is zebra").await;
    let order =
        ForgetOrder { by_whom: Some(Principal::api_key("k1")), ..ForgetOrder::new(ids::generate(), agent("ann")) };
    let order = serde_json::to_vec(&order).unwrap();
    let subject = format!("$KV.{DATA_KEYS_BUCKET}.{}", order_key(&agent("ann")));
    for service in OTHERS {
        let mut stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(service), &world.nats).await;
        stranger.client.publish(subject.clone(), order.clone().into()).await.unwrap();
        stranger.was_refused(&format!("Publish to \"{subject}\"")).await;
        let jetstream = jetstream::new(stranger.client.clone());
        let said = jetstream.publish(world.bus.stored_subject(&own(service)), order.clone().into()).await.unwrap();
        copy(&stranger, said.await.unwrap().sequence, &subject).await;
    }
    // Not even where whoever may do everything writes it.
    world.bus.put_value(DATA_KEYS_BUCKET, &order_key(&agent("ann")), order.into()).await.unwrap();
    world.ask_as("bob", AGENT, "wait a little").await;
    let (status, told) = world.get("/v1/users/ann/forget").await;
    assert_eq!(status, 404, "{told}");
    assert!(world.shown().await.contains("my word is zebra"));
    // A genuine order is carried out all the same.
    let (status, answer) = world.post("/v1/users/ann/forget", &json!({})).await;
    assert_eq!(status, 202, "{answer}");
    world.forgotten("ann").await;
    assert!(!world.shown().await.contains("my word is zebra"));
    world.end().await;
}

/// A copied message cannot change the owner of a partition.
#[tokio::test]
async fn a_partition_stays_with_its_owner_whatever_is_copied_over_the_entry() {
    let world = forgetting::wanted().start().await;
    world.define(AGENT).await;
    world.ask_as("ann", AGENT, "hello").await;
    let stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(Core::Projector), &world.nats).await;
    let owned = world.bus.read_values(OWNERS_BUCKET, "router.*").await.unwrap();
    let ask = format!("$JS.API.STREAM.INFO.{EVENTS_STREAM}");
    for entry in &owned {
        let target = format!("$KV.{OWNERS_BUCKET}.{}", entry.key);
        stranger.client.publish_with_reply(ask.clone(), target, "".into()).await.unwrap();
    }
    stranger.client.flush().await.unwrap();
    for round in 0..3 {
        answers(&world, "ann", &format!("round {round}")).await;
    }
    world.end().await;
}

/// JetStream takes whatever a client has under way, which is 256 messages for this library.
#[tokio::test]
async fn a_burst_of_another_system_is_taken_in_whole() {
    let world = forgetting::wanted().start().await;
    let outside = Stranger::who_has_the_password_of(NatsIdentity::Outside, &world.nats).await;
    let jetstream = jetstream::new(outside.client.clone());
    let mut acknowledged = Vec::new();
    for number in 0..240 {
        acknowledged
            .push(jetstream.publish(PUSH, format!("{{\"number\":{number}}}").into()).await.unwrap().into_future());
    }
    let taken: BTreeSet<u64> =
        try_join_all(acknowledged).await.expect("all are taken").into_iter().map(|ack| ack.sequence).collect();
    assert_eq!(taken.len(), 240);
    assert_eq!(world.bus.read_page(&world.bus.stored_subject(PUSH), 0).await.unwrap().messages.len(), 240);
    world.end().await;
}
