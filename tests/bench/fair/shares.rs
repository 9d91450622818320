//! Measures the share of each resource that others get while one client takes all it can: for each kind, the others
//! alone, and beside a flood. Every one of them stays below their share, so that none of their requests may be refused.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use futures::{FutureExt, SinkExt, StreamExt, future::BoxFuture};
use kairo_local::Service;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use super::shares_report::Share;
use crate::{
    Outcome,
    agents::{self, Agent, Listening, Sender},
    arguments::Flushing,
    load::{Lane, for_a_while},
    machine::{Fleet, Machine},
    rounds::progress,
};

/// The number of clients that stay below their share.
const OTHERS: usize = 4;
/// Requests of the flood in flight.
const IN_FLIGHT: usize = 32;
/// The pause before the flood repeats a refused request.
const REFUSED: Duration = Duration::from_millis(50);
/// The longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time that a model, and the tool, take.
const TAKES: Duration = Duration::from_millis(300);
const SCENARIO: &str = r#"
defaults: { delay_ms: 300 }
rules:
  - name: tool
    when: { user_contains: tool }
    turn:
      - tool_calls: [{ tool: slow.wait, arguments: {} }]
      - text: "It is over."
  - name: answer
    reply: "It is late."
"#;
/// Small capacities, so that one flood fills each; and long timeouts for a slow machine, so that requests are refused
/// only for want of a share.
const SETTINGS: [(Service, &str, &str); 11] = [
    (Service::Gateway, "KAIRO_NATS__REQUEST_TIMEOUT_MS", "60000"),
    (Service::Gateway, "KAIRO_POSTGRES__ACQUIRE_TIMEOUT_MS", "60000"),
    (Service::Gateway, "KAIRO_GATEWAY__QUERY_TIMEOUT_MS", "60000"),
    (Service::Gateway, "KAIRO_GATEWAY__MAX_REQUESTS", "40"),
    (Service::Gateway, "KAIRO_GATEWAY__MAX_REQUESTS_PER_KEY", "40"),
    (Service::Gateway, "KAIRO_GATEWAY__MAX_STREAMS", "40"),
    (Service::Gateway, "KAIRO_GATEWAY__MAX_STREAMS_PER_KEY", "40"),
    (Service::Gateway, "KAIRO_GATEWAY__RATE_PER_S", "200"),
    (Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__PENDING_INPUTS", "200"),
    (Service::AgentRuntime, "KAIRO_MODELS__HEAVY__MAX_IN_FLIGHT", "8"),
    (Service::ToolRunner, "KAIRO_TOOL_RUNNER__PARALLEL", "8"),
];

/// The shared resources.
#[derive(Clone, Copy)]
enum Kind {
    Queue,
    Connections,
    Requests,
    Streams,
    Subscriptions,
    Rate,
    Models,
    Tools,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Queue,
        Self::Connections,
        Self::Requests,
        Self::Streams,
        Self::Subscriptions,
        Self::Rate,
        Self::Models,
        Self::Tools,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Queue => "inputs of one agent",
            Self::Connections => "read model, connections",
            Self::Requests => "requests at once",
            Self::Streams => "streams",
            Self::Subscriptions => "streams beside subscriptions",
            Self::Rate => "requests a second of one key",
            Self::Models => "calls of models",
            Self::Tools => "calls of tools",
        }
    }

    /// Returns the pause between two requests of one of the others, so long that they stay below their share. Messages
    /// to one agent are answered after all messages of the flood, so the others' messages add up.
    fn pause(self, window: Duration) -> Duration {
        match self {
            Self::Queue => window / 8,
            Self::Rate => Duration::from_millis(200),
            _ => Duration::from_millis(20),
        }
    }
}

/// A user with a key, their own or a shared one.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    url: String,
    key: String,
    user: String,
}

/// One of the others, and the kind of request they repeat.
struct Other {
    kind: Kind,
    client: Client,
    agent: Agent,
}

impl Lane for Other {
    async fn turn(&mut self) -> Outcome<Duration> {
        let begun = Instant::now();
        match self.kind {
            Kind::Queue => self.client.say("shared").await?,
            Kind::Connections => self.client.get(&format!("/v1/inbox?user={}", self.client.user)).await?,
            Kind::Requests => self.client.get("/v1/whoami").await?,
            Kind::Streams | Kind::Subscriptions => drop(self.client.stream().await?),
            Kind::Rate => self.client.get(&format!("/v1/inbox?user={}", self.client.user)).await?,
            Kind::Models => return self.agent.turn("What time is it?", PATIENCE).await,
            Kind::Tools => return self.agent.turn("Use the tool.", PATIENCE).await,
        }
        Ok(begun.elapsed())
    }
}

