//! The export of a user's data, for a person who asks: all of it, with its sources, and nothing of anybody else.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt};

use kairo_local::Service;
use kairo_proto::words::ExportSection;
use serde_json::{Value, json};

use crate::{
    command_line::kairo,
    keys::{ADMIN, Caller},
    world::{Wanted, World},
};

const AGENT: &str = "keeper";
/// A word that both users say.
const SHARED: &str = "zanzibar";

pub const SCENARIO: &str = r#"
rules:
  - name: run
    when: { user_matches: 'run (?<word>\w+)' }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: echo, args: ["{{ captures.word }}"] } }]
      - text: "It says {{ last_result.stdout }}"
  - name: keywords
    when: { system_starts_with: You are memory.append }
    reply: { json: { keywords: [fruit] } }
  - name: remember
    when: { user_matches: 'remember (?<word>\w+)' }
    turn:
      - tool_calls: [{ tool: memory.append, arguments: { content: "I like {{ captures.word }}." } }]
      - text: "I know about {{ captures.word }}."
  - name: plan
    when: { user_matches: 'plan (?<word>\w+)' }
    turn:
      - tool_calls:
          - tool: task.schedule
            arguments: { type: delay, delay: 1 hour, title: "{{ captures.word }}", action: [{ event: user.notify, params: { message: "{{ captures.word }}" } }] }
      - text: "I shall think of {{ captures.word }}."
  - name: keep
    when: { user_matches: 'keep (?<word>\w+)' }
    turn:
      - tool_calls: [{ tool: state.write, arguments: { key: "{{ captures.word }}", content: "{{ captures.word }}" } }]
      - text: "I keep {{ captures.word }}."
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

/// The messages that each user sends once; [`HELD`] counts what each section then holds. Plans, choices, briefings and
/// approvals stay empty.
const SAID: [&str; 5] = ["run", "remember", "plan", "keep", "hello"];
const HELD: [(ExportSection, usize); 7] = [
    (ExportSection::Threads, 1),
    (ExportSection::Messages, 2 * SAID.len()),
    (ExportSection::Tasks, 1),
    (ExportSection::Memories, 1),
    (ExportSection::InnerState, 1),
    (ExportSection::Actions, 1),
    (ExportSection::Processes, 1),
];

impl World {
    /// The document of a user.
    async fn export(&self, user: &str) -> Value {
        let output = kairo(self, &["export", "--user", user]).await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn pieces<'d>(document: &'d Value, section: &ExportSection) -> &'d [Value] {
    document[section.as_str()].as_array().unwrap_or_else(|| panic!("{document}"))
}

fn all(document: &Value) -> impl Iterator<Item = &Value> {
    ExportSection::WORDS.iter().flat_map(|section| document[section].as_array().unwrap())
}

/// Ann and joe say the same, and each something of their own.
async fn spoken(wanted: Wanted) -> World {
    let world = wanted.start().await;
    let keeper = json!({ "agent": AGENT, "prompt": "Be brief.", "inner_state": true });
    assert_eq!(world.post("/v1/agents", &keeper).await.0, 201);
    for user in ["ann", "joe"] {
        for what in SAID {
            world.ask_as(user, AGENT, &format!("{what} {SHARED} of {user}s")).await;
        }
    }
    world.settled().await;
    world
}

#[tokio::test]
async fn who_asks_what_is_held_of_them_gets_all_of_it_with_its_sources_and_nothing_of_others() {
    let world = spoken(Wanted::new(SCENARIO)).await;
    let ann = world.export("ann").await;
    for (section, most) in HELD {
        assert_eq!(pieces(&ann, &section).len(), most, "{section}: {}", ann[section.as_str()]);
        assert_eq!(ann["counts"][section.as_str()], json!(most), "{section}");
    }
    let (_, usage) = world.get("/v1/usage?user=ann").await;
    assert_eq!(ann["counts"]["model_calls"], usage["total"]["calls"], "{usage}");
    assert_sources(&world, &ann, "ann").await;
    let action = &pieces(&ann, &ExportSection::Actions)[0]["action"];
    assert_eq!((&action["tool"], &action["arguments"]["args"]), (&json!("process.run"), &json!([SHARED])));
    assert_eq!(action["result"]["stdout"], json!(format!("{SHARED}\n")));
    assert_eq!(pieces(&ann, &ExportSection::Tasks)[0]["task"]["title"], SHARED);
    assert_eq!(pieces(&ann, &ExportSection::Memories)[0]["memory"]["content"], format!("I like {SHARED}."));
    assert_eq!(pieces(&ann, &ExportSection::InnerState)[0]["inner_state"]["content"], SHARED);

    let joe = world.export("joe").await;
    for (document, other) in [(&ann, "joe"), (&joe, "ann")] {
        for mark in [format!("{other}s"), format!("\"{other}\"")] {
            assert!(!document.to_string().contains(&mark), "something of {other}: {document}");
        }
    }
    let places =
        |document: &Value| all(document).map(|piece| piece["sequence"].as_u64().unwrap()).collect::<BTreeSet<_>>();
    assert!(places(&ann).is_disjoint(&places(&joe)), "each has their own events");
    let nobody = world.export("nobody").await;
    assert_eq!((all(&nobody).count(), &nobody["forgotten_through"]), (0, &Value::Null));
    world.end().await;
}

