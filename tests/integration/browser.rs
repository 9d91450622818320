//! A real browser, on a page of another site: what it takes to follow the log with a plain `EventSource`.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    response::Html,
    routing::{get, post},
};
use kairo_core::event_json::EventJson;
use kairo_local::{Service, free_port};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
};

use crate::{
    chromium::{self, Chromium},
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

const ADMIN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";
const AGENT: &str = "default";
const LISTEN: &str = "KAIRO_GATEWAY__LISTEN";

/// Follows the log and says something, and tells the test what it sees.
const PAGE: &str = r#"<!doctype html><title>A page of another site</title><ol></ol><script>
  const { gateway, agent, key } = SETTINGS;
  let told = Promise.resolve();
  // One after the other: what is sent at once may arrive in any order.
  const tell = (what) => told = told.then(() => fetch("/seen", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(what),
  }));
  const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  const post = async (path, body) => {
    const answer = await fetch(gateway + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, request: answer.headers.get("x-request-id"), ...await answer.json() };
  };
  const follow = async () => {
    const query = new URLSearchParams({ agent });
    if (key) query.set("ticket", (await post("/v1/tickets", {})).ticket);
    const source = new EventSource(`${gateway}/v1/events/stream?${query}`);
    let opened = 0;
    source.onopen = async () => {
      opened += 1;
      await tell({ opened });
      if (opened === 1) await tell({ said: await post("/v1/messages", { user: "ann", agent, text: "hello" }) });
    };
    source.onmessage = async ({ lastEventId, data }) => {
      const event = JSON.parse(data);
      document.querySelector("ol").append(Object.assign(document.createElement("li"), { textContent: event.type }));
      await tell({ id: lastEventId, event, shown: document.querySelectorAll("li").length });
    };
    source.onerror = () => tell({ lost: source.readyState === EventSource.CONNECTING ? "coming back" : "for good" });
  };
  follow().catch((error) => tell({ failed: String(error) }));
</script>"#;

/// A browser that shows the page.
struct Browser {
    seen: mpsc::UnboundedReceiver<Value>,
    /// The events that the page reported, with their positions, in the order in which it reported them.
    events: Vec<(String, EventJson)>,
    _chromium: Chromium,
}

/// Serves the page, and hears what it tells.
async fn site(page: Arc<Mutex<String>>) -> (String, mpsc::UnboundedReceiver<Value>) {
    let (told, seen) = mpsc::unbounded_channel();
    let show = |State((page, _)): State<(Arc<Mutex<String>>, mpsc::UnboundedSender<Value>)>| async move {
        Html(page.lock().await.clone())
    };
    let hear = |State((_, told)): State<(Arc<Mutex<String>>, mpsc::UnboundedSender<Value>)>,
                Json(what): Json<Value>| {
        let _ = told.send(what);
        std::future::ready(())
    };
    let site = Router::new().route("/", get(show)).route("/seen", post(hear)).with_state((page, told));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, site).await });
    (origin, seen)
}

impl Browser {
    /// The next thing of this name that the page tells, with the events before it taken in.
    async fn tells(&mut self, what: &str) -> Value {
        let telling = async {
            loop {
                let told = self.seen.recv().await.unwrap();
                assert_eq!(told["failed"], Value::Null, "{told}");
                if let Some(id) = told["id"].as_str() {
                    self.events.push((id.to_owned(), serde_json::from_value(told["event"].clone()).unwrap()));
                    assert_eq!(told["shown"].as_u64(), Some(self.events.len() as u64), "not in order");
                }
                if !told[what].is_null() {
                    return told[what].clone();
                }
            }
        };
        tokio::time::timeout(DEADLINE, telling).await.unwrap_or_else(|_| panic!("the page never told of {what}"))
    }

    /// Waits until the page has shown the answer to this message.
    async fn is_answered(&mut self, correlation: &Value) {
        let of = |event: &EventJson| event.correlation_id.to_string() == correlation.as_str().unwrap_or_default();
        while !self.events.iter().any(|(_, event)| of(event) && event.is_final_reply()) {
            self.tells("event").await;
        }
    }
}

