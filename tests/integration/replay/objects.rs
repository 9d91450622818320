//! Incident files that have the images their messages name: what was sent through the gateway is shown to models from the file alone.

use kairo_core::{bus::objects::MediaStore, media};
use kairo_local::{Service, StackOptions};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{
    AGENT,
    lanes::{PRICE, Place},
};
use crate::{
    command_line::kairo,
    objects::{image, stored_objects},
    world::{Wanted, World},
};

/// Says what it was shown: of each image the digest of the bytes that came.
const SEEING: &str = r#"
rules:
  - name: seeing
    when: {}
    reply: "I see {% for part in all_parts %}{{ part.sha256 }};{% else %}nothing.{% endfor %}"
"#;
/// More than the small image in base64 with the messages, and less than the large one alone.
const MOST: usize = 1_048_576;

/// Says something and shows an image.
async fn show(world: &World, bytes: &[u8]) -> String {
    let request = world.http.post(world.url("/v1/objects")).header("content-type", "image/png").body(bytes.to_vec());
    assert_eq!(request.send().await.unwrap().status(), 201);
    let part = json!({ "digest": media::digest(bytes) });
    let sent = world.send_as(&json!({ "user": "ann", "agent": AGENT, "text": "look", "parts": [part] })).await;
    world.reply(&sent).await
}

/// A command without a gateway whose models are those of the simulator that stands apart; status, and all that it says.
async fn alone(place: &Place, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
    command.env("KAIRO_MODELS__HEAVY__BASE_URL", place.model_url()).env("KAIRO_MODELS__HEAVY__PRICE", PRICE);
    let output = command.args(arguments).output().await.unwrap();
    (output.status.code(), String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap())
}

fn manifest(path: &str) -> Value {
    serde_json::from_str(std::fs::read_to_string(path).unwrap().lines().next().unwrap()).unwrap()
}

/// Returns the status and the body of an incident export over HTTP.
async fn over_http(world: &World, query: &str) -> (u16, Vec<u8>) {
    let answer = world.http.get(world.url(&format!("/v1/incidents/{AGENT}{query}"))).send().await.unwrap();
    (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn models_are_shown_the_images_of_an_incident_file_without_a_server() {
    let world = Wanted::new(SEEING).env(Service::Gateway, "KAIRO_GATEWAY__MAX_REPLAY_BYTES", MOST.to_string());
    let world = world.start().await;
    world.define(AGENT).await;
    let (small, large) = (image(1, 20_000), image(2, MOST));
    let [first, second] = [&small, &large].map(|bytes| media::digest(bytes));
    assert_eq!(show(&world, &small).await, format!("I see {first};"));
    assert_eq!(show(&world, &large).await, format!("I see {first};{second};"));
    world.settled().await;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let export = async |name: &str, options: &[&str]| {
        let file = path(name);
        let output =
            kairo(&world, &[&["incident", "export", "--agent", AGENT, "-o", &file, "--json"], options].concat()).await;
        assert!(output.status.success(), "{output:?}");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["objects"], manifest(&file)["objects"]);
        (file.clone(), manifest(&file), std::fs::read(&file).unwrap())
    };
    let (whole, told, _) = export("whole.kairo", &[]).await;
    let bytes = small.len() + large.len();
    assert_eq!(
        (&told["format"], &told["objects"]["count"], &told["objects"]["bytes"]),
        (&json!(2), &json!(2), &json!(bytes))
    );
    assert!(std::fs::read_to_string(&whole).unwrap().lines().last().unwrap().contains(&second));
    let (without, told, text) = export("without.kairo", &["--without-objects"]).await;
    let left_out = |because: &str| json!({ "count": 2, "because": because });
    assert_eq!((&told["format"], &told["objects"]["left_out"]), (&json!(1), &left_out("unwanted")));
    assert_eq!(over_http(&world, "?objects=false").await, (200, text));
    let (redacted, told, text) = export("redacted.kairo", &["--redact"]).await;
    assert_eq!((&told["format"], &told["objects"]["left_out"]), (&json!(1), &left_out("redacted")));
    assert!(!String::from_utf8(text).unwrap().contains("base64"));
    // All of it is more than the gateway holds in memory, up to the first decision it is not.
    let (code, problem) = over_http(&world, "").await;
    assert!(code == 413 && String::from_utf8(problem).unwrap().contains("objects=false"), "{code}");
    assert_eq!(over_http(&world, "?objects=maybe").await.0, 400);
    let decisions = decisions(&whole);
    let around = decisions[0].to_string();
    let (_, told, part) = export("part.kairo", &["--around", &around]).await;
    assert_eq!((&told["objects"]["count"], &told["around"]), (&json!(1), &json!(decisions[0])));
    assert_eq!(over_http(&world, &format!("?around={around}")).await, (200, part));

    // One that is no longer stored is missing, and takes no room.
    let store = MediaStore::new(&world.bus);
    let stored = stored_objects(&store).await.into_iter().find(|kept| kept.digest == second).unwrap();
    assert!(store.remove(&stored).await.unwrap());
    let (missing, told, text) = export("missing.kairo", &[]).await;
    assert_eq!((&told["objects"]["count"], &told["objects"]["missing_digests"]), (&json!(1), &json!([second])));
    assert_eq!(over_http(&world, "").await, (200, text));
    let log = path("agent.log");
    assert!(kairo(&world, &["replay", "--agent", AGENT, "--save", &log]).await.status.success());
    world.end().await;

    let place = Place::new(SEEING).await;
    forks_see(&place, &folder.path().join("words.txt"), &whole, &format!("I see {first};{second};")).await;
    forks_see(&place, &folder.path().join("words.txt"), &missing, &format!("I see {first};")).await;
    forks_see(&place, &folder.path().join("words.txt"), &without, "I see nothing.").await;
    lanes_see(&place, &path("report.json"), &whole).await;
    others_see(&place, &whole, &decisions).await;

    // From a file as from the gateway, and one that has none says so.
    let again = path("again.kairo");
    let export = ["incident", "export", "--agent", AGENT, "-o", &again, "--file"];
    assert_eq!(alone(&place, &[&export[..], &[&whole]].concat()).await.0, Some(0));
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&whole).unwrap());
    for (file, because) in [(&log, "not_at_hand"), (&without, "not_at_hand")] {
        assert_eq!(alone(&place, &[&export[..], &[file]].concat()).await.0, Some(0));
        assert_eq!(manifest(&again)["objects"]["left_out"], left_out(because));
    }
    let (_, shown) = alone(&place, &["incident", "show", &whole, &missing, &redacted]).await;
    for expected in [
        format!("  2 objects, {bytes} bytes"),
        format!("  1 object missing: no longer stored\n    {second}"),
        "  2 objects left out: images, audio and video cannot be redacted".to_owned(),
    ] {
        assert!(shown.contains(&expected), "{shown}");
    }
    damage_is_told(&place, &whole, &second).await;
}

