//! Connections to nats-server that are encrypted, to a server that an authority of the test vouches for.

use std::path::{Path, PathBuf};

use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig},
    subjects::Service as Core,
};
use kairo_local::{NatsServer, Service, Stack, Tools};
use kairo_tests::login;

use crate::{
    certificates::{authority, of_server},
    world::agent,
};

async fn connect(nats: &NatsServer, authority: &Path) -> Bus {
    let config = NatsConfig { tls_ca: authority.display().to_string(), ..login::config(&nats.operator()) };
    Bus::connect(Core::Gateway, agent("encrypted"), &config, &BusConfig::default()).await.unwrap()
}

#[tokio::test]
async fn services_speak_to_a_server_that_their_authority_vouches_for_and_to_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let ours = authority(&at("ours.pem"));
    authority(&at("another.pem"));
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let mut options = tools.nats_in(at("nats")).unwrap();
    options.tls = Some(of_server(folder.path(), &ours));
    let nats = NatsServer::start(options).await.unwrap();
    assert!(nats.url().starts_with("tls://"));

    let deceived = connect(&nats, &at("another.pem")).await;
    assert!(deceived.provision().await.is_err() && !deceived.connection().up);

    let mut stack = Stack::of_this_build(at("logs")).unwrap();
    stack.connect(&nats.url(), nats.users());
    stack.common().env("KAIRO_NATS__TLS_CA", at("ours.pem").display().to_string());
    stack.provision().await.unwrap();
    stack.start(Service::Router).await.unwrap();
    let trusting = connect(&nats, &at("ours.pem")).await;
    trusting.find_log().await.unwrap();
    assert!(trusting.connection().up);
    stack.stop().await.unwrap();
}
