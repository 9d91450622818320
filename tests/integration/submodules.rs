//! Submodules over the real services: they are asked at once, one is late, one fails, a question is answered, what was decided is
//! shown afterwards while messages overtake it, they are added and removed, and usage tells them apart.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::world::{Sent, Wanted, World};

const SCENARIO: &str = r#"
rules:
  - name: slow
    when: { system_contains: Your name is slow }
    reply: { delay_ms: 20000, text: too late }
  - name: broken
    when: { system_contains: Your name is broken }
    reply: { error: { status: 400, message: "no" } }
  - name: diary-told
    when: { system_contains: Your name is diary, user_contains: "The agent\n" }
    reply: { delay_ms: 1500, text: they greet }
  - name: lawyer-asked
    when: { system_contains: Your name is lawyer, user_contains: "The agent asks you: Is it legal?" }
    reply: It is legal.
  - name: one
    when: { system_contains: Your name is one }
    reply: { delay_ms: 700, text: one says yes }
  - name: two
    when: { system_contains: Your name is two }
    reply: { delay_ms: 700, text: two says no }
  - name: critic
    when: { system_contains: Your name is critic }
    reply: critic finds fault
  - name: voices
    when: { system_starts_with: You are a submodule }
    reply: "-"
  - name: may
    when: { user_contains: may we }
    turn:
      - tool_calls: [{ tool: submodule.ask, arguments: { name: lawyer, question: "Is it legal?" } }]
      - "Yes: {{ last_result.answer }}"
  - name: get
    when: { user_contains: get a critic }
    turn:
      - tool_calls: [{ tool: submodule.add, arguments: { name: critic, prompt: You find fault. } }]
      - I have one.
  - name: rest
    when: {}
    reply: "said: {{ user }}"
"#;

fn module(name: &str) -> Value {
    json!({ "name": name, "prompt": format!("You are the {name}."), "wants_decisions": false })
}

async fn define(world: &World, agent: &str, more: Value) {
    let mut profile = json!({ "agent": agent, "prompt": "Be brief." });
    profile.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = world.post("/v1/agents", &profile).await;
    assert_eq!(status, 201, "{answer}");
}

/// Those of the turn that tell of submodules: the module and what it is about.
fn told(events: &[EventJson]) -> Vec<(String, String)> {
    let told = events.iter().filter_map(|event| {
        let field = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let module = field("module");
        let what = match event.type_name.as_str() {
            v1::AgentThought::TYPE if !module.is_empty() => field("text"),
            v1::SubmoduleFailed::TYPE => field("kind"),
            v1::SubmoduleAsked::TYPE => field("question"),
            _ => return None,
        };
        Some((module, what))
    });
    let mut told: Vec<_> = told.collect();
    told.sort();
    told
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(module, what)| ((*module).to_owned(), (*what).to_owned())).collect()
}

async fn all_of(world: &World, sent: &Sent) -> Vec<EventJson> {
    world.settled().await;
    world.events_of(sent).await
}

#[tokio::test]
async fn submodules_think_along_in_parallel_and_who_is_late_or_fails_holds_up_nothing() {
    let world = Wanted::new(SCENARIO).start().await;
    let slow = json!({ "name": "slow", "prompt": "You are slow.", "deadline_ms": 300, "wants_decisions": false });
    let lawyer =
        json!({ "name": "lawyer", "prompt": "You know the law.", "hears": ["process"], "wants_decisions": false });
    let submodules = json!([module("one"), module("two"), slow, module("broken"), lawyer]);
    define(&world, "council", json!({ "submodules": submodules })).await;

    let sent = world.send("council", "hello").await;
    assert_eq!(world.reply(&sent).await, "said: hello");
    let events = world.events_of(&sent).await;
    let expected = [("broken", "failed"), ("one", "one says yes"), ("slow", "late"), ("two", "two says no")];
    assert_eq!(told(&events), pairs(&expected));
    // Asked at once: all of them were sent before the first had answered.
    let requests = world.model_requests().await;
    let order: Vec<&str> = requests.iter().filter_map(|it| it["rule"].as_str()).collect();
    let decision = order.iter().position(|rule| *rule == "rest").unwrap();
    assert_eq!(decision, 4, "each is asked once, and then the agent: {order:?}");
    assert!(requests[decision]["body"]["messages"].to_string().contains("one: one says yes"));

    let sent = world.send("council", "may we?").await;
    assert_eq!(world.reply(&sent).await, "Yes: It is legal.");
    let events = world.events_of(&sent).await;
    let of_lawyer: Vec<_> = told(&events).into_iter().filter(|(module, _)| module == "lawyer").collect();
    assert_eq!(of_lawyer, pairs(&[("lawyer", "Is it legal?"), ("lawyer", "It is legal.")]));

    world.settled().await;
    let (_, listed) = world.get("/v1/agents/council/thoughts?limit=100").await;
    let kinds: Vec<String> = listed["thoughts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {}", row["module"].as_str().unwrap_or("council"), row["kind"].as_str().unwrap()))
        .collect();
    for expected in ["slow late", "broken failed", "one thought", "lawyer asked", "lawyer thought"] {
        assert!(kinds.iter().any(|kind| kind == expected), "{expected} is not in {kinds:?}");
    }
    let of_one = world.get("/v1/agents/council/thoughts?module=one").await.1;
    assert!(of_one["thoughts"][0]["input_tokens"].as_u64() > Some(0), "{of_one}");

    let usage = world.get("/v1/usage?agent=council&by=module").await.1;
    let calls = |module: Value| {
        let rows = usage["usage"].as_array().unwrap();
        rows.iter().find(|row| row["module"] == module).map(|row| (row["calls"].clone(), row["failed"].clone()))
    };
    assert_eq!(calls(json!("one")), Some((json!(2), json!(0))), "{usage}");
    assert_eq!(calls(json!("slow")), Some((json!(2), json!(2))), "{usage}");
    assert_eq!(calls(json!("lawyer")), Some((json!(1), json!(0))), "{usage}");
    assert!(calls(Value::Null).is_some(), "the agent itself: {usage}");
    world.end().await;
}

