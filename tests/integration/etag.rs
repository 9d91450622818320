//! A client that already has an answer is not sent it again.

use reqwest::{Client, Response, header};

use crate::world::{Wanted, World, scenario::USUAL};

async fn ask(world: &World, path: &str, held: &str) -> Response {
    let request = Client::new().get(world.url(path));
    let request = if held.is_empty() { request } else { request.header(header::IF_NONE_MATCH, held) };
    request.send().await.unwrap()
}

fn tag(answer: &Response) -> String {
    answer.headers()[header::ETAG].to_str().unwrap().to_owned()
}

fn position(answer: &Response) -> u64 {
    answer.headers()["kairo-position"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_answer_is_the_same_as_long_as_it_says_the_same() {
    let world = Wanted::new(USUAL).start().await;
    for agent in ["bob", "eve"] {
        world.define(agent).await;
    }
    world.ask("bob", "hello").await;
    world.projected().await;
    let paths = ["/v1/threads?agent=bob", "/v1/conversations/bob", "/v1/usage?agent=bob", "/v1/agents/bob"];
    let mut held = Vec::new();
    for path in paths {
        let answer = ask(&world, path, "").await;
        held.push((path, tag(&answer), position(&answer)));
    }

    // Others work on meanwhile.
    world.ask("eve", "hello").await;
    world.projected().await;
    for (path, tag_before, position_before) in &held {
        for list in [tag_before.clone(), format!("\"other\", {tag_before}"), "*".to_owned()] {
            let answer = ask(&world, path, &list).await;
            assert_eq!((answer.status().as_u16(), tag(&answer)), (304, tag_before.clone()), "{path} {list}");
            assert!(position(&answer) > *position_before && answer.headers().contains_key("x-request-id"), "{path}");
            assert!(!answer.headers().contains_key(header::CONTENT_TYPE) && answer.text().await.unwrap().is_empty());
        }
    }

    world.ask("bob", "hello again").await;
    world.projected().await;
    for (path, before, _) in held {
        let answer = ask(&world, path, &before).await;
        let same = path == "/v1/agents/bob";
        assert_eq!((answer.status() == 304, tag(&answer) == before), (same, same), "{path}");
    }

    // What is wrong, or not there, is told whatever a client has.
    assert_eq!(ask(&world, "/v1/threads?limit=0", "*").await.status(), 400);
    assert_eq!(ask(&world, "/v1/agents/nobody", "*").await.status(), 404);
    world.end().await;
}

#[tokio::test]
async fn documents_are_sent_once() {
    let world = Wanted::new(USUAL).start().await;
    for path in ["/openapi.json", "/openapi.yaml", "/asyncapi.yaml"] {
        let answer = ask(&world, path, "").await;
        let held = tag(&answer);
        assert!(answer.status() == 200 && !held.starts_with("W/"), "{path}: {held}");
        assert_eq!(ask(&world, path, &held).await.status(), 304, "{path}");
        assert_eq!(ask(&world, path, "\"other\"").await.status(), 200, "{path}");
    }
    world.end().await;
}
