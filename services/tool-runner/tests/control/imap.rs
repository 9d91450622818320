//! Tests mail on a real IMAP server: it is fetched once, whichever process is killed, and stays there unchanged.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_imap::{Client, Session};
use kairo_local::{ThirdPartyServer, Tools};
use kairo_proto::{Body, v1::EmailReceived};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

use super::kairo::Kairo;

/// Far beyond what anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);
const PASSWORD: &str = "p/ss w\"rd";

/// pymap, which keeps its mail in memory. A new instance has another UIDVALIDITY.
struct Server(ThirdPartyServer);

impl Server {
    async fn start(more: &[&str]) -> Self {
        let tools = Tools::of_this_checkout().expect("run ./scripts/test");
        let arguments = |port: u16, _: &Path| {
            let port = port.to_string();
            let place = ["--host", "127.0.0.1", "--port", &port, "--no-tls", "dict"];
            let user = ["--demo-user", "ann@example.org", "--demo-password", PASSWORD];
            place.iter().chain(&user).chain(more).map(OsString::from).collect()
        };
        let started =
            ThirdPartyServer::start(tools.imap_server().unwrap(), |line| line.trim() == "listening", arguments);
        Self(started.await.unwrap())
    }

    async fn session(&self) -> Session<TcpStream> {
        let mut client = Client::new(TcpStream::connect(("127.0.0.1", self.0.port)).await.unwrap());
        client.read_response().await.unwrap().unwrap();
        client.login("ann@example.org", PASSWORD).await.map_err(|(error, _)| error).unwrap()
    }

    /// Puts mails into the mailbox, received at this second of a day.
    async fn append(&self, subjects: &[&str], second: u32) {
        let mut session = self.session().await;
        for subject in subjects {
            let received = format!("\"25-Mar-2040 08:00:{second:02} +0000\"");
            session.append("INBOX", None, Some(&received), mail(subject)).await.unwrap();
        }
        session.logout().await.unwrap();
    }

    /// Counts the mails marked as seen.
    async fn seen(&self) -> usize {
        let mut session = self.session().await;
        session.examine("INBOX").await.unwrap();
        session.search("SEEN").await.unwrap().len()
    }
}

fn account(port: u16, more: Value) -> Value {
    let url = format!("imap://ann%40example.org:p%2Fss%20w%22rd@127.0.0.1:{port}/INBOX");
    let mut account = json!({"agent": "ann", "url": url});
    account.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    account
}

fn mail(subject: &str) -> Vec<u8> {
    let head = "From: Sarah <sarah@example.org>\r\nTo: ann@example.org\r\nDate: Wed, 25 Mar 2026 08:00:00 +0000\r\n";
    format!("{head}Subject: {subject}\r\n\r\nAbout {subject}.\r\n").into_bytes()
}

struct Office(TempDir);

impl Office {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    async fn open(&self, replicas: usize, accounts: &[Value], more: &[(&str, String)]) -> Kairo {
        let mut env = vec![
            ("KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", self.0.path().display().to_string()),
            ("KAIRO_TOOL_RUNNER__MAIL__IMAP", json!(accounts).to_string()),
        ];
        env.extend(more.iter().cloned());
        Kairo::start(replicas, &env).await
    }

    fn folder(&self, folder: &str) -> PathBuf {
        self.0.path().join("ann/mail").join(folder)
    }

    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.folder(folder)).into_iter().flatten();
        folder.map(|file| file.unwrap().path()).collect()
    }

    /// Moves all new mail to `cur` and marks it as seen, as a reader does.
    fn read(&self) {
        fs::create_dir_all(self.folder("cur")).unwrap();
        for file in self.files("new") {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            fs::rename(&file, self.folder("cur").join(format!("{name}:2,S"))).unwrap();
        }
    }
}

/// Waits until there is an event of a mail with each of these subjects.
async fn announced(kairo: &Kairo, subjects: &[&str]) -> Vec<EmailReceived> {
    let found = Mutex::new(BTreeMap::new());
    kairo
        .wait("kairo.email.ann.received", |record| {
            let Body::EmailReceived(mail) = &record.body else { return None };
            let mut found = found.lock().unwrap();
            found.insert(mail.subject.clone(), mail.clone());
            subjects.iter().all(|subject| found.contains_key(*subject)).then_some(())
        })
        .await;
    let found = found.into_inner().unwrap();
    subjects.iter().map(|subject| found[*subject].clone()).collect()
}

