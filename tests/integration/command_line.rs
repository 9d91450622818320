//! The `kairo` command against a real gateway.

use std::process::Output;

use kairo_core::subjects::Service;
use kairo_local::StackOptions;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::world::{Wanted, World, scenario::USUAL};

pub async fn kairo(world: &World, arguments: &[&str]) -> Output {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    Command::new(program).arg("--url").arg(world.url("")).args(arguments).output().await.unwrap()
}

pub fn lines(output: &Output) -> Vec<&str> {
    std::str::from_utf8(&output.stdout).unwrap().lines().collect()
}

#[tokio::test]
async fn a_message_is_sent_and_the_reply_events_and_status_are_shown() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let sent = kairo(&world, &["send", "--wait", "time please"]).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:?}");
    assert!(lines(&sent).iter().any(|line| line.contains("It is 2")), "{sent:?}");

    world.projected().await;
    let events = kairo(&world, &["events", "--after", "0", "--json"]).await;
    assert_eq!(events.status.code(), Some(0), "{events:?}");
    let shown: Vec<Value> = lines(&events).into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stored: Vec<Value> =
        world.log.now(&world.bus).await.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    assert_eq!(shown, stored);

    let status = kairo(&world, &["status", "--json"]).await;
    assert_eq!(status.status.code(), Some(0), "{status:?}");
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    for service in Service::ALL {
        let replicas = status["services"].as_array().unwrap();
        assert!(replicas.iter().any(|replica| replica["service"] == service.name()), "{status}");
    }
    assert_eq!(status["dead_letters"], 0);
    world.end().await;
}

#[tokio::test]
async fn a_message_goes_where_its_text_says() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let cook = json!({
        "agent": "cook", "prompt": "You cook.", "commands": [{ "value": "dinner", "label": "Dinner", "help": "what there is" }],
    });
    assert_eq!(world.post("/v1/agents", &cook).await.0, 201);
    world.projected().await;
    let texts = [("hello", "default"), ("@cook hello", "cook"), ("hello again", "cook"), ("/dinner please", "cook")];
    for (text, expected) in texts {
        let sent = kairo(&world, &["send", "--wait", "--chain", "--json", text]).await;
        assert_eq!(sent.status.code(), Some(0), "{sent:?}");
        let told: Value = serde_json::from_slice(&sent.stdout).unwrap();
        let subjects: Vec<&str> =
            told["events"].as_array().unwrap().iter().filter_map(|event| event["subject"].as_str()).collect();
        let message = format!("kairo.agent.{expected}.message");
        assert!(subjects.contains(&message.as_str()), "{text}: {subjects:?}");
    }
    let named = kairo(&world, &["send", "--wait", "--agent", "default", "@cook hello"]).await;
    assert_eq!(named.status.code(), Some(0), "{named:?}");
    world.end().await;
}

#[tokio::test]
async fn the_exit_status_tells_what_became_of_a_message() {
    let world = Wanted::new(USUAL).start().await;
    let nobody = kairo(&world, &["send", "--wait", "--agent", "nobody", "hello"]).await;
    assert_eq!(nobody.status.code(), Some(2), "{nobody:?}");
    let usage = kairo(&world, &["send", "--colour", "red"]).await;
    assert_eq!(usage.status.code(), Some(64), "{usage:?}");
    world.end().await;
}
