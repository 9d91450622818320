//! Inner state: kept by an agent's tools for later turns, each user's apart, and seen with its history by people.

use kairo_local::{Service, StackOptions};
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    faults::audit,
    keys::{ADMIN, Caller},
    world::{Wanted, World},
};

const AGENT: &str = "keeper";

/// Each tool, in so many words.
const SCENARIO: &str = r#"
rules:
  - name: write
    when: { user_matches: '^write (?<key>\S+) near (?<related>\S+): (?<content>.+)$' }
    turn:
      - tool_calls: [{ tool: state.write, arguments: { key: "{{ captures.key }}", content: "{{ captures.content }}", related_keys: ["{{ captures.related }}"] } }]
      - text: "{{ last_result.written }}"
  - name: read
    when: { user_matches: '^read (?<key>\S+)$' }
    turn:
      - tool_calls: [{ tool: state.read, arguments: { key: "{{ captures.key }}" } }]
      - text: "{{ last_result }}"
  - name: search
    when: { user_matches: '^search (?<words>.+)$' }
    turn:
      - tool_calls: [{ tool: state.search, arguments: { words: "{{ captures.words }}" } }]
      - text: "{{ last_result.total }}{% if last_result.total %} {{ last_result.found[0].key }}{% endif %}"
  - name: related
    when: { user_matches: '^related (?<key>\S+)$' }
    turn:
      - tool_calls: [{ tool: state.related, arguments: { key: "{{ captures.key }}" } }]
      - text: "{{ last_result.total }}{% if last_result.total %} {{ last_result.related[0].key }}{% endif %}"
  - name: delete
    when: { user_matches: '^delete (?<key>\S+)$' }
    turn:
      - tool_calls: [{ tool: state.delete, arguments: { key: "{{ captures.key }}" } }]
      - text: "{{ last_result }}"
  - name: echo
    when: {}
    reply: "{{ user }}"
"#;

async fn says(world: &World, operator: &Caller, user: &str, text: &str) -> String {
    let message = json!({ "user": user, "agent": AGENT, "text": text });
    let (status, said) = operator.post("/v1/messages", message).await;
    assert_eq!(status, 202, "{said}");
    let correlation: uuid::Uuid = said["correlation_id"].as_str().unwrap().parse().unwrap();
    let reply = world.log.wait(|event| event.correlation_id == correlation && event.is_final_reply()).await;
    reply.text().to_owned()
}

