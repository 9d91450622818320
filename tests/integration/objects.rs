//! Images and audio: how many bytes of them a key and a user may have stored, and that what no event names goes again,
//! and nothing else.

use std::time::Duration;

use futures::StreamExt;
use kairo_core::{
    bus::objects::{MediaObject, MediaStore, StoredFor},
    media,
};
use kairo_local::Service;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, scenario::USUAL},
};

/// Between two looks at what changes in a second: a key may ask so often, and no more.
const NOW_AND_THEN: Duration = Duration::from_millis(20);

/// Bytes that begin as a PNG does.
pub fn image(seed: u8, size: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.resize(size, seed);
    bytes
}

fn guarded(settings: &[(&str, &str)]) -> Wanted {
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN);
    settings
        .iter()
        .fold(wanted, |wanted, (name, value)| wanted.env(Service::Gateway, &format!("KAIRO_GATEWAY__{name}"), *value))
}

async fn upload(caller: &Caller, bytes: Vec<u8>) -> (u16, Value) {
    let request = caller.request(Method::POST, "/v1/objects").header("content-type", "image/png").body(bytes);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Nothing else may be answered: a key that asked too often is not told that an object is gone.
async fn is_there(caller: &Caller, digest: &str) -> bool {
    let answer = caller.request(Method::GET, &format!("/v1/objects/{digest}")).send().await.unwrap();
    match answer.status().as_u16() {
        200 => true,
        404 => false,
        other => panic!("{other}: {}", answer.text().await.unwrap()),
    }
}

/// Waits until the object is gone.
async fn gone(caller: &Caller, digest: &str) {
    let going = async {
        while is_there(caller, digest).await {
            sleep(NOW_AND_THEN).await;
        }
    };
    timeout(DEADLINE, going).await.expect("what no event names stays");
}

/// Waits until there is room for the bytes.
async fn stored(caller: &Caller, bytes: &[u8]) {
    let storing = async {
        loop {
            let (status, problem) = upload(caller, bytes.to_vec()).await;
            if status == 201 {
                return;
            }
            assert_eq!(status, 507, "{problem}");
            sleep(NOW_AND_THEN).await;
        }
    };
    timeout(DEADLINE, storing).await.expect("there is never room again");
}

#[tokio::test]
async fn a_key_and_a_user_store_so_many_bytes_and_leave_room_to_others() {
    let world = guarded(&[("OBJECTS_KEY_BYTES", "100000"), ("OBJECTS_USER_BYTES", "50000")]).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let mut callers = Vec::new();
    for wanted in [
        json!({ "name": "greedy", "scopes": ["read", "write"] }),
        json!({ "name": "ann", "scopes": ["read", "write"], "user": "ann" }),
        json!({ "name": "modest", "scopes": ["read", "write"] }),
    ] {
        callers.push(Caller::new(&world, 0, Some(&operator.make(wanted).await.1)));
    }
    let [greedy, ann, modest] = &callers[..] else { unreachable!() };
    assert_eq!(upload(greedy, image(1, 60_000)).await.0, 201);
    let (status, problem) = upload(greedy, image(2, 60_000)).await;
    assert_eq!(status, 507, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("gateway.objects_key_bytes"), "{problem}");
    // The same bytes take nothing, and neither does the room of one take that of others.
    assert_eq!(upload(greedy, image(1, 60_000)).await.0, 201);
    assert_eq!(upload(modest, image(2, 60_000)).await.0, 201);
    // That another has stored these shows nowhere: there is no room for them, and where there is, the answer is the same.
    assert_eq!(upload(greedy, image(2, 60_000)).await.0, 507);
    let told = upload(&operator, image(2, 60_000)).await;
    assert_eq!(told.0, 201);
    assert_eq!(upload(modest, image(2, 60_000)).await, told);

    // Of a user, whatever key it comes with.
    assert_eq!(upload(ann, image(3, 30_000)).await.0, 201);
    let (status, problem) = upload(ann, image(4, 30_000)).await;
    assert!(status == 507 && problem["detail"].as_str().unwrap().contains("gateway.objects_user_bytes"), "{problem}");
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, image(5, 30_000));
    let message = |user: &str| json!({ "user": user, "parts": [{ "media_type": "image/png", "data": data }] });
    assert_eq!(modest.post("/v1/messages", message("ann")).await.0, 507);
    assert_eq!(modest.post("/v1/messages", message("joe")).await.0, 202);
    assert_eq!(upload(&operator, image(6, 200_000)).await.0, 201);

    // A gateway that was killed counts what was stored before.
    let mut world = world;
    world.stack.kill9(Service::Gateway, 0).await.unwrap();
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let greedy = Caller::new(&world, 0, Some(greedy.key()));
    assert_eq!(upload(&greedy, image(7, 60_000)).await.0, 507);
    world.end().await;
}

