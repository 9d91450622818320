//! Tokens of an issuer that is trusted, beside API keys: on every way in, and refused whatever is wrong with them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{Json, Router, http::StatusCode, routing::get};
use data_encoding::BASE64URL_NOPAD;
use futures::{SinkExt, StreamExt};
use jiff::Timestamp;
use kairo_local::Service;
use kairo_proto::v1;
use reqwest::{Method, Response};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};
use tonic::{Code, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

use crate::{
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

pub const ISSUER: &str = "https://login.example.com/";

/// A key of the issuer, and the algorithm it signs with.
pub enum SigningKey {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl SigningKey {
    pub fn es256() -> Self {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &SystemRandom::new());
        Self::Es256(pair.unwrap())
    }

    fn eddsa() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::EdDsa(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::EdDsa(_) => "EdDSA",
        }
    }

    fn public(&self) -> &[u8] {
        match self {
            Self::Es256(pair) => pair.public_key().as_ref(),
            Self::EdDsa(pair) => pair.public_key().as_ref(),
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Es256(pair) => pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Self::EdDsa(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    pub fn jwk(&self, id: &str) -> Value {
        let encode = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        match self {
            // An uncompressed point: 4, and its two coordinates.
            Self::Es256(_) => {
                let (x, y) = self.public()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": encode(x), "y": encode(y) })
            }
            Self::EdDsa(_) => json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(self.public()) }),
        }
    }

    pub fn token(&self, id: &str, claims: &Value) -> String {
        let message = unsigned(&json!({ "alg": self.algorithm(), "kid": id, "typ": "JWT" }), claims);
        format!("{message}.{}", BASE64URL_NOPAD.encode(&self.sign(message.as_bytes())))
    }
}

fn unsigned(header: &Value, claims: &Value) -> String {
    [header, claims].map(|part| BASE64URL_NOPAD.encode(part.to_string().as_bytes())).join(".")
}

/// The server of an issuer: what keys it tells of, and how often it was asked.
#[derive(Clone)]
struct Issuer {
    url: String,
    /// None answers with an error.
    keys: Arc<Mutex<Option<BTreeMap<String, Value>>>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap());
        let (keys, asked) = (Arc::new(Mutex::new(Some(BTreeMap::new()))), Arc::new(AtomicUsize::new(0)));
        let issuer = Self { url, keys, asked };
        let answering = issuer.clone();
        let answer = move || {
            answering.asked.fetch_add(1, Ordering::SeqCst);
            let keys = answering.keys.lock().unwrap().clone();
            async move {
                let keys = keys.ok_or(StatusCode::INTERNAL_SERVER_ERROR)?;
                Ok::<_, StatusCode>(Json(json!({ "keys": keys.into_values().collect::<Vec<_>>() })))
            }
        };
        tokio::spawn(axum::serve(listener, Router::new().route("/jwks", get(answer))).into_future());
        issuer
    }

    /// Tells of these keys, and of no others.
    fn tell(&self, keys: &[(&str, &SigningKey)]) {
        let keys = keys.iter().map(|(id, key)| ((*id).to_owned(), key.jwk(id)));
        *self.keys.lock().unwrap() = Some(keys.collect());
    }

    fn fail(&self) {
        *self.keys.lock().unwrap() = None;
    }

    /// A world whose gateway trusts it, with these settings changed.
    fn trusted(&self, change: Value) -> Wanted {
        trusting(&[self.settings(change)])
    }

    /// Returns the issuer's settings with these changes.
    fn settings(&self, change: Value) -> Value {
        let mut issuer = json!({
            "issuer": ISSUER, "audience": ["kairo"], "jwks_url": self.url, "algorithms": ["ES256", "EdDSA"],
            "clock_skew_ms": 0, "jwks_refresh_ms": 3_600_000, "jwks_max_age_ms": 3_600_000, "jwks_retry_ms": 100,
        });
        issuer.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        issuer
    }
}

