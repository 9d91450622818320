//! Real MCP servers: `mcp-server-time` (the newest protocol) and `server-everything` (the older
//! handshake) as child processes, and the latter over streamable HTTP.

#[cfg(test)]
#[path = "mcp/back_and_forth.rs"]
mod back_and_forth;
#[cfg(test)]
#[path = "mcp/conformance.rs"]
mod conformance;
#[cfg(test)]
#[path = "mcp/oauth.rs"]
mod oauth;
#[cfg(test)]
#[path = "mcp/oauth_users.rs"]
mod oauth_users;
#[cfg(test)]
mod odd;
#[cfg(test)]
#[path = "mcp/provider.rs"]
mod provider;
#[cfg(test)]
mod support;

use std::os::unix::fs::PermissionsExt as _;

use kairo_core::config::Secret;
use kairo_local::ThirdPartyServer;
use kairo_tool_runner::config::{McpServerConfig, ToolsConfig};
use kairo_tool_runner::tool::{ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use rustix::process::Signal;
use serde_json::json;

use support::{
    Processes, call, config, context, everything, everything_program, first, killed_during_a_call, start, time,
    time_program, within_deadline,
};

#[tokio::test]
async fn a_server_of_the_newest_protocol() {
    let processes = Processes::new();
    let toolbox = start(vec![processes.mark(time("time"))]).await;
    let servers: Vec<_> = toolbox.server_protocols().collect();
    assert_eq!(servers, [("time", Some("2026-07-28".to_owned()))]);

    let spec = toolbox.catalogue().get("time.get_current_time").cloned().unwrap();
    assert!(spec.idempotent);
    let args = json!({"timezone": "Asia/Tokyo"});
    let now = call(&toolbox, "time.get_current_time", args).await.unwrap();
    assert_eq!(now["timezone"], "Asia/Tokyo");

    let missing = call(&toolbox, "time.get_current_time", json!({})).await;
    assert_eq!(missing.unwrap_err().kind, ToolErrorKind::InvalidArguments);
    let args = json!({"timezone": "Mars/Olympus"});
    let refused = call(&toolbox, "time.get_current_time", args).await.unwrap_err();
    assert_eq!(refused.kind, ToolErrorKind::Failed);
    assert!(refused.message.contains("Mars/Olympus"), "{refused}");

    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn a_server_of_the_older_handshake() {
    let processes = Processes::new();
    let toolbox = start(vec![processes.mark(everything("all"))]).await;
    let servers: Vec<_> = toolbox.server_protocols().collect();
    assert_eq!(servers, [("all", Some("2025-11-25".to_owned()))]);

    let echo = call(&toolbox, "all.echo", json!({"message": "hi"})).await;
    assert_eq!(echo, Ok(json!("Echo: hi")));
    let args = json!({"location": "Chicago"});
    let weather = call(&toolbox, "all.get-structured-content", args).await.unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = call(&toolbox, "all.get-tiny-image", json!({})).await.unwrap();
    assert!(image.as_str().unwrap().contains("[image image/png"), "{image}");

    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn a_server_over_streamable_http() {
    let endpoint = ThirdPartyServer::mcp_everything(everything_program().as_ref()).await.unwrap();
    let server =
        McpServerConfig { name: "web".to_owned(), url: Some(endpoint.url("/mcp")), ..McpServerConfig::default() };
    let toolbox = start(vec![server]).await;
    let sum = call(&toolbox, "web.get-sum", json!({"a": 2, "b": 40})).await.unwrap();
    assert!(sum.as_str().unwrap().contains("42"), "{sum}");

    // Its end is an error of the call, which can be repeated, and not of the runner.
    drop(endpoint);
    let gone = call(&toolbox, "web.echo", json!({"message": "hi"})).await.unwrap_err();
    assert_eq!(gone.kind, ToolErrorKind::Failed);
    assert!(call(&toolbox, "tools.now", json!({})).await.is_ok());
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_server_gets_nothing_of_our_environment_but_what_is_configured() {
    let processes = Processes::new();
    let mut server = processes.mark(everything("all"));
    // CARGO_PKG_NAME is set for every test, so it would be inherited if anything were.
    server.env.insert("TOKEN".to_owned(), Secret::new("s3cret".to_owned()));
    let toolbox = start(vec![server]).await;
    let environment = call(&toolbox, "all.get-env", json!({})).await.unwrap();
    let environment = environment.as_object().unwrap();
    assert_eq!(environment["TOKEN"], "s3cret");
    assert!(environment.contains_key("PATH"));
    assert!(!environment.keys().any(|name| name.starts_with("CARGO")));
    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn progress_is_passed_on_and_a_canceled_call_ends() {
    let processes = Processes::new();
    let toolbox = start(vec![processes.mark(everything("all"))]).await;
    let (reporter, mut progress) = ProgressReporter::channel();
    let mut ctx = context();
    ctx.progress = reporter;
    let cancel = ctx.cancel.clone();
    let args = json!({"duration": 600, "steps": 6000});
    let running = toolbox.call("all.trigger-long-running-operation", args, ctx);
    let stop_after_progress = async {
        let first = first(&mut progress).await;
        assert!(first.fraction.is_some_and(|fraction| fraction > 0.0 && fraction < 1.0));
        cancel.cancel();
    };
    let (outcome, ()) = within_deadline(async { tokio::join!(running, stop_after_progress) }).await;
    assert_eq!(outcome.unwrap_err().kind, ToolErrorKind::Canceled);
    assert!(call(&toolbox, "all.echo", json!({"message": "hi"})).await.is_ok());
    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn a_death_during_a_call_is_in_doubt_and_the_next_call_finds_a_new_server() {
    let processes = Processes::new();
    let mut server = processes.mark(everything("all"));
    server.trust_hints = false;
    let toolbox = start(vec![server, time("time")]).await;
    let args = json!({"duration": 600, "steps": 6000});
    let outcome = killed_during_a_call(&toolbox, &processes, args).await;
    assert_eq!(outcome, Err(ToolErrorKind::InDoubt));
    // The other server never noticed.
    let args = json!({"timezone": "UTC"});
    assert!(call(&toolbox, "time.get_current_time", args).await.is_ok());
    let echo = call(&toolbox, "all.echo", json!({"message": "again"})).await;
    assert_eq!(echo, Ok(json!("Echo: again")));
    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn a_death_during_a_call_that_can_be_repeated_repeats_it() {
    let processes = Processes::new();
    let toolbox = start(vec![processes.mark(everything("all"))]).await;
    let args = json!({"duration": 2, "steps": 20});
    let outcome = killed_during_a_call(&toolbox, &processes, args).await.unwrap();
    assert!(outcome.as_str().unwrap().contains("completed"), "{outcome}");
    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn a_server_that_hangs_is_replaced() {
    let processes = Processes::new();
    let mut server = processes.mark(everything("all"));
    server.call_timeout_ms = Some(30_000);
    let mut config = config(vec![server]);
    config.mcp_lifecycle.probe_timeout_ms = 500;
    let toolbox = within_deadline(Toolbox::start(&config, Vec::new())).await.unwrap();
    processes.signal(Signal::STOP);
    // Canceling the call that gets no answer makes the runner look; the next one, which may be
    // repeated, is answered by the successor.
    let ctx = context();
    let cancel = ctx.cancel.clone();
    let hanging = toolbox.call("all.echo", json!({"message": "one"}), ctx);
    let (outcome, ()) = within_deadline(async { tokio::join!(hanging, async { cancel.cancel() }) }).await;
    assert_eq!(outcome.unwrap_err().kind, ToolErrorKind::Canceled);
    let echo = call(&toolbox, "all.echo", json!({"message": "two"})).await;
    assert_eq!(echo, Ok(json!("Echo: two")));
    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn servers_that_do_not_start_disturb_no_other_and_are_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server");
    let processes = Processes::new();
    let late = McpServerConfig {
        name: "late".to_owned(),
        command: Some(script.display().to_string()),
        ..McpServerConfig::default()
    };
    let broken =
        McpServerConfig { name: "broken".to_owned(), command: Some("false".to_owned()), ..McpServerConfig::default() };
    let toolbox = start(vec![processes.mark(late), broken, processes.mark(time("time"))]).await;
    let running: Vec<_> = toolbox.server_protocols().filter(|(_, up)| up.is_some()).map(|(name, _)| name).collect();
    assert_eq!(running, ["time"]);

    let mut catalogue = toolbox.watch();
    std::fs::write(&script, format!("#!/bin/sh\nexec '{}'\n", time_program())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let offers_late = |catalogue: &std::sync::Arc<kairo_tool_runner::catalogue::Catalogue>| {
        catalogue.get("late.get_current_time").is_some()
    };
    within_deadline(catalogue.wait_for(offers_late)).await.unwrap();
    let args = json!({"timezone": "UTC"});
    assert!(call(&toolbox, "late.get_current_time", args).await.is_ok());
    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[tokio::test]
async fn too_large_a_result_is_refused() {
    let processes = Processes::new();
    let config = ToolsConfig { max_result_bytes: 1000, ..config(vec![processes.mark(everything("all"))]) };
    let toolbox = within_deadline(Toolbox::start(&config, Vec::new())).await.unwrap();
    let args = json!({"message": "x".repeat(1000)});
    let error = call(&toolbox, "all.echo", args).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::TooLarge);
    within_deadline(toolbox.stop()).await;
    processes.assert_gone();
}

#[test]
fn the_servers_are_installed() {
    for program in [time_program(), everything_program()] {
        assert!(std::path::Path::new(&program).is_file(), "{program} is no file; run ./scripts/test");
    }
}
