//! API keys: who may do what, how often, and from which pages.

use std::{path::Path, time::Duration};

use futures::{SinkExt, StreamExt};
use kairo_gateway::{Access, KeyRequirement, LimitRule, Scope};
use kairo_local::{Service, StackOptions};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::{
    websocket::client::refusal,
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

/// The key of the operator.
pub const ADMIN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";
const PAGE: &str = "https://app.example.com";

pub fn guarded() -> Wanted {
    Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always").env(
        Service::Gateway,
        "KAIRO_GATEWAY__ADMIN_KEY",
        ADMIN,
    )
}

/// A client of one gateway with one key.
#[derive(Clone)]
pub struct Caller {
    http: Client,
    url: String,
    key: Option<String>,
}

impl Caller {
    pub fn new(world: &World, gateway: usize, key: Option<&str>) -> Self {
        let replica = &world.stack.replicas(Service::Gateway)[gateway];
        Self { http: Client::new(), url: replica.url().unwrap().to_owned(), key: key.map(str::to_owned) }
    }

    /// The text of its key.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap()
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.request(method, path);
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::POST, path, Some(body)).await
    }

    /// Makes a key, and returns its id and its text.
    pub async fn make(&self, wanted: Value) -> (String, String) {
        let (status, made) = self.post("/v1/keys", wanted).await;
        assert_eq!(status, 201, "{made}");
        let [id, key] = ["key_id", "key"].map(|field| made[field].as_str().unwrap().to_owned());
        (id, key)
    }

    async fn say(&self, agent: Option<&str>, user: &str) -> (u16, Value) {
        let message = json!({ "user": user, "agent": agent, "text": "hello" });
        self.post("/v1/messages", message).await
    }

    /// Waits until an answer has this status: what one gateway did the other hears of in a moment.
    async fn until(&self, status: u16) {
        let waiting = async { while self.get("/v1/status").await.0 != status {} };
        tokio::time::timeout(DEADLINE, waiting).await.expect("the other gateway never heard of it");
    }
}

/// The status of an endpoint, asked for as it is in the table and with nothing more.
async fn status(caller: &Caller, access: &Access) -> u16 {
    // Of the names of agents in paths, the one of a model is asked for by the endpoint itself.
    let path = access.path.replace("{agent}", "default").replace("{model}", "bob").replace(['{', '}'], "");
    let method: Method = access.method.parse().unwrap();
    let request = caller.request(method.clone(), &path);
    let request = if method == Method::POST { request.json(&json!({})) } else { request };
    // A stream is not waited for.
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn every_endpoint_asks_for_its_scope() {
    let world = guarded().start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let nobody = Caller::new(&world, 0, None);
    let mut keys = Vec::new();
    for scopes in [vec!["read"], vec!["write"], vec!["read", "write"], vec!["admin"]] {
        let (_, key) = operator.make(json!({ "name": "test", "scopes": scopes })).await;
        keys.push((scopes, Caller::new(&world, 0, Some(&key))));
    }
    for access in kairo_gateway::endpoints() {
        let found = status(&nobody, access).await;
        assert_eq!(found == 401, access.needs != KeyRequirement::Nothing, "{access:?}: {found}");
        for (scopes, caller) in &keys {
            let has = |scope: Scope| scopes.contains(&scope.name()) || scopes.contains(&"admin");
            let may = match access.needs {
                KeyRequirement::Nothing | KeyRequirement::Key => true,
                KeyRequirement::Scope(scope) => has(scope),
                KeyRequirement::Both(one, other) => has(one) && has(other),
            };
            let found = status(caller, access).await;
            assert_eq!(found != 403, may, "{access:?} with {scopes:?}: {found}");
            assert_ne!(found, 401, "{access:?} with {scopes:?}");
        }
    }
    // Nor is who has no key told what there is not.
    assert_eq!(nobody.get("/v1/nothing").await.0, 401);
    // What is no key, or that of nobody, is all the same.
    let (id, key) = operator.make(json!({ "name": "test", "scopes": ["read"] })).await;
    let (wrong, unknown) = (format!("kairo_{id}_{}", "a".repeat(52)), key.replace(&id, &"a".repeat(16)));
    let mut answers = Vec::new();
    for other in ["x", &wrong, &unknown, &format!("{key}a"), &ADMIN[1..]] {
        let answer = Caller::new(&world, 0, Some(other)).request(Method::GET, "/v1/status").send().await.unwrap();
        assert_eq!(answer.headers()["www-authenticate"], "Bearer realm=\"kairo\"");
        let mut problem: Value = answer.json().await.unwrap();
        problem.as_object_mut().unwrap().remove("instance");
        answers.push(problem);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer["status"] == 401), "{answers:?}");
    let in_url = nobody.get(&format!("/v1/status?key={key}")).await;
    assert_eq!(in_url.0, 401);
    world.end().await;
}