impl Client {
    async fn get(&self, path: &str) -> Outcome<()> {
        let answer = self.http.get(format!("{}{path}", self.url)).bearer_auth(&self.key).send().await?;
        read_body(answer).await.map(drop)
    }

    async fn say(&self, agent: &str) -> Outcome<()> {
        let message = json!({ "user": self.user, "agent": agent, "text": "What time is it?" });
        let request = self.http.post(format!("{}/v1/messages", self.url)).bearer_auth(&self.key);
        read_body(request.json(&message).send().await?).await.map(drop)
    }

    /// Opens a stream and waits until it has begun.
    async fn stream(&self) -> Outcome<reqwest::Response> {
        let answer = self.http.get(format!("{}/v1/events/stream", self.url)).bearer_auth(&self.key).send().await?;
        let mut stream = accept(answer).await?;
        stream.chunk().await?;
        Ok(stream)
    }

    /// Opens a connection with as many subscriptions as it may have, and waits until it ends.
    async fn subscribe(&self) -> Outcome<()> {
        let mut request = format!("{}/v1/ws", self.url.replace("http://", "ws://")).into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {}", self.key).parse()?);
        let (mut socket, _) = connect_async(request).await?;
        for number in 0..16 {
            let frame = json!({ "type": "subscribe", "id": format!("s-{number}") });
            socket.send(Message::text(frame.to_string())).await?;
        }
        while let Some(Ok(_)) = socket.next().await {}
        Ok(())
    }
}

/// Returns the answer, or an error if it is a refusal.
async fn accept(answer: reqwest::Response) -> Outcome<reqwest::Response> {
    match answer.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Err(answer.text().await?.into()),
        _ => Ok(answer.error_for_status()?),
    }
}

async fn read_body(answer: reqwest::Response) -> Outcome<Vec<u8>> {
    Ok(accept(answer).await?.bytes().await?.to_vec())
}

