//! Another master key: everything stays readable, and the one before is of no use any more.

use std::collections::BTreeSet;

use kairo_core::subjects::DATA_KEYS_BUCKET;
use kairo_local::Service;
use serde_json::{Value, json};

use crate::{
    command_line::{kairo, lines},
    exporting::SCENARIO,
    world::{Wanted, World},
};

const AGENT: &str = "keeper";
const SAID: &str = "zanzibar";

fn key(byte: &str) -> String {
    byte.repeat(32)
}

/// Every service with these keys.
async fn restart(world: &mut World, master: &str, old: &[String]) {
    configure(world, master, old);
    for service in Service::ALL {
        if service != Service::ModelSim {
            world.stack.restart(service, 0).await.unwrap();
        }
    }
}

fn configure(world: &mut World, master: &str, old: &[String]) {
    let common = world.stack.common();
    common.env("KAIRO_PRIVACY__MASTER_KEY", master).env("KAIRO_PRIVACY__OLD_MASTER_KEYS", json!(old).to_string());
}

/// Sends a message as this user and returns the conversation after the reply.
async fn says(world: &World, user: &str, text: &str) -> String {
    let sent = world.send_as(&json!({ "user": user, "agent": AGENT, "text": text })).await;
    world.reply(&sent).await;
    world.projected().await;
    let (status, conversation) = world.get(&format!("/v1/conversations/{AGENT}?user={user}&limit=500")).await;
    assert_eq!(status, 200, "{conversation}");
    conversation.to_string()
}

/// The data keys of users and agents, as they are kept: which, and with which bytes.
async fn kept(world: &World) -> Vec<(String, Value)> {
    let entries = world.bus.read_values(DATA_KEYS_BUCKET, ">").await.unwrap();
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let keys = entries.into_iter().map(|entry| (entry.key, read(&entry.value)));
    keys.filter(|(_, value)| value.get("wrapped").is_some()).collect()
}

#[tokio::test]
async fn a_master_key_is_replaced_while_everything_stays_readable_and_the_one_before_opens_nothing() {
    let (a, b, c) = (key("0a"), key("0b"), key("0c"));
    let wanted = Wanted::new(SCENARIO).env_of_all("KAIRO_PRIVACY__MASTER_KEY", a.clone());
    let mut world = wanted.env_of_all("KAIRO_PRIVACY__KEY_AGE_MS", "300").start().await;
    let keeper = json!({ "agent": AGENT, "prompt": "Be brief.", "inner_state": true });
    assert_eq!(world.post("/v1/agents", &keeper).await.0, 201);
    let said = says(&world, "ann", &format!("remember {SAID}")).await;
    assert!(said.contains(&format!("I know about {SAID}")), "{said}");
    world.settled().await;

    restart(&mut world, &b, std::slice::from_ref(&a)).await;
    assert!(says(&world, "ann", "hello").await.contains(SAID), "what was sealed under the key before is read");
    // Somebody whose data key is made under the new one.
    says(&world, "joe", "hello").await;
    let before = kept(&world).await;
    let digests: BTreeSet<_> = before.iter().map(|(_, kept)| kept["wrapped"]["master"].as_str().unwrap()).collect();
    assert_eq!(digests.len(), 2, "{before:?}");

    // One that does not know the key before refuses, and says no more of it than its digest.
    configure(&mut world, &b, &[]);
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let (status, refused) = world.post("/v1/privacy/rewrap", &json!({})).await;
    let old =
        before.iter().find(|(name, _)| name.starts_with("user.ann")).unwrap().1["wrapped"]["master"].as_str().unwrap();
    assert!(status == 409 && refused["detail"].as_str().unwrap().contains(old), "{refused}");
    assert!(!refused.to_string().contains(&a) && !refused.to_string().contains(&b), "{refused}");

    configure(&mut world, &b, std::slice::from_ref(&a));
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let replaced: Vec<_> = before.iter().filter(|(_, kept)| kept["wrapped"]["master"] == old).collect();
    let rotated = kairo(&world, &["privacy", "rotate", "--json"]).await;
    assert_eq!(rotated.status.code(), Some(0), "{rotated:?}");
    let counted: Value = serde_json::from_str(lines(&rotated)[0]).unwrap();
    assert_eq!(counted, json!({ "rewrapped": replaced.len() }));
    let after = kept(&world).await;
    assert!(after.len() == before.len() && after.iter().all(|(_, kept)| kept["wrapped"]["master"] != old), "{after:?}");
    for (name, kept) in replaced {
        let wrapped = kept["wrapped"]["key"].as_str().unwrap();
        assert!(!world.is_in_nats_files(wrapped), "{name} is still there as it was kept before");
    }
    for (name, kept) in &after {
        let wrapped = kept["wrapped"]["key"].as_str().unwrap();
        assert!(world.is_in_nats_files(wrapped), "{name} is nowhere: looking finds nothing at all");
    }
    let again = kairo(&world, &["privacy", "rotate"]).await;
    assert_eq!(lines(&again), ["all data keys are under the master key in force already"]);

    restart(&mut world, &b, &[]).await;
    let conversation = says(&world, "ann", "hello again").await;
    assert!(conversation.contains(SAID) && conversation.contains("You said: hello again"), "{conversation}");
    assert!(
        kairo(&world, &["export", "--user", "ann"]).await.stdout.windows(SAID.len()).any(|it| it == SAID.as_bytes())
    );

    // With the key before, or with any other, a service does not start.
    for wrong in [&a, &c] {
        configure(&mut world, wrong, &[]);
        let refused = world.stack.restart(Service::Router, 0).await.unwrap_err().to_string();
        assert!(refused.contains("is kept under another privacy.master_key, with the digest"), "{refused}");
        assert!(!refused.contains(wrong.as_str()) && !refused.contains(&b), "{refused}");
    }
    configure(&mut world, &b, &[]);
    world.stack.restart(Service::Router, 0).await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn where_nothing_is_sealed_there_is_nothing_to_rotate() {
    let world = Wanted::new(SCENARIO).start().await;
    let refused = kairo(&world, &["privacy", "rotate"]).await;
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && told.contains("privacy.master_key"), "{told}");
    world.end().await;
}
