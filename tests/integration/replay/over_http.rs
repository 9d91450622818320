//! The output of `kairo state` and `kairo incident export` over HTTP, for other clients.

use std::path::Path;

use kairo_proto::v1::LogMessage;
use serde_json::{Value, json};

use super::AGENT;
use crate::{
    command_line::{kairo, lines},
    world::World,
};

/// A state at any place, and the incident file to the byte.
pub async fn others_are_told_the_same(world: &World, file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let messages: Vec<LogMessage> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decisions = messages.iter().filter(|it| it.subject.ends_with(".decision")).map(|it| it.sequence);
    let decisions: Vec<u64> = decisions.collect();
    let path = format!("/v1/agents/{AGENT}/state");
    let told = async |at: u64| {
        let output = kairo(world, &["state", AGENT, "--json", "--at", &at.to_string()]).await;
        serde_json::from_str::<Value>(lines(&output)[0]).unwrap()
    };
    for at in [decisions[1] - 1, decisions[1], decisions[2]] {
        assert_eq!(world.get(&format!("{path}?at={at}")).await, (200, told(at).await), "at {at}");
    }
    let (code, now) = world.get(&path).await;
    assert_eq!((code, &now["at"]), (200, &json!(messages.last().unwrap().sequence)));
    assert_eq!(world.get(&format!("{path}?at=0")).await.0, 404);
    assert_eq!(world.get("/v1/agents/nobody/state").await.0, 404);
    let (code, problem) = world.get(&format!("{path}?at=soon&from=1")).await;
    let wrong: Vec<&Value> = problem["errors"].as_array().unwrap().iter().map(|error| &error["field"]).collect();
    assert_eq!((code, wrong), (400, vec![&json!("at"), &json!("from")]), "{problem}");

    requests_changes_and_cones(world, decisions[1]).await;
    pages_go_back_and_are_outlined(world).await;

    let incident = |query: String| world.http.get(world.url(&format!("/v1/incidents/{AGENT}{query}"))).send();
    let whole = file.with_file_name("whole.kairo");
    for (query, around) in
        [(String::new(), None), (format!("?around={}", decisions[1]), Some(decisions[1].to_string()))]
    {
        let around: Vec<&str> = around.iter().flat_map(|at| ["--around", at.as_str()]).collect();
        let export = ["incident", "export", "--agent", AGENT, "--output", whole.to_str().unwrap()];
        assert!(kairo(world, &[&export[..], &around].concat()).await.status.success());
        let answer = incident(query).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"application/x-ndjson".parse().unwrap())
        );
        assert_eq!(answer.bytes().await.unwrap(), std::fs::read(&whole).unwrap());
    }
    let answer = incident("?around=99999".to_owned()).await.unwrap();
    let (code, problem) = (answer.status().as_u16(), answer.json::<Value>().await.unwrap());
    assert_eq!((code, &problem["errors"][0]["field"]), (400, &json!("around")), "{problem}");
    assert_eq!(world.get("/v1/incidents/nobody").await.0, 404);
}

