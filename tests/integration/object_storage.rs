//! Backups and archives in S3-compatible storage: a server of objects in a folder (s3s-fs), asked over HTTP with signed requests.

use std::{
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
};

use futures::FutureExt;
use hyper::{Method, Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kairo_core::subjects::EVENTS_STREAM;
use s3s::{
    Body,
    auth::SimpleAuth,
    service::{S3Service, S3ServiceBuilder},
};
use s3s_fs::FileSystem;
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, sync::Notify, time::timeout};

use crate::{
    backup::{LOST, an_agent_that_knows_people, command},
    command_line::kairo,
    forgetting::{AGENT, wanted},
    world::{DEADLINE, World},
};

const KEY: &str = "kairo-backups";
const SECRET: &str = "no-one-may-see-this";
const BACKUP: &str = "s3://kairo/nightly/a";
const ARCHIVE: &str = "s3://kairo/archive";

/// The server.
struct ObjectStorage {
    folder: tempfile::TempDir,
    url: String,
    held: Arc<Held>,
}

/// After so many more objects were put, nobody who puts one gets an answer.
struct Held {
    left: AtomicI64,
    one_is_there: Notify,
    is_waiting: Notify,
}

impl ObjectStorage {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("kairo")).unwrap();
        let mut service = S3ServiceBuilder::new(FileSystem::new(folder.path()).unwrap());
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let held =
            Arc::new(Held { left: AtomicI64::new(i64::MAX), one_is_there: Notify::new(), is_waiting: Notify::new() });
        tokio::spawn(serve(listener, service, Arc::clone(&held)));
        Self { folder, url, held }
    }

    /// A command that reaches it.
    fn command(&self, world: &World, arguments: &[&str]) -> Command {
        let mut command = command(world, arguments);
        command.env("AWS_ENDPOINT_URL", &self.url).env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "eu-1");
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    async fn done(&self, world: &World, arguments: &[&str]) -> Value {
        let output = self.command(world, arguments).output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Objects whose keys hold this.
    fn objects(&self, part: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        files(self.folder.path(), &mut found);
        found.retain(|path| path.to_str().unwrap().contains(part));
        found.sort();
        found
    }
}

async fn serve(listener: TcpListener, service: S3Service, held: Arc<Held>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (service, held) = (service.clone(), Arc::clone(&held));
        let answer = service_fn(move |request: Request<Incoming>| answer(service.clone(), Arc::clone(&held), request));
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            // Whoever is killed breaks it off.
            drop(server.serve_connection(TokioIo::new(socket), answer).await);
        });
    }
}

async fn answer(service: S3Service, held: Arc<Held>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let puts = *request.method() == Method::PUT;
    if puts && held.left.fetch_sub(1, SeqCst) <= 0 {
        held.one_is_there.notified().await;
        held.is_waiting.notify_one();
        std::future::pending::<()>().await;
    }
    let answer = service.call(request.map(Body::from)).await.unwrap();
    if puts {
        held.one_is_there.notify_one();
    }
    Ok(answer)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        if entry.is_dir() { files(&entry, found) } else { found.push(entry) }
    }
}

/// Runs a command that must fail with this status, and returns its output, which contains no secret.
async fn refused(mut command: Command, status: i32) -> String {
    let output = command.output().await.unwrap();
    let told = String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{told}");
    assert!(!told.contains(SECRET), "{told}");
    told
}

