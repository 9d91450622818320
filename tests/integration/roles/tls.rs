//! Connections to Postgres that are encrypted, to a server that an authority of the test vouches for.

use std::path::{Path, PathBuf};

use kairo_core::config::Secret;
use kairo_local::{PgOptions, Postgres, Servers, Service, Stack, Tools};
use kairo_read_model::{PostgresConfig, ReadErrorKind, ReadModel};
use kairo_tests::certificates::Authority;
use sqlx::{Connection, PgConnection};

use super::password;

/// A Postgres on 127.0.0.1 that lets nobody in who does not encrypt, for whom an authority vouches.
fn encrypted(folder: &Path) -> PgOptions {
    let ours = Authority::create(folder.join("ours.pem")).unwrap();
    Authority::create(folder.join("another.pem")).unwrap();
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let options = tools.ephemeral_postgres_in(folder.join("postgres")).unwrap();
    PgOptions { tls: Some(ours.server(folder).unwrap()), ..options }
}

fn with(url: &str, parameters: &str) -> String {
    format!("{url}?{parameters}")
}

/// Returns the error of a read over this URL, which must not contain the password.
async fn refusal(url: &str) -> (ReadErrorKind, String) {
    let config = PostgresConfig { url: Secret::new(url.to_owned()), ..Default::default() };
    let error = ReadModel::open(&config).unwrap().position().await.unwrap_err();
    let said = error.to_string();
    assert!(!said.contains(password(url)) && !format!("{error:?}").contains(password(url)), "{said}");
    (error.kind, said)
}

#[tokio::test]
async fn services_ask_a_server_that_their_authority_vouches_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let nats = Tools::of_this_checkout().unwrap().nats_in(at("nats")).unwrap();
    let Servers { nats, postgres: _postgres, database } = Servers::start(nats, encrypted(folder.path())).await.unwrap();
    let verified = format!("sslmode=verify-full&sslrootcert={}", at("ours.pem").display());
    let mut stack = Stack::of_this_build(at("logs")).unwrap();
    stack.use_nats(&nats.url(), nats.users());
    for service in [Service::Projector, Service::Gateway] {
        let url = with(database.service_url(service).unwrap(), &verified);
        stack.service(service).env("KAIRO_POSTGRES__URL", url);
    }
    stack.service(Service::Gateway).env("KAIRO_GATEWAY__LISTEN", "127.0.0.1:0");
    stack.provision().await.unwrap();
    // It is ready when it has made the tables.
    stack.start(Service::Projector).await.unwrap();
    stack.start(Service::Gateway).await.unwrap();
    let answer = reqwest::get(format!("{}/v1/agents", stack.url(Service::Gateway).unwrap())).await.unwrap();
    assert_eq!(answer.status(), 200);
    let encrypted = "SELECT bool_and(ssl) AND count(*) > 2 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE usename LIKE 'kairo\\_%'";
    let mut look = PgConnection::connect(&database.url).await.unwrap();
    let encrypted: bool = sqlx::query_scalar(encrypted).fetch_one(&mut look).await.unwrap();
    assert!(encrypted);
    stack.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_prove_who_it_is_learns_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let postgres = Postgres::start(encrypted(folder.path())).await.unwrap();
    let database = postgres.create_kairo_database("kairo").await.unwrap();
    let url = database.service_url(Service::Gateway).unwrap();
    let (ours, another) = (at("ours.pem"), at("another.pem"));
    let by_name = url.replace("127.0.0.1", "localhost");
    for (url, parameters, kind, said) in [
        (
            url,
            format!("sslmode=verify-full&sslrootcert={another}"),
            ReadErrorKind::Unavailable,
            "invalid peer certificate",
        ),
        (
            url,
            format!("sslmode=verify-ca&sslrootcert={another}"),
            ReadErrorKind::Unavailable,
            "invalid peer certificate",
        ),
        // The system knows many authorities, and not this one.
        (url, "sslmode=verify-full".to_owned(), ReadErrorKind::Unavailable, "UnknownIssuer"),
        (&by_name, format!("sslmode=verify-full&sslrootcert={ours}"), ReadErrorKind::Unavailable, "not valid for name"),
        (url, "sslmode=disable".to_owned(), ReadErrorKind::Denied, "no encryption"),
    ] {
        let (found, error) = refusal(&with(url, &parameters)).await;
        assert!(found == kind && error.contains(said), "{parameters}: {error}");
    }
    // Whoever the server is where nobody wants to know; and where only the name does not count. Nobody made the tables.
    for (url, parameters) in [
        (url, "sslmode=require".to_owned()),
        (&by_name, format!("sslmode=verify-ca&sslrootcert={ours}")),
        (url, format!("sslmode=verify-full&sslrootcert={ours}")),
    ] {
        let (kind, error) = refusal(&with(url, &parameters)).await;
        assert!(kind == ReadErrorKind::Unavailable && error.contains("does not exist"), "{parameters}: {error}");
    }
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let options = tools.ephemeral_postgres_in(folder.path().join("postgres")).unwrap();
    let postgres = Postgres::start(options).await.unwrap();
    let database = postgres.create_kairo_database("kairo").await.unwrap();
    let url = database.service_url(Service::Gateway).unwrap();
    for mode in ["require", "verify-ca", "verify-full"] {
        let (kind, error) = refusal(&with(url, &format!("sslmode={mode}"))).await;
        assert!(kind == ReadErrorKind::Unavailable && error.contains("does not support TLS"), "{mode}: {error}");
    }
}
