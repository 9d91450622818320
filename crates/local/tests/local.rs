//! The private stack on real servers and real processes: see `kairo_local`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kairo_local::{
    ChildProcess, Exit, LocalError, NatsServer, PgOptions, Postgres, ProcessSpec, Service, Stack, StackOptions, Tools,
};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(30);

fn tools() -> Tools {
    Tools::of_this_checkout().unwrap()
}

/// A folder that only we can enter, as a checkout under /root is.
fn closed_dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

fn test_postgres(dir: &Path) -> PgOptions {
    tools().ephemeral_postgres_in(dir.join("postgres")).unwrap()
}

async fn say_hello(url: &str) -> Result<String, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query_scalar("SELECT text FROM greeting").fetch_one(&mut connection).await
}

#[tokio::test]
async fn nats_is_killed_and_comes_back_on_its_port() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = tools().nats_in(dir.path().join("nats")).unwrap();
    options.sync_always = true;
    options.monitor = true;
    let mut nats = NatsServer::start(options.clone()).await.unwrap();
    let url = nats.url();
    assert_eq!(nats.kill9().await.unwrap(), Exit::Signal(9));
    nats.restart().await.unwrap();
    assert_eq!(nats.url(), url);
    assert_eq!(nats.process().exit(), None);

    // A second server that wants the same port steps over it.
    options.port = url.rsplit(':').next().unwrap().parse().ok();
    options.data_dir = dir.path().join("second");
    let second = NatsServer::start(options).await.unwrap();
    assert_ne!(second.url(), url);
    let exit = second.stop(DEADLINE).await.unwrap();
    assert!(matches!(exit, Exit::Code(_)), "{exit}");
    let log = fs::read_to_string(dir.path().join("nats/nats.log")).unwrap();
    assert!(!log.contains("[ERR]"), "{log}");
}

