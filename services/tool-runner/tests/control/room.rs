//! Calls that wait for room to run: they have not begun, and keep no order waiting.

use std::{collections::BTreeSet, sync::Mutex};

use kairo_proto::Body;
use serde_json::json;
use uuid::Uuid;

use super::kairo::{Call, Kairo, failed, said};

/// A tool that the server's word does not make repeatable: whether its effect happened nobody can know.
const ONCE: &str = "time.get_current_time";

fn once() -> Call {
    Call { tool: ONCE, arguments: json!({ "timezone": "UTC" }), target: None }
}

/// With one call at a time, and a tool that may be called once only.
fn env() -> [(&'static str, String); 2] {
    let program = std::env::var("KAIRO_MCP_TIME").expect("KAIRO_MCP_TIME is not set; run ./scripts/test");
    let server = json!([{ "name": "time", "command": program, "trust_hints": false }]).to_string();
    [("KAIRO_TOOL_RUNNER__PARALLEL", "1".to_owned()), ("KAIRO_TOOL_RUNNER__MCP", server)]
}

#[tokio::test]
async fn only_what_ran_is_lost_in_a_crash() {
    let mut kairo = Kairo::start(1, &env()).await;
    let (lasting, _asked) = kairo.lasting().await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(kairo.decide(once()).await.action);
    }
    // Together with one that needs no room: by its result, this decision was read, and all before it.
    let order = Uuid::now_v7();
    let group = Uuid::now_v7();
    let arguments = json!({ "action_id": Uuid::nil() });
    let call = Call { tool: "action.cancel", arguments, target: None };
    kairo.decide_together([(order, call), (group, once())]).await;
    assert_eq!(failed(&kairo.result(order).await.0).0, "not_found");
    waiting.push(group);

    kairo.kill9(0).await;
    kairo.another().await;
    // What ran can be repeated, and runs as long as it did before.
    assert_eq!(said(&kairo.cancel(lasting.action).await)["status"], "canceled");
    for action in waiting {
        let (result, _) = kairo.result(action).await;
        assert!(result.ok, "{:?}", result.error);
    }
    kairo.stop().await;
}

#[tokio::test]
async fn an_order_does_not_wait_behind_work_however_much_there_is() {
    let kairo = Kairo::start(1, &[("KAIRO_TOOL_RUNNER__PARALLEL", "1".to_owned())]).await;
    let (lasting, _asked) = kairo.lasting().await;
    let mut waiting = BTreeSet::new();
    // More than `bus.concurrency`.
    for _ in 0..300 {
        let call = Call { tool: "tools.now", arguments: json!({}), target: None };
        waiting.insert(kairo.decide(call).await.action.to_string());
    }
    assert_eq!(said(&kairo.cancel(lasting.action).await)["status"], "canceled");
    let waiting = Mutex::new(waiting);
    kairo
        .wait("kairo.tool.*.result", |record| {
            let Body::ToolResult(result) = &record.body else { return None };
            let mut waiting = waiting.lock().unwrap();
            assert!(!waiting.remove(&result.action_id) || result.ok, "{:?}", result.error);
            waiting.is_empty().then_some(())
        })
        .await;
    kairo.stop().await;
}

#[tokio::test]
async fn a_call_beside_one_that_was_withdrawn_is_carried_out_by_a_runner_that_has_just_connected() {
    let [(_, _), mcp] = env();
    // As long as its connection is younger than this, it gives nobody up for lost.
    let young = ("KAIRO_BUS__ACK_WAIT_MS", "5000".to_owned());
    let mut kairo = Kairo::start(0, &[mcp, young]).await;
    let withdrawn = Uuid::now_v7();
    let new = Uuid::now_v7();
    let decision = kairo.decide_together([(withdrawn, once()), (new, once())]).await;
    kairo.withdraw(withdrawn, &decision).await;
    kairo.another().await;
    let (result, _) = kairo.result(new).await;
    assert!(result.ok, "{:?}", result.error);
    assert_eq!(failed(&kairo.result(withdrawn).await.0).0, "canceled");
    kairo.stop().await;
}