/// A world whose gateway trusts these issuers.
fn trusting(issuers: &[Value]) -> Wanted {
    Wanted::new(USUAL)
        .env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always")
        .env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
        .env(Service::Gateway, "KAIRO_GATEWAY__OIDC", json!(issuers).to_string())
}

#[tokio::test]
async fn users_of_two_issuers_with_the_same_claim_are_two() {
    let servers = [Issuer::start().await, Issuer::start().await, Issuer::start().await];
    let (key, issuers) = (SigningKey::es256(), [ISSUER, "https://other.example.com/", "https://third.example.com/"]);
    servers.iter().for_each(|server| server.tell(&[("a", &key)]));
    let settings =
        |at: usize, prefix: &str| servers[at].settings(json!({ "issuer": issuers[at], "user_prefix": prefix }));
    let world = trusting(&[settings(0, ""), settings(1, ""), settings(2, "third")]).start().await;
    let profile = json!({ "agent": "default", "prompt": "Answer." });
    assert_eq!(caller(&world, ADMIN).post("/v1/agents", profile).await.0, 201);
    let of = |at: usize, sub: &str| caller(&world, &key.token("a", &claims(json!({ "iss": issuers[at], "sub": sub }))));
    let mut users = Vec::new();
    for at in 0..3 {
        let ann = of(at, "ann");
        until(&ann, 200).await;
        users.push(ann.get("/v1/whoami").await.1["user"].as_str().unwrap().to_owned());
    }
    assert_eq!((users[0].as_str(), users[2].as_str()), ("ann", "third-ann"));
    assert!(users[1].starts_with("oidc-") && users[1].ends_with("-ann"), "{users:?}");
    // What each says is theirs alone, and nobody speaks as another.
    for (at, user) in users.iter().enumerate() {
        let said = json!({ "user": user, "text": format!("from {at}") });
        assert_eq!(of(at, "ann").post("/v1/messages", said.clone()).await.0, 202);
        for other in (0..3).filter(|other| *other != at) {
            assert_eq!(of(other, "ann").post("/v1/messages", said.clone()).await.0, 403, "{other} as {at}");
        }
    }
    world.settled().await;
    world.projected().await;
    for (at, user) in users.iter().enumerate() {
        let (status, told) = of(at, "ann").get(&format!("/v1/conversations/default?user={user}")).await;
        assert!(status == 200 && told.to_string().contains(&format!("from {at}")), "{told}");
    }
    // Nor by a name of the first issuer's own that looks like theirs.
    for at in [1, 2] {
        assert_eq!(of(0, &users[at]).get("/v1/whoami").await.0, 401, "{users:?}");
    }
    world.end().await;
}

fn in_seconds(seconds: i64) -> i64 {
    Timestamp::now().as_second() + seconds
}

/// The claims of a good token of ann's, with these changed.
pub fn claims(change: Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": "kairo", "sub": "ann", "exp": in_seconds(3_600), "scope": "openid kairo:read kairo:write",
    });
    claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    claims
}

fn caller(world: &World, token: &str) -> Caller {
    Caller::new(world, 0, Some(token))
}

/// Waits until an answer has this status: the gateway may not have the keys yet.
async fn until(caller: &Caller, status: u16) {
    let waiting = async { while caller.get("/v1/status").await.0 != status {} };
    tokio::time::timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("it was never {status}"));
}

