//! Caps on what may be spent on models: of an agent, a user, an API key and the installation.

use kairo_core::bus::fence;
use kairo_local::Service;
use serde_json::{Value, json};

use crate::{
    command_line::kairo,
    keys::{ADMIN, Caller},
    world::{DEADLINE, Sent, Wanted, World},
};

/// Its endpoint tells how many tokens there were, and that of `silent` tells nothing of it.
const SCENARIO: &str = r#"
rules:
  - name: silent
    when: { user_contains: silent }
    reply: { text: "You said: {{ user }}", usage: { prompt_tokens: 0, completion_tokens: 0 } }
  - name: echo
    when: {}
    reply: { text: "You said: {{ user }}", usage: { prompt_tokens: 1000, completion_tokens: 10 } }
"#;
const PRICE: &str = r#"{ "input": 1, "output": 1 }"#;

fn bounded(agent: &str, caps: Value) -> Value {
    json!({ "agent": agent, "prompt": "Be brief.", "tools": ["none"], "caps": caps })
}

async fn usage(world: &World, query: &str) -> Value {
    world.projected().await;
    let (status, answer) = world.get(&format!("/v1/usage?{query}")).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test]
async fn tokens_that_nobody_reports_are_estimated_and_a_cap_of_an_agent_stops_it() {
    let world = Wanted::new(SCENARIO).start().await;
    let (status, made) = world.post("/v1/agents", &bounded("bob", json!({ "tokens_per_day": 20 }))).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(world.ask("bob", "silent words").await, "You said: silent words");
    let ended = world.ask("bob", "silent words").await;
    for part in ["this agent may use 20 tokens a day", "caps.tokens_per_day", "administrator"] {
        assert!(ended.contains(part), "{part}: {ended}");
    }
    assert_eq!(world.model_requests().await.len(), 1);
    let answer = usage(&world, "agent=bob").await;
    let total = &answer["total"];
    assert_eq!((&total["calls"], &total["estimated_calls"]), (&json!(1), &json!(1)));
    let tokens = total["input_tokens"].as_u64().unwrap() + total["output_tokens"].as_u64().unwrap();
    assert!(tokens > 20 && total["estimated_tokens"] == tokens, "{total}");
    assert_eq!(total["cost"], Value::Null, "nobody knows the price");
    let cap = &answer["caps"][0];
    assert_eq!((&cap["of"], &cap["name"], &cap["cap"]), (&json!("agent"), &json!("bob"), &json!("tokens_per_day")));
    assert_eq!((&cap["spent"], &cap["left"]), (&json!(tokens.to_string()), &json!("0")));
    let output = kairo(&world, &["usage", "--agent", "bob"]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("cap of agent bob: tokens_per_day 20") && said.contains("estimated"), "{said}");

    // Money cannot be bounded where a model has no price: it is said when it is set.
    for (field, body) in [
        ("caps.cost_in_total", bounded("eve", json!({ "cost_in_total": "5" }))),
        ("session.cost", json!({ "agent": "eve", "prompt": "x", "conduct": "background", "session": { "cost": "5" } })),
    ] {
        let (status, problem) = world.post("/v1/agents", &body).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!(field)), "{problem}");
        let expected = problem["errors"][0]["expected"].as_str().unwrap();
        assert!(expected.contains("models.heavy.price") && expected.contains("models.fallback_price"), "{problem}");
    }
    world.end().await;
}

#[tokio::test]
async fn money_is_counted_at_the_fallback_price_where_a_model_has_none() {
    let world = Wanted::new(SCENARIO).env(Service::AgentRuntime, "KAIRO_MODELS__FALLBACK_PRICE", PRICE).start().await;
    let output = kairo(
        &world,
        &["agents", "define", "--agent", "bob", "--prompt", "Be brief.", "--tool", "none", "--cap-cost", "0.001"],
    )
    .await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(world.ask("bob", "hello").await, "You said: hello");
    let ended = world.ask("bob", "hello").await;
    assert!(ended.contains("0.00101 of 0.001 is spent") && ended.contains("caps.cost_in_total"), "{ended}");
    world.end().await;
}

