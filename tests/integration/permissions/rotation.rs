//! Changing what a service logs in with, while it works.

use std::fs;

use kairo_core::{event_json::EventJson, permissions::NatsIdentity, subjects::Service as Core};
use kairo_local::Service;
use kairo_tests::login;
use nkeys::KeyPair;
use serde_json::json;
use tokio::sync::oneshot;

use crate::world::{Wanted, World, scenario::USUAL};

const ROUTER: NatsIdentity = NatsIdentity::Service(Core::Router);

/// Says one thing after the other until told to stop; how many were taken. That any is refused is a failure.
fn talk(world: &World) -> (oneshot::Sender<()>, tokio::task::JoinHandle<usize>) {
    let (stop, mut stopped) = oneshot::channel();
    let (http, url) = (world.http.clone(), world.url("/v1/messages"));
    let talking = tokio::spawn(async move {
        let mut taken = 0;
        while stopped.try_recv().is_err() {
            let message = json!({ "user": "ann", "agent": "default", "text": format!("message {taken}") });
            let answer = http.post(&url).json(&message).send().await.unwrap();
            assert_eq!(answer.status(), 202);
            taken += 1;
        }
        taken
    });
    (stop, talking)
}

#[tokio::test]
async fn a_password_is_replaced_by_an_nkey_while_messages_flow() {
    let mut world = Wanted::new(USUAL).replicas(Service::Router, 2).start().await;
    world.define("default").await;
    let (stop, talking) = talk(&world);
    // Both are listed for a while.
    let key = KeyPair::new_user();
    let seed = world.nats_folder().join("router.seed");
    fs::write(&seed, key.seed().unwrap()).unwrap();
    let mut users = world.nats.users().clone();
    users.allow_nkey(ROUTER, key.public_key());
    world.nats.reload(users.clone()).await.unwrap();
    // One replica after the other comes back with the new one.
    let settings = world.stack.service(Service::Router);
    settings.env("KAIRO_NATS__USER", "").env("KAIRO_NATS__PASSWORD", "");
    settings.env("KAIRO_NATS__NKEY", format!("file:{}", seed.display()));
    for replica in 0..2 {
        world.stack.restart(Service::Router, replica).await.unwrap();
    }
    // The old one is of no use any more.
    let old = world.nats.login(ROUTER);
    users.revoke_password(ROUTER);
    world.nats.reload(users).await.unwrap();
    assert!(login::options(&old).connect(&old.url).await.is_err(), "the old password still lets in");
    stop.send(()).unwrap();
    let taken = talking.await.unwrap();
    assert!(taken > 0);
    world.log.wait_for(taken, EventJson::is_final_reply).await;
    world.end().await;
}