fn keys(answer: &Value) -> Vec<&str> {
    answer["entries"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .map(|it| it["key"].as_str().unwrap())
        .collect()
}

async fn start() -> (World, Caller) {
    let wanted = Wanted::new(SCENARIO).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__FRESHNESS_WAIT_MS", "60000");
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let profile = json!({ "agent": AGENT, "prompt": "Be brief.", "inner_state": true });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    (world, operator)
}

#[tokio::test]
async fn modules_keep_an_inner_state_with_tools_in_later_turns_searchable_in_full_text_with_the_history_of_each_key() {
    let (mut world, operator) = start().await;
    assert_eq!(says(&world, &operator, "ann", "write launch/date near team: 产品发布会改到六月").await, "launch/date");
    assert_eq!(says(&world, &operator, "ann", "write team near launch/date: Sarah leads the marketing").await, "team");
    assert_eq!(says(&world, &operator, "joe", "write launch/date near x: never").await, "launch/date");
    // Whatever dies, it is in the log.
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    let read = says(&world, &operator, "ann", "read launch/date").await;
    assert!(read.contains("改到六月"), "{read}");
    assert_eq!(says(&world, &operator, "ann", "search 发布会").await, "1 launch/date");
    assert_eq!(says(&world, &operator, "ann", "related launch/date").await, "1 team");
    assert_eq!(says(&world, &operator, "ann", "write launch/date near team: 发布会改到七月").await, "launch/date");
    // What one user keeps, no other sees.
    let read = says(&world, &operator, "joe", "read launch/date").await;
    assert!(read.contains("never") && !read.contains("六月"), "{read}");
    assert_eq!(says(&world, &operator, "joe", "search marketing").await.trim(), "0");
    assert_eq!(says(&world, &operator, "joe", "related team").await.trim(), "0");
    let deleted = says(&world, &operator, "joe", "delete team").await;
    assert!(deleted.contains("nothing under"), "{deleted}");
    says(&world, &operator, "joe", "delete launch/date").await;
    world.settled().await;

    assert_seen_with_its_history(&world, &operator).await;
    assert_found(&world, &operator).await;
    assert_limited(&world, &operator).await;
    let states = world.log.now(&world.bus).await;
    let states: Vec<_> = states.iter().filter(|event| event.type_name.starts_with("kairo.state.")).collect();
    assert!(states.len() == 5 && states.iter().all(|event| event.modality == "state"), "{states:?}");
    audit::passes(&world).await;
    world.end().await;
}

async fn assert_seen_with_its_history(world: &World, operator: &Caller) {
    let at_least = world.end_of_log().await;
    let place = format!("/v1/agents/{AGENT}/inner-state");
    let (_, all) = operator.get(&format!("{place}?at_least={at_least}")).await;
    assert_eq!(keys(&all), ["launch/date", "team"], "what was written last comes first; what was deleted is gone");
    let entry = &all["entries"][0];
    assert_eq!((&entry["content"], &entry["user"]), (&json!("发布会改到七月"), &json!("ann")));
    assert_eq!((&entry["related_keys"], &entry["deleted"]), (&json!(["team"]), &json!(false)));
    let (_, launch) = operator.get(&format!("{place}?prefix=launch%2F&user=ann")).await;
    assert_eq!(keys(&launch), ["launch/date"]);
    let (_, of_joe) = operator.get(&format!("{place}?user=joe")).await;
    assert!(keys(&of_joe).is_empty());

    let of = |user: &str| format!("{place}/history?key=launch%2Fdate&user={user}");
    let (_, history) = operator.get(&of("ann")).await;
    let said: Vec<_> =
        history["changes"].as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["发布会改到七月", "产品发布会改到六月"]);
    let (_, history) = operator.get(&of("joe")).await;
    let deleted: Vec<_> =
        history["changes"].as_array().unwrap().iter().map(|it| it["deleted"].as_bool().unwrap()).collect();
    assert_eq!(deleted, [true, false]);
    assert_eq!(operator.get(&format!("{place}/history?key=nothing")).await.0, 404);

    let kairo = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let mut command = std::process::Command::new(kairo);
    command.args(["--url", &world.url(""), "inner-state", AGENT, "launch/date", "--history", "--user", "ann"]);
    let output = command.env("KAIRO_API_KEY", ADMIN).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("发布会改到七月") && told.contains("产品发布会改到六月"), "{told}");
}

async fn assert_found(world: &World, operator: &Caller) {
    let at_least = world.end_of_log().await;
    for (words, user, expected) in [
        ("发布", "ann", Some("launch/date")),
        ("markting", "ann", Some("team")),
        ("markting", "joe", None),
        ("never", "joe", None),
        ("六月", "ann", None),
    ] {
        let asked = format!("/v1/search?q={words}&in=state&user={user}&at_least={at_least}");
        let (status, found) = operator.get(&asked).await;
        assert_eq!((status, found["hits"][0]["id"].as_str()), (200, expected), "{words} of {user}: {found}");
    }
}

/// A key that is limited to a user.
async fn assert_limited(world: &World, operator: &Caller) {
    let (_, key) = operator.make(json!({ "name": "joe", "scopes": ["read"], "user": "joe" })).await;
    let joe = Caller::new(world, 0, Some(&key));
    let place = format!("/v1/agents/{AGENT}/inner-state");
    for (path, status) in [
        (format!("{place}?user=joe"), 200),
        (place.clone(), 403),
        (format!("{place}?user=ann"), 403),
        (format!("{place}/history?key=team&user=ann"), 403),
        (format!("{place}/history?key=team&user=joe"), 404),
        (format!("{place}/history?key=launch%2Fdate&user=joe"), 200),
    ] {
        assert_eq!(joe.get(&path).await.0, status, "{path}");
    }
    let (_, events) = joe.get(&format!("/v1/events?agent={AGENT}&limit=500")).await;
    let is_of_ann = |event: &Value| event["type"] == v1::StateWritten::TYPE && event["payload"]["user"] == "ann";
    assert!(!events["events"].as_array().unwrap().iter().any(is_of_ann), "{events}");
}
