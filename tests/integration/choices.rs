//! Choices that an agent offers its user on the command line, and the effect of the answer.

use std::process::Output;

use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    command_line::{kairo, lines},
    world::{Wanted, World},
};

const AGENT: &str = "default";

/// A message about the dentist interrupts whatever was spoken of.
const INTERRUPTED: &str = r#"
rules:
  - name: interrupts
    when: { system_starts_with: "You are thread.match", user_matches: '"message":"[^"]*dentist' }
    reply: { json: { action: suggest_new, reason: an appointment } }
  - name: continues
    when: { system_starts_with: "You are thread.match" }
    reply: { json: { action: continue } }
  - name: sums-up
    when: { system_contains: "thread.summarize" }
    reply: { json: { title: talk, summary: this and that } }
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

async fn start() -> World {
    let world = Wanted::new(INTERRUPTED).start().await;
    let profile = json!({ "agent": AGENT, "prompt": "Be brief.", "threads": "topics" });
    assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    assert_eq!(said(&kairo(&world, &["send", "--wait", "about the meeting"]).await), ["You said: about the meeting"]);
    world
}

/// The lines of a command that succeeded.
fn said(output: &Output) -> Vec<&str> {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    lines(output)
}

/// The command that a question shows for this answer, without `kairo`.
fn command<'a>(shown: &[&'a str], answer: &str) -> Vec<&'a str> {
    let line = shown.iter().find(|line| line.trim_start().starts_with(answer)).unwrap_or_else(|| panic!("{shown:?}"));
    line.split_whitespace().skip(2).collect()
}

async fn thread_of(world: &World, message_id: &str) -> Value {
    let matched = world
        .log
        .wait(|event| event.type_name == v1::ThreadMatched::TYPE && event.payload["message_id"] == message_id)
        .await;
    assert_eq!(matched.payload["by"], "user");
    matched.payload["thread_id"].clone()
}

#[tokio::test]
async fn who_cannot_be_asked_is_shown_how_to_answer_and_the_answer_brings_the_reply() {
    let world = start().await;
    let send = ["send", "--wait", "--message-id", "m-1", "a dentist question"];
    let asked = kairo(&world, &send).await;
    let shown = said(&asked);
    assert_eq!(shown[0], "This seems to be a new subject (an appointment). Begin a new thread for it?");
    let accept = command(&shown, "yes:");
    assert_eq!((accept[0], &accept[2..]), ("choose", &["accept", "--agent", AGENT][..]));
    let answered = kairo(&world, &accept).await;
    assert_eq!(said(&answered), ["You said: a dentist question"]);

    // What is answered is not asked again, and not answered twice.
    world.projected().await;
    assert_eq!(said(&kairo(&world, &send).await), ["You said: a dentist question"]);
    let twice = kairo(&world, &accept).await;
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    assert!(String::from_utf8_lossy(&twice.stderr).contains("unknown_offer"), "{twice:?}");

    // Declined, the message stays where its user is.
    let another =
        kairo(&world, &["send", "--wait", "--json", "--message-id", "m-2", "one more dentist question"]).await;
    let told: Value = serde_json::from_str(said(&another)[0]).unwrap();
    let question = &told["ending"]["question"];
    assert_eq!((&told["ending"]["outcome"], &question["about"]), (&json!("asked"), &json!("thread")));
    world.projected().await;
    let id: String = question["id"].as_str().unwrap().chars().take(13).collect();
    assert_eq!(said(&kairo(&world, &["choose", &id, "decline"]).await), ["You said: one more dentist question"]);
    // The new one, in which its user is since.
    assert_eq!(thread_of(&world, "m-1").await, question["current_thread_id"]);
    assert_eq!(thread_of(&world, "m-2").await, question["current_thread_id"]);
    world.end().await;
}

#[tokio::test]
async fn orders_about_what_there_is_not_are_refused_with_the_reason() {
    let world = start().await;
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (order, kind) in [
        (&["choose", id, "accept", "--agent", AGENT, "--user", "you"][..], "unknown_offer"),
        (&["approve", id, "--agent", AGENT, "--user", "you"], "not_in_doubt"),
        (&["reject", id, "--agent", AGENT, "--user", "you", "--note", "never"], "not_in_doubt"),
        (&["chains", "cancel", id, "--agent", AGENT], "unknown_chain"),
    ] {
        let refused = kairo(&world, order).await;
        assert_eq!(refused.status.code(), Some(2), "{order:?}: {refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(kind), "{order:?}: {refused:?}");
    }
    let nobody = kairo(&world, &["chains", "cancel", id, "--agent", "nobody"]).await;
    assert_eq!(nobody.status.code(), Some(2), "{nobody:?}");
    world.end().await;
}