/// Begins with a page of another site that follows the log, through a lost connection; none without Chromium.
async fn through_a_killed_gateway(key: bool) {
    let Some(chromium) = chromium::program() else { return };
    let page = Arc::new(Mutex::new(String::new()));
    let (origin, seen) = site(page.clone()).await;
    // The gateway comes back where it was, as it does outside of tests.
    let address = format!("127.0.0.1:{}", free_port(None).unwrap());
    let wanted = Wanted::new(USUAL)
        .env(Service::Gateway, LISTEN, &address)
        .env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
        .env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", if key { "always" } else { "auto" })
        .env(Service::Gateway, "KAIRO_GATEWAY__CORS_ORIGINS", json!([origin]).to_string());
    let mut world = wanted.start().await;
    let http = reqwest::Client::new();
    let profile = json!({ "agent": AGENT, "prompt": "You are a helpful agent." });
    let defined = http.post(world.url("/v1/agents")).bearer_auth(ADMIN).json(&profile).send().await.unwrap();
    assert!(defined.status().is_success());
    let settings = json!({ "gateway": world.url(""), "agent": AGENT, "key": key.then_some(ADMIN) });
    *page.lock().await = PAGE.replace("SETTINGS", &settings.to_string());

    let chromium = Chromium::open(&chromium, &origin);
    let mut browser = Browser { seen, events: Vec::new(), _chromium: chromium };
    assert_eq!(browser.tells("opened").await, 1);
    let said = browser.tells("said").await;
    assert_eq!((said["status"].as_u64(), said["request"].as_str().map(str::len)), (Some(202), Some(36)), "{said}");
    browser.is_answered(&said["correlation_id"]).await;

    world.stack.kill9(Service::Gateway, 0).await.unwrap();
    assert_eq!(browser.tells("lost").await, "coming back");
    // Life goes on at another gateway meanwhile.
    world.stack.service(Service::Gateway).env(LISTEN, "127.0.0.1:0");
    let other = world.stack.start(Service::Gateway).await.unwrap();
    let other = world.stack.replicas(Service::Gateway)[other].url().unwrap().to_owned();
    let message = json!({ "user": "joe", "agent": AGENT, "text": "hello" });
    let answer = http.post(format!("{other}/v1/messages")).bearer_auth(ADMIN).json(&message).send().await.unwrap();
    let meanwhile: Value = answer.json().await.unwrap();
    answered(&world, &meanwhile).await;
    world.stack.service(Service::Gateway).env(LISTEN, &address);
    world.stack.restart(Service::Gateway, 0).await.unwrap();

    assert_eq!(browser.tells("opened").await, 2);
    browser.is_answered(&meanwhile["correlation_id"]).await;
    let first = browser.events.first().unwrap().1.sequence;
    let last = browser.events.last().unwrap().1.clone();
    let concerns = |event: &EventJson| event.subject.split('.').nth(2) == Some(AGENT) && event.sequence >= first;
    let logged = world.log.now(&world.bus).await.into_iter().filter(concerns);
    let logged: Vec<EventJson> =
        logged.take_while(|event| (event.sequence, event.position) <= (last.sequence, last.position)).collect();
    let shown: Vec<EventJson> = browser.events.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(shown, logged, "each once, in order");
    let mut places = BTreeMap::new();
    for (place, event) in &browser.events {
        assert_eq!(*place, format!("{}.{}", event.sequence, event.position));
        assert!(places.insert(place, event).is_none());
    }
    drop(browser);
    world.end().await;
}

async fn answered(world: &World, accepted: &Value) {
    let of = |event: &EventJson| event.correlation_id.to_string() == accepted["correlation_id"];
    world.log.wait(|event| of(event) && event.is_final_reply()).await;
}

#[tokio::test]
async fn an_event_source_goes_on_where_it_broke_off() {
    through_a_killed_gateway(false).await;
}

#[tokio::test]
async fn an_event_source_with_a_ticket_goes_on_where_it_broke_off() {
    through_a_killed_gateway(true).await;
}
