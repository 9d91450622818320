//! Master keys that a key management service keeps. No Vault is to be had where this was written, and no AWS: what answers here speaks
//! their protocols as they are documented, and fails as they do.

use std::{
    collections::BTreeMap,
    process::Output,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::Redirect,
    routing::post,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use kairo_core::subjects::EVENTS_STREAM;
use kairo_local::StackOptions;
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command};

use crate::world::{Wanted, scenario::USUAL};

const TOKEN: &str = "s.good";
const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";
type Answer = (StatusCode, Json<Value>);

/// A fake of Vault's transit engine with a key `kairo`, mounted at `keys/transit`. It refuses the next `sealed`
/// requests as sealed before it answers.
#[derive(Clone, Default)]
struct Vault {
    sealed: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

fn refused(status: u16, why: &str) -> Answer {
    (StatusCode::from_u16(status).unwrap(), Json(json!({ "errors": [why] })))
}

async fn transit(
    State(vault): State<Vault>,
    Path((operation, key)): Path<(String, String)>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Answer {
    vault.asked.fetch_add(1, Ordering::SeqCst);
    if vault.sealed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
        return refused(503, "Vault is sealed");
    }
    if headers.get("x-vault-token").is_none_or(|token| token != TOKEN) {
        return refused(403, "permission denied");
    }
    if key != "kairo" {
        return refused(400, "encryption key not found");
    }
    let data = match operation.as_str() {
        "encrypt" => json!({ "ciphertext": format!("vault:v1:{}", turned(body["plaintext"].as_str().unwrap())) }),
        _ => match body["ciphertext"].as_str().unwrap().strip_prefix("vault:v1:") {
            Some(ciphertext) => json!({ "plaintext": turned(ciphertext) }),
            None => return refused(400, "invalid ciphertext: no prefix"),
        },
    };
    (StatusCode::OK, Json(json!({ "data": data, "lease_duration": 0, "warnings": null })))
}

/// Stands for a cipher: every bit of what base64 holds is turned.
fn turned(text: &str) -> String {
    let bytes: Vec<u8> = BASE64_STANDARD.decode(text).unwrap().into_iter().map(|byte| !byte).collect();
    BASE64_STANDARD.encode(bytes)
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, router).into_future());
    url
}

impl Vault {
    async fn start(&self) -> BTreeMap<&'static str, String> {
        let router = Router::new().route("/v1/keys/transit/{operation}/{key}", post(transit));
        let url = serve(router.with_state(self.clone())).await;
        let settings =
            [("KIND", "vault"), ("URL", &url), ("KEY", "kairo"), ("TOKEN", TOKEN), ("MOUNT", "keys/transit")];
        settings.map(|(name, value)| (name, value.to_owned())).into()
    }
}

