//! Conversations are taken elsewhere as a document, and are history there: with the real services, the command line and the
//! model's words from the simulator.

use kairo_core::media;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    command_line::kairo,
    faults::audit,
    keys::{ADMIN, Caller},
    world::{Wanted, World},
};

const SCENARIO: &str = r#"
rules:
  - name: run
    when: { user_contains: run it }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: echo, args: [ran] } }]
      - text: "{{ last_result.stdout }}"
  - name: soup
    when: { user_contains: soup }
    reply: Leek soup with marmalade.
  - name: else
    reply: As I said.
"#;

async fn start() -> World {
    let world = Wanted::new(SCENARIO).start().await;
    world.define("cook").await;
    world.define("chef").await;
    world
}

/// Returns the messages of joe's conversation with chef.
async fn conversation(world: &World) -> Vec<Value> {
    let (status, answer) = world.get("/v1/conversations/chef?user=joe").await;
    assert_eq!(status, 200, "{answer}");
    answer["messages"].as_array().unwrap().clone()
}

fn said(messages: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    messages.iter().map(|it| (text(&it["role"]), text(&it["text"]))).collect()
}

#[tokio::test]
async fn a_conversation_is_exported_and_goes_on_elsewhere() {
    let world = start().await;
    let sent = world.send("cook", "what soup is there?").await;
    assert_eq!(world.reply(&sent).await, "Leek soup with marmalade.");
    world.projected().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.json").display().to_string();
    let exported = kairo(&world, &["conversation", "export", "cook", "--user", "ann", "-o", &file]).await;
    assert!(exported.status.success(), "{exported:?}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&document["format"], &document["user"]), (&json!("kairo.conversation.v1"), &json!("ann")));
    let own = |text: &str| text.to_owned();
    let expected = [(own("user"), own("what soup is there?")), (own("agent"), own("Leek soup with marmalade."))];
    assert_eq!(said(document["messages"].as_array().unwrap()), expected);
    let shown = kairo(&world, &["conversation", "cook", "--user", "ann"]).await;
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Leek soup"), "{shown:?}");

    // It is history of another agent with another user, without a decision on it.
    let before = world.end_of_log().await;
    let import = ["--json", "conversation", "import", &file, "--agent", "chef", "--user", "joe"];
    let imported = kairo(&world, &import).await;
    assert!(imported.status.success(), "{imported:?}");
    let answer: Value = serde_json::from_slice(&imported.stdout).unwrap();
    assert_eq!((answer["parts"].as_u64(), answer["messages"].as_u64()), (Some(1), Some(2)), "{answer}");
    world.settled().await;
    assert_eq!(world.end_of_log().await, before + 1, "nobody decided anything");
    world.projected().await;
    let there = conversation(&world).await;
    assert_eq!(said(&there), expected);
    assert_eq!(there[0]["ts"], document["messages"][0]["time"], "it was said when it was said");
    let thread = answer["threads"][0]["thread_id"].as_str().unwrap().to_owned();
    shown_everywhere(&world, &thread, &document["threads"][0]["title"]).await;

    // The next turn there knows it.
    let ask = json!({ "user": "joe", "agent": "chef", "text": "what was it again?", "thread_id": thread });
    let sent = world.send_as(&ask).await;
    assert_eq!(world.reply(&sent).await, "As I said.");
    let requests = world.model_requests().await;
    let asked = requests.last().unwrap()["body"]["messages"].to_string();
    assert!(asked.contains("what soup is there?") && asked.contains("Leek soup with marmalade."), "{asked}");

    // Anybody may have written it: what acts is asked for first.
    let run = world.send_as(&json!({ "user": "joe", "agent": "chef", "text": "run it", "thread_id": thread })).await;
    let asked =
        world.log.wait(|it| it.correlation_id == run.event_id && it.type_name == v1::ApprovalRequested::TYPE).await;
    assert_eq!(asked.payload["outside"], json!(["import:cook"]));
    let verdict = json!({ "user": "joe", "agent": "chef", "action_id": asked.event_id, "verdict": "approved" });
    assert_eq!(world.post("/v1/approvals", &verdict).await.0, 202);
    assert_eq!(world.reply(&run).await.trim(), "ran");

    again_changes_nothing(&world, &import, &document).await;
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

/// The thread, its messages, its events and what is found.
async fn shown_everywhere(world: &World, thread: &str, title: &Value) {
    let (_, shown) = world.get(&format!("/v1/threads/{thread}?agent=chef")).await;
    assert_eq!((&shown["thread"]["kind"], &shown["thread"]["title"]), (&json!("topic"), title), "{shown}");
    let events: Vec<_> = shown["events"].as_array().unwrap().iter().map(|it| it["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["user.input", "agent.reply"]);
    let (_, shown) = world.get(&format!("/v1/threads/{thread}/messages?agent=chef")).await;
    let roles: Vec<_> = shown["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"], "{shown}");
    let (_, found) = world.get("/v1/search?in=message&q=marmalade&agent=chef&user=joe").await;
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1), "{found}");
    let (_, listed) = world.get("/v1/conversations?user=joe").await;
    assert_eq!(listed["conversations"][0]["agent"], "chef", "{listed}");
}

/// Neither as its last message of the log, nor behind another document.
async fn again_changes_nothing(world: &World, import: &[&str], document: &Value) {
    world.settled().await;
    world.projected().await;
    let before = conversation(world).await;
    let end = world.end_of_log().await;
    assert!(kairo(world, import).await.status.success());
    assert_eq!(world.end_of_log().await, end, "it stands there already");
    let mut other = document.clone();
    other["messages"][0]["text"] = json!("what salad is there?");
    let other = json!({ "user": "eve", "document": other });
    assert_eq!(world.post("/v1/conversations/chef/import", &other).await.0, 202);
    assert!(kairo(world, import).await.status.success());
    assert_eq!(world.end_of_log().await, end + 2);
    world.settled().await;
    world.projected().await;
    assert_eq!(conversation(world).await, before);
    let replayed = kairo(world, &["replay", "--agent", "chef"]).await;
    assert!(replayed.status.success(), "{replayed:?}");
}

#[tokio::test]
async fn a_long_document_is_several_messages_of_the_log_and_images_that_are_not_here_are_told_in_words() {
    let world = start().await;
    let text = "x".repeat(100 * 1024);
    let part = json!({ "media_type": "image/png", "digest": media::digest(b"none"), "size": 7, "name": "a.png" });
    let message = |role: &str, more: Value| {
        let mut message = json!({ "thread_id": "t", "role": role, "text": text, "time": "2020-01-01T10:00:00Z" });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let messages = json!([
        message("user", json!({ "text": "look", "parts": [part] })),
        message("agent", json!({})),
        message("user", json!({})),
        message("agent", json!({})),
    ]);
    let document = json!({
        "format": "kairo.conversation.v1", "agent": "cook", "user": "joe", "messages": messages,
        "threads": [{ "thread_id": "t", "title": "Long" }],
    });
    let (status, answer) = world.post("/v1/conversations/chef/import", &json!({ "document": document })).await;
    assert_eq!((status, answer["parts"].as_u64()), (202, Some(2)), "{answer}");
    let (_, page) = world.get(&format!("/v1/conversations/chef?user=joe&at_least={}", answer["sequence"])).await;
    let there = page["messages"].as_array().unwrap();
    assert_eq!(there.len(), 4);
    assert_eq!(
        (&there[0]["text"], &there[0]["ts"]),
        (&json!("look\n[image a.png, 7 bytes]"), &json!("2020-01-01T10:00:00Z"))
    );
    for (wrong, field) in [
        (json!({}), "document"),
        (json!({ "document": { "format": "kairo.conversation.v2" } }), "document.format"),
        (
            json!({ "document": { "format": "kairo.conversation.v1", "agent": "a", "user": "u", "threads": [{ "thread_id": "t" }],
            "messages": [{ "thread_id": "t", "role": "cook", "text": "x" }] } }),
            "document.messages[0].role",
        ),
    ] {
        let (status, problem) = world.post("/v1/conversations/chef/import", &wrong).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!(field)), "{problem}");
    }
    assert_eq!(world.post("/v1/conversations/nobody/import", &json!({ "document": document })).await.0, 404);
    world.verified().await;
    world.end().await;
}

