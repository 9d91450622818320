//! `kairo incident export --redact`: an incident that can be handed on comes out as it did, and has nothing of what was personal.

use kairo_core::log_message;
use kairo_proto::v1::LogMessage;
use serde_json::{Value, json};

use super::AGENT;
use crate::{command_line::kairo, world::Wanted};

const RULES: &str = r#"
rules:
  - name: remember
    when: { user_contains: "remember" }
    turn:
      - tool_calls:
          - tool: memory.append
            arguments: { content: "ann@mail.example prefers tea", keywords: [tea], kind: preference, subject: ann }
      - text: "I will remember it, ann."
  - name: time
    when: { user_contains: "time please" }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: { time_zone: "UTC" } }]
      - text: "It is {{ last_result.now }}, Zoé."
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;
const SAID: [(&str, &str); 5] = [
    ("ann", "I am Ann, ann@mail.example, +49 30 1234567. The password is \"Tr0ub4dor%3\"; time please"),
    ("ann", "remember that I like tea"),
    ("bob", "{\"card\": \"4111 1111 1111 1111\", \"iban\": \"DE89 3704 0044 0532 0130 00\"}"),
    ("ann", "from 203.0.113.7 to https://ann:pw-98765@git.example/x, Tr0ub4dor%3 and ANN@mail.example"),
    ("bob", "Zoé has an annual case, CASE-77"),
];
/// As they must occur nowhere, whatever is upper case.
const VALUES: [&str; 11] = [
    "ann@mail.example",
    "+49 30 1234567",
    "tr0ub4dor",
    "pw-98765",
    "4111 1111 1111 1111",
    "de89 3704 0044 0532 0130 00",
    "203.0.113.7",
    "zoé",
    "zo\\u00e9",
    "case-77",
    "case%2d77",
];

/// All that a file says, in its lines and in the bytes within them, in lower case.
fn shown(file: &str) -> String {
    let messages = file.lines().skip(1).map(|line| serde_json::from_str::<LogMessage>(line).unwrap());
    let bodies = messages.map(|message| {
        let body = log_message::decode_record(&message).unwrap().unwrap().body.to_json().to_string();
        let bytes = String::from_utf8_lossy(&message.data).into_owned();
        format!("{body}\n{}\n{bytes}\n{}\n", body.replace('\\', ""), bytes.replace('\\', ""))
    });
    (file.to_owned() + &bodies.collect::<String>()).to_lowercase()
}

#[tokio::test]
async fn an_incident_is_handed_on_without_what_is_personal() {
    let world = Wanted::new(RULES).start().await;
    world.define(AGENT).await;
    for (user, text) in SAID {
        let sent = world.send_as(&json!({ "user": user, "agent": AGENT, "text": text, "thread_id": "trip" })).await;
        world.reply(&sent).await;
    }
    world.ask(AGENT, "hello").await;
    world.settled().await;

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, open, redacted) = (at("agent.log"), at("open.kairo"), at("redacted.kairo"));
    let run = async |arguments: &[&str]| {
        let output = kairo(&world, arguments).await;
        let told = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8(told).unwrap())
    };
    assert_eq!(run(&["replay", "--agent", AGENT, "--save", &log]).await.0, Some(0));
    let export = ["incident", "export", "--agent", AGENT, "--file", &log];
    let (code, said) = run(&[&export[..], &["-o", &open]].concat()).await;
    assert_eq!(code, Some(0), "{said}");
    let options = ["--redact", "--redact-word", "Zoé", "--redact-pattern", "(?i)case-[0-9]+"];
    let (code, said) = run(&[&export[..], &options, &["-o", &redacted]].concat()).await;
    assert_eq!(code, Some(0), "{said}");

    // It comes out as the open one does.
    let (code, of_open) = run(&["incident", "run", &open]).await;
    assert_eq!(code, Some(0), "{of_open}");
    let (code, of_redacted) = run(&["incident", "run", &redacted]).await;
    assert_eq!((code, of_redacted.lines().skip(1).collect::<Vec<_>>()), (Some(0), of_open.lines().skip(1).collect()));

    // Nothing of what was personal is left, and what is not stays.
    let file = std::fs::read_to_string(&redacted).unwrap();
    let (all, of_open) = (shown(&file), shown(&std::fs::read_to_string(&open).unwrap()));
    for value in VALUES {
        assert!(!all.contains(value), "{value} is left");
    }
    for person in ["ann", "bob"] {
        assert!(of_open.split(|sign: char| !sign.is_alphanumeric()).any(|word| word == person));
        assert!(!all.split(|sign: char| !sign.is_alphanumeric()).any(|word| word == person), "{person} is left");
    }
    for stays in ["annual", "i like tea", "time please", "user-2", "⟨email-1⟩", "⟨word-1⟩", "trip-"] {
        assert!(all.contains(stays), "{stays} is gone");
    }
    let manifest: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    assert_eq!((&manifest["redacted"], &manifest["replaced"]["user"]), (&json!(true), &json!(2)), "{manifest}");
    assert_eq!((&manifest["replaced"]["card"], &manifest["replaced"]["word"]), (&json!(1), &json!(1)), "{manifest}");

    // What is exported of it says that it is redacted; tokens for tokens there are none.
    let again = at("again.kairo");
    let export_again = ["incident", "export", "--agent", AGENT, "--file", &redacted, "-o", &again];
    let (code, said) = run(&export_again).await;
    assert!(code == Some(0) && said.contains("holds tokens for what was found"), "{code:?}: {said}");
    let of_again: Value =
        serde_json::from_str(std::fs::read_to_string(&again).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!((&of_again["redacted"], &of_again["replaced"]), (&manifest["redacted"], &manifest["replaced"]));
    let (code, said) = run(&[&export_again[..], &["--redact"]].concat()).await;
    assert!(code == Some(64) && said.contains("is redacted already"), "{code:?}: {said}");

    // What a decision depends on cannot be taken out.
    let other = at("other.kairo");
    let depends = ["--redact", "--redact-word", "preference", "-o", &other];
    let (code, said) = run(&[&export[..], &depends].concat()).await;
    assert!(code == Some(4) && said.contains("the decision would be another one"), "{code:?}: {said}");
    assert!(!said.contains("preference") && !std::path::Path::new(&other).exists(), "{said}");
    let (code, _) = run(&[&export[..], &["--redact", "--redact-pattern", "(", "-o", &other]].concat()).await;
    assert_eq!(code, Some(64), "what is no regular expression");
    world.end().await;
}