/// Runs `kairo privacy wrap` with these settings.
async fn wrap(kms: &BTreeMap<&'static str, String>, more: &[(&str, &str)]) -> Output {
    let mut command = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
    command.env_clear().args(["privacy", "wrap"]).envs(more.iter().copied());
    command.envs(kms.iter().map(|(name, value)| (format!("KAIRO_PRIVACY__KMS__{name}"), value)));
    command.output().await.unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap().trim().to_owned()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Whatever stands at its address may answer so.
#[tokio::test]
async fn what_is_no_answer_of_a_key_management_service_is_refused() {
    for answer in ["[]", "null", "7", "<html>Sign in</html>", "{}", r#"{"data":[]}"#, r#"{"data":{"ciphertext":7}}"#] {
        let url = serve(Router::new().fallback(move || async move { answer })).await;
        for kind in ["vault", "aws"] {
            let settings =
                [("KIND", kind), ("URL", &url), ("KEY", "kairo"), ("TOKEN", TOKEN), ("REGION", "eu-central-1")];
            let kms = settings.map(|(name, value)| (name, value.to_owned())).into();
            let bearer = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")];
            let complaint = complaint(&wrap(&kms, &bearer).await);
            assert!(complaint.contains("its answer holds no "), "{kind}: {answer}: {complaint}");
        }
    }
    let elsewhere = Router::new().fallback(|| async { Redirect::temporary("https://evil.example/") });
    let settings = [("KIND", "vault"), ("URL", &serve(elsewhere).await), ("KEY", "kairo"), ("TOKEN", TOKEN)];
    let complaint = complaint(&wrap(&settings.map(|(name, value)| (name, value.to_owned())).into(), &[]).await);
    assert!(complaint.contains("sends on to https://evil.example/"), "{complaint}");
}

#[tokio::test]
async fn what_users_say_is_sealed_under_a_key_that_no_configuration_holds() {
    let vault = Vault::default();
    let kms = vault.start().await;
    let wrapped = printed(&wrap(&kms, &[]).await);
    assert!(wrapped.starts_with("wrapped:vault:v1:"), "{wrapped}");
    // Services begin while it is sealed, and wait.
    let before = vault.asked.load(Ordering::SeqCst);
    vault.sealed.store(3, Ordering::SeqCst);
    let mut wanted = Wanted::new(USUAL).env_of_all("KAIRO_PRIVACY__MASTER_KEY", wrapped);
    for (name, value) in &kms {
        wanted = wanted.env_of_all(&format!("KAIRO_PRIVACY__KMS__{name}"), value.clone());
    }
    let world = wanted.start().await;
    assert_eq!(
        vault.asked.load(Ordering::SeqCst) - before,
        6 + 3,
        "each of six services asks once, and again where it was sealed"
    );
    let keeper = json!({ "agent": "keeper", "prompt": "Be brief." });
    assert_eq!(world.post("/v1/agents", &keeper).await.0, 201);
    let sent = world.send("keeper", "zanzibar, time please").await;
    world.log.wait(|event| event.correlation_id == sent.event_id && event.is_final_reply()).await;
    let stream = world.bus.nats().unwrap().jetstream.get_stream(EVENTS_STREAM).await.unwrap();
    let stored = stream.get_last_raw_message_by_subject("kairo.user.ann.message.*").await.unwrap();
    assert!(!stored.payload.windows(8).any(|part| part == b"zanzibar"), "{:?}", stored.payload);
    world.projected().await;
    let (_, said) = world.get("/v1/conversations/keeper?user=ann").await;
    assert!(said["messages"][0].to_string().contains("zanzibar"), "{said}");
    world.end().await;
}

#[tokio::test]
async fn a_key_that_is_there_is_wrapped_as_it_is_and_each_mistake_says_what_to_do() {
    let vault = Vault::default();
    let kms = vault.start().await;
    let same = printed(&wrap(&kms, &[("KAIRO_PRIVACY__MASTER_KEY", KEY)]).await);
    assert_eq!(same, format!("wrapped:vault:v1:{}", BASE64_STANDARD.encode([!7_u8; 32])));
    // What is wrapped is wrapped again, such as after another key of the service is in force.
    assert_eq!(printed(&wrap(&kms, &[("KAIRO_PRIVACY__MASTER_KEY", &same)]).await), same);

    let with = |name: &'static str, value: &str| {
        let mut kms = kms.clone();
        kms.insert(name, value.to_owned());
        kms
    };
    let nowhere = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (kms, expected) in [
        (with("TOKEN", "s.stolen"), "403 Forbidden: permission denied"),
        (with("KEY", "other"), "encryption key not found"),
        (with("URL", &format!("http://{nowhere}")), "does not answer"),
        (with("URL", "vault.example"), "url: expected one such as https://vault.example:8200, found \"vault.example\""),
        (with("TIMEOUT_MS", "1"), "kms.timeout_ms"),
        (with("KIND", "gcp"), "expected vault or aws, found \"gcp\""),
        (with("TOKEN", ""), "kms.token"),
        (with("TLS_CA", "/no/such/file"), "tls_ca: /no/such/file"),
        (BTreeMap::new(), "kind: expected vault or aws"),
    ] {
        let complaint = complaint(&wrap(&kms, &[]).await);
        assert!(complaint.contains(expected), "{kms:?}: {complaint}");
        assert!(!complaint.contains(TOKEN) && !complaint.contains("s.stolen"), "{complaint}");
    }
    let not_wrapped_here = complaint(&wrap(&kms, &[("KAIRO_PRIVACY__MASTER_KEY", "wrapped:elsewhere")]).await);
    assert!(not_wrapped_here.contains("invalid ciphertext"), "{not_wrapped_here}");
    vault.sealed.store(1, Ordering::SeqCst);
    let sealed = complaint(&wrap(&kms, &[]).await);
    assert!(sealed.contains("does not answer") && sealed.contains("Vault is sealed"), "{sealed}");
}

