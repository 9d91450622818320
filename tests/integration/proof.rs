//! `kairo verify` and `kairo checkpoint`: a log is what was written, or the first message is named that is not.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kairo_core::{record::RawMessage, subjects::AGENT_DECISION};
use kairo_proto::{
    Body, ContentType,
    v1::{AgentDecision, LogMessage},
};
use serde_json::{Value, json};

use crate::{
    command_line::kairo,
    world::{Wanted, World, agent, raw::own_headers, scenario::USUAL},
};

const AGENT: &str = "default";

/// The status, and what is said in JSON.
async fn verified(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = kairo(world, &[&["--json", "verify"], arguments].concat()).await;
    let told = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| json!(format!("{output:?}")));
    (output.status.code(), told)
}

/// The first message of an agent that does not fit.
fn misfit(told: &Value, agent: &str) -> Value {
    let agents = told["agents"].as_array().unwrap_or_else(|| panic!("{told}"));
    let proven = agents.iter().find(|it| it["agent"] == agent).unwrap_or_else(|| panic!("{told}"));
    proven["misfit"].clone()
}

fn read(path: &Path) -> Vec<LogMessage> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A world in which two agents have answered, one of them with a tool.
async fn that_answered() -> World {
    let world = Wanted::new(USUAL).start().await;
    for name in [AGENT, "other"] {
        world.define(name).await;
    }
    for text in ["time please", "hello", "time please", "thanks"] {
        world.ask(AGENT, text).await;
    }
    world.ask("other", "hello").await;
    world.settled().await;
    world
}

/// Writes down what becomes of a log.
fn written(folder: &Path, name: &str, messages: &[LogMessage]) -> String {
    let path = folder.join(name);
    let lines = messages.iter().map(|message| serde_json::to_string(message).unwrap() + "\n");
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_log_is_proven_and_whatever_is_done_to_a_copy_of_it_is_named() {
    let world = that_answered().await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, key, checkpoint) = (at("whole.log"), at("auditor.key"), at("today.json"));

    let (code, told) = verified(&world, &["--all", "--save", &whole]).await;
    assert_eq!((code, &told["fits"]), (Some(0), &json!(true)), "{told:#}");
    let decisions = |told: &Value| -> Vec<u64> {
        told["agents"].as_array().unwrap().iter().map(|it| it["decisions"].as_u64().unwrap()).collect()
    };
    let log = world.raw_log().await;
    let of = |name: &str| log.iter().filter(|raw| raw.subject == AGENT_DECISION.of_owner(&agent(name))).count() as u64;
    assert_eq!(decisions(&told), [of(AGENT), of("other")], "every decision is proven");
    assert_eq!(read(Path::new(&whole)).len(), log.len());
    let (code, told) = verified(&world, &["--agent", AGENT]).await;
    assert_eq!((code, decisions(&told)), (Some(0), vec![of(AGENT)]), "{told:#}");

    assert_eq!(kairo(&world, &["checkpoint", "--new-key", &key]).await.status.code(), Some(0));
    let made = kairo(&world, &["checkpoint", "-o", &checkpoint, "--signing-key", &key]).await;
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let public = format!("{key}.pub");
    let against = ["--against", &checkpoint, "--public-key", &public];
    let (code, told) = verified(&world, &[&["--all"], &against[..]].concat()).await;
    assert_eq!((code, &told["checkpoint"]["signature"]), (Some(0), &json!("good")), "{told:#}");

    // It goes on, and is still what it was.
    world.ask(AGENT, "hello again").await;
    world.settled().await;
    for arguments in [&["--all"][..], &["--agent", AGENT], &[&whole], &["--all", &whole]] {
        let (code, told) = verified(&world, &[arguments, &against[..]].concat()).await;
        assert_eq!(code, Some(0), "{arguments:?}: {told:#}");
    }
    copies_are_held_to_it(&world, folder.path(), &whole, &against).await;
    checkpoints_are_held_to_their_signature(&world, &checkpoint, &at("other.key")).await;
    world.end().await;
}

