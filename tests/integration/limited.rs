//! Keys that are limited to a user: what they see, and what they may order.

use std::collections::BTreeSet;

use futures::{SinkExt, StreamExt};
use jiff::Timestamp;
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    event_json::EventJson,
    ids,
    subjects::{self, LIVE_TOKEN, USER_MESSAGE},
};
use kairo_local::Service;
use kairo_proto::v1::{self, LiveToken, UserMessage};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};
use tonic::{client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;
use uuid::Uuid;

use crate::{
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, World, agent},
};

const AGENT: &str = "bob";
/// Two users, of whom one has the key.
const USERS: [&str; 2] = ["ann", "joe"];

/// "do it" runs a process that lasts longer than anything is waited for.
const LASTING: &str = r#"
rules:
  - name: lasting
    when: { user_contains: "do it" }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: sh, args: ["-c", "echo begun; exec sleep 600"] } }]
      - text: It is over.
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

struct Scene {
    world: World,
    operator: Caller,
    ann: Caller,
    /// Of each user: the correlation of the turn that lasts, its action, its process and its thread.
    turns: [Turn; 2],
}

struct Turn {
    correlation: Uuid,
    action: Value,
    process: Value,
    thread: String,
}

/// A world with the agent, the operator, and a key that is limited to ann.
async fn limited() -> (World, Caller, Caller) {
    let wanted = Wanted::new(LASTING).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__FRESHNESS_WAIT_MS", "60000");
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let profile = json!({ "agent": AGENT, "prompt": "You are a helpful agent." });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    let (_, key) = operator.make(json!({ "name": "ann", "scopes": ["read", "write"], "user": "ann" })).await;
    let ann = Caller::new(&world, 0, Some(&key));
    (world, operator, ann)
}

/// Both users have had an answer, and something of theirs is running.
async fn scene() -> Scene {
    let (world, operator, ann) = limited().await;
    let mut turns = Vec::new();
    for user in USERS {
        answered(&world, &operator, user).await;
        turns.push(begun(&world, &operator, user).await);
    }
    let turns = turns.try_into().unwrap_or_else(|_| unreachable!());
    Scene { world, operator, ann, turns }
}

async fn say(caller: &Caller, user: &str, text: &str) -> Uuid {
    let (status, said) = caller.post("/v1/messages", json!({ "user": user, "agent": AGENT, "text": text })).await;
    assert_eq!(status, 202, "{said}");
    said["correlation_id"].as_str().unwrap().parse().unwrap()
}

async fn answered(world: &World, caller: &Caller, user: &str) -> EventJson {
    let correlation = say(caller, user, "hello").await;
    world.log.wait(|event| event.correlation_id == correlation && event.is_final_reply()).await
}

async fn begun(world: &World, caller: &Caller, user: &str) -> Turn {
    let correlation = say(caller, user, "do it").await;
    let spawned = world
        .log
        .wait(|event| event.correlation_id == correlation && event.type_name == v1::ProcessSpawned::TYPE)
        .await;
    let payload = spawned.payload;
    let [action, process] = ["action_id", "process_id"].map(|field| payload[field].clone());
    Turn { correlation, action, process, thread: spawned.thread_id.unwrap() }
}

/// Returns the positions, up to `last`, of the events that concern ann: her messages and all that they set off.
async fn hers(world: &World, last: (u64, u32)) -> Vec<(u64, u32)> {
    let all = world.log.now(&world.bus).await;
    let begun = |event: &&EventJson| event.subject.starts_with("kairo.user.ann.");
    let turns: BTreeSet<Uuid> = all.iter().filter(begun).map(|event| event.correlation_id).collect();
    let hers = all.iter().filter(|event| turns.contains(&event.correlation_id));
    hers.map(|event| (event.sequence, event.position)).filter(|place| *place <= last).collect()
}

fn place(event: &Value) -> (u64, u32) {
    (event["sequence"].as_u64().unwrap(), u32::try_from(event["position"].as_u64().unwrap()).unwrap())
}

/// Returns the events of a stream up to the reply to her, which is the last.
async fn streamed(caller: &Caller, query: &str, reply: Uuid) -> Vec<Value> {
    shown_until(opened(caller, query).await, |shown| shown.last().is_some_and(|last| is_reply(last, reply))).await
}