#[tokio::test]
async fn what_was_decided_is_shown_afterwards_and_a_message_overtakes_it() {
    let world = Wanted::new(SCENARIO).start().await;
    // By default what was decided is shown to each; one is not to see it.
    let diary = json!({ "name": "diary", "prompt": "You keep a diary.", "hears": ["process"] });
    define(&world, "council", json!({ "submodules": [diary, module("one")] })).await;
    let first = world.send("council", "hello").await;
    assert_eq!(world.reply(&first).await, "said: hello");
    // The diary takes longer than this.
    let second = world.send("council", "again").await;
    assert_eq!(world.reply(&second).await, "said: again");
    let events = all_of(&world, &first).await;
    let place = |events: &[EventJson], type_name: &str| {
        events.iter().filter(|event| event.type_name == type_name).map(|event| event.sequence).max()
    };
    let shown = place(&events, v1::AgentBroadcast::TYPE).expect("it was shown");
    let answered = place(&world.events_of(&second).await, v1::AgentAction::TYPE).unwrap();
    assert!(answered < shown, "the second message was answered at {answered}, the first decision shown at {shown}");
    assert_eq!(told(&events), pairs(&[("diary", "they greet"), ("one", "one says yes")]));
    let shown_to = |event: &EventJson| event.payload["modules"].clone();
    let shown: Vec<Value> = events.iter().filter(|it| it.type_name == v1::AgentBroadcast::TYPE).map(shown_to).collect();
    assert_eq!(shown, [json!(["diary"])]);
    let third = world.send("council", "and again").await;
    world.reply(&third).await;
    let requests = world.model_requests().await;
    let last = requests.iter().rfind(|it| it["rule"] == "rest").unwrap();
    assert!(last["body"]["messages"].to_string().contains("diary: they greet"), "{last}");
    world.end().await;
}

#[tokio::test]
async fn submodules_are_added_with_consent_and_by_order_and_removed() {
    let world = Wanted::new(SCENARIO).start().await;
    define(&world, "council", json!({ "submodules": [module("one")], "tools": ["submodule.*"] })).await;
    let sent = world.send("council", "get a critic").await;
    let asked = loop {
        world.settled().await;
        let (_, inbox) = world.get("/v1/inbox?user=ann").await;
        if let Some(asked) = inbox["approvals"].as_array().and_then(|all| all.first()) {
            break asked.clone();
        }
    };
    assert_eq!(asked["tool"], "submodule.add");
    let names = async |world: &World| {
        world.settled().await;
        let (_, listed) = world.get("/v1/agents/council/submodules").await;
        let all = listed["submodules"].as_array().unwrap().clone();
        all.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&world).await, ["one"], "nobody has consented");
    let verdict = json!({ "user": "ann", "agent": "council", "action_id": asked["action_id"], "verdict": "approved" });
    assert_eq!(world.post("/v1/approvals", &verdict).await.0, 202);
    assert_eq!(world.reply(&sent).await, "I have one.");
    assert_eq!(names(&world).await, ["one", "critic"]);
    let (_, listed) = world.get("/v1/agents/council/submodules").await;
    let wants = listed["submodules"].as_array().unwrap().iter().map(|row| row["wants_decisions"].clone());
    assert_eq!(
        wants.collect::<Vec<_>>(),
        [json!(false), json!(true)],
        "what the agent adds is shown decisions, unless it says no"
    );
    let events = all_of(&world, &world.send("council", "hello").await).await;
    assert!(told(&events).contains(&("critic".to_owned(), "critic finds fault".to_owned())), "{:?}", told(&events));

    let order = |command: &str, submodule: Value| json!({ "user": "ann", "agent": "council", "command": command, "submodule": submodule });
    assert_eq!(world.post("/v1/commands", &order("add", module("two"))).await.0, 202);
    assert_eq!(world.post("/v1/commands", &order("remove", json!({ "name": "one" }))).await.0, 202);
    assert_eq!(names(&world).await, ["critic", "two"]);
    world.end().await;
}
