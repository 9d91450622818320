//! gRPC: clients that know nothing but what reflection tells them do what HTTP clients do, behind the same doors.

mod client;

use async_nats::HeaderMap;
use futures::StreamExt;
use kairo_local::Service;
use kairo_proto::v1::{self, Place, StreamRequest, StreamResponse, stream_response::Shown};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::{
    Code, Request, Status, Streaming,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::world::{DEADLINE, Wanted, World, scenario::USUAL};
use client::Python;

/// The key of the operator.
const ADMIN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";
const SERVICES: [&str; 7] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "kairo.v1.Administration",
    "kairo.v1.Commands",
    "kairo.v1.Events",
    "kairo.v1.Queries",
];

fn address(world: &World) -> String {
    world.url("").strip_prefix("http://").unwrap().to_owned()
}

/// A client in Python that knows nothing but what reflection tells it; none where Python has no gRPC.
pub fn python_client(world: &World) -> Option<Python> {
    Python::start(&address(world), None)
}

/// The events of a stream, as they came.
fn events(told: &Value) -> Vec<&Value> {
    told.as_array().unwrap().iter().filter_map(|told| told.get("event")).collect()
}

#[tokio::test]
async fn a_client_needs_nothing_but_reflection() {
    let world = Wanted::new(USUAL).start().await;
    let Some(mut python) = Python::start(&address(&world), None) else { return };
    let services = python.ask("services", json!([])).await.unwrap();
    assert_eq!(services, json!(SERVICES));
    let health = json!(["grpc.health.v1.Health/Check", { "service": "kairo.v1.Queries" }]);
    assert_eq!(python.ask("call", health).await.unwrap(), json!({ "status": "SERVING" }));

    let profile = json!({ "agent": "bob", "prompt": "You are a helpful agent.", "tools": ["tools.*"] });
    let defined = python.call("Commands/DefineAgent", profile).await.unwrap();
    let said = json!({ "user": "ann", "agent": "bob", "text": "the time please", "message_id": "m-1" });
    let accepted = python.call("Commands/SendMessage", said.clone()).await.unwrap();
    assert_eq!(accepted["message_id"], "m-1");
    // The same words with the same id are the same message.
    assert_eq!(python.call("Commands/SendMessage", said).await.unwrap(), accepted);

    // It is followed from before it to its reply, which is the last of it.
    let begin = json!({ "after": { "sequence": defined["sequence"] }, "correlation": accepted["correlation_id"] });
    let told = python.stream("Events/Stream", begin, r#"\"final\":true"#).await.unwrap();
    assert_eq!(told[0], json!({ "start": { "sequence": defined["sequence"] } }));
    let followed = events(&told);
    let (first, last) = (followed[0], *followed.last().unwrap());
    assert_eq!((&first["event_id"], &first["type"]), (&accepted["event_id"], &json!(v1::UserMessage::TYPE)));
    assert!(followed.iter().all(|event| event["correlation_id"] == accepted["correlation_id"]));
    let reply: Value = serde_json::from_str(last["payload"]["text"].as_str().unwrap()).unwrap();

    // What the reply led to is known to whoever asks for it.
    let at_least = &last["sequence"];
    let asked = json!({ "agent": "bob", "user": "ann", "at_least": at_least, "limit": 1 });
    let page = python.call("Queries/GetConversation", asked).await.unwrap();
    assert_eq!(page["messages"][0]["text"], "the time please");
    let rest = json!({ "agent": "bob", "user": "ann", "after": page["next_after"] });
    let rest = python.call("Queries/GetConversation", rest).await.unwrap();
    let rest = rest["messages"].as_array().unwrap();
    assert_eq!(rest.last().unwrap()["text"], reply["text"]);
    assert!(rest.iter().all(|said| said["role"] == "agent"), "{rest:?}");
    let threads = python.call("Queries/ListThreads", json!({ "agent": "bob" })).await.unwrap();
    let id = &threads["threads"][0]["thread_id"];
    let thread = python.call("Queries/GetThread", json!({ "thread_id": id, "agent": "bob" })).await.unwrap();
    assert_eq!(thread["thread"], threads["threads"][0]);
    assert!(
        thread["position"].as_str().unwrap().parse::<u64>().unwrap() >= at_least.as_str().unwrap().parse().unwrap()
    );
    drop(python);
    world.end().await;
}

#[tokio::test]
async fn both_interfaces_say_the_same() {
    let world = Wanted::new(USUAL).start().await;
    world.define("bob").await;
    let sent = world.send("bob", "the time please").await;
    world.reply(&sent).await;
    world.publish("kairo.user.ann.message", HeaderMap::new(), "hello?").await;
    world.dead_letters(1).await;
    world.settled().await;
    let made = reqwest::Client::new().post(world.url("/v1/keys"));
    made.json(&json!({ "name": "shop", "scopes": ["read"], "user": "ann" })).send().await.unwrap();
    let Some(mut python) = Python::start(&address(&world), None) else { return };
    let asked = [
        ("Queries/ListAgents", json!({}), "/v1/agents"),
        ("Queries/ListTeams", json!({}), "/v1/teams"),
        ("Queries/ListThoughts", json!({ "agent": "bob" }), "/v1/agents/bob/thoughts"),
        ("Queries/ListSubmodules", json!({ "agent": "bob" }), "/v1/agents/bob/submodules"),
        ("Queries/ListBriefings", json!({ "user": "ann" }), "/v1/briefings?user=ann"),
        ("Queries/ListThreads", json!({ "status": "all" }), "/v1/threads?status=all"),
        ("Queries/GetConversation", json!({ "agent": "bob" }), "/v1/conversations/bob"),
        ("Queries/ListEvents", json!({ "after": { "sequence": 1 } }), "/v1/events?after=1"),
        ("Queries/GetEventsOutline", json!({ "buckets": 5 }), "/v1/events/outline?buckets=5"),
        ("Queries/GetInbox", json!({ "user": "ann" }), "/v1/inbox?user=ann"),
        ("Queries/ListActions", json!({}), "/v1/actions"),
        ("Queries/ListProcesses", json!({ "running": false }), "/v1/processes?running=false"),
        ("Queries/ListTasks", json!({ "status": "open" }), "/v1/tasks?status=open"),
        ("Queries/ListMemories", json!({ "scope": "recent" }), "/v1/memories?scope=recent"),
        ("Queries/ListInnerState", json!({ "agent": "bob" }), "/v1/agents/bob/inner-state"),
        ("Queries/Search", json!({ "facets": true }), "/v1/search?facets=true"),
        ("Administration/ListKeys", json!({}), "/v1/keys"),
        ("Administration/ListDeadLetters", json!({ "limit": 1 }), "/v1/dead-letters?limit=1"),
        ("Administration/GetAgentLog", json!({ "agent": "bob" }), "/v1/agents/bob/log"),
    ];
    world.projected().await;
    let thread = world.get("/v1/threads?agent=bob").await.1["threads"][0]["thread_id"].as_str().unwrap().to_owned();
    let (messages, turn) = (format!("/v1/threads/{thread}/messages"), format!("/v1/interactions/{}", sent.event_id));
    let of_one = [
        ("Queries/ListThreadMessages", json!({ "thread_id": thread }), messages.as_str()),
        ("Queries/GetInteraction", json!({ "turn_id": sent.event_id }), turn.as_str()),
    ];
    for (rpc, request, path) in asked.into_iter().chain(of_one) {
        let told = python.call(rpc, request).await.unwrap();
        let (status, shown) = world.get(path).await;
        assert_eq!(status, 200, "{shown}");
        assert!(told.is_object() && told != json!({}) || rpc == "Queries/GetInbox", "{rpc}: {told}");
        same(rpc, &told, &shown);
    }
    drop(python);
    world.end().await;
}

/// JSON, which messages hold as text.
fn json_of(text: Option<&Value>) -> Option<Value> {
    serde_json::from_str(text?.as_str()?).ok()
}

/// Checks that the message equals the JSON. Texts may stand for numbers, and empty values may be missing.
fn same(at: &str, told: &Value, shown: &Value) {
    let nothing = |value: &Value| {
        value.is_null() || [json!(""), json!(0), json!(false), json!([]), json!({}), json!(0.0)].contains(value)
    };
    match (told, shown) {
        (Value::Object(told), shown) if told.len() == 1 && json_of(told.get("text")).as_ref() == Some(shown) => {}
        (Value::Object(told), Value::Object(shown)) => {
            for (field, shown) in shown {
                let told = told.get(field).unwrap_or(&Value::Null);
                assert!(!told.is_null() || nothing(shown), "{at}.{field} is missing, which is {shown}");
                if !told.is_null() {
                    same(&format!("{at}.{field}"), told, shown);
                }
            }
        }
        (Value::Array(told), Value::Array(shown)) => {
            assert_eq!(told.len(), shown.len(), "{at}");
            told.iter().zip(shown).for_each(|(told, shown)| same(at, told, shown));
        }
        (Value::String(told), Value::Number(shown)) => assert_eq!(*told, shown.to_string(), "{at}"),
        (Value::String(told), Value::String(shown)) if told != shown => {
            let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap_or_else(|_| panic!("{at}: {told}, {shown}"));
            assert_eq!(time(told), time(shown), "{at}");
        }
        (told, shown) => assert_eq!(told, shown, "{at}"),
    }
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_fields() {
    let world = Wanted::new(USUAL).start().await;
    let Some(mut python) = Python::start(&address(&world), None) else { return };
    let wrong = python.call("Commands/SendMessage", json!({ "user": "Ann", "message_id": "a b" })).await.unwrap_err();
    assert_eq!(wrong["code"], "INVALID_ARGUMENT");
    let detail = |error: &Value, kind: &str| {
        error["details"].as_array().unwrap().iter().find(|it| it["kind"] == kind).cloned().unwrap_or_default()
    };
    let fields = |error: &Value| {
        let violations = detail(error, "BadRequest")["field_violations"].as_array().cloned().unwrap_or_default();
        violations.iter().map(|wrong| wrong["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fields(&wrong), ["user", "text", "message_id"]);
    assert!(wrong["message"].as_str().unwrap().contains("1 to 64 of the characters"), "{wrong}");
    let wrong = python.call("Queries/ListTasks", json!({ "status": "done", "limit": 100_000 })).await.unwrap_err();
    assert_eq!(
        (&wrong["code"], fields(&wrong)),
        (&json!("INVALID_ARGUMENT"), vec!["status".to_owned(), "limit".to_owned()])
    );
    let wrong = python.call("Queries/GetTask", json!({})).await.unwrap_err();
    assert_eq!((&wrong["code"], fields(&wrong)), (&json!("INVALID_ARGUMENT"), vec!["task_id".to_owned()]));
    let wrong = python.stream("Events/Stream", json!({ "agent": "A", "after": { "sequence": 7 } }), "x").await;
    assert_eq!(fields(&wrong.unwrap_err()), ["agent"]);
    let wrong = python.stream("Events/Stream", json!({ "after": { "sequence": 70_000 } }), "x").await;
    assert_eq!(fields(&wrong.unwrap_err()), ["after"]);

    let unknown = json!({ "task_id": "00000000-0000-7000-8000-000000000000" });
    let unknown = python.call("Queries/GetTask", unknown).await.unwrap_err();
    assert_eq!(unknown["code"], "NOT_FOUND");
    let early = python.call("Queries/ListAgents", json!({ "at_least": 1_000_000, "wait_ms": 0 })).await.unwrap_err();
    assert_eq!(early["code"], "UNAVAILABLE");
    let info = detail(&early, "ErrorInfo");
    assert_eq!((&info["reason"], &info["metadata"]["wanted"]), (&json!("urn:kairo:problem:behind"), &json!("1000000")));
    assert!(detail(&early, "RetryInfo")["retry_delay"].is_string(), "{early}");
    let large = json!({ "user": "ann", "text": "x".repeat(600_000) });
    assert_eq!(python.call("Commands/SendMessage", large).await.unwrap_err()["code"], "OUT_OF_RANGE");
    drop(python);
    world.end().await;
}

/// A key as the operator makes it over HTTP.
async fn key(world: &World, wanted: Value) -> String {
    let request = reqwest::Client::new().request(Method::POST, world.url("/v1/keys")).bearer_auth(ADMIN);
    let made: Value = request.json(&wanted).send().await.unwrap().json().await.unwrap();
    made["key"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

fn guarded() -> Wanted {
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
}

#[tokio::test]
async fn keys_allow_the_same_over_grpc() {
    let world = guarded().start().await;
    let address = address(&world);
    let reader = key(&world, json!({ "name": "reader", "scopes": ["read"] })).await;
    let shop = json!({ "name": "shop", "scopes": ["read", "write"], "agents": ["bob_1"], "user": "ann" });
    let shop = key(&world, shop).await;
    let Some(mut nobody) = Python::start(&address, None) else { return };
    let mut nonsense = Python::start(&address, Some("kairo_x_y")).unwrap();
    for python in [&mut nobody, &mut nonsense] {
        // What there is, and whether it takes work, is told to anybody; nothing else is.
        assert_eq!(python.ask("services", json!([])).await.unwrap(), json!(SERVICES));
        for service in ["Administration", "Commands", "Queries"] {
            let rpcs = python.ask("rpcs", json!([format!("kairo.v1.{service}")])).await.unwrap();
            for rpc in rpcs.as_array().unwrap() {
                let refused = python.call(&format!("{service}/{}", rpc.as_str().unwrap()), json!({})).await;
                assert_eq!(refused.unwrap_err()["code"], "UNAUTHENTICATED", "{service}/{rpc}");
            }
        }
        let refused = python.stream("Events/Stream", json!({}), "start").await;
        assert_eq!(refused.unwrap_err()["code"], "UNAUTHENTICATED");
    }
    let mut python = Python::start(&address, Some(&reader)).unwrap();
    assert!(python.call("Queries/ListAgents", json!({})).await.is_ok());
    assert!(python.stream("Events/Stream", json!({}), "start").await.is_ok());
    let said = json!({ "user": "ann", "agent": "bob_1", "text": "hello" });
    let profile = json!({ "agent": "bob_1", "prompt": "You are a helpful agent." });
    for (rpc, message) in [("Commands/SendMessage", &said), ("Commands/DefineAgent", &profile)] {
        assert_eq!(python.call(rpc, message.clone()).await.unwrap_err()["code"], "PERMISSION_DENIED", "{rpc}");
    }
    let mut limited = Python::start(&address, Some(&shop)).unwrap();
    assert!(limited.call("Commands/SendMessage", said).await.is_ok());
    let mine = json!({ "agent": "bob_1", "user": "ann" });
    assert!(limited.call("Queries/GetConversation", mine).await.is_ok());
    // Her own agent, wherever the route names it.
    for rpc in ["ListThoughts", "ListSubmodules"] {
        let shown = limited.call(&format!("Queries/{rpc}"), json!({ "agent": "bob_1" })).await;
        // What there is not, she may be told.
        assert!(shown.as_ref().err().is_none_or(|error| error["code"] == "NOT_FOUND"), "{rpc}: {shown:?}");
    }
    let document = json!({
        "format": "kairo.conversation.v1", "agent": "bob_1", "user": "ann", "threads": [{ "thread_id": "t" }],
        "messages": [{ "thread_id": "t", "role": "user", "text": "hello" }],
    });
    for (rpc, message, field) in [
        ("Commands/SendMessage", json!({ "user": "ann", "agent": "eve", "text": "hello" }), "agent"),
        ("Commands/SendMessage", json!({ "user": "joe", "agent": "bob_1", "text": "hello" }), "user"),
        ("Queries/GetConversation", json!({ "agent": "eve", "user": "ann" }), "agent"),
        ("Queries/ListThreads", json!({ "agent": "bob_1", "user": "joe" }), "user"),
        ("Queries/ListThoughts", json!({ "agent": "eve" }), "agent"),
        ("Queries/ListSubmodules", json!({ "agent": "eve" }), "agent"),
        ("Queries/ListInnerState", json!({ "agent": "eve", "user": "ann" }), "agent"),
        ("Commands/ImportConversation", json!({ "agent": "eve", "document": document }), "agent"),
        ("Commands/ImportConversation", json!({ "agent": "bob_1", "user": "joe", "document": document }), "user"),
    ] {
        let refused = limited.call(rpc, message).await.unwrap_err();
        assert_eq!(refused["code"], "PERMISSION_DENIED", "{rpc}");
        assert!(refused["details"].to_string().contains(&format!(r#""field":"{field}""#)), "{refused}");
    }
    let closed = limited.call("Queries/GetChain", json!({ "chain_id": "7" })).await.unwrap_err();
    assert!(["PERMISSION_DENIED", "INVALID_ARGUMENT"].contains(&closed["code"].as_str().unwrap()), "{closed}");
    drop((nobody, nonsense, python, limited));
    world.end().await;
}

#[tokio::test]
async fn operators_do_the_same_over_grpc() {
    let world = guarded().start().await;
    let address = address(&world);
    let Some(mut operator) = Python::start(&address, Some(ADMIN)) else { return };
    operator.call("Commands/DefineAgent", json!({ "agent": "bob", "prompt": "You are helpful." })).await.unwrap();

    // A key is good from when it is made until it is revoked.
    let wanted = json!({ "name": "shop", "scopes": ["read"], "agents": ["bob"], "expires_at": "2126-11-21T10:00:00Z" });
    let made = operator.call("Administration/MakeKey", wanted).await.unwrap();
    let listed = operator.call("Administration/ListKeys", json!({})).await.unwrap();
    let mut without_text = made.clone();
    let text = without_text.as_object_mut().unwrap().remove("key").unwrap();
    assert_eq!(listed, json!({ "keys": [without_text] }));
    let mut shop = Python::start(&address, Some(text.as_str().unwrap())).unwrap();
    assert!(shop.call("Queries/ListThreads", json!({ "agent": "bob" })).await.is_ok());
    assert!(shop.call("Administration/ListProjections", json!({})).await.is_ok());
    for rpc in ["ListKeys", "MakeKey", "ListDeadLetters", "PromoteFleet", "GetAgentLog", "SwapProjection"] {
        let refused = shop.call(&format!("Administration/{rpc}"), json!({})).await.unwrap_err();
        assert_eq!(refused["code"], "PERMISSION_DENIED", "{rpc}");
    }
    let ticket = shop.call("Administration/MakeTicket", json!({})).await.unwrap();
    let opened = world.url(&format!("/v1/events/stream?agent=bob&ticket={}", ticket["ticket"].as_str().unwrap()));
    assert_eq!(reqwest::get(opened).await.unwrap().status(), 200);
    let revoked = operator.call("Administration/RevokeKey", json!({ "key_id": made["key_id"] })).await.unwrap();
    assert_eq!(revoked, json!({ "key_id": made["key_id"], "revoked": true }));
    let refused = shop.call("Queries/ListThreads", json!({ "agent": "bob" })).await.unwrap_err();
    assert_eq!(refused["code"], "UNAUTHENTICATED");

    // What is wrong is named as in the endpoints, and what is not there is not found.
    for (rpc, message, code) in [
        ("RevokeKey", json!({ "key_id": made["key_id"] }), "NOT_FOUND"),
        ("RevokeKey", json!({ "key_id": "kairo_a_b" }), "INVALID_ARGUMENT"),
        ("MakeKey", json!({ "name": "x" }), "INVALID_ARGUMENT"),
        ("DigestProjection", json!({ "projection": "nothing" }), "NOT_FOUND"),
        ("RebuildProjection", json!({}), "NOT_FOUND"),
        ("SwapProjection", json!({ "projection": "read-model" }), "FAILED_PRECONDITION"),
        ("DropGeneration", json!({ "projection": "read-model", "generation": 77 }), "NOT_FOUND"),
        ("DropGeneration", json!({ "projection": "read-model" }), "INVALID_ARGUMENT"),
    ] {
        let refused = operator.call(&format!("Administration/{rpc}"), message.clone()).await.unwrap_err();
        assert_eq!(refused["code"], code, "{rpc} {message}: {refused}");
    }
    let projections = operator.call("Administration/ListProjections", json!({})).await.unwrap();
    let live = &projections["projections"][0]["live"];
    let asked = json!({ "projection": "read-model" });
    let digests = operator.call("Administration/DigestProjection", asked.clone()).await.unwrap();
    assert_eq!((&digests["equal"], &digests["generations"][0]["generation"]), (&json!(true), live));
    let begun = operator.call("Administration/RebuildProjection", asked).await.unwrap();
    assert_ne!(begun["rebuilding"][0]["generation"], *live);
    let promoted = operator.call("Administration/PromoteFleet", json!({})).await.unwrap();
    let status = operator.call("Queries/GetStatus", json!({})).await.unwrap();
    assert_eq!((&promoted["epoch"], &promoted["before"]), (&status["epoch"], &status["epoch"]));
    let replicas: Vec<&str> =
        status["services"].as_array().unwrap().iter().map(|it| it["service"].as_str().unwrap()).collect();
    assert!(replicas.contains(&"gateway") && replicas.contains(&"projector"), "{status}");
    drop((operator, shop));
    world.end().await;
}

async fn connected(world: &World) -> Channel {
    Endpoint::from_shared(world.url("")).unwrap().connect().await.unwrap()
}

/// Opens a stream without generated code.
async fn stream(
    channel: Channel,
    message: StreamRequest,
    key: Option<&str>,
) -> Result<Streaming<StreamResponse>, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let mut request = Request::new(message);
    if let Some(key) = key {
        request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    }
    let path = "/kairo.v1.Events/Stream".parse().unwrap();
    let codec = ProstCodec::<StreamRequest, StreamResponse>::default();
    Ok(grpc.server_streaming(request, path, codec).await?.into_inner())
}

async fn next(stream: &mut Streaming<StreamResponse>) -> Result<Shown, Status> {
    let told = timeout(DEADLINE, stream.next()).await.expect("the stream is silent").expect("the stream broke off");
    told.map(|told| told.shown.unwrap())
}

#[tokio::test]
async fn a_stream_goes_on_where_another_ended() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define("bob").await;
    let wish = |after| StreamRequest { agent: "bob".to_owned(), after: Some(after), ..Default::default() };
    let mut first = stream(connected(&world).await, wish(Place::default()), None).await.unwrap();
    assert!(matches!(next(&mut first).await, Ok(Shown::Start(Place { sequence: 0, position: None }))));
    let Ok(Shown::Event(defined)) = next(&mut first).await else { panic!("no event") };
    assert_eq!(defined.r#type, v1::AgentDefined::TYPE);
    // A gateway that stops says so, and does not wait for its clients to go.
    world.stack.stop_one(Service::Gateway, 0).await.unwrap();
    let ended = loop {
        match next(&mut first).await {
            Ok(Shown::KeepAlive(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(ended) => break ended,
        }
    };
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    assert!(ended.message().contains("the gateway is stopping"), "{ended:?}");
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let sent = world.send("bob", "hello").await;
    world.reply(&sent).await;
    let place = Place { sequence: defined.sequence, position: Some(defined.position) };
    let mut second = stream(connected(&world).await, wish(place), None).await.unwrap();
    assert!(matches!(next(&mut second).await, Ok(Shown::Start(start)) if start == place));
    let Ok(Shown::Event(event)) = next(&mut second).await else { panic!("no event") };
    assert!(event.sequence > defined.sequence);
    assert_eq!(event.correlation_id, sent.event_id.to_string());
    drop(second);
    world.end().await;
}

#[tokio::test]
async fn a_stream_shows_that_it_lives_and_ends_with_its_key() {
    let wanted = guarded().env(Service::Gateway, "KAIRO_GATEWAY__HEARTBEAT_MS", "100");
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__MAX_STREAMS", "1").start().await;
    let reader = key(&world, json!({ "name": "reader", "scopes": ["read"] })).await;
    let channel = connected(&world).await;
    let wish = || StreamRequest { agent: "nobody".to_owned(), ..Default::default() };
    let mut only = stream(channel.clone(), wish(), Some(&reader)).await.unwrap();
    assert!(matches!(next(&mut only).await, Ok(Shown::Start(_))));
    assert!(matches!(next(&mut only).await, Ok(Shown::KeepAlive(_))));
    let full = stream(channel.clone(), wish(), Some(&reader)).await.unwrap_err();
    assert_eq!(full.code(), Code::Unavailable, "{full:?}");
    let id = reader.split('_').nth(1).unwrap();
    let revoking =
        reqwest::Client::new().request(Method::DELETE, world.url(&format!("/v1/keys/{id}"))).bearer_auth(ADMIN);
    assert!(revoking.send().await.unwrap().status().is_success());
    let ended = loop {
        if let Err(ended) = next(&mut only).await {
            break ended;
        }
    };
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended:?}");
    drop((only, channel));
    world.end().await;
}