/// The status of an endpoint that is asked for about this agent and user, by its path, its query and its body.
async fn status_about(caller: &Caller, access: &Access, [agent, user]: [&str; 2], named: [bool; 3]) -> u16 {
    let [in_path, in_query, in_body] = named;
    let [of_agent, of_user] = if in_path { [agent, user] } else { ["bob", "ann"] };
    let path = access.path.replace("{agent}", of_agent).replace("{model}", of_agent).replace("{user}", of_user);
    let mut query = Vec::new();
    // What it must name is named; beside that, perhaps, somebody else.
    if access.agents == LimitRule::Named && access.method == "GET" {
        query.push("agent=bob".to_owned());
    }
    if access.user == LimitRule::Named {
        query.push("user=ann".to_owned());
    }
    if in_query {
        query.extend([format!("agent={agent}"), format!("user={user}")]);
    }
    let path = format!("{}?{}", path.replace(['{', '}'], ""), query.join("&"));
    let request = caller.request(access.method.parse().unwrap(), &path);
    let body = if in_body { json!({ "agent": agent, "user": user }) } else { json!({}) };
    let request = if access.method == "POST" { request.json(&body) } else { request };
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn every_endpoint_holds_every_limit_of_a_key() {
    let world = guarded().start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    for agent in ["bob", "eve"] {
        let profile = json!({ "agent": agent, "prompt": "You are a helpful agent." });
        assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    }
    world.settled().await;
    let before = world.end_of_log().await;
    for (limit, by_agent, by_user) in [
        (json!({ "agents": ["bob"] }), true, false),
        (json!({ "user": "ann" }), false, true),
        (json!({ "agents": ["bob"], "user": "ann" }), true, true),
    ] {
        let mut wanted = json!({ "name": "limited", "scopes": ["admin"] });
        wanted.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
        let (_, key) = operator.make(wanted).await;
        let limited = Caller::new(&world, 0, Some(&key));
        for access in kairo_gateway::endpoints().filter(|access| access.needs != KeyRequirement::Nothing) {
            let is_closed =
                (by_agent && access.agents == LimitRule::Closed) || (by_user && access.user == LimitRule::Closed);
            let own = status_about(&limited, access, ["bob", "ann"], [true, false, false]).await;
            assert_eq!(own == 403, is_closed, "{access:?} with {limit}: {own}");
            let has = |place: &str| access.path.contains(place);
            let in_path = (by_agent && (has("{agent}") || has("{model}"))) || (by_user && has("{user}"));
            // What chat clients call a user is none of these, and bytes are no JSON.
            let in_body = access.method == "POST"
                && !["/v1/chat/completions", "/v1/objects"].contains(&access.path)
                && ![access.agents, access.user].contains(&LimitRule::Free);
            for (named, is_refused) in
                [([true, false, false], in_path), ([false, true, false], true), ([false, false, true], in_body)]
            {
                let other = status_about(&limited, access, ["eve", "joe"], named).await;
                assert!(!is_refused || other == 403, "{access:?} with {limit}: {other} where {named:?} names others");
            }
        }
    }
    // A whole conversation, in the agent of somebody else.
    let (_, key) = operator.make(json!({ "name": "hers", "scopes": ["write"], "agents": ["bob"] })).await;
    let hers = Caller::new(&world, 0, Some(&key));
    let document = json!({
        "format": "kairo.conversation.v1", "agent": "bob", "user": "ann", "threads": [{ "thread_id": "t" }],
        "messages": [{ "thread_id": "t", "role": "user", "text": "hello" }],
    });
    let import = json!({ "document": document });
    for path in ["/v1/conversations/eve/import?agent=bob", "/v1/conversations/%65ve/import?agent=bob"] {
        let (status, problem) = hers.post(path, import.clone()).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (403, &json!("agent")), "{path}: {problem}");
    }
    assert_eq!(world.end_of_log().await, before, "nothing of all that was written");
    assert_eq!(hers.post("/v1/conversations/bob/import", import).await.0, 202);
    world.end().await;
}

