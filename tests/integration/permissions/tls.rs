//! Connections to nats-server that are encrypted, to a server that an authority of the test vouches for; and between servers.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig},
    subjects::Service as Core,
};
use kairo_local::{ClusterMember, Login, NatsServer, NatsUsers, Service, Stack, TlsFiles, Tools, free_port};
use kairo_tests::{certificates::Authority, login};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::NOW_AND_THEN;
use crate::world::{DEADLINE, agent};

/// A server, and one who does not vouch for it, in the same folder.
async fn encrypted(folder: &Path) -> (NatsServer, Authority) {
    let ours = Authority::create(folder.join("ours.pem")).unwrap();
    let another = Authority::create(folder.join("another.pem")).unwrap();
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let mut options = tools.nats_in(folder.join("nats")).unwrap();
    options.tls = Some(ours.server(folder).unwrap());
    let nats = NatsServer::start(options).await.unwrap();
    assert!(nats.url().starts_with("tls://"));
    (nats, another)
}

async fn connect(config: &NatsConfig) -> Bus {
    Bus::connect(Core::Gateway, agent("encrypted"), config, &BusConfig::default()).await.unwrap()
}

#[tokio::test]
async fn services_speak_to_a_server_that_their_authority_vouches_for_and_to_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let (nats, _another) = encrypted(folder.path()).await;
    let trusting = login::config(&nats.operator());
    let deceived = NatsConfig { tls_ca: at("another.pem").display().to_string(), ..trusting.clone() };
    let deceived = connect(&deceived).await;
    assert!(deceived.provision().await.is_err() && !deceived.connection().up);

    let mut stack = Stack::of_this_build(at("logs")).unwrap();
    stack.use_nats(&nats.url(), nats.users());
    stack.trust(&at("ours.pem"));
    stack.provision().await.unwrap();
    stack.start(Service::Router).await.unwrap();
    let trusting = connect(&trusting).await;
    trusting.find_log().await.unwrap();
    assert!(trusting.connection().up);
    stack.stop().await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_encrypt_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (nats, _another) = encrypted(folder.path()).await;
    let Login { url, user, password, .. } = nats.operator();
    let mut server = BufReader::new(TcpStream::connect(url.trim_start_matches("tls://")).await.unwrap());
    let mut told = String::new();
    server.read_line(&mut told).await.unwrap();
    let told: Value = serde_json::from_str(told.strip_prefix("INFO ").unwrap()).unwrap();
    assert_eq!(told["tls_required"], true);
    // With what would let it in.
    let connect = json!({ "verbose": false, "user": user, "pass": password });
    server.write_all(format!("CONNECT {connect}\r\nPING\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The connection may well break: what is not to be read is an answer.
    drop(timeout(DEADLINE, server.read_to_end(&mut answer)).await.expect("the server does not hang up"));
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("PONG"), "{answer}");
}

#[tokio::test]
async fn a_service_that_is_told_nothing_of_encryption_does_not_reach_a_server_that_wants_it() {
    let folder = tempfile::tempdir().unwrap();
    let (nats, _another) = encrypted(folder.path()).await;
    let trusting = login::config(&nats.operator());
    let plain = NatsConfig { url: nats.url().replace("tls://", "nats://"), tls_ca: String::new(), ..trusting.clone() };
    let plain = connect(&plain).await;
    assert!(plain.provision().await.is_err() && !plain.connection().up);
    // With the authority it does.
    connect(&trusting).await.provision().await.unwrap();
}

/// Servers that make one cluster, each with what it proves with who it is. They reach out to the first of them.
async fn cluster(folder: &Path, members: &[(&str, &TlsFiles)]) -> Vec<NatsServer> {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let users = NatsUsers::in_dir(folder.join("users")).unwrap();
    let (mut servers, mut first) = (Vec::new(), None);
    for (name, files) in members {
        let port = free_port(None).unwrap();
        let mut options = tools.nats_in(folder.join(name)).unwrap();
        options.users = Some(users.clone());
        options.monitor = true;
        options.tls = Some((*files).clone());
        let routes = vec![*first.get_or_insert(port)];
        options.cluster = Some(ClusterMember { name: (*name).to_owned(), port, routes, is_relayed: false });
        servers.push(NatsServer::start(options).await.unwrap());
    }
    servers
}

/// The names of the servers that one is connected with.
async fn reached_by(server: &NatsServer) -> Vec<String> {
    let page = format!("{}/routez", server.monitor_url().unwrap());
    let page: Value = reqwest::get(page).await.unwrap().json().await.unwrap();
    let routes = page["routes"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = routes.iter().map(|route| route["remote_name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

#[tokio::test]
async fn a_cluster_lets_in_servers_that_its_authority_vouches_for_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::create(folder.path().join("ours.pem")).unwrap();
    let another = Authority::create(folder.path().join("another.pem")).unwrap();
    let [known, unknown] = [("known", &ours), ("unknown", &another)].map(|(name, authority)| {
        let folder = folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        authority.server(&folder).unwrap()
    });
    // It takes the others for who they are; they do not take it.
    let unknown = TlsFiles { authority: known.authority.clone(), ..unknown };
    let servers = cluster(folder.path(), &[("one", &known), ("two", &known), ("stranger", &unknown)]).await;
    let [one, two, stranger] = &servers[..] else { panic!("three were started") };
    let refused = async {
        while !fs::read_to_string(one.process().log()).unwrap().contains("TLS route handshake error") {
            sleep(NOW_AND_THEN).await;
        }
    };
    timeout(DEADLINE, refused).await.expect("nobody was refused");
    let joined = async {
        while reached_by(one).await.is_empty() {
            sleep(NOW_AND_THEN).await;
        }
    };
    timeout(DEADLINE, joined).await.expect("the two never met");
    assert_eq!((reached_by(one).await, reached_by(two).await), (vec!["two".to_owned()], vec!["one".to_owned()]));
    assert!(reached_by(stranger).await.is_empty());
}