/// Each of the things that can be done to a log.
async fn copies_are_held_to_it(world: &World, folder: &Path, whole: &str, against: &[&str]) {
    let messages = read(Path::new(whole));
    let own = |verb: &str| -> Vec<usize> {
        let subject = format!(".{AGENT}.{verb}");
        (0..messages.len()).filter(|at| messages[*at].subject.ends_with(&subject)).collect()
    };
    let (inputs, decisions, results) = (own("message"), own("decision"), own("result"));
    let sequence = |place: usize| messages[place].sequence;
    type Change<'c> = &'c dyn Fn(&mut Vec<LogMessage>);
    let cases: [(&str, Change<'_>, u64, &str); 6] = [
        ("a changed input", &|log| *log[inputs[1]].data.last_mut().unwrap() ^= 1, sequence(inputs[1]), "changed"),
        ("a changed result", &|log| log[results[0]].data.push(7), sequence(results[0]), "changed"),
        ("a message removed", &|log| _ = log.remove(results[0]), sequence(results[0]), "missing"),
        ("a decision removed", &|log| _ = log.remove(decisions[1]), sequence(decisions[1]), "missing"),
        (
            "two swapped",
            &|log| {
                let (one, other) = (results[0] - 1, results[0]);
                log.swap(one, other);
                (log[one].sequence, log[other].sequence) = (sequence(one), sequence(other));
            },
            sequence(results[0] - 1),
            "swapped",
        ),
        (
            "a forged decision",
            &|log| {
                let body = Body::decode(AgentDecision::TYPE, ContentType::Protobuf, &log[decisions[2]].data).unwrap();
                let Body::AgentDecision(mut decision) = body else { panic!("no decision") };
                decision.link.as_mut().unwrap().digest[0] ^= 1;
                log[decisions[2]].data = Body::from(decision).encode();
            },
            sequence(decisions[2]),
            "forged",
        ),
    ];
    for (name, change, expected, kind) in cases {
        let mut changed = messages.clone();
        change(&mut changed);
        let path = written(folder, "changed.log", &changed);
        let (code, told) = verified(world, &[&path]).await;
        let found = misfit(&told, AGENT);
        assert_eq!(
            (code, &found["sequence"], &found["kind"]),
            (Some(1), &json!(expected), &json!(kind)),
            "{name}: {told:#}"
        );
        let (code, told) = verified(world, &[&["--all", &path], against].concat()).await;
        assert!(code == Some(1) && !told["checkpoint"]["difference"].is_null(), "{name}: {told:#}");
    }
    // What carries no digest shows nothing of it: the end of a log, and what is no agent's.
    let cut = written(folder, "cut.log", &messages[..messages.len() - 3]);
    assert_eq!(verified(world, &[&cut]).await.0, Some(0));
    let (code, told) = verified(world, &[&["--all", &cut], against].concat()).await;
    let difference = &told["checkpoint"]["difference"];
    assert_eq!((code, &difference["differs"]), (Some(1), &json!("truncated")), "{told:#}");
    assert_eq!(difference["end"], json!(messages[messages.len() - 4].sequence));
    let mut words = messages.clone();
    let of_user = words.iter_mut().find(|message| message.subject.starts_with("kairo.user.")).unwrap();
    of_user.data.push(7);
    let words = written(folder, "words.log", &words);
    assert_eq!(verified(world, &[&words]).await.0, Some(0));
    for all in [&["--all"][..], &[]] {
        let (code, told) = verified(world, &[all, &[&words], against].concat()).await;
        assert_eq!((code, &told["checkpoint"]["difference"]["differs"]), (Some(1), &json!("section")), "{told:#}");
    }
    // What a file lacks of what the checkpoint covers is named, whatever it lacks.
    let is_of = |message: &LogMessage, part: &str| message.subject.split('.').any(|it| it == part);
    for gone in [AGENT, "other", "user", "system"] {
        let left: Vec<LogMessage> = messages.iter().filter(|it| !is_of(it, gone)).cloned().collect();
        let lost = messages.len() - left.len();
        assert!(lost > 0, "{gone}");
        let part = written(folder, "part.log", &left);
        let (code, told) = verified(world, &[&[&*part], against].concat()).await;
        let checkpoint = &told["checkpoint"];
        assert_eq!((code, &told["fits"]), (Some(1), &json!(false)), "{gone}: {told:#}");
        let counted = |field: &str| checkpoint["compared"][field].as_u64().unwrap();
        assert!(counted("messages") > counted("found") && counted("other_sections") > 0, "{gone}: {told:#}");
        let is_named = checkpoint["lacking"].as_array().is_some_and(|agents| agents.contains(&json!(gone)));
        assert_eq!(is_named, [AGENT, "other"].contains(&gone), "{gone}: {told:#}");
    }
    // Whose part alone it is to have is said.
    let only: Vec<LogMessage> = messages.iter().filter(|it| is_of(it, "agent") || is_of(it, "tool")).cloned().collect();
    let only = written(folder, "only.log", &only);
    assert_eq!(verified(world, &[&[&only, "--agent", AGENT], against].concat()).await.0, Some(0));
    assert_eq!(verified(world, &[&[&*only], against].concat()).await.0, Some(1));
}

async fn checkpoints_are_held_to_their_signature(world: &World, checkpoint: &str, other: &str) {
    assert_eq!(kairo(world, &["checkpoint", "--new-key", other]).await.status.code(), Some(0));
    let signature = async |path: &str, key: Option<&str>| {
        let key: Vec<&str> = key.iter().flat_map(|key| ["--public-key", *key]).collect();
        let (code, told) = verified(world, &[&["--agent", AGENT, "--against", path], &key[..]].concat()).await;
        (code, told["checkpoint"]["signature"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(signature(checkpoint, None).await, (Some(0), "of_its_own_key".to_owned()));
    assert_eq!(signature(checkpoint, Some(&format!("{other}.pub"))).await, (Some(1), "bad".to_owned()));
    let line = std::fs::read_to_string(checkpoint).unwrap();
    let edited = format!("{checkpoint}.edited");
    std::fs::write(&edited, line.replacen("\"messages\":", "\"messages\":1", 1)).unwrap();
    assert_eq!(signature(&edited, None).await, (Some(1), "bad".to_owned()));
    let no_key = verified(world, &["--agent", AGENT, "--against", other]).await;
    assert_eq!(no_key.0, Some(64), "what is no checkpoint");
}

#[tokio::test]
async fn incident_files_are_proven_and_redacted_ones_say_that_they_are_not() {
    let world = that_answered().await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (open, redacted) = (at("open.kairo"), at("redacted.kairo"));
    let export = ["incident", "export", "--agent", AGENT, "-o"];
    assert_eq!(kairo(&world, &[&export[..], &[&open]].concat()).await.status.code(), Some(0));
    assert_eq!(kairo(&world, &[&export[..], &[&redacted, "--redact"]].concat()).await.status.code(), Some(0));
    let (code, told) = verified(&world, &[&open]).await;
    assert_eq!((code, &told["fits"]), (Some(0), &json!(true)), "{told:#}");
    let (code, told) = verified(&world, &[&redacted]).await;
    assert_eq!((code, &told["redacted"]), (Some(3), &json!(true)), "{told:#}");
    assert!(!std::fs::read_to_string(&redacted).unwrap().is_empty());
    // One that was edited: the manifest tells the section, the digests the message.
    let text = std::fs::read_to_string(&open).unwrap();
    let mut lines: Vec<String> = text.lines().map(|line| line.to_owned() + "\n").collect();
    let place = lines.iter().position(|line| line.contains("kairo.agent.default.message")).unwrap();
    let mut message: LogMessage = serde_json::from_str(&lines[place]).unwrap();
    *message.data.last_mut().unwrap() ^= 1;
    lines[place] = serde_json::to_string(&message).unwrap() + "\n";
    std::fs::write(&open, lines.concat()).unwrap();
    let (code, told) = verified(&world, &[&open]).await;
    let found = misfit(&told, AGENT);
    assert_eq!((code, &found["sequence"]), (Some(1), &json!(message.sequence)), "{told:#}");
    assert!(told["broken"][0].as_str().unwrap().contains("section 1"), "{told:#}");
    world.end().await;
}

#[tokio::test]
async fn a_decision_that_is_published_straight_to_nats_is_named_and_the_agent_goes_on() {
    let world = that_answered().await;
    let log = world.raw_log().await;
    let last = log.iter().rfind(|raw| raw.subject == AGENT_DECISION.of_owner(&agent(AGENT))).unwrap().clone();
    let body = Body::decode(AgentDecision::TYPE, ContentType::Protobuf, &last.payload).unwrap();
    let Body::AgentDecision(decision) = body else { panic!("{last:?}") };
    // A copy of it, made by hand, is nobody's second decision.
    world.publish_again(&last).await;
    let (code, told) = verified(&world, &["--agent", AGENT]).await;
    assert_eq!((code, &told["agents"][0]["copies"]), (Some(0), &json!(1)), "{told:#}");
    let forged = AgentDecision { input_id: uuid::Uuid::from_u128(7).to_string(), ..decision };
    let forged = RawMessage { payload: Body::from(forged).encode().into(), ..last };
    let sequence = world.publish(&forged.subject, own_headers(&forged), forged.payload.clone()).await;
    world.ask(AGENT, "hello").await;
    world.settled().await;
    let (code, told) = verified(&world, &["--all"]).await;
    let found = misfit(&told, AGENT);
    assert_eq!((code, &found["sequence"], &found["kind"]), (Some(1), &json!(sequence), &json!("forged")), "{told:#}");
    assert_eq!(misfit(&told, "other"), Value::Null);
    let made = kairo(&world, &["checkpoint"]).await;
    assert!(made.status.code() == Some(1) && made.stdout.is_empty(), "no checkpoint of such a log: {made:?}");
    world.end().await;
}

/// Blocks of the log's stream on disk.
fn blocks(world: &World) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![world.nats_folder()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_block = path.extension().is_some_and(|end| end == "blk");
            if path.is_dir() {
                folders.push(path);
            } else if is_block && path.to_str().unwrap().contains("KAIRO_EVENTS") {
                found.push(path);
            }
        }
    }
    found
}

#[tokio::test]
async fn a_byte_that_is_changed_in_the_servers_files_is_named() {
    let mut world = that_answered().await;
    let log = world.raw_log().await;
    let said = log.iter().find(|raw| raw.subject == "kairo.agent.default.message").unwrap().clone();
    world.nats.stop(Duration::from_secs(10)).await.unwrap();
    let mut changed = 0;
    for path in blocks(&world) {
        let mut bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(said.payload.len()).position(|bytes| bytes == &said.payload[..]);
        if let Some(at) = found {
            bytes[at + said.payload.len() - 1] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            changed += 1;
        }
    }
    assert_eq!(changed, 1, "the message stands once");
    world.nats.restart().await.unwrap();
    // The server finds its own checksum wrong, and hands out what stands behind.
    let (code, told) = verified(&world, &["--all"]).await;
    let found = misfit(&told, AGENT);
    let expected = (&json!(said.sequence), &json!("missing"));
    assert_eq!((code, (&found["sequence"], &found["kind"])), (Some(1), expected), "{told:#}");
    assert_eq!(told["gaps"], json!([said.sequence]), "{told:#}");
    world.end().await;
}