#[tokio::test]
async fn nobody_imports_for_somebody_else() {
    let wanted = Wanted::new(SCENARIO).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always").env(
        Service::Gateway,
        "KAIRO_GATEWAY__ADMIN_KEY",
        ADMIN,
    );
    let world = wanted.start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    assert_eq!(operator.post("/v1/agents", json!({ "agent": "chef", "prompt": "You cook." })).await.0, 201);
    let (_, key) = operator.make(json!({ "name": "ann", "scopes": ["read", "write"], "user": "ann" })).await;
    let (_, reading) = operator.make(json!({ "name": "reader", "scopes": ["read"] })).await;
    let (ann, reader) = (Caller::new(&world, 0, Some(&key)), Caller::new(&world, 0, Some(&reading)));
    let document = |user: &str| {
        let message = json!({ "thread_id": "t", "role": "user", "text": "soup" });
        let threads = [json!({ "thread_id": "t" })];
        json!({ "format": "kairo.conversation.v1", "agent": "cook", "user": user, "threads": threads, "messages": [message] })
    };
    let place = "/v1/conversations/chef/import";
    let before = world.end_of_log().await;
    for body in [json!({ "document": document("joe") }), json!({ "user": "joe", "document": document("ann") })] {
        assert_eq!(ann.post(place, body.clone()).await.0, 403);
        assert_eq!(reader.post(place, body).await.0, 403);
    }
    assert_eq!(world.end_of_log().await, before);
    assert_eq!(ann.post(place, json!({ "document": document("ann") })).await.0, 202);
    assert_eq!(ann.post(place, json!({ "user": "ann", "document": document("joe") })).await.0, 202, "it is hers now");
    assert_eq!(operator.post(place, json!({ "document": document("joe") })).await.0, 202);
    world.end().await;
}
