//! The AsyncAPI document that the gateway serves, as a client gets it.

use kairo_core::subjects::TABLE;
use serde_json::Value;

use crate::{
    validator,
    world::{Wanted, World, scenario::USUAL},
};

/// The document as it is served.
pub async fn document(world: &World) -> String {
    let answer = reqwest::get(world.url("/asyncapi.yaml")).await.unwrap().error_for_status().unwrap();
    let content_type = answer.headers()["content-type"].to_str().unwrap();
    assert!(content_type.starts_with("application/vnd.aai.asyncapi+yaml"), "{content_type}");
    answer.text().await.unwrap()
}

/// Returns the verdict of AsyncAPI's own parser on the document; none on a machine where it is not installed.
async fn verdict(document: &str) -> Option<(bool, String)> {
    validator::verdict("KAIRO_ASYNCAPI_VALIDATE", document).await
}

#[tokio::test]
async fn the_document_is_valid_asyncapi_and_covers_the_connection_and_every_subject() {
    let world = Wanted::new(USUAL).start().await;
    let text = document(&world).await;
    let parsed: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(parsed["asyncapi"], "3.0.0");
    assert_eq!(parsed["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(parsed["channels"]["connection"]["address"], "/v1/ws");
    for route in TABLE {
        assert!(parsed["channels"][format!("kairo.{}.{}", route.noun, route.verb)].is_object(), "{}", route.says);
    }
    // Every message of an operation is one of its channel's.
    for (name, operation) in parsed["operations"].as_object().unwrap() {
        let channel = operation["channel"]["$ref"].as_str().unwrap();
        for message in operation["messages"].as_array().unwrap() {
            let reference = message["$ref"].as_str().unwrap();
            assert!(reference.starts_with(&format!("{channel}/messages/")), "{name}: {reference}");
        }
    }
    match verdict(&text).await {
        Some((valid, said)) => assert!(valid, "{said}"),
        None => eprintln!("skipped: the AsyncAPI parser is not installed, since there is no Node 20 here"),
    }
    world.end().await;
}

#[tokio::test]
async fn a_document_with_a_mistake_is_not_valid() {
    let broken = "asyncapi: 3.0.0\ninfo: { title: Broken, version: '1' }\nchannels: { a: { messages: 7 } }\n";
    match verdict(broken).await {
        Some((valid, said)) => assert!(!valid && said.contains("channels.a.messages"), "{said}"),
        None => eprintln!("skipped: the AsyncAPI parser is not installed, since there is no Node 20 here"),
    }
}