#[tokio::test]
async fn a_limited_key_speaks_for_its_own() {
    let world = guarded().start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    for agent in ["bob", "eve"] {
        let profile = json!({ "agent": agent, "prompt": "You are a helpful agent." });
        assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
        assert_eq!(operator.say(Some(agent), "joe").await.0, 202);
    }
    world.settled().await;
    let wanted = json!({ "name": "shop", "scopes": ["read", "write"], "agents": ["bob"], "user": "ann" });
    let (id, key) = operator.make(wanted).await;
    let shop = Caller::new(&world, 0, Some(&key));
    let told = json!({
        "principal": format!("api_key:{id}"), "scopes": ["read", "write"], "agents": ["bob"], "user": "ann",
    });
    assert_eq!(shop.get("/v1/whoami").await, (200, told));
    let told = json!({ "principal": "api_key:gateway.admin_key", "scopes": ["read", "write", "admin"] });
    assert_eq!(operator.get("/v1/whoami").await, (200, told));
    assert_eq!(shop.say(Some("bob"), "ann").await.0, 202);
    for (agent, user, field) in [(Some("eve"), "ann", "agent"), (None, "ann", "agent"), (Some("bob"), "joe", "user")] {
        let (status, problem) = shop.say(agent, user).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (403, &json!(field)), "{problem}");
    }
    world.settled().await;
    let (_, agents) = shop.get("/v1/agents").await;
    let names: Vec<_> = agents["agents"].as_array().unwrap().iter().map(|agent| &agent["agent"]).collect();
    assert_eq!(names, [&json!("bob")]);
    for (path, expected) in [
        ("/v1/conversations/bob?user=ann", 200),
        ("/v1/conversations/bob?user=joe", 403),
        ("/v1/conversations/eve?user=ann", 403),
        ("/v1/threads?agent=bob&user=ann", 200),
        ("/v1/threads?agent=bob&agent=eve&user=ann", 403),
        ("/v1/threads?agent=&user=ann", 403),
        ("/v1/tasks?agent=bob", 403),
    ] {
        assert_eq!(shop.get(path).await.0, expected, "{path}");
    }
    // What belongs to others is not there.
    let (_, threads) = operator.get("/v1/threads?status=all").await;
    for thread in threads["threads"].as_array().unwrap() {
        let id = thread["thread_id"].as_str().unwrap();
        let own = thread["agent"] == "bob" && thread["user"] == "ann";
        // Nor may an agent be named that is somebody else's.
        let expected = if own {
            200
        } else if thread["agent"] == "bob" {
            404
        } else {
            403
        };
        let (status, _) = shop.get(&format!("/v1/threads/{id}?agent={}", thread["agent"].as_str().unwrap())).await;
        assert_eq!(status, expected, "{thread}");
        let path = format!("/v1/threads/{id}/messages?agent={}", thread["agent"].as_str().unwrap());
        assert_eq!(shop.get(&path).await.0, expected, "{thread}");
    }
    // What was said is found by whoever may read the conversation.
    for (path, expected) in [
        ("/v1/search?in=message&agent=bob&user=ann", 200),
        ("/v1/search?in=message&agent=bob&user=joe", 403),
        ("/v1/search?in=message&agent=eve&user=ann", 403),
        ("/v1/search?in=message", 403),
    ] {
        assert_eq!(shop.get(path).await.0, expected, "{path}");
    }
    let (_, found) = shop.get("/v1/search?in=message&agent=bob&user=ann").await;
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.len() >= 2 && hits.iter().all(|hit| hit["user"] == "ann" && hit["agent"] == "bob"), "{found}");
    let (_, all) = operator.get("/v1/search?in=message&user=joe").await;
    assert!(all["total"].as_u64().unwrap() >= 4, "he spoke with both agents: {all}");
    world.end().await;
}

