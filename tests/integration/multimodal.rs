//! Images and audio of messages: stored once under the digest of their bytes, named by events, shown to models.

use base64::{Engine, engine::general_purpose::STANDARD};
use kairo_core::{event_json::EventJson, media};
use kairo_local::{Service, Tools};
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    command_line::{kairo, lines},
    websocket::client::Client,
    world::{Sent, Wanted, World},
};

/// Says what it was shown: of each part the kind, the media type, the size and the digest of the bytes that came.
const SEEING: &str = r#"
rules:
  - name: blind
    when: { user_contains: "blind", has_image: true }
    reply: { error: { status: 400, message: "this model takes no images" } }
  - name: seeing
    when: { has_image: true }
    reply: "image {% for part in all_parts %}{{ part.media_type }} {{ part.size }} {{ part.sha256 }};{% endfor %}"
  - name: hearing
    when: { has_audio: true }
    reply: "audio {{ parts[0].media_type }} {{ parts[0].size }} {{ parts[0].sha256 }}"
  - name: watching
    when: { has_video: true }
    reply: "video {{ parts[0].media_type }} {{ parts[0].size }} {{ parts[0].sha256 }}"
  - name: nothing
    when: {}
    reply: "Nothing to see: {{ user }}"
"#;

/// Bytes that begin as a PNG does; more than one chunk of the object store.
fn image(seed: u8) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend((0..300_000_u32).map(|at| (at.wrapping_mul(31) >> 3) as u8 ^ seed));
    bytes
}

fn sound() -> Vec<u8> {
    let mut bytes = b"RIFF\x24\0\0\0WAVEfmt ".to_vec();
    bytes.extend([7; 5_000]);
    bytes
}

/// Bytes that say they are WebM, with a track of video.
fn film() -> Vec<u8> {
    let mut bytes = b"\x1a\x45\xdf\xa3....webm....\x86\x85V_VP9".to_vec();
    bytes.extend([9; 7_000]);
    bytes
}

/// Returns the reply of a model that was shown these bytes.
fn seen(bytes: &[u8]) -> String {
    format!("image image/png {} {};", bytes.len(), media::digest(bytes))
}

