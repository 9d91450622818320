//! Tests that a tool's progress reports become events: at most one a second, and none after the result.

use kairo_core::record::Record;
use kairo_proto::Body;
use serde_json::json;

use super::kairo::{Call, Kairo};

#[tokio::test]
async fn progress_of_a_tool_is_told_at_most_once_a_second_and_never_after_the_result() {
    let program = std::env::var("KAIRO_MCP_EVERYTHING").expect("run ./scripts/test");
    let servers = json!([{ "name": "all", "command": program }]).to_string();
    let kairo = Kairo::start(1, &[("KAIRO_TOOL_RUNNER__MCP", servers)]).await;
    let tool = "all.trigger-long-running-operation";
    let call = kairo.decide(Call { tool, arguments: json!({ "duration": 2, "steps": 100 }), target: None }).await;
    let (result, end) = kairo.result(call.action).await;
    assert!(result.ok, "{result:?}");
    let log = kairo.log().await;
    let told: Vec<&Record> = log.iter().filter(|record| matches!(record.body, Body::ToolProgress(_))).collect();
    assert!(!told.is_empty());
    for record in &told {
        let Body::ToolProgress(progress) = &record.body else { unreachable!() };
        assert_eq!((progress.action_id.as_str(), progress.tool.as_str()), (call.action.to_string().as_str(), tool));
        assert!(progress.fraction.is_some_and(|fraction| fraction > 0.0 && fraction <= 1.0), "{progress:?}");
        assert_eq!(record.envelope.correlation_id, call.correlation_id);
        assert!(record.sequence < end.sequence);
    }
    let seconds: Vec<f64> = told
        .windows(2)
        .map(|two| (two[1].envelope.time - two[0].envelope.time).total(jiff::Unit::Second).unwrap())
        .collect();
    assert!(seconds.iter().all(|pause| *pause >= 0.99), "{seconds:?}");
    kairo.stop().await;
}
