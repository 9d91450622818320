//! Tools as people see them: the list, their sources, the tools left out, and the status of the servers behind them.

use kairo_local::{Service, Tools};
use serde_json::{Value, json};

use crate::world::{Wanted, World, scenario::USUAL};

/// A secret that a server prints and the status must not show.
const TOKEN: &str = "sesame-1234";

/// A server that says its secret and ends.
fn failing(name: &str) -> Value {
    json!({ "name": name, "command": "/bin/sh", "args": ["-c", "echo \"no database for $TOKEN\" >&2; exit 3"], "env": { "TOKEN": TOKEN } })
}

async fn world() -> World {
    let time = Tools::of_this_checkout().expect("run ./scripts/test").mcp_time().unwrap().to_owned();
    let servers = json!([{ "name": "clock", "command": time }, failing("files")]);
    let tools = json!({ "workers": [{ "name": "bank", "prefix": "billing" }] });
    Wanted::new(USUAL)
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", servers.to_string())
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__TOOLS", tools.to_string())
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__WORKER_LIFECYCLE__START_WAIT_MS", "10")
        .start()
        .await
}

fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    let found = list.as_array().unwrap().iter().find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {list}"))
}

#[tokio::test]
async fn the_status_says_how_it_is_with_every_server_of_tools() {
    let world = world().await;
    let (status, told) = world.get("/v1/status").await;
    assert_eq!(status, 200, "{told}");
    let servers =
        told["services"].as_array().unwrap().iter().find(|replica| replica["service"] == "tool-runner").unwrap();
    let servers = &servers["tool_servers"];
    let clock = named(servers, "clock");
    assert_eq!(
        (&clock["source"], &clock["state"], &clock["tools"]),
        (&json!("mcp"), &json!("up"), &json!(3)),
        "{clock}"
    );
    assert!(clock["since"].is_string() && clock["protocol"] == "2026-07-28", "{clock}");
    let files = named(servers, "files");
    assert_eq!((&files["state"], &files["tools"]), (&json!("down"), &json!(0)), "{files}");
    assert!(!files["last_error"].as_str().unwrap().is_empty(), "{files}");
    assert_eq!(files["stderr_end"].as_str().unwrap().lines().next(), Some("no database for <redacted>"), "{files}");
    assert_eq!(named(servers, "bank")["state"], "starting");
    assert!(!told.to_string().contains(TOKEN), "{told}");
    world.end().await;
}

#[tokio::test]
async fn tools_are_listed_with_their_source_their_group_and_whether_a_human_is_asked() {
    let world = world().await;
    let (status, told) = world.get("/v1/tools").await;
    assert_eq!(status, 200, "{told}");
    for (name, source, server, group, consent) in [
        ("clock.get_current_time", "mcp", "clock", "clock", "never"),
        ("tools.now", "built_in", "", "time", "never"),
        ("memory.append", "built_in", "", "memory", "never"),
        ("submodule.add", "built_in", "", "agents", "always"),
    ] {
        let tool = named(&told["tools"], name);
        let expected = json!([source, server, group, consent]);
        assert_eq!(json!([tool["source"], tool["server"], tool["group"], tool["consent"]]), expected, "{tool}");
    }
    // Its own two, and the one that reads its resources.
    assert_eq!(named(&told["groups"], "clock")["tools"], 3);
    let (_, of_group) = world.get("/v1/tools?group=clock").await;
    assert_eq!(of_group["tools"].as_array().unwrap().len(), 3, "{of_group}");
    let (_, of_source) = world.get("/v1/tools?source=worker").await;
    assert_eq!(of_source["tools"], json!([]), "{of_source}");
    let (_, one) = world.get("/v1/tools/clock.get_current_time").await;
    let schema: Value = serde_json::from_str(one["tool"]["schema"].as_str().unwrap()).unwrap();
    assert_eq!(schema["type"], "object", "{one}");
    assert_eq!(world.get("/v1/tools/clock.stop").await.0, 404);
    assert_eq!(world.get("/v1/tools?source=elsewhere").await.0, 400);
    world.end().await;
}
