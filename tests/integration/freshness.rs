//! A query that names a command sees what it did, or says that it cannot yet; and every answer is of one moment.

use std::collections::BTreeSet;

use futures::future::join_all;
use kairo_local::Service;
use reqwest::Response;
use serde_json::Value;
use sqlx::{Connection, PgConnection};

use crate::world::{DEADLINE, Sent, Wanted, World};

const SCENARIO: &str = r#"
rules:
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

/// Clients, and messages of each: enough for batches of the projector to lie between commands and queries in every way.
const CLIENTS: usize = 8;
const MESSAGES: usize = 40;

/// As long as a request may wait at most in these tests.
const PATIENCE: &str = "60000";

async fn start() -> World {
    let world = Wanted::new(SCENARIO).env(Service::Gateway, "KAIRO_GATEWAY__FRESHNESS_WAIT_MS", PATIENCE).start().await;
    world.define("echo").await;
    world
}

async fn send(world: &World, user: &str, text: &str) -> Sent {
    world.send_as(&serde_json::json!({ "user": user, "agent": "echo", "text": text })).await
}

async fn ask(world: &World, path: &str) -> Response {
    let asked = reqwest::get(world.url(path));
    tokio::time::timeout(DEADLINE, asked).await.expect("no answer").unwrap()
}

fn conversation(user: &str, freshness: &str) -> String {
    format!("/v1/conversations/echo?user={user}&limit=1000&{freshness}")
}

/// The position of an answer, which header and body both name.
async fn positioned(answer: Response) -> (u64, Value) {
    let Some(header) = answer.headers().get("kairo-position").cloned() else {
        panic!("no position: {} {}", answer.status(), answer.text().await.unwrap());
    };
    let header = header.to_str().unwrap().parse().unwrap();
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["position"].as_u64(), Some(header), "{body}");
    (header, body)
}

/// Returns the positions of the user's messages.
fn said(body: &Value) -> BTreeSet<u64> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages.filter(|said| said["role"] == "user").map(|said| said["sequence"].as_u64().unwrap()).collect()
}

/// Says something and looks for it, again and again.
async fn client(world: &World, user: String) {
    let (mut sent, mut last) = (BTreeSet::new(), 0);
    for number in 0..MESSAGES {
        let sequence = send(world, &user, &format!("message {number}")).await.sequence;
        sent.insert(sequence);
        let answer = ask(world, &conversation(&user, &format!("at_least={sequence}"))).await;
        assert_eq!(answer.status(), 200);
        let (position, body) = positioned(answer).await;
        assert!(position >= sequence && position >= last, "{position} after {last}, with {sequence} asked for");
        assert_eq!(said(&body), sent, "at {position}");
        last = position;
    }
}

#[tokio::test]
async fn what_was_written_is_read() {
    let world = start().await;
    join_all((0..CLIENTS).map(|number| client(&world, format!("user-{number}")))).await;
    world.end().await;
}

/// Looks without asking for anything while somebody else writes: whatever the position, the rows are of it.
#[tokio::test]
async fn rows_and_position_are_of_one_moment() {
    let world = start().await;
    let writing = async {
        let mut sent = BTreeSet::new();
        for number in 0..CLIENTS * MESSAGES {
            sent.insert(send(&world, "ann", &format!("message {number}")).await.sequence);
        }
        sent
    };
    let looking = async {
        let mut seen = Vec::new();
        for _ in 0..CLIENTS * MESSAGES {
            let (position, body) = positioned(ask(&world, &conversation("ann", "")).await).await;
            seen.push((position, said(&body)));
        }
        seen
    };
    let (sent, seen) = tokio::join!(writing, looking);
    assert!(seen.is_sorted_by_key(|(position, _)| *position));
    for (position, said) in seen {
        assert_eq!(said, sent.range(..=position).copied().collect(), "at {position}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_read_model_that_stands_still_is_waited_for_no_longer_than_asked() {
    let world = start().await;
    for round in 0..3 {
        world.projected().await;
        world.stack.freeze(Service::Projector, 0).unwrap();
        let sequence = send(&world, "ann", &format!("round {round}")).await.sequence;
        let wanted = format!("at_least={sequence}");

        // Who asks for nothing is told how old the answer is.
        let (position, body) = positioned(ask(&world, &conversation("ann", "")).await).await;
        assert!(position < sequence && !said(&body).contains(&sequence));
        for wait in [0, 50] {
            let answer = ask(&world, &conversation("ann", &format!("{wanted}&wait_ms={wait}"))).await;
            assert_eq!(answer.status(), 503);
            assert_eq!(answer.headers()["retry-after"], "1");
            let (at, problem) = positioned(answer).await;
            assert_eq!((&problem["type"], at), (&"urn:kairo:problem:behind".into(), position));
            assert_eq!(problem["wanted"], sequence);
        }

        let waiting =
            ["/v1/agents", "/v1/events", "/v1/threads", "/v1/tasks", "/v1/actions", "/v1/processes", "/v1/memories"]
                .map(|path| format!("{path}?{wanted}"))
                .into_iter()
                .chain([conversation("ann", &wanted), format!("/v1/inbox?user=ann&{wanted}")]);
        let waiting =
            waiting.map(async |path| positioned(ask(&world, &path).await.error_for_status().unwrap()).await.0);
        let thawing = async { world.stack.thaw(Service::Projector, 0).unwrap() };
        let (positions, ()) = tokio::join!(join_all(waiting), thawing);
        assert!(positions.iter().all(|position| *position >= sequence), "{positions:?} of {sequence}");
    }
    world.end().await;
}

/// Waits until a query that came too early has given its connection back, and waits to be told.
async fn query_waits(world: &World) {
    let mut database = PgConnection::connect(&world.database.url).await.unwrap();
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'kairo-position') AND EXISTS \
                 (SELECT FROM pg_stat_activity WHERE application_name = 'kairo' AND query = 'COMMIT' AND state = 'idle')";
    let waiting = async {
        // Postgres does not say when: asking is all there is.
        while !sqlx::query_scalar::<_, bool>(waits).fetch_one(&mut database).await.unwrap() {}
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("nobody waits");
}

#[tokio::test]
async fn a_query_waits_through_a_restart_of_postgres() {
    let mut world = start().await;
    world.projected().await;
    world.stack.freeze(Service::Projector, 0).unwrap();
    let sequence = send(&world, "ann", "hello").await.sequence;
    let asked = reqwest::get(world.url(&conversation("ann", &format!("at_least={sequence}"))));
    let asked = tokio::spawn(asked);
    query_waits(&world).await;
    world.postgres.restart().await.unwrap();
    world.stack.thaw(Service::Projector, 0).unwrap();
    let answer = tokio::time::timeout(DEADLINE, asked).await.expect("no answer").unwrap().unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    let (position, body) = positioned(answer).await;
    assert!(position >= sequence && said(&body).contains(&sequence));
    world.end().await;
}

#[tokio::test]
async fn what_is_wrong_with_the_wish_is_named() {
    let world = start().await;
    let answer = ask(&world, "/v1/tasks?at_least=soon&wait_ms=60001&limit=0").await;
    assert_eq!(answer.status(), 400);
    let problem: Value = answer.json().await.unwrap();
    let wrong: Vec<&str> =
        problem["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(wrong, ["limit", "at_least", "wait_ms"]);

    let sequence = world.send("echo", "hello").await.sequence;
    let missing = format!("/v1/tasks/{}?at_least={sequence}", uuid::Uuid::nil());
    let answer = ask(&world, &missing).await;
    assert_eq!(answer.status(), 404);
    assert!(positioned(answer).await.0 >= sequence);
    world.end().await;
}