/// Measures all kinds on a machine of its own.
pub async fn measure(window: Duration) -> Outcome<Vec<Share>> {
    let tool = slow_tool().await?;
    let mut machine = Machine::servers(Flushing::Default).await?;
    for (service, name, value) in SETTINGS {
        machine.stack.service(service).env(name, value);
    }
    let tools = json!([{
        "name": "slow.wait", "description": "Waits", "url": format!("{tool}/wait"), "schema": { "type": "object" },
    }]);
    machine.stack.service(Service::ToolRunner).env("KAIRO_TOOL_RUNNER__TOOLS__HTTP", tools.to_string());
    machine.stack.service(Service::ToolRunner).env("KAIRO_TOOL_RUNNER__HTTP__ALLOW_PRIVATE", r#"["127.0.0.1"]"#);
    machine.start_services(&Fleet::single(SCENARIO)).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default().to_owned();
    let mut scene = Scene::new(gateway).await?;
    let mut measured = Vec::new();
    for kind in Kind::ALL {
        progress(&format!("{}: the others alone, and beside a flood", kind.name()));
        measured.push(scene.measure(kind, window).await?);
    }
    drop(scene);
    machine.stop().await?;
    Ok(measured)
}

struct Scene {
    flood: Client,
    /// The senders of the flood, for calls of models and tools.
    flooding: Vec<Sender>,
    others: Vec<(Client, Agent)>,
    /// A key that many users share.
    shared: String,
    _listening: Listening,
}

impl Scene {
    async fn new(gateway: String) -> Outcome<Self> {
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        let names: Vec<String> = (0..OTHERS).map(|number| format!("other-{number}")).collect();
        let (agents, replies) = agents::define(&gateway, names.clone(), 20).await?;
        let of_flood = (0..IN_FLIGHT).map(|number| format!("of-flood-{number}")).chain(["shared".to_owned()]);
        let (flooding, _) = agents::define(&gateway, of_flood, 20).await?;
        let client = async |user: &str, limited: bool| {
            let key = make_key(&http, &gateway, user, limited).await?;
            Outcome::Ok(Client { http: http.clone(), url: gateway.clone(), key, user: user.to_owned() })
        };
        let flood = client("flood", true).await?;
        let shared = client("shared", false).await?.key;
        let mut others = Vec::new();
        for (name, agent) in names.iter().zip(agents) {
            others.push((client(name, true).await?, agent));
        }
        let flooding = flooding.into_iter().map(|agent| agent.sender).collect();
        Ok(Self { flood, flooding, others, shared, _listening: replies.listen().await? })
    }

    async fn measure(&mut self, kind: Kind, window: Duration) -> Outcome<Share> {
        let others = std::mem::take(&mut self.others).into_iter();
        let lanes = others.map(|(client, agent)| Other { kind, client: self.of(kind, client), agent });
        let (lanes, alone, ()) = for_a_while(lanes.collect(), kind.pause(window), tokio::time::sleep(window)).await?;
        let mut flood = self.pour(kind);
        // It has taken all that it gets.
        tokio::time::sleep(window / 4).await;
        let (lanes, beside, ()) = for_a_while(lanes, kind.pause(window), tokio::time::sleep(window)).await?;
        flood.shutdown().await;
        self.others = self.with_own_keys(lanes).await?;
        Ok(Share::new(kind.name(), &alone, &beside))
    }

    /// Returns the client, with the shared key where requests per key are measured.
    fn of(&self, kind: Kind, client: Client) -> Client {
        match kind {
            Kind::Rate => Client { key: self.shared.clone(), ..client },
            _ => client,
        }
    }

    /// Returns the others, each with a key of their own.
    async fn with_own_keys(&self, lanes: Vec<Other>) -> Outcome<Vec<(Client, Agent)>> {
        let mut others = Vec::new();
        for Other { client, agent, .. } in lanes {
            let key = match client.key == self.shared {
                true => make_key(&client.http, &client.url, &client.user, true).await?,
                false => client.key.clone(),
            };
            others.push((Client { key, ..client }, agent));
        }
        Ok(others)
    }

    /// Sends as many requests as are accepted, until the result is dropped.
    fn pour(&self, kind: Kind) -> JoinSet<()> {
        let mut flood = JoinSet::new();
        for number in 0..2 * IN_FLIGHT {
            let client = self.of(kind, self.flood.clone());
            let sender = self.flooding.get(number % IN_FLIGHT).cloned();
            flood.spawn(repeat(move || take(kind, client.clone(), sender.clone())));
        }
        flood
    }
}

/// Makes one request of the flood.
fn take(kind: Kind, client: Client, sender: Option<Sender>) -> BoxFuture<'static, Outcome<()>> {
    async move {
        match kind {
            Kind::Queue => client.say("shared").await,
            Kind::Connections => client.get("/v1/events?user=flood&limit=1000").await,
            Kind::Requests => client.get("/v1/tasks?user=flood&at_least=1000000000&wait_ms=2000").await,
            Kind::Streams => {
                let mut stream = client.stream().await?;
                while let Ok(Some(_)) = stream.chunk().await {}
                Ok(())
            }
            Kind::Subscriptions => client.subscribe().await,
            Kind::Rate => client.get("/v1/inbox?user=flood").await,
            Kind::Models | Kind::Tools => {
                let Some(sender) = sender else { return Ok(()) };
                let text = if matches!(kind, Kind::Tools) { "Use the tool." } else { "What time is it?" };
                sender.say_as("flood", text).await.map(drop)
            }
        }
    }
    .boxed()
}

/// Repeats a request, with a pause after a refusal.
async fn repeat<F: Future<Output = Outcome<()>>>(mut something: impl FnMut() -> F) {
    loop {
        if something().await.is_err() {
            tokio::time::sleep(REFUSED).await;
        }
    }
}

async fn make_key(http: &reqwest::Client, gateway: &str, user: &str, limited: bool) -> Outcome<String> {
    let wanted = json!({ "name": user, "scopes": ["read", "write"], "user": limited.then_some(user) });
    let made: Value =
        http.post(format!("{gateway}/v1/keys")).json(&wanted).send().await?.error_for_status()?.json().await?;
    Ok(made.get("key").and_then(Value::as_str).ok_or("no key was made")?.to_owned())
}

/// Starts a slow server; returns its URL.
async fn slow_tool() -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                drop(stream.read(&mut request).await);
                tokio::time::sleep(TAKES).await;
                let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                drop(stream.write_all(answer.as_bytes()).await);
            });
        }
    });
    Ok(url)
}
