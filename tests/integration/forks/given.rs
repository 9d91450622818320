//! Input to a fork that its agent waits for: consent, and time.

use jiff::Timestamp;
use kairo_proto::v1;
use serde_json::json;

use super::{Told, at_rest, from, said, say, world_of};
use crate::{
    console::{SCENARIO, with_consent},
    keys::Caller,
    world::Wanted,
};

async fn post(operator: &Caller, id: &str, what: &str, body: serde_json::Value) {
    let (status, problem) = operator.post(&format!("/v1/forks/{id}/{what}"), body).await;
    assert_eq!(status, 202, "{what}: {problem}");
}

/// The action that waits for consent, with the arguments it would be done with.
fn waiting(told: &[Told]) -> (String, String) {
    let asked = told.iter().find(|(_, _, data)| data["type"] == v1::ApprovalRequested::TYPE);
    let (_, _, asked) = asked.unwrap_or_else(|| panic!("nothing asks: {told:#?}"));
    assert_eq!(asked["payload"]["tool"], "tools.date_calc");
    let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
    (text(&asked["event_id"]), text(&asked["payload"]["arguments"]))
}

#[tokio::test]
async fn what_waits_for_consent_in_a_fork_is_done_with_it_and_not_without() {
    let (world, operator) = world_of(with_consent(), &[("KAIRO_GATEWAY__FORK_MODELS", "true")]).await;
    let (id, mut stream) = at_rest(&operator).await;

    say(&operator, &id, "the day please").await;
    let (action, arguments) = waiting(&stream.until("fork.at_rest").await);
    assert!(arguments.contains("2026-11-26"), "{arguments}");
    post(&operator, &id, "approvals", json!({ "action_id": action, "verdict": "rejected" })).await;
    let told = stream.until("fork.at_rest").await;
    assert_eq!(from(&told, "tool"), Vec::<&str>::new(), "it is not done: {told:#?}");
    assert_eq!(said(&told).len(), 1, "and the agent goes on: {told:#?}");

    say(&operator, &id, "the day please").await;
    let (action, _) = waiting(&stream.until("fork.at_rest").await);
    post(&operator, &id, "approvals", json!({ "action_id": action, "verdict": "approved" })).await;
    // The log does not know what it comes to.
    let asked = stream.until("fork.asked").await;
    let question = &asked.last().unwrap().2["question"];
    post(&operator, &id, "answers", json!({ "question": question, "result": "a Sunday" })).await;
    let told = stream.until("fork.at_rest").await;
    assert_eq!(from(&told, "tool"), ["asked"], "{told:#?}");
    assert!(said(&told).last().unwrap().contains("a Sunday"), "{told:#?}");
    world.end().await;
}

#[tokio::test]
async fn time_passes_in_a_fork_by_itself_until_its_next_timer_and_as_one_says() {
    let (world, operator) = world_of(Wanted::new(SCENARIO), &[("KAIRO_GATEWAY__FORK_MODELS", "true")]).await;
    let (id, mut stream) = at_rest(&operator).await;
    let time = |told: &[Told], of: &str| told.last().unwrap().2[of].as_str().map(|it| it.parse::<Timestamp>().unwrap());
    let (status, problem) = operator.post(&format!("/v1/forks/{id}/wait"), json!({})).await;
    assert_eq!((status, problem["detail"].as_str().unwrap().contains("no timer is set")), (409, true), "{problem}");

    say(&operator, &id, "remind me to stretch").await;
    let set = stream.until("fork.at_rest").await;
    let next = time(&set, "next_timer").unwrap();
    assert!(next.duration_since(time(&set, "now").unwrap()).as_hours() >= 1, "{next}");
    post(&operator, &id, "wait", json!({})).await;
    let told = stream.until("fork.at_rest").await;
    assert_eq!(said(&told), ["Time to stretch."], "{told:#?}");
    let now = time(&told, "now").unwrap();
    assert!(now >= next && time(&told, "next_timer").is_none(), "{told:#?}");

    post(&operator, &id, "wait", json!({ "seconds": 86_400 })).await;
    let later = time(&stream.until("fork.at_rest").await, "now").unwrap();
    assert!(later.duration_since(now).as_hours() >= 24, "{later}");
    world.end().await;
}