#[tokio::test]
async fn a_token_is_taken_only_if_nothing_is_wrong_with_it() {
    let (issuer, key, edwards) = (Issuer::start().await, SigningKey::es256(), SigningKey::eddsa());
    issuer.tell(&[("a", &key), ("e", &edwards)]);
    let world = issuer.trusted(json!({ "jwks_retry_ms": 3_600_000 })).start().await;
    let good = key.token("a", &claims(json!({})));
    until(&caller(&world, &good), 200).await;
    assert_eq!(caller(&world, &edwards.token("e", &claims(json!({})))).get("/v1/status").await.0, 200);
    assert_eq!(
        caller(&world, &key.token("a", &claims(json!({ "aud": ["x", "kairo"] })))).get("/v1/status").await.0,
        200
    );

    let signed = |header: Value, claims: &Value, sign: &dyn Fn(&[u8]) -> Vec<u8>| {
        let message = unsigned(&header, claims);
        format!("{message}.{}", BASE64URL_NOPAD.encode(&sign(message.as_bytes())))
    };
    // Whoever knows the public key, as everybody does, signs with it as if it were a secret.
    let with_public = |secret: &[u8]| {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        signed(json!({ "alg": "HS256", "kid": "a" }), &claims(json!({})), &|message| {
            hmac::sign(&secret, message).as_ref().to_vec()
        })
    };
    let other = SigningKey::es256();
    let (head, signature) = good.rsplit_once('.').unwrap();
    let raised = claims(json!({ "scope": "kairo:admin" }));
    let changed = format!("{}.{signature}", unsigned(&json!({ "alg": "ES256", "kid": "a", "typ": "JWT" }), &raised));
    let mut cases = vec![
        ("alg none", format!("{}.", unsigned(&json!({ "alg": "none", "kid": "a" }), &claims(json!({}))))),
        ("alg none, signed", format!("{}.{signature}", unsigned(&json!({ "alg": "none" }), &claims(json!({}))))),
        ("HS256 with the point", with_public(key.public())),
        ("HS256 with the JWK", with_public(key.jwk("a").to_string().as_bytes())),
        ("another's key", other.token("a", &claims(json!({})))),
        ("an unknown key", other.token("b", &claims(json!({})))),
        ("another key's name", key.token("e", &claims(json!({})))),
        ("no signature", format!("{head}.")),
        ("other claims", changed),
        ("ES384", signed(json!({ "alg": "ES384", "kid": "a" }), &claims(json!({})), &|message| key.sign(message))),
        ("no token", "eyJ".to_owned()),
        ("a long one", key.token("a", &claims(json!({ "more": "x".repeat(14_000) })))),
    ];
    for (what, change) in [
        ("audience", json!({ "aud": "other" })),
        ("no audience", json!({ "aud": null })),
        ("issuer", json!({ "iss": "https://evil.example.com/" })),
        ("issuer without its slash", json!({ "iss": ISSUER.trim_end_matches('/') })),
        ("expired", json!({ "exp": in_seconds(-5) })),
        ("without end", json!({ "exp": null })),
        ("not yet", json!({ "nbf": in_seconds(600) })),
        ("nobody", json!({ "sub": null })),
        ("no user's name", json!({ "sub": "Ann Smith" })),
    ] {
        cases.push((what, key.token("a", &claims(change))));
    }
    for (what, token) in cases {
        let answer = caller(&world, &token).request(Method::GET, "/v1/status").send().await.unwrap();
        assert_eq!(answer.status(), 401, "{what}");
        // It is not told what is wrong.
        let problem: Value = answer.json().await.unwrap();
        assert!(problem["detail"].as_str().unwrap().contains("API key"), "{what}: {problem}");
    }
    // Keys go on as they did.
    assert_eq!(caller(&world, ADMIN).get("/v1/keys").await.0, 200);
    world.end().await;
}

