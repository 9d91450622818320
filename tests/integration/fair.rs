//! A greedy user leaves others their shares: of an agent's queue, of the read model's connections, of streams and
//! subscriptions, of a key's requests and of calls of models. Every test is an attack that once shut others out.

use std::time::Duration;

use futures::{SinkExt, StreamExt, future::join_all};
use kairo_local::Service;
use kairo_read_model::READ_MODEL;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::{task::JoinSet, time::timeout};
use tokio_tungstenite::{connect_async, tungstenite::Message};

use crate::{
    keys::{ADMIN, Caller, guarded},
    open::set,
    websocket::client::request,
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

const AGENT: &str = "shared";
/// Messages with "for ever" are never answered; everything else is echoed.
const HANGING: &str = r#"
rules:
  - name: never
    when: { user_contains: for ever }
    reply: { fault: hang }
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;
const READ_AND_WRITE: [&str; 2] = ["read", "write"];

async fn say(world: &World, user: &str, text: &str) -> (u16, Value) {
    world.post("/v1/messages", &json!({ "user": user, "agent": AGENT, "text": text })).await
}

/// A key that speaks for this user, or for anybody.
async fn key(world: &World, name: &str, user: Option<&str>) -> Caller {
    let operator = Caller::new(world, 0, Some(ADMIN));
    let (_, key) = operator.make(json!({ "name": name, "scopes": READ_AND_WRITE, "user": user })).await;
    Caller::new(world, 0, Some(&key))
}

async fn stream(caller: &Caller) -> Response {
    caller.request(Method::GET, "/v1/events/stream").send().await.unwrap()
}

/// Opens streams until one is refused.
async fn flood(caller: &Caller) -> Vec<Response> {
    let mut open = Vec::new();
    loop {
        let answer = stream(caller).await;
        if answer.status() != 200 {
            return open;
        }
        open.push(answer);
    }
}

#[tokio::test]
async fn one_user_of_an_agent_does_not_fill_its_queue_for_the_others() {
    let wanted = Wanted::new(HANGING).env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__PENDING_INPUTS", "12");
    let world = wanted.start().await;
    world.define(AGENT).await;
    let refused = async {
        loop {
            let (status, problem) = say(&world, "flood", "for ever").await;
            if status != 202 {
                return (status, problem);
            }
        }
    };
    let (status, problem) = timeout(DEADLINE, refused).await.expect("nothing is ever too much");
    assert_eq!((status, &problem["type"]), (429, &json!("urn:kairo:problem:congested")), "{problem}");
    let told = problem["detail"].as_str().unwrap();
    assert!(told.contains(&format!("messages of flood wait for the agent {AGENT}")), "{told}");
    // Each of the others has as much as everybody, however much is there of the flood already.
    for user in ["ann", "bob", "joe"] {
        let (status, answer) = say(&world, user, "for ever").await;
        assert_eq!(status, 202, "{user}: {answer}");
    }
    assert_eq!(say(&world, "flood", "for ever").await.0, 429);
    // What is never answered is in no order that it could end in.
    drop(world);
}

#[tokio::test]
async fn slow_queries_of_one_key_leave_connections_to_the_others() {
    let wanted = guarded().env(Service::Gateway, "KAIRO_POSTGRES__MAX_CONNECTIONS", "4");
    let wanted = wanted.env(Service::Gateway, "KAIRO_POSTGRES__ACQUIRE_TIMEOUT_MS", "1000");
    let world = set(wanted, &[("QUERY_TIMEOUT_MS", "60000")]).start().await;
    let [greedy, modest] = [key(&world, "greedy", Some("eve")).await, key(&world, "modest", Some("ann")).await];
    assert_eq!(greedy.get("/v1/tasks?user=eve").await.0, 200);

    // Queries of tasks are slow from here on: they wait until nobody holds the table.
    let mut database = PgConnection::connect(&world.database.url).await.unwrap();
    let live = "SELECT place FROM generations WHERE state = 'live' AND projection = $1";
    let place: String = sqlx::query_scalar(live).bind(READ_MODEL.name).fetch_one(&mut database).await.unwrap();
    let lock = format!("BEGIN; LOCK TABLE {place}.tasks IN ACCESS EXCLUSIVE MODE");
    database.execute(AssertSqlSafe(lock)).await.unwrap();
    let mut slow = JoinSet::new();
    for _ in 0..8 {
        let greedy = greedy.clone();
        slow.spawn(async move { greedy.get("/v1/tasks?user=eve").await.0 });
    }
    // Those that got no connection in time are told so: the others have all that the key can get.
    let late = timeout(DEADLINE, slow.join_next()).await.expect("no query waits in vain").unwrap().unwrap();
    assert_eq!(late, 503);
    for _ in 0..4 {
        let (status, answer) = modest.get("/v1/threads?user=ann").await;
        assert_eq!(status, 200, "{answer}");
    }
    database.execute("ROLLBACK").await.unwrap();
    let answered: Vec<u16> = slow.join_all().await;
    assert!(answered.contains(&200), "{answered:?}");
    world.end().await;
}

#[tokio::test]
async fn streams_of_many_floods_are_given_back_to_whoever_has_fewer() {
    let world = set(guarded(), &[("MAX_STREAMS", "8"), ("MAX_STREAMS_PER_KEY", "8")]).start().await;
    let mut open = Vec::new();
    for name in ["eve", "mallory", "trudy"] {
        open.extend(flood(&key(&world, name, Some(name)).await).await);
    }
    assert!(open.len() >= 8, "{}", open.len());
    // Of eight, each of four has two.
    let modest = key(&world, "modest", Some("ann")).await;
    let own = [stream(&modest).await, stream(&modest).await];
    assert!(own.iter().all(|answer| answer.status() == 200), "{own:?}");
    assert_eq!(stream(&modest).await.status(), 503);
    // Theirs end; and nobody takes ann's.
    let mut ended = futures::stream::iter(open).map(ends).buffer_unordered(16);
    timeout(DEADLINE, ended.next()).await.expect("nothing was given back");
    for answer in own {
        assert!(timeout(Duration::from_millis(50), ends(answer)).await.is_err(), "ann's was taken");
    }
    world.end().await;
}

/// Waits until a stream has ended.
async fn ends(mut stream: Response) {
    while let Ok(Some(_)) = stream.chunk().await {}
}

#[tokio::test]
async fn subscriptions_count_as_streams() {
    let settings = [("MAX_STREAMS", "8"), ("MAX_STREAMS_PER_KEY", "6"), ("WS_SUBSCRIPTIONS", "16")];
    let world = set(guarded(), &settings).start().await;
    let [greedy, modest] = [key(&world, "greedy", Some("eve")).await, key(&world, "modest", Some("ann")).await];
    let mut connect = request(&world);
    connect.headers_mut().insert("authorization", format!("Bearer {}", greedy.key()).parse().unwrap());
    let (mut socket, _) = connect_async(connect).await.unwrap();
    let mut answers = Vec::new();
    for number in 0..16 {
        let frame = json!({ "type": "subscribe", "id": format!("s-{number}"), "agent": AGENT });
        socket.send(Message::text(frame.to_string())).await.unwrap();
    }
    while answers.len() < 16 {
        let frame = timeout(DEADLINE, socket.next()).await.expect("no frame came").unwrap().unwrap();
        let Ok(text) = frame.to_text() else { continue };
        let Ok(frame) = serde_json::from_str::<Value>(text) else { continue };
        match frame["type"].as_str().unwrap() {
            "subscribed" => answers.push(200),
            "error" => answers.push(frame["problem"]["status"].as_u64().unwrap()),
            _ => {}
        }
    }
    // The connection is one of the six.
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 5, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 429).count(), 11, "{answers:?}");
    assert_eq!(stream(&modest).await.status(), 200);
    world.end().await;
}