/// Every piece names an event of the log, which is of a turn that the user began.
async fn assert_sources(world: &World, document: &Value, user: &str) {
    let log = world.log.now(&world.bus).await;
    let began = |event: &&kairo_core::event_json::EventJson| event.subject == format!("kairo.user.{user}.message");
    let turns: BTreeSet<_> = log.iter().filter(began).map(|event| event.correlation_id).collect();
    for piece in all(document) {
        let sequence = piece["sequence"].as_u64().unwrap();
        let at: Vec<_> = log.iter().filter(|event| event.sequence == sequence).collect();
        assert!(!at.is_empty() && at.iter().all(|event| turns.contains(&event.correlation_id)), "{piece}");
        assert_eq!(piece["agent"], AGENT, "{piece}");
        // A call of a model is named by its decision, which is no event of its own.
        if piece.get("model_call").is_none() {
            assert!(at.iter().any(|event| piece["event_id"] == event.event_id.to_string()), "{piece}");
            assert!(!piece["thread_id"].is_null(), "{piece}");
        }
    }
}

#[tokio::test]
async fn pages_of_any_size_hold_the_same_and_only_administrators_get_them() {
    let wanted = Wanted::new(SCENARIO).env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN);
    let world = spoken(wanted).await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let mut whole = None;
    for limit in [1, 3, 500] {
        let (mut rows, mut after) = (Vec::new(), String::new());
        loop {
            let (status, page) = operator.get(&format!("/v1/users/ann/export?limit={limit}&after={after}")).await;
            assert_eq!(status, 200, "{page}");
            let more = page["rows"].as_array().unwrap();
            assert!(more.len() <= limit, "{page}");
            rows.extend(more.clone());
            match page["next_after"].as_str() {
                Some(next) => next.clone_into(&mut after),
                None => break,
            }
        }
        assert_eq!(whole.get_or_insert_with(|| rows.clone()), &rows, "in pages of {limit}");
    }
    let wrong = operator.get("/v1/users/ann/export?after=gossip.1.0.x").await;
    assert_eq!((wrong.0, &wrong.1["errors"][0]["field"]), (400, &json!("after")));
    for rights in [json!({ "scopes": ["read", "write"] }), json!({ "scopes": ["admin"], "user": "ann" })] {
        let mut wanted = json!({ "name": "other" });
        wanted.as_object_mut().unwrap().extend(rights.as_object().unwrap().clone());
        let (_, key) = operator.make(wanted).await;
        let refused = Caller::new(&world, 0, Some(&key)).get("/v1/users/ann/export").await;
        assert_eq!(refused.0, 403, "{rights}: {}", refused.1);
    }
    world.end().await;
}

#[tokio::test]
async fn of_who_was_forgotten_only_empty_shells_are_held() {
    let wanted = Wanted::new(SCENARIO)
        .env_of_all("KAIRO_PRIVACY__MASTER_KEY", "07".repeat(32))
        .env_of_all("KAIRO_PRIVACY__KEY_AGE_MS", "300");
    let world = spoken(wanted).await;
    let before = world.export("ann").await;
    assert!(before.to_string().contains(SHARED), "{before}");
    let joe = world.export("joe").await;
    let forgotten = kairo(&world, &["forget", "--user", "ann"]).await;
    assert_eq!(forgotten.status.code(), Some(0), "{forgotten:?}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ann.json");
    let output = kairo(&world, &["export", "--user", "ann", "-o", file.to_str().unwrap()]).await;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let after: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(!after.to_string().contains(SHARED), "{after}");
    assert!(after["forgotten_through"].as_u64().unwrap() > 0, "{after}");
    let messages = pieces(&after, &ExportSection::Messages);
    assert!(!messages.is_empty() && messages.iter().all(|piece| piece["forgotten"] == true), "{after}");
    for section in ExportSection::WORDS {
        assert_eq!(world.export("joe").await[section], joe[section], "{section}: nobody else notices");
    }
    // What is said from then on is held.
    world.ask_as("ann", AGENT, "hello again").await;
    let again = world.export("ann").await;
    let said = pieces(&again, &ExportSection::Messages).iter().filter(|piece| piece["forgotten"] == false).count();
    assert_eq!(said, 2, "{again}");
    world.end().await;
}