/// The events of a stream, until it ends.
async fn drained(mut stream: Response) {
    let ending = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(DEADLINE, ending).await.expect("the stream never ended");
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_others_outlive_every_restart() {
    let mut world = guarded().replicas(Service::Gateway, 2).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let (kept_id, kept) = operator.make(json!({ "name": "kept", "scopes": ["read"] })).await;
    let (id, key) = operator.make(json!({ "name": "lost", "scopes": ["read", "write"] })).await;
    let [here, there] = [0, 1].map(|gateway| Caller::new(&world, gateway, Some(&key)));
    there.until(200).await;

    // Both ways to follow the log, each with the key.
    let stream = there.request(Method::GET, "/v1/events/stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let address = format!("{}/v1/ws", there.url.replace("http://", "ws://"));
    let with = |key: &str| {
        let mut request = address.as_str().into_client_request().unwrap();
        let offered = format!("kairo.v1, kairo.key.{key}");
        request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
        request
    };
    assert_eq!(refusal(with("x")).await, 401);
    assert_eq!(refusal(address.as_str().into_client_request().unwrap()).await, 401);
    let (mut socket, response) = connect_async(with(&key)).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "kairo.v1");
    socket.send(Message::text(json!({ "type": "subscribe", "id": "s" }).to_string())).await.unwrap();

    assert_eq!(operator.send(Method::DELETE, &format!("/v1/keys/{id}"), None).await.0, 200);
    assert_eq!(here.get("/v1/status").await.0, 401);
    there.until(401).await;
    drained(stream).await;
    let closing = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(frame)))) => return frame.reason.to_string(),
                Some(Ok(_)) => {}
                // What has ended says so at once, for ever.
                ended => panic!("the connection ended without a reason: {ended:?}"),
            }
        }
    };
    let reason = tokio::time::timeout(DEADLINE, closing).await.expect("the connection never ended");
    assert!(reason.contains("revoked"), "{reason}");
    assert_eq!(operator.send(Method::DELETE, &format!("/v1/keys/{id}"), None).await.0, 404);

    // One that expires ends the same way.
    let soon = jiff::Timestamp::now() + Duration::from_secs(3);
    let (_, short) = operator.make(json!({ "name": "short", "scopes": ["read"], "expires_at": soon })).await;
    let short = Caller::new(&world, 0, Some(&short));
    let stream = short.request(Method::GET, "/v1/events/stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    drained(stream).await;
    assert_eq!(short.get("/v1/status").await.0, 401);

    world.nats.kill9().await.unwrap();
    world.nats.restart().await.unwrap();
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    for gateway in [0, 1] {
        Caller::new(&world, gateway, Some(&kept)).until(200).await;
        Caller::new(&world, gateway, Some(&key)).until(401).await;
    }
    let (_, keys) = Caller::new(&world, 0, Some(ADMIN)).get("/v1/keys").await;
    assert!(keys["keys"].as_array().unwrap().iter().any(|key| key["key_id"] == kept_id), "{keys}");
    let logs = world.workplace("x").ancestors().nth(2).unwrap().join("logs");
    no_secrets(&logs, &[ADMIN, &kept, &key, kept.rsplit('_').next().unwrap(), key.rsplit('_').next().unwrap()]);
    world.end().await;
}

/// Every log of the stack, looked through.
fn no_secrets(logs: &Path, secrets: &[&str]) {
    let mut looked_at = 0;
    for file in std::fs::read_dir(logs).unwrap().flatten() {
        let text = String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
        looked_at += 1;
        for secret in secrets {
            assert!(!text.contains(secret), "{} holds a key", file.path().display());
        }
    }
    assert!(looked_at >= 7, "{looked_at} logs");
}

