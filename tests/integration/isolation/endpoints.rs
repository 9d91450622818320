//! Every endpoint that looks itself whose what it shows is, with the key of one user, or of another agent, and the things of another:
//! the list is the gateway's own table, so that a new endpoint is tried or the test says so.
//!
//! That keys with limits are refused where the table says so is in [`crate::keys`].

use kairo_core::event_json::EventJson;
use kairo_gateway::{Access, LimitRule};
use kairo_local::Service;
use kairo_proto::v1;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{AGENT, SCENARIO};
use crate::{
    keys::{ADMIN, Caller},
    world::{Wanted, World},
};

/// A word that everything of joe's contains.
const HIS: &str = "marmalade";

/// Joe's things, each by its id.
struct Things {
    thread: String,
    correlation: Uuid,
    action: String,
    process: String,
    task: String,
    chain: String,
    memory: String,
    approval: String,
}

/// The way in which an endpoint is asked for joe's data.
enum Attempt {
    /// By reading these paths.
    Read(Vec<String>),
    /// By sending these bodies.
    Write(Vec<Value>),
    /// By this test of [`crate::limited`] or [`crate::people`], as it is no request with an answer, or takes a server.
    TriedIn(&'static str),
}

use Attempt::{Read, TriedIn, Write};

/// The test of signing in and out at MCP servers.
const SIGN_INS: &str = "a_users_key_signs_in_its_user_alone";

fn attempt(access: &Access, joe: &Things) -> Attempt {
    let Things { thread, correlation, action, process, task, chain, memory, approval } = joe;
    let as_ann = |more: Value| {
        let mut body = json!({ "user": "ann", "agent": AGENT });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let as_joe = |more: Value| {
        let mut body = as_ann(more);
        body["user"] = json!("joe");
        body
    };
    let order = |command: &str, field: &str, id: &str| json!({ "command": command, field: id });
    let orders = [
        order("archive", "thread_id", thread),
        order("cancel", "action_id", action),
        order("cancel", "process_id", process),
        order("cancel", "chain_id", chain),
        order("pause", "task_id", task),
    ];
    match (access.method, access.path) {
        ("GET", "/v1/events/stream") => TriedIn("a_user_sees_what_concerns_them_and_nothing_else"),
        ("GET", "/v1/ws") => TriedIn("a_user_sees_what_concerns_them_and_nothing_else"),
        ("GET", "/v1/teams" | "/v1/teams/{team}") => TriedIn("a_user_sees_and_orders_their_own_teams_only"),
        ("POST", "/v1/chat/completions") => TriedIn("a_chat_is_of_the_user_of_the_key_and_needs_both_scopes"),
        ("POST" | "DELETE", "/v1/mcp/{server}/login") => TriedIn(SIGN_INS),
        ("POST", "/v1/mcp/{server}/login/finish") | ("GET", "/v1/mcp/sign-ins") => TriedIn(SIGN_INS),
        ("POST", "/v1/messages") => Write(vec![as_joe(json!({ "text": "as joe" }))]),
        ("POST", "/v1/choices") => {
            let choice = json!({ "offer_id": approval, "option": "accept" });
            Write(vec![as_joe(choice.clone()), as_ann(choice)])
        }
        ("POST", "/v1/questions/{question_id}") => {
            Write(["joe", "ann"].map(|user| json!({ "user": user, "action": "decline" })).to_vec())
        }
        ("POST", "/v1/approvals") => {
            let consent = json!({ "action_id": approval, "verdict": "approved" });
            let doubt = json!({ "action_id": action, "verdict": "happened" });
            Write(vec![as_joe(consent.clone()), as_ann(consent), as_ann(doubt)])
        }
        ("POST", "/v1/conversations/{agent}/import") => {
            let (threads, message) =
                ([json!({ "thread_id": "t" })], json!({ "thread_id": "t", "role": "user", "text": "as joe" }));
            let document = |user: &str| {
                json!({
                    "format": "kairo.conversation.v1", "agent": AGENT, "user": user, "threads": threads,
                    "messages": [message],
                })
            };
            Write(vec![json!({ "document": document("joe") }), json!({ "user": "joe", "document": document("ann") })])
        }
        ("POST", "/v1/commands") => Write(orders.into_iter().flat_map(|it| [as_joe(it.clone()), as_ann(it)]).collect()),
        ("GET", "/v1/threads/{thread_id}") => Read(vec![format!("/v1/threads/{thread}?agent={AGENT}")]),
        ("GET", "/v1/threads/{thread_id}/messages") => {
            let queries = ["", "&latest=1"].map(|query| format!("/v1/threads/{thread}/messages?agent={AGENT}{query}"));
            Read(queries.to_vec())
        }
        ("GET", "/v1/agents/{agent}/thoughts") => {
            let queries = ["", "?module=critic"].map(|query| format!("/v1/agents/{AGENT}/thoughts{query}"));
            Read(queries.to_vec())
        }
        ("POST", "/v1/tasks") => Write(vec![as_joe(json!({ "text": "as joe" }))]),
        ("GET", "/v1/tasks/{task_id}") => Read(vec![format!("/v1/tasks/{task}")]),
        ("GET", "/v1/tasks/{task_id}/result") => Read(vec![format!("/v1/tasks/{task}/result?timeout_ms=0")]),
        ("GET", "/v1/interactions/{turn_id}") => Read(vec![format!("/v1/interactions/{correlation}")]),
        ("GET", "/v1/chains/{chain_id}") => Read(vec![format!("/v1/chains/{chain}")]),
        ("GET", "/v1/memories/{agent}/{memory_id}") => Read(vec![format!("/v1/memories/{AGENT}/{memory}")]),
        ("GET", "/v1/memories/{agent}/{memory_id}/history") => {
            Read(vec![format!("/v1/memories/{AGENT}/{memory}/history")])
        }
        ("GET", "/v1/approvals/{action_id}") => Read(vec![format!("/v1/approvals/{approval}")]),
        ("GET", "/v1/actions/{action_id}") => Read(vec![format!("/v1/actions/{action}")]),
        ("GET", "/v1/processes/{process_id}") => Read(vec![format!("/v1/processes/{process}")]),
        ("GET", "/v1/actions") => {
            let filters = ["status=all".to_owned(), format!("thread={thread}&status=all")];
            Read(filters.map(|filter| format!("/v1/actions?agent={AGENT}&{filter}")).to_vec())
        }
        ("GET", "/v1/processes") => Read(vec!["/v1/processes".to_owned(), format!("/v1/processes?agent={AGENT}")]),
        ("GET", "/v1/events") => {
            let filters = [
                "".to_owned(),
                format!("?agent={AGENT}"),
                format!("?thread={thread}"),
                format!("?correlation={correlation}"),
            ];
            Read(filters.map(|filter| format!("/v1/events{filter}")).to_vec())
        }
        other => panic!("{other:?} looks itself whose things are: say how ann would reach joe's by it"),
    }
}

async fn start() -> (World, Caller) {
    let wanted = Wanted::new(SCENARIO)
        .env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always")
        .env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.now"]"#);
    let world = wanted.start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let submodules = [json!({ "name": "critic", "prompt": "You find fault." })];
    let profile = json!({ "agent": AGENT, "prompt": "You are a helpful agent.", "submodules": submodules });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    (world, operator)
}

/// Has joe make one of everything, and waits until it is shown.
async fn things_of_joe(world: &World, operator: &Caller) -> Things {
    let say = async |text: &str| -> Uuid {
        let said = operator.post("/v1/messages", json!({ "user": "joe", "agent": AGENT, "text": text })).await;
        assert_eq!(said.0, 202, "{}", said.1);
        said.1["correlation_id"].as_str().unwrap().parse().unwrap()
    };
    let of = async |correlation: Uuid, type_name: &str| -> EventJson {
        world.log.wait(|event| event.correlation_id == correlation && event.type_name == type_name).await
    };
    let text = |event: &EventJson, field: &str| event.payload[field].as_str().unwrap().to_owned();
    let kept = say("keep this").await;
    let (memory, chain) = (of(kept, v1::MemoryAppended::TYPE).await, of(kept, v1::ChainStarted::TYPE).await);
    let spawned = of(say(&format!("run something with {HIS}")).await, v1::ProcessSpawned::TYPE).await;
    let task = of(say("watch searches").await, v1::TaskScheduled::TYPE).await;
    let asked = of(say("what time is it").await, v1::ApprovalRequested::TYPE).await;
    world.projected().await;
    Things {
        thread: memory.thread_id.clone().unwrap(),
        correlation: kept,
        action: text(&spawned, "action_id"),
        process: text(&spawned, "process_id"),
        task: task.payload["task"]["task_id"].as_str().unwrap().to_owned(),
        chain: text(&chain, "chain_id"),
        memory: text(&memory, "memory_id"),
        approval: asked.event_id.to_string(),
    }
}

#[tokio::test]
async fn no_endpoint_shows_or_changes_what_is_anothers() {
    let (world, operator) = start().await;
    let joe = things_of_joe(&world, &operator).await;
    let (_, key) = operator.make(json!({ "name": "ann", "scopes": ["read", "write"], "user": "ann" })).await;
    let ann = Caller::new(&world, 0, Some(&key));
    // Whoever may speak for everybody, but with another agent alone.
    let (_, key) = operator.make(json!({ "name": "other", "scopes": ["read", "write"], "agents": ["other"] })).await;
    let strangers = [ann.clone(), Caller::new(&world, 0, Some(&key))];
    let ids = [&joe.thread, &joe.action, &joe.process, &joe.task, &joe.chain, &joe.memory, &joe.approval];
    for access in kairo_gateway::endpoints().filter(|access| access.user == LimitRule::Asked) {
        match attempt(access, &joe) {
            TriedIn(test) => {
                assert!(
                    [include_str!("../limited.rs"), include_str!("../people.rs")]
                        .iter()
                        .any(|tests| tests.contains(&format!("async fn {test}()"))),
                    "there is no test {test}"
                );
            }
            Read(paths) => {
                for path in paths {
                    // What the operator is shown is there to be shown.
                    let (status, shown) = operator.get(&path).await;
                    assert!(status == 200 && ids.iter().any(|id| shown.to_string().contains(*id)), "{path}: {shown}");
                    for stranger in &strangers {
                        let (status, shown) = stranger.get(&path).await;
                        assert!(matches!(status, 200 | 403 | 404), "{path}: {shown}");
                        let shown = shown.to_string();
                        let told = status == 200 && ids.iter().any(|id| shown.contains(*id));
                        assert!(!told && !shown.contains(HIS) && !shown.contains("joe"), "{path}: {shown}");
                    }
                }
            }
            Write(bodies) => {
                let path = access.path.replace("{agent}", AGENT).replace("{question_id}", &joe.approval);
                for (body, stranger) in bodies.iter().flat_map(|body| strangers.iter().map(move |it| (body, it))) {
                    let before = world.end_of_log().await;
                    let (status, problem) = stranger.post(&path, body.clone()).await;
                    assert!(matches!(status, 403 | 404), "{path} {body}: {status} {problem}");
                    assert_eq!(world.end_of_log().await, before, "{body}");
                }
            }
        }
    }
    // What says nothing of anybody says nothing of him.
    for access in kairo_gateway::endpoints().filter(|access| access.user == LimitRule::Free && access.method == "GET") {
        let path = access.path.replace("{agent}", AGENT).replace("{model}", AGENT).replace("{tool}", "tools.now");
        if path.contains('{') {
            assert_eq!(path, "/v1/objects/{digest}", "say what is asked of it");
            continue;
        }
        let shown = ann.request(Method::GET, &path).send().await.unwrap().text().await.unwrap();
        assert!(!shown.contains(HIS) && ids.iter().all(|id| !shown.contains(*id)), "{path}: {shown}");
    }
    let cancel = json!({ "user": "joe", "agent": AGENT, "command": "cancel", "process_id": joe.process });
    assert_eq!(operator.post("/v1/commands", cancel).await.0, 202);
    let refuse = json!({ "user": "joe", "agent": AGENT, "action_id": joe.approval, "verdict": "rejected" });
    assert_eq!(operator.post("/v1/approvals", refuse).await.0, 202);
    world.log.wait(|event| event.type_name == v1::ProcessExited::TYPE).await;
    world.end().await;
}