#[tokio::test]
async fn no_model_is_asked_while_a_gateway_says_that_the_installation_has_spent_what_it_may() {
    let world = Wanted::new(SCENARIO).start().await;
    world.define("bob").await;
    fence::announce(&world.bus, Some("this installation may use 1 token")).await;
    let held = async { while !world.ask("bob", "hello").await.contains("this installation may use 1 token") {} };
    tokio::time::timeout(DEADLINE, held).await.expect("the cap of the installation is not kept");
    fence::announce(&world.bus, None).await;
    let again = async { while world.ask("bob", "hello").await != "You said: hello" {} };
    tokio::time::timeout(DEADLINE, again).await.expect("it goes on when that is taken back");
    world.end().await;
}

/// Says hello, and waits for the reply; the answer where it is refused.
async fn says(world: &World, caller: &Caller, user: &str) -> Result<(), Value> {
    let (status, answer) = caller.post("/v1/messages", json!({ "user": user, "agent": "bob", "text": "hello" })).await;
    if status != 202 {
        assert_eq!((status, &answer["type"]), (429, &json!("urn:kairo:problem:cap-reached")), "{answer}");
        return Err(answer["detail"].clone());
    }
    let text = |field: &str| answer[field].as_str().unwrap().to_owned();
    let sequence = answer["sequence"].as_u64().unwrap();
    let sent = Sent { message_id: text("message_id"), event_id: text("event_id").parse().unwrap(), sequence };
    assert_eq!(world.reply(&sent).await, "You said: hello");
    projected(world, caller).await;
    Ok(())
}

/// As [`World::projected`], where keys are needed.
async fn projected(world: &World, caller: &Caller) {
    let end = world.end_of_log().await;
    let (status, answer) = caller.get(&format!("/v1/usage?at_least={end}&wait_ms=60000")).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn caps_of_a_user_a_key_and_the_installation_refuse_messages() {
    let caps = json!({
        "users": { "ann": { "tokens_per_day": 1000 } }, "installation": { "tokens_in_total": 3000 }, "max_age_ms": 1,
    });
    let world = Wanted::new(SCENARIO)
        .env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always")
        .env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
        .env(Service::Gateway, "KAIRO_GATEWAY__FRESHNESS_WAIT_MS", "60000")
        .env(Service::Gateway, "KAIRO_GATEWAY__CAPS", caps.to_string())
        .start()
        .await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let profile = json!({ "agent": "bob", "prompt": "Be brief.", "tools": ["none"] });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    let unpriced = json!({ "name": "x", "scopes": ["write"], "caps": { "cost_per_day": "1" } });
    let (status, problem) = operator.post("/v1/keys", unpriced).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!("caps.cost_per_day")), "{problem}");
    let wanted = json!({ "name": "trial", "scopes": ["read", "write"], "caps": { "tokens_per_day": 1000 } });
    let (id, key) = operator.make(wanted).await;
    let trial = Caller::new(&world, 0, Some(&key));

    assert_eq!(says(&world, &operator, "ann").await, Ok(()));
    let refused = says(&world, &operator, "ann").await.unwrap_err().to_string();
    for part in ["the user ann may use 1000 tokens, and 1010 are used today", "gateway.caps.users.ann.tokens_per_day"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(says(&world, &trial, "joe").await, Ok(()));
    let refused = says(&world, &trial, "joe").await.unwrap_err().to_string();
    assert!(refused.contains(&format!("the API key {id} may use 1000 tokens, and 1010 are used")), "{refused}");
    let (_, told) = trial.get("/v1/usage?user=ann").await;
    let caps: Vec<_> = told["caps"].as_array().unwrap().iter().map(|row| (&row["of"], &row["left"])).collect();
    let expected = [("key", "0"), ("user", "0"), ("installation", "980")].map(|(of, left)| (json!(of), json!(left)));
    assert_eq!(caps, expected.iter().map(|(of, left)| (of, left)).collect::<Vec<_>>());
    assert_eq!(says(&world, &operator, "joe").await, Ok(()));
    let refused = says(&world, &operator, "eve").await.unwrap_err().to_string();
    for part in ["this installation may use 3000 tokens, and 3030 are used in total", "gateway.caps.installation"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    world.end().await;
}