/// Checks that the requests to models for a decision, and its changes and cones, match the output of the commands.
async fn requests_changes_and_cones(world: &World, at: u64) {
    let path = |what: &str| format!("/v1/agents/{AGENT}/{what}");
    let told = async |arguments: &[&str]| -> Vec<Value> {
        let output = kairo(world, &[arguments, &["--json"]].concat()).await;
        lines(&output).into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let place = at.to_string();
    let (code, asked) = world.get(&format!("{}?at={at}", path("requests"))).await;
    let requests = told(&["state", AGENT, "--at", &place, "--request"]).await;
    assert_eq!((code, &asked["requests"], !requests.is_empty()), (200, &json!(requests), true));
    assert_eq!(world.get(&format!("{}?at={}", path("requests"), at - 1)).await.0, 404, "that is no decision");
    let (code, problem) = world.get(&path("requests")).await;
    assert_eq!((code, &problem["errors"][0]["field"]), (400, &json!("at")));

    let post = async |what: &str, body: Value| {
        let answer = world.http.post(world.url(&path(what))).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (code, report) = post("replay", json!({ "to": at, "limits": { "max_steps": 1 } })).await;
    let mut lines = told(&["replay", "--agent", AGENT, "--to", &place, "--limit", "max_steps=1"]).await;
    let summary = lines.pop().unwrap();
    assert_eq!((code, &report["decisions"], &report["counts"]), (200, &json!(lines), &summary["counts"]), "{report}");
    assert_eq!((&report["changed"], report.get("next_from")), (&json!(["max_steps=1"]), None));
    let (_, first) = post("replay", json!({ "prompt": "Be long.", "limit": 1 })).await;
    let outcomes: Vec<&Value> = first["decisions"].as_array().unwrap().iter().map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, [&json!("drifted")]);
    let (_, rest) = post("replay", json!({ "prompt": "Be long.", "from": first["next_from"] })).await;
    assert!(rest["decisions"][0]["sequence"].as_u64() > first["decisions"][0]["sequence"].as_u64(), "{rest}");
    assert_eq!(post("replay", json!({ "limits": { "max_stepz": 1 } })).await.0, 400);
    let nobody = world.http.post(world.url("/v1/agents/nobody/replay")).json(&json!({})).send().await.unwrap();
    assert_eq!(nobody.status().as_u16(), 404);

    let input = report["decisions"].as_array().unwrap().last().unwrap()["input"]["sequence"].as_u64().unwrap();
    let (code, mut cone) = post("whatif", json!({ "at": input, "drop": true })).await;
    assert_eq!((code, cone.as_object_mut().unwrap().remove("left_out")), (200, Some(json!(0))));
    assert_eq!(vec![cone], told(&["whatif", "--agent", AGENT, "--drop", &input.to_string()]).await);
    let (code, problem) = post("whatif", json!({ "at": at, "drop": true })).await;
    assert_eq!((code, &problem["errors"][0]["field"]), (400, &json!("at")), "a decision is made of others: {problem}");
    assert_eq!(post("whatif", json!({ "at": 999_999, "drop": true })).await.0, 404);
}

/// The history backwards in whole messages, and how much of it there is where.
async fn pages_go_back_and_are_outlined(world: &World) {
    world.projected().await;
    let events = async |query: &str| {
        let (code, page) = world.get(&format!("/v1/events?agent={AGENT}{query}")).await;
        assert_eq!(code, 200, "{page}");
        page
    };
    let all = events("&limit=1000").await["events"].as_array().unwrap().clone();
    let mut page = events("&latest=5").await;
    let mut read = page["events"].as_array().unwrap().clone();
    while let Some(before) = page["next_before"].as_u64() {
        page = events(&format!("&before={before}&limit=5")).await;
        let older = page["events"].as_array().unwrap();
        assert!(older.iter().all(|event| event["sequence"].as_u64() < Some(before)));
        read.splice(0..0, older.iter().cloned());
    }
    assert_eq!(read, all);

    let (code, outline) = world.get(&format!("/v1/events/outline?agent={AGENT}&buckets=7")).await;
    assert_eq!((code, &outline["events"], &outline["cut"]), (200, &json!(all.len()), &json!(false)), "{outline}");
    let buckets = outline["buckets"].as_array().unwrap();
    assert!((2..=7).contains(&buckets.len()), "{outline}");
    for bucket in buckets {
        let within = |event: &&Value| {
            let at = event["sequence"].as_u64();
            at >= bucket["first"].as_u64() && at <= bucket["last"].as_u64()
        };
        let within: Vec<&Value> = all.iter().filter(within).collect();
        let of = |family: &str| {
            let of_it = |event: &&&Value| event["type"].as_str().unwrap().split('.').nth(1) == Some(family);
            within.iter().filter(of_it).count()
        };
        assert_eq!(bucket["events"], json!(within.len()));
        for count in bucket["families"].as_array().unwrap() {
            assert_eq!(count["events"], json!(of(count["family"].as_str().unwrap())), "{count}");
        }
    }
    let (from, to) = (&buckets[1]["first"], &buckets[1]["last"]);
    let (_, part) = world.get(&format!("/v1/events/outline?agent={AGENT}&from={from}&to={to}")).await;
    assert_eq!(part["events"], buckets[1]["events"]);
}