async fn upload(world: &World, media_type: &str, bytes: Vec<u8>) -> (u16, Value) {
    let request = world.http.post(world.url("/v1/objects")).header("content-type", media_type).body(bytes);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn wrong_field(answer: &(u16, Value)) -> &str {
    assert_eq!(answer.0, 400, "{answer:?}");
    answer.1["errors"][0]["field"].as_str().unwrap()
}

async fn message_of(world: &World, sent: &Sent, type_name: &str) -> EventJson {
    let events = world.events_of(sent).await;
    events.into_iter().find(|event| event.type_name == type_name).unwrap()
}

#[tokio::test]
async fn an_image_is_stored_once_and_read_again() {
    let world = Wanted::new(SEEING).start().await;
    let (bytes, digest) = (image(1), media::digest(&image(1)));
    let stored = json!({ "digest": digest, "media_type": "image/png", "size": bytes.len() });
    assert_eq!(upload(&world, "image/png", bytes.clone()).await, (201, stored.clone()));
    assert_eq!(upload(&world, "IMAGE/PNG; q=1", bytes.clone()).await, (201, stored), "nothing tells that it was there");
    let path = format!("/v1/objects/{digest}");
    let answer = world.http.get(world.url(&path)).send().await.unwrap();
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!((header("content-type"), header("etag")), ("image/png".to_owned(), format!("\"{digest}\"")));
    assert_eq!(
        (header("x-content-type-options"), header("content-disposition")),
        ("nosniff".into(), "attachment".into())
    );
    assert!(answer.bytes().await.unwrap() == bytes, "other bytes came back");
    let held = world.http.get(world.url(&path)).header("if-none-match", format!("\"{digest}\"")).send().await.unwrap();
    assert_eq!(held.status(), 304);
    for unknown in [media::digest(b"unknown"), "x".to_owned(), digest.to_uppercase()] {
        assert_eq!(world.get(&format!("/v1/objects/{unknown}")).await.0, 404, "{unknown}");
    }
    world.end().await;
}

#[tokio::test]
async fn what_is_no_image_or_too_large_is_not_stored() {
    let wanted = Wanted::new(SEEING).env(Service::Gateway, "KAIRO_GATEWAY__MAX_PART_BYTES", "400000");
    let world = wanted.start().await;
    world.define("default").await;
    assert_eq!(wrong_field(&upload(&world, "image/png", b"<script>".to_vec()).await), "body");
    assert_eq!(wrong_field(&upload(&world, "image/jpeg", image(1)).await), "body");
    assert_eq!(wrong_field(&upload(&world, "audio/wav", Vec::new()).await), "body");
    for other in ["image/svg+xml", "text/html", "application/json"] {
        assert_eq!(upload(&world, other, image(1)).await.0, 415, "{other}");
    }
    let mut large = image(1);
    large.resize(400_001, 0);
    assert_eq!(upload(&world, "image/png", large.clone()).await.0, 413);
    large.truncate(400_000);
    assert_eq!(upload(&world, "image/png", large).await.0, 201);

    let say = async |parts: Value| world.post("/v1/messages", &json!({ "user": "ann", "parts": parts })).await;
    let (digest, unknown) = (media::digest(&image(1)), media::digest(b"unknown"));
    assert_eq!(wrong_field(&say(json!([{ "digest": digest }])).await), "parts[0].digest");
    upload(&world, "image/png", image(1)).await;
    assert_eq!(wrong_field(&say(json!([{ "digest": digest }, { "digest": unknown }])).await), "parts[1].digest");
    let gif = json!({ "media_type": "image/png", "data": STANDARD.encode(b"GIF89a") });
    assert_eq!(wrong_field(&say(json!([gif])).await), "parts[0].data");
    assert_eq!(wrong_field(&say(json!(vec![json!({ "digest": digest }); 9])).await), "parts");
    assert_eq!(say(json!([{ "digest": digest }])).await.0, 202);
    world.end().await;
}

#[tokio::test]
async fn the_very_bytes_arrive_at_the_model_and_events_only_name_them() {
    let world = Wanted::new(SEEING).start().await;
    world.define("eye").await;
    let (bytes, digest) = (image(1), media::digest(&image(1)));
    upload(&world, "image/png", bytes.clone()).await;
    let part = json!({ "digest": digest, "name": "photo.png" });
    let sent = world.send_as(&json!({ "user": "ann", "agent": "eye", "parts": [part] })).await;
    assert_eq!(world.reply(&sent).await, seen(&bytes));
    for type_name in [v1::UserMessage::TYPE, v1::AgentMessage::TYPE] {
        let event = message_of(&world, &sent, type_name).await;
        let named = json!([{ "media_type": "image/png", "digest": digest, "size": "300008", "name": "photo.png" }]);
        assert_eq!((event.modality.as_str(), &event.payload["parts"]), ("image", &named), "{type_name}");
        assert_eq!(event.text(), "[image photo.png, 300 kB]");
    }
    // Brought along, and audio.
    let inline = json!({ "media_type": "audio/wav", "data": STANDARD.encode(sound()) });
    let heard = json!({ "user": "bob", "agent": "eye", "text": "What is it?", "parts": [inline] });
    let sent = world.send_as(&heard).await;
    let expected = format!("audio audio/wav {} {}", sound().len(), media::digest(&sound()));
    assert_eq!(world.reply(&sent).await, expected);
    assert_eq!(message_of(&world, &sent, v1::UserMessage::TYPE).await.modality, "audio");

    world.projected().await;
    let (_, conversation) = world.get("/v1/conversations/eye?user=ann").await;
    let named = json!([{ "media_type": "image/png", "digest": digest, "size": 300_008, "name": "photo.png" }]);
    assert_eq!(conversation["messages"][0]["parts"], named);
    assert_eq!(conversation["messages"][1]["parts"], json!([]));
    let thread = conversation["messages"][1]["thread_id"].as_str().unwrap();
    let (_, history) = world.get(&format!("/v1/threads/{thread}?agent=eye")).await;
    assert!(history.to_string().contains(&digest), "{history}");
    world.end().await;
}

#[tokio::test]
async fn a_websocket_and_the_command_line_send_images_too() {
    let world = Wanted::new(SEEING).start().await;
    world.define("eye").await;
    upload(&world, "image/png", image(1)).await;
    let mut client = Client::connect(&world).await;
    let parts = json!([{ "digest": media::digest(&image(1)) }]);
    client.send(json!({ "type": "message", "ref": "r", "user": "ann", "agent": "eye", "parts": parts })).await;
    let accepted = client.next().await;
    assert_eq!(accepted["type"], "accepted", "{accepted}");
    let correlation = accepted["correlation_id"].as_str().unwrap().to_owned();
    let said = |event: &EventJson| event.correlation_id.to_string() == correlation && event.is_final_reply();
    assert_eq!(world.log.wait(said).await.text(), seen(&image(1)));
    client.send(json!({ "type": "message", "user": "ann", "parts": [{ "digest": media::digest(b"") }] })).await;
    assert_eq!(client.next().await["problem"]["errors"][0]["field"], "parts[0].digest");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photo.jpg");
    std::fs::write(&file, image(2)).unwrap();
    let file = file.display().to_string();
    let sent = kairo(&world, &["send", "--wait", "--user", "bob", "--agent", "eye", "--attach", &file, "See?"]).await;
    assert!(lines(&sent).iter().any(|line| line.contains(&media::digest(&image(2)))), "{sent:?}");
    world.projected().await;
    let shown = kairo(&world, &["conversation", "eye", "--user", "bob"]).await;
    assert!(lines(&shown).iter().any(|line| line.contains("[image photo.jpg, 300 kB]")), "{shown:?}");
    std::fs::write(folder.path().join("page.png"), "<html>").unwrap();
    let page = folder.path().join("page.png").display().to_string();
    let refused = kairo(&world, &["send", "--agent", "eye", "--attach", &page]).await;
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("is none of"),
        "{refused:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn what_was_stored_outlives_a_killed_server_and_is_stored_again_beside_it() {
    let mut world = Wanted::new(SEEING).start().await;
    world.define("eye").await;
    let stored = upload(&world, "image/png", image(1)).await;
    world.nats.kill9().await.unwrap();
    world.nats.restart().await.unwrap();
    let part = json!({ "digest": stored.1["digest"] });
    // While the gateway connects again it may say that the log is away.
    let sent = loop {
        let (status, answer) = world
            .post("/v1/messages", &json!({ "user": "ann", "agent": "eye", "message_id": "m", "parts": [part] }))
            .await;
        match status {
            202 => break answer,
            503 => {}
            _ => panic!("{answer}"),
        }
    };
    let correlation = sent["correlation_id"].as_str().unwrap().to_owned();
    let said = |event: &EventJson| event.correlation_id.to_string() == correlation && event.is_final_reply();
    assert_eq!(world.log.wait(said).await.text(), seen(&image(1)));
    world.end().await;
}

#[tokio::test]
async fn a_model_is_shown_the_newest_and_told_of_the_rest() {
    let wanted = Wanted::new(SEEING).env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__MAX_PARTS", "2");
    let world = wanted.start().await;
    world.define("eye").await;
    let send = async |seed: u8, text: &str| {
        let bytes = image(seed);
        upload(&world, "image/png", bytes.clone()).await;
        let part = json!({ "digest": media::digest(&bytes), "name": format!("{seed}.png") });
        world.send_as(&json!({ "user": "ann", "agent": "eye", "text": text, "parts": [part] })).await
    };
    for seed in 1..=3 {
        let sent = send(seed, "").await;
        world.reply(&sent).await;
    }
    let requests = world.model_requests().await;
    let last = &requests.last().unwrap()["body"]["messages"];
    assert!(last.to_string().contains("[image 1.png, 300 kB] (no longer shown)"), "{last:.300}");
    let said: Vec<&Value> = last.as_array().unwrap().iter().filter(|said| said["role"] == "user").collect();
    assert_eq!(said.iter().filter(|said| said["content"].is_array()).count(), 2);

    // One that refuses them is told of all.
    let sent = send(4, "blind").await;
    let reply = world.reply(&sent).await;
    assert!(reply.contains("[image 4.png, 300 kB] (you cannot be shown it)"), "{reply}");
    world.end().await;
}

#[tokio::test]
async fn an_image_that_is_gone_is_told_of() {
    let world = Wanted::new(SEEING).start().await;
    world.define("eye").await;
    let stored = upload(&world, "image/png", image(1)).await;
    let digest = stored.1["digest"].as_str().unwrap();
    let sent = world.send_as(&json!({ "user": "ann", "agent": "eye", "parts": [{ "digest": digest }] })).await;
    world.reply(&sent).await;
    let bucket = world.bus.nats().unwrap().jetstream.get_object_store("KAIRO_OBJECTS").await.unwrap();
    bucket.delete(digest).await.unwrap();
    let sent = world.send("eye", "And now?").await;
    assert_eq!(world.reply(&sent).await, "Nothing to see: And now?");
    let requests = world.model_requests().await;
    let last = requests.last().unwrap().to_string();
    assert!(last.contains("(it is no longer stored)"), "{last:.500}");
    assert_eq!(world.get(&format!("/v1/objects/{digest}")).await.0, 404);
    // And can be stored again.
    assert_eq!(upload(&world, "image/png", image(1)).await.0, 201);
    world.end().await;
}

#[tokio::test]
async fn a_full_store_says_so() {
    let wanted = Wanted::new(SEEING).env_of_all("KAIRO_NATS__OBJECTS_MAX_BYTES", "1048576");
    let world = wanted.start().await;
    let mut answers = Vec::new();
    for seed in 0..4 {
        answers.push(upload(&world, "image/png", image(seed)).await);
    }
    assert_eq!(answers.iter().map(|answer| answer.0).collect::<Vec<_>>(), [201, 201, 201, 507], "{answers:?}");
    assert_eq!(answers[3].1["type"], "urn:kairo:problem:full");
    world.end().await;
}

#[tokio::test]
async fn a_video_reaches_models_that_take_it_and_others_are_told_of_it_in_words() {
    let wanted = Wanted::new(SEEING).env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__VIDEO", "true");
    let (taking, telling) = (wanted.start().await, Wanted::new(SEEING).start().await);
    for (world, expected) in [
        (&taking, format!("video video/webm {} {}", film().len(), media::digest(&film()))),
        (&telling, "Nothing to see: [video film.webm, 7 kB] (you are not shown such)".to_owned()),
    ] {
        world.define("eye").await;
        // Sound alone is no video, whatever it is said to be.
        let sound = b"\x1a\x45\xdf\xa3....webm....\x86\x86A_OPUS".to_vec();
        assert_eq!(wrong_field(&upload(world, "video/webm", sound).await), "body");
        assert_eq!(upload(world, "video/webm", film()).await.0, 201);
        let part = json!({ "digest": media::digest(&film()), "name": "film.webm" });
        let sent = world.send_as(&json!({ "user": "ann", "agent": "eye", "parts": [part] })).await;
        assert_eq!(world.reply(&sent).await, expected);
        let event = message_of(world, &sent, v1::UserMessage::TYPE).await;
        // Moving images: the event format has no word of its own.
        assert_eq!((event.modality.as_str(), event.text()), ("image", "[video film.webm, 7 kB]"));
    }
    taking.end().await;
    telling.end().await;
}

#[tokio::test]
async fn a_state_enters_is_kept_and_is_shown_to_the_agent_as_state() {
    let world = Wanted::new(SEEING).start().await;
    world.define("house").await;
    let state = json!({ "door": "open", "rooms": [{ "temperature": 21.5 }] });
    let sent = world.send_as(&json!({ "user": "ann", "agent": "house", "state": state })).await;
    let shown = r#"[state] {"door":"open","rooms":[{"temperature":21.5}]}"#;
    assert_eq!(world.reply(&sent).await, format!("Nothing to see: {shown}"));
    for type_name in [v1::UserMessage::TYPE, v1::AgentMessage::TYPE] {
        let event = message_of(&world, &sent, type_name).await;
        assert_eq!((event.modality.as_str(), &event.payload["state"]), ("state", &state), "{type_name}");
        assert_eq!(event.text(), shown);
    }
    // With words it is a message of words that says what is so, too.
    let told =
        kairo(&world, &["send", "--wait", "--agent", "house", "--state", r#"{"door":"shut"}"#, "And now?"]).await;
    assert!(lines(&told).iter().any(|line| line.contains(r#"[state] {"door":"shut"}"#)), "{told:?}");
    let wrong = world.post("/v1/messages", &json!({ "user": "ann", "agent": "house", "state": "open" })).await;
    assert_eq!(wrong_field(&wrong), "state");
    world.projected().await;
    let (_, conversation) = world.get("/v1/conversations/house?user=ann").await;
    assert_eq!(conversation["messages"][0]["text"], shown);
    world.end().await;
}

/// Has the model call a tool that draws, and say what it is shown then.
const DRAWING: &str = r#"
rules:
  - name: seeing
    when: { has_image: true }
    reply: "image {% for part in all_parts %}{{ part.media_type }} {{ part.size }} {{ part.sha256 }};{% endfor %}"
  - name: drawing
    when: { user_contains: "<draw>" }
    reply: { tool_calls: [{ tool: all.get-tiny-image, arguments: {} }] }
"#;

#[tokio::test]
async fn a_model_is_shown_the_images_of_results() {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let everything = tools.mcp_everything().expect("Node is needed");
    let servers = json!([{ "name": "all", "command": everything }]);
    let world =
        Wanted::new(DRAWING).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", servers.to_string()).start().await;
    world.define("eye").await;
    let sent = world.send_as(&json!({ "user": "ann", "agent": "eye", "text": "<draw>" })).await;
    let reply = world.reply(&sent).await;
    let result = message_of(&world, &sent, v1::ToolResult::TYPE).await;
    let part = &result.payload["parts"][0];
    let (digest, size) = (part["digest"].as_str().unwrap(), part["size"].as_str().unwrap());
    assert_eq!(reply, format!("image image/png {size} {digest};"));
    assert!(result.text().contains("[image image/png"), "{}", result.text());
    let kept = world.http.get(world.url(&format!("/v1/objects/{digest}"))).send().await.unwrap();
    assert_eq!(media::digest(&kept.bytes().await.unwrap()), digest);
    world.end().await;
}