#[tokio::test]
async fn what_no_event_names_goes_and_makes_room_and_what_one_names_stays() {
    let settings = [("OBJECTS_GRACE_MS", "2000"), ("OBJECTS_SWEEP_MS", "200"), ("OBJECTS_KEY_BYTES", "400000")];
    let world = guarded(&settings).replicas(Service::Gateway, 2).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let (_, key) = operator.make(json!({ "name": "app", "scopes": ["read", "write"] })).await;
    let [here, there] = [0, 1].map(|gateway| Caller::new(&world, gateway, Some(&key)));
    let synced = async { while there.get("/v1/status").await.0 != 200 {} };
    timeout(DEADLINE, synced).await.unwrap();

    let (named, unnamed) = (image(1, 150_000), image(2, 300_000));
    let [named_digest, unnamed_digest] = [&named, &unnamed].map(|bytes| media::digest(bytes));
    assert_eq!(upload(&here, named).await.0, 201);
    let message = json!({ "user": "ann", "text": "look", "parts": [{ "digest": named_digest }] });
    assert_eq!(here.post("/v1/messages", message.clone()).await.0, 202);
    assert_eq!(upload(&here, unnamed.clone()).await.0, 507);
    let small = image(3, 200_000);
    let small_digest = media::digest(&small);
    assert_eq!(upload(&here, small).await.0, 201);
    // Both gateways look, and one of them removes it.
    gone(&here, &small_digest).await;
    // Gone it cannot be named; there is room again; and it can be stored again.
    let refused = json!({ "user": "ann", "parts": [{ "digest": small_digest }] });
    let (status, problem) = there.post("/v1/messages", refused).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!("parts[0].digest")));
    stored(&there, &image(3, 200_000)).await;
    gone(&there, &small_digest).await;
    // Several times over the grace has passed by now, for what an event names, too.
    assert!(is_there(&here, &named_digest).await && is_there(&there, &named_digest).await);
    assert!(!is_there(&here, &unnamed_digest).await);
    assert_eq!(there.post("/v1/messages", message).await.0, 202);
    world.end().await;
}

/// Returns all entries that the store keeps.
pub async fn stored_objects(objects: &MediaStore) -> Vec<MediaObject> {
    let (there, kept) = objects.follow_objects().await.unwrap();
    let kept = kept.take(usize::try_from(there).unwrap());
    kept.map(|kept| kept.unwrap().expect("it is damaged")).collect().await
}

#[tokio::test]
async fn what_was_named_or_stored_again_since_it_was_judged_is_not_removed() {
    let world = Wanted::new(USUAL).start().await;
    let objects = MediaStore::new(&world.bus);
    let (bytes, whose) = (image(1, 300_000), StoredFor::default());
    let digest = media::digest(&bytes);
    let store = || objects.store_object(&digest, "image/png", &bytes, &whose);
    let loaded = async || objects.get(&digest, u64::MAX).await.unwrap().map(|(_, bytes)| bytes);
    store().await.unwrap();

    // Somebody names it after it was seen to be old.
    let judged = stored_objects(&objects).await.remove(0);
    assert!(objects.touch(&digest, Duration::ZERO).await.unwrap());
    assert!(!objects.remove(&judged).await.unwrap());
    assert_eq!(loaded().await.as_ref(), Some(&bytes));
    // Somebody stores it again.
    let judged = stored_objects(&objects).await.remove(0);
    store().await.unwrap();
    assert!(!objects.remove(&judged).await.unwrap());
    assert_eq!(loaded().await.as_ref(), Some(&bytes));
    // Nobody does: it goes, once, and whoever would name it then is told so.
    let judged = stored_objects(&objects).await.remove(0);
    assert!(objects.remove(&judged).await.unwrap() && !objects.remove(&judged).await.unwrap());
    assert!(!objects.touch(&digest, Duration::ZERO).await.unwrap());
    assert_eq!(loaded().await, None);
    // Stored again it is there, whatever is forgotten of the one before.
    let removed = stored_objects(&objects).await.remove(0);
    assert!(removed.is_removed);
    store().await.unwrap();
    objects.forget_removed(&removed).await.unwrap();
    assert_eq!(loaded().await.as_ref(), Some(&bytes));
    let judged = stored_objects(&objects).await.remove(0);
    objects.remove(&judged).await.unwrap();
    objects.forget_removed(&stored_objects(&objects).await.remove(0)).await.unwrap();
    assert!(stored_objects(&objects).await.is_empty());
    world.end().await;
}

#[tokio::test]
async fn pieces_of_no_object_go_and_those_of_objects_stay() {
    let world = Wanted::new(USUAL).start().await;
    let objects = MediaStore::new(&world.bus);
    let bytes = image(1, 300_000);
    let digest = media::digest(&bytes);
    objects.store_object(&digest, "image/png", &bytes, &StoredFor::default()).await.unwrap();
    // As a gateway leaves it that is killed while it stores something.
    let jetstream = &world.bus.nats().unwrap().jetstream;
    for _ in 0..3 {
        jetstream.publish("$O.KAIRO_OBJECTS.C.stray", vec![7; 1_000].into()).await.unwrap().await.unwrap();
    }
    let now = world.bus.now();
    assert_eq!(objects.remove_orphan_pieces(now - Duration::from_secs(3_600), 10).await.unwrap(), 0);
    assert_eq!(objects.remove_orphan_pieces(now + Duration::from_secs(60), 10).await.unwrap(), 1);
    assert_eq!(objects.remove_orphan_pieces(now + Duration::from_secs(60), 10).await.unwrap(), 0);
    assert_eq!(objects.get(&digest, u64::MAX).await.unwrap().unwrap().1, bytes);
    world.end().await;
}
