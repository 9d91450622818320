//! The instruments of `scripts/bench`, in a form so small that only their working is shown, not a figure.

use kairo_local::StackOptions;
use serde_json::Value;
use tokio::process::Command;

/// Runs the benchmark with `--json`.
async fn bench(arguments: &[&str]) -> Value {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo-bench");
    let ran = Command::new(program).args(arguments).arg("--json").kill_on_drop(true).output().await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn number(report: &Value, pointer: &str) -> f64 {
    report.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {report:#}"))
}

#[tokio::test]
async fn turns_are_measured_over_both_entrances() {
    let report = bench(&["--turns", "64", "--rounds", "1", "--history", "2", "--sync", "default"]).await;
    for side in ["messages", "chat", "floor"] {
        for figure in ["latency_p50_ms", "latency_p99_ms_together", "turns_per_second", "stored_bytes_per_turn"] {
            assert!(number(&report, &format!("/0/{side}/{figure}")) > 0.0, "{side} {figure}: {report:#}");
        }
    }
    assert!(number(&report, "/0/messages/stored_messages_per_turn") >= 6.0, "{report:#}");
}

#[tokio::test]
async fn what_decisions_cost_is_counted_although_a_replica_is_killed_or_joins() {
    let sizes = ["--delay-ms", "50", "--agents", "2", "--messages", "2", "--deep", "0"];
    let report = bench(&[["cost", "--replicas", "2", "--faults", "kill,join"].as_slice(), &sizes].concat()).await;
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2, "{report:#}");
    for case in cases {
        assert_eq!(case["messages"], 4, "{case:#}");
        for counted in ["replies", "decisions", "completions"] {
            assert_eq!(case[counted], case["messages"], "{counted}: {case:#}");
        }
        assert!(number(case, "/model_requests") >= number(case, "/completions"), "{case:#}");
        assert!(number(case, "/traffic/kairo-agent-runtime/received") > 0.0, "{case:#}");
    }
}

#[tokio::test]
async fn acknowledgements_are_measured_while_agents_are_at_work() {
    let sizes = ["--agents", "2", "--messages", "3", "--fast-ms", "10", "--heavy-ms", "600000"];
    let report = bench(&[["acknowledge"].as_slice(), &sizes].concat()).await;
    assert_eq!(report["messages"], 6, "{report:#}");
    assert!(number(&report, "/p95_ms") >= 10.0, "{report:#}");
}

#[tokio::test]
async fn others_are_measured_alone_and_beside_a_flood() {
    let report = bench(&["fair", "--flood", "50", "--agents", "2", "--seconds", "2"]).await;
    for side in ["alone", "flooded"] {
        assert!(number(&report, &format!("/{side}/replies")) > 0.0, "{report:#}");
    }
    assert!(number(&report, "/flood/answered") > 0.0, "{report:#}");
}

/// What the benchmark records is made again, too: decisions of agents that call tools, and of agents that plan.
#[tokio::test]
async fn every_decision_of_the_recorded_run_is_made_again() {
    let report =
        bench(&["replay", "--messages", "1000", "--agent-messages", "500", "--live-turns", "3", "--live-replays", "2"])
            .await;
    // Each message takes at least one.
    assert!(number(&report, "/decisions") >= 260.0, "{report:#}");
    // Four messages a turn, two of which are decisions; and three that each agent begins with.
    let long = &report["long"];
    assert_eq!((&long["messages"], &long["decisions"]), (&1_006.into(), &500.into()), "{report:#}");
    assert!(number(&report, "/forking/one") > 0.0 && number(&report, "/forking/team") > 0.0, "{report:#}");
    assert!(number(&report, "/live/publish_replaying/count") > 0.0, "{report:#}");
    assert!(number(long, "/resident") > 0.0 && number(long, "/bytes") > 0.0, "{report:#}");
}

#[tokio::test]
async fn idle_agents_are_made_and_woken() {
    let report = bench(&["wake", "--agents", "300", "--wakes", "5", "--orphans", "4"]).await;
    assert_eq!(report["log_messages"], 300 * 4, "{report:#}");
    for figure in ["whole", "awake"] {
        assert_eq!(report[figure]["count"], 5, "{report:#}");
    }
    assert_eq!(report["takeover"]["count"], 4, "{report:#}");
    assert_eq!((&report["unanswered"], &report["takeover_unanswered"]), (&0.into(), &0.into()), "{report:#}");
}

#[tokio::test]
async fn a_team_is_measured_until_all_of_its_tasks_are_done() {
    let report = bench(&["team", "--workers", "3", "--tasks", "7"]).await;
    assert_eq!(report["tasks"], 7, "{report:#}");
    // Two for each task, one when a session is over, and those of the lead.
    assert!(number(&report, "/model_requests") > 2.0, "{report:#}");
    for figure in ["/log_messages", "/log_bytes", "/queued_p95_ms", "/cpu_ms/kairo-agent-runtime"] {
        assert!(number(&report, figure) > 0.0, "{figure}: {report:#}");
    }
}