#[tokio::test]
async fn claims_are_the_user_the_scopes_and_the_agents() {
    let (issuer, key) = (Issuer::start().await, SigningKey::es256());
    issuer.tell(&[("a", &key)]);
    let world = issuer.trusted(json!({ "agents_claim": "agents" })).start().await;
    let operator = caller(&world, ADMIN);
    for agent in ["bob", "eve"] {
        let profile = json!({ "agent": agent, "prompt": "You are a helpful agent." });
        assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    }
    let bearer = |change: Value| {
        let mut claims = claims(json!({ "agents": ["bob"] }));
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        caller(&world, &key.token("a", &claims))
    };
    let ann = bearer(json!({}));
    until(&ann, 200).await;
    let say = |agent: &str, user: &str| json!({ "user": user, "agent": agent, "text": "hello" });
    assert_eq!(ann.post("/v1/messages", say("bob", "ann")).await.0, 202);
    for (agent, user) in [("eve", "ann"), ("bob", "joe")] {
        assert_eq!(ann.post("/v1/messages", say(agent, user)).await.0, 403, "{agent} {user}");
    }
    assert_eq!(ann.get("/v1/keys").await.0, 403);
    let reader = bearer(json!({ "scope": "kairo:read" }));
    assert_eq!((reader.get("/v1/status").await.0, reader.post("/v1/messages", say("bob", "ann")).await.0), (200, 403));
    assert_eq!(bearer(json!({ "scope": "read write admin" })).get("/v1/status").await.0, 403);
    // Without the claim that limits it, it is not unlimited.
    for none in [Value::Null, json!([])] {
        assert_eq!(bearer(json!({ "agents": none })).get("/v1/status").await.0, 401);
    }
    let said = world.log.wait(|event| event.type_name == v1::UserMessage::TYPE).await;
    assert_eq!(said.entered_by.as_deref(), Some("app_user:https://login.example.com/|ann"));
    world.end().await;
}

#[tokio::test]
async fn keys_are_changed_and_their_server_may_be_away() {
    let (issuer, old, new) = (Issuer::start().await, SigningKey::es256(), SigningKey::es256());
    // Without keys nobody can be known, and nothing is wrong with the token.
    issuer.fail();
    let world = issuer.trusted(json!({ "jwks_refresh_ms": 1_000 })).start().await;
    let by_old = caller(&world, &old.token("old", &claims(json!({}))));
    assert_eq!(by_old.get("/v1/status").await.0, 503);
    issuer.tell(&[("old", &old)]);
    until(&by_old, 200).await;
    // A key that it has just begun to use is fetched when a token names it.
    issuer.tell(&[("old", &old), ("new", &new)]);
    let by_new = caller(&world, &new.token("new", &claims(json!({}))));
    until(&by_new, 200).await;
    // While it is away, what is known goes on.
    issuer.fail();
    let asked = issuer.asked.load(Ordering::SeqCst);
    let failing = async {
        while issuer.asked.load(Ordering::SeqCst) < asked + 2 {
            assert_eq!((by_old.get("/v1/status").await.0, by_new.get("/v1/status").await.0), (200, 200));
        }
    };
    tokio::time::timeout(DEADLINE, failing).await.expect("it is not asked again");
    // One that it no longer tells of is refused soon.
    issuer.tell(&[("new", &new)]);
    until(&by_old, 401).await;
    assert_eq!(by_new.get("/v1/status").await.0, 200);
    world.end().await;
}

#[tokio::test]
async fn made_up_keys_are_not_asked_for_each_time_and_old_ones_are_not_trusted_for_ever() {
    let (issuer, key) = (Issuer::start().await, SigningKey::es256());
    issuer.tell(&[("a", &key)]);
    let settings = json!({ "jwks_retry_ms": 3_600_000, "jwks_refresh_ms": 3_600_000, "jwks_max_age_ms": 3_600_000 });
    let world = issuer.trusted(settings).start().await;
    until(&caller(&world, &key.token("a", &claims(json!({})))), 200).await;
    for made_up in 0..50 {
        let token = key.token(&format!("x{made_up}"), &claims(json!({})));
        assert_eq!(caller(&world, &token).get("/v1/status").await.0, 401);
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
    world.end().await;

    let world = issuer.trusted(json!({ "jwks_refresh_ms": 500, "jwks_max_age_ms": 2_000 })).start().await;
    let bearer = caller(&world, &key.token("a", &claims(json!({}))));
    until(&bearer, 200).await;
    issuer.fail();
    until(&bearer, 503).await;
    world.end().await;
}

#[tokio::test]
async fn keys_can_be_in_a_file() {
    let (issuer, key) = (Issuer::start().await, SigningKey::es256());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), json!({ "keys": [key.jwk("a")] }).to_string()).unwrap();
    let world = issuer.trusted(json!({ "jwks_url": "", "jwks_file": file.path() })).start().await;
    until(&caller(&world, &key.token("a", &claims(json!({})))), 200).await;
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 0);
    world.end().await;
}

