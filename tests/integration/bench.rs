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
async fn a_team_is_measured_until_all_of_its_tasks_are_done() {
    let report = bench(&["team", "--workers", "3", "--tasks", "7"]).await;
    assert_eq!(report["tasks"], 7, "{report:#}");
    // Two for each task, one when a session is over, and those of the lead.
    assert!(number(&report, "/model_requests") > 2.0, "{report:#}");
    for figure in ["/log_messages", "/log_bytes", "/queued_p95_ms", "/cpu_ms/kairo-agent-runtime"] {
        assert!(number(&report, figure) > 0.0, "{figure}: {report:#}");
    }
}

#[tokio::test]
async fn steady_load_is_measured_with_more_replicas_and_counts_add_up() {
    let load =
        ["--replicas", "1,2", "--in-flight", "2", "--agents-per-call", "2", "--delay-ms", "50", "--seconds", "2"];
    let report = bench(&[["scale", "--only", "load"].as_slice(), &load].concat()).await;
    let cases = report["load"].as_array().unwrap();
    assert_eq!(cases.len(), 2, "{report:#}");
    for (case, agents) in cases.iter().zip([4, 8]) {
        assert_eq!((&case["agents"], &case["unanswered"]), (&agents.into(), &0.into()), "{case:#}");
        assert!(number(case, "/replies") >= number(case, "/waits/count"), "{case:#}");
        assert!(number(case, "/waits/count") > 0.0, "{case:#}");
        for counted in ["decisions", "completions", "model_requests"] {
            assert_eq!(case[counted], case["replies"], "{counted}: {case:#}");
        }
    }
    assert!(report["idle"].is_null() && report["neighbours"].is_null(), "{report:#}");
}

/// Of everything that is shared, whoever keeps below their share is refused nothing.
#[tokio::test]
async fn nobody_below_their_share_is_refused_anything_beside_a_flood() {
    let sizes = ["--flood", "50", "--agents", "2", "--seconds", "1", "--share-seconds", "2"];
    let report = bench(&[["fair"].as_slice(), &sizes].concat()).await;
    let shares = report["shares"].as_array().unwrap();
    assert_eq!(shares.len(), 8, "{report:#}");
    for share in shares {
        for side in ["alone", "beside"] {
            assert_eq!(share[side]["refused"], 0, "{share:#}");
            assert!(number(share, &format!("/{side}/requests")) > 0.0, "{share:#}");
        }
    }
}

/// This covers `wake` and `fair` too, which measure these parts alone.
#[tokio::test]
async fn idle_agents_are_made_and_woken_and_others_are_measured_beside_a_flood() {
    let sizes = ["--idle", "300", "--wakes", "5", "--orphans", "4", "--flood", "50", "--seconds", "2"];
    let report = bench(&[["scale", "--only", "idle,neighbours"].as_slice(), &sizes].concat()).await;
    assert_eq!(report["load"].as_array().map(Vec::len), Some(0), "{report:#}");
    let idle = &report["idle"];
    assert_eq!(idle["log_messages"], 300 * 4, "{report:#}");
    assert_eq!((&idle["whole"]["count"], &idle["awake"]["count"]), (&5.into(), &5.into()), "{report:#}");
    assert_eq!(idle["takeover"]["count"], 4, "{report:#}");
    assert_eq!((&idle["unanswered"], &idle["takeover_unanswered"]), (&0.into(), &0.into()), "{report:#}");
    for service in ["kairo-agent-runtime", "kairo-router"] {
        assert!(number(idle, &format!("/restarts/{service}/decided_seconds")) > 0.0, "{report:#}");
        assert!(number(idle, &format!("/resident_mib/0/{service}")) > 0.0, "{report:#}");
    }
    let (log, stored) = (number(idle, "/log_bytes"), number(idle, "/stored_bytes"));
    assert!(log > 0.0 && stored > log, "{report:#}");
    for side in ["alone", "flooded"] {
        assert!(number(&report, &format!("/neighbours/{side}/replies")) > 0.0, "{report:#}");
    }
    assert!(number(&report, "/neighbours/flood/answered") > 0.0, "{report:#}");
}