/// The subjects of all mails that have an event, in order.
async fn all(kairo: &Kairo) -> Vec<String> {
    let log = kairo.log().await;
    let mails = log.iter().filter_map(|record| EmailReceived::of(&record.body));
    let mut subjects: Vec<String> = mails.map(|mail| mail.subject.clone()).collect();
    subjects.sort();
    subjects
}

#[tokio::test]
async fn mail_on_a_server_becomes_one_event_each_and_stays_as_it_is() {
    let server = Server::start(&[]).await;
    server.append(&["first", "second"], 1).await;
    let office = Office::new();
    // Long enough that only IDLE can tell in time.
    let account = account(server.0.port, json!({"interval_ms": 600_000, "batch": 1}));
    let mut kairo = office.open(2, &[account], &[]).await;
    let mails = announced(&kairo, &["first", "second"]).await;
    assert_eq!((mails[0].sender.as_str(), mails[0].body.as_str()), ("Sarah <sarah@example.org>", "About first."));
    assert!(mails[0].email_id.starts_with("imap-"), "{}", mails[0].email_id);
    server.append(&["third"], 2).await;
    announced(&kairo, &["third"]).await;

    // What was read or deleted does not come back, whoever takes over.
    office.read();
    fs::remove_file(&office.files("cur")[0]).unwrap();
    kairo.kill9(0).await;
    kairo.kill9(1).await;
    kairo.another().await;
    server.append(&["fourth"], 3).await;
    announced(&kairo, &["fourth"]).await;
    assert_eq!((office.files("new").len(), office.files("cur").len()), (1, 2));
    assert_eq!(all(&kairo).await, ["first", "fourth", "second", "third"]);
    assert_eq!(server.seen().await, 0);
    kairo.stop().await;
}

#[tokio::test]
async fn no_mail_is_lost_or_fetched_twice_when_replicas_are_killed() {
    const MAILS: usize = 90;
    let server = Server::start(&[]).await;
    let office = Office::new();
    let account = account(server.0.port, json!({"interval_ms": 200, "idle": false, "batch": 7}));
    let mut kairo = office.open(2, &[account], &[]).await;
    let subjects: Vec<String> = (0..MAILS).map(|number| format!("mail {number:02}")).collect();
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    for (round, subjects) in subjects.chunks(MAILS / 3).enumerate() {
        server.append(subjects, u32::try_from(round).unwrap()).await;
        announced(&kairo, &subjects[..1]).await;
        kairo.kill9(round).await;
        kairo.another().await;
        announced(&kairo, subjects).await;
        // Mail that a person has read before a replica saw it is announced by none.
        office.read();
    }
    server.append(&["the last"], 9).await;
    announced(&kairo, &["the last"]).await;
    assert_eq!(all(&kairo).await, [&subjects[..], &["the last"]].concat());
    assert_eq!((office.files("new").len(), office.files("cur").len()), (1, MAILS));
    kairo.stop().await;
}

#[tokio::test]
async fn a_server_that_comes_back_with_other_numbers_is_asked_for_what_came_since() {
    let server = Server::start(&[]).await;
    server.append(&["old", "older"], 10).await;
    server.append(&["newest"], 20).await;
    let office = Office::new();
    let front = Front::start(server.0.port, None).await;
    let kairo = office.open(1, &[account(front.port, json!({"interval_ms": 200}))], &[]).await;
    announced(&kairo, &["old", "older", "newest"]).await;

    let another = Server::start(&[]).await;
    another.append(&["old", "older"], 10).await;
    another.append(&["since"], 30).await;
    front.lead_to(another.0.port);
    server.0.process.kill9().await.unwrap();
    announced(&kairo, &["since"]).await;
    another.append(&["after"], 5).await;
    announced(&kairo, &["after"]).await;
    assert_eq!(all(&kairo).await, ["after", "newest", "old", "older", "since"]);
    kairo.stop().await;
}