/// Reads a stream to its end.
async fn drained(mut stream: Response) {
    let ending = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(DEADLINE, ending).await.expect("the stream never ended");
}

#[tokio::test]
async fn every_way_in_takes_tokens_and_streams_end_with_them() {
    let (issuer, key) = (Issuer::start().await, SigningKey::es256());
    issuer.tell(&[("a", &key)]);
    let world = issuer.trusted(json!({})).start().await;
    until(&caller(&world, &key.token("a", &claims(json!({})))), 200).await;
    // Long enough to open everything, and soon over.
    let token = key.token("a", &claims(json!({ "exp": in_seconds(10) })));
    let ann = caller(&world, &token);

    let stream = ann.request(Method::GET, "/v1/events/stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let ticket = async || {
        let (status, issued) = ann.post("/v1/tickets", json!({})).await;
        assert_eq!(status, 201, "{issued}");
        issued["ticket"].as_str().unwrap().to_owned()
    };
    let nobody = Caller::new(&world, 0, None);
    let path = format!("/v1/events/stream?ticket={}", ticket().await);
    let by_ticket = nobody.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(by_ticket.status(), 200);
    let unused = ticket().await;

    let mut request = world.url("/v1/ws").replace("http://", "ws://").into_client_request().unwrap();
    let offered = format!("kairo.v1, kairo.key.{token}");
    request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    socket.send(Message::text(json!({ "type": "subscribe", "id": "s" }).to_string())).await.unwrap();

    let mut grpc = Grpc::new(Endpoint::from_shared(world.url("")).unwrap().connect().await.unwrap());
    let authorized = || format!("Bearer {token}").parse().unwrap();
    let mut request = tonic::Request::new(v1::ListAgentsRequest::default());
    request.metadata_mut().insert("authorization", authorized());
    grpc.ready().await.unwrap();
    let codec = ProstCodec::<v1::ListAgentsRequest, v1::ListAgentsResponse>::default();
    grpc.unary(request, "/kairo.v1.Queries/ListAgents".parse().unwrap(), codec).await.unwrap();
    let mut request = tonic::Request::new(v1::StreamRequest::default());
    request.metadata_mut().insert("authorization", authorized());
    grpc.ready().await.unwrap();
    let codec = ProstCodec::<v1::StreamRequest, v1::StreamResponse>::default();
    let events = grpc.server_streaming(request, "/kairo.v1.Events/Stream".parse().unwrap(), codec).await;
    let mut events = events.unwrap().into_inner();

    drained(stream).await;
    drained(by_ticket).await;
    let closing = async { while !matches!(socket.next().await, Some(Ok(Message::Close(_))) | Some(Err(_)) | None) {} };
    tokio::time::timeout(DEADLINE, closing).await.expect("the connection never ended");
    let ending = async {
        loop {
            match events.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended without a reason"),
                Err(ended) => return ended,
            }
        }
    };
    let ended = tokio::time::timeout(DEADLINE, ending).await.expect("the stream never ended");
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended:?}");
    assert_eq!(ann.get("/v1/status").await.0, 401);
    // Nor does a ticket outlive it.
    let late = nobody.request(Method::GET, &format!("/v1/events/stream?ticket={unused}")).send().await.unwrap();
    assert_eq!(late.status(), 401);
    world.end().await;
}
