//! The console in a real browser, at a gateway of this build: what `tests/console` does with it.

use std::{path::Path, process::Stdio};

use async_nats::HeaderMap;
use kairo_core::subjects::Consumer;
use kairo_local::Service;
use reqwest::{Client, StatusCode, header};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use crate::{
    authorization_server::AuthorizationServer,
    chromium,
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

/// A page that says how to build the console is no console.
const WITHOUT: &str = "built without its console";
/// The model's replies to the journeys.
pub const SCENARIO: &str = include_str!("console.yaml");
const LISTEN: &str = "KAIRO_GATEWAY__LISTEN";

/// Returns a world in which "the day please" needs consent.
pub fn with_consent() -> Wanted {
    Wanted::new(SCENARIO).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.date_calc"]"#)
}

/// The programs that drive the console: the script and its browser.
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

    /// Takes journeys one after another, with keys where they want some, and does what they want to be done.
    async fn take(&self, world: &mut World, journeys: &[&str], keys: &[&str]) {
        let mut command = Command::new(&self.program);
        command.args([&self.chromium, world.url("").trim_end_matches('/'), &journeys.join(",")]).args(keys);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut taking = command.spawn().unwrap();
        let mut said = BufReader::new(taking.stdout.take().unwrap()).lines();
        let mut answers = taking.stdin.take().unwrap();
        // Whatever they wait for has a limit of its own.
        while let Some(line) = said.next_line().await.unwrap() {
            fulfil(world, line.strip_prefix("want ").unwrap_or_else(|| panic!("{line}"))).await;
            answers.write_all(b"done\n").await.unwrap();
        }
        let taken = taking.wait().await.unwrap();
        assert!(taken.success(), "{journeys:?}: see above");
    }
}

/// Does what a journey cannot do from its browser.
async fn fulfil(world: &mut World, want: &str) {
    let stack = &mut world.stack;
    match want {
        "kill agent-runtime" => {
            stack.kill9(Service::AgentRuntime, 0).await.unwrap();
            stack.restart(Service::AgentRuntime, 0).await.unwrap();
        }
        "stop gateway" => {
            let address = stack.url(Service::Gateway).unwrap().trim_start_matches("http://").to_owned();
            stack.service(Service::Gateway).env(LISTEN, address);
            stack.stop_one(Service::Gateway, 0).await.unwrap();
        }
        "start gateway" => stack.restart(Service::Gateway, 0).await.unwrap(),
        _ => panic!("a journey wants {want}"),
    }
}

#[tokio::test]
async fn people_speak_with_an_agent_and_see_what_happens() {
    let Some(driver) = Driver::find() else { return };
    let mut world = with_consent().start().await;
    for agent in ["default", "cook", "careful", "teller"] {
        world.define(agent).await;
    }
    let topics = json!({ "agent": "topics", "prompt": "Be brief.", "threads": "topics" });
    assert_eq!(world.post("/v1/agents", &topics).await.0, 201);
    driver.take(&mut world, &["chat", "river", "several", "boards", "hostile"], &[]).await;
    driver.take(&mut world, &["approval", "task", "threads", "interjection"], &[]).await;
    driver.take(&mut world, &["access", "failing"], &[]).await;
    driver.take(&mut world, &["killed", "restarted", "rebuilt", "travel"], &[]).await;
    world.end().await;
}

#[tokio::test]
async fn people_look_back_make_decisions_again_and_retry_what_was_set_aside() {
    let Some(driver) = Driver::find() else { return };
    let wanted = with_consent().env(Service::Gateway, "KAIRO_GATEWAY__FORK_MODELS", "true");
    let mut world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__MAX_FORKS", "1").start().await;
    world.define("default").await;
    // More than the river reads at first.
    for at in 0..260 {
        world.send("default", &format!("ahoy {at}")).await;
    }
    world.publish("kairo.user.ann.message", HeaderMap::new(), "hello?").await;
    world.dead_letters(1).await;
    let team = json!({ "team": "market", "owner": "ann", "mission": "Know our competitors.", "lead": { "prompt": "You lead a team." },
        "workers": [{ "name": "reader", "prompt": "You read pages." }] });
    assert_eq!(world.post("/v1/teams", &team).await.0, 201);
    // Nothing is wrong any more with what was set aside.
    let said = world.raw_log().await.into_iter().find(|raw| raw.subject.ends_with(".user.ann.message")).unwrap();
    let mut router = world.bus.clone();
    router.service = kairo_core::subjects::Service::Router;
    router.write_dead_letter(Consumer::Router.name(), &said, "the machine was full").await.unwrap();
    world.settled().await;
    world.projected().await;
    driver.take(&mut world, &["history", "lab", "fork", "letters", "team"], &[]).await;
    world.end().await;
}

#[tokio::test]
async fn who_has_a_key_is_shown_what_it_allows() {
    let Some(driver) = Driver::find() else { return };
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__OIDC", AuthorizationServer::start().await.config());
    let mut world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let (_, reads) = operator.make(json!({ "name": "reads", "scopes": ["read"] })).await;
    let (_, writes) = operator.make(json!({ "name": "writes", "scopes": ["write"] })).await;
    let ann = json!({ "name": "ann", "scopes": ["read", "write"], "user": "ann", "agents": ["default"] });
    let (_, ann) = operator.make(ann).await;
    // Before there is any agent.
    driver.take(&mut world, &["nothing", "empty"], &[ADMIN]).await;
    let profile = json!({ "agent": "default", "prompt": "You are a helpful agent." });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    driver.take(&mut world, &["rights", "issuer"], &[&reads, &writes, &ann]).await;
    world.end().await;
}

#[tokio::test]
async fn without_a_key_one_talks_and_with_that_of_the_command_one_administrates() {
    let Some(driver) = Driver::find() else { return };
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__LOOPBACK_SCOPES", r#"["read","write"]"#);
    let mut world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    driver.take(&mut world, &["machine"], &[ADMIN]).await;
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

/// Of all that it may ever load, compressed.
const MOST_SCRIPTS: u64 = 300 << 10;

#[test]
fn the_console_is_small() {
    let Ok(files) = std::fs::read_dir(Path::new(SOURCES).join("dist/assets")) else {
        eprintln!("skipped: the console is not built, since there is no Node 20.19 here");
        return;
    };
    let scripts = files.flatten().filter(|file| file.file_name().to_string_lossy().ends_with(".js.br"));
    let sizes: Vec<u64> = scripts.map(|file| file.metadata().unwrap().len()).collect();
    let all: u64 = sizes.iter().sum();
    assert!(!sizes.is_empty() && all <= MOST_SCRIPTS, "{all} bytes in {} scripts", sizes.len());
}

/// The sources of the console.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/console");

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