#[tokio::test]
async fn mail_from_before_is_left_where_it_is_if_so_configured_and_long_mail_is_cut() {
    let server = Server::start(&["--demo-data"]).await;
    let office = Office::new();
    let account = account(server.0.port, json!({"interval_ms": 200, "existing": false, "max_mail_bytes": 4_000}));
    let kairo = office.open(1, &[account], &[]).await;
    // The state is there once the mailbox has been looked at.
    let looked_at = async {
        while !office.files("imap").iter().any(|file| file.extension().is_some_and(|e| e == "state")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, looked_at).await.unwrap();
    let long = "long ".repeat(2_000);
    let mut session = server.session().await;
    session.append("INBOX", None, None, [mail("cut"), long.into_bytes()].concat()).await.unwrap();
    let mails = announced(&kairo, &["cut"]).await;
    assert!(mails[0].body.starts_with("About cut."));
    assert_eq!(all(&kairo).await, ["cut"]);
    assert_eq!(fs::metadata(&office.files("new")[0]).unwrap().len(), 4_000);
    assert_eq!(fs::metadata(office.0.path().join("ann")).unwrap().permissions().mode() & 0o777, 0o700);
    kairo.stop().await;
}

/// A certificate for 127.0.0.1 that vouches for itself, and its key.
fn certificate(dir: &TempDir) -> [String; 2] {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| dir.path().join(name).display().to_string());
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=imap", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", &key, "-out", &cert])
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl is needed").success());
    [cert, key]
}

#[tokio::test]
async fn an_encrypted_connection_needs_a_certificate_that_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let [trusted, key] = certificate(&dir);
    let good = Front::start(0, Some(acceptor(&trusted, &key))).await;
    let [untrusted, key] = certificate(&other);
    let bad = Front::start(0, Some(acceptor(&untrusted, &key))).await;
    let server = Server::start(&[]).await;
    server.append(&["secret"], 1).await;
    good.lead_to(server.0.port);
    bad.lead_to(server.0.port);
    let encrypted = |front: &Front, agent: &str| {
        let mut account = account(front.port, json!({"interval_ms": 200, "agent": agent}));
        account["url"] = json!(account["url"].as_str().unwrap().replace("imap:", "imaps:"));
        account
    };
    let office = Office::new();
    let accounts = [encrypted(&bad, "bob"), encrypted(&good, "ann")];
    let kairo = office.open(1, &accounts, &[("SSL_CERT_FILE", trusted)]).await;
    announced(&kairo, &["secret"]).await;
    kairo.logged("certificate").await;
    assert!(!office.0.path().join("bob/mail/new").exists());
    kairo.stop().await;
}

#[tokio::test]
async fn a_server_that_makes_no_sense_keeps_nobody_else_from_their_mail() {
    let server = Server::start(&[]).await;
    let office = Office::new();
    let refusal = format!("* OK hello\r\nA0001 NO it is not {PASSWORD}\r\n");
    let mut accounts = Vec::new();
    for said in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"\0".repeat(100_000),
        [&b"* OK hello\r\n* 1 FETCH (BODY[] {20000000}\r\n"[..], &b"x".repeat(9 << 20)].concat(),
        b"* OK hello\r\n* 1 FETCH (BODY[] {4000000000}\r\n".to_vec(),
        format!("* OK {}", "(".repeat(100_000)).into_bytes(),
        refusal.into_bytes(),
        Vec::new(),
    ] {
        accounts.push(account(nonsense(said).await, json!({"agent": "bob", "timeout_ms": 2_000})));
    }
    accounts.push(account(server.0.port, json!({"interval_ms": 200})));
    let kairo = office.open(1, &accounts, &[]).await;
    server.append(&["sense"], 1).await;
    announced(&kairo, &["sense"]).await;
    kairo.logged("it is not ***").await;
    kairo.logged("too long").await;
    let log = kairo.logged("did not answer in time").await;
    assert!(log.contains("imap://ann@example.org@127.0.0.1"), "{log}");
    assert!(!log.contains(PASSWORD) && !log.contains("p%2Fss"), "{log}");
    kairo.stop().await;
}

/// Takes connections, says the same on each and keeps it open.
async fn nonsense(said: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(&said).await;
            open.push(stream);
        }
    });
    port
}

fn acceptor(cert: &str, key: &str) -> TlsAcceptor {
    let cert = CertificateDer::from_pem_file(cert).unwrap();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A proxy to a server, which a later one may replace; with a certificate, connections to the proxy are encrypted.
struct Front {
    port: u16,
    server: Arc<AtomicU16>,
}

impl Front {
    async fn start(server: u16, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Arc::new(AtomicU16::new(server));
        let to = server.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let tls = tls.clone();
                let to = to.load(Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(("127.0.0.1", to)).await?;
                    match tls {
                        Some(tls) => copy_bidirectional(&mut tls.accept(stream).await?, &mut server).await,
                        None => copy_bidirectional(&mut stream, &mut server).await,
                    }
                });
            }
        });
        Self { port, server }
    }

    fn lead_to(&self, server: u16) {
        self.server.store(server, Ordering::SeqCst);
    }
}
