//! `turn.status`: listeners are told how the status of a turn changes, over every kind of stream, and come back for the rest.

use kairo_local::Service;
use kairo_proto::v1;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    command_line::{kairo, lines},
    keys::{ADMIN, Caller},
    websocket::client::Client,
    world::{DEADLINE, Wanted, World},
};

const AGENT: &str = "bob";

const SCENARIO: &str = r#"
rules:
  - name: time
    when: { user_contains: time }
    turn:
      - { reasoning: "A clock is needed.", tool_calls: [{ tool: tools.now, arguments: {} }] }
      - text: It is noon.
  - name: rest
    when: {}
    reply: "You said: {{ user }}"
"#;

const TURN: [&str; 5] = ["started", "planning", "executing", "reflecting", "completed"];

/// One thing that a stream shows: its id, its name, and what it says.
type Shown = (Option<String>, Option<String>, Value);

/// Returns the events of a stream up to the end of a turn, including the event that ends it.
async fn streamed(caller: &Caller, query: &str, last: Option<&str>, turn: Uuid) -> Vec<Shown> {
    let request = caller.request(Method::GET, &format!("/v1/events/stream?turn_status=true{query}"));
    let request = last.into_iter().fold(request, |request, last| request.header("last-event-id", last));
    let mut stream = request.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let (mut text, mut shown) = (String::new(), Vec::new());
    let reading = async {
        loop {
            text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().expect("the stream ended")).unwrap());
            while let Some((block, rest)) = text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let data = field("data: ").map(|data| serde_json::from_str(&data).unwrap());
                shown.extend(data.map(|data: Value| (field("id: "), field("event: "), data)));
                text = rest.to_owned();
                let ends = |event: &Value| event["correlation_id"] == json!(turn) && event["payload"]["final"] == true;
                if shown.last().is_some_and(|(_, _, event)| ends(event)) {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("the turn never ended");
    shown
}

fn changes(shown: &[Shown], turn: Uuid) -> Vec<Value> {
    let changes = shown.iter().filter(|(_, name, _)| name.as_deref() == Some("turn.status"));
    changes.map(|(.., change)| change.clone()).filter(|change| change["turn_id"] == json!(turn)).collect()
}

fn statuses(changes: &[Value]) -> Vec<&str> {
    changes.iter().map(|change| change["status"].as_str().unwrap()).collect()
}

async fn asked(world: &World, caller: &Caller, user: &str, text: &str) -> Uuid {
    let (status, said) = caller.post("/v1/messages", json!({ "user": user, "agent": AGENT, "text": text })).await;
    assert_eq!(status, 202, "{said}");
    let turn = said["correlation_id"].as_str().unwrap().parse().unwrap();
    world.log.wait(|event| event.correlation_id == turn && event.is_final_reply()).await;
    turn
}

#[tokio::test]
async fn state_changes_of_a_turn_notify_listeners_over_sse_and_websocket_and_who_comes_back_is_told_the_rest() {
    let world = Wanted::new(SCENARIO).start().await;
    world.define(AGENT).await;
    let caller = Caller::new(&world, 0, None);
    let mut socket = Client::connect(&world).await;
    socket.send(json!({ "type": "subscribe", "id": "s", "agent": AGENT, "turn_status": true })).await;
    socket.expect("subscribed", &[]).await;
    let turn = asked(&world, &caller, "ann", "the time please").await;

    let all = streamed(&caller, "&after=0", None, turn).await;
    let told = changes(&all, turn);
    assert_eq!(statuses(&told), TURN);
    let previous: Vec<_> = told.iter().map(|change| change["previous"].clone()).collect();
    assert_eq!(previous[1..], TURN[..4].iter().map(|status| json!(status)).collect::<Vec<_>>());
    assert_eq!((&previous[0], &told[0]["user"], &told[0]["agent"]), (&Value::Null, &json!("ann"), &Value::Null));
    assert_eq!((&told[4]["user"], &told[4]["agent"]), (&json!("ann"), &json!(AGENT)));
    // Each comes before the event that changed it, without an id.
    for (at, (id, name, change)) in all.iter().enumerate().filter(|(_, (_, name, _))| name.is_some()) {
        assert_eq!((id, name.as_deref()), (&None, Some("turn.status")));
        assert_eq!(change["event_id"], all[at + 1].2["event_id"]);
    }
    // As the turn is told step by step.
    world.projected().await;
    let (_, answer) = caller.get(&format!("/v1/interactions/{turn}")).await;
    assert_eq!(answer["interaction"]["status"], "completed");

    // Whoever comes back is told what is behind, as it was told; also in the midst of a message.
    let places: Vec<&str> = all.iter().filter_map(|(id, ..)| id.as_deref()).collect();
    for place in places.iter().filter(|place| **place != *places.last().unwrap()) {
        let rest = streamed(&caller, "&after=0", Some(place), turn).await;
        assert_eq!(rest, all[all.len() - rest.len()..], "{place}");
        let seen = all.iter().position(|(id, ..)| id.as_deref() == Some(*place)).unwrap();
        assert_eq!(rest.len(), all.len() - seen - 1, "{place}");
    }

    // Over a WebSocket: of one agent, to whom the turn begins where it comes to the agent.
    let mut over_socket = Vec::new();
    while over_socket.len() < TURN.len() - 1 {
        over_socket.push(socket.expect("turn.status", &["event"]).await["change"].clone());
    }
    assert_eq!(statuses(&over_socket), TURN[1..]);
    assert_eq!(over_socket[1..], told[2..]);
    // The agent plans from when it has the message, long before it has decided.
    let delivered = all.iter().find(|(_, _, event)| event["type"] == v1::AgentMessage::TYPE).unwrap();
    assert_eq!([&over_socket[0]["event_id"], &told[1]["event_id"]], [&delivered.2["event_id"]; 2]);

    // And for people.
    let shown = kairo(&world, &["turn", "show", &turn.to_string(), "--follow"]).await;
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    let begin: Vec<_> = lines(&shown).into_iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(begin.first().zip(begin.last()), Some((&TURN[1].to_owned(), &TURN[4].to_owned())), "{shown:?}");
    let shown = kairo(&world, &["turn", "show", &turn.to_string(), "--follow", "--json"]).await;
    let shown: Vec<Value> = lines(&shown).into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(statuses(&shown), TURN);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn the_status_of_a_turn_is_told_to_those_who_may_see_it_and_to_nobody_else() {
    let wanted = Wanted::new(SCENARIO).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__FRESHNESS_WAIT_MS", "60000");
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    assert_eq!(operator.post("/v1/agents", json!({ "agent": AGENT, "prompt": "Be brief." })).await.0, 201);
    let (_, key) = operator.make(json!({ "name": "ann", "scopes": ["read"], "user": "ann" })).await;
    let ann = Caller::new(&world, 0, Some(&key));
    let joes = asked(&world, &operator, "joe", "the time please").await;
    let hers = asked(&world, &operator, "ann", "the time please").await;
    for (query, first) in [("&after=0".to_owned(), 0), (format!("&after=0&agent={AGENT}"), 1)] {
        let turn = &TURN[first..];
        let shown = streamed(&ann, &query, None, hers).await;
        assert_eq!((statuses(&changes(&shown, hers)), changes(&shown, joes)), (turn.to_vec(), Vec::new()), "{query}");
        let all = streamed(&operator, &query, None, hers).await;
        assert_eq!(changes(&all, hers), changes(&shown, hers), "{query}");
        assert_eq!(statuses(&changes(&all, joes)), turn, "{query}");
    }
    world.end().await;
}