async fn opened(caller: &Caller, query: &str) -> Response {
    let stream = caller.request(Method::GET, &format!("/v1/events/stream{query}")).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    stream
}

async fn shown_until(mut stream: Response, all: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let (mut text, mut events) = (String::new(), Vec::new());
    let reading = async {
        loop {
            text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().expect("the stream ended")).unwrap());
            while let Some((block, rest)) = text.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data: "));
                events.extend(data.map(|data| serde_json::from_str::<Value>(data).unwrap()));
                text = rest.to_owned();
                if all(&events) {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("not everything was shown");
    events
}

fn is_reply(event: &Value, turn: Uuid) -> bool {
    event["correlation_id"] == json!(turn) && event["payload"]["final"] == true
}

#[tokio::test]
async fn a_user_sees_what_concerns_them_and_nothing_else() {
    let Scene { world, operator, ann, turns } = scene().await;
    // One stream began before the last of it was said, and learns whose that is as it comes; one begins in the midst of a
    // turn, of which only the read model knows whose it is.
    let begun = turns[0].correlation;
    let midst = world.log.wait(|event| event.correlation_id == begun && event.type_name == v1::ToolInvoke::TYPE).await;
    let url = format!("{}/v1/ws", world.url("").replace("http://", "ws://"));
    let mut request = url.as_str().into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", ann.key()).parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    socket.send(Message::text(json!({ "type": "subscribe", "id": "s", "agent": AGENT }).to_string())).await.unwrap();
    let subscribed = async { while !socket.next().await.unwrap().unwrap().to_string().contains("subscribed") {} };
    tokio::time::timeout(DEADLINE, subscribed).await.unwrap();

    answered(&world, &operator, "joe").await;
    let reply = answered(&world, &operator, "ann").await;
    let last = (reply.sequence, reply.position);
    let expected = hers(&world, last).await;
    for (query, after) in [
        ("?after=0".to_owned(), (0, 0)),
        (format!("?agent={AGENT}&after={}", midst.sequence), (midst.sequence, u32::MAX)),
    ] {
        let shown: Vec<_> = streamed(&ann, &query, reply.correlation_id).await.iter().map(place).collect();
        let expected = expected.iter().copied().filter(|place| *place > after);
        let expected: Vec<_> = match query.contains("agent") {
            // Of the agent's subjects only.
            true => of_agent(&world, expected.collect()).await,
            false => expected.collect(),
        };
        assert_eq!(shown, expected, "{query}");
    }
    let mut shown = Vec::new();
    let reading = async {
        loop {
            let frame: Value = serde_json::from_str(&socket.next().await.unwrap().unwrap().to_string()).unwrap();
            shown.push(frame["event"]["correlation_id"].clone());
            if is_reply(&frame["event"], reply.correlation_id) {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("the reply was never shown");
    let turn = json!(reply.correlation_id);
    assert!(shown.iter().all(|correlation| *correlation == turn || *correlation == json!(begun)), "{shown:?}");

    // The history, in pages of which some hold little of hers.
    let (mut listed, mut after) = (Vec::new(), 0);
    loop {
        let (status, page) = ann.get(&format!("/v1/events?after={after}&limit=3&at_least={}", reply.sequence)).await;
        assert_eq!(status, 200, "{page}");
        listed.extend(page["events"].as_array().unwrap().iter().map(place));
        match page["next_after"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    listed.retain(|place| *place <= last);
    assert_eq!(listed, expected);

    for (path, list, id, index) in
        [("/v1/actions", "actions", "action_id", 0), ("/v1/processes", "processes", "process_id", 1)]
    {
        let ids = |answer: Value| -> BTreeSet<String> {
            answer[list].as_array().unwrap().iter().map(|row| row[id].as_str().unwrap().to_owned()).collect()
        };
        let of = |turn: &Turn| [&turn.action, &turn.process][index].as_str().unwrap().to_owned();
        assert_eq!(ids(ann.get(path).await.1), BTreeSet::from([of(&turns[0])]), "{path}");
        assert_eq!(ids(operator.get(path).await.1), turns.iter().map(of).collect(), "{path}");
        assert_eq!(ann.get(&format!("{path}/{}", of(&turns[0]))).await.0, 200);
        assert_eq!(ann.get(&format!("{path}/{}", of(&turns[1]))).await.0, 404);
    }
    ended(&world, &operator, &turns).await;
    world.end().await;
}

#[tokio::test]
async fn pieces_that_come_before_the_log_tells_whose_they_are_are_shown_then() {
    let (world, operator, ann) = limited().await;
    let threads = [answered(&world, &operator, "ann").await, answered(&world, &operator, "joe").await];
    let threads = threads.map(|reply| reply.thread_id.unwrap());
    // Whose the threads are the read model knows, and whose the turns are that are to begin nobody.
    world.projected().await;
    // Of all agents: a stream of one asks first for what was said live before, and holds the rest back meanwhile.
    let stream = opened(&ann, "?live=true").await;
    // What the gateway says is taken after what it subscribed to before.
    say(&operator, "ann", "hello").await;
    let turns = USERS.map(|user| {
        let envelope =
            Envelope::from_outside(ids::generate(), subjects::Service::Gateway, Origin::User, Timestamp::now());
        (user, envelope)
    });
    let call = |of: &str, thread: Option<&str>| format!("call of {of} in {thread:?}");
    let live = async |said: &Envelope, user: &str, thread: Option<&str>, index: u32| {
        let piece = LiveToken { index, text: index.to_string(), call_id: call(user, thread), ..Default::default() };
        let envelope =
            said.follow_up(ids::generate(), subjects::Service::AgentRuntime, Origin::Internal, Timestamp::now());
        let envelope = envelope.with_thread(thread.unwrap_or_default());
        world.bus.publish_live(&OutgoingEvent::new(&LIVE_TOKEN, &agent(AGENT), envelope, piece)).await;
    };
    for index in 0..3 {
        for (user, said) in &turns {
            // Of nobody's thread, of their own, and of the other's.
            for thread in [None, Some(threads[0].as_str()), Some(threads[1].as_str())] {
                live(said, user, thread, index).await;
            }
        }
    }
    for (user, said) in turns.iter().rev() {
        let text =
            UserMessage { user: (*user).into(), agent: AGENT.into(), text: "hello".into(), ..Default::default() };
        world.bus.publish(&OutgoingEvent::new(&USER_MESSAGE, &agent(user), said.clone(), text)).await.unwrap();
    }
    let of_test = |shown: &&Value| shown["call_id"].as_str().is_some_and(|call| call.starts_with("call of"));
    let turn = turns[0].1.correlation_id;
    let shown = shown_until(stream, |shown| {
        shown.iter().filter(of_test).count() >= 6 && shown.iter().any(|event| is_reply(event, turn))
    });
    let shown = shown.await;
    let pieces: Vec<_> = shown.iter().filter(of_test).map(|piece| [&piece["call_id"], &piece["text"]]).collect();
    for thread in [None, Some(threads[0].as_str())] {
        let hers = pieces.iter().filter(|[of, _]| **of == call("ann", thread)).map(|[_, text]| *text);
        assert_eq!(hers.collect::<Vec<_>>(), ["0", "1", "2"], "{pieces:?}");
    }
    assert_eq!(pieces.len(), 6, "{pieces:?}");
    world.end().await;
}

/// Those of the places that stand on the agent's subjects.
async fn of_agent(world: &World, places: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
    let all = world.log.now(&world.bus).await;
    let of_agent = all.iter().filter(|event| event.subject.split('.').nth(2) == Some(AGENT));
    let of_agent: BTreeSet<_> = of_agent.map(|event| (event.sequence, event.position)).collect();
    places.into_iter().filter(|place| of_agent.contains(place)).collect()
}

/// Stops what still runs, and waits until it has ended.
async fn ended(world: &World, operator: &Caller, turns: &[Turn]) {
    for (turn, user) in turns.iter().zip(USERS) {
        let order = json!({ "user": user, "agent": AGENT, "command": "cancel", "action_id": turn.action });
        assert_eq!(operator.post("/v1/commands", order).await.0, 202);
        let over = |event: &EventJson| event.correlation_id == turn.correlation && event.is_final_reply();
        world.log.wait(over).await;
    }
}

#[tokio::test]
async fn a_user_gives_orders_about_what_is_theirs() {
    let Scene { world, operator, ann, turns } = scene().await;
    let order = |command: &str, field: &str, value: &Value| {
        let mut order = json!({ "user": "ann", "agent": AGENT, "command": command });
        order[field] = value.clone();
        order
    };
    let nobodys = json!(Uuid::nil());
    let [of_ann, of_joe] = &turns;
    let thread = |turn: &Turn| json!(turn.thread);
    // What is somebody else's is as good as not there.
    for (path, field, body) in [
        ("/v1/commands", "action_id", order("cancel", "action_id", &of_joe.action)),
        ("/v1/commands", "process_id", order("cancel", "process_id", &of_joe.process)),
        ("/v1/commands", "thread_id", order("archive", "thread_id", &thread(of_joe))),
        ("/v1/commands", "chain_id", order("cancel", "chain_id", &nobodys)),
        ("/v1/commands", "task_id", order("pause", "task_id", &nobodys)),
        (
            "/v1/approvals",
            "action_id",
            json!({ "user": "ann", "agent": AGENT, "action_id": of_joe.action, "verdict": "happened" }),
        ),
        ("/v1/choices", "offer_id", json!({ "user": "ann", "agent": AGENT, "offer_id": nobodys, "option": "accept" })),
        // Nor is what is hers at another agent.
        (
            "/v1/commands",
            "action_id",
            json!({ "user": "ann", "agent": "eve", "command": "cancel", "action_id": of_ann.action }),
        ),
    ] {
        let before = world.end_of_log().await;
        let (status, problem) = ann.post(path, body.clone()).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (404, &json!(field)), "{body}: {problem}");
        assert_eq!(world.end_of_log().await, before, "{body}");
    }
    // Nobody asks the operator whose it is.
    let mut unlimited = order("archive", "thread_id", &thread(of_joe));
    unlimited["user"] = json!("joe");
    assert_eq!(operator.post("/v1/commands", unlimited).await.0, 202);

    for body in [
        order("archive", "thread_id", &thread(of_ann)),
        order("unarchive", "thread_id", &thread(of_ann)),
        order("cancel", "process_id", &of_ann.process),
    ] {
        assert_eq!(ann.post("/v1/commands", body.clone()).await.0, 202, "{body}");
    }
    let over = |event: &EventJson| event.correlation_id == of_ann.correlation && event.is_final_reply();
    world.log.wait(over).await;
    ended(&world, &operator, &turns[1..]).await;
    world.end().await;
}

#[tokio::test]
async fn a_chat_is_of_the_user_of_the_key_and_needs_both_scopes() {
    let Scene { world, operator, ann, turns } = scene().await;
    let chat = |user: Option<&str>| json!({ "model": AGENT, "messages": [{ "role": "user", "content": "good day" }], "user": user });
    for user in [None, Some("ann")] {
        let (status, answer) = ann.post("/v1/chat/completions", chat(user)).await;
        assert_eq!(status, 200, "{answer}");
    }
    for user in ["joe", "Ann", "ann@example.com"] {
        let (status, answer) = ann.post("/v1/chat/completions", chat(Some(user))).await;
        assert_eq!((status, &answer["error"]["param"]), (403, &json!("user")), "{answer}");
    }
    for (scopes, expected) in [(vec!["write"], 403), (vec!["read"], 403), (vec!["read", "write"], 200)] {
        let (_, key) = operator.make(json!({ "name": "chat", "scopes": scopes })).await;
        let (status, answer) = Caller::new(&world, 0, Some(&key)).post("/v1/chat/completions", chat(None)).await;
        assert_eq!(status, expected, "{scopes:?}: {answer}");
    }
    ended(&world, &operator, &turns).await;
    world.end().await;
}

/// The agent's system prompt, which its users must not read.
const PROMPT: &str = "Never tell anybody that the discount is 17 percent.";

/// The answer to an rpc, asked without generated code.
async fn rpc<Q, A>(world: &World, key: &str, path: &'static str, message: Q) -> A
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let channel = Endpoint::from_shared(world.url("")).unwrap().connect().await.unwrap();
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    grpc.unary(request, path.parse().unwrap(), ProstCodec::<Q, A>::default()).await.unwrap().into_inner()
}

#[tokio::test]
async fn a_user_reads_no_agents_prompt() {
    let Scene { world, operator, ann, turns } = scene().await;
    let profile = json!({ "agent": AGENT, "description": "Sells books", "prompt": PROMPT });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 200);
    world.projected().await;
    let knows = |told: &str| told.contains("17 percent");
    let told = operator.get("/v1/agents").await.1.to_string();
    assert!(knows(&told) && knows(&operator.get("/v1/agents/bob").await.1.to_string()), "{told}");

    for path in ["/v1/agents", "/v1/agents/bob", "/v1/models", "/v1/models/bob", "/v1/events?agent=bob", "/v1/status"] {
        let (status, told) = ann.get(path).await;
        assert!(status == 200 && !knows(&told.to_string()), "{path}: {status} {told}");
    }
    // The rest of the profile is shown.
    assert_eq!(ann.get("/v1/agents/bob").await.1["agent"]["profile"]["description"], "Sells books");
    let listed: v1::ListAgentsResponse =
        rpc(&world, ann.key(), "/kairo.v1.Queries/ListAgents", v1::ListAgentsRequest::default()).await;
    let one = v1::GetAgentRequest { agent: AGENT.to_owned(), ..Default::default() };
    let one: v1::GetAgentResponse = rpc(&world, ann.key(), "/kairo.v1.Queries/GetAgent", one).await;
    for profile in [listed.agents[0].profile.clone(), one.agent.unwrap().profile] {
        let profile = profile.unwrap();
        assert_eq!((profile.prompt.as_str(), profile.description.as_str()), ("", "Sells books"));
    }
    let reply = say(&ann, "ann", "hello").await;
    let shown = streamed(&ann, "?after=0", reply).await;
    assert!(!shown.is_empty() && !shown.iter().any(|event| knows(&event.to_string())), "{shown:?}");
    ended(&world, &operator, &turns).await;
    world.end().await;
}

/// Nobody thinks here: what teams are is in their definitions.
#[tokio::test]
async fn a_user_sees_and_orders_their_own_teams_only() {
    let wanted = Wanted::new(LASTING).replicas(Service::AgentRuntime, 0);
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__FRESHNESS_WAIT_MS", "60000");
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    for (team, owner) in [("hers", "ann"), ("his", "joe")] {
        let team = json!({
            "team": team, "owner": owner, "mission": format!("Secrets of {owner}."), "lead": { "prompt": "You lead." },
            "workers": [{ "name": "w", "prompt": "You work." }],
        });
        assert_eq!(operator.post("/v1/teams", team).await.0, 201);
    }
    world.projected().await;
    let (_, key) = operator.make(json!({ "name": "ann", "scopes": ["read", "write"], "user": "ann" })).await;
    let ann = Caller::new(&world, 0, Some(&key));
    let names = |shown: &Value| -> Vec<String> {
        shown["teams"].as_array().unwrap().iter().map(|team| team["team"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&operator.get("/v1/teams").await.1), ["hers", "his"]);
    assert_eq!(names(&ann.get("/v1/teams").await.1), ["hers"]);
    assert_eq!((ann.get("/v1/teams/hers").await.0, ann.get("/v1/teams/his").await.0), (200, 404));
    let (_, agents) = ann.get("/v1/agents").await;
    assert!(agents.to_string().contains("Secrets of ann") && !agents.to_string().contains("joe"), "{agents}");
    // Nor does she order about what is his, by whatever name.
    let order = |user: &str, team: &str| json!({ "user": user, "agent": team, "command": "pause", "team": team });
    let before = world.end_of_log().await;
    for (user, team, status) in
        [("ann", "his", 404), ("joe", "his", 403), ("ann", "his-w", 404), ("ann", "hers-w", 404)]
    {
        assert_eq!(ann.post("/v1/commands", order(user, team)).await.0, status, "{user} {team}");
    }
    assert_eq!(world.end_of_log().await, before);
    assert_eq!(ann.post("/v1/commands", order("ann", "hers")).await.0, 202);
    // A key that is limited to agents sees the teams whose leads it may speak to.
    let (_, key) = operator.make(json!({ "name": "x", "scopes": ["admin"], "agents": ["his", "hers-w"] })).await;
    let some = Caller::new(&world, 0, Some(&key));
    assert_eq!(names(&some.get("/v1/teams").await.1), ["his"]);
    assert_eq!((some.get("/v1/teams/his").await.0, some.get("/v1/teams/hers").await.0), (200, 404));
    let team = json!({
        "team": "his", "owner": "joe", "mission": "Mine.", "lead": { "prompt": "You lead." },
        "workers": [{ "name": "w", "prompt": "You work." }],
    });
    assert_eq!(some.post("/v1/teams", team).await.0, 403);
}