#[tokio::test]
async fn a_backup_is_taken_into_storage_of_objects_and_what_was_wiped_is_restored_from_there() {
    let mut world = wanted().start().await;
    let storage = ObjectStorage::start().await;
    an_agent_that_knows_people(&world).await;
    world.settled().await;
    not_let_in(&world, &storage).await;

    let first = storage.done(&world, &["backup", "--into", BACKUP]).await;
    assert_eq!((&first["folder"], &first["part"]), (&json!(BACKUP), &json!(1)), "{first}");
    let archived = storage.done(&world, &["archive", ARCHIVE]).await["through"].clone();
    let keys = storage.objects("DATA_KEYS");
    assert_eq!(keys.len(), 1, "{keys:?}");
    world.ask_as("bob", AGENT, "run again").await;
    world.settled().await;
    killed_on_the_way(&world, &storage).await;
    let second = storage.done(&world, &["backup", "--into", BACKUP]).await;
    assert_eq!((&second["part"], &second["after"]), (&json!(2), &first["through"]), "only what came since");
    assert!(!keys[0].exists(), "keys that are destroyed by now are kept nowhere");
    assert_eq!(storage.done(&world, &["backup", "verify", BACKUP]).await["fits"], true);
    damage_is_named(&world, &storage).await;
    archive_is_fetched(&world, &storage, &archived).await;

    world.projected().await;
    world.services_stop().await;
    let last = storage.done(&world, &["backup", "--onto", BACKUP]).await;
    let jetstream = world.bus.nats().unwrap().jetstream.clone();
    for stream in LOST {
        jetstream.delete_stream(stream).await.unwrap();
    }
    let restored = storage.done(&world, &["restore", BACKUP]).await;
    assert_eq!(restored["through"], last["through"], "{restored}");
    world.look_again().await;
    world.services_start().await;
    world.ask_as("bob", AGENT, "run new").await;
    world.settled().await;
    let output = kairo(&world, &["--json", "verify", "--all"]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    world.end().await;
}

/// Checks the errors for a wrong secret, and for a connection without TLS that was not asked for.
async fn not_let_in(world: &World, storage: &ObjectStorage) {
    let mut command = storage.command(world, &["backup", "--into", BACKUP]);
    command.env("AWS_SECRET_ACCESS_KEY", "another");
    let told = refused(command, 1).await;
    assert!(told.contains(BACKUP) && told.contains("SignatureDoesNotMatch"), "{told}");
    let mut command = storage.command(world, &["backup", "--into", BACKUP]);
    command.env_remove("AWS_ALLOW_HTTP");
    let told = refused(command, 1).await;
    assert!(told.contains(BACKUP), "{told}");
    let mut command = storage.command(world, &["backup", "--into", "s3://Kairo/a"]);
    let output = command.output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("s3://BUCKET/PREFIX"), "{output:?}");
    assert!(storage.objects("").is_empty());
}

/// A backup that is killed when some of its files are there: the backup is what it was.
async fn killed_on_the_way(world: &World, storage: &ObjectStorage) {
    // Not one of before.
    storage.held.one_is_there.notified().now_or_never();
    storage.held.left.store(2, SeqCst);
    let mut taking = storage.command(world, &["backup", "--into", BACKUP]).spawn().unwrap();
    timeout(DEADLINE, storage.held.is_waiting.notified()).await.expect("nothing was put there");
    taking.kill().await.unwrap();
    storage.held.left.store(i64::MAX, SeqCst);
    assert!(!storage.objects("/0002/").is_empty());
    let verified = storage.done(world, &["backup", "verify", BACKUP]).await;
    assert_eq!((&verified["fits"], &verified["parts"]), (&json!(true), &json!(1)), "{verified}");
}

/// An object that was edited is named, and nothing is restored of it.
async fn damage_is_named(world: &World, storage: &ObjectStorage) {
    let log = storage.objects(&format!("nightly/a/0001/{EVENTS_STREAM}")).remove(0);
    let whole = fs::read(&log).unwrap();
    let mut edited = whole.clone();
    edited[whole.len() / 2] ^= 1;
    fs::write(&log, edited).unwrap();
    for what in [&["backup", "verify", BACKUP][..], &["restore", BACKUP]] {
        let told = refused(storage.command(world, what), 1).await;
        assert!(told.contains(&format!("{BACKUP}/0001/{EVENTS_STREAM}")), "{told}");
    }
    fs::write(&log, whole).unwrap();
}

/// An archive that grows there, and a copy of it in a folder that is kept up with it, which is read as log.
async fn archive_is_fetched(world: &World, storage: &ObjectStorage, archived: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("archive").to_str().unwrap().to_owned();
    let fetched = storage.done(world, &["backup", "fetch", ARCHIVE, &copy]).await;
    assert_eq!((&fetched["parts"], &fetched["through"]), (&json!(1), archived), "{fetched}");
    let grown = storage.done(world, &["archive", ARCHIVE]).await["through"].clone();
    let fetched = storage.done(world, &["backup", "fetch", ARCHIVE, &copy]).await;
    assert_eq!((&fetched["parts"], &fetched["through"]), (&json!(2), &grown), "{fetched}");
    let output = kairo(world, &["--json", "verify", "--all", "--archive", &copy]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = refused(storage.command(world, &["backup", "fetch", "s3://kairo/nothing", &copy]), 1).await;
    assert!(told.contains("s3://kairo/nothing holds neither a backup nor an archive"), "{told}");
}