#[tokio::test]
async fn postgres_is_killed_and_comes_back_with_its_data() {
    let dir = closed_dir();
    let options = test_postgres(dir.path());
    let data_dir = options.data_dir.clone();
    let mut postgres = Postgres::start(options).await.unwrap();
    let url = postgres.create_database("kairo_test").await.unwrap();
    assert_eq!(postgres.create_database("kairo_test").await.unwrap(), url);
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("CREATE TABLE greeting (text text); INSERT INTO greeting VALUES ('hello')")
        .execute(&mut connection)
        .await
        .unwrap();

    // With a backend at work, which holds the server's shared memory until it is gone too.
    assert_eq!(postgres.kill9().await.unwrap(), Exit::Signal(9));
    postgres.restart().await.unwrap();
    assert_eq!(say_hello(&url).await.unwrap(), "hello");

    assert_eq!(postgres.stop(DEADLINE).await.unwrap(), Exit::Code(0));
    postgres.restart().await.unwrap();
    assert_eq!(say_hello(&url).await.unwrap(), "hello");

    let password_file = data_dir.join("password");
    let mode = password_file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let real = data_dir.canonicalize().unwrap();
    let lock = fs::read_to_string(real.join("cluster/postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let segments = || fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let is_there = || segments().lines().any(|line| line.split_whitespace().nth(1) == Some(&segment));
    assert!(is_there());
    drop(postgres);
    assert!(!real.exists(), "ephemeral data is removed");
    assert!(!is_there(), "the kernel has room for some thousands");
}

#[tokio::test]
async fn postgres_starts_after_one_that_nobody_stopped_or_reaped() {
    let dir = closed_dir();
    let mut options = test_postgres(dir.path());
    options.ephemeral = false;
    // As when we are killed with -9: the server dies alone, its backends a moment later, and it stays a zombie until
    // somebody reaps it, which here only dropping `first` would do.
    let first = Postgres::start(options.clone()).await.unwrap();
    let url = first.create_database("kept").await.unwrap();
    let _backend = PgConnection::connect(&url).await.unwrap();
    first.process().kill9().await.unwrap();

    let second = Postgres::start(options.clone()).await.unwrap();
    PgConnection::connect(&second.url("kept")).await.unwrap();
    drop((first, second));
    Postgres::remove_data(&options.data_dir).unwrap();
}

#[tokio::test]
async fn postgres_finds_its_data_again_until_it_is_removed() {
    let dir = closed_dir();
    let mut options = test_postgres(dir.path());
    options.ephemeral = false;
    let first = Postgres::start(options.clone()).await.unwrap();
    let old = first.create_database("kept").await.unwrap();
    options.port = Some(first.port());
    drop(first);
    let second = Postgres::start(options.clone()).await.unwrap();
    assert_eq!(second.url("kept"), old);
    PgConnection::connect(&old).await.unwrap();
    drop(second);

    let real = options.data_dir.canonicalize().unwrap();
    Postgres::remove_data(&options.data_dir).unwrap();
    assert!(!real.exists() && !options.data_dir.is_symlink());
    Postgres::remove_data(&options.data_dir).unwrap();
}

#[tokio::test]
async fn postgres_wants_its_password() {
    let dir = tempfile::tempdir().unwrap();
    let postgres = Postgres::start(test_postgres(dir.path())).await.unwrap();
    let stranger = format!("postgres://kairo:guess@127.0.0.1:{}/postgres", postgres.port());
    let refused = PgConnection::connect(&stranger).await.unwrap_err();
    assert_eq!(refused.as_database_error().and_then(|error| error.code()), Some("28P01".into()), "{refused}");
}

/// A stand-in for a service: it says it is ready, and what it sees of one variable.
fn stand_in(bin_dir: &Path, service: Service, script: &str) {
    fs::create_dir_all(bin_dir).unwrap();
    let path = bin_dir.join(service.binary());
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn replicas_are_killed_frozen_and_started_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let bin_dir = dir.path().join("bin");
    stand_in(
        &bin_dir,
        Service::Router,
        "echo ready health=http://127.0.0.1:1 url=http://$KAIRO_GREETING:2; exec sleep 1000",
    );
    let mut stack = Stack::new(StackOptions::new(&bin_dir, dir.path().join("logs")));
    stack.common().env("KAIRO_GREETING", "common");
    stack.start_all(&[(Service::Router, 2)]).await.unwrap();
    assert_eq!(stack.url(Service::Router), Some("http://common:2"));

    stack.service(Service::Router).env("KAIRO_GREETING", "own");
    assert_eq!(stack.start(Service::Router).await.unwrap(), 2);
    let third = stack.replica(Service::Router, 2).unwrap();
    assert_eq!(third.url(), Some("http://own:2"));

    stack.kill9(Service::Router, 0).await.unwrap();
    let killed = stack.replica(Service::Router, 0).unwrap().process().exit();
    assert_eq!(killed, Some(Exit::Signal(9)));
    stack.restart(Service::Router, 0).await.unwrap();
    assert_eq!(stack.replica(Service::Router, 0).unwrap().process().exit(), None);

    // Frozen is who stands still: not who is about to. It can still be asked to end.
    stack.freeze(Service::Router, 1).unwrap();
    let frozen = stack.replica(Service::Router, 1).unwrap().process().pid();
    let stat = fs::read_to_string(format!("/proc/{frozen}/stat")).unwrap();
    assert!(stat.contains(") T "), "{stat}");
    let exit = stack.stop_one(Service::Router, 1).await.unwrap();
    assert_eq!(exit, Exit::Signal(15));

    let (end, _) = tokio::join!(stack.any_exit(), stack.kill9(Service::Router, 2));
    assert_eq!(end, (Service::Router, 2, Exit::Signal(9)));
    stack.stop().await.unwrap();
    assert!(stack.replicas(Service::Router).is_empty());
}

#[tokio::test]
async fn a_service_that_fails_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    stand_in(dir.path(), Service::Gateway, "echo 'gateway.listen: not an address' >&2; exit 64");
    let mut stack = Stack::new(StackOptions::new(dir.path(), dir.path().join("logs")));
    let error = stack.start(Service::Gateway).await.unwrap_err();
    assert!(
        matches!(&error, LocalError::Exited { exit: Exit::Code(64), tail, .. }
            if tail == "gateway.listen: not an address"),
        "{error}"
    );
    let error = stack.start(Service::Router).await.unwrap_err();
    assert!(matches!(error, LocalError::MissingProgram { .. }), "{error}");
}

/// The variable that names the folder for the files of [`parent_of_a_lock_holder`].
const HOLDER_DIR: &str = "LOCAL_TEST_HOLDER_DIR";

#[tokio::test]
async fn a_child_dies_with_a_parent_that_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut parent = ProcessSpec::new("parent", std::env::current_exe().unwrap(), dir.path().join("parent.log"))
        .args(["--exact", "parent_of_a_lock_holder", "--ignored", "--nocapture"]);
    parent.env = vec![(HOLDER_DIR.into(), dir.path().display().to_string())];
    parent.ready = |line| line.contains("child is ready");
    let mut parent = ChildProcess::spawn(parent).await.unwrap();
    parent.wait_until_ready(DEADLINE).await.unwrap();

    let lock = File::open(dir.path().join("lock")).unwrap();
    assert!(lock.try_lock().is_err(), "the child holds it");
    parent.kill9().await.unwrap();
    let released = tokio::task::spawn_blocking(move || lock.lock());
    timeout(DEADLINE, released).await.unwrap().unwrap().unwrap();
}

/// Not a test of its own: the process that is killed in the one above.
#[tokio::test]
#[ignore = "a process that another test starts"]
async fn parent_of_a_lock_holder() {
    let dir = PathBuf::from(std::env::var(HOLDER_DIR).expect("started by another test"));
    let mut child = ProcessSpec::new("child", "/usr/bin/flock", dir.join("child.log"))
        .args(["--no-fork".into(), dir.join("lock").into_os_string()])
        .args(["/bin/sh", "-c", "echo holding; exec sleep 1000"]);
    child.ready = |line| line.contains("holding");
    let mut child = ChildProcess::spawn(child).await.unwrap();
    child.wait_until_ready(DEADLINE).await.unwrap();
    println!("child is ready");
    child.wait_for_exit().await;
}
