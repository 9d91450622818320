//! `kairo whatif --live`: models are asked for what would not be known, within a budget, and nothing is executed.

use serde_json::{Value, json};

use super::lanes::{LOOKS, PRICE, Place, TELLS, rule, rules, thanked, time, traced_call};

/// The user had asked for the hour: message 4 of the log.
const EDIT: &str = r#"{"message_id":"m4","user":"ann","text":"the hour please"}"#;

/// Runs `kairo whatif --live` on the log, where the scenario answers for the models; returns the exit code
/// and the cone.
async fn cone(place: &Place, budget: &str) -> (Option<i32>, Value) {
    std::fs::write(place.path("edit.json"), EDIT).unwrap();
    let page = place.path("cone.html");
    let options = ["--edit", "4=edit.json", "--live", "--budget", budget, "--json", "--html", page.to_str().unwrap()];
    let (code, said, told) =
        place.kairo(&[("KAIRO_MODELS__HEAVY__PRICE", PRICE)], &[&["whatif", "cook.log"], &options[..]].concat()).await;
    assert!(told.contains("up to about 3 calls for about 0."), "{told}");
    (code, serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{told}")))
}

fn of(cone: &Value, at: u64) -> &Value {
    cone["reached"].as_array().unwrap().iter().find(|it| it["sequence"] == at).unwrap_or(&Value::Null)
}

fn fates(cone: &Value) -> Vec<(u64, &str)> {
    let reached = cone["reached"].as_array().unwrap().iter();
    reached.map(|it| (it["sequence"].as_u64().unwrap(), it["fate"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn what_would_not_be_known_is_asked_and_the_cone_goes_on_with_recorded_results() {
    let hour = rule("user_contains: the hour", &[LOOKS, r#"text: "It is 2 hours.""#]);
    let place = Place::new(&rules(&[&hour, &time(), &thanked()])).await;
    let (code, cone) = cone(&place, "1").await;
    assert_eq!(
        (code, fates(&cone)),
        (Some(1), vec![(4, "edited"), (5, "kept"), (7, "changed"), (9, "kept")]),
        "{cone:#}"
    );
    assert_eq!(of(&cone, 7)["differences"][0]["made"], r#""It is 2 hours.""#);
    let asked = &cone["asked"];
    assert_eq!((&asked["calls"], &asked["cost"], &asked["ended"]), (&json!(3), &json!("0.00003"), &json!("complete")));
    let requests = place.requests().await;
    assert_eq!(requests.len(), 3);
    // The result of the recorded call stands in the second.
    assert!(requests[1]["body"]["messages"].to_string().contains("the hour please"), "{}", requests[1]);
    assert_eq!(requests[1]["body"]["messages"].as_array().unwrap().last().unwrap()["role"], "tool");
    let page = std::fs::read_to_string(place.path("cone.html")).unwrap();
    assert!(page.contains("Models were asked for 3 of them: 3 calls for 0.00003 of 1"), "{page}");
}

#[tokio::test]
async fn what_is_not_affordable_stays_unknown() {
    let place = Place::new(&rules(&[&rule("user_contains: the hour", &[LOOKS, TELLS]), &time(), &thanked()])).await;
    let (_, none) = cone(&place, "0").await;
    assert_eq!((place.requests().await.len(), &none["counts"]["unknown"]), (0, &json!(3)));
    let (code, cone) = cone(&place, "0.00001").await;
    assert_eq!((code, place.requests().await.len()), (Some(1), 1));
    assert_eq!(
        [5, 7, 9].map(|at| of(&cone, at)["fate"].clone()),
        ["kept", "unknown", "unknown"].map(|fate| json!(fate))
    );
    assert!(of(&cone, 7)["reason"].as_str().unwrap().contains("budget does not suffice"), "{cone:#}");
    assert_eq!((&cone["asked"]["cost"], &cone["asked"]["ended"]), (&json!("0.00001"), &json!("budget")));
}

#[tokio::test]
async fn another_call_stays_open_and_what_came_of_the_recorded_one_vanishes() {
    let (called, calls) = traced_call();
    let hour = rule("user_contains: the hour", &[&calls, TELLS]);
    let place = Place::new(&rules(&[&hour, &time(), &thanked()])).await;
    let (code, cone) = cone(&place, "1").await;
    let looks = of(&cone, 5);
    assert_eq!(
        (code, &looks["fate"], &looks["lost"][0]["tool"]),
        (Some(1), &json!("changed"), &json!("http.get")),
        "{cone:#}"
    );
    assert_eq!([6, 7].map(|at| of(&cone, at)["fate"].clone()), [json!("vanished"), json!("vanished")]);
    assert_eq!(place.requests().await.len(), 2, "nothing answers the call, so nothing follows from it");
    assert!(called.accept().is_err(), "it was executed");
    let page = std::fs::read_to_string(place.path("cone.html")).unwrap();
    assert!(page.contains("which is not executed and stays open"), "{page}");
}

#[tokio::test]
async fn asking_takes_a_budget_and_a_budget_takes_asking() {
    let place = Place::new(&rules(&[&time(), &thanked()])).await;
    for (arguments, named) in [
        (&["--drop", "4", "--live"][..], "--budget"),
        (&["--drop", "4", "--budget", "1"], "--live"),
        (&["--drop", "4", "--live", "--budget", "1"], "models.heavy.price"),
    ] {
        let (code, said, told) = place.kairo(&[], &[&["whatif", "cook.log"], arguments].concat()).await;
        assert_eq!((code, said.as_str()), (Some(64), ""), "{arguments:?}: {told}");
        assert!(told.contains(named), "{arguments:?}: {told}");
    }
    assert_eq!(place.requests().await.len(), 0);
}
