//! What `kairo state` and `kairo incident export` tell, over HTTP, for other clients.

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