#[tokio::test]
async fn requests_are_counted_named_and_let_in_from_pages_that_may() {
    let world = guarded()
        .env(Service::Gateway, "KAIRO_GATEWAY__RATE_PER_S", "1")
        .env(Service::Gateway, "KAIRO_GATEWAY__RATE_BURST", "5")
        .env(Service::Gateway, "KAIRO_GATEWAY__CORS_ORIGINS", json!([PAGE]).to_string())
        .start()
        .await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let (_, key) = operator.make(json!({ "name": "page", "scopes": ["read"] })).await;
    let page = Caller::new(&world, 0, Some(&key));
    let nobody = Caller::new(&world, 0, None);

    // A browser asks first, without the key, and not from just any page.
    let asks = |origin: &'static str| {
        let request = nobody.request(Method::OPTIONS, "/v1/events").header("origin", origin);
        let request = request.header("access-control-request-method", "GET");
        request.header("access-control-request-headers", "authorization").send()
    };
    let told = asks(PAGE).await.unwrap();
    assert_eq!((told.status().as_u16(), told.headers()["access-control-allow-origin"].to_str().unwrap()), (200, PAGE));
    let allowed = told.headers()["access-control-allow-headers"].to_str().unwrap().to_lowercase();
    assert!(allowed.contains("authorization"), "{allowed}");
    let refused = asks("https://other.example.com").await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers().get("access-control-allow-origin")), (403, None));
    let read = page.request(Method::GET, "/v1/agents").header("origin", PAGE).send().await.unwrap();
    assert_eq!((read.status().as_u16(), read.headers()["access-control-allow-origin"].to_str().unwrap()), (200, PAGE));

    // A request is called what the client calls it, or gets a name.
    let named = page.request(Method::GET, "/v1/nothing").header("origin", PAGE).header("x-request-id", "r-7");
    let named = named.send().await.unwrap();
    assert_eq!((named.status().as_u16(), named.headers()["x-request-id"].to_str().unwrap()), (404, "r-7"));
    assert_eq!(named.headers()["access-control-allow-origin"], PAGE);
    assert_eq!(named.json::<Value>().await.unwrap()["instance"], "urn:kairo:request:r-7");
    let other = page.request(Method::GET, "/v1/agents").header("x-request-id", "a b").send().await.unwrap();
    assert_eq!(other.headers()["x-request-id"].len(), 36);

    // Each key has its own count, and those who bring none have theirs.
    for caller in [&page, &nobody] {
        let limited = async {
            loop {
                let answer = caller.request(Method::GET, "/v1/agents").send().await.unwrap();
                if answer.status() == 429 {
                    return answer;
                }
            }
        };
        let limited = tokio::time::timeout(DEADLINE, limited).await.expect("nothing was ever too much");
        let wait: u64 = limited.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=2).contains(&wait), "{wait}");
        assert_eq!(limited.headers()["content-type"], "application/problem+json");
    }
    assert_eq!(nobody.get("/healthz").await.0, 200);
    assert_eq!(operator.get("/v1/agents").await.0, 200);
    world.end().await;
}

#[tokio::test]
async fn a_gateway_is_called_by_its_address_and_by_names_that_are_listed() {
    for remote in ["true", "false"] {
        let world = guarded()
            .env(Service::Gateway, "KAIRO_GATEWAY__ALLOW_REMOTE", remote)
            .env(Service::Gateway, "KAIRO_GATEWAY__ALLOWED_HOSTS", "kairo.example.com,gateway")
            .start()
            .await;
        let operator = Caller::new(&world, 0, Some(ADMIN));
        let by = |host: &'static str| operator.request(Method::GET, "/v1/status").header("host", host).send();
        for host in ["kairo.example.com", "gateway:7420", "localhost:1", "127.0.0.1"] {
            assert_eq!(by(host).await.unwrap().status(), 200, "{host}");
        }
        // Whoever gives the gateway's address a name of their own.
        for host in ["evil.example.com", "evil.kairo.example.com", "kairo.example.com.evil.example.com"] {
            let refused = by(host).await.unwrap();
            assert_eq!(refused.status(), 403, "{host}");
            let problem: Value = refused.json().await.unwrap();
            assert!(problem["detail"].as_str().unwrap().contains("gateway.allowed_hosts"), "{problem}");
        }
        world.end().await;
    }
}

#[tokio::test]
async fn the_command_makes_lists_and_revokes_keys() {
    let world = guarded().start().await;
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let kairo = async |key: &str, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--url").arg(world.url("")).args(arguments).env("KAIRO_API_KEY", key);
        let output = command.output().await.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let create =
        ["keys", "create", "--name", "the shop", "--scope", "read,write", "--agent", "bob", "--expires", "30d"];
    let (code, key, said) = kairo(ADMIN, &create).await;
    assert_eq!(code, Some(0), "{said}");
    let key = key.trim();
    let id = key.split('_').nth(1).unwrap();
    assert!(said.contains(id) && !said.contains(key), "{said}");

    let (_, list, _) = kairo(ADMIN, &["keys", "list"]).await;
    assert!(
        list.contains(id) && list.contains("the shop") && !list.contains(key.rsplit('_').next().unwrap()),
        "{list}"
    );
    assert_eq!(kairo(key, &["status"]).await.0, Some(0));
    assert!(kairo(key, &["keys", "list"]).await.2.contains("admin"));

    // From a file, too.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{key}\n")).unwrap();
    let by_file = ["--key-file", file.path().to_str().unwrap(), "status"];
    assert_eq!(kairo("", &by_file).await.0, Some(0));

    assert_eq!(kairo(ADMIN, &["keys", "revoke", id]).await.0, Some(0));
    let (code, _, said) = kairo(key, &["status"]).await;
    assert!(code != Some(0) && said.contains("API key") && !said.contains(key), "{said}");
    world.end().await;
}