/// A fake of AWS's service: it accepts one access key, and encrypts by flipping bits.
async fn aws(headers: HeaderMap, body: Bytes) -> Answer {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let (signed, target) = (text("authorization"), text("x-amz-target"));
    let kind = |status: u16, kind: &str, message: &str| {
        (StatusCode::from_u16(status).unwrap(), Json(json!({ "__type": kind, "message": message })))
    };
    if !signed.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        || !signed.contains("/eu-central-1/kms/aws4_request")
    {
        return kind(400, "UnrecognizedClientException", "The security token included in the request is invalid.");
    }
    assert!(signed.contains("x-amz-target") && signed.contains("Signature="), "{signed}");
    assert_eq!(text("content-type"), "application/x-amz-json-1.1");
    let body: Value = serde_json::from_slice(&body).unwrap();
    match (body["KeyId"].as_str().unwrap(), target.as_str()) {
        ("arn:aws:kms:eu-central-1:1:key/busy", _) => kind(400, "ThrottlingException", "Rate exceeded"),
        ("arn:aws:kms:eu-central-1:1:key/off", _) => {
            kind(400, "com.amazonaws.kms#DisabledException", "key/off is disabled.")
        }
        (_, "TrentService.Encrypt") => {
            let wrapped = turned(body["Plaintext"].as_str().unwrap());
            (StatusCode::OK, Json(json!({ "CiphertextBlob": wrapped, "KeyId": body["KeyId"] })))
        }
        (_, "TrentService.Decrypt") => {
            let opened = turned(body["CiphertextBlob"].as_str().unwrap());
            (StatusCode::OK, Json(json!({ "Plaintext": opened, "KeyId": body["KeyId"] })))
        }
        (_, other) => kind(400, "UnknownOperationException", other),
    }
}

#[tokio::test]
async fn keys_of_aws_are_used_with_signed_requests() {
    let url = serve(Router::new().route("/", post(aws))).await;
    let of_key = |key: &str| {
        let settings = [("KIND", "aws"), ("URL", &url), ("KEY", key)];
        BTreeMap::from(settings.map(|(name, value)| (name, value.to_owned())))
    };
    let bearer = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")];
    let master = [("KAIRO_PRIVACY__MASTER_KEY", KEY)];
    let given = [&bearer[..], &master].concat();
    // The region is that of the ARN.
    let wrapped = printed(&wrap(&of_key("arn:aws:kms:eu-central-1:1:key/good"), &given).await);
    assert_eq!(wrapped, format!("wrapped:{}", BASE64_STANDARD.encode([!7_u8; 32])));
    let by_alias = [&given[..], &[("AWS_REGION", "eu-central-1")]].concat();
    assert_eq!(printed(&wrap(&of_key("alias/kairo"), &by_alias).await), wrapped);

    for (key, environment, expected) in [
        (
            "arn:aws:kms:eu-central-1:1:key/busy",
            &given,
            "does not answer: AWS KMS answers 400 Bad Request: ThrottlingException",
        ),
        (
            "arn:aws:kms:eu-central-1:1:key/off",
            &given,
            "refuses: AWS KMS answers 400 Bad Request: DisabledException: key/off",
        ),
        ("alias/kairo", &given, "region: expected one"),
    ] {
        let complaint = complaint(&wrap(&of_key(key), environment).await);
        assert!(complaint.contains(expected) && !complaint.contains("wJalr"), "{key}: {complaint}");
    }
}
