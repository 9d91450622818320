//! Usage of models: every call of every decision, counted once, at the configured prices.

use kairo_local::Service;
use serde_json::{Value, json};

use crate::{
    command_line::kairo,
    world::{Wanted, World},
};

const SCENARIO: &str = r#"
rules:
  - name: echo
    when: {}
    reply: { text: "You said: {{ user }}", usage: { prompt_tokens: 1000, completion_tokens: 10 } }
"#;
const MODEL: &str = "sim-large";

/// Two turns with bob and one with eve.
async fn used(prices: &Value) -> World {
    let wanted = Wanted::new(SCENARIO)
        .env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__MODEL", MODEL)
        .env(Service::Gateway, "KAIRO_GATEWAY__PRICES", prices.to_string())
        .env(Service::Gateway, "KAIRO_GATEWAY__CURRENCY", "EUR");
    let world = wanted.start().await;
    for agent in ["bob", "eve"] {
        world.define(agent).await;
    }
    for agent in ["bob", "bob", "eve"] {
        assert_eq!(world.ask(agent, "hello").await, "You said: hello");
    }
    world.projected().await;
    world
}

async fn usage(world: &World, query: &str) -> Value {
    let (status, answer) = world.get(&format!("/v1/usage?{query}")).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

fn sum(row: &Value) -> Value {
    json!([row["calls"], row["failed"], row["input_tokens"], row["output_tokens"], row["cost"]])
}

#[tokio::test]
async fn tokens_and_cost_are_told_by_agent_thread_model_and_day() {
    let world = used(&json!({ "sim-*": { "input": 0.15, "output": "0.6" } })).await;
    let answer = usage(&world, "by=agent,model").await;
    let rows = answer["usage"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| (&row["agent"], &row["model"], &row["day"])).collect();
    assert_eq!(names, [(&json!("bob"), &json!(MODEL), &json!(null)), (&json!("eve"), &json!(MODEL), &json!(null))]);
    assert_eq!(sum(&rows[0]), json!([2, 0, 2_000, 20, "0.000312"]));
    assert_eq!(sum(&rows[1]), json!([1, 0, 1_000, 10, "0.000156"]));
    let total = json!([3, 0, 3_000, 30, "0.000468"]);
    assert_eq!((sum(&answer["total"]), &answer["unpriced"]), (total.clone(), &json!([])));
    assert_eq!((&answer["currency"], &answer["next_after"]), (&json!("EUR"), &json!(null)));

    // Page by page it is the same.
    let first = usage(&world, "by=agent,model&limit=1").await;
    let next = first["next_after"].as_str().unwrap();
    let second = usage(&world, &format!("by=agent,model&limit=1&after={next}")).await;
    assert_eq!((&first["usage"][0], &second["usage"][0]), (&rows[0], &rows[1]));
    assert_eq!((sum(&first["total"]), sum(&second["total"])), (total.clone(), total.clone()));

    let threads = usage(&world, "by=day,thread,user&agent=bob").await;
    let row = &threads["usage"][0];
    let thread = row["thread_id"].as_str().unwrap();
    assert_eq!((threads["usage"].as_array().unwrap().len(), &row["user"], sum(row)), (1, &json!("ann"), sum(&rows[0])));
    let day = row["day"].as_str().unwrap();
    let same = usage(&world, &format!("from={day}&to={day}&thread={thread}&user=ann&model={MODEL}&agent=bob")).await;
    assert_eq!(sum(&same["total"]), sum(&rows[0]));
    for nothing in ["user=nobody", "to=2001-01-01", "model=other", "agent=nobody"] {
        let answer = usage(&world, nothing).await;
        assert_eq!((sum(&answer["total"]), &answer["usage"]), (json!([0, 0, 0, 0, "0"]), &json!([])), "{nothing}");
    }

    let output = kairo(&world, &["usage", "--by", "agent", "--agent", "bob"]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("COST EUR") && said.contains("0.000312"), "{said}");
    world.end().await;
}

#[tokio::test]
async fn a_model_without_a_price_is_named_and_its_cost_is_not_made_up() {
    let world = used(&json!({ "another": { "input": 1, "output": 1 } })).await;
    let answer = usage(&world, "by=agent").await;
    assert_eq!((&answer["usage"][0]["cost"], &answer["total"]["cost"]), (&json!(null), &json!(null)));
    assert_eq!((&answer["unpriced"], &answer["total"]["input_tokens"]), (&json!([MODEL]), &json!(3_000)));
    world.end().await;
}