#[tokio::test]
async fn one_user_of_a_key_does_not_use_up_its_requests() {
    let world = set(guarded(), &[("RATE_PER_S", "1"), ("RATE_BURST", "40")]).start().await;
    Caller::new(&world, 0, Some(ADMIN)).post("/v1/agents", json!({ "agent": AGENT, "prompt": "Hello." })).await;
    let many = key(&world, "for many", None).await;
    let message = |user: &str| json!({ "user": user, "agent": AGENT, "text": "hello" });
    let refused = async { while many.post("/v1/messages", message("flood")).await.0 != 429 {} };
    timeout(DEADLINE, refused).await.expect("nothing is ever too much");
    for user in ["ann", "bob"] {
        let (status, answer) = many.post("/v1/messages", message(user)).await;
        assert_eq!(status, 202, "{user}: {answer}");
        assert_eq!(many.get(&format!("/v1/inbox?user={user}")).await.0, 200, "{user}");
    }
    world.end().await;
}

#[tokio::test]
async fn calls_of_models_for_one_user_leave_some_to_the_others() {
    let wanted = Wanted::new(HANGING).env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__MAX_IN_FLIGHT", "4");
    let world = wanted.start().await;
    let agents: Vec<String> = (0..8).map(|number| format!("of-flood-{number}")).collect();
    join_all(agents.iter().map(|agent| world.define(agent))).await;
    world.define(AGENT).await;
    for agent in &agents {
        world.send_as(&json!({ "user": "flood", "agent": agent, "text": "think for ever" })).await;
    }
    let taken = async { while world.model_requests().await.iter().filter(|it| it["rule"] == "never").count() < 3 {} };
    timeout(DEADLINE, taken).await.expect("no model is asked");
    assert_eq!(world.ask_as("ann", AGENT, "hello").await, "You said: hello");
    assert_eq!(world.ask_as("bob", AGENT, "hello").await, "You said: hello");
    assert_eq!(world.model_requests().await.iter().filter(|it| it["rule"] == "never").count(), 3);
    drop(world);
}

#[tokio::test]
async fn nobody_on_this_machine_is_without_a_share() {
    let world = set(Wanted::new(USUAL), &[("MAX_REQUESTS", "8"), ("FRESHNESS_WAIT_MS", "60000")]).start().await;
    // One that found the place taken by somebody who was only passing asks again.
    let waiting = || {
        let (http, url) = (world.http.clone(), world.url("/v1/tasks?user=flood&at_least=1000000"));
        tokio::spawn(async move { while http.get(&url).send().await.is_ok_and(|answer| answer.status() == 429) {} })
    };
    let flood: Vec<_> = (0..6).map(|_| waiting()).collect();
    let refused = async { while world.get("/v1/tasks?user=flood").await.0 != 429 {} };
    timeout(DEADLINE, refused).await.expect("nothing is ever too much");
    assert_eq!(world.get("/v1/tasks?user=ann").await.0, 200);
    for one in flood {
        one.abort();
    }
    world.end().await;
}
