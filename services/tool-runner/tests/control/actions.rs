//! `action.cancel`: whichever way it goes, one result.

use std::time::Duration;

use kairo_proto::Body;
use serde_json::json;
use uuid::Uuid;

use super::kairo::{Call, Kairo, failed, said};

/// Counts the results of an action in the log.
async fn results(kairo: &Kairo, action: Uuid) -> usize {
    let of_action = |body: &Body| matches!(body, Body::ToolResult(result) if result.action_id == action.to_string());
    kairo.log().await.iter().filter(|record| of_action(&record.body)).count()
}

#[tokio::test]
async fn a_call_in_flight_is_stopped_on_whichever_replica_carries_it_out() {
    let kairo = Kairo::start(2, &[]).await;
    let mut here = false;
    let mut elsewhere = false;
    // Who is given what is up to the server.
    for _ in 0..64 {
        let (call, _asked) = kairo.lasting().await;
        let cancel = kairo
            .decide(Call {
                tool: "action.cancel",
                arguments: json!({ "action_id": call.action }),
                target: Some(call.action),
            })
            .await;
        let told = said(&kairo.result(cancel.action).await.0);
        assert_eq!(
            (&told["status"], &told["ok"], &told["tool"]),
            (&json!("canceled"), &json!(false), &json!("http.get"))
        );
        let (result, record) = kairo.result(call.action).await;
        assert_eq!((failed(&result).0, result.tool.as_str()), ("canceled", "http.get"));
        assert_eq!(record.envelope.correlation_id, call.correlation_id, "its own correlation");
        assert_eq!(record.envelope.thread_id.as_deref(), Some("t-1"));
        let same = kairo.invoke(call.action).await.runner == kairo.invoke(cancel.action).await.runner;
        (here, elsewhere) = (here || same, elsewhere || !same);
        if here && elsewhere {
            return kairo.stop().await;
        }
    }
    panic!("one replica did it all");
}

#[tokio::test]
async fn canceling_twice_or_what_has_ended_changes_nothing() {
    let kairo = Kairo::start(1, &[]).await;
    let (call, _asked) = kairo.lasting().await;
    let (first, second) = tokio::join!(kairo.cancel(call.action), kairo.cancel(call.action));
    for told in [said(&first), said(&second)] {
        assert!(["canceled", "ended already"].contains(&told["status"].as_str().unwrap()), "{told}");
        assert_eq!(told["error"]["kind"], "canceled");
    }
    assert_eq!(results(&kairo, call.action).await, 1);

    let now = kairo.decide(Call { tool: "tools.now", arguments: json!({}), target: None }).await;
    assert!(kairo.result(now.action).await.0.ok);
    let told = said(&kairo.cancel(now.action).await);
    assert_eq!((&told["status"], &told["ok"]), (&json!("ended already"), &json!(true)));
    assert_eq!(results(&kairo, now.action).await, 1);
    kairo.stop().await;
}

#[tokio::test]
async fn a_cancel_and_what_it_cancels_may_come_in_any_order() {
    let kairo = Kairo::start(2, &[]).await;
    for _ in 0..16 {
        // Waiting for nobody: the cancel is often looked at before the call has begun.
        let url = json!({ "url": "http://nobody.invalid/" });
        let call = kairo.decide(Call { tool: "http.get", arguments: url, target: None }).await;
        let told = said(&kairo.cancel(call.action).await);
        let (result, _) = kairo.result(call.action).await;
        assert_eq!(told["ok"], result.ok, "{told}");
        assert_eq!(results(&kairo, call.action).await, 1);
    }
    kairo.stop().await;
}

/// Decides on a call of the site and on a cancel of it, whether a runner is there or not.
async fn decide_and_cancel(kairo: &Kairo) -> [Uuid; 2] {
    let url = json!({ "url": kairo.site() });
    let call = kairo.decide(Call { tool: "http.get", arguments: url, target: None }).await.action;
    let arguments = json!({ "action_id": call });
    let cancel = kairo.decide(Call { tool: "action.cancel", arguments, target: Some(call) }).await.action;
    [call, cancel]
}

async fn never_began(kairo: &Kairo, [call, cancel]: [Uuid; 2]) {
    let (result, _) = kairo.result(call).await;
    assert_eq!(failed(&result), ("canceled", "it was canceled before it began"));
    let told = said(&kairo.result(cancel).await.0);
    assert_eq!((&told["ok"], &told["error"]["kind"]), (&json!(false), &json!("canceled")), "{told}");
    assert!(!kairo.was_site_asked(), "it began after it was canceled");
    assert_eq!(results(kairo, call).await, 1);
}

#[tokio::test]
async fn what_was_canceled_while_no_runner_was_there_never_begins() {
    let mut kairo = Kairo::start(1, &[]).await;
    kairo.kill9(0).await;
    let mut decided = Vec::new();
    for _ in 0..4 {
        decided.push(decide_and_cancel(&kairo).await);
    }
    // They are no longer taken for decisions of this moment.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    kairo.another().await;
    for call in decided {
        never_began(&kairo, call).await;
        assert_eq!(kairo.invoke(call[0]).await.actions[0].executor, "nobody");
    }
    kairo.stop().await;
}

#[tokio::test]
async fn what_was_canceled_while_its_runner_was_frozen_never_begins() {
    let kairo = Kairo::start(1, &[]).await;
    for _ in 0..4 {
        kairo.freeze(0);
        let decided = decide_and_cancel(&kairo).await;
        kairo.thaw(0);
        never_began(&kairo, decided).await;
    }
    kairo.stop().await;
}

#[tokio::test]
async fn what_is_not_the_agents_is_not_found() {
    let kairo = Kairo::start(1, &[]).await;
    let stranger = Uuid::from_u128(7);
    let arguments = json!({ "action_id": stranger });
    assert_eq!(failed(&kairo.call("action.cancel", arguments, None).await).0, "not_found");
    assert_eq!(failed(&kairo.cancel(stranger).await).0, "not_found");
    kairo.stop().await;
}

#[tokio::test]
async fn what_a_lost_runner_carried_out_is_ended_by_whoever_cancels_it() {
    let mut kairo = Kairo::start(1, &[]).await;
    let (call, _asked) = kairo.lasting().await;
    kairo.kill9(0).await;
    kairo.another().await;
    let told = said(&kairo.cancel(call.action).await);
    assert_eq!(told["status"], "canceled", "it can be repeated, so nothing is in doubt: {told}");
    assert_eq!(failed(&kairo.result(call.action).await.0).0, "canceled");
    assert_eq!(results(&kairo, call.action).await, 1);
    kairo.stop().await;
}

#[tokio::test]
async fn calls_that_last_keep_no_cancel_waiting() {
    let kairo = Kairo::start(1, &[("KAIRO_TOOL_RUNNER__PARALLEL", "1".to_owned())]).await;
    let (call, _asked) = kairo.lasting().await;
    let waiting = kairo.decide(Call { tool: "tools.now", arguments: json!({}), target: None }).await;
    let told = said(&kairo.cancel(waiting.action).await);
    assert_eq!(told["status"], "canceled", "it waits for room: {told}");
    assert_eq!(results(&kairo, waiting.action).await, 1);
    assert_eq!(said(&kairo.cancel(call.action).await)["status"], "canceled");
    kairo.stop().await;
}
