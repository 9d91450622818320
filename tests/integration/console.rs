//! The console in a real browser, at a gateway of this build: what `tests/console/journeys.cjs` does with it.

use std::path::Path;

use kairo_local::Service;
use reqwest::{Client, StatusCode, header};
use serde_json::json;
use tokio::process::Command;

use crate::{
    chromium,
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

/// A page that says how to build the console is no console.
const WITHOUT: &str = "built without its console";

/// What it takes; nothing where something is not installed, which is said.
struct Driver {
    program: String,
    chromium: String,
}

impl Driver {
    fn find() -> Option<Self> {
        let program = std::env::var("KAIRO_CONSOLE_JOURNEYS").ok();
        if program.is_none() {
            eprintln!("skipped: what drives the console is not installed, since there is no Node 20.19 here");
        }
        Some(Self { program: program?, chromium: chromium::program()? })
    }

    /// Takes one of the journeys, with keys where it wants some.
    async fn take(&self, world: &World, journey: &str, keys: &[&str]) {
        let mut command = Command::new(&self.program);
        command.args([&self.chromium, world.url("").trim_end_matches('/'), journey]).args(keys).kill_on_drop(true);
        let taken = tokio::time::timeout(DEADLINE, command.output()).await.expect("the journey has no end").unwrap();
        assert!(taken.status.success(), "{journey}: {}", String::from_utf8_lossy(&taken.stderr));
    }
}

#[tokio::test]
async fn people_speak_with_an_agent_and_see_what_happens() {
    let Some(driver) = Driver::find() else { return };
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    world.define("cook").await;
    for journey in ["chat", "river", "several", "boards", "hostile", "access"] {
        driver.take(&world, journey, &[]).await;
    }
    world.end().await;
}

#[tokio::test]
async fn who_has_a_key_is_shown_what_it_allows() {
    let Some(driver) = Driver::find() else { return };
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let (_, reads) = operator.make(json!({ "name": "reads", "scopes": ["read"] })).await;
    let (_, writes) = operator.make(json!({ "name": "writes", "scopes": ["write"] })).await;
    let ann = json!({ "name": "ann", "scopes": ["read", "write"], "user": "ann", "agents": ["default"] });
    let (_, ann) = operator.make(ann).await;
    // Before there is any agent.
    driver.take(&world, "nothing", &[ADMIN]).await;
    let profile = json!({ "agent": "default", "prompt": "You are a helpful agent." });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    driver.take(&world, "rights", &[&reads, &writes, &ann]).await;
    world.end().await;
}

#[tokio::test]
async fn browsers_are_led_to_the_console_which_is_kept_and_runs_nothing_of_others() {
    let world = Wanted::new(USUAL).start().await;
    let http = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let get = |path: &str, name: header::HeaderName, value: &str| http.get(world.url(path)).header(name, value).send();

    let home = get("/", header::ACCEPT, "text/html,*/*;q=0.8").await.unwrap();
    assert_eq!((home.status(), &home.headers()["location"]), (StatusCode::SEE_OTHER, &"/console/".parse().unwrap()));
    let text = get("/", header::ACCEPT, "*/*").await.unwrap().text().await.unwrap();
    assert!(text.contains("GET /console/"), "{text}");

    let page = get("/console/chat/default", header::ACCEPT_ENCODING, "identity").await.unwrap();
    let head = page.headers().clone();
    let policy = head["content-security-policy"].to_str().unwrap();
    for part in ["default-src 'self';", "frame-ancestors 'none';", "require-trusted-types-for 'script';"] {
        assert!(policy.contains(part) && !policy.contains("unsafe"), "{policy}");
    }
    assert_eq!(
        (&head["x-content-type-options"], &head["referrer-policy"]),
        (&"nosniff".parse().unwrap(), &"no-referrer".parse().unwrap())
    );
    let again = get("/console/", header::IF_NONE_MATCH, head["etag"].to_str().unwrap()).await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(http.post(world.url("/console/")).send().await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);

    let html = page.text().await.unwrap();
    if html.contains(WITHOUT) {
        eprintln!("skipped: the gateway was built without its console, since there is no Node 20.19 here");
    } else {
        let script = html.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let script = get(script, header::ACCEPT_ENCODING, "gzip, br").await.unwrap();
        assert_eq!(&script.headers()["content-encoding"], "br");
        assert!(script.headers()["cache-control"].to_str().unwrap().contains("immutable"));
    }
    world.end().await;
}

/// Where the console is made.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../services/console");

#[tokio::test]
async fn the_client_has_the_types_of_the_documents() {
    let sources = Path::new(SOURCES);
    if !sources.join("node_modules/openapi-typescript").is_dir() {
        eprintln!("skipped: what builds the console is not installed, since there is no Node 20.19 here");
        return;
    }
    let world = Wanted::new(USUAL).start().await;
    let folder = tempfile::tempdir().unwrap();
    let committed = sources.join("src/lib/api");
    let regenerate = std::env::var_os("KAIRO_REGENERATE").is_some();
    let made = if regenerate { committed.clone() } else { folder.path().to_owned() };
    let mut command = Command::new("node");
    command.current_dir(sources).arg("scripts/types.mjs").kill_on_drop(true);
    for document in ["openapi.json", "asyncapi.yaml"] {
        let text = reqwest::get(world.url(&format!("/{document}"))).await.unwrap().text().await.unwrap();
        let path = folder.path().join(document);
        std::fs::write(&path, text).unwrap();
        command.arg(path);
    }
    let output = tokio::time::timeout(DEADLINE, command.arg(&made).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for types in ["openapi.d.ts", "asyncapi.d.ts"] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(types)).unwrap();
        let same = read(&committed) == read(&made);
        assert!(same, "{types} is out of date: KAIRO_REGENERATE=1 cargo nextest run -p kairo-tests the_client_has");
    }
    world.end().await;
}