/// Returns the positions of the decisions in a saved log.
fn decisions(file: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap();
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions = messages.filter(|message| message["subject"].as_str().is_some_and(|it| it.ends_with(".decision")));
    decisions.map(|decision| decision["sequence"].as_u64().unwrap()).collect()
}

/// A fork goes on at the end of the file: the model is asked once, and says what it was shown.
async fn forks_see(place: &Place, words: &std::path::Path, file: &str, expected: &str) {
    std::fs::write(words, "what did I show you?").unwrap();
    let before = place.requests().await.len();
    let options = ["fork", AGENT, "--file", file, "--message", words.to_str().unwrap()];
    let (code, told) = alone(place, &options).await;
    assert!(code == Some(0) && told.contains(expected), "{expected} in {told}");
    let requests = place.requests().await;
    assert_eq!(requests.len(), before + 1);
    // Of what is not there, it is told in words.
    let missing = 2 - expected.matches(';').count();
    let asked = requests.last().unwrap()["body"].to_string();
    assert_eq!(asked.matches("it is no longer stored").count(), missing, "{expected}");
}

/// Models that are asked for decisions again are shown what they were shown then.
async fn lanes_see(place: &Place, report: &str, file: &str) {
    let options = ["replay", file, "--samples", "1", "--model", "other", "--budget", "none", "--report", report];
    let (code, told) = alone(place, &options).await;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(code, Some(0), "{told}");
    for decision in report["decisions"].as_array().unwrap() {
        assert_eq!(decision["lanes"]["control"]["same"], 1, "{decision:#}");
    }
}

/// Whatever opens an incident file opens one with objects.
async fn others_see(place: &Place, file: &str, decisions: &[u64]) {
    let at = decisions[1].to_string();
    let (code, state) = alone(place, &["state", AGENT, "--file", file, "--at", &at, "--request", "--json"]).await;
    let request: Value = serde_json::from_str(state.lines().next().unwrap()).unwrap();
    assert!(code == Some(0) && request["differs"].is_null(), "{state}");
    for command in ["run", "test"] {
        let (code, told) = alone(place, &["incident", command, file]).await;
        assert!(code == Some(0) && told.contains("2 the same"), "{told}");
    }
    let edit = std::path::Path::new(file).with_file_name("edit.json");
    let text = std::fs::read_to_string(file).unwrap();
    let heard: kairo_proto::v1::LogMessage =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).find(said).unwrap();
    let mut body = kairo_core::log_message::decode_record(&heard).unwrap().unwrap().body.to_json();
    body["text"] = json!("look here");
    std::fs::write(&edit, body.to_string()).unwrap();
    let edit = format!("{}={}", heard.sequence, edit.display());
    let (_, told) = alone(place, &["whatif", file, "--edit", &edit, "--live", "--budget", "none", "--json"]).await;
    let cone: Value = serde_json::from_str(told.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    assert_eq!((&cone["counts"]["kept"], &cone["asked"]["calls"]), (&json!(2), &json!(2)), "{told}");
}

fn said(message: &kairo_proto::v1::LogMessage) -> bool {
    message.subject.starts_with("kairo.agent.") && message.subject.ends_with(".message")
}

/// A file whose last object was cut off or edited is refused with its name, and nothing is made again.
async fn damage_is_told(place: &Place, file: &str, digest: &str) {
    let whole = std::fs::read_to_string(file).unwrap();
    let line = whole.lines().count();
    let edited = whole.len() - 40;
    let letter = if whole[edited..].starts_with('A') { "B" } else { "A" };
    let damaged = [
        (whole[..whole.len() - 40].to_owned(), "its line is cut off"),
        (whole[..edited].to_owned() + letter + &whole[edited + 1..], "its bytes are not those of its digest"),
    ];
    for (text, why) in damaged {
        std::fs::write(file, text).unwrap();
        let expected = format!("{file}, line {line}: object {digest}: {why}");
        for arguments in
            [&["incident", "show", file][..], &["state", AGENT, "--file", file], &["fork", AGENT, "--file", file]]
        {
            let (code, told) = alone(place, arguments).await;
            assert!(code == Some(64) && told.contains(&expected), "{arguments:?}: {told}");
        }
    }
}
